// SPDX-License-Identifier: MIT
// Writes small models with random weights for llama.cpp, by this library's GGUF functions.
//
// usage: make_model ARCHITECTURE OUT.gguf [SEED]
//
// The weights are scaled so that activations keep their size through the layers and logits spread
// over a few units. Text goes in and out by a vocabulary of bytes. The same seed makes the same
// file.
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggml.h"
#include "gguf.h"

enum {
    N_EMBD = 256, // one super-block of the K types
    N_FF = 512,
    N_LAYERS = 3,
    N_HEADS = 8,
    N_HEADS_KV = 2,
    HEAD_DIM = 32,
    N_EXPERTS = 4,
    N_EXPERTS_USED = 2,
    N_CTX = 2048,
};

// Of a model. A mamba2 takes the number of heads for those of its states, a rwkv7 their size alone.
struct sizes {
    int n_embd, n_ff, n_layers, n_heads, n_heads_kv, head_dim, n_experts, n_experts_used;
};

static const struct sizes small = {N_EMBD,     N_FF,     N_LAYERS,  N_HEADS,
                                   N_HEADS_KV, HEAD_DIM, N_EXPERTS, N_EXPERTS_USED};
static const struct sizes of_200_million = {1024, 2816, 16, 16, 4, 64, 0, 0};
static const struct sizes with_experts = {1024, 768, 8, 16, 4, 64, 16, 4};
static const struct sizes with_states = {1024, 3584, 16, 32, 32, 64, 0, 0};

struct maker {
    const char *arch;
    struct sizes sizes;
    struct gguf_context *file;
    struct ggml_context *ctx;
    uint64_t random;
    int n_vocab;
};

// --- random numbers ------------------------------------------------------------------------------

static uint64_t next_random(uint64_t *state) { // splitmix64
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double uniform(uint64_t *state) {
    return (double)((next_random(state) >> 11) + 1) / 9007199254740993.0;
}

static float gaussian(uint64_t *state) { // Box-Muller
    const double radius = sqrt(-2 * log(uniform(state)));
    return (float)(radius * cos(6.283185307179586 * uniform(state)));
}

// --- tensors -------------------------------------------------------------------------------------

static void add_named(struct maker *m, float mean, float deviation, const int64_t *ne, int n_dims,
                      const char *name) {
    struct ggml_tensor *tensor = ggml_new_tensor(m->ctx, GGML_TYPE_F32, n_dims, ne);
    ggml_set_name(tensor, name);
    float *data = tensor->data;
    for (int64_t i = 0; i < ggml_nelements(tensor); ++i)
        data[i] = mean + deviation * gaussian(&m->random);
    gguf_add_tensor(m->file, tensor);
}

// A tensor of numbers around `mean`; a name with % gets the layer's number.
__attribute__((format(printf, 8, 9))) static void add(struct maker *m, float mean, float deviation,
                                                      int64_t ne0, int64_t ne1, int64_t ne2,
                                                      int n_dims, const char *name, ...) {
    const int64_t ne[] = {ne0, ne1, ne2};
    char text[GGML_MAX_NAME];
    va_list args;
    va_start(args, name);
    vsnprintf(text, sizeof(text), name, args);
    va_end(args);
    add_named(m, mean, deviation, ne, n_dims, text);
}

// A matrix that keeps the size of what it is multiplied by.
static void add_matrix(struct maker *m, int64_t n_in, int64_t n_out, const char *part, int layer) {
    add(m, 0, 1.0f / sqrtf((float)n_in), n_in, n_out, 1, 2, "blk.%d.%s.weight", layer, part);
}

static void add_norm(struct maker *m, int64_t n, float mean, const char *part, int layer) {
    add(m, mean, 0.2f * mean, n, 1, 1, 1, "blk.%d.%s.weight", layer, part);
}

// --- numbers of the model ------------------------------------------------------------------------

static const char *key(const struct maker *m, const char *name) {
    static char text[128];
    snprintf(text, sizeof(text), "%s.%s", m->arch, name);
    return text;
}

static void set_u32(struct maker *m, const char *name, uint32_t value) {
    gguf_set_val_u32(m->file, key(m, name), value);
}

static void set_f32(struct maker *m, const char *name, float value) {
    gguf_set_val_f32(m->file, key(m, name), value);
}

static void set_common(struct maker *m) {
    gguf_set_val_str(m->file, "general.architecture", m->arch);
    gguf_set_val_str(m->file, "general.name", "random weights");
    set_u32(m, "context_length", N_CTX);
    set_u32(m, "embedding_length", (uint32_t)m->sizes.n_embd);
    set_u32(m, "block_count", (uint32_t)m->sizes.n_layers);
    set_u32(m, "feed_forward_length", (uint32_t)m->sizes.n_ff);
    set_u32(m, "vocab_size", (uint32_t)m->n_vocab);
    set_f32(m, "attention.layer_norm_rms_epsilon", 1e-6f);
}

static void set_attention(struct maker *m) {
    set_u32(m, "attention.head_count", (uint32_t)m->sizes.n_heads);
    set_u32(m, "attention.head_count_kv", (uint32_t)m->sizes.n_heads_kv);
    set_u32(m, "attention.key_length", (uint32_t)m->sizes.head_dim);
    set_u32(m, "attention.value_length", (uint32_t)m->sizes.head_dim);
    set_u32(m, "rope.dimension_count", (uint32_t)m->sizes.head_dim);
    set_f32(m, "rope.freq_base", 10000);
}

// --- vocabularies --------------------------------------------------------------------------------

// Kinds of tokens in the file.
enum token_kind { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, BYTE = 6 };

struct vocabulary {
    const char *tokens[300];
    int32_t kinds[300];
    float scores[300];
    char texts[300][12];
    int n;
};

static void add_token(struct vocabulary *v, const char *text, enum token_kind kind, float score) {
    snprintf(v->texts[v->n], sizeof(v->texts[0]), "%s", text);
    v->tokens[v->n] = v->texts[v->n];
    v->kinds[v->n] = (int32_t)kind;
    v->scores[v->n++] = score;
}

static void write_vocabulary(struct maker *m, const struct vocabulary *v, const char *model) {
    gguf_set_val_str(m->file, "tokenizer.ggml.model", model);
    gguf_set_arr_str(m->file, "tokenizer.ggml.tokens", (const char **)v->tokens, (size_t)v->n);
    gguf_set_arr_data(m->file, "tokenizer.ggml.token_type", GGUF_TYPE_INT32, v->kinds,
                      (size_t)v->n);
    gguf_set_arr_data(m->file, "tokenizer.ggml.scores", GGUF_TYPE_FLOAT32, v->scores, (size_t)v->n);
    gguf_set_val_bool(m->file, "tokenizer.ggml.add_bos_token", true);
    gguf_set_val_bool(m->file, "tokenizer.ggml.add_space_prefix", false);
    m->n_vocab = v->n;
}

// SentencePiece: bytes have tokens of their own, for what no other token spells.
static void set_spm_vocabulary(struct maker *m) {
    static struct vocabulary v;
    v.n = 0;
    add_token(&v, "<unk>", UNKNOWN, 0);
    add_token(&v, "<s>", CONTROL, 0);
    add_token(&v, "</s>", CONTROL, 0);
    for (int i = 0; i < 256; ++i) {
        char text[12];
        snprintf(text, sizeof(text), "<0x%02X>", i);
        add_token(&v, text, BYTE, 0);
    }
    write_vocabulary(m, &v, "llama");
    gguf_set_val_u32(m->file, "tokenizer.ggml.unknown_token_id", 0);
    gguf_set_val_u32(m->file, "tokenizer.ggml.bos_token_id", 1);
    gguf_set_val_u32(m->file, "tokenizer.ggml.eos_token_id", 2);
}

// GPT-2's: each byte is written as a character that can be printed, those that can't be as the ones
// from U+0100 on.
static void set_bpe_vocabulary(struct maker *m) {
    static struct vocabulary v;
    static const char *const merges[] = {"t h", "a n"};
    int moved = 0;
    v.n = 0;
    for (int i = 0; i < 256; ++i) {
        const int printable =
            (i >= '!' && i <= '~') || (i >= 0xa1 && i <= 0xac) || (i >= 0xae && i <= 0xff);
        const int code = printable ? i : 256 + moved++;
        const char utf8[] = {(char)(code < 128 ? code : 0xc0 | code >> 6),
                             (char)(code < 128 ? 0 : 0x80 | (code & 0x3f)), 0};
        add_token(&v, utf8, NORMAL, 0);
    }
    add_token(&v, "th", NORMAL, 0);
    add_token(&v, "an", NORMAL, 0);
    add_token(&v, "<|end|>", CONTROL, 0);
    write_vocabulary(m, &v, "gpt2");
    gguf_set_val_str(m->file, "tokenizer.ggml.pre", "default");
    gguf_set_arr_str(m->file, "tokenizer.ggml.merges", (const char **)merges, 2);
    gguf_set_val_u32(m->file, "tokenizer.ggml.bos_token_id", (uint32_t)v.n - 1);
    gguf_set_val_u32(m->file, "tokenizer.ggml.eos_token_id", (uint32_t)v.n - 1);
}

// --- architectures -------------------------------------------------------------------------------

static void add_ends(struct maker *m, int tied) {
    // Embeddings of size 1, which a model with tied ones multiplies by sqrt(n_embd); logits of a
    // few units.
    const float size = 1.0f / sqrtf((float)m->sizes.n_embd);
    add(m, 0, tied ? size : 1, m->sizes.n_embd, m->n_vocab, 1, 2, "token_embd.weight");
    add(m, tied ? 3 : 1, 0.2f, m->sizes.n_embd, 1, 1, 1, "output_norm.weight");
    if (!tied) add(m, 0, 3 * size, m->sizes.n_embd, m->n_vocab, 1, 2, "output.weight");
}

static void add_attention(struct maker *m, int layer, int norms) {
    add_norm(m, m->sizes.n_embd, 1, "attn_norm", layer);
    add_matrix(m, m->sizes.n_embd, m->sizes.n_heads * m->sizes.head_dim, "attn_q", layer);
    add_matrix(m, m->sizes.n_embd, m->sizes.n_heads_kv * m->sizes.head_dim, "attn_k", layer);
    add_matrix(m, m->sizes.n_embd, m->sizes.n_heads_kv * m->sizes.head_dim, "attn_v", layer);
    add_matrix(m, m->sizes.n_heads * m->sizes.head_dim, m->sizes.n_embd, "attn_output", layer);
    if (norms) {
        add_norm(m, m->sizes.head_dim, 1, "attn_q_norm", layer);
        add_norm(m, m->sizes.head_dim, 1, "attn_k_norm", layer);
    }
}

static void add_feed_forward(struct maker *m, int layer) {
    add_norm(m, m->sizes.n_embd, 1, "ffn_norm", layer);
    add_matrix(m, m->sizes.n_embd, m->sizes.n_ff, "ffn_gate", layer);
    add_matrix(m, m->sizes.n_embd, m->sizes.n_ff, "ffn_up", layer);
    add_matrix(m, m->sizes.n_ff, m->sizes.n_embd, "ffn_down", layer);
}

// Grouped heads, and factors of the rotations' frequencies as in Llama 3.1.
static void make_llama(struct maker *m) {
    set_spm_vocabulary(m);
    set_common(m);
    set_attention(m);
    add_ends(m, 0);
    add(m, 3, 0.5f, m->sizes.head_dim / 2, 1, 1, 1, "rope_freqs.weight");
    for (int layer = 0; layer < m->sizes.n_layers; ++layer) {
        add_attention(m, layer, 0);
        add_feed_forward(m, layer);
    }
}

static void make_qwen3(struct maker *m) {
    set_bpe_vocabulary(m);
    set_common(m);
    set_attention(m);
    add_ends(m, 0);
    for (int layer = 0; layer < m->sizes.n_layers; ++layer) {
        add_attention(m, layer, 1);
        add_feed_forward(m, layer);
    }
}

// Norms before and after, a window, tied embeddings. The norms after make what the layers add
// larger than the embedding, so that a token doesn't simply predict itself.
static void make_gemma3(struct maker *m) {
    set_spm_vocabulary(m);
    set_common(m);
    set_attention(m);
    set_u32(m, "attention.sliding_window", 32);
    add_ends(m, 1);
    for (int layer = 0; layer < m->sizes.n_layers; ++layer) {
        add_attention(m, layer, 1);
        add_norm(m, N_EMBD, 3, "post_attention_norm", layer);
        add_feed_forward(m, layer);
        add_norm(m, N_EMBD, 3, "post_ffw_norm", layer);
    }
}

static void make_qwen3moe(struct maker *m) {
    set_bpe_vocabulary(m);
    set_common(m);
    set_attention(m);
    const int n_embd = m->sizes.n_embd, n_ff = m->sizes.n_ff, n_experts = m->sizes.n_experts;
    set_u32(m, "expert_count", (uint32_t)n_experts);
    set_u32(m, "expert_used_count", (uint32_t)m->sizes.n_experts_used);
    set_u32(m, "expert_feed_forward_length", (uint32_t)n_ff);
    add_ends(m, 0);
    const float of_embd = 1.0f / sqrtf((float)n_embd), of_ff = 1.0f / sqrtf((float)n_ff);
    for (int layer = 0; layer < m->sizes.n_layers; ++layer) {
        add_attention(m, layer, 1);
        add_norm(m, n_embd, 1, "ffn_norm", layer);
        add(m, 0, 2 * of_embd, n_embd, n_experts, 1, 2, "blk.%d.ffn_gate_inp.weight", layer);
        add(m, 0, of_embd, n_embd, n_ff, n_experts, 3, "blk.%d.ffn_gate_exps.weight", layer);
        add(m, 0, of_embd, n_embd, n_ff, n_experts, 3, "blk.%d.ffn_up_exps.weight", layer);
        add(m, 0, of_ff, n_ff, n_embd, n_experts, 3, "blk.%d.ffn_down_exps.weight", layer);
    }
}

static void make_mamba2(struct maker *m) {
    enum { STATE = 64, GROUPS = 1, KERNEL = 4 };
    const int n_embd = m->sizes.n_embd, inner = 2 * n_embd, heads = m->sizes.n_heads;
    const int conv = inner + 2 * GROUPS * STATE;
    set_bpe_vocabulary(m);
    set_common(m);
    set_u32(m, "ssm.inner_size", (uint32_t)inner);
    set_u32(m, "ssm.conv_kernel", KERNEL);
    set_u32(m, "ssm.state_size", STATE);
    set_u32(m, "ssm.time_step_rank", (uint32_t)heads);
    set_u32(m, "ssm.group_count", GROUPS);
    add_ends(m, 0);
    for (int layer = 0; layer < m->sizes.n_layers; ++layer) {
        add_norm(m, n_embd, 1, "attn_norm", layer);
        add_matrix(m, n_embd, inner + conv + heads, "ssm_in", layer);
        add_matrix(m, inner, n_embd, "ssm_out", layer);
        add(m, 0.25f, 0.3f, KERNEL, conv, 1, 2, "blk.%d.ssm_conv1d.weight", layer);
        add(m, 0, 0.1f, conv, 1, 1, 1, "blk.%d.ssm_conv1d.bias", layer);
        add(m, -1, 0.3f, heads, 1, 1, 1, "blk.%d.ssm_dt.bias", layer);
        add(m, -1.5f, 0.3f, 1, heads, 1, 2, "blk.%d.ssm_a", layer); // decays: negative
        add(m, 1, 0.2f, 1, heads, 1, 2, "blk.%d.ssm_d", layer);
        add(m, 1, 0.2f, inner / GROUPS, GROUPS, 1, 2, "blk.%d.ssm_norm.weight", layer);
    }
}

// llama.cpp takes the rank of the first layer's v for that of a, so that the two must be the same.
static void make_rwkv7(struct maker *m) {
    enum { DECAY = 64, RATE = 64, MIX = 64, GATE = 128 };
    const int n_embd = m->sizes.n_embd, n_ff = m->sizes.n_ff, head = m->sizes.head_dim;
    set_bpe_vocabulary(m);
    set_common(m);
    set_u32(m, "attention.head_count", 0);
    set_f32(m, "attention.layer_norm_epsilon", 1e-5f);
    set_u32(m, "wkv.head_size", (uint32_t)head);
    set_u32(m, "attention.decay_lora_rank", DECAY);
    set_u32(m, "attention.iclr_lora_rank", RATE);
    set_u32(m, "attention.value_residual_mix_lora_rank", MIX);
    set_u32(m, "attention.gate_lora_rank", GATE);
    add_ends(m, 0);
    add(m, 0, 0.1f, n_embd, 1, 1, 1, "output_norm.bias");
    add(m, 1, 0.2f, n_embd, 1, 1, 1, "token_embd_norm.weight");
    add(m, 0, 0.1f, n_embd, 1, 1, 1, "token_embd_norm.bias");
    static const struct {
        const char *name;
        float mean, deviation;
    } vectors[] = {
        {"attn_norm.weight", 1, 0.2f},
        {"attn_norm.bias", 0, 0.1f},
        {"attn_norm_2.weight", 1, 0.2f},
        {"attn_norm_2.bias", 0, 0.1f},
        {"time_mix_w0.weight", -3, 1},
        {"time_mix_a0.weight", 0, 0.5f},
        {"time_mix_v0.weight", 0, 0.5f},
        {"time_mix_k_k.weight", 0.8f, 0.1f},
        {"time_mix_k_a.weight", 1, 0.1f},
        {"time_mix_r_k.weight", 0, 0.1f},
        {"time_mix_ln.weight", 1, 0.2f},
        {"time_mix_ln.bias", 0, 0.1f},
        {"channel_mix_lerp_k.weight", 0.5f, 0.2f},
    };
    static const struct {
        const char *name;
        int rank;
    } small_matrices[] = {{"w", DECAY}, {"a", RATE}, {"v", MIX}, {"g", GATE}};
    for (int layer = 0; layer < m->sizes.n_layers; ++layer) {
        for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); ++i)
            add(m, vectors[i].mean, vectors[i].deviation, n_embd, 1, 1, 1, "blk.%d.%s", layer,
                vectors[i].name);
        for (size_t i = 0; i < sizeof(small_matrices) / sizeof(small_matrices[0]); ++i) {
            const int rank = small_matrices[i].rank;
            add(m, 0, 1.0f / sqrtf((float)n_embd), n_embd, rank, 1, 2, "blk.%d.time_mix_%s1.weight",
                layer, small_matrices[i].name);
            add(m, 0, 1.0f / sqrtf((float)rank), rank, n_embd, 1, 2, "blk.%d.time_mix_%s2.weight",
                layer, small_matrices[i].name);
        }
        char name[GGML_MAX_NAME];
        snprintf(name, sizeof(name), "blk.%d.time_mix_lerp_fused.weight", layer);
        add_named(m, 0.5f, 0.2f, (const int64_t[]){n_embd, 1, 1, 6}, 4, name);
        add_matrix(m, n_embd, n_embd, "time_mix_key", layer);
        add_matrix(m, n_embd, n_embd, "time_mix_value", layer);
        add_matrix(m, n_embd, n_embd, "time_mix_receptance", layer);
        add_matrix(m, n_embd, n_embd, "time_mix_output", layer);
        add_matrix(m, n_embd, n_ff, "channel_mix_key", layer);
        add_matrix(m, n_ff, n_embd, "channel_mix_value", layer);
    }
}

static const struct {
    const char *name, *arch;
    void (*make)(struct maker *m);
    const struct sizes *sizes;
    size_t megabytes; // for the tensors
} architectures[] = {
    {"llama", "llama", make_llama, &small, 96},
    {"llama-0.2B", "llama", make_llama, &of_200_million, 800},
    {"qwen3", "qwen3", make_qwen3, &small, 96},
    {"gemma3", "gemma3", make_gemma3, &small, 96},
    {"qwen3moe", "qwen3moe", make_qwen3moe, &small, 96},
    {"qwen3moe-0.3B", "qwen3moe", make_qwen3moe, &with_experts, 1500},
    {"mamba2", "mamba2", make_mamba2, &small, 96},
    {"mamba2-0.1B", "mamba2", make_mamba2, &with_states, 800},
    {"rwkv7-0.2B", "rwkv7", make_rwkv7, &with_states, 1000},
};

int main(int argc, char **argv) {
    for (size_t i = 0; argc >= 3 && i < sizeof(architectures) / sizeof(architectures[0]); ++i) {
        if (strcmp(argv[1], architectures[i].name) != 0) continue;
        struct maker m = {.arch = architectures[i].arch,
                          .sizes = *architectures[i].sizes,
                          .random = argc > 3 ? strtoull(argv[3], NULL, 10) : 1};
        m.file = gguf_init_empty();
        m.ctx = ggml_init((struct ggml_init_params){architectures[i].megabytes << 20, NULL, false});
        if (m.file == NULL || m.ctx == NULL) return 1;
        architectures[i].make(&m);
        const bool written = gguf_write_to_file(m.file, argv[2], false);
        gguf_free(m.file);
        ggml_free(m.ctx);
        if (!written) fprintf(stderr, "make_model: %s: not written\n", argv[2]);
        return written ? 0 : 1;
    }
    fprintf(stderr, "usage: make_model ARCHITECTURE OUT.gguf [SEED]\nArchitectures:");
    for (size_t i = 0; i < sizeof(architectures) / sizeof(architectures[0]); ++i)
        fprintf(stderr, " %s", architectures[i].name);
    fprintf(stderr, "\n");
    return 2;
}
