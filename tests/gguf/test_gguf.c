// SPDX-License-Identifier: MIT
// What is set is read, from a context and from the file that it was written to.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"
#include "fuzz/inputs/gguf_input.h"
#include "ggml-backend.h"
#include "gguf.h"
#include "gguf_files.h"

static struct file_image file;

static const char *texts[] = {"", "one", "a longer text with \xc3\xa9"};

static struct gguf_context *filled(void) {
    struct gguf_context *ctx = gguf_init_empty();
    gguf_set_val_u8(ctx, "u8", UINT8_MAX);
    gguf_set_val_i8(ctx, "i8", INT8_MIN);
    gguf_set_val_u16(ctx, "u16", UINT16_MAX);
    gguf_set_val_i16(ctx, "i16", INT16_MIN);
    gguf_set_val_u32(ctx, "u32", UINT32_MAX);
    gguf_set_val_i32(ctx, "i32", INT32_MIN);
    gguf_set_val_f32(ctx, "f32", -0.1f);
    gguf_set_val_u64(ctx, "u64", UINT64_MAX);
    gguf_set_val_i64(ctx, "i64", INT64_MIN);
    gguf_set_val_f64(ctx, "f64", 0.1);
    gguf_set_val_bool(ctx, "bool", true);
    gguf_set_val_str(ctx, "str", texts[2]);
    gguf_set_arr_str(ctx, "strs", texts, 3);
    gguf_set_arr_str(ctx, "no strs", NULL, 0);
    return ctx;
}

static void check_filled(const struct gguf_context *ctx) {
    assert_int_equal(gguf_get_val_u8(ctx, gguf_find_key(ctx, "u8")), UINT8_MAX);
    assert_int_equal(gguf_get_val_i8(ctx, gguf_find_key(ctx, "i8")), INT8_MIN);
    assert_int_equal(gguf_get_val_u16(ctx, gguf_find_key(ctx, "u16")), UINT16_MAX);
    assert_int_equal(gguf_get_val_i16(ctx, gguf_find_key(ctx, "i16")), INT16_MIN);
    assert_int_equal(gguf_get_val_u32(ctx, gguf_find_key(ctx, "u32")), UINT32_MAX);
    assert_int_equal(gguf_get_val_i32(ctx, gguf_find_key(ctx, "i32")), INT32_MIN);
    assert_true(gguf_get_val_f32(ctx, gguf_find_key(ctx, "f32")) == -0.1f);
    assert_true(gguf_get_val_u64(ctx, gguf_find_key(ctx, "u64")) == UINT64_MAX);
    assert_true(gguf_get_val_i64(ctx, gguf_find_key(ctx, "i64")) == INT64_MIN);
    assert_true(gguf_get_val_f64(ctx, gguf_find_key(ctx, "f64")) == 0.1);
    assert_true(gguf_get_val_bool(ctx, gguf_find_key(ctx, "bool")));
    assert_string_equal(gguf_get_val_str(ctx, gguf_find_key(ctx, "str")), texts[2]);
    const int64_t strs = gguf_find_key(ctx, "strs");
    assert_int_equal(gguf_get_kv_type(ctx, strs), GGUF_TYPE_ARRAY);
    assert_int_equal(gguf_get_arr_type(ctx, strs), GGUF_TYPE_STRING);
    assert_int_equal(gguf_get_arr_n(ctx, strs), 3);
    for (size_t i = 0; i < 3; ++i) {
        assert_string_equal(gguf_get_arr_str(ctx, strs, i), texts[i]);
    }
    assert_int_equal(gguf_get_arr_n(ctx, gguf_find_key(ctx, "no strs")), 0);
}

// Written to a file and read from it by every way of reading.
static struct gguf_context *through_file(const struct gguf_context *ctx, bool only_meta,
                                         struct ggml_context **tensors) {
    const struct gguf_init_params params = {.no_alloc = only_meta, .ctx = tensors};
    FILE *stream = tmpfile();
    assert_non_null(stream);
    assert_true(gguf_write_to_file_ptr(ctx, stream, only_meta));
    rewind(stream);
    struct gguf_context *copy = gguf_init_from_file_ptr(stream, params);
    fclose(stream);
    if (!copy) fail_msg("%s", ggml_last_error());
    return copy;
}

static void test_every_scalar_type_round_trips(void **state) {
    (void)state;
    struct gguf_context *ctx = filled();
    check_filled(ctx);
    struct gguf_context *copy = through_file(ctx, true, NULL);
    check_filled(copy);
    assert_int_equal(gguf_get_version(copy), GGUF_VERSION);
    assert_int_equal(gguf_get_n_kv(copy), gguf_get_n_kv(ctx));
    gguf_free(ctx);
    gguf_free(copy);
}

static void test_every_array_type_round_trips(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    unsigned char data[64];
    for (size_t i = 0; i < sizeof(data); ++i) {
        data[i] = (unsigned char)(i * 37 + 1);
    }
    for (int type = 0; type < GGUF_TYPE_COUNT; ++type) {
        struct gguf_context *ctx = gguf_init_empty();
        if (type == GGUF_TYPE_BOOL) memset(data, 1, sizeof(data));
        gguf_set_arr_data(ctx, "array", (enum gguf_type)type, data, 7);
        if (sizes[type] == 0) {
            assert_int_equal(gguf_get_n_kv(ctx), 0);
            assert_int_equal(ggml_last_status(), GGML_HOST_INVALID_ARGUMENT);
            gguf_free(ctx);
            continue;
        }
        struct gguf_context *copy = through_file(ctx, true, NULL);
        assert_int_equal(gguf_get_arr_type(copy, 0), type);
        assert_int_equal(gguf_get_arr_n(copy, 0), 7);
        assert_memory_equal(gguf_get_arr_data(copy, 0), data, 7 * sizes[type]);
        gguf_free(ctx);
        gguf_free(copy);
    }
}

static void test_long_values(void **state) {
    (void)state;
    enum { N = 300001 };
    uint32_t *numbers = malloc(N * sizeof(*numbers));
    char *text = malloc(N);
    assert_true(numbers && text);
    for (uint32_t i = 0; i < N; ++i) {
        numbers[i] = i * 2654435761u;
        text[i] = (char)('a' + i % 26);
    }
    text[N - 1] = '\0';
    struct gguf_context *ctx = gguf_init_empty();
    gguf_set_arr_data(ctx, "numbers", GGUF_TYPE_UINT32, numbers, N);
    gguf_set_val_str(ctx, "text", text);
    struct gguf_context *copy = through_file(ctx, true, NULL);
    assert_memory_equal(gguf_get_arr_data(copy, 0), numbers, N * sizeof(*numbers));
    assert_string_equal(gguf_get_val_str(copy, 1), text);
    gguf_free(ctx);
    gguf_free(copy);
    free(numbers);
    free(text);
}

// Every result must be 0, false or NULL and leave a message.
#define assert_refused(expression)                                                                 \
    do {                                                                                           \
        ggml_clear_error();                                                                        \
        assert_true(!(expression));                                                                \
        assert_int_not_equal(ggml_last_status(), GGML_HOST_OK);                                    \
    } while (0)

static void refuse_id(const struct gguf_context *ctx, int64_t id) {
    assert_refused(gguf_get_key(ctx, id));
    assert_refused(gguf_get_kv_type(ctx, id) != GGUF_TYPE_COUNT);
    assert_refused(gguf_get_arr_type(ctx, id) != GGUF_TYPE_COUNT);
    assert_refused(gguf_get_val_u8(ctx, id));
    assert_refused(gguf_get_val_f64(ctx, id) != 0);
    assert_refused(gguf_get_val_bool(ctx, id));
    assert_refused(gguf_get_val_str(ctx, id));
    assert_refused(gguf_get_val_data(ctx, id));
    assert_refused(gguf_get_arr_n(ctx, id));
    assert_refused(gguf_get_arr_data(ctx, id));
    assert_refused(gguf_get_arr_str(ctx, id, 0));
    assert_refused(gguf_get_tensor_offset(ctx, id));
    assert_refused(gguf_get_tensor_name(ctx, id));
    assert_refused(gguf_get_tensor_ne(ctx, id));
    assert_refused(gguf_get_tensor_type(ctx, id) != GGML_TYPE_COUNT);
    assert_refused(gguf_get_tensor_size(ctx, id));
}

static void test_wrong_ids_and_types_are_harmless(void **state) {
    (void)state;
    struct gguf_context *ctx = filled();
    refuse_id(NULL, 0);
    refuse_id(ctx, -1);
    refuse_id(ctx, gguf_get_n_kv(ctx));
    refuse_id(ctx, INT64_MAX);
    refuse_id(ctx, INT64_MIN);
    const int64_t u8 = gguf_find_key(ctx, "u8");
    assert_refused(gguf_get_val_u32(ctx, u8));
    assert_refused(gguf_get_val_str(ctx, u8));
    assert_refused(gguf_get_arr_str(ctx, u8, 0));
    assert_refused(gguf_get_arr_type(ctx, u8) != GGUF_TYPE_COUNT);
    const int64_t strs = gguf_find_key(ctx, "strs");
    assert_refused(gguf_get_val_str(ctx, strs));
    assert_refused(gguf_get_arr_str(ctx, strs, 3));
    assert_refused(gguf_get_arr_data(ctx, strs));
    assert_refused(gguf_get_val_data(ctx, strs));
    assert_int_equal(gguf_find_key(ctx, "U8"), -1);
    assert_int_equal(gguf_find_key(ctx, NULL), -1);
    assert_int_equal(gguf_find_key(NULL, "u8"), -1);
    assert_null(gguf_type_name(GGUF_TYPE_COUNT));
    assert_string_equal(gguf_type_name(GGUF_TYPE_ARRAY), "arr");
    gguf_free(ctx);
    gguf_free(NULL);
}

static void test_replacing_moves_to_the_end(void **state) {
    (void)state;
    struct gguf_context *ctx = filled();
    const int64_t n = gguf_get_n_kv(ctx);
    gguf_set_val_i16(ctx, "u8", 7);
    assert_int_equal(gguf_get_n_kv(ctx), n);
    assert_int_equal(gguf_find_key(ctx, "u8"), n - 1);
    assert_int_equal(gguf_get_val_i16(ctx, n - 1), 7);
    assert_int_equal(gguf_find_key(ctx, "i8"), 0);
    assert_int_equal(gguf_remove_key(ctx, "i8"), 0);
    assert_int_equal(gguf_remove_key(ctx, "i8"), -1);
    for (int64_t i = 0; i < gguf_get_n_kv(ctx); ++i) {
        assert_int_equal(gguf_find_key(ctx, gguf_get_key(ctx, i)), i);
    }
    // a key and a value that lie in the pair that is replaced
    const int64_t str = gguf_find_key(ctx, "str");
    gguf_set_val_str(ctx, gguf_get_key(ctx, str), gguf_get_val_str(ctx, str) + 2);
    assert_string_equal(gguf_get_val_str(ctx, n - 2), texts[2] + 2);
    gguf_set_val_u8(ctx, "", 1);
    gguf_set_val_u8(ctx, NULL, 1);
    gguf_set_val_str(ctx, "null", NULL);
    gguf_set_arr_data(ctx, "null", GGUF_TYPE_UINT8, NULL, 1);
    assert_int_equal(gguf_get_n_kv(ctx), n - 1);
    gguf_free(ctx);
}

static void test_removing_keeps_every_key_findable(void **state) {
    (void)state;
    struct gguf_context *ctx = gguf_init_empty();
    char key[16];
    for (int i = 0; i < 500; ++i) {
        snprintf(key, sizeof(key), "%d", i);
        gguf_set_val_i32(ctx, key, i);
    }
    for (int i = 0; i < 500; i += 3) {
        snprintf(key, sizeof(key), "%d", i);
        assert_int_equal(gguf_remove_key(ctx, key), i - i / 3);
    }
    for (int i = 0; i < 500; ++i) {
        snprintf(key, sizeof(key), "%d", i);
        const int64_t id = gguf_find_key(ctx, key);
        assert_int_equal(id >= 0, i % 3 != 0);
        if (id >= 0) assert_int_equal(gguf_get_val_i32(ctx, id), i);
    }
    gguf_free(ctx);
}

static void test_set_kv(void **state) {
    (void)state;
    struct gguf_context *src = filled();
    struct gguf_context *ctx = gguf_init_empty();
    gguf_set_val_u8(ctx, "own", 1);
    gguf_set_val_str(ctx, "u8", "replaced");
    gguf_set_kv(ctx, src);
    check_filled(ctx);
    assert_int_equal(gguf_get_n_kv(ctx), gguf_get_n_kv(src) + 1);
    gguf_set_kv(src, src);
    check_filled(src);
    gguf_set_kv(NULL, src);
    gguf_set_kv(src, NULL);
    check_filled(src);
    gguf_free(src);
    gguf_free(ctx);
}

struct model {
    struct ggml_context *tensors;
    struct gguf_context *ctx;
};

// Tensors of several types, with sizes that need padding, one of them empty.
static struct model build_model(void) {
    struct model model;
    model.tensors = ggml_init((struct ggml_init_params){.mem_size = 1 << 20});
    model.ctx = filled();
    struct ggml_tensor *all[] = {
        ggml_new_tensor_1d(model.tensors, GGML_TYPE_F32, 5),
        ggml_new_tensor_4d(model.tensors, GGML_TYPE_F16, 3, 2, 1, 2),
        ggml_new_tensor_2d(model.tensors, GGML_TYPE_Q4_K, 512, 3),
        ggml_new_tensor_2d(model.tensors, GGML_TYPE_I8, 7, 0),
        ggml_new_tensor_1d(model.tensors, GGML_TYPE_I64, 1),
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); ++i) {
        unsigned char *data = all[i]->data;
        for (size_t k = 0; k < ggml_nbytes(all[i]); ++k) {
            data[k] = (unsigned char)(k * 7 + i);
        }
        ggml_format_name(all[i], "tensor.%d", (int)i);
        gguf_add_tensor(model.ctx, all[i]);
    }
    return model;
}

static void free_model(struct model *model) {
    gguf_free(model->ctx);
    ggml_free(model->tensors);
}

static void check_model(const struct model *model, const struct gguf_context *copy,
                        struct ggml_context *tensors) {
    assert_int_equal(gguf_get_n_tensors(copy), gguf_get_n_tensors(model->ctx));
    for (int64_t i = 0; i < gguf_get_n_tensors(copy); ++i) {
        const char *name = gguf_get_tensor_name(copy, i);
        const struct ggml_tensor *wanted = ggml_get_tensor(model->tensors, name);
        const struct ggml_tensor *got = ggml_get_tensor(tensors, name);
        assert_non_null(got);
        assert_true(ggml_are_same_shape(wanted, got) && ggml_are_same_stride(wanted, got));
        assert_int_equal(got->type, wanted->type);
        assert_int_equal(gguf_get_tensor_type(copy, i), wanted->type);
        assert_memory_equal(gguf_get_tensor_ne(copy, i), wanted->ne, sizeof(wanted->ne));
        assert_int_equal(gguf_get_tensor_size(copy, i), ggml_nbytes(wanted));
        assert_int_equal(gguf_get_tensor_offset(copy, i) % gguf_get_alignment(copy), 0);
        if (ggml_nbytes(wanted)) {
            assert_memory_equal(got->data, wanted->data, ggml_nbytes(wanted));
        }
    }
}

static void test_tensors_round_trip_at_every_alignment(void **state) {
    (void)state;
    for (uint32_t alignment = 1; alignment <= 4096; alignment *= 2) {
        struct model model = build_model();
        struct ggml_context *tensors;
        gguf_set_val_u32(model.ctx, "general.alignment", alignment);
        struct gguf_context *copy = through_file(model.ctx, false, &tensors);
        assert_int_equal(gguf_get_alignment(copy), alignment);
        assert_int_equal(gguf_get_data_offset(copy) % alignment, 0);
        assert_int_equal(gguf_get_data_offset(copy), gguf_get_meta_size(model.ctx));
        check_model(&model, copy, tensors);
        assert_string_equal(ggml_get_first_tensor(tensors)->name, "GGUF tensor data binary blob");
        assert_false(ggml_get_no_alloc(tensors));
        gguf_free(copy);
        ggml_free(tensors);
        free_model(&model);
    }
}

static void test_no_alloc_takes_exactly_the_tensors(void **state) {
    (void)state;
    struct model model = build_model();
    struct ggml_context *tensors;
    struct gguf_context *copy = through_file(model.ctx, true, &tensors);
    assert_true(ggml_get_no_alloc(tensors));
    assert_int_equal(ggml_used_mem(tensors), 5 * ggml_tensor_overhead());
    assert_null(ggml_get_first_tensor(tensors)->data);
    gguf_free(copy);
    ggml_free(tensors);
    free_model(&model);
}

static void test_setting_the_alignment(void **state) {
    (void)state;
    struct model model = build_model();
    const size_t second = gguf_get_tensor_offset(model.ctx, 1);
    assert_int_equal(second, 32);
    gguf_set_val_u32(model.ctx, "general.alignment", 48);
    gguf_set_val_u64(model.ctx, "general.alignment", 64);
    gguf_set_val_str(model.ctx, "general.alignment", "64");
    assert_int_equal(gguf_find_key(model.ctx, "general.alignment"), -1);
    gguf_set_val_u32(model.ctx, "general.alignment", 256);
    assert_int_equal(gguf_get_tensor_offset(model.ctx, 1), 256);
    gguf_set_val_u32(model.ctx, "general.alignment", 0);
    assert_int_equal(gguf_get_alignment(model.ctx), 256);
    gguf_remove_key(model.ctx, "general.alignment");
    assert_int_equal(gguf_get_tensor_offset(model.ctx, 1), 32);
    free_model(&model);
}

static void test_impossible_tensors_are_refused(void **state) {
    (void)state;
    struct model model = build_model();
    struct ggml_tensor bad = *ggml_get_tensor(model.tensors, "tensor.0");
    gguf_add_tensor(model.ctx, &bad);
    assert_non_null(strstr(ggml_last_error(), "already"));
    ggml_set_name(&bad, "bad");
    bad.ne[1] = -1;
    gguf_add_tensor(model.ctx, &bad);
    bad.ne[1] = INT64_MAX / 2;
    gguf_add_tensor(model.ctx, &bad);
    bad.ne[1] = 1;
    bad.type = (enum ggml_type)1000;
    gguf_add_tensor(model.ctx, &bad);
    gguf_add_tensor(model.ctx, NULL);
    gguf_add_tensor(model.ctx, ggml_new_tensor_1d(model.tensors, GGML_TYPE_Q4_0, 1)); // error
    assert_int_equal(gguf_get_n_tensors(model.ctx), 5);
    free_model(&model);
}

static void test_types_and_data_can_be_changed(void **state) {
    (void)state;
    struct model model = build_model();
    static const float values[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    struct ggml_context *tensors;
    gguf_set_tensor_type(model.ctx, "tensor.1", GGML_TYPE_F32);
    gguf_set_tensor_data(model.ctx, "tensor.1", values);
    assert_int_equal(gguf_get_tensor_size(model.ctx, 1), sizeof(values));
    assert_int_equal(gguf_get_tensor_offset(model.ctx, 2), 32 + 64);
    struct gguf_context *copy = through_file(model.ctx, false, &tensors);
    assert_memory_equal(ggml_get_tensor(tensors, "tensor.1")->data, values, sizeof(values));
    gguf_free(copy);
    ggml_free(tensors);
    free_model(&model);
}

// What was added is forgotten where it does not fit what the file has to say of it: it would be
// read beyond its end, or in another order.
static void test_data_of_another_type_is_forgotten(void **state) {
    (void)state;
    const struct ggml_init_params params = {.mem_size = 1 << 16};
    struct ggml_context *tensors = ggml_init(params);
    struct ggml_tensor *small = ggml_new_tensor_1d(tensors, GGML_TYPE_Q4_0, 32);
    struct ggml_tensor *turned =
        ggml_transpose(tensors, ggml_new_tensor_2d(tensors, GGML_TYPE_F32, 2, 3));
    static const float values[32] = {1, 2, 3, 4, 5, 6};
    for (int i = 0; i < 2; ++i) {
        struct gguf_context *ctx = gguf_init_empty();
        struct ggml_tensor *tensor = ggml_set_name(i == 0 ? small : turned, "t");
        FILE *stream = tmpfile();
        gguf_add_tensor(ctx, tensor);
        gguf_set_tensor_type(ctx, "t", GGML_TYPE_F32);
        assert_false(gguf_write_to_file_ptr(ctx, stream, false));
        gguf_set_tensor_data(ctx, "t", values);
        struct ggml_context *read;
        struct gguf_context *copy = through_file(ctx, false, &read);
        assert_memory_equal(ggml_get_tensor(read, "t")->data, values, gguf_get_tensor_size(ctx, 0));
        gguf_free(copy);
        gguf_free(ctx);
        ggml_free(read);
        fclose(stream);
    }
    ggml_free(tensors);
}

static void test_given_data_is_packed(void **state) {
    (void)state;
    struct ggml_context *tensors = ggml_init((struct ggml_init_params){.mem_size = 1 << 16});
    struct ggml_tensor *turned =
        ggml_transpose(tensors, ggml_new_tensor_2d(tensors, GGML_TYPE_F32, 2, 3));
    static const float values[6] = {1, 2, 3, 4, 5, 6};
    struct gguf_context *ctx = gguf_init_empty();
    struct ggml_context *read;
    gguf_add_tensor(ctx, ggml_set_name(turned, "t"));
    gguf_set_tensor_data(ctx, "t", values);
    struct gguf_context *copy = through_file(ctx, false, &read);
    assert_memory_equal(ggml_get_tensor(read, "t")->data, values, sizeof(values));
    gguf_free(copy);
    gguf_free(ctx);
    ggml_free(read);
    ggml_free(tensors);
}

static void test_bools_are_normalised(void **state) {
    (void)state;
    struct gguf_context *ctx = gguf_init_empty();
    gguf_set_arr_data(ctx, "flags", GGUF_TYPE_BOOL, (const uint8_t[]){2, 0, 255}, 3);
    assert_memory_equal(gguf_get_arr_data(ctx, 0), ((const uint8_t[]){1, 0, 1}), 3);
    gguf_free(ctx);
}

enum { N_WAYS_TO_FAIL = 9 };

static void fail_to_put(struct gguf_context *ctx, int way) {
    const char *unended[] = {"a", NULL};
    struct ggml_context *full = ggml_init((struct ggml_init_params){.mem_size = 512});
    switch (way) {
    case 0: gguf_set_tensor_type(ctx, "tensor.0", GGML_TYPE_Q4_0); break; // 5 elements are no block
    case 1: gguf_set_tensor_type(ctx, "tensor.0", GGML_TYPE_COUNT); break;
    case 2: gguf_set_tensor_type(ctx, "no such", GGML_TYPE_F32); break;
    case 3: gguf_set_tensor_data(ctx, NULL, unended); break;
    case 4: gguf_add_tensor(ctx, ggml_new_tensor_1d(full, GGML_TYPE_F32, 1 << 20)); break;
    case 5: gguf_set_val_u32(ctx, "general.alignment", 3); break;
    case 6: gguf_set_arr_str(ctx, "texts", unended, 2); break;
    case 7: gguf_set_val_str(ctx, NULL, "text"); break;
    case 8: gguf_set_kv(ctx, NULL); break;
    }
    ggml_free(full);
}

// A file that lacks a part would be taken for whole.
static void test_what_could_not_be_put_in_is_not_left_out(void **state) {
    (void)state;
    for (int way = 0; way < N_WAYS_TO_FAIL; ++way) {
        struct model model = build_model();
        FILE *stream = tmpfile();
        char why[256];
        ggml_clear_error();
        fail_to_put(model.ctx, way);
        assert_int_not_equal(ggml_last_status(), GGML_HOST_OK);
        snprintf(why, sizeof(why), "%s", ggml_last_error());
        assert_int_equal(gguf_get_tensor_type(model.ctx, 0), GGML_TYPE_F32);
        gguf_set_val_u32(model.ctx, "later", 1); // is put in, but the file stays refused
        assert_false(gguf_write_to_file_ptr(model.ctx, stream, false));
        assert_non_null(strstr(ggml_last_error(), why));
        assert_int_equal(ftell(stream), 0);
        assert_false(gguf_write_to_file(model.ctx, "/", true));
        assert_non_null(strstr(ggml_last_error(), why));
        ggml_clear_error();
        assert_int_equal(gguf_get_meta_size(model.ctx), 0);
        assert_non_null(strstr(ggml_last_error(), why));
        ggml_clear_error();
        gguf_get_meta_data(model.ctx, &(char){0});
        assert_non_null(strstr(ggml_last_error(), why));
        fclose(stream);
        free_model(&model);
    }
}

static void test_writing_what_has_no_data_fails(void **state) {
    (void)state;
    struct model model = build_model();
    FILE *stream = tmpfile();
    gguf_set_tensor_data(model.ctx, "tensor.2", NULL);
    assert_false(gguf_write_to_file_ptr(model.ctx, stream, false));
    assert_non_null(strstr(ggml_last_error(), "tensor.2"));
    assert_true(gguf_write_to_file_ptr(model.ctx, stream, true));
    fclose(stream);
    struct ggml_tensor *turned =
        ggml_transpose(model.tensors, ggml_new_tensor_2d(model.tensors, GGML_TYPE_F32, 2, 3));
    gguf_add_tensor(model.ctx, turned);
    assert_false(gguf_write_to_file(model.ctx, "/no/such/folder/file", true));
    assert_false(gguf_write_to_file(model.ctx, NULL, true));
    assert_false(gguf_write_to_file(NULL, "file", true));
    assert_false(gguf_write_to_file_ptr(model.ctx, NULL, true));
    assert_int_equal(gguf_get_meta_size(NULL), 0);
    free_model(&model);
}

// A file that begins `start` bytes behind that of the stream: data_offset is the stream's, padding
// is counted from where the file begins, as the writer counts it.
static void read_inside_a_file(size_t start) {
    struct ggml_context *tensors;
    FILE *stream = tmpfile();
    build_good_file(&file);
    for (size_t i = 0; i < start; ++i) {
        fputc('x', stream);
    }
    assert_int_equal(fwrite(file.bytes, 1, file.size, stream), file.size);
    fseek(stream, (long)start, SEEK_SET);
    struct gguf_context *ctx =
        gguf_init_from_file_ptr(stream, (struct gguf_init_params){.ctx = &tensors});
    assert_non_null(ctx);
    assert_int_equal(gguf_get_data_offset(ctx), start + file.size - 128);
    assert_memory_equal(ggml_get_tensor(tensors, "bias")->data, file.bytes + file.size - 64, 16);
    fclose(stream);
    gguf_free(ctx);
    ggml_free(tensors);
}

static void test_file_inside_a_file(void **state) {
    (void)state;
    static const size_t starts[] = {1, 16, 31, 64, 100};
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); ++i) {
        read_inside_a_file(starts[i]);
    }
}

// The stream stands behind what was read of the first file, not behind what was read ahead.
static void test_files_one_after_the_other(void **state) {
    (void)state;
    FILE *stream = tmpfile();
    build_good_file(&file);
    for (int i = 0; i < 2; ++i) {
        assert_int_equal(fwrite(file.bytes, 1, file.size, stream), file.size);
    }
    rewind(stream);
    for (int i = 1; i <= 2; ++i) {
        struct ggml_context *tensors;
        struct gguf_context *ctx =
            gguf_init_from_file_ptr(stream, (struct gguf_init_params){.ctx = &tensors});
        assert_non_null(ctx);
        assert_int_equal(ftell(stream), i * (long)file.size);
        gguf_free(ctx);
        ggml_free(tensors);
    }
    rewind(stream);
    struct gguf_context *ctx = gguf_init_from_file_ptr(stream, (struct gguf_init_params){0});
    const long data = (long)gguf_get_data_offset(ctx), unpadded = ftell(stream);
    assert_in_range(unpadded, data - (long)gguf_get_alignment(ctx) + 1, data);
    gguf_free(ctx);
    fclose(stream);
}

static size_t read_image(void *userdata, void *out, uint64_t offset, size_t size) {
    const struct file_image *image = userdata;
    if (offset >= image->size) return 0;
    if (size > image->size - offset) size = (size_t)(image->size - offset);
    memcpy(out, image->bytes + offset, size);
    return size;
}

static void test_callback_in_chunks_of_any_size(void **state) {
    (void)state;
    build_good_file(&file);
    for (size_t chunk = 0; chunk < 20; ++chunk) {
        struct ggml_context *tensors;
        struct gguf_context *ctx = gguf_init_from_callback(
            read_image, &file, chunk, file.size + 1000, (struct gguf_init_params){.ctx = &tensors});
        assert_non_null(ctx);
        assert_string_equal(gguf_get_val_str(ctx, gguf_find_key(ctx, "text")), "a string");
        assert_memory_equal(ggml_get_first_tensor(tensors)->data, file.bytes + file.size - 128,
                            128);
        gguf_free(ctx);
        ggml_free(tensors);
    }
}

// The writer makes the bytes that the test's own writer makes.
static void test_writer_equals_the_format(void **state) {
    (void)state;
    build_good_file(&file);
    struct gguf_context *ctx =
        gguf_init_from_buffer(file.bytes, file.size, (struct gguf_init_params){.no_alloc = true});
    assert_non_null(ctx);
    assert_int_equal(gguf_get_meta_size(ctx), file.size - 128);
    unsigned char *data = malloc(file.size);
    gguf_get_meta_data(ctx, data);
    assert_memory_equal(data, file.bytes, file.size - 128);
    free(data);
    gguf_free(ctx);
}

static void test_sources_that_are_not_there(void **state) {
    (void)state;
    struct ggml_context *tensors = (struct ggml_context *)&file;
    const struct gguf_init_params params = {.ctx = &tensors};
    assert_refused(gguf_init_from_file("/no/such/file", params));
    assert_non_null(strstr(ggml_last_error(), "/no/such/file"));
    assert_null(tensors);
    assert_refused(gguf_init_from_file(NULL, params));
    assert_refused(gguf_init_from_file_ptr(NULL, params));
    assert_refused(gguf_init_from_buffer(NULL, 10, params));
    assert_refused(gguf_init_from_buffer("", 0, params));
    assert_refused(gguf_init_from_callback(NULL, NULL, 0, 100, params));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_scalar_type_round_trips),
        cmocka_unit_test(test_every_array_type_round_trips),
        cmocka_unit_test(test_long_values),
        cmocka_unit_test(test_wrong_ids_and_types_are_harmless),
        cmocka_unit_test(test_replacing_moves_to_the_end),
        cmocka_unit_test(test_removing_keeps_every_key_findable),
        cmocka_unit_test(test_set_kv),
        cmocka_unit_test(test_tensors_round_trip_at_every_alignment),
        cmocka_unit_test(test_no_alloc_takes_exactly_the_tensors),
        cmocka_unit_test(test_setting_the_alignment),
        cmocka_unit_test(test_impossible_tensors_are_refused),
        cmocka_unit_test(test_types_and_data_can_be_changed),
        cmocka_unit_test(test_data_of_another_type_is_forgotten),
        cmocka_unit_test(test_given_data_is_packed),
        cmocka_unit_test(test_bools_are_normalised),
        cmocka_unit_test(test_what_could_not_be_put_in_is_not_left_out),
        cmocka_unit_test(test_writing_what_has_no_data_fails),
        cmocka_unit_test(test_file_inside_a_file),
        cmocka_unit_test(test_files_one_after_the_other),
        cmocka_unit_test(test_callback_in_chunks_of_any_size),
        cmocka_unit_test(test_writer_equals_the_format),
        cmocka_unit_test(test_sources_that_are_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
