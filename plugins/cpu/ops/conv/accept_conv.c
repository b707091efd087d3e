// SPDX-License-Identifier: MIT
// What the kernels of convolutions compute, and their work memory.
#include "ggml-shape.h"
#include "ops/conv/conv.h"
#include "runtime/kernel_list.h"

// Multiplications, limited: products of extents can exceed an int64_t.
static int64_t product_cost(double a, double b) {
    return a * b < 1e18 ? (int64_t)(a * b) : INT64_MAX;
}

// Windows may reach beyond the padded image, or the padding cut the image off: what lies outside is
// 0. Windows without elements yield 0.
static bool accepts_window(const struct conv *c) {
    for (int d = 0; d < CONV_DIMS; ++d) {
        if (c->stride[d] < 1 || c->dilation[d] < 0 || c->kernel[d] < 0 || c->kernel[d] > INT32_MAX)
            return false;
        const int64_t room =
            c->in[d] + 2 * (int64_t)c->padding[d] - c->dilation[d] * (c->kernel[d] - 1) - 1;
        if (c->out[d] != room / c->stride[d] + 1) return false;
    }
    return true;
}

// --- patches -------------------------------------------------------------------------------------

// A patch is a row of the result; the other dimensions number the windows.
static bool accepts_patches(const struct ggml_tensor *node, const struct conv *c) {
    return accepts_window(c) && node->ne[0] == conv_patch(c) &&
           ggml_nrows(node) == conv_pixels(c) * c->batch && ggml_rows_dense(node);
}

// src0 gives the kernel's extents alone; its elements are not read.
bool cpu_accepts_im2col(const struct ggml_tensor *node) {
    const bool is_2d = node->op_params[6] != 0;
    const struct ggml_tensor *kernel = node->src[0];
    const struct ggml_tensor *image = node->src[1];
    if (kernel->ne[is_2d ? 2 : 1] != image->ne[is_2d ? 2 : 1] || (!is_2d && image->ne[3] != 1)) {
        return false;
    }
    const struct conv c = conv_of_im2col(node);
    return accepts_patches(node, &c);
}

// Channels are a parameter here, as dimension 3 holds channels and batch.
bool cpu_accepts_im2col_3d(const struct ggml_tensor *node) {
    const int64_t channels = node->op_params[9];
    if (channels < 1) return false;
    const struct conv c = conv_of_im2col(node);
    return accepts_patches(node, &c);
}

// A patch per thread where it is converted afterwards.
size_t cpu_work_im2col(const struct ggml_tensor *node, int n_threads) {
    return node->type == GGML_TYPE_F32 ? 0
                                       : (size_t)node->ne[0] * sizeof(float) * (size_t)n_threads;
}

// The result is the image, src0 the gradient of its patches, src1 gives the kernel's extents.
bool cpu_accepts_im2col_back(const struct ggml_tensor *node) {
    const bool is_2d = node->op_params[6] != 0;
    const struct ggml_tensor *grad = node->src[0];
    const int channel = is_2d ? 2 : 1;
    const struct conv c = conv_of_im2col_back(node);
    return accepts_window(&c) && node->src[1]->ne[channel] == node->ne[channel] &&
           (is_2d || (node->ne[3] == 1 && grad->ne[3] == 1)) && grad->ne[0] == conv_patch(&c) &&
           grad->ne[1] == c.out[0] && grad->ne[channel + 1] == c.batch && ggml_rows_dense(node);
}

// All parameters have to agree with the extents, since indices are computed from them.
bool cpu_accepts_col2im_1d(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const int64_t stride = node->op_params[0];
    const int64_t channels = node->op_params[1];
    return stride > 0 && channels > 0 && node->op_params[2] >= 0 && node->type == a->type &&
           node->ne[1] == channels && a->ne[0] % channels == 0 && a->ne[2] == 1 && a->ne[3] == 1 &&
           node->ne[2] == 1 && node->ne[3] == 1 && ggml_rows_dense(node);
}

// --- direct --------------------------------------------------------------------------------------

// The filters' shape has to match the channels; padding, stride and dilation are checked by
// accepts_window().
bool cpu_accepts_conv_2d(const struct ggml_tensor *node) {
    const struct conv c = conv_of_direct(node);
    const struct ggml_tensor *kernel = node->src[0];
    return accepts_window(&c) && kernel->ne[2] == c.channels && kernel->ne[3] == c.channels_out &&
           node->ne[3] == c.batch && node->type == c.image->type && ggml_is_packed(node);
}

// Dimension 3 of each operand holds two of channels, filters and batch, which parameters tell
// apart.
bool cpu_accepts_conv_3d(const struct ggml_tensor *node) {
    const int64_t channels = node->op_params[9];
    if (channels < 1 || node->op_params[11] < 1 || node->src[1]->ne[3] % channels != 0)
        return false;
    const struct conv c = conv_of_direct(node);
    return accepts_window(&c) && node->src[0]->ne[3] == channels * c.channels_out &&
           node->ne[3] == c.channels_out * c.batch && ggml_is_packed(node);
}

// Filters as floats, once, and a thread's panels.
size_t cpu_work_conv(const struct ggml_tensor *node, int n_threads) {
    const struct conv c = conv_of_direct(node);
    return conv_filters_size(node->src[0]) +
           conv_thread_floats(&c, node->type) * sizeof(float) * (size_t)n_threads;
}

// A patch per element of the result.
int64_t cpu_cost_conv(const struct ggml_tensor *node) {
    const struct conv c = conv_of_direct(node);
    return product_cost((double)ggml_nelements(node), (double)conv_patch(&c));
}

// One filter per channel. The result may be stored channel by channel or, as whisper.cpp does, with
// channels innermost.
bool cpu_accepts_conv_2d_dw(const struct ggml_tensor *node) {
    const struct conv c = conv_of_2d(node, 2, 0);
    const struct ggml_tensor *kernel = node->src[0];
    return accepts_window(&c) && kernel->ne[2] == 1 && kernel->ne[3] == c.channels &&
           node->ne[2] == c.channels && node->ne[3] == c.batch &&
           (ggml_rows_dense(node) || node->nb[2] == sizeof(float));
}

// Filters with channels innermost: nothing where the result's rows are dense.
size_t cpu_work_conv_2d_dw(const struct ggml_tensor *node, int n_threads) {
    (void)n_threads;
    return ggml_rows_dense(node) ? 0 : (size_t)ggml_nelements(node->src[0]) * sizeof(float);
}

int64_t cpu_cost_conv_2d_dw(const struct ggml_tensor *node) {
    const struct ggml_tensor *kernel = node->src[0];
    return product_cost((double)ggml_nelements(node),
                        (double)kernel->ne[0] * (double)kernel->ne[1]);
}

// --- transposed ----------------------------------------------------------------------------------

// Whether the result's extents follow from those of image and kernel.
static bool accepts_transposed(const struct conv_transposed *c) {
    if (c->stride < 1) return false;
    for (int d = 0; d < 2; ++d) {
        const bool empty = c->in[d] == 0 && c->out[d] == 0;
        if (c->size[d] < 1 || c->in[d] > INT32_MAX) return false;
        if (!empty && c->out[d] != (c->in[d] - 1) * c->stride + c->size[d]) return false;
    }
    return c->out_nb[0] == sizeof(float);
}

// Padding 0 and dilation 1, the only ones that ggml defines for this operation.
bool cpu_accepts_conv_transpose_1d(const struct ggml_tensor *node) {
    const struct conv_transposed c = conv_transposed_of(node);
    const struct ggml_tensor *kernel = node->src[0];
    return node->op_params[1] == 0 && node->op_params[2] == 1 && accepts_transposed(&c) &&
           kernel->ne[1] == c.channels_out && kernel->ne[2] == c.channels && kernel->ne[3] == 1 &&
           node->ne[2] == c.batch && node->src[1]->ne[3] == 1 && node->ne[3] == 1;
}

// As the one-dimensional case, without its restrictions on parameters.
bool cpu_accepts_conv_transpose_2d(const struct ggml_tensor *node) {
    const struct conv_transposed c = conv_transposed_of(node);
    const struct ggml_tensor *kernel = node->src[0];
    return accepts_transposed(&c) && kernel->ne[2] == c.channels_out &&
           kernel->ne[3] == c.channels && node->ne[3] == c.batch;
}

// Filters and pixels as floats, and a block of products per thread.
size_t cpu_work_conv_transpose(const struct ggml_tensor *node, int n_threads) {
    const size_t packed = (size_t)(ggml_nelements(node->src[0]) + ggml_nelements(node->src[1]));
    return (packed + (size_t)n_threads * CONV_TRANSPOSED_FLOATS) * sizeof(float);
}

// Each pixel meets each filter element.
int64_t cpu_cost_conv_transpose(const struct ggml_tensor *node) {
    const struct conv_transposed c = conv_transposed_of(node);
    return product_cost((double)ggml_nelements(c.kernel),
                        (double)c.in[0] * (double)c.in[1] * (double)c.batch);
}
