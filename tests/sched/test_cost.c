// SPDX-License-Identifier: MIT
// Cost-aware placement against the usual one and against trying everything.
#define _GNU_SOURCE
#include <float.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __GLIBC__
#include <sys/stat.h>
#include <unistd.h>
#endif

#include <cmocka.h>
#include <jansson.h>

#include "base/mem.h"
#include "ggml-impl.h"
#include "op/op_table.h"
#include "rig.h"

enum { MAX_NODES = 12, INPUTS = 3, STREAMS = 3, CASES = 1000, WIDTH = 64 };

static uint64_t random_state;

static uint32_t draw(uint32_t below) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % below;
}

// Tensors by number: first the inputs, then the nodes.
struct small {
    struct ggml_context *ctx;
    struct ggml_cgraph *graph;
    int n_nodes;
    struct ggml_tensor *tensors[INPUTS + MAX_NODES];
    int32_t sources[MAX_NODES][2]; // numbers, -1: none
};

// Some tensor before `i` with that many rows, or -1; rows < 0: any.
static int32_t draw_tensor(const struct small *small, int i, int64_t rows) {
    const int n = INPUTS + i;
    const int first = (int)draw((uint32_t)n);
    for (int k = 0; k < n; ++k) {
        const int number = (first + k) % n;
        if (rows < 0 || small->tensors[number]->ne[1] == rows) return number;
    }
    return -1;
}

// A product, a sum or a square of what is there before.
static void add_node(struct small *small, int i) {
    int32_t a = draw_tensor(small, i, -1);
    const int64_t rows = small->tensors[a]->ne[1];
    const int32_t matrix = draw_tensor(small, i, WIDTH);
    int32_t b = -1;
    struct ggml_tensor *node = NULL, *x = small->tensors[a];
    const uint32_t op = draw(3);
    if (op == 0) {
        b = a;
        a = matrix;
        node = ggml_mul_mat(small->ctx, small->tensors[a], x);
    } else if (op == 1 && x->type == GGML_TYPE_F32) {
        do {
            b = draw_tensor(small, i, rows);
        } while (small->tensors[b]->type != GGML_TYPE_F32);
        node = ggml_add(small->ctx, x, small->tensors[b]);
    } else {
        node = ggml_sqr(small->ctx, x);
    }
    small->sources[i][0] = a;
    small->sources[i][1] = b;
    small->tensors[INPUTS + i] = node;
    ggml_build_forward_expand(small->graph, node);
}

static void build(struct small *small, int n_nodes) {
    static const int64_t rows[INPUTS] = {WIDTH, 4, 16};
    small->ctx = ggml_init((struct ggml_init_params){.mem_size = 1 << 18, .no_alloc = true});
    small->graph = ggml_new_graph(small->ctx);
    small->n_nodes = n_nodes;
    for (int i = 0; i < INPUTS; ++i) {
        small->tensors[i] = ggml_new_tensor_2d(small->ctx, GGML_TYPE_F32, WIDTH, rows[i]);
        ggml_set_input(small->tensors[i]);
    }
    for (int i = 0; i < n_nodes; ++i) {
        add_node(small, i);
    }
}

static void draw_figures(struct ggml_device_figures *figures) {
    for (int b = 0; b < STREAMS; ++b) {
        figures[b] = (struct ggml_device_figures){
            .size = sizeof(figures[b]),
            .flags = draw(2) ? GGML_DEVICE_FIGURES_DIRECT_COPY : 0,
            .flops = 1e9 * (1 + draw(50)),
            .bytes_per_second = 1e9 * (1 + draw(50)),
            .launch_seconds = 1e-7 * draw(30),
            .link_bytes_per_second = 1e9 * (1 + draw(20)),
            .link_seconds = 1e-7 * draw(30),
        };
        if (draw(2)) figures[b].flops_of[GGML_TYPE_F32] = 1e9 * (1 + draw(50));
    }
    figures[STREAMS - 1].link_bytes_per_second = figures[STREAMS - 1].link_seconds = 0;
}

static enum ggml_host_status set_figures(struct rig *rig,
                                         const struct ggml_device_figures *figures) {
    const struct ggml_device_figures *pointers[RIG_MAX_DEVICES + 1];
    for (int b = 0; b <= rig->n_devices; ++b) {
        pointers[b] = &figures[b];
    }
    return ggml_sched_set_costs(rig->sched, pointers);
}

// --- the model once more, as documented

// What the first two devices declare of copies between them; none with a rate of 0.
struct far_link {
    double seconds, bytes_per_second;
};

// In half of the cases; the devices are of two hosts then.
static struct far_link draw_far_link(struct rig *rig) {
    const bool declared = draw(2);
    rig->config.hosts = declared ? 2 : 0;
    rig->config.far_delay_us = declared ? draw(20) : 0;
    rig->config.far_ns_per_kib = declared ? 1 + draw(2000) : 0;
    assert_true(rig->host.configure(-1, &rig->config));
    if (!declared) return (struct far_link){0, 0};
    return (struct far_link){(double)rig->config.far_delay_us * 1e-6,
                             1024e9 / (double)rig->config.far_ns_per_kib};
}

struct table {
    const struct small *small;
    const struct ggml_device_figures *figures;
    const struct far_link *far;
    double nodes[MAX_NODES][STREAMS];
    double rest[MAX_NODES + 1]; // least that the nodes from here on take
    int place[INPUTS + MAX_NODES];
    uint32_t there[INPUTS + MAX_NODES]; // streams that have it
    double best;
};

static double inverse(double rate) {
    return rate > 0 ? 1 / rate : 0;
}

// The first two devices belong to one plugin, the third is the CPU.
static double copy_seconds(const struct table *table, int tensor, int from, int to) {
    const struct ggml_device_figures *a = &table->figures[from], *b = &table->figures[to];
    const double bytes = (double)ggml_nbytes(table->small->tensors[tensor]);
    if (from < 2 && to < 2 && table->far->bytes_per_second > 0)
        return table->far->seconds + bytes / table->far->bytes_per_second;
    const double slow_a = inverse(a->link_bytes_per_second);
    const double slow_b = inverse(b->link_bytes_per_second);
    if (from < 2 && to < 2 && (a->flags & b->flags & GGML_DEVICE_FIGURES_DIRECT_COPY)) {
        return fmax(a->link_seconds, b->link_seconds) + bytes * fmax(slow_a, slow_b);
    }
    return a->link_seconds + b->link_seconds + bytes * (slow_a + slow_b);
}

static void fill_table(struct table *table, const struct small *small,
                       const struct ggml_device_figures *figures, const struct far_link *far) {
    *table = (struct table){.small = small, .figures = figures, .far = far, .best = DBL_MAX};
    for (int i = small->n_nodes - 1; i >= 0; --i) {
        const struct ggml_op_cost cost = ggml_op_cost(small->tensors[INPUTS + i]);
        double least = DBL_MAX;
        for (int b = 0; b < STREAMS; ++b) {
            const double special = figures[b].flops_of[GGML_TYPE_F32];
            const double flops = special > 0 ? special : figures[b].flops;
            const double memory =
                (cost.bytes_read + cost.bytes_written) / figures[b].bytes_per_second;
            table->nodes[i][b] = figures[b].launch_seconds + fmax(cost.flops / flops, memory);
            least = fmin(least, table->nodes[i][b]);
        }
        table->rest[i] = table->rest[i + 1] + least;
    }
    for (int i = 0; i < INPUTS; ++i) {
        table->place[i] = STREAMS - 1;
        table->there[i] = 1u << (STREAMS - 1);
    }
}

// Node i on stream b: what that adds. Copies that it makes are added to *out_copied.
static double put(struct table *table, int i, int b, uint32_t *out_copied) {
    double seconds = table->nodes[i][b];
    for (int k = 0; k < 2; ++k) {
        const int source = table->small->sources[i][k];
        if (source < 0 || (table->there[source] >> b) & 1) continue;
        table->there[source] |= 1u << b;
        *out_copied |= 1u << source;
        seconds += copy_seconds(table, source, table->place[source], b);
    }
    table->place[INPUTS + i] = b;
    table->there[INPUTS + i] = 1u << b;
    return seconds;
}

static void take_back(struct table *table, int b, uint32_t copied) {
    for (int k = 0; k < INPUTS + MAX_NODES; ++k) {
        if ((copied >> k) & 1) table->there[k] &= ~(1u << b);
    }
}

// Tries everything that can still be better than the best.
static void try_all(struct table *table, int i, double seconds) {
    if (seconds + table->rest[i] >= table->best) return;
    if (i == table->small->n_nodes) {
        table->best = seconds;
        return;
    }
    for (int b = 0; b < STREAMS; ++b) {
        uint32_t copied = 0;
        const double more = put(table, i, b, &copied);
        try_all(table, i + 1, seconds + more);
        take_back(table, b, copied);
    }
}

// Of the placement that the report names.
static double evaluate(const struct small *small, const struct ggml_device_figures *figures,
                       const struct far_link *far, ggml_sched_report_t report) {
    struct table table;
    double seconds = 0;
    uint32_t copied = 0;
    fill_table(&table, small, figures, far);
    for (int i = 0; i < small->n_nodes; ++i) {
        seconds += put(&table, i, ggml_sched_report_node(report, (size_t)i)->stream, &copied);
    }
    return seconds;
}

static ggml_sched_report_t report_of(struct rig *rig, const struct small *small) {
    ggml_sched_report_t report = ggml_sched_report_new(rig->sched, small->graph);
    if (!report) fail_msg("%s", ggml_last_error());
    return report;
}

static bool nearly(double a, double b) {
    return fabs(a - b) <= 1e-8 * fabs(b);
}

// Whether the placement is the best one.
static bool check_case(struct rig *rig) {
    struct small small;
    struct table table;
    struct ggml_device_figures figures[STREAMS];
    build(&small, 2 + (int)draw(MAX_NODES - 1));
    draw_figures(figures);
    const struct far_link far = draw_far_link(rig);
    assert_int_equal(ggml_sched_set_costs(rig->sched, NULL), GGML_HOST_OK);
    ggml_sched_report_t report = report_of(rig, &small);
    const double usual = evaluate(&small, figures, &far, report);
    ggml_sched_report_free(report);
    assert_int_equal(set_figures(rig, figures), GGML_HOST_OK);
    report = report_of(rig, &small);
    const double found = ggml_sched_report_seconds(report);
    const double model = evaluate(&small, figures, &far, report);
    if (!nearly(found, model)) fail_msg("predicted %g, the model says %g", found, model);
    assert_true(found <= usual * (1 + 1e-9));
    ggml_sched_report_free(report);
    fill_table(&table, &small, figures, &far);
    table.best = found * (1 + 1e-9);
    try_all(&table, 0, 0);
    ggml_free(small.ctx);
    return table.best >= found * (1 - 1e-9);
}

static void test_against_everything(void **state) {
    (void)state;
    struct rig rig;
    rig_open(&rig, STREAMS - 1, &rig_shape, NULL, false);
    random_state = 20;
    int optimal = 0;
    for (int i = 0; i < CASES; ++i) {
        optimal += check_case(&rig);
    }
    print_message("# optimal in %d of %d cases\n", optimal, CASES);
    assert_true(optimal * 100 >= CASES * 95);
    rig_close(&rig);
}

// What is planned stays below the limit where a placement does that at all.
static void test_memory_limits(void **state) {
    (void)state;
    struct rig rig;
    rig_open(&rig, STREAMS - 1, &rig_shape, NULL, false);
    random_state = 7;
    int limited = 0;
    for (int i = 0; i < 200; ++i) {
        struct small small;
        struct ggml_device_figures figures[STREAMS];
        build(&small, MAX_NODES);
        draw_figures(figures);
        figures[2].launch_seconds = 1; // nothing wants to be there
        assert_int_equal(set_figures(&rig, figures), GGML_HOST_OK);
        ggml_sched_report_t report = report_of(&rig, &small);
        const size_t wanted = ggml_sched_report_stream(report, 0)->bytes;
        const double seconds = ggml_sched_report_seconds(report);
        ggml_sched_report_free(report);
        figures[0].memory_bytes = wanted * 3 / 4;
        assert_int_equal(set_figures(&rig, figures), GGML_HOST_OK);
        report = report_of(&rig, &small);
        const size_t bytes = ggml_sched_report_stream(report, 0)->bytes;
        if (wanted > 0 && bytes > figures[0].memory_bytes) {
            fail_msg("case %d: %zu bytes planned, %zu allowed", i, bytes,
                     (size_t)figures[0].memory_bytes);
        }
        if (wanted > 0) assert_true(ggml_sched_report_seconds(report) >= seconds * (1 - 1e-9));
        limited += bytes > 0;
        ggml_sched_report_free(report);
        ggml_free(small.ctx);
    }
    assert_true(limited > 20); // the device is used, not only avoided
    rig_close(&rig);
}

// A node that writes into a result stays with it, wherever that goes.
static void test_in_place(void **state) {
    (void)state;
    struct rig rig;
    rig_open(&rig, STREAMS - 1, &rig_shape, NULL, false);
    const struct ggml_device_figures fast = {.size = sizeof(fast),
                                             .flops = 1e15,
                                             .bytes_per_second = 1e15,
                                             .link_bytes_per_second = 1e15};
    struct ggml_device_figures figures[STREAMS] = {fast, fast, fast};
    figures[1].launch_seconds = figures[2].launch_seconds = 1;
    struct ggml_context *ctx =
        ggml_init((struct ggml_init_params){.mem_size = 1 << 18, .no_alloc = true});
    struct ggml_tensor *a = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 8);
    ggml_set_input(a);
    struct ggml_tensor *b = ggml_scale_inplace(ctx, ggml_sqr(ctx, a), 3);
    struct ggml_tensor *c = ggml_sqr(ctx, b);
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, c);
    assert_int_equal(set_figures(&rig, figures), GGML_HOST_OK);
    assert_true(ggml_backend_sched_alloc_graph(rig.sched, graph));
    for (int i = 0; i < 3; ++i) {
        assert_ptr_equal(ggml_backend_sched_get_tensor_backend(rig.sched, graph->nodes[i]),
                         rig.streams[0]);
    }
    float values[8] = {1, 2, 3};
    ggml_backend_tensor_set(a, values, 0, sizeof(values));
    assert_int_equal(ggml_backend_sched_graph_compute(rig.sched, graph), GGML_STATUS_SUCCESS);
    ggml_backend_tensor_get(c, values, 0, sizeof(values));
    assert_true(values[2] == 729);
    ggml_free(ctx);
    rig_close(&rig);
}

// Where one device is far better, everything goes there, and the results are the same.
static void test_model(void **state) {
    (void)state;
    struct rig rig;
    rig_open(&rig, 2, &rig_shape, NULL, false);
    const struct ggml_device_figures fast = {.size = sizeof(fast),
                                             .flops = 1e12,
                                             .bytes_per_second = 1e12,
                                             .launch_seconds = 1e-6,
                                             .link_bytes_per_second = 1e10,
                                             .link_seconds = 1e-5};
    struct ggml_device_figures figures[STREAMS] = {fast, fast, fast};
    figures[2].flops = figures[2].bytes_per_second = 1e9;
    assert_int_equal(set_figures(&rig, figures), GGML_HOST_OK);
    rig_check(&rig, 4, 0, 1);
    rig_check(&rig, 1, 4, 2);
    rig_check(&rig, 1, 5, 3);
    figures[1].flops = figures[1].bytes_per_second = 1e6; // its weights are copied to the other
    assert_int_equal(set_figures(&rig, figures), GGML_HOST_OK);
    rig.host.log_clear();
    rig_check(&rig, 2, 6, 4);
    const size_t on_slow = virtual_count(&rig.host, VIRTUAL_CALL_NODE, 1, NULL);
    const size_t on_fast = virtual_count(&rig.host, VIRTUAL_CALL_NODE, 0, NULL);
    assert_true(on_slow * 4 < on_fast);
    // The weights are F16: only what is said of that type counts for them.
    figures[1].flops = figures[1].bytes_per_second = 1e12;
    figures[1].flops_of[GGML_TYPE_F16] = 1e5;
    assert_int_equal(set_figures(&rig, figures), GGML_HOST_OK);
    rig.host.log_clear();
    rig_check(&rig, 2, 6, 4);
    struct virtual_record record;
    for (size_t i = 0; virtual_find(&rig.host, VIRTUAL_CALL_NODE, 1, i, &record); ++i) {
        assert_int_not_equal(record.op, GGML_OP_MUL_MAT);
    }
    assert_int_equal(ggml_sched_set_costs(rig.sched, NULL), GGML_HOST_OK);
    rig_check(&rig, 2, 8, 5);
    rig_close(&rig);
}

// --- links between pairs of devices

enum { PLACED = 3 };

// Squares of squares.
struct chain {
    struct ggml_context *ctx;
    struct ggml_cgraph *graph;
    struct ggml_tensor *nodes[PLACED];
};

static void build_chain(struct chain *chain) {
    chain->ctx = ggml_init((struct ggml_init_params){.mem_size = 1 << 18, .no_alloc = true});
    struct ggml_tensor *last = ggml_new_tensor_1d(chain->ctx, GGML_TYPE_F32, 16384);
    ggml_set_input(last);
    chain->graph = ggml_new_graph(chain->ctx);
    for (int i = 0; i < PLACED; ++i)
        last = chain->nodes[i] = ggml_sqr(chain->ctx, last);
    ggml_build_forward_expand(chain->graph, last);
}

// The ends are on stream 0.
static int place_of_middle(struct rig *rig, const struct chain *chain) {
    ggml_backend_sched_set_tensor_backend(rig->sched, chain->nodes[0], rig->streams[0]);
    ggml_backend_sched_set_tensor_backend(rig->sched, chain->nodes[2], rig->streams[0]);
    ggml_sched_report_t report = ggml_sched_report_new(rig->sched, chain->graph);
    if (!report) fail_msg("%s", ggml_last_error());
    const int stream = ggml_sched_report_node(report, 1)->stream;
    ggml_sched_report_free(report);
    return stream;
}

// Device 1 is the fastest. Once it is said to be in another host than 0 and 2, it takes the work
// only as long as the link is fast enough for that; a link that is no number changes nothing.
static void test_links_decide(void **state) {
    (void)state;
    struct rig rig;
    struct chain chain;
    rig_open(&rig, 3, &rig_shape, NULL, false);
    const struct ggml_device_figures slow = {.size = sizeof(slow),
                                             .flags = GGML_DEVICE_FIGURES_DIRECT_COPY,
                                             .flops = 1e15,
                                             .bytes_per_second = 1e6,
                                             .link_bytes_per_second = 1e9};
    struct ggml_device_figures figures[] = {slow, slow, slow, slow};
    figures[1].bytes_per_second = 2e9;
    figures[2].bytes_per_second = 1e9;
    build_chain(&chain);
    assert_int_equal(set_figures(&rig, figures), GGML_HOST_OK);
    assert_int_equal(place_of_middle(&rig, &chain), 1);
    rig.config.hosts = 2;
    rig.config.far_delay_us = 1;
    rig.config.far_ns_per_kib = 1000; // 64 KiB take 65 us there and back again
    assert_true(rig.host.configure(-1, &rig.config));
    assert_int_equal(set_figures(&rig, figures), GGML_HOST_OK);
    assert_int_equal(place_of_middle(&rig, &chain), 1);
    rig.config.far_delay_us = 200;
    assert_true(rig.host.configure(-1, &rig.config));
    assert_int_equal(set_figures(&rig, figures), GGML_HOST_OK);
    assert_int_equal(place_of_middle(&rig, &chain), 2);
    rig.config.far_delay_us = 1;
    rig.config.far_ns_per_kib = 20000; // a rate decides as well as a time
    assert_true(rig.host.configure(-1, &rig.config));
    assert_int_equal(set_figures(&rig, figures), GGML_HOST_OK);
    assert_int_equal(place_of_middle(&rig, &chain), 2);
    rig.config.far_ns_per_kib = 0;
    rig.config.hostile_link = 1;
    assert_true(rig.host.configure(-1, &rig.config));
    assert_int_equal(set_figures(&rig, figures), GGML_HOST_BAD_PLUGIN);
    assert_int_equal(place_of_middle(&rig, &chain), 2);
    ggml_free(chain.ctx);
    rig_close(&rig);
}

#ifdef __GLIBC__
// Where no language with a comma is installed: the C library's own table of numbers with one. It
// has a head of 32 bytes, and a full stop as a byte and as a wide character.
static bool make_comma(void) {
    enum { HEAD = 32 };
    unsigned char table[256];
    char folder[] = "/tmp/ggml-locale-XXXXXX", path[64], file[96];
    FILE *source = fopen("/usr/lib/locale/C.utf8/LC_NUMERIC", "rb");
    const size_t size = source ? fread(table, 1, sizeof(table), source) : 0;
    if (source) fclose(source);
    if (size <= HEAD || !mkdtemp(folder)) return false;
    for (size_t i = HEAD; i < size; ++i)
        if (table[i] == '.') table[i] = ',';
    snprintf(path, sizeof(path), "%s/comma", folder);
    snprintf(file, sizeof(file), "%s/LC_NUMERIC", path);
    FILE *copy = mkdir(path, 0700) == 0 ? fopen(file, "wb") : NULL;
    bool made = copy && fwrite(table, 1, size, copy) == size;
    if (copy) made = fclose(copy) == 0 && made;
    made = made && setenv("LOCPATH", folder, 1) == 0 && setlocale(LC_NUMERIC, "comma");
    unsetenv("LOCPATH");
    unlink(file);
    rmdir(path);
    rmdir(folder);
    return made;
}
#else
static bool make_comma(void) {
    return false;
}
#endif

static bool use_comma(void) {
    char text[8];
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8") && !setlocale(LC_NUMERIC, "fr_FR.UTF-8") &&
        !make_comma()) {
        return false;
    }
    snprintf(text, sizeof(text), "%.1f", 0.5);
    assert_string_equal(text, "0,5");
    return true;
}

static void test_report_says_it(void **state) {
    (void)state;
    struct rig rig;
    struct small small;
    struct ggml_device_figures figures[STREAMS];
    rig_open(&rig, STREAMS - 1, &rig_shape, NULL, false);
    random_state = 11;
    build(&small, 5);
    draw_figures(figures);
    ggml_sched_report_t report = report_of(&rig, &small);
    assert_true(ggml_sched_report_seconds(report) == 0 && ggml_sched_report_elapsed(report) == 0);
    assert_null(strstr(ggml_sched_report_text(report), "predicted"));
    ggml_sched_report_free(report);
    assert_int_equal(set_figures(&rig, figures), GGML_HOST_OK);
    report = report_of(&rig, &small);
    assert_non_null(strstr(ggml_sched_report_text(report), "\npredicted: "));
    json_t *json = json_loads(ggml_sched_report_json(report), 0, NULL);
    assert_true(nearly(json_number_value(json_object_get(json, "seconds")),
                       ggml_sched_report_seconds(report)));
    assert_true(nearly(json_number_value(json_object_get(json, "elapsed")),
                       ggml_sched_report_elapsed(report)));
    json_decref(json);
    ggml_sched_report_free(report);
    // F18 of a security review: a comma in the locale is none in the document.
    if (use_comma()) {
        report = report_of(&rig, &small);
        json = json_loads(ggml_sched_report_json(report), 0, NULL);
        setlocale(LC_NUMERIC, "C");
        assert_non_null(json);
        json_decref(json);
        ggml_sched_report_free(report);
    }
    ggml_free(small.ctx);
    rig_close(&rig);
}

static void test_refused_figures(void **state) {
    (void)state;
    struct rig rig;
    rig_open(&rig, 2, &rig_shape, NULL, false);
    const struct ggml_device_figures good = {
        .size = sizeof(good), .flops = 1, .bytes_per_second = 1};
    struct ggml_device_figures bad[] = {good, good, good, good, good, good};
    bad[0].flops = 0;
    bad[1].bytes_per_second = NAN;
    bad[2].launch_seconds = -1;
    bad[3].link_seconds = INFINITY;
    bad[4].size = 8;
    bad[5].flops_of[1] = -1;
    const struct ggml_device_figures *pointers[] = {&good, &good, &good};
    assert_int_equal(ggml_sched_set_costs(NULL, pointers), GGML_HOST_INVALID_ARGUMENT);
    for (int i = 0; i < 6; ++i) {
        pointers[1] = &bad[i];
        assert_int_equal(ggml_sched_set_costs(rig.sched, pointers), GGML_HOST_INVALID_ARGUMENT);
        assert_non_null(strstr(ggml_last_error(), "stream 1"));
    }
    pointers[1] = NULL; // the device is told to take no time, so it declares nothing
    assert_int_equal(ggml_sched_set_costs(rig.sched, pointers), GGML_HOST_UNSUPPORTED);
    rig.config.node_delay_us = 10;
    assert_true(rig.host.configure(1, &rig.config));
    assert_int_equal(ggml_sched_set_costs(rig.sched, pointers), GGML_HOST_OK);
    struct ggml_device_figures small = {
        .size = offsetof(struct ggml_device_figures, flops_of), .flops = 1, .bytes_per_second = 1};
    pointers[1] = &small; // of a caller that knows no types
    assert_int_equal(ggml_sched_set_costs(rig.sched, pointers), GGML_HOST_OK);
    rig.config.node_delay_us = 0;
    assert_true(rig.host.configure(1, &rig.config));
    rig_check(&rig, 2, 0, 1);
    rig_close(&rig);
}

static long allocations_left;

static bool may_allocate(void *context) {
    (void)context;
    return allocations_left-- > 0;
}

// Memory runs out at each point in turn; the next attempt succeeds.
static void test_no_memory(void **state) {
    (void)state;
    struct rig rig;
    struct small small;
    struct ggml_device_figures figures[STREAMS];
    rig_open(&rig, STREAMS - 1, &rig_shape, NULL, false);
    random_state = 3;
    build(&small, MAX_NODES);
    draw_figures(figures);
    figures[0].memory_bytes = 1 << 20;
    bool done = false;
    int n = 0;
    for (; !done; ++n) {
        ggml_clear_error();
        allocations_left = n;
        ggml_mem_set_fault_hook(may_allocate, NULL);
        const bool set = set_figures(&rig, figures) == GGML_HOST_OK;
        ggml_sched_report_t report = set ? ggml_sched_report_new(rig.sched, small.graph) : NULL;
        ggml_mem_set_fault_hook(NULL, NULL);
        done = report != NULL;
        if (!done) assert_int_equal(ggml_last_status(), GGML_HOST_OUT_OF_MEMORY);
        ggml_sched_report_free(report);
    }
    assert_true(n > 30);
    ggml_free(small.ctx);
    rig_close(&rig);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_everything), cmocka_unit_test(test_memory_limits),
        cmocka_unit_test(test_in_place),           cmocka_unit_test(test_model),
        cmocka_unit_test(test_refused_figures),    cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_report_says_it),     cmocka_unit_test(test_links_decide),
    };
    return cmocka_run_group_tests_name("sched cost", tests, NULL, NULL);
}
