// SPDX-License-Identifier: MIT
// Writes a small model with random weights for whisper.cpp, in its own file format.
//
// usage: make_whisper OUT.bin [SEED]
//
// The file: a magic number, the model's numbers, the filters of the spectrum, the vocabulary, then
// tensors without alignment. The vocabulary has the size of the English one, since the numbers of
// special tokens follow from it.
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggml.h"

enum {
    N_VOCAB = 51864,
    N_TEXT_TOKENS = 50257,
    N_STATE = 128,
    N_HEADS = 2,
    N_AUDIO_CTX = 1500,
    N_AUDIO_LAYERS = 4, // whisper.cpp knows its models by this
    N_TEXT_CTX = 448,
    N_TEXT_LAYERS = 4,
    N_MELS = 80,
    N_FREQUENCIES = 201,
};

struct maker {
    FILE *file;
    uint64_t random;
};

static double uniform(struct maker *m) { // splitmix64
    uint64_t z = m->random += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return (double)((z >> 11) + 1) / 9007199254740993.0;
}

static float gaussian(struct maker *m) { // Box-Muller
    const double radius = sqrt(-2 * log(uniform(m)));
    return (float)(radius * cos(6.283185307179586 * uniform(m)));
}

static void put(struct maker *m, const void *data, size_t size) {
    if (fwrite(data, 1, size, m->file) != size) {
        fprintf(stderr, "make_whisper: the file can't be written\n");
        exit(1);
    }
}

static void put_int(struct maker *m, int32_t value) {
    put(m, &value, sizeof(value));
}

// A tensor of numbers around `mean`; 0 for `ne1` and `ne2` are dimensions that it doesn't have.
static void add(struct maker *m, bool half, float mean, float deviation, int ne0, int ne1, int ne2,
                const char *name) {
    const int n_dims = ne2 > 0 ? 3 : ne1 > 0 ? 2 : 1;
    const int ne[] = {ne0, ne1, ne2};
    int64_t n = 1;
    put_int(m, n_dims);
    put_int(m, (int32_t)strlen(name));
    put_int(m, half ? GGML_TYPE_F16 : GGML_TYPE_F32);
    for (int i = 0; i < n_dims; ++i) {
        put_int(m, ne[i]);
        n *= ne[i];
    }
    put(m, name, strlen(name));
    for (int64_t i = 0; i < n; ++i) {
        const float value = mean + deviation * gaussian(m);
        const ggml_fp16_t narrow = ggml_fp32_to_fp16(value);
        put(m, half ? (const void *)&narrow : &value, half ? sizeof(narrow) : sizeof(value));
    }
}

// A linear layer or a norm of a block, with its bias.
static void add_part(struct maker *m, const char *block, int layer, const char *part, int n_in,
                     int n_out, bool bias) {
    char name[96];
    snprintf(name, sizeof(name), "%s.blocks.%d.%s.weight", block, layer, part);
    if (n_out > 0)
        add(m, true, 0, 1.0f / sqrtf((float)n_in), n_in, n_out, 0, name);
    else
        add(m, false, 1, 0.2f, n_in, 0, 0, name);
    snprintf(name, sizeof(name), "%s.blocks.%d.%s.bias", block, layer, part);
    if (bias) add(m, false, 0, 0.1f, n_out > 0 ? n_out : n_in, 0, 0, name);
}

static void add_attention(struct maker *m, const char *block, int layer, const char *prefix) {
    static const char *const parts[] = {"query", "key", "value", "out"};
    char part[32];
    snprintf(part, sizeof(part), "%s_ln", prefix);
    add_part(m, block, layer, part, N_STATE, 0, true);
    for (int i = 0; i < 4; ++i) {
        snprintf(part, sizeof(part), "%s.%s", prefix, parts[i]);
        add_part(m, block, layer, part, N_STATE, N_STATE, i != 1); // keys have no bias
    }
}

static void add_blocks(struct maker *m, const char *block, int n_layers, bool crossed) {
    for (int layer = 0; layer < n_layers; ++layer) {
        add_attention(m, block, layer, "attn");
        if (crossed) add_attention(m, block, layer, "cross_attn");
        add_part(m, block, layer, "mlp_ln", N_STATE, 0, true);
        add_part(m, block, layer, "mlp.0", N_STATE, 4 * N_STATE, true);
        add_part(m, block, layer, "mlp.2", 4 * N_STATE, N_STATE, true);
    }
}

static void put_header(struct maker *m) {
    const int32_t numbers[] = {0x67676d6c,     N_VOCAB,    N_AUDIO_CTX, N_STATE,      N_HEADS,
                               N_AUDIO_LAYERS, N_TEXT_CTX, N_STATE,     N_HEADS,      N_TEXT_LAYERS,
                               N_MELS,         1,          N_MELS,      N_FREQUENCIES};
    put(m, numbers, sizeof(numbers));
    for (int mel = 0; mel < N_MELS; ++mel) { // triangles of equal width
        const float centre = (float)(mel + 1) * N_FREQUENCIES / (N_MELS + 1);
        for (int i = 0; i < N_FREQUENCIES; ++i) {
            const float height = fmaxf(0, 1 - fabsf((float)i - centre) / 3) / 3;
            put(m, &height, sizeof(height));
        }
    }
    put_int(m, N_TEXT_TOKENS);
    for (int i = 0; i < N_TEXT_TOKENS; ++i) {
        char word[16];
        // Looked up by whisper.cpp, where English has them: a space, a dash, a quotation mark.
        const char *needed = i == 220 ? " " : i == 532 ? " -" : i == 705 ? " '" : NULL;
        if (needed != NULL)
            snprintf(word, sizeof(word), "%s", needed);
        else
            snprintf(word, sizeof(word), " w%d", i);
        put_int(m, (int32_t)strlen(word));
        put(m, word, strlen(word));
    }
}

int main(int argc, char **argv) {
    struct maker m = {.random = argc > 2 ? strtoull(argv[2], NULL, 10) : 1};
    m.file = argc > 1 ? fopen(argv[1], "wb") : NULL;
    if (m.file == NULL) {
        fprintf(stderr, "usage: make_whisper OUT.bin [SEED]\n");
        return 2;
    }
    put_header(&m);
    const float small = 1.0f / sqrtf(N_STATE);
    add(&m, false, 0, 0.3f, N_STATE, N_AUDIO_CTX, 0, "encoder.positional_embedding");
    add(&m, true, 0, 1.0f / sqrtf(3 * N_MELS), 3, N_MELS, N_STATE, "encoder.conv1.weight");
    add(&m, false, 0, 0.1f, 1, N_STATE, 0, "encoder.conv1.bias");
    add(&m, true, 0, 1.0f / sqrtf(3 * N_STATE), 3, N_STATE, N_STATE, "encoder.conv2.weight");
    add(&m, false, 0, 0.1f, 1, N_STATE, 0, "encoder.conv2.bias");
    add(&m, false, 1, 0.2f, N_STATE, 0, 0, "encoder.ln_post.weight");
    add(&m, false, 0, 0.1f, N_STATE, 0, 0, "encoder.ln_post.bias");
    add_blocks(&m, "encoder", N_AUDIO_LAYERS, false);
    add(&m, false, 0, 0.3f, N_STATE, N_TEXT_CTX, 0, "decoder.positional_embedding");
    add(&m, true, 0, 3 * small, N_STATE, N_VOCAB, 0, "decoder.token_embedding.weight");
    add(&m, false, 1, 0.2f, N_STATE, 0, 0, "decoder.ln.weight");
    add(&m, false, 0, 0.1f, N_STATE, 0, 0, "decoder.ln.bias");
    add_blocks(&m, "decoder", N_TEXT_LAYERS, true);
    return fclose(m.file) == 0 ? 0 : 1;
}
