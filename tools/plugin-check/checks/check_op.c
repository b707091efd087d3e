// SPDX-License-Identifier: MIT
// Claims, and what holds for all operations alike; one by one they are compared in
// check_conformance.c.
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "elf_view.h"
#include "exercise.h"
#include "ggml-host.h"
#include "ggml-impl.h"
#include "ggml-plugin.h"
#include "ggml-shape.h"
#include "op_case.h"

enum { COLUMNS = 37, ROWS = 11, N_VALUES = COLUMNS * ROWS, N_THREADS = 4, SMALL_GRAPH = 16 };

// A context for the nodes and graphs of one check, without data.
static struct ggml_context *new_context(const struct check_run *run) {
    struct ggml_context *ctx = ggml_init((struct ggml_init_params){
        .mem_size = 512 * ggml_tensor_overhead() + 4 * ggml_graph_overhead() +
                    256 * ggml_graph_overhead_custom(SMALL_GRAPH, false),
        .no_alloc = true});
    CHECK_THAT(run, ctx, "no memory");
    return ctx;
}

// --- nodes ----------------------------------------------------------------------------

// Sources: a and b have COLUMNS x ROWS numbers, b's are in [0.5, 1.5); `rows` has ROWS indices.
struct operands {
    struct ggml_context *ctx;
    struct ggml_tensor *a;
    struct ggml_tensor *b;
    struct ggml_tensor *rows;
};

// Builds the node of a case; new tensors, so that each call gives another node.
static struct ggml_tensor *node_of(const struct operands *o, enum op_case op) {
    struct ggml_context *c = o->ctx;
    struct ggml_tensor *a = o->a, *b = o->b;
    switch (op) {
    case CASE_ADD: return ggml_add(c, a, b);
    case CASE_SUB: return ggml_sub(c, a, b);
    case CASE_MUL: return ggml_mul(c, a, b);
    case CASE_DIV: return ggml_div(c, a, b);
    case CASE_SCALE: return ggml_scale(c, a, 2.5f);
    case CASE_SQR: return ggml_sqr(c, a);
    case CASE_SQRT: return ggml_sqrt(c, b);
    case CASE_CLAMP: return ggml_clamp(c, a, -0.5f, 0.25f);
    case CASE_ABS: return ggml_abs(c, a);
    case CASE_NEG: return ggml_neg(c, a);
    case CASE_RELU: return ggml_relu(c, a);
    case CASE_SIGMOID: return ggml_sigmoid(c, a);
    case CASE_SILU: return ggml_silu(c, a);
    case CASE_TANH: return ggml_tanh(c, a);
    case CASE_DUP: return ggml_dup(c, a);
    case CASE_CONT: return ggml_cont(c, ggml_transpose(c, a));
    case CASE_BROADCAST: return ggml_add(c, a, ggml_view_1d(c, b, COLUMNS, 0));
    case CASE_STRIDED:
        return ggml_add(c, ggml_view_2d(c, a, COLUMNS - 7, ROWS, a->nb[1], 3 * sizeof(float)),
                        ggml_view_2d(c, b, COLUMNS - 7, ROWS, b->nb[1], 0));
    case CASE_SUM_ROWS: return ggml_sum_rows(c, a);
    case CASE_SOFT_MAX: return ggml_soft_max(c, a);
    case CASE_NORM: return ggml_norm(c, a, 1e-5f);
    case CASE_RMS_NORM: return ggml_rms_norm(c, a, 1e-5f);
    case CASE_MUL_MAT: return ggml_mul_mat(c, a, b);
    case CASE_GET_ROWS: return ggml_get_rows(c, a, o->rows);
    case CASE_CONCAT: return ggml_concat(c, a, b, 1);
    case CASE_REPEAT: return ggml_repeat(c, ggml_view_1d(c, a, COLUMNS, 0), b);
    case N_CASES: break;
    }
    return NULL;
}

// --- numbers --------------------------------------------------------------------------

struct values {
    float a[N_VALUES];
    float b[N_VALUES];
    int32_t rows[ROWS];
};

// Element (column, row) of the result, for the cases that are computed here.
static double expected_at(enum op_case op, const struct values *v, int64_t column, int64_t row) {
    const int x = (int)column, y = (int)row;
    const float *a = v->a, *b = v->b;
    switch (op) {
    case CASE_BROADCAST: return (double)a[y * COLUMNS + x] + b[x];
    case CASE_STRIDED: return (double)a[y * COLUMNS + x + 3] + b[y * COLUMNS + x];
    case CASE_GET_ROWS: return a[v->rows[y] * COLUMNS + x];
    default: return (double)a[y * COLUMNS + x] + b[y * COLUMNS + x];
    }
}

// Random operands by the run's seed. b stays away from 0, for divisions and roots.
static void values_new(const struct check_run *run, struct values *out) {
    struct numbers numbers = {run->seed};
    for (int i = 0; i < N_VALUES; ++i) {
        out->a[i] = numbers_float(&numbers);
        out->b[i] = 1.0f + numbers_float(&numbers) / 2;
    }
    for (int i = 0; i < ROWS; ++i)
        out->rows[i] = (int32_t)(numbers_next(&numbers) % ROWS);
}

// --- one case on one device ----------------------------------------------------------------------

// One device with operands, a node on them, and what is needed to compute it. Freed with the
// process.
struct bench {
    struct operands o;
    struct values v;
    struct ggml_tensor *node;
    struct ggml_cgraph *graph;
    ggml_backend_dev_t device;
    ggml_backend_buffer_t buffer;
    ggml_backend_t stream;
};

// Makes the operands, not yet in memory: claims are asked before.
static void bench_begin(const struct check_run *run, ggml_backend_dev_t device, struct bench *out) {
    *out = (struct bench){.device = device, .o.ctx = new_context(run)};
    out->o.a = ggml_new_tensor_2d(out->o.ctx, GGML_TYPE_F32, COLUMNS, ROWS);
    out->o.b = ggml_new_tensor_2d(out->o.ctx, GGML_TYPE_F32, COLUMNS, ROWS);
    out->o.rows = ggml_new_tensor_1d(out->o.ctx, GGML_TYPE_I32, ROWS);
    values_new(run, &out->v);
}

// Calls the table's entry, not the host's wrapper, which filters some nodes.
static bool claims(ggml_backend_dev_t device, const struct ggml_tensor *node) {
    return device->table->supports_op(device, node);
}

// False if the node is not claimed. `node` is built of bench->o.
static bool bench_place(const struct check_run *run, struct bench *bench,
                        struct ggml_tensor *node) {
    bench->node = node;
    CHECK_THAT(run, node && !ggml_tensor_is_error(node), "the check's node is wrong: %s",
               node ? ggml_tensor_error(node) : "none");
    if (!claims(bench->device, node)) return false;
    bench->graph = ggml_new_graph(bench->o.ctx);
    ggml_build_forward_expand(bench->graph, node);
    bench->buffer = ggml_backend_alloc_ctx_tensors_from_buft(
        bench->o.ctx, bench->device->table->get_buffer_type(bench->device));
    CHECK_THAT(run, bench->buffer, "%s: no buffer: %s", label(bench->device), ggml_last_error());
    bench->stream = make_stream(bench->device, NULL);
    if (!bench->stream) check_skip(run, "%s: no stream", label(bench->device));
    ggml_backend_tensor_set(bench->o.a, bench->v.a, 0, sizeof(bench->v.a));
    ggml_backend_tensor_set(bench->o.b, bench->v.b, 0, sizeof(bench->v.b));
    ggml_backend_tensor_set(bench->o.rows, bench->v.rows, 0, sizeof(bench->v.rows));
    return true;
}

// Computes the graph; a failure of a claimed node fails the check.
static void bench_compute(const struct check_run *run, const struct bench *bench) {
    const enum ggml_status status = ggml_backend_graph_compute(bench->stream, bench->graph);
    CHECK_THAT(run, status == GGML_STATUS_SUCCESS, "%s claims %s and fails: %s",
               label(bench->device), ggml_op_desc(bench->node), host_counters.last_error);
}

// Compares with the expected numbers by the normalised mean square error, which allows for
// rounding but not for a wrong element; a NaN or infinity fails at once.
static void bench_compare(const struct check_run *run, const struct bench *bench, enum op_case op) {
    const double bound = 1e-6;
    const struct ggml_tensor *node = bench->node;
    float actual[N_VALUES];
    double error = 0, power = 0;
    ggml_backend_tensor_get(node, actual, 0, ggml_nbytes(node));
    for (int64_t i = 0; i < ggml_nelements(node); ++i) {
        const double expected = expected_at(op, &bench->v, i % node->ne[0], i / node->ne[0]);
        const double difference = (double)actual[i] - expected;
        CHECK_THAT(run, isfinite(difference), "%s: %s: number %d is %g instead of %g",
                   label(bench->device), ggml_op_desc(node), (int)i, (double)actual[i], expected);
        error += difference * difference;
        power += expected * expected;
    }
    CHECK_THAT(run, error <= bound * power,
               "%s: %s: the normalised mean square error is %g, above %g", label(bench->device),
               ggml_op_desc(node), error / power, bound);
}

// Does a check on one device; false: the device does not claim what the check is about.
typedef bool (*bench_fn)(const struct check_run *run, struct bench *bench);

// `unclaimed` says why the check is skipped where all return false; NULL: it never is.
static void on_each_device(const struct check_run *run, bench_fn check, const char *unclaimed) {
    struct devices devices;
    struct bench bench;
    bool any = unclaimed == NULL;
    devices_open(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        bench_begin(run, devices.items[i], &bench);
        any = check(run, &bench) || any;
    }
    if (!any) check_skip(run, "%s", unclaimed);
}

// argument: enum op_case.
static bool compute_on(const struct check_run *run, struct bench *bench) {
    const enum op_case op = (enum op_case)run->check->argument;
    if (!bench_place(run, bench, node_of(&bench->o, op))) return false;
    bench_compute(run, bench);
    bench_compare(run, bench, op);
    return true;
}

void op_compute(struct check_run *run) {
    on_each_device(run, compute_on, "no device claims it");
}

// --- claims --------------------------------------------------------------------------------------

// Asks for each node several times: a scheduler keeps the first answer.
static bool claims_constant_on(const struct check_run *run, struct bench *bench) {
    for (int op = 0; op < N_CASES; ++op) {
        const struct ggml_tensor *node = node_of(&bench->o, (enum op_case)op);
        const bool claim = claims(bench->device, node);
        for (int j = 0; j < 5; ++j) {
            CHECK_THAT(run, claims(bench->device, node) == claim, "%s claims %s now and then",
                       label(bench->device), ggml_op_desc(node));
        }
    }
    return true;
}

void op_claims_constant(struct check_run *run) {
    on_each_device(run, claims_constant_on, NULL);
}

// The claim does not depend on whether the tensors have memory.
void op_claims_placed(struct check_run *run) {
    struct devices devices;
    struct bench bench;
    devices_open(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        for (int op = 0; op < N_CASES; ++op) {
            bench_begin(run, devices.items[i], &bench);
            if (!bench_place(run, &bench, node_of(&bench.o, (enum op_case)op))) continue;
            CHECK_THAT(run, claims(devices.items[i], bench.node),
                       "%s claims %s only without memory", label(devices.items[i]),
                       ggml_op_desc(bench.node));
            ggml_backend_free(bench.stream);
            ggml_backend_buffer_free(bench.buffer);
            ggml_free(bench.o.ctx);
        }
    }
}

// Nodes that compute nothing (views and the like) are claimed by every device, or a scheduler
// would split graphs around them.
static bool claims_nothing_on(const struct check_run *run, struct bench *bench) {
    struct ggml_context *c = bench->o.ctx;
    const struct ggml_tensor *const nodes[] = {
        bench->o.a, ggml_reshape_1d(c, bench->o.a, N_VALUES), ggml_view_1d(c, bench->o.a, 8, 0),
        ggml_permute(c, bench->o.a, 1, 0, 2, 3), ggml_transpose(c, bench->o.a)};
    for (size_t j = 0; j < sizeof(nodes) / sizeof(nodes[0]); ++j) {
        CHECK_THAT(run, claims(bench->device, nodes[j]), "%s does not claim %s, which is free",
                   label(bench->device), ggml_op_desc(nodes[j]));
    }
    return true;
}

void op_claims_nothing(struct check_run *run) {
    on_each_device(run, claims_nothing_on, NULL);
}

// A node as a newer host might send it: with a number that no list of this contract has.
static struct ggml_tensor strange_node(struct bench *bench, enum strange_node kind) {
    struct ggml_tensor node = *node_of(&bench->o, CASE_ADD);
    switch (kind) {
    case STRANGE_OP: node.op = (enum ggml_op)(GGML_OP_COUNT + 17); break;
    case STRANGE_TYPE: node.type = (enum ggml_type)(GGML_TYPE_COUNT + 99); break;
    case STRANGE_SOURCE: bench->o.b->type = (enum ggml_type)(GGML_TYPE_COUNT + 99); break;
    case STRANGE_UNARY:
        node = *node_of(&bench->o, CASE_RELU);
        node.op_params[0] = GGML_UNARY_OP_COUNT + 50;
        break;
    case STRANGE_GLU:
        node.op = GGML_OP_GLU;
        node.op_params[0] = 9999;
        break;
    }
    return node;
}

// argument: enum strange_node.
static bool declines_on(const struct check_run *run, struct bench *bench) {
    const struct ggml_tensor node = strange_node(bench, (enum strange_node)run->check->argument);
    CHECK_THAT(run, !claims(bench->device, &node), "%s claims it", label(bench->device));
    return true;
}

void op_declines(struct check_run *run) {
    on_each_device(run, declines_on, NULL);
}

// Nodes with parameters that are numbers from a list, or flags.
static int make_enumerated(struct ggml_context *c, struct ggml_tensor *out[8]) {
    struct ggml_tensor *x = ggml_new_tensor_4d(c, GGML_TYPE_F32, 32, 32, 2, 1);
    struct ggml_tensor *half = ggml_new_tensor_4d(c, GGML_TYPE_F16, 32, 32, 2, 1);
    struct ggml_tensor *at = ggml_new_tensor_1d(c, GGML_TYPE_I32, 2);
    int n = 0;
    out[n++] = ggml_mul_mat(c, x, x);
    out[n++] = ggml_rope(c, x, at, 32, GGML_ROPE_TYPE_NEOX);
    out[n++] = ggml_pool_2d(c, x, GGML_OP_POOL_AVG, 2, 2, 2, 2, 0, 0);
    out[n++] = ggml_interpolate(c, x, 64, 64, 2, 1, GGML_SCALE_MODE_BILINEAR);
    out[n++] = ggml_argsort(c, x, GGML_SORT_ORDER_ASC);
    out[n++] = ggml_tri(c, x, GGML_TRI_TYPE_LOWER);
    out[n++] = ggml_flash_attn_ext(c, x, half, half, NULL, 1.0f, 0.0f, 0.0f);
    out[n++] = ggml_swiglu(c, x);
    return n;
}

// Each value below 300, and flags above, in each word: those that the lists don't have.
static bool declines_values_on(const struct check_run *run, struct bench *bench) {
    struct ggml_tensor *nodes[8];
    bool any = false;
    const int n_nodes = make_enumerated(bench->o.ctx, nodes);
    for (int i = 0; i < n_nodes; ++i) {
        if (!claims(bench->device, nodes[i])) continue;
        any = true;
        for (int word = 0; word < GGML_MAX_OP_PARAMS / (int)sizeof(int32_t); ++word) {
            for (int v = 0; v < 331; ++v) {
                struct ggml_tensor node = *nodes[i];
                node.op_params[word] = v < 300 ? v : (int32_t)(1u << (v - 300));
                if (ggml_values_are_known(&node)) continue;
                CHECK_THAT(
                    run, !claims(bench->device, &node),
                    "%s claims %s with %d in word %d of op_params, which has no meaning there: "
                    "ask ggml_node_is_known() first",
                    label(bench->device), ggml_op_desc(&node), (int)node.op_params[word], word);
            }
        }
    }
    return any;
}

void op_declines_values(struct check_run *run) {
    if (elf_view_is_newer(run)) check_skip(run, "the plugin may know more than this program");
    on_each_device(run, declines_values_on, "no device claims an operation with such a parameter");
}

// Numbers that some vendor may have, but hardly the plugin's.
static bool declines_private_on(const struct check_run *run, struct bench *bench) {
    const int far = GGML_FIRST_PRIVATE + 0x5e7711;
    struct ggml_tensor op = *node_of(&bench->o, CASE_ADD), unary = *node_of(&bench->o, CASE_RELU);
    struct ggml_tensor type = op;
    op.op = (enum ggml_op)far;
    unary.op_params[0] = far;
    type.type = (enum ggml_type)far;
    CHECK_THAT(run, !claims(bench->device, &op), "%s claims a private operation",
               label(bench->device));
    CHECK_THAT(run, !claims(bench->device, &unary), "%s claims a private unary function",
               label(bench->device));
    CHECK_THAT(run, !claims(bench->device, &type), "%s claims a private type",
               label(bench->device));
    return true;
}

void op_declines_private(struct check_run *run) {
    on_each_device(run, declines_private_on, NULL);
}

// How many ways there are to give a tensor such a part; from half on it is the source's.
static int grown_variants(enum grown_part part) {
    switch (part) {
    case GROWN_PARAMETER: return GGML_MAX_OP_PARAMS / (int)sizeof(int32_t);
    case GROWN_SOURCE: return GGML_MAX_SRC;
    case GROWN_FLAG: return 2 * 14; // bits 16 to 29
    case GROWN_PADDING: return 2 * (int)sizeof(((struct ggml_tensor *)NULL)->padding);
    }
    return 0;
}

// Bits of the words of op_params that have a meaning for the node's operation.
static uint32_t known_words(const struct ggml_tensor *node) {
    const int32_t sub_op = node->op_params[0];
    return ggml_words_of_op((int)node->op) |
           (node->op == GGML_OP_UNARY ? ggml_words_of_unary(sub_op) : 0) |
           (node->op == GGML_OP_GLU ? ggml_words_of_glu(sub_op) : 0);
}

// Makes out[0] the node with such a part, out[1] its first source. False: that part has a meaning.
static bool grow(const struct ggml_tensor *node, enum grown_part part, int variant,
                 struct ggml_tensor out[2]) {
    const int half = grown_variants(part) / 2;
    out[0] = *node;
    out[1] = *node->src[0];
    out[0].src[0] = &out[1];
    struct ggml_tensor *changed = &out[variant >= half];
    switch (part) {
    case GROWN_PARAMETER: out[0].op_params[variant] = 1; return !(known_words(node) >> variant & 1);
    case GROWN_SOURCE:
        if (variant < ggml_sources_of_op((int)node->op)) return false;
        out[0].src[variant] = &out[1];
        return true;
    case GROWN_FLAG: changed->flags |= 1 << (16 + variant % half); return true;
    case GROWN_PADDING: changed->padding[variant % half] = 1; return true;
    }
    return false;
}

// argument: enum grown_part.
static bool declines_grown_on(const struct check_run *run, struct bench *bench) {
    const enum grown_part part = (enum grown_part)run->check->argument;
    struct ggml_tensor grown[2];
    bool any = false;
    for (int op = 0; op < N_CASES; ++op) {
        const struct ggml_tensor *node = node_of(&bench->o, (enum op_case)op);
        if (!claims(bench->device, node)) continue;
        any = true;
        for (int i = 0; i < grown_variants(part); ++i) {
            CHECK_THAT(run, !grow(node, part, i, grown) || !claims(bench->device, &grown[0]),
                       "%s claims %s that means what no contract defines (number %d): "
                       "ask ggml_node_is_known() first",
                       label(bench->device), ggml_op_desc(node), i);
        }
    }
    return any;
}

void op_declines_grown(struct check_run *run) {
    if (elf_view_is_newer(run)) check_skip(run, "the plugin may know more than this program");
    on_each_device(run, declines_grown_on, "no device claims an operation");
}

// Every operation with more sources than it needs: the answer does not matter here.
static bool any_node_on(const struct check_run *run, struct bench *bench) {
    (void)run;
    struct ggml_tensor node = *node_of(&bench->o, CASE_ADD);
    for (int j = 0; j < GGML_MAX_SRC; ++j)
        node.src[j] = j % 2 ? bench->o.b : bench->o.a;
    for (int op = 0; op < GGML_OP_COUNT; ++op) {
        node.op = (enum ggml_op)op;
        claims(bench->device, &node);
        if (bench->device->table->offload_op)
            bench->device->table->offload_op(bench->device, &node);
    }
    return true;
}

void op_any_node(struct check_run *run) {
    on_each_device(run, any_node_on, NULL);
}

// What one thread asks, and what it was answered when it asked alone.
struct questions {
    ggml_backend_dev_t device;
    const struct ggml_tensor *nodes[N_CASES];
    bool claimed[N_CASES];
    int first;
};

// The node whose claim differed, or NULL.
static void *claim_often(void *argument) {
    const struct questions *questions = argument;
    for (int i = 0; i < 100 * N_CASES; ++i) {
        const int op = (questions->first + i) % N_CASES;
        if (claims(questions->device, questions->nodes[op]) != questions->claimed[op])
            return (void *)(uintptr_t)questions->nodes[op];
    }
    return NULL;
}

// Each thread begins with another node.
static bool claims_threads_on(const struct check_run *run, struct bench *bench) {
    pthread_t threads[N_THREADS];
    struct questions questions[N_THREADS] = {{.device = bench->device}};
    for (int op = 0; op < N_CASES; ++op) {
        questions[0].nodes[op] = node_of(&bench->o, (enum op_case)op);
        questions[0].claimed[op] = claims(bench->device, questions[0].nodes[op]);
    }
    for (int j = 0; j < N_THREADS; ++j) {
        questions[j] = questions[0];
        questions[j].first = j;
    }
    for (int j = 0; j < N_THREADS; ++j) {
        CHECK_THAT(run, pthread_create(&threads[j], NULL, claim_often, &questions[j]) == 0,
                   "no thread");
    }
    for (int j = 0; j < N_THREADS; ++j) {
        void *wrong;
        pthread_join(threads[j], &wrong);
        CHECK_THAT(run, !wrong, "%s: %s is answered otherwise while other threads ask",
                   label(bench->device), ggml_op_desc(wrong));
    }
    return true;
}

void op_claims_threads(struct check_run *run) {
    on_each_device(run, claims_threads_on, NULL);
}

// --- what computing must and must not do ---------------------------------------------------------

// Its builder is deprecated, the operation is not.
static struct ggml_tensor *add1(const struct operands *o) {
    struct ggml_tensor *node = ggml_add(o->ctx, o->a, o->b);
    node->op = GGML_OP_ADD1;
    node->src[1] = ggml_view_1d(o->ctx, o->b, 1, 0);
    return node;
}

// A node of an operation that may run in place; NULL: there is none here.
static struct ggml_tensor *reusing_node(const struct operands *o, enum ggml_op op, int sub_op) {
    struct ggml_context *c = o->ctx;
    struct ggml_tensor *a = o->a, *b = o->b;
    struct ggml_tensor *position = ggml_view_1d(c, o->rows, 1, 0);
    switch (op) {
    case GGML_OP_ADD: return ggml_add(c, a, b);
    case GGML_OP_ADD_ID: return ggml_add_id(c, a, b, ggml_view_2d(c, o->rows, ROWS, 1, 0, 0));
    case GGML_OP_ADD1: return add1(o);
    case GGML_OP_SUB: return ggml_sub(c, a, b);
    case GGML_OP_MUL: return ggml_mul(c, a, b);
    case GGML_OP_DIV: return ggml_div(c, a, b);
    case GGML_OP_SQR: return ggml_sqr(c, a);
    case GGML_OP_SQRT: return ggml_sqrt(c, b);
    case GGML_OP_LOG: return ggml_log(c, b);
    case GGML_OP_SILU_BACK: return ggml_silu_back(c, a, b);
    case GGML_OP_RMS_NORM: return ggml_rms_norm(c, a, 1e-5f);
    case GGML_OP_RMS_NORM_BACK: return ggml_rms_norm_back(c, a, b, 1e-5f);
    case GGML_OP_SCALE: return ggml_scale_bias(c, a, 2.5f, 0.5f);
    case GGML_OP_DIAG_MASK_INF: return ggml_diag_mask_inf(c, a, 3);
    case GGML_OP_DIAG_MASK_ZERO: return ggml_diag_mask_zero(c, a, 3);
    case GGML_OP_SOFT_MAX: return ggml_soft_max_ext(c, a, b, 1.0f, 0.0f);
    case GGML_OP_SOFT_MAX_BACK: return ggml_soft_max_ext_back(c, a, b, 1.0f, 0.0f);
    case GGML_OP_ROPE:
        return ggml_rope(c, ggml_reshape_3d(c, a, COLUMNS, ROWS, 1), position, COLUMNS - 1, 0);
    case GGML_OP_ROPE_BACK:
        return ggml_rope_ext_back(c, ggml_reshape_3d(c, a, COLUMNS, ROWS, 1), position, NULL,
                                  COLUMNS - 1, 0, 0, 10000.0f, 1.0f, 0.0f, 1.0f, 0.0f, 0.0f);
    case GGML_OP_FILL: return ggml_fill(c, a, 1.5f);
    case GGML_OP_UNARY:
        return sub_op == GGML_UNARY_OP_XIELU ? ggml_xielu(c, a, 0.5f, 0.5f, 0.5f, -1e-6f)
                                             : ggml_unary(c, a, (enum ggml_unary_op)sub_op);
    default: return NULL;
    }
}

// Whether a result may take the source's memory: same type, shape and strides.
static bool has_layout_of(const struct ggml_tensor *node, const struct ggml_tensor *src) {
    return src && src->type == node->type && ggml_are_same_shape(src, node) &&
           ggml_are_same_stride(src, node);
}

// A graph of one node.
static struct ggml_cgraph *graph_of(const struct operands *o, struct ggml_tensor *node) {
    struct ggml_cgraph *graph = ggml_new_graph_custom(o->ctx, SMALL_GRAPH, false);
    ggml_build_forward_expand(graph, node);
    return graph;
}

// An operation with a result of its own, and with its result in the memory of a source.
struct in_place_pair {
    struct ggml_cgraph *apart;
    struct ggml_cgraph *in_place;
    int source;
};

enum { MAX_PAIRS = 96 };

// Adds a pair for each source in whose memory the operation may put its result, if the device
// claims both; returns how many.
static int add_pairs(const struct check_run *run, const struct bench *bench, enum ggml_op op,
                     int sub_op, struct in_place_pair *out) {
    struct ggml_tensor *node = reusing_node(&bench->o, op, sub_op);
    int n = 0;
    CHECK_THAT(run, node && !ggml_tensor_is_error(node), "the check has no node of %s",
               ggml_op_name(op));
    if (!claims(bench->device, node)) return 0;
    for (int i = 0; i < GGML_MAX_SRC; ++i) {
        if (!has_layout_of(node, node->src[i])) continue;
        struct ggml_tensor *other = reusing_node(&bench->o, op, sub_op), *src = other->src[i];
        other->view_src = src->view_src ? src->view_src : src;
        other->view_offs = src->view_offs;
        if (!claims(bench->device, other)) continue;
        out[n++] = (struct in_place_pair){graph_of(&bench->o, node), graph_of(&bench->o, other), i};
    }
    return n;
}

// Sets all operands again, as a node in place has overwritten one, and computes one graph.
static void compute_pair_member(const struct check_run *run, struct bench *bench,
                                struct ggml_cgraph *graph, float *out_numbers) {
    const struct operands *o = &bench->o;
    const struct values *v = &bench->v;
    bench->graph = graph;
    bench->node = ggml_graph_node(graph, -1);
    ggml_backend_tensor_set(o->a, v->a, 0, sizeof(v->a));
    ggml_backend_tensor_set(o->b, v->b, 0, sizeof(v->b));
    ggml_backend_tensor_set(o->rows, v->rows, 0, sizeof(v->rows));
    bench_compute(run, bench);
    ggml_backend_tensor_get(bench->node, out_numbers, 0, ggml_nbytes(bench->node));
}

// Compares the result in place with the one apart, element by element: equal bits (also NaN), or
// within the rounding of another order of sums.
static void compare_pair(const struct check_run *run, struct bench *bench,
                         const struct in_place_pair *pair) {
    float apart[N_VALUES], in_place[N_VALUES];
    compute_pair_member(run, bench, pair->apart, apart);
    compute_pair_member(run, bench, pair->in_place, in_place);
    for (int i = 0; i < N_VALUES; ++i) {
        const double bound = 1e-6 + 1e-5 * fabs((double)apart[i]);
        const bool same = memcmp(&apart[i], &in_place[i], sizeof(float)) == 0 ||
                          fabs((double)apart[i] - (double)in_place[i]) <= bound;
        CHECK_THAT(run, same, "%s: %s in the memory of source %d: number %d is %g instead of %g",
                   label(bench->device), ggml_op_desc(bench->node), pair->source, i,
                   (double)in_place[i], (double)apart[i]);
    }
}

// Goes through all operations that may run in place, and all unary functions.
static bool in_place_on(const struct check_run *run, struct bench *bench) {
    struct in_place_pair pairs[MAX_PAIRS];
    int n = 0;
    for (int op = 0; op < GGML_OP_COUNT; ++op) {
        if (!ggml_op_can_inplace((enum ggml_op)op)) continue;
        const int n_subs = op == GGML_OP_UNARY ? GGML_UNARY_OP_COUNT : 1;
        for (int sub = 0; sub < n_subs && n + GGML_MAX_SRC <= MAX_PAIRS; ++sub)
            n += add_pairs(run, bench, (enum ggml_op)op, sub, &pairs[n]);
    }
    if (n == 0 || !bench_place(run, bench, node_of(&bench->o, CASE_ADD))) return false;
    for (int i = 0; i < n; ++i)
        compare_pair(run, bench, &pairs[i]);
    return true;
}

void op_in_place(struct check_run *run) {
    on_each_device(run, in_place_on, "no device claims an addition");
}

// A result between two others: only its own bytes change, and the sources stay.
static bool guard_on(const struct check_run *run, struct bench *bench) {
    unsigned char image[3 * N_VALUES * sizeof(float)];
    float source[N_VALUES];
    struct ggml_tensor *whole = ggml_new_tensor_2d(bench->o.ctx, GGML_TYPE_F32, COLUMNS, 3 * ROWS);
    struct ggml_tensor *node = ggml_add(bench->o.ctx, bench->o.a, bench->o.b);
    node->view_src = whole;
    node->view_offs = N_VALUES * sizeof(float);
    if (!bench_place(run, bench, node)) return false;
    memset(image, 0x6b, sizeof(image));
    ggml_backend_tensor_set(whole, image, 0, sizeof(image));
    bench_compute(run, bench);
    ggml_backend_tensor_get(whole, image, 0, sizeof(image));
    for (size_t j = 0; j < sizeof(image); ++j) {
        CHECK_THAT(run, image[j] == 0x6b || (j >= sizeof(image) / 3 && j < sizeof(image) / 3 * 2),
                   "%s: byte %zd from the result was written", label(bench->device),
                   (ptrdiff_t)j - (ptrdiff_t)(sizeof(image) / 3));
    }
    ggml_backend_tensor_get(bench->o.b, source, 0, sizeof(source));
    CHECK_THAT(run, memcmp(source, bench->v.b, sizeof(source)) == 0, "%s: a source was changed",
               label(bench->device));
    return true;
}

void op_guard(struct check_run *run) {
    on_each_device(run, guard_on, "no device claims an addition");
}

// Whether the row that does not exist was made NaN, and the others are right.
static bool is_told_by_numbers(const struct bench *bench, int row) {
    float actual[N_VALUES];
    ggml_backend_tensor_get(bench->node, actual, 0, sizeof(actual));
    for (int i = 0; i < N_VALUES; ++i) {
        const double expected = expected_at(CASE_GET_ROWS, &bench->v, i % COLUMNS, i / COLUMNS);
        const bool right = i / COLUMNS == row ? isnan(actual[i]) : (double)actual[i] == expected;
        if (!right) return false;
    }
    return true;
}

// Indices that point outside: an error or NaN, and the stream still works.
static bool bad_index_on(const struct check_run *run, struct bench *bench) {
    static const int32_t indices[] = {ROWS, -1, INT32_MAX, INT32_MIN};
    enum { BAD_ROW = 3 };
    if (!bench_place(run, bench, node_of(&bench->o, CASE_GET_ROWS))) return false;
    for (size_t j = 0; j < sizeof(indices) / sizeof(indices[0]); ++j) {
        ggml_backend_tensor_set(bench->o.rows, &indices[j], BAD_ROW * sizeof(int32_t),
                                sizeof(int32_t));
        const long told = atomic_load(&host_counters.n_errors);
        const enum ggml_status status = ggml_backend_graph_compute(bench->stream, bench->graph);
        CHECK_THAT(run,
                   status != GGML_STATUS_SUCCESS || atomic_load(&host_counters.n_errors) > told ||
                       is_told_by_numbers(bench, BAD_ROW),
                   "%s: row %d of %d is found", label(bench->device), indices[j], ROWS);
    }
    ggml_backend_tensor_set(bench->o.rows, bench->v.rows, 0, sizeof(bench->v.rows));
    // A stream that queues may tell of the last failure only now.
    ggml_backend_graph_compute(bench->stream, bench->graph);
    bench_compute(run, bench);
    bench_compare(run, bench, CASE_GET_ROWS);
    return true;
}

void op_bad_index(struct check_run *run) {
    on_each_device(run, bad_index_on, "no device claims GET_ROWS");
}

// Whatever comes out: the computation ends, and the stream still works.
void op_non_finite(struct check_run *run) {
    static const float values[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 1e-45f, 0.0f, -0.0f};
    struct devices devices;
    struct bench bench;
    bool any = false;
    devices_open(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        for (int op = 0; op < N_CASES; ++op) {
            float data[N_VALUES];
            bench_begin(run, devices.items[i], &bench);
            if (!bench_place(run, &bench, node_of(&bench.o, (enum op_case)op))) continue;
            any = true;
            for (int j = 0; j < N_VALUES; ++j)
                data[j] = values[j % 8];
            ggml_backend_tensor_set(bench.o.a, data, 0, sizeof(data));
            ggml_backend_tensor_set(bench.o.b, data, 0, sizeof(data));
            ggml_backend_graph_compute(bench.stream, bench.graph);
            ggml_backend_free(bench.stream);
            ggml_backend_buffer_free(bench.buffer);
            ggml_free(bench.o.ctx);
        }
    }
    if (!any) check_skip(run, "no device claims any of them");
}

// Rows of zero count: nothing to compute, and addresses that may be NULL.
static bool no_elements_on(const struct check_run *run, struct bench *bench) {
    struct ggml_tensor *none = ggml_new_tensor_2d(bench->o.ctx, GGML_TYPE_F32, COLUMNS, 0);
    struct ggml_tensor *also = ggml_new_tensor_2d(bench->o.ctx, GGML_TYPE_F32, COLUMNS, 0);
    if (!bench_place(run, bench, ggml_add(bench->o.ctx, none, also))) return false;
    bench_compute(run, bench);
    return true;
}

void op_no_elements(struct check_run *run) {
    on_each_device(run, no_elements_on, "no device claims an addition without elements");
}

// A chain whose every node is the next one's source.
static bool chain_on(const struct check_run *run, struct bench *bench) {
    struct ggml_tensor *node = ggml_add(bench->o.ctx, bench->o.a, bench->o.b);
    for (int j = 0; j < 10; ++j)
        node = ggml_add(bench->o.ctx, node, bench->o.b);
    if (!bench_place(run, bench, node)) return false;
    bench_compute(run, bench);
    float actual[N_VALUES];
    ggml_backend_tensor_get(node, actual, 0, sizeof(actual));
    for (int j = 0; j < N_VALUES; ++j) {
        const double expected = (double)bench->v.a[j] + 11 * (double)bench->v.b[j];
        CHECK_THAT(run, fabs((double)actual[j] - expected) < 1e-3, "%s: number %d is %g, not %g",
                   label(bench->device), j, (double)actual[j], expected);
    }
    return true;
}

void op_chain(struct check_run *run) {
    on_each_device(run, chain_on, "no device claims an addition");
}
