// SPDX-License-Identifier: MIT
// conv_2d and conv_3d: blocks of patches times all filters, as F32. The products of a block of
// neighbouring pixels with a filter are neighbours in the result.
#include "gemm/gemm.h"
#include "ops/conv/filters.h"
#include "ops/conv/patch_panels.h"

struct direct {
    const struct ggml_tensor *dst;
    struct conv conv;
    const float *filters;
    int64_t patch, pixels;
    float *block;                     // this thread's patches
    int64_t block_first, block_image; // what it holds
    float *results;                   // this thread's; NULL: in place, for F32
    float *packed;                    // this thread's, for packed products; NULL: others
    int block_size;
};

// Copies the patches of n output pixels from `first` on into the thread's block, unless they are
// there from the previous group of channels.
static void load_block(struct direct *d, int64_t image, int64_t first, int64_t n) {
    if (d->block_image == image && d->block_first == first) return;
    const char *data = (const char *)d->conv.image->data + (size_t)image * d->conv.nb_batch;
    for (int64_t i = 0; i < n && d->packed; i += GEMM_PANEL)
        conv_panel(&d->conv, data, first + i, (int)MIN(n - i, GEMM_PANEL), d->block + i * d->patch);
    for (int64_t i = 0; i < n && !d->packed; ++i)
        conv_patch_at(&d->conv, image * d->pixels + first + i, d->block + i * d->patch);
    d->block_image = image;
    d->block_first = first;
}

// Multiplies the block's patches with n filters: a matrix product, as im2col does, but with only
// one block of patches in memory. Results of types other than F32 go through a buffer.
static void multiply(const struct direct *d, int64_t channel, int64_t n, int64_t n_patches) {
    struct gemm_column columns[PACKED_COLUMNS];
    // The result has pixels innermost, then channels, then images.
    const int64_t first =
        (d->block_image * d->conv.channels_out + channel) * d->pixels + d->block_first;
    float *y = d->results ? d->results : (float *)d->dst->data + first;
    const int64_t stride = d->results ? d->block_size : d->pixels;
    for (int64_t c = 0; c < n; ++c)
        columns[c] = (struct gemm_column){d->filters + (channel + c) * d->patch, y + c * stride};
    if (d->packed) {
        CPU_FN(cpu_gemm_panels)(d->block, d->patch, n_patches, columns, n, d->packed);
    } else {
        const struct gemm_rows rows = {(const char *)d->block, (size_t)d->patch * sizeof(float),
                                       GGML_TYPE_F32, d->patch, false};
        CPU_FN(cpu_gemm)(&rows, 0, (int)n_patches, columns, n, NULL);
    }
    for (int64_t c = 0; c < n && d->results; ++c)
        cpu_store(d->dst->data, d->dst->type, first + c * d->pixels, columns[c].y, n_patches);
}

// The filters are packed by all threads together where their layout doesn't suit the product. The
// work is cut into units of a block of pixels and a group of channels; consecutive units share the
// block, so that it is loaded once.
enum ggml_status CPU_FN(cpu_conv)(const struct cpu_task *task) {
    struct direct d = {.dst = task->dst, .conv = conv_of_direct(task->dst), .block_image = -1};
    const struct ggml_tensor *kernel = task->dst->src[0];
    d.patch = conv_patch(&d.conv);
    d.pixels = conv_pixels(&d.conv);
    d.filters = conv_filters_direct(kernel) ? kernel->data : task->work;
    // All filters have to be packed before any thread multiplies.
    if (!conv_filters_direct(kernel)) {
        conv_pack_filters(task, kernel, task->work);
        cpu_team_barrier(task->team, task->ith);
    }
    const int block = d.block_size = conv_block(&d.conv);
    d.block = (float *)(void *)((char *)task->work + conv_filters_size(kernel)) +
              (size_t)task->ith * conv_thread_floats(&d.conv, task->dst->type);
    float *rest = d.block + block * d.patch;
    int64_t width = MAX(conv_width(&d.conv), 1);
    if (task->dst->type != GGML_TYPE_F32) {
        d.results = rest;
        rest += block * width;
    }
    if (conv_packs(&d.conv)) d.packed = rest;
    const int64_t blocks = d.conv.batch * ((d.pixels + block - 1) / block);
    while (width >= 64 && blocks * (d.conv.channels_out / width) < 4 * (int64_t)task->nth)
        width = width / 2;
    const int64_t groups = (d.conv.channels_out + width - 1) / width;
    int64_t begin, end;
    cpu_task_range(task, blocks * groups, &begin, &end);
    for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t in_image = blocks / d.conv.batch, channel = unit % groups * width;
        const int64_t first = unit / groups % in_image * block;
        const int64_t n = MIN(d.pixels - first, block);
        load_block(&d, unit / groups / in_image, first, n);
        multiply(&d, channel, MIN(d.conv.channels_out - channel, width), n);
    }
    return GGML_STATUS_SUCCESS;
}
