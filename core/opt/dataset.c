// SPDX-License-Identifier: MIT
// Data sets in host memory, shuffled and read in shards.
#include "base/mem.h"
#include "base/status.h"
#include "ggml-alloc.h"
#include "ggml-impl.h"
#include "opt/opt.h"

struct ggml_opt_dataset {
    struct ggml_context *ctx;
    ggml_backend_buffer_t buffer;
    struct ggml_tensor *data, *labels;
    int64_t n_data;
    int64_t shard;    // points in each
    int64_t n_shards; // whole ones: the points behind them are in no batch
    size_t shard_bytes, shard_label_bytes;
    int64_t *order; // shard that stands at each place
};

// Data and labels lie in one CPU buffer. False after the error was set.
static bool make_tensors(struct ggml_opt_dataset *dataset, enum ggml_type type_data,
                         enum ggml_type type_label, int64_t ne_datapoint, int64_t ne_label) {
    const struct ggml_init_params params = {.mem_size = 2 * ggml_tensor_overhead(),
                                            .no_alloc = true};
    dataset->ctx = ggml_init(params);
    if (!dataset->ctx) return false;
    dataset->data = ggml_new_tensor_2d(dataset->ctx, type_data, ne_datapoint, dataset->n_data);
    if (ggml_tensor_is_error(dataset->data)) return false;
    if (ne_label > 0) {
        dataset->labels = ggml_new_tensor_2d(dataset->ctx, type_label, ne_label, dataset->n_data);
        if (ggml_tensor_is_error(dataset->labels)) return false;
    }
    dataset->buffer =
        ggml_backend_alloc_ctx_tensors_from_buft(dataset->ctx, ggml_backend_cpu_buffer_type());
    return dataset->buffer != NULL;
}

// More than there are if no shard is whole.
static size_t shard_bytes(const struct ggml_opt_dataset *dataset,
                          const struct ggml_tensor *tensor) {
    return dataset->n_shards > 0 ? (size_t)dataset->shard * tensor->nb[1] : SIZE_MAX;
}

// Shards are the unit of shuffling. Points beyond the last whole shard are never drawn.
ggml_opt_dataset_t ggml_opt_dataset_init(enum ggml_type type_data, enum ggml_type type_label,
                                         int64_t ne_datapoint, int64_t ne_label, int64_t ndata,
                                         int64_t ndata_shard) {
    if (ne_datapoint < 1 || ne_label < 0 || ndata < 1 || ndata_shard < 1) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                  "ggml_opt_dataset_init: %lld points of %lld values and %lld labels in shards of "
                  "%lld; extents must be positive",
                  (long long)ndata, (long long)ne_datapoint, (long long)ne_label,
                  (long long)ndata_shard);
        return NULL;
    }
    struct ggml_opt_dataset *dataset = ggml_mem_calloc(1, sizeof(*dataset));
    if (!dataset) goto fail;
    dataset->n_data = ndata;
    dataset->shard = ndata_shard;
    dataset->n_shards = ndata / ndata_shard;
    dataset->order = ggml_mem_calloc((size_t)dataset->n_shards + 1, sizeof(dataset->order[0]));
    if (!dataset->order) goto fail;
    if (!make_tensors(dataset, type_data, type_label, ne_datapoint, ne_label)) {
        ggml_opt_dataset_free(dataset);
        return NULL;
    }
    dataset->shard_bytes = shard_bytes(dataset, dataset->data);
    if (dataset->labels) dataset->shard_label_bytes = shard_bytes(dataset, dataset->labels);
    for (int64_t i = 0; i < dataset->n_shards; ++i)
        dataset->order[i] = i;
    return dataset;
fail:
    ggml_fail(GGML_HOST_OUT_OF_MEMORY, "ggml_opt_dataset_init: no memory for %lld points",
              (long long)ndata);
    ggml_opt_dataset_free(dataset);
    return NULL;
}

void ggml_opt_dataset_free(ggml_opt_dataset_t dataset) {
    if (!dataset) return;
    ggml_backend_buffer_free(dataset->buffer);
    ggml_free(dataset->ctx);
    ggml_mem_free(dataset->order);
    ggml_mem_free(dataset);
}

int64_t ggml_opt_dataset_ndata(ggml_opt_dataset_t dataset) {
    return dataset ? dataset->n_data : 0;
}

struct ggml_tensor *ggml_opt_dataset_data(ggml_opt_dataset_t dataset) {
    return dataset ? dataset->data : NULL;
}

struct ggml_tensor *ggml_opt_dataset_labels(ggml_opt_dataset_t dataset) {
    return dataset ? dataset->labels : NULL;
}

// --- shuffling -----------------------------------------------------------------------------------

// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
static uint64_t next_random(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

// Below n, every value equally likely.
static uint64_t random_below(uint64_t *state, uint64_t n) {
    const uint64_t limit = UINT64_MAX - UINT64_MAX % n;
    uint64_t value;
    do {
        value = next_random(state);
    } while (value >= limit);
    return value % n;
}

// Fisher-Yates over the first n shards, so that the validation part behind them stays out of
// training. Same seed, same order: runs can be repeated.
void ggml_opt_dataset_shuffle(ggml_opt_context_t opt_ctx, ggml_opt_dataset_t dataset,
                              int64_t idata) {
    if (!opt_ctx || !dataset || idata > dataset->n_data) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                  "ggml_opt_dataset_shuffle: no context or data set, or more than its points");
        return;
    }
    const int64_t shard = dataset->shard;
    if (idata >= 0 && idata % shard != 0) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                  "ggml_opt_dataset_shuffle: %lld points are not whole shards of %lld",
                  (long long)idata, (long long)shard);
        return;
    }
    const int64_t n = idata < 0 ? dataset->n_shards : idata / shard;
    for (int64_t i = n - 1; i > 0; --i) {
        const int64_t j = (int64_t)random_below(&opt_ctx->random, (uint64_t)i + 1);
        const int64_t moved = dataset->order[i];
        dataset->order[i] = dataset->order[j];
        dataset->order[j] = moved;
    }
}

// --- batches -------------------------------------------------------------------------------------

// Shards of batch ibatch, given the bytes of a batch; 0 with a message if there is no such batch.
static int64_t shards_of_batch(const struct ggml_opt_dataset *dataset, size_t bytes,
                               int64_t ibatch) {
    const int64_t n = (int64_t)(bytes / dataset->shard_bytes);
    if (n < 1 || bytes % dataset->shard_bytes != 0 || ibatch < 0 ||
        ibatch >= dataset->n_shards / n) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                  "ggml_opt_dataset_get_batch: batch %lld of %zu bytes is not whole shards of %zu "
                  "bytes within the data set",
                  (long long)ibatch, bytes, dataset->shard_bytes);
        return 0;
    }
    return n;
}

// Whether a batch's tensor takes `bytes` as they lie in the data set.
static bool fits(const struct ggml_tensor *batch, const struct ggml_tensor *all, size_t bytes) {
    return batch->type == all->type && ggml_is_contiguous(batch) && ggml_nbytes(batch) == bytes;
}

// The shard that shuffling has put at a place.
static const char *shard_at(const struct ggml_opt_dataset *dataset, const struct ggml_tensor *t,
                            size_t bytes, int64_t place) {
    return (const char *)t->data + (size_t)dataset->order[place] * bytes;
}

// Copies shards, not points: shuffling moves whole shards. The batch may be in a device's
// memory. False after the error was set.
bool opt_get_batch(ggml_opt_dataset_t dataset, struct ggml_tensor *data, struct ggml_tensor *labels,
                   int64_t ibatch) {
    const int64_t n = shards_of_batch(dataset, ggml_nbytes(data), ibatch);
    if (n == 0) return false;
    const size_t label_bytes = dataset->shard_label_bytes;
    if (!fits(data, dataset->data, (size_t)n * dataset->shard_bytes) ||
        (labels && (!dataset->labels || !fits(labels, dataset->labels, (size_t)n * label_bytes)))) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                  "ggml_opt_dataset_get_batch: the tensors must be contiguous, of the data set's "
                  "types, and hold equally many points");
        return false;
    }
    for (int64_t i = 0; i < n; ++i) {
        const int64_t place = ibatch * n + i;
        const size_t bytes = dataset->shard_bytes;
        ggml_backend_tensor_set(data, shard_at(dataset, dataset->data, bytes, place),
                                (size_t)i * bytes, bytes);
        if (!labels) continue;
        ggml_backend_tensor_set(labels, shard_at(dataset, dataset->labels, label_bytes, place),
                                (size_t)i * label_bytes, label_bytes);
    }
    return true;
}

void ggml_opt_dataset_get_batch(ggml_opt_dataset_t dataset, struct ggml_tensor *data_batch,
                                struct ggml_tensor *labels_batch, int64_t ibatch) {
    if (!dataset || !data_batch) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                  "ggml_opt_dataset_get_batch: the data set or tensor is NULL");
        return;
    }
    opt_get_batch(dataset, data_batch, labels_batch, ibatch);
}

// The same into host memory of the caller, without a tensor.
void ggml_opt_dataset_get_batch_host(ggml_opt_dataset_t dataset, void *data_batch,
                                     size_t nb_data_batch, void *labels_batch, int64_t ibatch) {
    if (!dataset || !data_batch || (labels_batch && !dataset->labels)) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                  "ggml_opt_dataset_get_batch_host: no data set or memory, or it has no labels");
        return;
    }
    const int64_t n = shards_of_batch(dataset, nb_data_batch, ibatch);
    const size_t bytes = dataset->shard_bytes;
    const size_t label_bytes = dataset->shard_label_bytes;
    for (int64_t i = 0; i < n; ++i) {
        const int64_t place = ibatch * n + i;
        memcpy((char *)data_batch + (size_t)i * bytes,
               shard_at(dataset, dataset->data, bytes, place), bytes);
        if (!labels_batch) continue;
        memcpy((char *)labels_batch + (size_t)i * label_bytes,
               shard_at(dataset, dataset->labels, label_bytes, place), label_bytes);
    }
}
