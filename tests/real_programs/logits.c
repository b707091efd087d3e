// SPDX-License-Identifier: MIT
// Runs a model by libllama and writes every logit: of a prompt in one batch, of the same tokens one
// by one, then of tokens that are chosen greedily.
//
// usage: logits N MODEL OUT [MODEL OUT]...
//
// Graphs are computed of at most N tokens at a time.
// The file holds the number of rows and of columns as two 64-bit numbers, then 32-bit floats. What
// a model can't do it reports, and goes on with the next.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggml-backend.h"
#include "llama.h"

enum { N_PROMPT = 48, N_GENERATED = 32 };

static void quiet(enum ggml_log_level level, const char *text, void *data) {
    (void)data;
    const bool is_error = level >= GGML_LOG_LEVEL_ERROR && level != GGML_LOG_LEVEL_CONT;
    if (is_error || strstr(text, "layers to GPU")) fputs(text, stderr);
}

// Decodes tokens from position `at` on; their logits go to `out_rows`.
static bool decode(struct llama_context *ctx, const llama_token *tokens, int n, int at, int n_vocab,
                   float *out_rows) {
    struct llama_batch batch = llama_batch_init(n, 0, 1);
    batch.n_tokens = n;
    for (int i = 0; i < n; ++i) {
        batch.token[i] = tokens[i];
        batch.pos[i] = at + i;
        batch.n_seq_id[i] = 1;
        batch.seq_id[i][0] = 0;
        batch.logits[i] = 1;
    }
    const bool done = llama_decode(ctx, batch) == 0;
    for (int i = 0; i < n && done; ++i) {
        memcpy(out_rows + (size_t)i * n_vocab, llama_get_logits_ith(ctx, i),
               (size_t)n_vocab * sizeof(float));
    }
    llama_batch_free(batch);
    return done;
}

static int largest(const float *row, int n) {
    int best = 0;
    for (int i = 1; i < n; ++i) {
        if (row[i] > row[best]) best = i;
    }
    return best;
}

static bool run(struct llama_model *model, uint32_t n_ubatch, const char *path) {
    const int n_vocab = llama_vocab_n_tokens(llama_model_get_vocab(model));
    const int n_rows = 2 * N_PROMPT + N_GENERATED;
    llama_token tokens[N_PROMPT];
    struct llama_context_params params = llama_context_default_params();
    params.n_ctx = 256;
    params.n_batch = 64;
    params.n_ubatch = n_ubatch;
    params.n_threads = params.n_threads_batch = 1;
    struct llama_context *ctx = llama_init_from_model(model, params);
    if (ctx == NULL) return false;
    float *rows = calloc((size_t)n_rows * (size_t)n_vocab, sizeof(float));
    for (int i = 0; i < N_PROMPT; ++i)
        tokens[i] = (i * 7919 + i * i * 31) % n_vocab;
    bool done = decode(ctx, tokens, N_PROMPT, 0, n_vocab, rows);
    llama_memory_clear(llama_get_memory(ctx), true);
    float *row = rows + (size_t)N_PROMPT * n_vocab;
    for (int i = 0; i < N_PROMPT && done; ++i, row += n_vocab)
        done = decode(ctx, &tokens[i], 1, i, n_vocab, row);
    printf("tokens:");
    for (int i = 0; i < N_GENERATED && done; ++i, row += n_vocab) {
        const llama_token token = largest(row - n_vocab, n_vocab);
        printf(" %d", token);
        done = decode(ctx, &token, 1, N_PROMPT + i, n_vocab, row);
    }
    printf("\n");
    FILE *file = done ? fopen(path, "wb") : NULL;
    if (file != NULL) {
        const int64_t size[] = {n_rows, n_vocab};
        fwrite(size, sizeof(size), 1, file);
        fwrite(rows, sizeof(float), (size_t)n_rows * (size_t)n_vocab, file);
        done = fclose(file) == 0;
    }
    free(rows);
    llama_free(ctx);
    return done && file != NULL;
}

int main(int argc, char **argv) {
    int failures = 0;
    llama_log_set(quiet, NULL);
    ggml_backend_load_all();
    llama_backend_init();
    const uint32_t n_ubatch = argc > 1 ? (uint32_t)atoi(argv[1]) : 0;
    for (int i = 2; i + 1 < argc; i += 2) {
        printf("model %s\n", argv[i]);
        fflush(stdout);
        struct llama_model *model =
            llama_model_load_from_file(argv[i], llama_model_default_params());
        const bool done = model != NULL && run(model, n_ubatch, argv[i + 1]);
        if (!done) {
            printf("not done\n");
            ++failures;
        }
        fflush(stdout);
        llama_model_free(model);
    }
    llama_backend_free();
    return failures > 0;
}
