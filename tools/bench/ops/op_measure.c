// SPDX-License-Identifier: MIT
// Operations are computed in turn with weights of their own, so that these come from memory.
#define _GNU_SOURCE
#include "bench/ops/op_measure.h"

#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "bench/roofline.h"

enum { MAX_RUNS = 1000, CHAIN = 1024, LEAST_ROUNDS = 15, COPY_FLOATS = 1 << 24, MAX_COPIES = 256 };

// Graphs on one device, with memory: the same one with weights of its own each.
struct work {
    struct ggml_context *ctx;
    struct ggml_cgraph *graphs[MAX_COPIES];
    int n_graphs;
    ggml_backend_t stream;
    ggml_backend_buffer_t weights; // of first operands that have memory of their own
    ggml_backend_buffer_t buffer;
};

static double now_seconds(void) {
    return bench_ns() * 1e-9;
}

// A context with empty graphs on a stream; end() frees what there is also after a failure.
static bool begin(struct work *work, ggml_backend_t stream, size_t n_nodes, int n_graphs) {
    const size_t graph_bytes = (2 * n_nodes + 16) * ggml_tensor_overhead() +
                               ggml_graph_overhead_custom(n_nodes + 16, false);
    const struct ggml_init_params params = {
        .mem_size = (size_t)n_graphs * graph_bytes + 4096,
        .no_alloc = true,
    };
    *work = (struct work){.ctx = ggml_init(params), .stream = stream};
    for (; work->ctx && work->n_graphs < n_graphs; ++work->n_graphs) {
        work->graphs[work->n_graphs] = ggml_new_graph_custom(work->ctx, n_nodes + 16, false);
        if (!work->graphs[work->n_graphs]) return false;
    }
    return work->n_graphs == n_graphs;
}

static void end(struct work *work) {
    ggml_backend_buffer_free(work->buffer);
    ggml_backend_buffer_free(work->weights);
    ggml_free(work->ctx);
}

// Gives the first operands of all graphs memory of that type. False if there is not so much.
static bool place_weights(struct work *work, ggml_backend_buffer_type_t type) {
    const struct ggml_tensor *any = ggml_graph_node(work->graphs[0], -1)->src[0];
    const size_t each = GGML_PAD(ggml_backend_buft_get_alloc_size(type, any),
                                 ggml_backend_buft_get_alignment(type));
    size_t offset = 0;
    work->weights = ggml_backend_buft_alloc_buffer(type, each * (size_t)work->n_graphs);
    if (!work->weights) return false;
    ggml_backend_buffer_set_usage(work->weights, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    for (int i = 0; i < work->n_graphs; ++i, offset += each) {
        struct ggml_tensor *weights = ggml_graph_node(work->graphs[i], -1)->src[0];
        char *base = ggml_backend_buffer_get_base(work->weights);
        if (ggml_backend_tensor_alloc(work->weights, weights, base + offset) != GGML_STATUS_SUCCESS)
            return false;
    }
    return true;
}

// Adds the nodes of one graph. False if the device does not compute it.
static bool add(struct work *work, int graph, struct ggml_tensor *result) {
    if (!result || !ggml_backend_dev_supports_op(ggml_backend_get_device(work->stream), result))
        return false;
    ggml_build_forward_expand(work->graphs[graph], result);
    return true;
}

// Rows that the indices of the result's node may name.
static int64_t count_rows(const struct ggml_tensor *result) {
    switch (result->op) {
    case GGML_OP_MUL_MAT_ID: return result->src[0]->ne[2];
    case GGML_OP_GET_ROWS: return result->src[0]->ne[1];
    case GGML_OP_SET_ROWS: return result->ne[1];
    default: return INT32_MAX;
    }
}

// Fills a tensor of indices with 0, 1, ... below the limit, again and again.
static void count_up(struct ggml_tensor *indices, int64_t limit) {
    for (int64_t i = 0; i < ggml_nelements(indices); ++i) {
        const int64_t wide = i % limit;
        const int32_t narrow = (int32_t)wide;
        const bool is_wide = indices->type == GGML_TYPE_I64;
        const size_t size = is_wide ? sizeof(wide) : sizeof(narrow);
        const void *value = is_wide ? (const void *)&wide : (const void *)&narrow;
        ggml_backend_tensor_set(indices, value, (size_t)i * size, size);
    }
}

// Memory with numbers of about one in every type (zeros would be too easy for some kernels), and
// indices that count up. False if the device has not so much.
static bool allocate(struct work *work) {
    work->buffer = ggml_backend_alloc_ctx_tensors(work->ctx, work->stream);
    if (!work->buffer) return false;
    ggml_backend_buffer_clear(work->buffer, 0x3c);
    if (work->weights) ggml_backend_buffer_clear(work->weights, 0x3c);
    for (int i = 0; i < work->n_graphs; ++i) {
        struct ggml_tensor *result = ggml_graph_node(work->graphs[i], -1);
        for (int k = 0; k < GGML_MAX_SRC; ++k) {
            struct ggml_tensor *t = result->src[k];
            if (t && (t->type == GGML_TYPE_I32 || t->type == GGML_TYPE_I64))
                count_up(t, count_rows(result));
        }
    }
    return true;
}

// Bytes that a node must move at least: its operands and its result, once.
static double tensor_bytes(const struct ggml_tensor *result) {
    double bytes = (double)ggml_nbytes(result);
    const bool gets = result->op == GGML_OP_GET_ROWS;
    if (gets || result->op == GGML_OP_SET_ROWS) { // of a table that is touched in places only
        const struct ggml_tensor *table = gets ? result->src[0] : result;
        const struct ggml_tensor *rows = gets ? result : result->src[0];
        return (double)ggml_nrows(rows) *
               ((double)ggml_row_size(table->type, table->ne[0]) + 4.0 * (double)rows->ne[0]);
    }
    for (int i = 0; i < GGML_MAX_SRC; ++i) {
        if (result->src[i]) bytes += (double)ggml_nbytes(result->src[i]);
    }
    if (result->op == GGML_OP_MUL_MAT_ID) { // experts that no token takes are not read
        const struct ggml_tensor *weights = result->src[0];
        const int64_t taken = ggml_nelements(result->src[2]);
        if (taken < weights->ne[2])
            bytes -= (double)(weights->ne[2] - taken) * (double)weights->nb[2];
    }
    return bytes;
}

static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// The first computation of each graph, which may compile, is not counted. Then they are computed in
// turn, so that no weights are in a cache from the last time.
static bool time_graph(const struct work *work, double seconds, struct op_result *out_result) {
    double times[MAX_RUNS], total = 0;
    int n = 0;
    *out_result = (struct op_result){0};
    for (int i = 0; i < work->n_graphs; ++i) {
        if (ggml_backend_graph_compute(work->stream, work->graphs[i]) != GGML_STATUS_SUCCESS)
            return false;
    }
    const double busy = bench_busy_ns();
    for (; n < MAX_RUNS && (n == 0 || total < seconds); ++n) {
        struct ggml_cgraph *graph = work->graphs[n % work->n_graphs];
        const double start = now_seconds();
        if (ggml_backend_graph_compute(work->stream, graph) != GGML_STATUS_SUCCESS) return false;
        times[n] = now_seconds() - start;
        total += times[n];
    }
    out_result->busy = (bench_busy_ns() - busy) * 1e-9 / n;
    qsort(times, (size_t)n, sizeof(times[0]), compare_doubles);
    out_result->best = times[0];
    out_result->median = times[n / 2];
    out_result->runs = n;
    return true;
}

// --- bounds

// Columns of a round.
enum { WHOLE, SUBMIT, DRIVER, BEYOND = DRIVER + BENCH_FLOOR_KERNELS, N_TIMES };

// One round: the plugin's chain, then those without the plugin.
static bool time_round(const struct work *work, struct bench_floor *floor,
                       double times[N_TIMES][MAX_RUNS], int round) {
    const double start = now_seconds();
    if (ggml_backend_graph_compute_async(work->stream, work->graphs[0]) != GGML_STATUS_SUCCESS)
        return false;
    times[SUBMIT][round] = now_seconds() - start;
    ggml_backend_synchronize(work->stream);
    times[WHOLE][round] = now_seconds() - start;
    for (int i = 0; i < BENCH_FLOOR_KERNELS && floor; ++i) {
        times[DRIVER + i][round] = bench_floor_time(floor, (enum bench_floor_kernel)i);
        if (times[DRIVER + i][round] < 0) return false;
    }
    times[BEYOND][round] = times[WHOLE][round] - times[DRIVER + BENCH_FLOOR_SCALE][round];
    return true;
}

// A quartile of the rounds' times, per node of the chain. Sorts the times.
static double quartile_per_node(double *times, int n, int quarter) {
    qsort(times, (size_t)n, sizeof(times[0]), compare_doubles);
    return n > 0 ? times[n * quarter / 4] / CHAIN : 0;
}

// What runs beside this process slows all parts of a round alike.
static void time_rounds(const struct work *work, struct bench_floor *floor, double seconds,
                        struct op_launch *out_launch) {
    static double times[N_TIMES][MAX_RUNS];
    const double end_time = now_seconds() + seconds;
    int n = 0;
    memset(times, 0, sizeof(times));
    while (n < MAX_RUNS && (n < LEAST_ROUNDS || now_seconds() < end_time) &&
           time_round(work, floor, times, n))
        ++n;
    *out_launch = (struct op_launch){.whole = quartile_per_node(times[WHOLE], n, 2),
                                     .submit = quartile_per_node(times[SUBMIT], n, 2),
                                     .rounds = n};
    for (int i = 0; i < BENCH_FLOOR_KERNELS; ++i)
        out_launch->driver[i] = quartile_per_node(times[DRIVER + i], n, 2);
    for (int i = 0; i < 3 && floor; ++i)
        out_launch->beyond[i] = quartile_per_node(times[BEYOND], n, i + 1);
}

// Costs of one launch, by a chain of CHAIN tiny nodes that depend on each other. For Vulkan also
// what the driver takes for such chains by itself.
static void measure_launch(ggml_backend_dev_t device, ggml_backend_t stream, double seconds,
                           struct op_launch *out_launch) {
    struct work work;
    struct op_result ignored;
    *out_launch = (struct op_launch){0};
    if (begin(&work, stream, CHAIN, 1)) {
        struct ggml_tensor *x = ggml_new_tensor_1d(work.ctx, GGML_TYPE_F32, 16);
        for (int i = 0; i < CHAIN; ++i)
            x = ggml_scale_inplace(work.ctx, x, 0.5f);
        if (add(&work, 0, x) && allocate(&work) && time_graph(&work, 0, &ignored)) {
            struct bench_floor *floor = NULL;
            if (strcmp(ggml_backend_reg_name(ggml_backend_dev_backend_reg(device)), "Vulkan") == 0)
                floor = bench_floor_new(ggml_backend_dev_description(device), CHAIN);
            time_rounds(&work, floor, seconds, out_launch);
            bench_floor_free(floor);
        }
    }
    end(&work);
}

// Bytes read and written per second by a copy of 64 MiB on the device.
static double copy_rate(ggml_backend_t stream, double seconds) {
    struct work work;
    struct op_result result = {0};
    if (begin(&work, stream, 1, 1)) {
        struct ggml_tensor *x = ggml_new_tensor_1d(work.ctx, GGML_TYPE_F32, COPY_FLOATS);
        struct ggml_tensor *y = ggml_new_tensor_1d(work.ctx, GGML_TYPE_F32, COPY_FLOATS);
        if (add(&work, 0, ggml_cpy(work.ctx, x, y)) && allocate(&work))
            time_graph(&work, seconds, &result);
    }
    end(&work);
    return result.best > 0 ? 8.0 * COPY_FLOATS / result.best : 0;
}

// The host's processors bound the CPU and drivers that run on it.
void op_bounds_measure(ggml_backend_dev_t device, ggml_backend_t stream, double seconds,
                       struct op_bounds *out_bounds) {
    *out_bounds = (struct op_bounds){0};
    const enum ggml_backend_dev_type type = ggml_backend_dev_type(device);
    if (type == GGML_BACKEND_DEVICE_TYPE_CPU || type == GGML_BACKEND_DEVICE_TYPE_ACCEL) {
        out_bounds->flops = bench_fma_peak(&out_bounds->threads);
        out_bounds->reads = bench_read_peak(bench_cold_bytes());
    }
    out_bounds->bytes = copy_rate(stream, seconds);
    measure_launch(device, stream, seconds, &out_bounds->launch);
}

// How many weights of a case are more than a cache holds.
static int count_copies(const struct op_case *c) {
    struct work work;
    size_t bytes = 0;
    if (begin(&work, NULL, 8, 1)) {
        const struct ggml_tensor *result = c->make(work.ctx, c);
        // Keys and values are the second and third operand.
        const bool is_attention = result && result->op == GGML_OP_FLASH_ATTN_EXT;
        if (result) bytes = ggml_nbytes(result->src[is_attention ? 1 : 0]);
        if (is_attention) bytes += ggml_nbytes(result->src[2]);
    }
    end(&work);
    const size_t n = bytes ? (bench_cold_bytes() + bytes - 1) / bytes : 1;
    return n > MAX_COPIES ? MAX_COPIES : (int)n;
}

// Whether the device computes the graphs with weights where they are now.
static bool computes(const struct work *work) {
    ggml_backend_dev_t device = ggml_backend_get_device(work->stream);
    return ggml_backend_dev_supports_op(device, ggml_graph_node(work->graphs[0], -1));
}

bool op_case_measure(ggml_backend_t stream, const struct op_case *c, const struct op_way *way,
                     struct op_result *out_result) {
    struct work work;
    const int n_copies = c->has_weights && !way->warm ? count_copies(c) : 1;
    bool supported = begin(&work, stream, 8, n_copies), good = true;
    *out_result = (struct op_result){0};
    for (int i = 0; i < n_copies && supported; ++i)
        supported = add(&work, i, c->make(work.ctx, c));
    if (supported && way->weights)
        supported = c->has_weights && place_weights(&work, way->weights) && computes(&work);
    if (supported && allocate(&work)) {
        good = time_graph(&work, way->seconds, out_result);
        out_result->bytes = tensor_bytes(ggml_graph_node(work.graphs[0], -1));
    }
    end(&work);
    return good;
}

ggml_backend_buffer_type_t op_repacked_memory(ggml_backend_dev_t device) {
    ggml_backend_dev_get_extra_bufts_t get = NULL;
    *(void **)&get = ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(device),
                                                       "ggml_backend_dev_get_extra_bufts");
    ggml_backend_buffer_type_t *types = get ? get(device) : NULL;
    return types ? types[0] : NULL;
}
