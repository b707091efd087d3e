// SPDX-License-Identifier: MIT
// Several users of the CUDA plugin in one process: two copies of the core, in turn and at once, and
// streams on several threads; the CPU goes on when the device is lost.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../../core/base/sanitizer.h"
#include "cuda_test.h"

enum { N = 500, ROUNDS = 6, THREADS = 3, LAUNCH_FAILED = 719 };

// What a copy of the core is used by.
#define CORE_FUNCTIONS(X)                                                                          \
    X(ggml_plugin_load)                                                                            \
    X(ggml_plugin_unload)                                                                          \
    X(ggml_last_status)                                                                            \
    X(ggml_backend_reg_dev_get)                                                                    \
    X(ggml_backend_dev_init)                                                                       \
    X(ggml_backend_dev_buffer_type)                                                                \
    X(ggml_backend_alloc_buffer)                                                                   \
    X(ggml_backend_buffer_free)                                                                    \
    X(ggml_backend_buffer_get_base)                                                                \
    X(ggml_backend_tensor_alloc)                                                                   \
    X(ggml_backend_tensor_set_async)                                                               \
    X(ggml_backend_tensor_get_async)                                                               \
    X(ggml_backend_graph_compute_async)                                                            \
    X(ggml_backend_synchronize)                                                                    \
    X(ggml_backend_free)

struct core {
#define MEMBER(name) __typeof__(name) *name;
    CORE_FUNCTIONS(MEMBER)
#undef MEMBER
    ggml_backend_reg_t reg;
};

static struct core linked, opened;

static void find_cores(void) {
    void *library = dlopen(SHARED_CORE, RTLD_NOW | RTLD_LOCAL), *symbol;
    if (!library) fail_msg("%s", dlerror());
#define FIND(name)                                                                                 \
    linked.name = name;                                                                            \
    symbol = dlsym(library, #name);                                                                \
    assert_non_null(symbol);                                                                       \
    memcpy(&opened.name, &symbol, sizeof(symbol));
    CORE_FUNCTIONS(FIND)
#undef FIND
    assert_true(opened.ggml_plugin_load != linked.ggml_plugin_load);
}

static bool load(struct core *core) {
    return core->ggml_plugin_load(CUDA_PLUGIN, &core->reg) == GGML_HOST_OK;
}

// --- work ----------------------------------------------------------------------------------------

struct work {
    ggml_backend_t stream;
    ggml_backend_buffer_t buffer;
    struct ggml_context *context;
    struct ggml_tensor *x, *y;
    struct ggml_cgraph *graph;
};

// y = (-x) (-x) + x on device i.
static bool begin(struct work *w, const struct core *core, size_t i) {
    ggml_backend_dev_t device = core->ggml_backend_reg_dev_get(core->reg, i);
    memset(w, 0, sizeof(*w));
    w->stream = device ? core->ggml_backend_dev_init(device, NULL) : NULL;
    w->buffer = w->stream ? core->ggml_backend_alloc_buffer(w->stream, 1 << 16) : NULL;
    if (!w->buffer) return false;
    w->context = ggml_init((struct ggml_init_params){1 << 18, NULL, true});
    w->x = ggml_new_tensor_1d(w->context, GGML_TYPE_F32, N);
    w->y = ggml_add(w->context, ggml_sqr(w->context, ggml_neg(w->context, w->x)), w->x);
    w->graph = ggml_new_graph(w->context);
    ggml_build_forward_expand(w->graph, w->y);
    char *at = core->ggml_backend_buffer_get_base(w->buffer);
    for (struct ggml_tensor *t = ggml_get_first_tensor(w->context); t;
         t = ggml_get_next_tensor(w->context, t), at += 4096) {
        if (core->ggml_backend_tensor_alloc(w->buffer, t, at) != GGML_STATUS_SUCCESS) return false;
    }
    return true;
}

static bool compute(struct work *w, const struct core *core, float first) {
    float in[N], out[N];
    for (int i = 0; i < N; ++i)
        in[i] = first + (float)i;
    core->ggml_backend_tensor_set_async(w->stream, w->x, in, 0, sizeof(in));
    const bool queued =
        core->ggml_backend_graph_compute_async(w->stream, w->graph) == GGML_STATUS_SUCCESS;
    core->ggml_backend_tensor_get_async(w->stream, w->y, out, 0, sizeof(out));
    core->ggml_backend_synchronize(w->stream);
    for (int i = 0; i < N && queued; ++i) {
        if (out[i] != in[i] * in[i] + in[i]) return false;
    }
    return queued;
}

static void end(struct work *w, const struct core *core) {
    if (w->buffer) core->ggml_backend_buffer_free(w->buffer);
    if (w->stream) core->ggml_backend_free(w->stream);
    ggml_free(w->context);
    memset(w, 0, sizeof(*w));
}

// --- two hosts -----------------------------------------------------------------------------------

// Whichever goes first, the other one's work goes on; nothing is left when both have gone.
static void test_two_hosts(void **state) {
    (void)state;
    struct core *const cores[] = {&linked, &opened};
    for (int first = 0; first < 2; ++first) {
        struct work w[2];
        for (int i = 0; i < 2; ++i) {
            assert_true(load(cores[i]));
            assert_true(begin(&w[i], cores[i], 0));
        }
        assert_true(linked.reg == opened.reg);
        for (int i = 0; i < 4; ++i)
            assert_true(compute(&w[i % 2], cores[i % 2], (float)i));
        end(&w[first], cores[first]);
        assert_int_equal(cores[first]->ggml_plugin_unload(cores[first]->reg), GGML_HOST_OK);
        assert_true(driver.live() > 0);
        assert_true(compute(&w[1 - first], cores[1 - first], 9.0f));
        end(&w[1 - first], cores[1 - first]);
        assert_int_equal(cores[1 - first]->ggml_plugin_unload(cores[1 - first]->reg), GGML_HOST_OK);
        assert_int_equal(driver.live(), 0);
    }
}

// Both are told that the device is lost, the CPU computes on, and both start anew.
static void test_lost_for_both(void **state) {
    (void)state;
    struct core *const cores[] = {&linked, &opened};
    struct work w[2];
    for (int i = 0; i < 2; ++i) {
        assert_true(load(cores[i]));
        assert_true(begin(&w[i], cores[i], 0));
        assert_true(compute(&w[i], cores[i], 1.0f));
    }
    driver.fail_after(0, LAUNCH_FAILED);
    for (int i = 0; i < 2; ++i) {
        assert_false(compute(&w[i], cores[i], 2.0f));
        assert_int_equal(cores[i]->ggml_last_status(), GGML_HOST_DEVICE_LOST);
    }
    const struct core cpu = linked;
    ggml_backend_dev_t device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    struct work on_cpu = {.stream = ggml_backend_dev_init(device, NULL)};
    assert_non_null(on_cpu.stream);
    on_cpu.context = ggml_init((struct ggml_init_params){1 << 18, NULL, true});
    on_cpu.x = ggml_new_tensor_1d(on_cpu.context, GGML_TYPE_F32, N);
    on_cpu.y = ggml_add(on_cpu.context,
                        ggml_sqr(on_cpu.context, ggml_neg(on_cpu.context, on_cpu.x)), on_cpu.x);
    on_cpu.graph = ggml_new_graph(on_cpu.context);
    ggml_build_forward_expand(on_cpu.graph, on_cpu.y);
    on_cpu.buffer = ggml_backend_alloc_ctx_tensors(on_cpu.context, on_cpu.stream);
    assert_non_null(on_cpu.buffer);
    assert_true(compute(&on_cpu, &cpu, 3.0f));
    end(&on_cpu, &cpu);
    for (int i = 0; i < 2; ++i) {
        end(&w[i], cores[i]);
        assert_int_equal(cores[i]->ggml_plugin_unload(cores[i]->reg), GGML_HOST_OK);
    }
    assert_int_equal(driver.live(), 0);
    driver.fail_after(-1, 0);
    test_two_hosts(state);
}

// --- threads -------------------------------------------------------------------------------------

struct worker {
    pthread_t thread;
    struct core *core;
    size_t device;
    bool loads; // the plugin, each round
    float first;
    bool ok;
};

static void *work_on_thread(void *argument) {
    struct worker *worker = argument;
    worker->ok = true;
    for (int i = 0; i < ROUNDS && worker->ok; ++i) {
        struct work w = {0};
        if (worker->loads) worker->ok = load(worker->core);
        if (!worker->ok) break;
        worker->ok = begin(&w, worker->core, worker->device);
        for (int k = 0; k < 3 && worker->ok; ++k)
            worker->ok = compute(&w, worker->core, worker->first + (float)(i + k));
        end(&w, worker->core);
        if (worker->loads)
            worker->ok &= worker->core->ggml_plugin_unload(worker->core->reg) == GGML_HOST_OK;
    }
    return NULL;
}

static void run_workers(struct worker *workers, int n) {
    for (int i = 0; i < n; ++i)
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work_on_thread, &workers[i]), 0);
    for (int i = 0; i < n; ++i)
        pthread_join(workers[i].thread, NULL);
    for (int i = 0; i < n; ++i)
        assert_true(workers[i].ok);
}

static void test_two_hosts_at_once(void **state) {
    (void)state;
    struct worker workers[] = {{.core = &linked, .loads = true, .first = 1.0f},
                               {.core = &opened, .loads = true, .first = 100.0f}};
    // Threads that map and unmap it in turn are ordered by a lock of the linker that libtsan
    // doesn't know.
    void *kept = GGML_THREAD_SANITIZER ? dlopen(CUDA_PLUGIN, RTLD_NOW | RTLD_LOCAL) : NULL;
    run_workers(workers, 2);
    if (kept) dlclose(kept);
    assert_int_equal(driver.live(), 0);
}

// Two of them with streams of one device.
static void test_streams_at_once(void **state) {
    (void)state;
    struct worker workers[THREADS];
    assert_true(load(&linked));
    for (int i = 0; i < THREADS; ++i)
        workers[i] =
            (struct worker){.core = &linked, .device = (size_t)i % 2, .first = 10.0f * (float)i};
    run_workers(workers, THREADS);
    assert_int_equal(linked.ggml_plugin_unload(linked.reg), GGML_HOST_OK);
    assert_int_equal(driver.live(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_hosts),
        cmocka_unit_test(test_lost_for_both),
        cmocka_unit_test(test_two_hosts_at_once),
        cmocka_unit_test(test_streams_at_once),
    };
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    ggml_backend_load_all();
    cuda_find_driver();
    find_cores();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
