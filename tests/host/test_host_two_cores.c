// SPDX-License-Identifier: MIT
// Two copies of the core in one process: this program is linked to the static one and exports
// nothing, and opens the shared one. Both load the same plugin and use it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/sanitizer.h"
#include "ggml-backend-impl.h"
#include "support/plugin_dir.h"

enum { ROUNDS = 30 };

static struct plugin_dir dir;

// The functions of one copy.
struct core {
    enum ggml_host_status (*load)(const char *path, ggml_backend_reg_t *out_reg);
    enum ggml_host_status (*unload)(ggml_backend_reg_t reg);
    ggml_backend_t (*init_by_name)(const char *name, const char *params);
    ggml_backend_buffer_t (*alloc_buffer)(ggml_backend_t backend, size_t size);
    void (*free_buffer)(ggml_backend_buffer_t buffer);
    void (*free)(ggml_backend_t backend);
    enum ggml_status (*compute)(ggml_backend_t backend, struct ggml_cgraph *graph);
    ggml_backend_buffer_type_t (*cpu_buffer_type)(void);
    const char *path; // of the plugin
    ggml_backend_reg_t reg;
    ggml_backend_t backend;
    ggml_backend_buffer_t buffer;
};

static void find(void *library, const char *name, void *out_function) {
    void *symbol = dlsym(library, name);
    assert_non_null(symbol);
    memcpy(out_function, &symbol, sizeof(symbol));
}

static void fill_shared(struct core *core, void *library) {
    find(library, "ggml_plugin_load", &core->load);
    find(library, "ggml_plugin_unload", &core->unload);
    find(library, "ggml_backend_init_by_name", &core->init_by_name);
    find(library, "ggml_backend_alloc_buffer", &core->alloc_buffer);
    find(library, "ggml_backend_buffer_free", &core->free_buffer);
    find(library, "ggml_backend_free", &core->free);
    find(library, "ggml_backend_graph_compute", &core->compute);
    find(library, "ggml_backend_cpu_buffer_type", &core->cpu_buffer_type);
}

static void use(struct core *core) {
    assert_int_equal(core->load(plugin_dir_path(&dir, "ggml-null.so"), &core->reg), GGML_HOST_OK);
    core->backend = core->init_by_name("NULL0", NULL);
    assert_non_null(core->backend);
    core->buffer = core->alloc_buffer(core->backend, 4096);
    assert_non_null(core->buffer);
    assert_int_equal(core->unload(core->reg), GGML_HOST_BUSY);
}

static void leave(struct core *core) {
    core->free_buffer(core->buffer);
    core->free(core->backend);
    assert_int_equal(core->unload(core->reg), GGML_HOST_OK);
}

static const struct core linked_core = {
    ggml_plugin_load,
    ggml_plugin_unload,
    ggml_backend_init_by_name,
    ggml_backend_alloc_buffer,
    ggml_backend_buffer_free,
    ggml_backend_free,
    ggml_backend_graph_compute,
    ggml_backend_cpu_buffer_type,
    NULL,
    NULL,
    NULL,
    NULL,
};

static void test_two_cores_use_one_plugin(void **state) {
    (void)state;
    struct core linked = linked_core;
    struct core opened = {0};
    void *library = dlopen(SHARED_CORE, RTLD_NOW | RTLD_LOCAL);
    if (!library) fail_msg("%s", dlerror());
    plugin_dir_open(&dir);
    plugin_dir_add(&dir, NULL_PLUGIN, "ggml-null.so");
    fill_shared(&opened, library);
    assert_true(opened.cpu_buffer_type() != linked.cpu_buffer_type());
    for (int i = 0; i < 3; ++i) {
        use(&linked);
        use(&opened);
        assert_true(linked.reg == opened.reg);
        leave(i % 2 ? &opened : &linked);
        assert_true(is_mapped("ggml-null.so"));
        leave(i % 2 ? &linked : &opened);
        assert_false(is_mapped("ggml-null.so"));
    }
    plugin_dir_close(&dir);
}

// Loads, uses and unloads all the time; returns its core if something failed.
static void *use_often(void *argument) {
    struct core *core = argument;
    for (int i = 0; i < ROUNDS; ++i) {
        if (core->load(core->path, &core->reg) != GGML_HOST_OK) return core;
        for (int k = 0; k < ROUNDS; ++k) {
            core->backend = core->init_by_name("NULL0", NULL);
            core->buffer = core->backend ? core->alloc_buffer(core->backend, 64) : NULL;
            if (!core->buffer) return core;
            core->free_buffer(core->buffer);
            core->free(core->backend);
        }
        if (core->unload(core->reg) != GGML_HOST_OK) return core;
    }
    return NULL;
}

// Whichever attached last gives the plugin memory, and leaves while the other one's calls use that.
static void test_two_cores_on_two_threads(void **state) {
    (void)state;
    struct core linked = linked_core, opened = {0};
    void *library = dlopen(SHARED_CORE, RTLD_NOW | RTLD_LOCAL), *failed;
    pthread_t thread;
    if (!library) fail_msg("%s", dlerror());
    plugin_dir_open(&dir);
    plugin_dir_add(&dir, NULL_PLUGIN, "ggml-null.so");
    fill_shared(&opened, library);
    linked.path = opened.path = plugin_dir_path(&dir, "ggml-null.so");
    // Threads that map and unmap it in turn are ordered by a lock of the linker that libtsan
    // doesn't know.
    void *kept = GGML_THREAD_SANITIZER ? dlopen(linked.path, RTLD_NOW | RTLD_LOCAL) : NULL;
    assert_int_equal(pthread_create(&thread, NULL, use_often, &opened), 0);
    assert_null(use_often(&linked));
    pthread_join(thread, &failed);
    assert_null(failed);
    if (kept) dlclose(kept);
    assert_false(is_mapped("ggml-null.so"));
    plugin_dir_close(&dir);
}

// F2 of a security review: the linker knew the second copy's first file by the name that the first
// copy had given to its own. Runs before anything else has been loaded.
static void test_f2_each_core_gets_its_own_file(void **state) {
    (void)state;
    ggml_backend_reg_t first = NULL, second = NULL;
    struct core opened = {0};
    void *library = dlopen(SHARED_CORE, RTLD_NOW | RTLD_LOCAL);
    if (!library) fail_msg("%s", dlerror());
    plugin_dir_open(&dir);
    plugin_dir_add(&dir, FIXTURES "/ggml-marker.so", "ggml-n1.so");
    plugin_dir_add(&dir, FIXTURES "/ggml-other.so", "ggml-n2.so");
    fill_shared(&opened, library);
    assert_int_equal(ggml_plugin_load(plugin_dir_path(&dir, "ggml-n1.so"), &first), GGML_HOST_OK);
    assert_int_equal(opened.load(plugin_dir_path(&dir, "ggml-n2.so"), &second), GGML_HOST_OK);
    assert_string_equal(ggml_backend_reg_name(first), "marker");
    assert_string_equal(second->table->get_name(second), "other");
    assert_int_equal(ggml_plugin_unload(first), GGML_HOST_OK);
    assert_int_equal(opened.unload(second), GGML_HOST_OK);
    plugin_dir_close(&dir);
}

// What a plugin's queued work failed with is told to the host that waits for it, whichever attached
// last.
static void test_a_late_failure_reaches_its_caller(void **state) {
    (void)state;
    ggml_backend_reg_t first = NULL, second = NULL;
    struct core opened = {0};
    enum ggml_host_status (*last_status)(void) = NULL;
    void *library = dlopen(SHARED_CORE, RTLD_NOW | RTLD_LOCAL);
    if (!library) fail_msg("%s", dlerror());
    plugin_dir_open(&dir);
    plugin_dir_add(&dir, FIXTURES "/ggml-waits.so", "ggml-waits.so");
    fill_shared(&opened, library);
    find(library, "ggml_last_status", &last_status);
    const char *path = plugin_dir_path(&dir, "ggml-waits.so");
    assert_int_equal(ggml_plugin_load(path, &first), GGML_HOST_OK);
    assert_int_equal(opened.load(path, &second), GGML_HOST_OK);
    opened.backend = opened.init_by_name("waits0", NULL);
    ggml_backend_t stream = ggml_backend_init_by_name("waits0", NULL);
    struct ggml_context *context = ggml_init((struct ggml_init_params){1 << 20, NULL, true});
    struct ggml_cgraph *graph = ggml_new_graph(context);
    assert_non_null(graph);
    setenv("GGML_WAITS_MODE", "fail", 1);
    ggml_clear_error();
    assert_int_equal(ggml_backend_graph_compute(stream, graph), GGML_STATUS_FAILED);
    assert_int_equal(ggml_last_status(), GGML_HOST_DEVICE_LOST);
    assert_int_equal(opened.compute(opened.backend, graph), GGML_STATUS_FAILED);
    assert_int_equal(last_status(), GGML_HOST_DEVICE_LOST);
    setenv("GGML_WAITS_MODE", "fail-silently", 1); // by its status alone
    ggml_clear_error();
    assert_int_equal(ggml_backend_graph_compute(stream, graph), GGML_STATUS_FAILED);
    assert_int_equal(ggml_last_status(), GGML_HOST_DEVICE_LOST);
    assert_int_equal(opened.compute(opened.backend, graph), GGML_STATUS_FAILED);
    assert_int_equal(last_status(), GGML_HOST_DEVICE_LOST);
    setenv("GGML_WAITS_MODE", "recover", 1);
    assert_int_equal(ggml_backend_graph_compute(stream, graph), GGML_STATUS_SUCCESS);
    assert_int_equal(opened.compute(opened.backend, graph), GGML_STATUS_SUCCESS);
    unsetenv("GGML_WAITS_MODE");
    ggml_free(context);
    ggml_backend_free(stream);
    opened.free(opened.backend);
    assert_int_equal(ggml_plugin_unload(first), GGML_HOST_OK);
    assert_int_equal(opened.unload(second), GGML_HOST_OK);
    plugin_dir_close(&dir);
}

static void test_this_program_exports_nothing(void **state) {
    (void)state;
    assert_null(dlsym(RTLD_DEFAULT, "ggml_backend_init_best"));
    assert_null(dlsym(RTLD_DEFAULT, "ggml_plugin_load"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f2_each_core_gets_its_own_file),
        cmocka_unit_test(test_this_program_exports_nothing),
        cmocka_unit_test(test_two_cores_use_one_plugin),
        cmocka_unit_test(test_two_cores_on_two_threads),
        cmocka_unit_test(test_a_late_failure_reaches_its_caller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
