// SPDX-License-Identifier: MIT
// The fake driver: work is done as late as it may be, each call can be made to fail, and what isn't
// freed is counted.
#define _DEFAULT_SOURCE
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <math.h>
#include <stdlib.h>

#include "../../core/base/sanitizer.h"
#include "base/driver_api.h"
#include "fake_cuda.h"
#include "test_kernels.h"

#define DECLARE(name, symbol, parameters) CUresult symbol parameters;
CU_FUNCTIONS(DECLARE)
CU_LATER_FUNCTIONS(DECLARE)

// What others do with the plugin's addresses.
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuCtxGetCurrent(CUcontext *out);
CUresult cuPointerGetAttributes(unsigned n, int *which, void **values, CUdeviceptr pointer);

enum { N = 256 };

struct run {
    CUcontext context;
    CUmodule module;
    CUfunction function;
    CUdeviceptr x, y;
    CUstream streams[2];
    CUevent event;
    float in[N], out;
};

#define TRY(call)                                                                                  \
    if ((result = (call)) != CUDA_SUCCESS) return result

static CUresult start(struct run *r) {
    CUresult result;
    CUdevice device;
    TRY(cuInit(0));
    TRY(cuDeviceGet(&device, 0));
    TRY(cuDevicePrimaryCtxRetain(&r->context, device));
    TRY(cuCtxPushCurrent_v2(r->context));
    TRY(cuModuleLoadData(&r->module, ".version 7.0"));
    TRY(cuModuleGetFunction(&r->function, r->module, "sum_rows_good"));
    TRY(cuMemAlloc_v2(&r->x, sizeof(r->in)));
    TRY(cuMemAlloc_v2(&r->y, sizeof(r->out)));
    TRY(cuStreamCreate(&r->streams[0], CU_STREAM_NON_BLOCKING));
    TRY(cuStreamCreate(&r->streams[1], CU_STREAM_NON_BLOCKING));
    TRY(cuEventCreate(&r->event, CU_EVENT_DISABLE_TIMING));
    for (int i = 0; i < N; ++i)
        r->in[i] = 1.0f;
    r->out = -1.0f;
    return CUDA_SUCCESS;
}

// In on the first stream, the sum and out on the second, which waits for the first if it is told
// to.
static CUresult compute(struct run *r, int waits) {
    const struct sum_args args = {r->x, r->y, N};
    void *params[] = {(void *)(uintptr_t)&args};
    CUresult result;
    TRY(cuMemcpyHtoDAsync_v2(r->x, r->in, sizeof(r->in), r->streams[0]));
    TRY(cuEventRecord(r->event, r->streams[0]));
    if (waits) TRY(cuStreamWaitEvent(r->streams[1], r->event, 0));
    TRY(cuLaunchKernel(r->function, 1, 1, 1, 64, 1, 1, 0, r->streams[1], params, NULL));
    TRY(cuMemcpyDtoHAsync_v2(&r->out, r->y, sizeof(r->out), r->streams[1]));
    return CUDA_SUCCESS;
}

static void stop(struct run *r) {
    if (r->event) cuEventDestroy_v2(r->event);
    for (int i = 0; i < 2; ++i) {
        if (r->streams[i]) cuStreamDestroy_v2(r->streams[i]);
    }
    if (r->y) cuMemFree_v2(r->y);
    if (r->x) cuMemFree_v2(r->x);
    if (r->module) cuModuleUnload(r->module);
    cuCtxPopCurrent_v2(NULL);
    if (r->context) cuDevicePrimaryCtxRelease_v2(0);
}

static void test_late(void **state) {
    struct run r = {0};
    (void)state;
    assert_int_equal(start(&r), CUDA_SUCCESS);
    assert_int_equal(compute(&r, 1), CUDA_SUCCESS);
    assert_true(r.out == -1.0f);
    assert_int_equal(cuStreamSynchronize(r.streams[1]), CUDA_SUCCESS);
    assert_true(r.out == (float)N);
    stop(&r);
    assert_int_equal(fake_cuda_live(), 0);
}

static void test_missing_wait(void **state) {
    struct run r = {0};
    (void)state;
    assert_int_equal(start(&r), CUDA_SUCCESS);
    assert_int_equal(compute(&r, 0), CUDA_SUCCESS);
    assert_int_equal(cuStreamSynchronize(r.streams[1]), CUDA_SUCCESS);
    assert_true(isnan(r.out));
    stop(&r);
}

// The sum of x into y and, by another node, of that alone into z; `edges`: how the second one
// waits.
enum edges { NONE, FULL, EARLY };
static float graph_sum(struct run *r, enum edges edges) {
    const CUgraphEdgeData early = {.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
                                   .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};
    CUdeviceptr z;
    CUgraph graph;
    CUgraphNode nodes[2];
    CUgraphExec exec;
    float out = -1.0f;
    assert_int_equal(cuMemAlloc_v2(&z, sizeof(out)), CUDA_SUCCESS);
    struct sum_args args[2] = {{r->x, r->y, N}, {r->y, z, 1}};
    assert_int_equal(cuMemcpyHtoDAsync_v2(r->x, r->in, sizeof(r->in), r->streams[0]), CUDA_SUCCESS);
    assert_int_equal(cuMemsetD8Async(r->y, 0xff, sizeof(r->out), r->streams[0]), CUDA_SUCCESS);
    assert_int_equal(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
    for (int i = 0; i < 2; ++i) {
        void *params[] = {&args[i]};
        const CUDA_KERNEL_NODE_PARAMS p = {r->function, 1, 1, 1, 64, 1, 1, 0, params, NULL};
        assert_int_equal(cuGraphAddKernelNode(&nodes[i], graph, nodes, i && edges == FULL, &p),
                         CUDA_SUCCESS);
    }
    if (edges == EARLY)
        assert_int_equal(cuGraphAddDependencies_v2(graph, &nodes[0], &nodes[1], &early, 1),
                         CUDA_SUCCESS);
    assert_int_equal(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
    assert_int_equal(cuGraphLaunch(exec, r->streams[0]), CUDA_SUCCESS);
    // What is queued already stays as it was.
    args[0].n = 1;
    void *params[] = {&args[0]};
    const CUDA_KERNEL_NODE_PARAMS p = {r->function, 1, 1, 1, 64, 1, 1, 0, params, NULL};
    assert_int_equal(cuGraphExecKernelNodeSetParams(exec, nodes[0], &p), CUDA_SUCCESS);
    assert_int_equal(cuMemcpyDtoHAsync_v2(&out, z, sizeof(out), r->streams[0]), CUDA_SUCCESS);
    assert_int_equal(cuStreamSynchronize(r->streams[0]), CUDA_SUCCESS);
    assert_int_equal(cuGraphExecDestroy(exec), CUDA_SUCCESS);
    assert_int_equal(cuGraphDestroy(graph), CUDA_SUCCESS);
    assert_int_equal(cuMemFree_v2(z), CUDA_SUCCESS);
    return out;
}

static void test_graphs(void **state) {
    struct run r = {0};
    (void)state;
    assert_int_equal(start(&r), CUDA_SUCCESS);
    for (unsigned long seed = 0; seed < 8; ++seed) {
        fake_cuda_set_seed(seed);
        assert_true(graph_sum(&r, FULL) == (float)N);
        assert_true(graph_sum(&r, EARLY) == (float)N);
    }
    fake_cuda_set_seed(0);
    assert_true(isnan(graph_sum(&r, NONE)));
    assert_int_equal(cuModuleGetFunction(&r.function, r.module, "sum_rows_waits_late"),
                     CUDA_SUCCESS);
    assert_true(graph_sum(&r, FULL) == (float)N);
#if !GGML_THREAD_SANITIZER // to which it is a race
    assert_true(isnan(graph_sum(&r, EARLY)));
#endif
    stop(&r);
    assert_int_equal(fake_cuda_live(), 0);
}

static void test_failures(void **state) {
    static const int errors[] = {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_LAUNCH_FAILED};
    (void)state;
    for (int e = 0; e < 2; ++e) {
        for (long n = 0;; ++n) {
            struct run r = {0};
            fake_cuda_fail(n, errors[e]);
            CUresult result = start(&r);
            if (result == CUDA_SUCCESS) result = compute(&r, 1);
            if (result == CUDA_SUCCESS) result = cuStreamSynchronize(r.streams[1]);
            const char *failed = fake_cuda_failed();
            stop(&r);
            assert_int_equal(fake_cuda_live(), 0);
            fake_cuda_fail(-1, 0);
            if (!failed) {
                assert_int_equal(result, CUDA_SUCCESS);
                assert_true(n > 15);
                break;
            }
            assert_int_equal(result, errors[e]);
        }
    }
}

static void test_misuse(void **state) {
    struct run r = {0};
    CUdeviceptr p;
    (void)state;
    assert_int_equal(cuMemAlloc_v2(&p, 16), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(start(&r), CUDA_SUCCESS);
    assert_int_equal(cuMemAlloc_v2(&p, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMemAlloc_v2(&p, (size_t)1 << 40), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(cuMemcpyHtoDAsync_v2(r.x, r.in, sizeof(r.in) + 4, r.streams[0]),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuModuleGetFunction(&r.function, r.module, "no_such_kernel"),
                     CUDA_ERROR_NOT_FOUND);
    stop(&r);
    assert_int_equal(fake_cuda_live(), 0);
}

// By a thread without a context too.
static void test_addresses(void **state) {
    struct run r = {0};
    CUcontext owner, current;
    unsigned type, is_plain;
    CUdeviceptr begin;
    size_t bytes;
    int which[] = {1, 2, 10, 11, 12};
    void *values[] = {&owner, &type, &is_plain, &begin, &bytes};
    (void)state;
    assert_int_equal(start(&r), CUDA_SUCCESS);
    assert_int_equal(cuPointerGetAttributes(5, which, values, r.x + 8), CUDA_SUCCESS);
    assert_true(owner == r.context && type == 2 && is_plain == 1);
    assert_true(begin == r.x && bytes == sizeof(r.in));
    assert_int_equal(cuPointerGetAttributes(5, which, values, (uintptr_t)&r), CUDA_SUCCESS);
    assert_true(!owner && type == 0 && is_plain == 0 && begin == 0 && bytes == 0);
    assert_int_equal(cuCtxGetCurrent(&current), CUDA_SUCCESS);
    assert_ptr_equal(current, r.context);
    assert_int_equal(cuCtxPopCurrent_v2(NULL), CUDA_SUCCESS);
    assert_int_equal(cuCtxGetCurrent(&current), CUDA_SUCCESS);
    assert_null(current);
    for (int i = 0; i < 2; ++i) {
        assert_int_equal(cuCtxSetCurrent(r.context), CUDA_SUCCESS);
        assert_int_equal(cuCtxGetCurrent(&current), CUDA_SUCCESS);
        assert_ptr_equal(current, r.context);
    }
    stop(&r);
    assert_int_equal(cuCtxPopCurrent_v2(NULL), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(fake_cuda_live(), 0);
}

int main(void) {
    setenv("FAKE_CUDA_QUIET", "1", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_late),   cmocka_unit_test(test_missing_wait),
        cmocka_unit_test(test_graphs), cmocka_unit_test(test_failures),
        cmocka_unit_test(test_misuse), cmocka_unit_test(test_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
