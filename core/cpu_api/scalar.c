// SPDX-License-Identifier: MIT
// Single elements of tensors in host memory.
#include "base/status.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "ggml-impl.h"
#include "tensor/error_tensor.h"

// Reason why the elements of a tensor can't be accessed, or NULL.
static const char *obstacle(const struct ggml_tensor *tensor) {
    if (!tensor) return "the tensor is NULL";
    switch (tensor->type) {
    case GGML_TYPE_I8:
    case GGML_TYPE_I16:
    case GGML_TYPE_I32:
    case GGML_TYPE_F16:
    case GGML_TYPE_BF16:
    case GGML_TYPE_F32: break;
    default: return "its type is none of i8, i16, i32, f16, bf16, f32";
    }
    if (!tensor->data) return "it has no memory yet";
    if (tensor->buffer && !ggml_backend_buffer_is_host(tensor->buffer)) {
        return "it is in a device's memory; use ggml_backend_tensor_get() and _set()";
    }
    return NULL;
}

// Whether elements can be read and written here; false after the error was set.
static bool is_reachable(const struct ggml_tensor *tensor, const char *function) {
    const char *why = obstacle(tensor);
    if (why) ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: %s", function, why);
    return why == NULL;
}

// Address of the element at the coordinates, or NULL.
static void *element_at(const struct ggml_tensor *tensor, const int64_t *index,
                        const char *function) {
    if (!is_reachable(tensor, function)) return NULL;
    size_t offset = 0;
    for (int d = 0; d < GGML_MAX_DIMS; ++d) {
        if (index[d] < 0 || index[d] >= tensor->ne[d]) {
            ggml_fail(GGML_HOST_OUT_OF_RANGE, "%s: index %lld of dimension %d is not below %lld",
                      function, (long long)index[d], d, (long long)tensor->ne[d]);
            return NULL;
        }
        offset += (size_t)index[d] * tensor->nb[d];
    }
    return (char *)tensor->data + offset;
}

// As element_at(), by the element's position in row-major order. Divides for every call: these
// functions are for single values, not for loops over large tensors.
static void *element_flat(const struct ggml_tensor *tensor, int64_t i, const char *function) {
    if (!is_reachable(tensor, function)) return NULL;
    if (i < 0 || i >= ggml_nelements(tensor)) {
        ggml_fail(GGML_HOST_OUT_OF_RANGE, "%s: index %lld is not below %lld", function,
                  (long long)i, (long long)ggml_nelements(tensor));
        return NULL;
    }
    int64_t index[GGML_MAX_DIMS];
    for (int d = 0; d < GGML_MAX_DIMS; ++d) {
        index[d] = i % tensor->ne[d];
        i /= tensor->ne[d];
    }
    return element_at(tensor, index, function);
}

static int32_t to_i32(float value) {
    int32_t result;
    ggml_cpu_fp32_to_i32(&value, &result, 1);
    return result;
}

// Number read from or written to an element. Both fields are set, so that the one the type needs is
// exact: an int32 above 2^24 has no exact float.
struct value {
    float f;
    int32_t i;
};

static struct value from_f32(float f) {
    return (struct value){f, to_i32(f)};
}

static struct value from_i32(int32_t i) {
    return (struct value){(float)i, i};
}

// The caller has checked the type with is_reachable().
static struct value read_element(enum ggml_type type, const void *element) {
    switch (type) {
    case GGML_TYPE_I8: return from_i32(*(const int8_t *)element);
    case GGML_TYPE_I16: return from_i32(*(const int16_t *)element);
    case GGML_TYPE_I32: return from_i32(*(const int32_t *)element);
    case GGML_TYPE_F16: return from_f32(GGML_FP16_TO_FP32(*(const ggml_fp16_t *)element));
    case GGML_TYPE_BF16: return from_f32(GGML_BF16_TO_FP32(*(const ggml_bf16_t *)element));
    default: return from_f32(*(const float *)element);
    }
}

// I8 and I16 keep the low bits, as a C conversion does.
static void write_element(enum ggml_type type, void *element, struct value value) {
    switch (type) {
    case GGML_TYPE_I8: *(int8_t *)element = (int8_t)value.i; break;
    case GGML_TYPE_I16: *(int16_t *)element = (int16_t)value.i; break;
    case GGML_TYPE_I32: *(int32_t *)element = value.i; break;
    case GGML_TYPE_F16: *(ggml_fp16_t *)element = GGML_FP32_TO_FP16(value.f); break;
    case GGML_TYPE_BF16: *(ggml_bf16_t *)element = GGML_FP32_TO_BF16(value.f); break;
    default: *(float *)element = value.f; break;
    }
}

// Writes one number into each element. The tensor is returned in any case, as the public
// functions do.
static struct ggml_tensor *fill(struct ggml_tensor *tensor, struct value value,
                                const char *function) {
    if (!is_reachable(tensor, function)) return tensor;
    for (int64_t i = 0; i < ggml_nelements(tensor); ++i)
        write_element(tensor->type, element_flat(tensor, i, function), value);
    return tensor;
}

struct ggml_tensor *ggml_set_i32(struct ggml_tensor *tensor, int32_t value) {
    return fill(tensor, from_i32(value), __func__);
}

struct ggml_tensor *ggml_set_f32(struct ggml_tensor *tensor, float value) {
    return fill(tensor, from_f32(value), __func__);
}

// A tensor of one element. An error tensor in a context without data: the number would be lost.
static struct ggml_tensor *new_value(struct ggml_context *ctx, enum ggml_type type,
                                     struct value value, const char *function) {
    if (ctx && ggml_get_no_alloc(ctx)) {
        return ggml_error_tensor(ctx,
                                 "%s: the context does not allocate data; make the tensor with "
                                 "ggml_new_tensor_1d() and set it once it is allocated",
                                 function);
    }
    struct ggml_tensor *tensor = ggml_new_tensor_1d(ctx, type, 1);
    return ggml_tensor_is_error(tensor) ? tensor : fill(tensor, value, function);
}

struct ggml_tensor *ggml_new_i32(struct ggml_context *ctx, int32_t value) {
    return new_value(ctx, GGML_TYPE_I32, from_i32(value), __func__);
}

struct ggml_tensor *ggml_new_f32(struct ggml_context *ctx, float value) {
    return new_value(ctx, GGML_TYPE_F32, from_f32(value), __func__);
}

int32_t ggml_get_i32_1d(const struct ggml_tensor *tensor, int i) {
    const void *element = element_flat(tensor, i, __func__);
    return element ? read_element(tensor->type, element).i : 0;
}

float ggml_get_f32_1d(const struct ggml_tensor *tensor, int i) {
    const void *element = element_flat(tensor, i, __func__);
    return element ? read_element(tensor->type, element).f : 0.0f;
}

void ggml_set_i32_1d(const struct ggml_tensor *tensor, int i, int32_t value) {
    void *element = element_flat(tensor, i, __func__);
    if (element) write_element(tensor->type, element, from_i32(value));
}

void ggml_set_f32_1d(const struct ggml_tensor *tensor, int i, float value) {
    void *element = element_flat(tensor, i, __func__);
    if (element) write_element(tensor->type, element, from_f32(value));
}

int32_t ggml_get_i32_nd(const struct ggml_tensor *tensor, int i0, int i1, int i2, int i3) {
    const int64_t index[] = {i0, i1, i2, i3};
    const void *element = element_at(tensor, index, __func__);
    return element ? read_element(tensor->type, element).i : 0;
}

float ggml_get_f32_nd(const struct ggml_tensor *tensor, int i0, int i1, int i2, int i3) {
    const int64_t index[] = {i0, i1, i2, i3};
    const void *element = element_at(tensor, index, __func__);
    return element ? read_element(tensor->type, element).f : 0.0f;
}

void ggml_set_i32_nd(const struct ggml_tensor *tensor, int i0, int i1, int i2, int i3,
                     int32_t value) {
    const int64_t index[] = {i0, i1, i2, i3};
    void *element = element_at(tensor, index, __func__);
    if (element) write_element(tensor->type, element, from_i32(value));
}

void ggml_set_f32_nd(const struct ggml_tensor *tensor, int i0, int i1, int i2, int i3,
                     float value) {
    const int64_t index[] = {i0, i1, i2, i3};
    void *element = element_at(tensor, index, __func__);
    if (element) write_element(tensor->type, element, from_f32(value));
}
