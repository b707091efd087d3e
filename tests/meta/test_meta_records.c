// SPDX-License-Identifier: MIT
// What the meta device keeps of tensors: shared by threads, with tensors that come and go at the
// same addresses, and with copies of a tensor's struct.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "meta/meta.h"
#include "meta_test.h"

static struct virtual_host host;

enum { ROW = 32, THE_ROW = 5, N_ROWS = 64, N_VIEWS = 60, N_GRAPHS = 40, N_THREADS = 4 };

// --- a matrix in static memory, whose row i is full of i -----------------------------------------

struct matrix {
    ggml_backend_dev_t device;
    ggml_backend_t stream;
    struct ggml_context *ctx;
    struct ggml_tensor *w, *row; // a view of one of its rows, which is in every graph
    ggml_backend_buffer_t buffer;
};

static struct ggml_context *new_context(size_t n_tensors) {
    const size_t size = n_tensors * ggml_tensor_overhead() + ggml_graph_overhead();
    return ggml_init((struct ggml_init_params){.mem_size = size, .no_alloc = true});
}

static void matrix_begin(struct matrix *matrix, struct split_plan *plan) {
    ggml_backend_dev_t devices[] = {virtual_device(&host, 0), virtual_device(&host, 1)};
    float values[ROW * N_ROWS];
    matrix->device = ggml_backend_meta_device(devices, 2, meta_test_split, plan);
    matrix->stream = ggml_backend_dev_init(matrix->device, NULL);
    matrix->ctx = new_context(4);
    matrix->w = ggml_set_name(ggml_new_tensor_2d(matrix->ctx, GGML_TYPE_F32, ROW, N_ROWS), "w");
    matrix->row = ggml_view_1d(matrix->ctx, matrix->w, ROW, THE_ROW * matrix->w->nb[1]);
    matrix->buffer = ggml_backend_alloc_ctx_tensors(matrix->ctx, matrix->stream);
    assert_non_null(matrix->buffer);
    for (int i = 0; i < ROW * N_ROWS; ++i)
        values[i] = (float)(i / ROW);
    ggml_backend_tensor_set(matrix->w, values, 0, sizeof(values));
    ggml_clear_error();
}

static void matrix_end(struct matrix *matrix) {
    ggml_backend_free(matrix->stream);
    ggml_backend_buffer_free(matrix->buffer);
    ggml_free(matrix->ctx);
}

static struct split_plan mirrored = {.n_devices = 2, .weights = {1, 1}};

// --- tensors at the addresses of others ----------------------------------------------------------

static void test_views_at_one_address(void **state) {
    (void)state;
    struct matrix matrix;
    float value = -1.0f;
    matrix_begin(&matrix, &mirrored);
    struct ggml_context *ctx = new_context(1);
    const struct ggml_tensor *first = NULL;
    for (int i = 0; i < 4; ++i) {
        ggml_reset(ctx);
        struct ggml_tensor *row = ggml_view_1d(ctx, matrix.w, ROW, (size_t)i * matrix.w->nb[1]);
        if (!first) first = row;
        assert_ptr_equal(row, first);
        ggml_backend_tensor_get(row, &value, 0, sizeof(value));
        if (value != (float)i) fail_msg("row %d has %g", i, (double)value);
        value = (float)(100 + i);
        ggml_backend_tensor_set(row, &value, 0, sizeof(value));
    }
    for (int i = 0; i < 4; ++i) {
        ggml_backend_tensor_get(matrix.w, &value, (size_t)i * matrix.w->nb[1], sizeof(value));
        if (value != (float)(100 + i)) fail_msg("row %d of the whole has %g", i, (double)value);
    }
    assert_string_equal(ggml_last_error(), "");
    ggml_free(ctx);
    matrix_end(&matrix);
}

// Views in a context whose own tensors get memory: of those, of the matrix, or of nothing else.
static void test_views_placed_with_a_context(void **state) {
    (void)state;
    struct matrix matrix;
    float value = -1.0f;
    matrix_begin(&matrix, &mirrored);
    for (int n_own = 0; n_own < 2; ++n_own) {
        struct ggml_context *ctx = new_context(4);
        struct ggml_tensor *row = ggml_view_1d(ctx, matrix.w, ROW, 9 * matrix.w->nb[1]);
        struct ggml_tensor *doubled = n_own ? ggml_scale(ctx, row, 2.0f) : NULL;
        ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(ctx, matrix.stream);
        assert_int_equal(buffer != NULL, n_own);
        assert_ptr_equal(row->buffer, matrix.buffer);
        assert_ptr_equal(row->data, (char *)matrix.w->data + 9 * matrix.w->nb[1]);
        struct ggml_cgraph *graph = ggml_new_graph(ctx);
        if (doubled) {
            ggml_build_forward_expand(graph, doubled);
            assert_int_equal(ggml_backend_graph_compute(matrix.stream, graph), GGML_STATUS_SUCCESS);
        }
        ggml_backend_tensor_get(doubled ? doubled : row, &value, 0, sizeof(value));
        assert_true(value == (doubled ? 18.0f : 9.0f));
        assert_string_equal(ggml_last_error(), "");
        ggml_backend_buffer_free(buffer);
        ggml_free(ctx);
    }
    matrix_end(&matrix);
}

// --- graphs with views of the matrix -------------------------------------------------------------

struct graph {
    struct ggml_context *ctx;
    struct ggml_cgraph *graph;
    struct ggml_tensor *x, *sum;
};

// The sum of N_VIEWS rows, `first` and every seventh behind it, and of one that all graphs share,
// with x added to each.
static void graph_begin(struct graph *graph, struct matrix *matrix, int first) {
    graph->ctx = new_context(4 * N_VIEWS + 8);
    graph->graph = ggml_new_graph(graph->ctx);
    graph->x = ggml_new_tensor_1d(graph->ctx, GGML_TYPE_F32, ROW);
    ggml_set_input(graph->x);
    graph->sum = ggml_add(graph->ctx, graph->x, matrix->row);
    for (int i = 0; i < N_VIEWS; ++i) {
        const size_t offset = (size_t)((7 * i + first) % N_ROWS) * matrix->w->nb[1];
        struct ggml_tensor *row = ggml_view_1d(graph->ctx, matrix->w, ROW, offset);
        row = ggml_add(graph->ctx, row, graph->x);
        graph->sum = ggml_add(graph->ctx, graph->sum, row);
    }
    ggml_set_output(graph->sum);
    ggml_build_forward_expand(graph->graph, graph->sum);
}

static float expected_sum(int first, float x) {
    float sum = THE_ROW + x;
    for (int i = 0; i < N_VIEWS; ++i)
        sum += (float)((7 * i + first) % N_ROWS) + x;
    return sum;
}

// Whether the result is right; x is `first` too.
static bool graph_compute(struct graph *graph, ggml_gallocr_t galloc, ggml_backend_t stream,
                          int first) {
    float values[ROW], sum = -1.0f;
    if (!ggml_gallocr_alloc_graph(galloc, graph->graph)) return false;
    for (int i = 0; i < ROW; ++i)
        values[i] = (float)first;
    ggml_backend_tensor_set(graph->x, values, 0, sizeof(values));
    if (ggml_backend_graph_compute(stream, graph->graph) != GGML_STATUS_SUCCESS) return false;
    ggml_backend_tensor_get(graph->sum, &sum, (ROW - 1) * sizeof(sum), sizeof(sum));
    return sum == expected_sum(first, (float)first);
}

// Graphs that live at other addresses each time; the plan of the first stays in use.
static void test_records_do_not_pile_up(void **state) {
    (void)state;
    struct matrix matrix;
    struct graph kept, graphs[N_GRAPHS];
    matrix_begin(&matrix, &mirrored);
    ggml_backend_buffer_type_t buft = ggml_backend_get_default_buffer_type(matrix.stream);
    ggml_backend_t other = ggml_backend_dev_init(matrix.device, NULL);
    ggml_gallocr_t galloc_kept = ggml_gallocr_new(buft), galloc = ggml_gallocr_new(buft);
    graph_begin(&kept, &matrix, 3);
    assert_true(graph_compute(&kept, galloc_kept, other, 3));
    for (int i = 0; i < N_GRAPHS; ++i) {
        graph_begin(&graphs[i], &matrix, i);
        assert_true(graph_compute(&graphs[i], galloc, matrix.stream, i));
        assert_int_equal(ggml_backend_graph_compute(other, kept.graph), GGML_STATUS_SUCCESS);
    }
    // Those of the plans that there are, and as many again before the next search for old ones.
    const struct meta_buffer *meta = meta_buffer_of(matrix.buffer);
    if (meta->n_records > 8 * N_VIEWS) fail_msg("%zu records", meta->n_records);
    assert_true(graph_compute(&kept, galloc_kept, other, 3));
    for (int i = 0; i < N_GRAPHS; ++i)
        ggml_free(graphs[i].ctx);
    ggml_gallocr_free(galloc);
    ggml_gallocr_free(galloc_kept);
    matrix_end(&matrix); // before the other stream, whose plan has records of the buffer
    ggml_backend_free(other);
    ggml_free(kept.ctx);
}

// One stream may be computing with the slices of a view of weights while another one plans: they
// are not written again.
static void test_slices_in_use_stay(void **state) {
    (void)state;
    struct matrix matrix;
    struct graph graphs[2];
    matrix_begin(&matrix, &mirrored);
    ggml_backend_buffer_type_t buft = ggml_backend_get_default_buffer_type(matrix.stream);
    ggml_gallocr_t galloc = ggml_gallocr_new(buft);
    for (int i = 0; i < 2; ++i) {
        graph_begin(&graphs[i], &matrix, i);
        assert_true(graph_compute(&graphs[i], galloc, matrix.stream, i));
        meta_lock();
        struct ggml_tensor *slice = &meta_record_get(matrix.row)->slices[1];
        const struct ggml_tensor found = *slice;
        ggml_set_name(slice, "seen");
        meta_unlock();
        if (i > 0) assert_string_equal(found.name, "seen");
    }
    for (int i = 0; i < 2; ++i)
        ggml_free(graphs[i].ctx);
    ggml_gallocr_free(galloc);
    matrix_end(&matrix);
}

// --- threads -------------------------------------------------------------------------------------

struct worker {
    pthread_t thread;
    struct matrix *matrix;
    int first;
    int n_right;
};

// A stream and graphs of its own, on weights that all threads share. No two graphs lie at one
// address, so that there are new records all the time.
static void *work(void *user) {
    struct worker *worker = user;
    ggml_backend_t stream = ggml_backend_dev_init(worker->matrix->device, NULL);
    ggml_gallocr_t galloc = ggml_gallocr_new(ggml_backend_get_default_buffer_type(stream));
    struct graph graphs[N_GRAPHS];
    for (int i = 0; i < N_GRAPHS; ++i) {
        graph_begin(&graphs[i], worker->matrix, worker->first);
        worker->n_right += graph_compute(&graphs[i], galloc, stream, worker->first);
    }
    for (int i = 0; i < N_GRAPHS; ++i)
        ggml_free(graphs[i].ctx);
    ggml_gallocr_free(galloc);
    ggml_backend_free(stream);
    return NULL;
}

static void compute_in_threads(void) {
    struct matrix matrix;
    struct worker workers[N_THREADS];
    matrix_begin(&matrix, &mirrored);
    for (int i = 0; i < N_THREADS; ++i) {
        workers[i] = (struct worker){.matrix = &matrix, .first = i};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < N_THREADS; ++i) {
        pthread_join(workers[i].thread, NULL);
        assert_int_equal(workers[i].n_right, N_GRAPHS);
    }
    matrix_end(&matrix);
}

static void test_threads_share_weights(void **state) {
    (void)state;
    for (int i = 0; i < 4; ++i)
        compute_in_threads();
}

// --- single graphs -------------------------------------------------------------------------------

struct small {
    ggml_backend_t stream;
    struct ggml_context *leafs, *nodes;
    struct ggml_cgraph *graph;
    ggml_backend_buffer_t memory;
    ggml_gallocr_t galloc;
};

// On two devices that are one and the same; leafs and nodes are made by the caller.
static void small_begin(struct small *small, ggml_backend_dev_t device, struct split_plan *plan) {
    ggml_backend_dev_t devices[] = {device, device};
    small->stream =
        ggml_backend_dev_init(ggml_backend_meta_device(devices, 2, meta_test_split, plan), NULL);
    assert_non_null(small->stream);
    small->leafs = new_context(8);
    small->nodes = new_context(8);
    small->graph = ggml_new_graph(small->nodes);
}

// F32, allocated by small_place().
static struct ggml_tensor *leaf(struct small *small, const char *name, int64_t ne0, int64_t ne1) {
    return ggml_set_name(ggml_new_tensor_2d(small->leafs, GGML_TYPE_F32, ne0, ne1), name);
}

static void fill(struct ggml_tensor *tensor, float value) {
    float values[ROW * ROW];
    for (int64_t i = 0; i < ggml_nelements(tensor); ++i)
        values[i] = value;
    ggml_backend_tensor_set(tensor, values, 0, ggml_nbytes(tensor));
}

// Gives memory to all tensors; leafs are full of 1.
static void small_place(struct small *small, struct ggml_tensor *result) {
    ggml_set_output(result);
    ggml_build_forward_expand(small->graph, result);
    small->memory = ggml_backend_alloc_ctx_tensors(small->leafs, small->stream);
    assert_non_null(small->memory);
    for (struct ggml_tensor *t = ggml_get_first_tensor(small->leafs); t;
         t = ggml_get_next_tensor(small->leafs, t)) {
        fill(t, 1.0f);
    }
    small->galloc = ggml_gallocr_new(ggml_backend_get_default_buffer_type(small->stream));
    assert_true(ggml_gallocr_alloc_graph(small->galloc, small->graph));
    ggml_clear_error();
}

static void small_end(struct small *small) {
    ggml_backend_free(small->stream);
    ggml_gallocr_free(small->galloc);
    ggml_backend_buffer_free(small->memory);
    ggml_free(small->nodes);
    ggml_free(small->leafs);
}

// All of its elements.
static void expect(const struct ggml_tensor *tensor, float expected) {
    float values[ROW * ROW];
    ggml_backend_tensor_get(tensor, values, 0, ggml_nbytes(tensor));
    assert_string_equal(ggml_last_error(), "");
    for (int64_t i = 0; i < ggml_nelements(tensor); ++i) {
        if (values[i] != expected)
            fail_msg("'%s' has %g, expected %g", tensor->name, (double)values[i], (double)expected);
    }
}

// A product of operands that the second device has whole, split along different axes: on the first
// one they don't fit each other, and nothing is computed there.
static void test_operands_on_one_device(void **state) {
    (void)state;
    static struct split_plan plan = {
        .n_devices = 2, .weights = {0, 1}, .rules = {{.prefix = "a", .axis = 1}, {.prefix = "b"}}};
    ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    struct small small;
    if (!cpu) skip();
    small_begin(&small, cpu, &plan);
    struct ggml_tensor *a = leaf(&small, "a", ROW, ROW), *b = leaf(&small, "b", ROW, 4);
    struct ggml_tensor *product = ggml_mul_mat(small.nodes, a, b);
    small_place(&small, product);
    if (ggml_backend_graph_compute(small.stream, small.graph) != GGML_STATUS_SUCCESS)
        fail_msg("%s", ggml_last_error());
    expect(product, ROW);
    small_end(&small);
}

// A sum over devices that is added up, then replaced by the application between two graphs.
static void test_write_to_a_sum(void **state) {
    (void)state;
    static struct split_plan plan = {
        .n_devices = 2,
        .weights = {1, 1},
        .rules = {{.prefix = "a"}, {.prefix = "b"}, {.prefix = "rows", .axis = 1}}};
    struct small small;
    small_begin(&small, virtual_device(&host, 0), &plan);
    struct ggml_tensor *a = leaf(&small, "a", 8, 4), *b = leaf(&small, "b", 8, 1);
    struct ggml_tensor *sum = ggml_mul_mat(small.nodes, a, b);
    ggml_set_output(sum);
    struct ggml_tensor *result = ggml_mul_mat(small.nodes, leaf(&small, "rows", 4, 4), sum);
    small_place(&small, result);
    struct ggml_cgraph first = ggml_graph_view(small.graph, 0, 1);
    struct ggml_cgraph second = ggml_graph_view(small.graph, 1, 2);
    assert_int_equal(ggml_backend_graph_compute(small.stream, &first), GGML_STATUS_SUCCESS);
    expect(sum, 8.0f);
    fill(sum, 10.0f);
    assert_int_equal(ggml_backend_graph_compute(small.stream, &second), GGML_STATUS_SUCCESS);
    expect(result, 40.0f);
    small_end(&small);
}

// --- copies of a tensor's struct -----------------------------------------------------------------

// Programs copy the struct of a tensor that has memory, and mean the same memory.
static void test_copy_of_a_struct(void **state) {
    (void)state;
    static struct split_plan plan = {
        .n_devices = 2, .weights = {1, 1}, .rules = {{.prefix = "w", .axis = 1}}};
    struct matrix matrix;
    float values[N_ROWS][ROW];
    matrix_begin(&matrix, &plan);
    struct ggml_tensor copy = *matrix.w;
    ggml_backend_tensor_get(&copy, values, 0, sizeof(values));
    for (int i = 0; i < N_ROWS; ++i)
        assert_true(values[i][0] == (float)i && values[i][ROW - 1] == (float)i);
    values[0][0] = 7.0f;
    ggml_backend_tensor_set(&copy, &values[0][0], matrix.w->nb[1] * 40, sizeof(float));
    ggml_backend_tensor_get(matrix.w, values, 0, sizeof(values));
    assert_true(values[40][0] == 7.0f && values[40][1] == 40.0f);
    assert_string_equal(ggml_last_error(), "");
    struct ggml_context *ctx = new_context(1);
    struct ggml_tensor *view = ggml_view_2d(ctx, &copy, ROW, N_ROWS, copy.nb[1], 0);
    values[40][0] = values[50][1] = -1.0f;
    ggml_backend_tensor_get(view, values, 0, sizeof(values));
    assert_true(values[40][0] == 7.0f && values[50][1] == 50.0f);
    ggml_free(ctx);
    matrix_end(&matrix);
}

// Another tensor at the address of the copy, which is of other memory.
static void test_another_copy_at_its_address(void **state) {
    (void)state;
    static struct split_plan plan = {.n_devices = 2, .weights = {1, 1}};
    struct small small;
    small_begin(&small, virtual_device(&host, 0), &plan);
    struct ggml_tensor *a = leaf(&small, "a", 8, 4), *b = leaf(&small, "b", 8, 4);
    small_place(&small, ggml_add(small.nodes, a, b));
    fill(a, 2.0f);
    fill(b, 3.0f);
    struct ggml_tensor copy = *a;
    expect(&copy, 2.0f);
    copy = *b;
    expect(&copy, 3.0f);
    struct ggml_tensor *half = ggml_view_2d(small.nodes, &copy, 8, 2, copy.nb[1], 0);
    expect(half, 3.0f);
    copy = *a;
    expect(half, 2.0f);
    small_end(&small);
}

// Programs go on with the copies of weights whose structs are gone; something else is there then.
static void test_owners_outlive_their_structs(void **state) {
    (void)state;
    static struct split_plan plan = {
        .n_devices = 2, .weights = {1, 1}, .rules = {{.prefix = "a", .axis = 1}}};
    struct small small;
    small_begin(&small, virtual_device(&host, 0), &plan);
    struct ggml_tensor *a = leaf(&small, "a", 8, 4), *b = leaf(&small, "b", 8, 4);
    small_place(&small, ggml_add(small.nodes, a, b));
    fill(a, 2.0f);
    fill(b, 3.0f);
    const struct ggml_tensor at_a = *a;
    struct ggml_tensor copy = *a, other = *b;
    struct ggml_tensor *row = ggml_view_1d(small.nodes, &other, 8, other.nb[1]);
    expect(&copy, 2.0f);
    *a = other;
    expect(a, 3.0f);
    *a = *row;
    assert_int_equal(ggml_backend_view_init(a), GGML_STATUS_SUCCESS);
    expect(a, 3.0f);
    fill(a, 4.0f);
    float values[8 * 4];
    ggml_backend_tensor_get(b, values, 0, sizeof(values));
    assert_true(values[7] == 3.0f && values[8] == 4.0f && values[15] == 4.0f && values[16] == 3.0f);
    expect(&copy, 2.0f);
    expect(ggml_view_2d(small.nodes, &copy, 8, 4, copy.nb[1], 0), 2.0f);
    *a = at_a;
    expect(a, 2.0f);
    small_end(&small);
}

// A tensor that is placed where a weight is means that weight, whatever its name.
static void test_placed_on_a_weight(void **state) {
    (void)state;
    static struct split_plan plan = {
        .n_devices = 2,
        .weights = {1, 1},
        .rules = {{.prefix = "a", .axis = 1}, {.prefix = "b", .axis = 1}}};
    struct small small;
    small_begin(&small, virtual_device(&host, 0), &plan);
    struct ggml_tensor *a = leaf(&small, "a", 8, 4), *b = leaf(&small, "b", 8, 4);
    small_place(&small, ggml_add(small.nodes, a, b));
    struct ggml_tensor *t = ggml_new_tensor_2d(small.nodes, GGML_TYPE_F32, 8, 4);
    for (int i = 0; i < 2; ++i) {
        t->buffer = NULL;
        t->data = NULL;
        assert_int_equal(ggml_backend_tensor_alloc(small.memory, t, a->data), GGML_STATUS_SUCCESS);
        struct ggml_tensor *view = ggml_view_2d(small.nodes, t, 8, 4, t->nb[1], 0);
        assert_int_equal(ggml_backend_view_init(view), GGML_STATUS_SUCCESS);
        fill(view, 5.0f);
        expect(a, 5.0f);
        expect(b, 1.0f);
        fill(t, 6.0f);
        expect(a, 6.0f);
        expect(b, 1.0f);
    }
    small_end(&small);
}

// A sum that was computed into static memory is whole on each device: so it is read through a copy
// that says nothing of the operation.
static void test_copy_without_the_operation(void **state) {
    (void)state;
    static struct split_plan plan = {
        .n_devices = 2, .weights = {1, 1}, .rules = {{.prefix = "a"}, {.prefix = "b"}}};
    struct small small;
    small_begin(&small, virtual_device(&host, 0), &plan);
    struct ggml_tensor *a = leaf(&small, "a", 8, 4), *b = leaf(&small, "b", 8, 1);
    struct ggml_tensor *product = ggml_mul_mat(small.leafs, a, b);
    struct ggml_tensor *result = ggml_scale(small.nodes, product, 2.0f);
    small_place(&small, result);
    struct ggml_cgraph first = ggml_graph_view(small.graph, 0, 1);
    assert_int_equal(ggml_backend_graph_compute(small.stream, &first), GGML_STATUS_SUCCESS);
    struct ggml_tensor copy = *product;
    copy.op = GGML_OP_NONE;
    memset(copy.src, 0, sizeof(copy.src));
    result->src[0] = &copy;
    struct ggml_tensor other = *product, gone;
    memset(&gone, 0xee, sizeof(gone));
    other.src[0] = other.src[1] = &gone;
    expect(&other, 8.0f);
    struct ggml_cgraph second = ggml_graph_view(small.graph, 1, 2);
    if (ggml_backend_graph_compute(small.stream, &second) != GGML_STATUS_SUCCESS)
        fail_msg("%s", ggml_last_error());
    expect(result, 16.0f);
    fill(&copy, 3.0f);
    assert_int_equal(ggml_backend_graph_compute(small.stream, &second), GGML_STATUS_SUCCESS);
    expect(result, 6.0f);
    small_end(&small);
}

// The copy of a product in static memory is computed, and its sum is there.
static void test_copy_of_a_node(void **state) {
    (void)state;
    static struct split_plan plan = {
        .n_devices = 2, .weights = {1, 1}, .rules = {{.prefix = "a"}, {.prefix = "b"}}};
    struct small small;
    small_begin(&small, virtual_device(&host, 0), &plan);
    struct ggml_tensor *a = leaf(&small, "a", 8, 4), *b = leaf(&small, "b", 8, 1);
    struct ggml_tensor *product = ggml_mul_mat(small.leafs, a, b);
    struct ggml_tensor *result = ggml_scale(small.nodes, product, 2.0f);
    small_place(&small, result);
    struct ggml_tensor copy = *product;
    struct ggml_tensor *nodes[] = {&copy};
    struct ggml_cgraph graph = ggml_graph_view(small.graph, 0, 1);
    graph.nodes = nodes;
    if (ggml_backend_graph_compute(small.stream, &graph) != GGML_STATUS_SUCCESS)
        fail_msg("%s", ggml_last_error());
    expect(&copy, 8.0f);
    expect(product, 8.0f);
    small_end(&small);
}

// A copy that says it is at an address where nothing is has no slices, which is told.
static void test_copy_of_nothing(void **state) {
    (void)state;
    static struct split_plan plan = {
        .n_devices = 2, .weights = {1, 1}, .rules = {{.prefix = "a"}, {.prefix = "b"}}};
    struct small small;
    small_begin(&small, virtual_device(&host, 0), &plan);
    struct ggml_tensor *a = leaf(&small, "a", 8, 4), *b = leaf(&small, "b", 8, 1);
    struct ggml_tensor *product = ggml_mul_mat(small.leafs, a, b);
    small_place(&small, ggml_scale(small.nodes, product, 2.0f));
    struct ggml_tensor copy = *product;
    struct ggml_tensor *nodes[] = {&copy};
    struct ggml_cgraph graph = ggml_graph_view(small.graph, 0, 1);
    graph.nodes = nodes;
    copy.data = (char *)copy.data + 8;
    assert_int_equal(ggml_backend_graph_compute(small.stream, &graph), GGML_STATUS_FAILED);
    assert_int_equal(ggml_last_status(), GGML_HOST_INVALID_ARGUMENT);
    ggml_clear_error();
    small_end(&small);
}

static int begin(void **state) {
    (void)state;
    virtual_open(&host, "devices=2");
    return 0;
}

static int end_test(void **state) {
    (void)state;
    return (int)virtual_print_violations(&host);
}

static int end(void **state) {
    (void)state;
    return (int)virtual_close(&host);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_views_at_one_address, end_test),
        cmocka_unit_test_teardown(test_views_placed_with_a_context, end_test),
        cmocka_unit_test_teardown(test_records_do_not_pile_up, end_test),
        cmocka_unit_test_teardown(test_slices_in_use_stay, end_test),
        cmocka_unit_test_teardown(test_threads_share_weights, end_test),
        cmocka_unit_test_teardown(test_operands_on_one_device, end_test),
        cmocka_unit_test_teardown(test_write_to_a_sum, end_test),
        cmocka_unit_test_teardown(test_copy_of_a_struct, end_test),
        cmocka_unit_test_teardown(test_another_copy_at_its_address, end_test),
        cmocka_unit_test_teardown(test_owners_outlive_their_structs, end_test),
        cmocka_unit_test_teardown(test_placed_on_a_weight, end_test),
        cmocka_unit_test_teardown(test_copy_without_the_operation, end_test),
        cmocka_unit_test_teardown(test_copy_of_a_node, end_test),
        cmocka_unit_test_teardown(test_copy_of_nothing, end_test),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
