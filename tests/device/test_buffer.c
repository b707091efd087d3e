// SPDX-License-Identifier: MIT
// Buffer types, buffers, multi-buffers, the host's own memory.
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "fake_device.h"

static void test_type_forwards(void **state) {
    (void)state;
    struct fake_device fake;
    fake_device_init(&fake, "FAKE");
    fake.max_size = 1000;
    fake.padding = 24;
    const struct ggml_tensor tensor = fake_tensor("t", 4, 2);
    assert_string_equal(ggml_backend_buft_name(&fake.buft), "FAKE");
    assert_int_equal(ggml_backend_buft_get_alignment(&fake.buft), 64);
    assert_int_equal(ggml_backend_buft_get_max_size(&fake.buft), 1000);
    assert_int_equal(ggml_backend_buft_get_alloc_size(&fake.buft, &tensor), 32 + 24);
    assert_false(ggml_backend_buft_is_host(&fake.buft));
    assert_true(ggml_backend_buft_is_host(&fake.host_buft));
    assert_ptr_equal(ggml_backend_buft_get_device(&fake.buft), &fake.device);
}

static void test_type_defaults(void **state) {
    (void)state;
    struct fake_device fake;
    fake_device_init(&fake, "FAKE");
    const struct ggml_tensor tensor = fake_tensor("t", 4, 2);
    fake.buft_table.get_max_size = NULL;
    fake.buft_table.get_alloc_size = NULL;
    fake.buft_table.is_host = NULL;
    assert_quiet(assert_int_equal(ggml_backend_buft_get_max_size(&fake.buft), SIZE_MAX));
    assert_quiet(assert_int_equal(ggml_backend_buft_get_alloc_size(&fake.buft, &tensor), 32));
    assert_quiet(assert_false(ggml_backend_buft_is_host(&fake.buft)));
}

static void test_type_null(void **state) {
    (void)state;
    struct fake_device fake;
    fake_device_init(&fake, "FAKE");
    const struct ggml_tensor tensor = fake_tensor("t", 4, 2);
    const int invalid = GGML_HOST_INVALID_ARGUMENT;
    assert_refused(invalid, "buft_name", assert_non_null(ggml_backend_buft_name(NULL)));
    assert_refused(invalid, "alloc_buffer", assert_null(ggml_backend_buft_alloc_buffer(NULL, 8)));
    assert_refused(invalid, "alignment",
                   assert_int_equal(ggml_backend_buft_get_alignment(NULL), 32));
    assert_refused(invalid, "max_size", assert_int_equal(ggml_backend_buft_get_max_size(NULL), 0));
    assert_refused(invalid, "alloc_size",
                   assert_int_equal(ggml_backend_buft_get_alloc_size(NULL, &tensor), 0));
    assert_refused(invalid, "alloc_size",
                   assert_int_equal(ggml_backend_buft_get_alloc_size(&fake.buft, NULL), 0));
    assert_refused(invalid, "is_host", assert_false(ggml_backend_buft_is_host(NULL)));
    assert_refused(invalid, "get_device", assert_null(ggml_backend_buft_get_device(NULL)));
}

// As ggml's private headers lay a buffer type out.
struct their_type {
    const char *(*get_name)(struct their_type *type);
    void (*entries[7])(void);
    void *device, *context;
};

static const char *their_name(struct their_type *type) {
    return type->context;
}

static void test_type_of_other_headers(void **state) {
    (void)state;
    struct their_type theirs = {.get_name = their_name, .context = "theirs"};
    struct ggml_backend_buffer_type empty = {.table = NULL};
    ggml_backend_buffer_type_t types[] = {(ggml_backend_buffer_type_t)(void *)&theirs, &empty};
    struct ggml_context *ctx = ggml_init((struct ggml_init_params){1 << 12, NULL, true});
    ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 8);
    const struct ggml_tensor tensor = fake_tensor("t", 4, 2);
    const int invalid = GGML_HOST_INVALID_ARGUMENT;
    for (int i = 0; i < 2; ++i) {
        ggml_backend_buffer_type_t buft = types[i];
        assert_refused(invalid, "private", assert_non_null(ggml_backend_buft_name(buft)));
        assert_refused(invalid, "private", assert_null(ggml_backend_buft_alloc_buffer(buft, 8)));
        assert_refused(invalid, "private", ggml_backend_buft_get_alignment(buft));
        assert_refused(invalid, "private", ggml_backend_buft_get_max_size(buft));
        assert_refused(invalid, "private", ggml_backend_buft_get_alloc_size(buft, &tensor));
        assert_refused(invalid, "private", assert_false(ggml_backend_buft_is_host(buft)));
        assert_refused(invalid, "private", assert_null(ggml_backend_buft_get_device(buft)));
        assert_refused(invalid, "private", assert_null(ggml_gallocr_new(buft)));
        assert_refused(invalid, "private",
                       assert_null(ggml_backend_alloc_ctx_tensors_from_buft(ctx, buft)));
    }
    ggml_free(ctx);
}

static void test_type_misbehaves(void **state) {
    (void)state;
    struct fake_device fake;
    fake_device_init(&fake, "FAKE");
    const struct ggml_tensor tensor = fake_tensor("t", 4, 2);
    const int bad = GGML_HOST_BAD_PLUGIN;
    fake.padding = (size_t)-1;
    assert_refused(bad, "FAKE",
                   assert_int_equal(ggml_backend_buft_get_alloc_size(&fake.buft, &tensor), 32));
    fake.max_size = 0;
    assert_refused(bad, "FAKE",
                   assert_int_equal(ggml_backend_buft_get_max_size(&fake.buft), SIZE_MAX));
    const size_t wrong[] = {0, 3, 48, SIZE_MAX};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
        fake.alignment = wrong[i];
        assert_refused(bad, "power of two",
                       assert_int_equal(ggml_backend_buft_get_alignment(&fake.buft), 32));
        assert_refused(bad, "power of two",
                       assert_null(ggml_backend_buft_alloc_buffer(&fake.buft, 8)));
    }
    fake.name = NULL;
    assert_refused(bad, "no name",
                   assert_string_equal(ggml_backend_buft_name(&fake.buft), "unnamed"));
    fake.buft_table.get_name = NULL;
    assert_refused(bad, "no name",
                   assert_string_equal(ggml_backend_buft_name(&fake.buft), "unnamed"));
    fake.buft_table.get_alignment = NULL;
    assert_refused(bad, "unnamed",
                   assert_int_equal(ggml_backend_buft_get_alignment(&fake.buft), 32));
}

static void test_alloc_fails(void **state) {
    (void)state;
    struct fake_device fake;
    fake_device_init(&fake, "FAKE");
    fake.fails = true;
    assert_refused(GGML_HOST_OUT_OF_MEMORY, "FAKE could not allocate 100 bytes",
                   assert_null(ggml_backend_buft_alloc_buffer(&fake.buft, 100)));
    fake.reason = "the device fell off";
    assert_refused(GGML_HOST_DEVICE_LOST, "the device fell off",
                   assert_null(ggml_backend_buft_alloc_buffer(&fake.buft, 100)));
    fake.fails = false;
    fake.short_by = 1;
    assert_refused(GGML_HOST_BAD_PLUGIN, "99 bytes instead of 100",
                   assert_null(ggml_backend_buft_alloc_buffer(&fake.buft, 100)));
    assert_int_equal(fake_device_alive(&fake), 0);
    fake.buft_table.alloc_buffer = NULL;
    assert_refused(GGML_HOST_UNSUPPORTED, "alloc_buffer",
                   assert_null(ggml_backend_buft_alloc_buffer(&fake.buft, 100)));
}

static void test_buffer_life(void **state) {
    (void)state;
    struct fake_device fake;
    fake_device_init(&fake, "FAKE");
    ggml_backend_buffer_t buffer = ggml_backend_buft_alloc_buffer(&fake.buft, 100);
    struct ggml_tensor tensor = fake_tensor("t", 4, 2);
    assert_non_null(buffer);
    assert_string_equal(ggml_backend_buffer_name(buffer), "FAKE");
    assert_ptr_equal(ggml_backend_buffer_get_type(buffer), &fake.buft);
    assert_int_equal(ggml_backend_buffer_get_size(buffer), 100);
    assert_int_equal(ggml_backend_buffer_get_usage(buffer), GGML_BACKEND_BUFFER_USAGE_ANY);
    assert_int_equal(ggml_backend_buffer_get_alignment(buffer), 64);
    assert_int_equal(ggml_backend_buffer_get_max_size(buffer), SIZE_MAX);
    assert_int_equal(ggml_backend_buffer_get_alloc_size(buffer, &tensor), 32);
    assert_false(ggml_backend_buffer_is_host(buffer));
    unsigned char *memory = fake_memory(ggml_backend_buffer_get_base(buffer));
    ggml_backend_buffer_clear(buffer, 7);
    assert_int_equal(memory[99], 7);
    ggml_backend_buffer_reset(buffer);
    assert_int_equal(fake.calls.reset, 1);
    ggml_backend_buffer_free(buffer);
    assert_int_equal(fake_device_alive(&fake), 0);
    assert_quiet(ggml_backend_buffer_free(NULL));
}

static void test_buffer_null(void **state) {
    (void)state;
    struct ggml_tensor tensor = fake_tensor("t", 4, 2);
    static const struct ggml_buffer_table none = {.size = sizeof(none)};
    const int invalid = GGML_HOST_INVALID_ARGUMENT;
    assert_refused(invalid, "buffer_new", assert_null(ggml_sdk_buffer_new(NULL, &none, NULL, 0)));
    assert_refused(invalid, "buffer_name", assert_non_null(ggml_backend_buffer_name(NULL)));
    assert_refused(invalid, "get_type", assert_null(ggml_backend_buffer_get_type(NULL)));
    assert_refused(invalid, "get_size", assert_int_equal(ggml_backend_buffer_get_size(NULL), 0));
    assert_refused(invalid, "get_usage", assert_int_equal(ggml_backend_buffer_get_usage(NULL), 0));
    assert_refused(invalid, "get_base", assert_null(ggml_backend_buffer_get_base(NULL)));
    assert_refused(invalid, "get_alignment", ggml_backend_buffer_get_alignment(NULL));
    assert_refused(invalid, "get_max_size", ggml_backend_buffer_get_max_size(NULL));
    assert_refused(invalid, "get_alloc_size", ggml_backend_buffer_get_alloc_size(NULL, &tensor));
    assert_refused(invalid, "is_host", assert_false(ggml_backend_buffer_is_host(NULL)));
    assert_refused(invalid, "clear", ggml_backend_buffer_clear(NULL, 0));
    assert_refused(invalid, "reset", ggml_backend_buffer_reset(NULL));
    assert_refused(invalid, "set_usage", ggml_backend_buffer_set_usage(NULL, 0));
    assert_refused(invalid, "is_multi", assert_false(ggml_backend_buffer_is_multi_buffer(NULL)));
    assert_refused(
        invalid, "init_tensor",
        assert_int_equal(ggml_backend_buffer_init_tensor(NULL, &tensor), GGML_STATUS_FAILED));
}

static void *no_base(ggml_backend_buffer_t buffer) {
    (void)buffer;
    return NULL;
}

static void test_buffer_without_entries(void **state) {
    (void)state;
    struct fake_device fake;
    fake_device_init(&fake, "FAKE");
    static const struct ggml_buffer_table none = {
        .size = sizeof(none), .free = ggml_sdk_buffer_free, .get_base = no_base};
    ggml_backend_buffer_t buffer = ggml_sdk_buffer_new(&fake.buft, &none, NULL, 16);
    struct ggml_tensor tensor = fake_tensor("t", 4, 1);
    assert_refused(GGML_HOST_BAD_PLUGIN, "base", assert_null(ggml_backend_buffer_get_base(buffer)));
    assert_quiet(assert_int_equal(ggml_backend_buffer_init_tensor(buffer, &tensor), 0));
    assert_quiet(ggml_backend_buffer_reset(buffer));
    assert_refused(GGML_HOST_UNSUPPORTED, "FAKE does not offer clear",
                   ggml_backend_buffer_clear(buffer, 1));
    assert_refused(GGML_HOST_INVALID_ARGUMENT, "usage 3", ggml_backend_buffer_set_usage(buffer, 3));
    assert_refused(GGML_HOST_INVALID_ARGUMENT, "usage -1",
                   ggml_backend_buffer_set_usage(buffer, -1));
    ggml_backend_buffer_free(buffer);
}

static void test_buffer_misbehaves(void **state) {
    (void)state;
    struct fake_device fake;
    fake_device_init(&fake, "FAKE");
    ggml_backend_buffer_t buffer = ggml_backend_buft_alloc_buffer(&fake.buft, 64);
    struct ggml_tensor tensor = fake_tensor("t", 4, 1);
    fake.no_base = true;
    assert_refused(GGML_HOST_BAD_PLUGIN, "FAKE", assert_null(ggml_backend_buffer_get_base(buffer)));
    fake.init_answer = 77;
    assert_refused(
        GGML_HOST_BAD_PLUGIN, "unknown status 77",
        assert_int_equal(ggml_backend_buffer_init_tensor(buffer, &tensor), GGML_STATUS_FAILED));
    fake.init_answer = GGML_HOST_OUT_OF_MEMORY;
    assert_refused(GGML_HOST_OUT_OF_MEMORY, "FAKE",
                   ggml_backend_buffer_init_tensor(buffer, &tensor));
    ggml_backend_buffer_free(buffer);
}

static void test_empty_buffer_never_reaches_the_plugin(void **state) {
    (void)state;
    struct fake_device fake;
    fake_device_init(&fake, "FAKE");
    ggml_backend_buffer_t buffer = ggml_backend_buft_alloc_buffer(&fake.buft, 0);
    assert_non_null(buffer);
    assert_int_equal(fake.calls.alloc_buffer, 0);
    assert_quiet(assert_null(ggml_backend_buffer_get_base(buffer)));
    assert_quiet(ggml_backend_buffer_clear(buffer, 1));
    assert_string_equal(ggml_backend_buffer_name(buffer), "FAKE");
    ggml_backend_buffer_free(buffer);
    assert_int_equal(fake.calls.free_buffer, 0);
}

static void test_multi_buffer(void **state) {
    (void)state;
    struct fake_device fake;
    fake_device_init(&fake, "FAKE");
    ggml_backend_buffer_t members[2] = {ggml_backend_buft_alloc_buffer(&fake.buft, 10),
                                        ggml_backend_buft_alloc_buffer(&fake.host_buft, 20)};
    ggml_backend_buffer_t multi = ggml_backend_multi_buffer_alloc_buffer(members, 2);
    assert_true(ggml_backend_buffer_is_multi_buffer(multi));
    assert_false(ggml_backend_buffer_is_multi_buffer(members[0]));
    assert_ptr_equal(ggml_backend_buffer_get_type(multi), &fake.buft);
    assert_int_equal(ggml_backend_buffer_get_size(multi), 30);
    assert_quiet(assert_null(ggml_backend_buffer_get_base(multi)));
    ggml_backend_buffer_clear(multi, 9);
    assert_int_equal(((char *)ggml_backend_buffer_get_base(members[1]))[19], 9);
    ggml_backend_buffer_set_usage(multi, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    assert_int_equal(ggml_backend_buffer_get_usage(multi), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    assert_int_equal(ggml_backend_buffer_get_usage(members[1]), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    assert_refused(GGML_HOST_INVALID_ARGUMENT, "not a multi-buffer",
                   ggml_backend_multi_buffer_set_usage(members[0], 0));
    ggml_backend_buffer_free(multi);
    assert_int_equal(fake_device_alive(&fake), 0);
}

static void test_multi_buffer_refuses(void **state) {
    (void)state;
    struct fake_device fake;
    fake_device_init(&fake, "FAKE");
    static const struct ggml_buffer_table none = {
        .size = sizeof(none), .free = ggml_sdk_buffer_free, .get_base = no_base};
    ggml_backend_buffer_t huge = ggml_sdk_buffer_new(&fake.buft, &none, NULL, SIZE_MAX);
    ggml_backend_buffer_t members[2] = {huge, huge};
    assert_refused(GGML_HOST_OUT_OF_RANGE, "overflow",
                   assert_null(ggml_backend_multi_buffer_alloc_buffer(members, 2)));
    assert_refused(GGML_HOST_INVALID_ARGUMENT, "list",
                   assert_null(ggml_backend_multi_buffer_alloc_buffer(NULL, 1)));
    assert_refused(GGML_HOST_INVALID_ARGUMENT, "list",
                   assert_null(ggml_backend_multi_buffer_alloc_buffer(members, 0)));
    members[1] = NULL;
    assert_refused(GGML_HOST_INVALID_ARGUMENT, "member",
                   assert_null(ggml_backend_multi_buffer_alloc_buffer(members, 2)));
    ggml_backend_buffer_free(huge);
}

static void test_host_memory(void **state) {
    (void)state;
    ggml_backend_buffer_type_t buft = ggml_backend_cpu_buffer_type();
    assert_ptr_equal(buft, ggml_backend_cpu_buffer_type());
    assert_string_equal(ggml_backend_buft_name(buft), "CPU");
    assert_int_equal(ggml_backend_buft_get_alignment(buft), 32);
    assert_true(ggml_backend_buft_is_host(buft));
    assert_null(ggml_backend_buft_get_device(buft));
    ggml_backend_buffer_t buffer = ggml_backend_buft_alloc_buffer(buft, 100);
    unsigned char *base = ggml_backend_buffer_get_base(buffer);
    assert_int_equal((uintptr_t)base % 64, 0);
    ggml_backend_buffer_clear(buffer, 3);
    assert_int_equal(base[99], 3);
    ggml_backend_buffer_free(buffer);
    assert_refused(GGML_HOST_OUT_OF_MEMORY, "host buffer",
                   assert_null(ggml_backend_buft_alloc_buffer(buft, SIZE_MAX)));
}

static void test_mapped_memory(void **state) {
    (void)state;
    _Alignas(32) char memory[128] = {0};
    ggml_backend_buffer_t buffer = ggml_backend_cpu_buffer_from_ptr(memory, sizeof(memory));
    assert_string_equal(ggml_backend_buffer_name(buffer), "CPU_Mapped");
    assert_ptr_equal(ggml_backend_buffer_get_base(buffer), memory);
    assert_true(ggml_backend_buffer_is_host(buffer));
    ggml_backend_buffer_clear(buffer, 1);
    assert_int_equal(memory[127], 1);
    ggml_backend_buffer_free(buffer);
    assert_refused(GGML_HOST_INVALID_ARGUMENT, "aligned to 32",
                   assert_null(ggml_backend_cpu_buffer_from_ptr(memory + 16, 32)));
    assert_refused(GGML_HOST_INVALID_ARGUMENT, "NULL",
                   assert_null(ggml_backend_cpu_buffer_from_ptr(NULL, 32)));
    buffer = ggml_backend_cpu_buffer_from_ptr(memory, 0);
    assert_non_null(buffer);
    ggml_backend_buffer_free(buffer);
}

static bool countdown(void *context) {
    int *left = context;
    return (*left)-- > 0;
}

static void test_failing_allocations_leak_nothing(void **state) {
    (void)state;
    struct fake_device fake;
    fake_device_init(&fake, "FAKE");
    ggml_backend_buffer_t multi = NULL;
    for (int budget = 0; !multi; ++budget) {
        int left = budget;
        assert_in_range(budget, 0, 20);
        ggml_mem_set_fault_hook(countdown, &left);
        ggml_backend_buffer_t members[2] = {ggml_backend_buft_alloc_buffer(&fake.buft, 8), NULL};
        members[1] = ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), 8);
        if (members[0] && members[1]) multi = ggml_backend_multi_buffer_alloc_buffer(members, 2);
        ggml_mem_set_fault_hook(NULL, NULL);
        if (multi) break;
        assert_int_equal(ggml_last_status(), GGML_HOST_OUT_OF_MEMORY);
        ggml_backend_buffer_free(members[0]);
        ggml_backend_buffer_free(members[1]);
        assert_int_equal(fake_device_alive(&fake), 0);
    }
    ggml_backend_buffer_free(multi);
    assert_int_equal(fake_device_alive(&fake), 0);
}

// --- views of shared weights ---------------------------------------------------------------------

static struct { atomic_int inside, most; } shared;

// Gives others the time to come in too.
static int32_t slow_init(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor) {
    (void)buffer, (void)tensor;
    const int inside = atomic_fetch_add(&shared.inside, 1) + 1;
    if (inside > atomic_load(&shared.most)) atomic_store(&shared.most, inside);
    sched_yield();
    atomic_fetch_sub(&shared.inside, 1);
    return GGML_HOST_OK;
}

// NULL if the device has prepared every view.
static void *make_views(void *argument) {
    struct ggml_tensor *weights = argument;
    for (int i = 0; i < 2000; ++i) {
        struct ggml_tensor view = fake_view(weights, 2, 8);
        if (ggml_backend_view_init(&view) != GGML_STATUS_SUCCESS) return argument;
    }
    return NULL;
}

static void test_threads_take_turns_at_preparing(void **state) {
    (void)state;
    enum { N = 3 };
    struct fake_device fake;
    fake_device_init(&fake, "FAKE");
    fake.buffer_table.init_tensor = slow_init;
    ggml_backend_buffer_t buffer = ggml_backend_buft_alloc_buffer(&fake.buft, 64);
    struct ggml_tensor weights = fake_tensor("w", 4, 4);
    fake_place(buffer, &weights, 0);
    pthread_t threads[N];
    for (int i = 0; i < N; ++i)
        assert_int_equal(pthread_create(&threads[i], NULL, make_views, &weights), 0);
    for (int i = 0; i < N; ++i) {
        void *failed = NULL;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    assert_int_equal(atomic_load(&shared.most), 1);
    ggml_backend_buffer_free(buffer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_type_forwards),
        cmocka_unit_test(test_type_defaults),
        cmocka_unit_test(test_type_null),
        cmocka_unit_test(test_type_of_other_headers),
        cmocka_unit_test(test_type_misbehaves),
        cmocka_unit_test(test_alloc_fails),
        cmocka_unit_test(test_buffer_life),
        cmocka_unit_test(test_buffer_null),
        cmocka_unit_test(test_buffer_without_entries),
        cmocka_unit_test(test_buffer_misbehaves),
        cmocka_unit_test(test_empty_buffer_never_reaches_the_plugin),
        cmocka_unit_test(test_multi_buffer),
        cmocka_unit_test(test_multi_buffer_refuses),
        cmocka_unit_test(test_host_memory),
        cmocka_unit_test(test_mapped_memory),
        cmocka_unit_test(test_failing_allocations_leak_nothing),
        cmocka_unit_test(test_threads_take_turns_at_preparing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
