// SPDX-License-Identifier: MIT
// The tensors of copies: what the partition plans to copy gets tensors, one per run in flight,
// which nodes then read instead of the originals, until the graph is restored.
#include "base/status.h"
#include "sched/sched.h"

// Appends at most `limit` characters of a text; returns the new end. snprintf() would take
// longer than all else here.
static char *append(char *to, const char *end, const char *text, int limit) {
    for (; *text && to < end && limit > 0; --limit) {
        *to++ = *text++;
    }
    return to;
}

// device#tensor#slot
static void name_copy(char *name, const char *device, const char *tensor, int slot) {
    const char digit[] = {(char)('0' + slot), '\0'};
    const char *end = name + GGML_MAX_NAME - 1;
    char *to = append(name, end, device, GGML_MAX_NAME);
    to = append(to, end, "#", 1);
    to = append(to, end, tensor, 40);
    to = append(to, end, "#", 1);
    *append(to, end, digit, 1) = '\0';
}

// A tensor of the frame's pool like another one, for a stream's copy of it. NULL after the error
// was set. In a pipeline it is kept like an input, as the next run writes it while this one
// reads.
static struct ggml_tensor *duplicate(struct ggml_backend_sched *sched,
                                     const struct ggml_tensor *tensor, int32_t backend, int slot) {
    struct ggml_tensor *copy = tensor_pool_take(&sched_frame(sched)->pool);
    if (!copy) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory to copy tensor '%s' to %s",
                  sched->function, tensor->name, sched_stream_label(sched, backend));
        return NULL;
    }
    copy->type = tensor->type;
    memcpy(copy->ne, tensor->ne, sizeof(copy->ne));
    memcpy(copy->nb, tensor->nb, sizeof(copy->nb));
    name_copy(copy->name, sched_stream_label(sched, backend), tensor->name, slot);
    if (sched->pipeline_depth > 1) copy->flags = GGML_TENSOR_FLAG_INPUT | GGML_TENSOR_FLAG_OUTPUT;
    return copy;
}

// With the original in the slot of the current run, that is an output too: its data must stay.
static bool make_copy(struct ggml_backend_sched *sched, int32_t number) {
    const struct sched_copy *copy = &sched->partition.copies[number];
    const int n = sched->pipeline_depth;
    struct ggml_tensor *original = sched->values[copy->value].tensor;
    struct ggml_tensor **tensors = &sched->copy_tensors[(int64_t)number * n];
    for (int slot = 0; slot < n; ++slot) {
        const bool is_original = copy->with_original && slot == sched->cur_copy;
        tensors[slot] = is_original ? original : duplicate(sched, original, copy->backend, slot);
        if (!tensors[slot]) return false;
        if (is_original) original->flags |= GGML_TENSOR_FLAG_INPUT | GGML_TENSOR_FLAG_OUTPUT;
    }
    return true;
}

bool sched_make_copies(struct ggml_backend_sched *sched) {
    const int32_t n = sched->partition.n_copies;
    bool made = sched_grow(&sched->copy_tensors, &sched->copy_tensors_capacity,
                           (int64_t)n * sched->pipeline_depth, sizeof(sched->copy_tensors[0]));
    for (int32_t i = 0; i < n && made; ++i) {
        made = make_copy(sched, i);
    }
    return made;
}

static struct ggml_tensor **rewritten(const struct ggml_backend_sched *sched,
                                      const struct sched_rewrite *rewrite) {
    const struct live_edge *edge = &sched->edges[rewrite->edge];
    return &sched->values[rewrite->node].tensor->src[edge->slot];
}

void sched_read_copies(const struct ggml_backend_sched *sched) {
    for (int32_t i = 0; i < sched->partition.n_rewrites; ++i) {
        const struct sched_rewrite *rewrite = &sched->partition.rewrites[i];
        *rewritten(sched, rewrite) = sched_copy_tensor(sched, rewrite->copy);
    }
}

void sched_read_originals(const struct ggml_backend_sched *sched) {
    for (int32_t i = 0; i < sched->partition.n_rewrites; ++i) {
        const struct sched_rewrite *rewrite = &sched->partition.rewrites[i];
        *rewritten(sched, rewrite) = sched->values[sched->edges[rewrite->edge].value].tensor;
    }
}
