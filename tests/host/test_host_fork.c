// SPDX-License-Identifier: MIT
// Children of a fork, and a library that is closed. The findings' numbers are those of a security
// review.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fault.h"
#include "ggml-alloc.h"
#include "ggml-cpu.h"
#include "ggml-host.h"
#include "support/plugin_dir.h"

enum { N = 256, N_THREADS = 4, PATIENCE = 20 };

static struct plugin_dir dir;

static bool compute(ggml_backend_t backend) {
    const struct ggml_init_params params = {1 << 20, NULL, true};
    struct ggml_context *ctx = ggml_init(params);
    struct ggml_tensor *a = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, N, N);
    struct ggml_tensor *product = ggml_mul_mat(ctx, a, a);
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, product);
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(ctx, backend);
    ggml_backend_buffer_clear(buffer, 0);
    const bool good = ggml_backend_graph_compute(backend, graph) == GGML_STATUS_SUCCESS;
    ggml_backend_buffer_free(buffer);
    ggml_free(ctx);
    return good;
}

static ggml_backend_t new_stream(void) {
    ggml_backend_t backend = ggml_backend_cpu_init();
    if (backend) ggml_backend_cpu_set_n_threads(backend, N_THREADS);
    return backend;
}

static void expect_child(pid_t child) {
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status)) fail_msg("the child ended by signal %d", WTERMSIG(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_f13_a_child_computes(void **state) {
    (void)state;
    ggml_backend_t mine = new_stream(), idle = new_stream();
    assert_true(compute(mine) && compute(idle));
    ggml_backend_free(idle); // leaves a pool of threads for the next stream
    const pid_t child = fork();
    if (child == 0) {
        alarm(PATIENCE);
        ggml_backend_t own = new_stream();
        const bool good = own && compute(own) && compute(mine);
        ggml_backend_free(own);
        ggml_backend_free(mine);
        _exit(good ? 0 : 1);
    }
    expect_child(child);
    assert_true(compute(mine));
    ggml_backend_free(mine);
}

static pthread_t loads;
static sem_t may_go_on, is_loading;

static bool stop_in_linker(enum ggml_fault_point point, void *context) {
    (void)context;
    if (point == GGML_FAULT_LINK && pthread_equal(pthread_self(), loads)) {
        sem_post(&is_loading);
        sem_wait(&may_go_on);
    }
    return true;
}

static void *load(void *path) {
    loads = pthread_self();
    ggml_fault_set_hook(stop_in_linker, NULL);
    ggml_plugin_load(path, NULL);
    return NULL;
}

// While another thread of the parent is loading.
static void test_f13_a_child_loads_and_reports(void **state) {
    (void)state;
    char slow[600], other[600];
    pthread_t thread;
    plugin_dir_open(&dir);
    plugin_dir_add(&dir, FIXTURES "/ggml-marker.so", "ggml-marker.so");
    plugin_dir_add(&dir, FIXTURES "/ggml-gpu.so", "ggml-gpu.so");
    snprintf(slow, sizeof(slow), "%s", plugin_dir_path(&dir, "ggml-marker.so"));
    snprintf(other, sizeof(other), "%s", plugin_dir_path(&dir, "ggml-gpu.so"));
    sem_init(&may_go_on, 0, 0);
    sem_init(&is_loading, 0, 0);
    assert_int_equal(pthread_create(&thread, NULL, load, slow), 0);
    sem_wait(&is_loading);
    const pid_t child = fork();
    if (child == 0) {
        alarm(PATIENCE);
        ggml_fault_set_hook(NULL, NULL);
        bool good = ggml_plugin_load(other, NULL) == GGML_HOST_OK;
        ggml_plugin_report_t report = ggml_plugin_report_new();
        good = good && ggml_plugin_report_count(report) > 0;
        ggml_plugin_report_free(report);
        _exit(good ? 0 : 1);
    }
    sem_post(&may_go_on);
    pthread_join(thread, NULL);
    ggml_fault_set_hook(NULL, NULL);
    expect_child(child);
    unload_everything();
    plugin_dir_close(&dir);
}

static atomic_bool ask_on;

static void *ask_for_log(void *argument) {
    (void)argument;
    while (atomic_load(&ask_on))
        ggml_log_get(NULL, NULL);
    return NULL;
}

static void *ask_for_devices(void *argument) {
    (void)argument;
    while (atomic_load(&ask_on))
        ggml_backend_dev_count();
    return NULL;
}

// Locks and lists that other threads of the parent hold for moments only, at any of them.
static void test_f13_a_child_waits_for_nobody(void **state) {
    enum { CHILDREN = 40, SOON = 5 };
    (void)state;
    pthread_t threads[2];
    char path[600];
    plugin_dir_open(&dir);
    plugin_dir_add(&dir, FIXTURES "/ggml-marker.so", "ggml-marker.so");
    snprintf(path, sizeof(path), "%s", plugin_dir_path(&dir, "ggml-marker.so"));
    atomic_store(&ask_on, true);
    assert_int_equal(pthread_create(&threads[0], NULL, ask_for_log, NULL), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, ask_for_devices, NULL), 0);
    for (int i = 0; i < CHILDREN; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(SOON);
            ggml_log_get(NULL, NULL);
            ggml_backend_reg_t reg = NULL;
            const bool loaded = ggml_plugin_load(path, &reg) == GGML_HOST_OK;
            _exit(loaded && ggml_plugin_unload(reg) == GGML_HOST_OK ? 0 : 1);
        }
        expect_child(child);
    }
    atomic_store(&ask_on, false);
    for (int i = 0; i < 2; ++i)
        pthread_join(threads[i], NULL);
    plugin_dir_close(&dir);
}

static atomic_bool takes_long;
static sem_t is_asked;

// A lock of meta devices is held while it runs.
static struct ggml_backend_meta_split_state mirror(const struct ggml_tensor *tensor, void *user) {
    (void)tensor;
    (void)user;
    if (atomic_exchange(&takes_long, false)) {
        sem_post(&is_asked);
        usleep(100000);
    }
    return (struct ggml_backend_meta_split_state){.axis = GGML_BACKEND_SPLIT_AXIS_MIRRORED,
                                                  .n_segments = 1};
}

static void *compute_there(void *stream) {
    return compute(stream) ? stream : NULL;
}

static void test_f13_a_child_has_meta_devices(void **state) {
    (void)state;
    ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    ggml_backend_dev_t devices[] = {cpu, cpu};
    ggml_backend_dev_t meta = ggml_backend_meta_device(devices, 2, mirror, NULL);
    ggml_backend_t mine = ggml_backend_dev_init(meta, NULL);
    ggml_backend_t other = ggml_backend_dev_init(meta, NULL);
    pthread_t thread;
    void *computed;
    if (!compute(mine)) fail_msg("%s", ggml_last_error());
    sem_init(&is_asked, 0, 0);
    atomic_store(&takes_long, true);
    assert_int_equal(pthread_create(&thread, NULL, compute_there, other), 0);
    sem_wait(&is_asked);
    const pid_t child = fork();
    if (child == 0) {
        alarm(PATIENCE);
        _exit(compute(mine) ? 0 : 1);
    }
    expect_child(child);
    pthread_join(thread, &computed);
    assert_non_null(computed);
    assert_true(compute(mine));
    ggml_backend_free(other);
    ggml_backend_free(mine);
}

static int compute_and_close(void) {
    void *library = dlopen(SHARED_CORE, RTLD_NOW | RTLD_LOCAL);
    ggml_backend_t (*init)(void);
    void (*set_threads)(ggml_backend_t backend, int n_threads);
    struct ggml_context *(*new_context)(struct ggml_init_params params);
    struct ggml_tensor *(*new_tensor)(struct ggml_context * ctx, enum ggml_type type, int64_t ne0,
                                      int64_t ne1);
    struct ggml_tensor *(*mul_mat)(struct ggml_context * ctx, struct ggml_tensor * a,
                                   struct ggml_tensor * b);
    struct ggml_cgraph *(*new_graph)(struct ggml_context * ctx);
    void (*expand)(struct ggml_cgraph * graph, struct ggml_tensor * tensor);
    enum ggml_status (*compute_graph)(ggml_backend_t backend, struct ggml_cgraph * graph);
    void (*free_stream)(ggml_backend_t backend);
    void (*free_context)(struct ggml_context * ctx);
    if (!library) return 1;
#define FIND(function, name)                                                                       \
    do {                                                                                           \
        void *symbol = dlsym(library, name);                                                       \
        if (!symbol) return 2;                                                                     \
        memcpy(&(function), &symbol, sizeof(symbol));                                              \
    } while (0)
    FIND(init, "ggml_backend_cpu_init");
    FIND(set_threads, "ggml_backend_cpu_set_n_threads");
    FIND(new_context, "ggml_init");
    FIND(new_tensor, "ggml_new_tensor_2d");
    FIND(mul_mat, "ggml_mul_mat");
    FIND(new_graph, "ggml_new_graph");
    FIND(expand, "ggml_build_forward_expand");
    FIND(compute_graph, "ggml_backend_graph_compute");
    FIND(free_stream, "ggml_backend_free");
    FIND(free_context, "ggml_free");
    struct ggml_context *ctx = new_context((struct ggml_init_params){4 << 20, NULL, false});
    struct ggml_tensor *a = new_tensor(ctx, GGML_TYPE_F32, N, N);
    memset(a->data, 0, N * N * sizeof(float));
    struct ggml_cgraph *graph = new_graph(ctx);
    expand(graph, mul_mat(ctx, a, a));
    ggml_backend_t backend = init();
    set_threads(backend, N_THREADS);
    if (compute_graph(backend, graph) != GGML_STATUS_SUCCESS) return 3;
    free_stream(backend);
    free_context(ctx);
    dlclose(library);
    usleep(200000); // its threads go on waiting for work
    return count_threads() > 1 && !is_mapped("libggml.so") ? 4 : 0; // in what code?
}

static void test_f14_the_library_can_be_closed_after_a_graph(void **state) {
    (void)state;
    const pid_t child = fork();
    if (child == 0) {
        alarm(PATIENCE);
        _exit(compute_and_close());
    }
    expect_child(child);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f14_the_library_can_be_closed_after_a_graph),
        cmocka_unit_test(test_f13_a_child_computes),
        cmocka_unit_test(test_f13_a_child_has_meta_devices),
        cmocka_unit_test(test_f13_a_child_loads_and_reports),
        cmocka_unit_test(test_f13_a_child_waits_for_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
