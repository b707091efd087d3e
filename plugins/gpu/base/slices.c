// SPDX-License-Identifier: MIT
// An array from which the reader takes the front: graphs add a few hundred slices between two
// reads.
#include "gpu/base/slices.h"

#include <string.h>
#include <time.h>

#include "ggml-plugin.h"

uint64_t gpu_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now); // of the performance counter on Windows
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static size_t bytes_of(uint64_t n) {
    return (size_t)n * sizeof(struct ggml_profile_slice);
}

enum ggml_host_status gpu_slices_open(struct gpu_slices *slices, uint64_t capacity) {
    *slices = (struct gpu_slices){0};
    if (capacity <= SIZE_MAX / 2 / sizeof(slices->all[0]))
        slices->all = ggml_aligned_malloc(bytes_of(capacity));
    if (!slices->all) return ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for times of nodes");
    slices->capacity = capacity;
    return GGML_HOST_OK;
}

void gpu_slices_close(struct gpu_slices *slices) {
    ggml_aligned_free(slices->all, bytes_of(slices->capacity));
    *slices = (struct gpu_slices){0};
}

void gpu_slices_add(struct gpu_slices *slices, const struct ggml_profile_slice *slice) {
    if (slices->n < slices->capacity)
        slices->all[slices->n++] = *slice;
    else
        ++slices->lost;
}

// What stays moves to the front: linear in what stays.
uint64_t gpu_slices_read(struct gpu_slices *slices, struct ggml_profile_slice *out, uint64_t max,
                         uint64_t *out_lost) {
    const uint64_t n = max < slices->n ? max : slices->n;
    if (n > 0) {
        memcpy(out, slices->all, bytes_of(n));
        slices->n -= n;
        memmove(slices->all, slices->all + n, bytes_of(slices->n));
    }
    *out_lost = slices->lost;
    slices->lost = 0;
    return n;
}
