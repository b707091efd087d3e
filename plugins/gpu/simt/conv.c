// SPDX-License-Identifier: MIT
// Convolutions and their patches: kernels/conv.cpp.
#include "simt/rows.h"

enum { DIMS = 3 };

// Over up to three dimensions; those that an operation does not have have extent 1.
struct window {
    int n_dims;
    int64_t kernel[DIMS], in[DIMS], out[DIMS];
    int32_t stride[DIMS], padding[DIMS], dilation[DIMS];
    int64_t channels, images, filters;
    size_t nb_channel, nb_image;
};

// Extents and parameters along n dimensions; `windows` has theirs from dimension `first` on.
static struct window window_of(const struct ggml_tensor *node, int n,
                               const struct ggml_tensor *kernel, const struct ggml_tensor *image,
                               const struct ggml_tensor *windows, int first) {
    struct window w = {.n_dims = n,
                       .kernel = {1, 1, 1},
                       .in = {1, 1, 1},
                       .out = {1, 1, 1},
                       .stride = {1, 1, 1},
                       .dilation = {1, 1, 1}};
    const int params = n == DIMS ? 3 : 2; // of a kind
    for (int d = 0; d < n; ++d) {
        w.kernel[d] = kernel->ne[d];
        w.in[d] = image->ne[d];
        w.out[d] = windows->ne[first + d];
        w.stride[d] = node->op_params[d];
        w.padding[d] = node->op_params[params + d];
        w.dilation[d] = node->op_params[2 * params + d];
    }
    w.channels = image->ne[n];
    w.nb_channel = image->nb[n];
    if (n == DIMS) return w;
    w.images = image->ne[n + 1];
    w.nb_image = image->nb[n + 1];
    return w;
}

// Channels and images share dimension 3; a parameter, which is positive, says how many channels
// there are.
static struct window window_of_3d(const struct ggml_tensor *node, int first) {
    const struct ggml_tensor *image = node->src[1];
    struct window w = window_of(node, 3, node->src[0], image, node, first);
    w.channels = node->op_params[9];
    w.images = image->ne[3] / w.channels;
    w.nb_image = image->nb[3] * (size_t)w.channels;
    return w;
}

static int64_t patch_size(const struct window *w) {
    return w->kernel[0] * w->kernel[1] * w->kernel[2] * w->channels;
}

static int64_t window_count(const struct window *w) {
    return w->out[0] * w->out[1] * w->out[2];
}

// A kernel may be larger than the padded image, or the padding cut the image off: pixels outside
// are 0.
static bool has_windows(const struct window *w) {
    for (int d = 0; d < DIMS; ++d) {
        if (w->stride[d] < 1 || w->dilation[d] < 0 || w->kernel[d] < 0 || w->kernel[d] > INT32_MAX)
            return false;
        // Pixels from the first to the last that a window covers.
        const int64_t reach = w->dilation[d] * (w->kernel[d] - 1) + 1;
        const int64_t room = w->in[d] + 2 * (int64_t)w->padding[d] - reach;
        if (w->out[d] != room / w->stride[d] + 1) return false;
    }
    return true;
}

// As conv.cpp reads them.
static void launch_windows(struct simt_work *l, const struct ggml_tensor *node,
                           const struct window *w) {
    gpu_number *numbers = l->args.numbers;
    numbers[0] = w->n_dims;
    for (int d = 0; d < DIMS; ++d)
        numbers[1 + d] = w->out[d];
    numbers[4] = w->channels;
    numbers[5] = (gpu_number)w->nb_channel;
    numbers[6] = (gpu_number)w->nb_image;
    numbers[7] = w->filters;
    simt_launch_elements(l, node);
}

// --- patches -------------------------------------------------------------------------------------

static struct window window_of_im2col(const struct ggml_tensor *node) {
    if (node->op == GGML_OP_IM2COL)
        return window_of(node, node->op_params[6] ? 2 : 1, node->src[0], node->src[1], node, 1);
    struct window w = window_of_3d(node, 1);
    w.out[2] = w.images > 0 ? node->ne[3] / w.images : 0;
    return w;
}

// The first source has the kernel's extents, and is not read.
bool simt_accepts_im2col(const struct ggml_tensor *node) {
    const int channel = node->op_params[6] ? 2 : 1;
    const struct ggml_tensor *image = node->src[1];
    if (node->op == GGML_OP_IM2COL
            ? node->src[0]->ne[channel] != image->ne[channel] || (channel == 1 && image->ne[3] != 1)
            : node->op_params[9] < 1)
        return false;
    const struct window w = window_of_im2col(node);
    if (w.images == 0) return ggml_nelements(node) == 0; // fewer channels than an image has
    return has_windows(&w) && node->ne[0] == patch_size(&w) &&
           ggml_nrows(node) == window_count(&w) * w.images;
}

void simt_launch_im2col(struct simt_work *l, const struct ggml_tensor *node) {
    const struct window w = window_of_im2col(node);
    launch_windows(l, node, &w);
}

// The node is the image, the first source the gradient of its patches, the second has the kernel's
// extents.
static struct window window_of_im2col_back(const struct ggml_tensor *node) {
    return window_of(node, node->op_params[6] ? 2 : 1, node->src[1], node, node->src[0], 1);
}

bool simt_accepts_im2col_back(const struct ggml_tensor *node) {
    const int channel = node->op_params[6] ? 2 : 1;
    const struct ggml_tensor *grad = node->src[0];
    const struct window w = window_of_im2col_back(node);
    return has_windows(&w) && node->src[1]->ne[channel] == node->ne[channel] &&
           (channel == 2 || (node->ne[3] == 1 && grad->ne[3] == 1)) &&
           grad->ne[0] == patch_size(&w) && grad->ne[channel + 1] == w.images;
}

void simt_launch_im2col_back(struct simt_work *l, const struct ggml_tensor *node) {
    const struct window w = window_of_im2col_back(node);
    launch_windows(l, node, &w);
}

bool simt_accepts_col2im_1d(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const int64_t channels = node->op_params[1];
    return node->op_params[0] > 0 && channels > 0 && node->op_params[2] >= 0 &&
           node->type == a->type && a->ne[0] % channels == 0 && a->ne[2] == 1 && a->ne[3] == 1 &&
           ggml_has_shape(node, node->ne[0], channels, 1, 1);
}

// --- direct --------------------------------------------------------------------------------------

static struct window window_of_direct(const struct ggml_tensor *node) {
    const bool is_3d = node->op == GGML_OP_CONV_3D;
    struct window w =
        is_3d ? window_of_3d(node, 0) : window_of(node, 2, node->src[0], node->src[1], node, 0);
    w.filters = is_3d ? node->op_params[11] : node->ne[2];
    return w;
}

bool simt_accepts_conv_2d(const struct ggml_tensor *node) {
    const struct window w = window_of_direct(node);
    const struct ggml_tensor *kernel = node->src[0];
    return has_windows(&w) && kernel->ne[2] == w.channels && kernel->ne[3] == w.filters &&
           node->ne[3] == w.images && node->type == node->src[1]->type && ggml_is_packed(node);
}

// Dimension 3 of each operand has two of channels, filters and images.
bool simt_accepts_conv_3d(const struct ggml_tensor *node) {
    const int64_t channels = node->op_params[9], filters = node->op_params[11];
    if (channels < 1 || filters < 1 || node->src[1]->ne[3] % channels != 0) return false;
    const struct window w = window_of_direct(node);
    return has_windows(&w) && node->src[0]->ne[3] == channels * filters &&
           node->ne[3] == filters * w.images && ggml_is_packed(node);
}

bool simt_accepts_conv_depthwise(const struct ggml_tensor *node) {
    const struct window w = window_of_direct(node);
    const struct ggml_tensor *kernel = node->src[0];
    return has_windows(&w) && kernel->ne[2] == 1 && kernel->ne[3] == w.channels &&
           node->ne[2] == w.channels && node->ne[3] == w.images;
}

void simt_launch_conv(struct simt_work *l, const struct ggml_tensor *node) {
    const struct window w = window_of_direct(node);
    launch_windows(l, node, &w);
}

// --- transposed ----------------------------------------------------------------------------------

// Over n dimensions, behind which come channels and images.
static bool accepts_transposed(const struct ggml_tensor *node, int n) {
    const struct ggml_tensor *kernel = node->src[0], *image = node->src[1];
    const int64_t stride = node->op_params[0];
    if (stride < 1) return false;
    for (int d = 0; d < n; ++d) {
        const bool empty = image->ne[d] == 0 && node->ne[d] == 0;
        if (kernel->ne[d] < 1 ||
            (!empty && node->ne[d] != (image->ne[d] - 1) * stride + kernel->ne[d]))
            return false;
    }
    return kernel->ne[n] == node->ne[n] && kernel->ne[n + 1] == image->ne[n] &&
           node->ne[n + 1] == image->ne[n + 1];
}

// Without padding and dilation, as ggml defines it.
bool simt_accepts_conv_transpose_1d(const struct ggml_tensor *node) {
    return node->op_params[1] == 0 && node->op_params[2] == 1 && node->src[0]->ne[3] == 1 &&
           node->src[1]->ne[3] == 1 && node->ne[3] == 1 && accepts_transposed(node, 1);
}

bool simt_accepts_conv_transpose_2d(const struct ggml_tensor *node) {
    return accepts_transposed(node, 2);
}

void simt_launch_conv_transpose(struct simt_work *l, const struct ggml_tensor *node) {
    l->args.numbers[0] = node->op == GGML_OP_CONV_TRANSPOSE_1D;
    simt_launch_elements(l, node);
}
