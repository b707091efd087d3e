// SPDX-License-Identifier: MIT
// Tensors and views in a context: shape checks, strides, memory.
#include "base/status.h"
#include "base/thread_guard.h"
#include "tensor/context.h"
#include "tensor/error_tensor.h"
#include "tensor/name.h"
#include "tensor/tensor_impl.h"

// Sums of sizes that stay below this can be padded and added to an address without wrapping.
#define LARGEST_SIZE (SIZE_MAX / 2)

// A tensor before it is made, complete and checked.
struct shape {
    enum ggml_type type;
    int64_t ne[GGML_MAX_DIMS];
    size_t nb[GGML_MAX_DIMS];
    size_t bytes;             // from the first to past the last that it reaches
    struct ggml_tensor *root; // owner of the memory, or NULL
    size_t offset;            // in there
};

// Products beyond LARGEST_SIZE count as overflow.
static bool multiply(size_t a, size_t b, size_t *out_product) {
    *out_product = 0;
    if (a > 0 && b > LARGEST_SIZE / a) return false;
    *out_product = a * b;
    return true;
}

// Checks type, number of dimensions, extents, and whole blocks; records what is wrong.
static bool shape_is_possible(enum ggml_type type, int n_dims, const int64_t *ne) {
    const char *name = ggml_type_name(type);
    const int64_t block = ggml_blck_size(type);
    if (block == 0 || n_dims < 1 || n_dims > GGML_MAX_DIMS || !ne) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "new tensor: type %d (%s) with %d dimensions",
                  (int)type, name, n_dims);
        return false;
    }
    size_t n = 1;
    bool fits = true;
    for (int i = 0; i < n_dims && fits; ++i) {
        fits = ne[i] >= 0 && (uint64_t)ne[i] <= LARGEST_SIZE &&
               multiply(n, ne[i] > 0 ? (size_t)ne[i] : 1, &n);
    }
    if (!fits) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "new tensor: %s extents are negative or too large",
                  name);
    } else if (ne[0] % block != 0) {
        fits = false;
        ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                  "new tensor: rows of %lld elements are not whole %s blocks of %lld",
                  (long long)ne[0], name, (long long)block);
    }
    return fits;
}

// Sets strides: those of dimensions 1 .. n_given-1 from `given`, the others packed on top; and the
// bytes that they span. False after the error was set.
static bool fill_strides(struct shape *shape, const size_t *given, int n_given) {
    const int64_t *ne = shape->ne;
    const size_t row_blocks = (size_t)(ne[0] / ggml_blck_size(shape->type));
    bool fits = true;
    size_t bytes;
    shape->nb[0] = ggml_type_size(shape->type);
    fits = multiply(shape->nb[0], row_blocks, &bytes);
    for (int i = 1; i < GGML_MAX_DIMS && fits; ++i) {
        const size_t below = i == 1 ? row_blocks : (size_t)ne[i - 1];
        size_t reach;
        if (i < n_given) {
            shape->nb[i] = given[i];
        } else {
            fits = multiply(shape->nb[i - 1], below, &shape->nb[i]);
        }
        const size_t steps = ne[i] > 0 ? (size_t)ne[i] - 1 : 0;
        fits = fits && multiply(shape->nb[i], steps, &reach) && reach <= LARGEST_SIZE - bytes;
        if (fits) bytes += reach;
    }
    if (!fits) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "new tensor: more bytes than can be addressed");
        return false;
    }
    const bool empty = ne[0] == 0 || ne[1] == 0 || ne[2] == 0 || ne[3] == 0;
    shape->bytes = empty ? 0 : bytes;
    return true;
}

// Strides of a packed tensor with small extents, where nothing can overflow.
static void pack(struct shape *shape, const struct ggml_type_traits *traits) {
    const int64_t block = traits->blck_size;
    shape->nb[0] = traits->type_size;
    shape->nb[1] = shape->nb[0] * (size_t)(block == 1 ? shape->ne[0] : shape->ne[0] / block);
    shape->nb[2] = shape->nb[1] * (size_t)shape->ne[1];
    shape->nb[3] = shape->nb[2] * (size_t)shape->ne[2];
    shape->bytes = shape->nb[3] * (size_t)shape->ne[3];
}

static void lie_in(struct shape *shape, struct ggml_tensor *root, size_t offset) {
    shape->root = root;
    shape->offset = offset;
}

// Bytes of the elements side by side; extents are checked already.
static size_t packed_bytes(const struct shape *shape) {
    const struct ggml_type_traits *traits = ggml_get_type_traits(shape->type);
    size_t bytes = traits->type_size * (size_t)(shape->ne[0] / traits->blck_size);
    for (int i = 1; i < GGML_MAX_DIMS; ++i) {
        if (!multiply(bytes, (size_t)shape->ne[i], &bytes)) return SIZE_MAX;
    }
    return bytes;
}

// Attaches a view to its root. As in ggml it may reach beyond the end by its strides as long as its
// elements would fit packed, since views of it may be narrower; it is checked again before it is
// computed with.
static bool attach_view(struct shape *shape, struct ggml_tensor *view_src, size_t offset) {
    // One step is enough: every view made here refers to the owner, not to another view.
    struct ggml_tensor *root = view_src->view_src ? view_src->view_src : view_src;
    const size_t packed = packed_bytes(shape);
    const size_t room = ggml_nbytes(root), bytes = shape->bytes < packed ? shape->bytes : packed;
    const bool wraps =
        offset > SIZE_MAX / 2 || view_src->view_offs > SIZE_MAX / 2 - offset; // of pointers
    const size_t total = wraps ? SIZE_MAX : offset + view_src->view_offs;
    if (wraps || (bytes > 0 && (bytes > room || total > room - bytes))) {
        ggml_fail(GGML_HOST_OUT_OF_RANGE,
                  "view: %zu bytes at offset %zu do not lie inside '%s' (%zu bytes)", bytes, total,
                  root->name, room);
        return false;
    }
    lie_in(shape, root, total);
    return true;
}

// Makes the tensor in the context, with memory behind it unless the context allocates none or it is
// a view.
static struct ggml_tensor *new_tensor(struct ggml_context *ctx, const struct shape *shape) {
    const bool with_data = ctx && !ctx->no_alloc && !shape->root;
    const size_t size = sizeof(struct ggml_tensor) + (with_data ? shape->bytes : 0);
    struct ggml_tensor *tensor =
        ggml_context_take(ctx, GGML_OBJECT_TYPE_TENSOR, size, "new tensor");
    if (!tensor) return ggml_last_error_tensor(ctx);
    memset(tensor, 0, sizeof(*tensor));
    tensor->type = shape->type;
    memcpy(tensor->ne, shape->ne, sizeof(tensor->ne));
    memcpy(tensor->nb, shape->nb, sizeof(tensor->nb));
    tensor->view_src = shape->root;
    tensor->view_offs = shape->offset;
    if (with_data) {
        tensor->data = tensor + 1;
    } else if (shape->root && shape->root->data) {
        tensor->data = (void *)((uintptr_t)shape->root->data + shape->offset);
    }
    return tensor;
}

// The quick way for small packed shapes is nearly all calls; the other one finds out what is wrong,
// or that a large shape fits.
struct ggml_tensor *ggml_new_view_impl(struct ggml_context *ctx, enum ggml_type type, int n_dims,
                                       const int64_t *ne, const size_t *nb,
                                       struct ggml_tensor *view_src, size_t view_offs) {
    const struct ggml_type_traits *traits = ggml_get_type_traits(type);
    struct shape shape = {.type = type, .ne = {1, 1, 1, 1}};
    THREAD_GUARD_AS(ctx, "ggml_new_tensor", return ggml_last_error_tensor(NULL));
    if (view_src && (view_src->flags & GGML_TENSOR_FLAG_ERROR)) {
        return ggml_error_tensor(ctx, "%s", ggml_tensor_error(view_src));
    }
    const bool counted = n_dims >= 1 && n_dims <= GGML_MAX_DIMS && ne;
    if (counted) memcpy(shape.ne, ne, (size_t)n_dims * sizeof(ne[0]));
    const bool small = counted && ggml_shape_is_small(traits, shape.ne);
    if (!small && !shape_is_possible(type, n_dims, ne)) return ggml_last_error_tensor(ctx);
    if (small && !nb) {
        pack(&shape, traits);
    } else if (!fill_strides(&shape, nb, nb ? n_dims : 0)) {
        return ggml_last_error_tensor(ctx);
    }
    if (view_src && !attach_view(&shape, view_src, view_offs)) return ggml_last_error_tensor(ctx);
    return new_tensor(ctx, &shape);
}

struct ggml_tensor *ggml_new_tensor_impl(struct ggml_context *ctx, enum ggml_type type, int n_dims,
                                         const int64_t *ne, struct ggml_tensor *view_src,
                                         size_t view_offs) {
    return ggml_new_view_impl(ctx, type, n_dims, ne, NULL, view_src, view_offs);
}

struct ggml_tensor *ggml_new_tensor(struct ggml_context *ctx, enum ggml_type type, int n_dims,
                                    const int64_t *ne) {
    return ggml_new_tensor_impl(ctx, type, n_dims, ne, NULL, 0);
}

struct ggml_tensor *ggml_new_tensor_1d(struct ggml_context *ctx, enum ggml_type type, int64_t ne0) {
    return ggml_new_tensor(ctx, type, 1, &ne0);
}

struct ggml_tensor *ggml_new_tensor_2d(struct ggml_context *ctx, enum ggml_type type, int64_t ne0,
                                       int64_t ne1) {
    const int64_t ne[2] = {ne0, ne1};
    return ggml_new_tensor(ctx, type, 2, ne);
}

struct ggml_tensor *ggml_new_tensor_3d(struct ggml_context *ctx, enum ggml_type type, int64_t ne0,
                                       int64_t ne1, int64_t ne2) {
    const int64_t ne[3] = {ne0, ne1, ne2};
    return ggml_new_tensor(ctx, type, 3, ne);
}

struct ggml_tensor *ggml_new_tensor_4d(struct ggml_context *ctx, enum ggml_type type, int64_t ne0,
                                       int64_t ne1, int64_t ne2, int64_t ne3) {
    const int64_t ne[4] = {ne0, ne1, ne2, ne3};
    return ggml_new_tensor(ctx, type, 4, ne);
}

struct ggml_tensor *ggml_dup_tensor(struct ggml_context *ctx, const struct ggml_tensor *src) {
    if (!src) return ggml_error_tensor(ctx, "ggml_dup_tensor: the source is NULL");
    if (ggml_tensor_is_error(src)) return ggml_error_tensor(ctx, "%s", ggml_tensor_error(src));
    return ggml_new_tensor(ctx, src->type, GGML_MAX_DIMS, src->ne);
}

// An alias has the same elements as its source, so that there is no window to check: strides of a
// permuted block type span no whole blocks.
struct ggml_tensor *ggml_new_alias_impl(struct ggml_context *ctx, struct ggml_tensor *src) {
    struct shape shape = {.type = src->type};
    memcpy(shape.ne, src->ne, sizeof(shape.ne));
    memcpy(shape.nb, src->nb, sizeof(shape.nb));
    lie_in(&shape, src->view_src ? src->view_src : src, src->view_offs);
    return new_tensor(ctx, &shape);
}

struct ggml_tensor *ggml_view_tensor(struct ggml_context *ctx, struct ggml_tensor *src) {
    if (!src) return ggml_error_tensor(ctx, "ggml_view_tensor: the source is NULL");
    if (ggml_tensor_is_error(src)) return ggml_error_tensor(ctx, "%s", ggml_tensor_error(src));
    struct ggml_tensor *view = ggml_new_alias_impl(ctx, src);
    if (!ggml_tensor_is_error(view)) ggml_name_join(view, src->name, " (view)");
    return view;
}
