// SPDX-License-Identifier: MIT
// Sizes, layout predicates, names and flags of tensors. A NULL tensor counts as one without
// elements.
#include <stdarg.h>

#include "base/status.h"
#include "ggml-impl.h"

static const struct ggml_tensor no_tensor;

// A NULL tensor reads as one of zeros.
static const struct ggml_tensor *given(const struct ggml_tensor *tensor) {
    return tensor ? tensor : &no_tensor;
}

// Unsigned, because extents that a client wrote into a tensor may have any product: it wraps
// instead of being undefined.
static int64_t product(const int64_t *ne, int n) {
    uint64_t value = 1;
    for (int i = 0; i < n; ++i) {
        value *= (uint64_t)ne[i];
    }
    return (int64_t)value;
}

int64_t ggml_nelements(const struct ggml_tensor *tensor) {
    return product(given(tensor)->ne, GGML_MAX_DIMS);
}

int64_t ggml_nrows(const struct ggml_tensor *tensor) {
    return product(given(tensor)->ne + 1, GGML_MAX_DIMS - 1);
}

// Bytes from the first element to the end of the last, gaps between rows included; of a view, what
// it spans in the memory of another. A type with blocks has its first stride between blocks.
size_t ggml_nbytes(const struct ggml_tensor *tensor) {
    tensor = given(tensor);
    const struct ggml_type_traits *type = ggml_get_type_traits(tensor->type);
    const int64_t *ne = tensor->ne;
    const size_t *nb = tensor->nb;
    if (type->blck_size == 0 || ne[0] <= 0 || ne[1] <= 0 || ne[2] <= 0 || ne[3] <= 0) return 0;
    const size_t row = type->blck_size == 1 ? type->type_size + (size_t)(ne[0] - 1) * nb[0]
                                            : (size_t)ne[0] * nb[0] / (size_t)type->blck_size;
    return row + (size_t)(ne[1] - 1) * nb[1] + (size_t)(ne[2] - 1) * nb[2] +
           (size_t)(ne[3] - 1) * nb[3];
}

size_t ggml_nbytes_pad(const struct ggml_tensor *tensor) {
    return GGML_PAD(ggml_nbytes(tensor), (size_t)GGML_MEM_ALIGN);
}

size_t ggml_element_size(const struct ggml_tensor *tensor) {
    return tensor ? ggml_type_size(tensor->type) : 0;
}

// Number of dimensions without trailing ones of one element; at least 1.
int ggml_n_dims(const struct ggml_tensor *tensor) {
    int n = GGML_MAX_DIMS;
    while (n > 1 && given(tensor)->ne[n - 1] <= 1) {
        --n;
    }
    return n;
}

// Whether dimensions `first` and above have one element each.
static bool ones_from(const struct ggml_tensor *tensor, int first) {
    for (int i = first; i < GGML_MAX_DIMS; ++i) {
        if (given(tensor)->ne[i] != 1) return false;
    }
    return true;
}

bool ggml_is_scalar(const struct ggml_tensor *tensor) {
    return ones_from(tensor, 0);
}

bool ggml_is_vector(const struct ggml_tensor *tensor) {
    return ones_from(tensor, 1);
}

bool ggml_is_matrix(const struct ggml_tensor *tensor) {
    return ones_from(tensor, 2);
}

bool ggml_is_3d(const struct ggml_tensor *tensor) {
    return ones_from(tensor, 3);
}

bool ggml_is_empty(const struct ggml_tensor *tensor) {
    const int64_t *ne = given(tensor)->ne;
    return ne[0] == 0 || ne[1] == 0 || ne[2] == 0 || ne[3] == 0;
}

bool ggml_is_view(const struct ggml_tensor *tensor) {
    return tensor && tensor->view_src;
}

bool ggml_is_transposed(const struct ggml_tensor *tensor) {
    return given(tensor)->nb[0] > given(tensor)->nb[1];
}

// Whether strides decrease somewhere; extents don't matter.
bool ggml_is_permuted(const struct ggml_tensor *tensor) {
    const size_t *nb = given(tensor)->nb;
    return nb[0] > nb[1] || nb[1] > nb[2] || nb[2] > nb[3];
}

// Whether dimensions first_packed .. last are packed; below first_packed (but not in dimension 0)
// strides are free. An extent of 1 may have any stride.
static bool is_packed(const struct ggml_tensor *tensor, int first_packed, int last) {
    tensor = given(tensor);
    const int64_t block = ggml_blck_size(tensor->type);
    size_t next = ggml_type_size(tensor->type);
    if (block == 0) return false;
    if (tensor->ne[0] != block && tensor->nb[0] != next) return false;
    next *= (size_t)(tensor->ne[0] / block);
    for (int i = 1; i <= last; ++i) {
        if (i <= first_packed) {
            next = (size_t)tensor->ne[i] * tensor->nb[i];
        } else if (tensor->ne[i] != 1) {
            if (tensor->nb[i] != next) return false;
            next *= (size_t)tensor->ne[i];
        }
    }
    return true;
}

bool ggml_is_contiguous_0(const struct ggml_tensor *tensor) {
    return is_packed(tensor, 0, GGML_MAX_DIMS - 1);
}

bool ggml_is_contiguous(const struct ggml_tensor *tensor) {
    return ggml_is_contiguous_0(tensor);
}

bool ggml_is_contiguous_1(const struct ggml_tensor *tensor) {
    return is_packed(tensor, 1, GGML_MAX_DIMS - 1);
}

bool ggml_is_contiguous_2(const struct ggml_tensor *tensor) {
    return is_packed(tensor, 2, GGML_MAX_DIMS - 1);
}

bool ggml_is_contiguous_to_1(const struct ggml_tensor *tensor) {
    return is_packed(tensor, 0, 0);
}

bool ggml_is_contiguous_to_2(const struct ggml_tensor *tensor) {
    return is_packed(tensor, 0, 1);
}

bool ggml_is_contiguous_to_3(const struct ggml_tensor *tensor) {
    return is_packed(tensor, 0, 2);
}

// No gaps between elements, which may be in any order.
bool ggml_is_contiguously_allocated(const struct ggml_tensor *tensor) {
    const int64_t block = ggml_blck_size(given(tensor)->type);
    if (block == 0) return false;
    const size_t elements = (size_t)ggml_nelements(tensor);
    return ggml_nbytes(tensor) == elements * ggml_type_size(given(tensor)->type) / (size_t)block;
}

// Channels (dimension 2) innermost and packed, then columns, then rows: images as cameras and files
// have them.
bool ggml_is_contiguous_channels(const struct ggml_tensor *tensor) {
    const size_t *nb = given(tensor)->nb;
    return nb[0] > nb[2] && nb[1] > nb[0] && nb[2] == ggml_type_size(given(tensor)->type);
}

bool ggml_is_contiguous_rows(const struct ggml_tensor *tensor) {
    tensor = given(tensor);
    return tensor->ne[0] == ggml_blck_size(tensor->type) ||
           tensor->nb[0] == ggml_type_size(tensor->type);
}

// Memory comparison: extents are an array without padding.
bool ggml_are_same_shape(const struct ggml_tensor *t0, const struct ggml_tensor *t1) {
    return memcmp(given(t0)->ne, given(t1)->ne, sizeof(no_tensor.ne)) == 0;
}

bool ggml_are_same_stride(const struct ggml_tensor *t0, const struct ggml_tensor *t1) {
    return memcmp(given(t0)->nb, given(t1)->nb, sizeof(no_tensor.nb)) == 0;
}

// One comparison, as strides lie behind the extents.
bool ggml_are_same_layout(const struct ggml_tensor *a, const struct ggml_tensor *b) {
    enum { BYTES = sizeof(no_tensor.ne) + sizeof(no_tensor.nb) };
    _Static_assert(offsetof(struct ggml_tensor, nb) - offsetof(struct ggml_tensor, ne) ==
                       sizeof(no_tensor.ne),
                   "there is something between extents and strides");
    return given(a)->type == given(b)->type &&
           memcmp((const char *)given(a) + offsetof(struct ggml_tensor, ne),
                  (const char *)given(b) + offsetof(struct ggml_tensor, ne), BYTES) == 0;
}

// Whether t1 is t0 repeated a whole number of times in each dimension.
bool ggml_can_repeat(const struct ggml_tensor *t0, const struct ggml_tensor *t1) {
    if (ggml_is_empty(t0)) return ggml_is_empty(t1);
    for (int i = 0; i < GGML_MAX_DIMS; ++i) {
        if (given(t1)->ne[i] % given(t0)->ne[i] != 0) return false;
    }
    return true;
}

// An element's index, dimension 0 fastest, to coordinates; results that are NULL are left out.
// The last coordinate takes what is beyond the end.
void ggml_unravel_index(const struct ggml_tensor *tensor, int64_t i, int64_t *i0, int64_t *i1,
                        int64_t *i2, int64_t *i3) {
    int64_t *const out[GGML_MAX_DIMS] = {i0, i1, i2, i3};
    for (int d = 0; d < GGML_MAX_DIMS; ++d) {
        const int64_t extent = given(tensor)->ne[d] > 0 ? given(tensor)->ne[d] : 1;
        if (out[d]) *out[d] = d < GGML_MAX_DIMS - 1 ? i % extent : i;
        i /= extent;
    }
}

const char *ggml_get_name(const struct ggml_tensor *tensor) {
    return tensor ? tensor->name : "";
}

struct ggml_tensor *ggml_set_name(struct ggml_tensor *tensor, const char *name) {
    return ggml_format_name(tensor, "%s", name ? name : "");
}

// Through a buffer, because the arguments may be the tensor's old name.
struct ggml_tensor *ggml_format_name(struct ggml_tensor *tensor, const char *fmt, ...) {
    char name[GGML_MAX_NAME] = "";
    if (!tensor || !fmt) return tensor;
    va_list args;
    va_start(args, fmt);
    vsnprintf(name, sizeof(name), fmt, args);
    va_end(args);
    memcpy(tensor->name, name, sizeof(name));
    return tensor;
}

void ggml_set_input(struct ggml_tensor *tensor) {
    if (tensor) tensor->flags |= GGML_TENSOR_FLAG_INPUT;
}

// A view's memory is its root's, so that the root must be kept as well.
void ggml_set_output(struct ggml_tensor *tensor) {
    for (; tensor; tensor = tensor->view_src) {
        tensor->flags |= GGML_TENSOR_FLAG_OUTPUT;
    }
}

// Leaves only: a computed tensor would overwrite the parameter.
void ggml_set_param(struct ggml_tensor *tensor) {
    if (tensor && tensor->op == GGML_OP_NONE) {
        tensor->flags |= GGML_TENSOR_FLAG_PARAM;
    } else {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                  "ggml_set_param: '%s' is computed by the graph; a parameter must be a leaf",
                  ggml_get_name(tensor));
    }
}

void ggml_set_loss(struct ggml_tensor *tensor) {
    if (tensor && ggml_is_scalar(tensor) && tensor->type == GGML_TYPE_F32) {
        tensor->flags |= GGML_TENSOR_FLAG_LOSS;
    } else {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "ggml_set_loss: '%s' is not one F32 element",
                  ggml_get_name(tensor));
    }
}
