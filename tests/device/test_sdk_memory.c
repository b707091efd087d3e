// SPDX-License-Identifier: MIT
// Inside a plugin: buffers come from the attached host's memory. Linked to the SDK, not to the
// core.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "ggml-impl.h"
#include "ggml-plugin.h"

static int n_blocks;
static char last_error[1024];
static bool has_extension;

static void *host_alloc(const struct ggml_host_table *host, size_t size, size_t alignment) {
    (void)host;
    (void)alignment;
    n_blocks++;
    return malloc(size);
}

static void host_free(const struct ggml_host_table *host, void *memory) {
    (void)host;
    if (memory) n_blocks--;
    free(memory);
}

static void host_error(const struct ggml_host_table *host, int32_t status, const char *text) {
    (void)host;
    (void)status;
    strncpy(last_error, text, sizeof(last_error) - 1);
}

static void *memory_base(ggml_backend_buffer_t buffer) {
    return buffer->context;
}

static struct ggml_backend_buffer_type host_type;

static ggml_backend_buffer_type_t buffer_type(const struct ggml_host_table *table) {
    assert_ptr_equal(table, ggml_sdk_host());
    return &host_type;
}

static int32_t buffer_from_ptr(const struct ggml_host_table *host_given, void *ptr, size_t size,
                               ggml_backend_buffer_t *out_buffer) {
    assert_ptr_equal(host_given, ggml_sdk_host());
    static const struct ggml_buffer_table table = {
        .size = sizeof(table), .free = ggml_sdk_buffer_free, .get_base = memory_base};
    *out_buffer = ggml_sdk_buffer_new(&host_type, &table, ptr, size);
    return *out_buffer ? GGML_HOST_OK : GGML_HOST_OUT_OF_MEMORY;
}

static const struct ggml_extension_host_memory memory_table = {
    .size = sizeof(memory_table),
    .revision = GGML_EXTENSION_HOST_MEMORY_REVISION,
    .buffer_type = buffer_type,
    .buffer_from_ptr = buffer_from_ptr,
};

static const void *host_extension(const struct ggml_host_table *host, const char *id,
                                  uint32_t min_revision) {
    (void)host;
    const bool known = has_extension && strcmp(id, GGML_EXTENSION_HOST_MEMORY) == 0;
    return known && min_revision <= GGML_EXTENSION_HOST_MEMORY_REVISION ? &memory_table : NULL;
}

static const struct ggml_host_table host = {
    .size = sizeof(host),
    .set_error = host_error,
    .alloc = host_alloc,
    .free = host_free,
    .get_extension = host_extension,
};

static struct ggml_backend_reg reg;

static ggml_backend_reg_t get_reg(void) {
    return &reg;
}

static struct ggml_sdk_plugin plugin = {.start = get_reg};

static int attach(void **state) {
    const struct ggml_plugin_table *table;
    const int status = ggml_sdk_enter(&plugin, &host, &table);
    *state = (void *)(uintptr_t)table;
    has_extension = true;
    last_error[0] = '\0';
    return status;
}

static int detach(void **state) {
    const struct ggml_plugin_table *table = *state;
    table->shutdown(table, &host);
    return n_blocks;
}

static void test_host_types_are_the_hosts(void **state) {
    (void)state;
    char memory[16];
    assert_ptr_equal(ggml_backend_cpu_buffer_type(), &host_type);
    ggml_backend_buffer_t buffer = ggml_backend_cpu_buffer_from_ptr(memory, sizeof(memory));
    assert_ptr_equal(ggml_backend_buffer_get_base(buffer), memory);
    assert_int_equal(n_blocks, 1);
    ggml_backend_buffer_free(buffer);
    assert_int_equal(n_blocks, 0);
}

static void test_host_without_the_extension(void **state) {
    (void)state;
    char memory[16];
    has_extension = false;
    assert_null(ggml_backend_cpu_buffer_type());
    assert_non_null(strstr(last_error, "ggml.host-memory"));
    assert_null(ggml_backend_cpu_buffer_from_ptr(memory, sizeof(memory)));
    assert_non_null(strstr(last_error, "buffer_from_ptr"));
}

// --- a second host that leaves while its service is in use ---------------------------------------

static atomic_bool is_inside, is_leaving, has_ended;

static void wait_until(const atomic_bool *flag) {
    while (!atomic_load(flag))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

// Takes longer than a shutdown that doesn't wait. What the plugin asks for meanwhile the first host
// gives.
static void *slow_alloc(const struct ggml_host_table *table, size_t size, size_t alignment) {
    atomic_store(&is_inside, true);
    wait_until(&is_leaving);
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    while (ggml_sdk_host() != &host)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    atomic_store(&has_ended, true);
    return host_alloc(table, size, alignment);
}

static const struct ggml_host_table slow = {
    .size = sizeof(slow),
    .set_error = host_error,
    .alloc = slow_alloc,
    .free = host_free,
};

static void *allocate(void *unused) {
    (void)unused;
    return ggml_aligned_malloc(64);
}

static void test_a_host_in_use_stays(void **state) {
    const struct ggml_plugin_table *table = *state;
    void *memory;
    pthread_t thread;
    assert_int_equal(ggml_sdk_enter(&plugin, &slow, &table), GGML_HOST_OK);
    assert_ptr_equal(ggml_sdk_host(), &slow);
    assert_int_equal(pthread_create(&thread, NULL, allocate, NULL), 0);
    wait_until(&is_inside);
    atomic_store(&is_leaving, true);
    table->shutdown(table, &slow);
    assert_true(atomic_load(&has_ended));
    pthread_join(thread, &memory);
    assert_non_null(memory);
    assert_ptr_equal(ggml_sdk_host(), &host);
    ggml_aligned_free(memory, 64);
    assert_ptr_equal(ggml_sdk_host_hold(), &host); // several at once, and none in its place
    assert_ptr_equal(ggml_sdk_host_hold(), &host);
    ggml_sdk_host_release(&host);
    ggml_sdk_host_release(NULL);
    ggml_sdk_host_release(&host);
}

static void test_without_a_host(void **state) {
    (void)state;
    static const struct ggml_buffer_table none = {.size = sizeof(none)};
    assert_null(ggml_backend_cpu_buffer_type());
    assert_null(ggml_sdk_buffer_new(&host_type, &none, NULL, 0));
    assert_null(ggml_sdk_host_hold());
    assert_null(ggml_sdk_config("GGML_FIXTURE"));
    assert_false(ggml_sdk_topology(&(struct ggml_host_topology){.size = 8}));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_host_types_are_the_hosts, attach, detach),
        cmocka_unit_test_setup_teardown(test_host_without_the_extension, attach, detach),
        cmocka_unit_test_setup_teardown(test_a_host_in_use_stays, attach, detach),
        cmocka_unit_test(test_without_a_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
