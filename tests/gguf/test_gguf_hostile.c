// SPDX-License-Identifier: MIT
// Damaged and hostile files: refused with a message, within memory that the file's size bounds.
// GGML_TEST_SEED replays a run.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/status.h"
#include "fuzz/inputs/gguf_input.h"
#include "gguf.h"
#include "gguf_files.h"

enum { N_FLIPS = 20000 };

static uint64_t seed = 20240607;
static struct file_image file;

static size_t requested; // bytes, in all

#ifdef GGUF_WRAPS_ALLOCATION
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);

void *__wrap_malloc(size_t size) {
    requested += size;
    return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size) {
    requested += count * size;
    return __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size) {
    requested += size;
    return __real_realloc(memory, size);
}
#endif

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

// A copy that ends where the memory ends, so that a sanitizer sees every byte read beyond it.
static bool run_exact(const unsigned char *data, size_t size) {
    unsigned char *copy = malloc(size > 0 ? size : 1);
    assert_non_null(copy);
    memcpy(copy, data, size);
    const bool is_file = run_gguf_input(copy, size);
    free(copy);
    return is_file;
}

static void ignore_log(enum ggml_log_level level, const char *text, void *user_data) {
    (void)level;
    (void)text;
    (void)user_data;
}

static void test_truncated_at_every_byte(void **state) {
    (void)state;
    build_good_file(&file);
    assert_true(run_exact(file.bytes, file.size));
    const size_t data_offset = file.size - 128;
    for (size_t size = 0; size < data_offset; ++size) {
        assert_false(run_exact(file.bytes, size));
    }
    for (size_t size = data_offset; size < file.size; ++size) {
        struct ggml_context *tensors = (struct ggml_context *)&file;
        assert_null(
            gguf_init_from_buffer(file.bytes, size, (struct gguf_init_params){.ctx = &tensors}));
        assert_null(tensors);
        assert_int_equal(ggml_last_status(), GGML_HOST_DAMAGED_FILE);
    }
}

static void test_flipped_bits(void **state) {
    (void)state;
    uint64_t random = seed;
    print_message("# GGML_TEST_SEED=%llu\n", (unsigned long long)seed);
    build_good_file(&file);
    for (int run = 0; run < N_FLIPS; ++run) {
        size_t places[2];
        for (size_t i = 0; i < 2; ++i) {
            places[i] = next_random(&random) % (file.size * 8);
            file.bytes[places[i] / 8] ^= (unsigned char)(1u << places[i] % 8);
        }
        run_exact(file.bytes, file.size);
        for (size_t i = 0; i < 2; ++i) {
            file.bytes[places[i] / 8] ^= (unsigned char)(1u << places[i] % 8);
        }
    }
    assert_true(run_exact(file.bytes, file.size));
}

static void test_every_byte_extreme(void **state) {
    (void)state;
    static const unsigned char values[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    build_good_file(&file);
    for (size_t at = 0; at < file.size; ++at) {
        const unsigned char kept = file.bytes[at];
        for (size_t k = 0; k < sizeof(values); ++k) {
            file.bytes[at] = values[k];
            run_exact(file.bytes, file.size);
        }
        file.bytes[at] = kept;
    }
}

// The file must be refused, and the message must contain `words`.
static void refuse(const char *words) {
    const size_t before = requested;
    struct gguf_context *ctx =
        gguf_init_from_buffer(file.bytes, file.size, (struct gguf_init_params){.no_alloc = true});
    if (ctx || !strstr(ggml_last_error(), words)) {
        fail_msg("expected \"%s\", got \"%s\"", words, ggml_last_error());
    }
    assert_true(requested - before < 65536);
}

static void test_bad_headers(void **state) {
    (void)state;
    put_header(&file, GGUF_VERSION, 0, 0);
    file.bytes[3] = 'f';
    refuse("not a GGUF file: it starts with 47 47 55 66");
    put_header(&file, 0, 0, 0);
    refuse("version 0");
    put_header(&file, 1, 0, 0);
    refuse("version 1");
    put_header(&file, 4, 0, 0);
    refuse("version 4");
    put_header(&file, 0x03000000, 0, 0);
    refuse("byte order");
    put_header(&file, 2, 0, 0);
    assert_true(run_exact(file.bytes, file.size));
}

static void test_counts_that_do_not_fit(void **state) {
    (void)state;
    static const uint64_t counts[] = {1, 100, UINT32_MAX, (uint64_t)1 << 40, INT64_MAX, UINT64_MAX};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); ++i) {
        put_header(&file, GGUF_VERSION, counts[i], 0);
        refuse("tensors don't fit");
        put_header(&file, GGUF_VERSION, 0, counts[i]);
        refuse("pairs don't fit");
        put_header(&file, GGUF_VERSION, 0, 1);
        put_u64(&file, counts[i]);
        put_bytes(&file, "\0\0\0\0\0\0\0", 7);
        refuse(counts[i] == 1     ? "empty or contains a zero byte"
               : counts[i] == 100 ? "a string of 100 bytes"
                                  : "a string of");
        for (uint32_t type = GGUF_TYPE_UINT8; type <= GGUF_TYPE_STRING && i > 0; ++type) {
            put_header(&file, GGUF_VERSION, 0, 1);
            put_text(&file, "key");
            put_u32(&file, GGUF_TYPE_ARRAY);
            put_u32(&file, type);
            put_u64(&file, counts[i]);
            refuse("elements, but 0 bytes are left");
        }
    }
}

static void test_bad_pairs(void **state) {
    (void)state;
    put_header(&file, GGUF_VERSION, 0, 2);
    put_u32_pair(&file, "twice", 1);
    put_u32_pair(&file, "twice", 2);
    refuse("'twice' is there twice");
    put_header(&file, GGUF_VERSION, 0, 1);
    put_u32_pair(&file, "", 1);
    refuse("empty");
    static const uint32_t types[] = {GGUF_TYPE_COUNT, 100, INT32_MAX, UINT32_MAX, 0x80000000};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); ++i) {
        put_header(&file, GGUF_VERSION, 0, 1);
        put_text(&file, "key");
        put_u32(&file, types[i]);
        put_u64(&file, 0);
        refuse("has type");
    }
    put_header(&file, GGUF_VERSION, 0, 1);
    put_text(&file, "nested");
    put_u32(&file, GGUF_TYPE_ARRAY);
    put_u32(&file, GGUF_TYPE_ARRAY);
    put_u64(&file, 1);
    refuse("an array of type 9");
}

static void test_bad_alignments(void **state) {
    (void)state;
    static const uint32_t values[] = {0, 3, 33, UINT32_MAX};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); ++i) {
        put_header(&file, GGUF_VERSION, 0, 1);
        put_u32_pair(&file, "general.alignment", values[i]);
        refuse("power of two");
    }
    put_header(&file, GGUF_VERSION, 0, 1);
    put_text(&file, "general.alignment");
    put_u32(&file, GGUF_TYPE_ARRAY);
    put_u32(&file, GGUF_TYPE_UINT32);
    put_u64(&file, 1);
    put_u32(&file, 32);
    refuse("an array of u32");
    put_header(&file, GGUF_VERSION, 0, 1);
    put_text(&file, "general.alignment");
    put_u32(&file, GGUF_TYPE_UINT64);
    put_u64(&file, 32);
    refuse("a u64");
}

// One tensor of one dimension.
static void tensor_file(const char *name, int64_t ne0, int64_t ne1, uint32_t type,
                        uint64_t offset) {
    const int64_t ne[] = {ne0, ne1};
    put_header(&file, GGUF_VERSION, 1, 0);
    put_tensor(&file, name, 2, ne, type, offset);
    put_zeros(&file, 32);
}

static void test_bad_tensors(void **state) {
    (void)state;
    const int64_t ne[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    tensor_file("t", 32, 2, GGML_TYPE_Q4_0, 0);
    assert_true(run_gguf_input(file.bytes, file.size));
    tensor_file("t", -1, 2, GGML_TYPE_F32, 0);
    refuse("negative");
    tensor_file("t", 1, INT64_MIN, GGML_TYPE_F32, 0);
    refuse("negative");
    tensor_file("t", (int64_t)1 << 32, (int64_t)1 << 32, GGML_TYPE_I8, 0);
    refuse("too large");
    tensor_file("t", INT64_MAX, 1, GGML_TYPE_F32, 0);
    refuse("too large");
    tensor_file("t", 33, 2, GGML_TYPE_Q4_0, 0);
    refuse("not whole q4_0 blocks");
    tensor_file("t", 32, 2, GGML_TYPE_COUNT, 0);
    refuse("is no tensor type");
    tensor_file("t", 32, 2, UINT32_MAX, 0);
    refuse("is no tensor type");
    tensor_file("t", 32, 2, 4, 0); // a retired number
    refuse("is no tensor type");
    tensor_file("t", 32, 2, GGML_TYPE_F32, 32);
    refuse("lies at 32");
    tensor_file("a name of more than sixty-three bytes, and so too long for a tensor", 1, 1, 0, 0);
    refuse("a tensor name has");
    put_header(&file, GGUF_VERSION, 1, 0);
    put_tensor(&file, "t", 5, ne, GGML_TYPE_F32, 0);
    refuse("5 dimensions");
    put_header(&file, GGUF_VERSION, 2, 0);
    put_tensor(&file, "t", 1, ne, GGML_TYPE_F32, 0);
    put_tensor(&file, "t", 1, ne, GGML_TYPE_F32, 32);
    refuse("'t' is there twice");
    put_header(&file, GGUF_VERSION, 2, 0);
    put_tensor(&file, "a", 1, ne, GGML_TYPE_F32, 0);
    put_tensor(&file, "b", 1, ne, GGML_TYPE_F32, 4);
    refuse("'b' lies at 4, but the one before ends at 32");
}

// Sizes that are possible one by one but not together.
static void test_sum_of_sizes_overflows(void **state) {
    (void)state;
    const int64_t ne[] = {INT64_MAX / 4};
    const uint64_t size = GGML_PAD((uint64_t)ne[0], (uint64_t)32);
    put_header(&file, GGUF_VERSION, 4, 0);
    for (uint64_t i = 0; i < 4; ++i) {
        const char name[2] = {(char)('a' + i), 0};
        put_tensor(&file, name, 1, ne, GGML_TYPE_I8, i * size);
    }
    refuse("the data is too large");
}

// With the data wanted, nothing is taken for tensors that the file can't hold.
static void test_data_that_is_not_there(void **state) {
    (void)state;
    struct ggml_context *tensors;
    const size_t before = requested;
    tensor_file("t", (int64_t)1 << 38, 1, GGML_TYPE_F32, 0);
    assert_null(
        gguf_init_from_buffer(file.bytes, file.size, (struct gguf_init_params){.ctx = &tensors}));
    assert_non_null(strstr(ggml_last_error(), "1099511627776 bytes, but 0 are left"));
    assert_null(tensors);
    assert_true(requested - before < 65536);
}

static size_t read_file(void *userdata, void *out, uint64_t offset, size_t size) {
    const struct file_image *image = userdata;
    if (offset >= image->size) return 0;
    if (size > image->size - offset) size = (size_t)(image->size - offset);
    memcpy(out, image->bytes + offset, size);
    return size;
}

// A callback can't tell how much will come, so memory is only taken as the bytes arrive.
static void test_callback_that_promises_too_much(void **state) {
    (void)state;
    const struct gguf_init_params params = {.no_alloc = true};
    for (int is_text = 0; is_text < 2; ++is_text) {
        put_header(&file, GGUF_VERSION, 0, 1);
        put_text(&file, "key");
        put_u32(&file, is_text ? GGUF_TYPE_STRING : GGUF_TYPE_ARRAY);
        if (!is_text) put_u32(&file, GGUF_TYPE_UINT64);
        put_u64(&file, (uint64_t)1 << 30);
        const size_t before = requested;
        assert_null(gguf_init_from_callback(read_file, &file, 7, UINT64_MAX, params));
        assert_non_null(strstr(ggml_last_error(), "the file ends"));
        assert_true(requested - before < 262144);
    }
    put_header(&file, GGUF_VERSION, (uint64_t)1 << 40, 0);
    assert_null(gguf_init_from_callback(read_file, &file, 0, UINT64_MAX, params));
}

static size_t read_too_much(void *userdata, void *out, uint64_t offset, size_t size) {
    return read_file(userdata, out, offset, size) + 100000;
}

static void test_callback_that_lies_about_its_count(void **state) {
    (void)state;
    build_good_file(&file);
    assert_null(gguf_init_from_callback(read_too_much, &file, 0, file.size,
                                        (struct gguf_init_params){.no_alloc = true}));
}

static bool count_down(void *context) {
    size_t *left = context;
    return *left > 0 && (*left)-- > 0;
}

// Every allocation fails once; what was read is freed (the leak sanitizer looks).
static void test_every_allocation_fails(void **state) {
    (void)state;
    struct gguf_context *ctx = NULL;
    struct ggml_context *tensors = NULL;
    build_good_file(&file);
    size_t n = 0;
    for (; !ctx && n < 1000; ++n) {
        size_t left = n;
        ggml_mem_set_fault_hook(count_down, &left);
        ctx = gguf_init_from_buffer(file.bytes, file.size,
                                    (struct gguf_init_params){.ctx = &tensors});
        ggml_mem_set_fault_hook(NULL, NULL);
        assert_int_equal(ctx != NULL, tensors != NULL);
        if (!ctx) assert_int_equal(ggml_last_status(), GGML_HOST_OUT_OF_MEMORY);
    }
    assert_in_range(n, 20, 999);
    gguf_free(ctx);
    ggml_free(tensors);
}

// Time must not grow with the square of the count: the steps here would take minutes.
static void test_many_names(void **state) {
    (void)state;
    enum { N = 100000 };
    struct gguf_context *ctx = gguf_init_empty();
    for (int i = 0; i < N; ++i) {
        char key[32];
        snprintf(key, sizeof(key), "key.%d", i);
        gguf_set_val_i32(ctx, key, i);
    }
    const size_t size = gguf_get_meta_size(ctx);
    unsigned char *data = malloc(size);
    gguf_get_meta_data(ctx, data);
    gguf_free(ctx);
    const size_t before = requested;
    ctx = gguf_init_from_buffer(data, size, (struct gguf_init_params){.no_alloc = true});
    assert_non_null(ctx);
    assert_int_equal(gguf_get_n_kv(ctx), N);
    assert_int_equal(gguf_get_val_i32(ctx, gguf_find_key(ctx, "key.77777")), 77777);
    assert_true(requested - before < 40 * size);
    gguf_free(ctx);
    free(data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_truncated_at_every_byte),
        cmocka_unit_test(test_flipped_bits),
        cmocka_unit_test(test_every_byte_extreme),
        cmocka_unit_test(test_bad_headers),
        cmocka_unit_test(test_counts_that_do_not_fit),
        cmocka_unit_test(test_bad_pairs),
        cmocka_unit_test(test_bad_alignments),
        cmocka_unit_test(test_bad_tensors),
        cmocka_unit_test(test_sum_of_sizes_overflows),
        cmocka_unit_test(test_data_that_is_not_there),
        cmocka_unit_test(test_callback_that_promises_too_much),
        cmocka_unit_test(test_callback_that_lies_about_its_count),
        cmocka_unit_test(test_every_allocation_fails),
        cmocka_unit_test(test_many_names),
    };
    ggml_log_set(ignore_log, NULL);
    if (getenv("GGML_TEST_SEED")) seed = strtoull(getenv("GGML_TEST_SEED"), NULL, 10) | 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
