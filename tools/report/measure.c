// SPDX-License-Identifier: MIT
// Every operation and some shapes of models on each device. What would take longer than people wait
// is left out and said.
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <string.h>
#include <time.h>
#ifdef __linux__
#include <unistd.h>
#endif

#include "bench/bench.h"
#include "bench/ops/op_cases.h"
#include "bench/ops/op_measure.h"
#include "bench/tokens/llama.h"
#include "bench/tokens/token_measure.h"
#include "ggml-host.h"
#include "progress.h"
#include "report/report.h"

enum { MAX_CASES = 256, CONTEXT = 64, FULL_PROMPT = 256, QUICK_PROMPT = 64 };
// From so many columns on products are bound by computing: weights need not be cold.
enum { MANY_COLUMNS = 16 };

static const double full_seconds = 0.3, quick_seconds = 0.1;
static const double longest_model = 90; // seconds

// Shapes in the order of their cost; those in front are measured by --quick too.
static const struct {
    const char *size;
    enum ggml_type type;
    bool quick;
} shapes[] = {
    {"0.2B", GGML_TYPE_Q4_0, true}, {"0.2B", GGML_TYPE_F16, false}, {"1B", GGML_TYPE_Q4_0, false},
    {"1B", GGML_TYPE_Q8_0, false},  {"8B", GGML_TYPE_Q4_0, false},
};

// --- operations

// What the table of operations counts: per element of the result or of the first source, for the
// operations whose cost has one of these rules; others have it in their case.
static double table_flops(const struct ggml_tensor *node) {
    static const struct {
        const char *cost;
        double flops;
    } table[] = {
#define GGML_OP_ROW(number, NAME, symbol, min, max, type, shape, cost, flops, ...)                 \
    [number] = {#cost, flops},
#include "op_list.inl"
    };
    const double flops = table[node->op].flops;
    if (strcmp(table[node->op].cost, "elements") == 0) return flops * (double)ggml_nelements(node);
    if (strcmp(table[node->op].cost, "source") != 0) return 0;
    return flops * (double)ggml_nelements(node->src[0]);
}

static double count_flops(const struct op_case *c) {
    const struct ggml_init_params params = {.mem_size = 16 * ggml_tensor_overhead(),
                                            .no_alloc = true};
    if (c->flops > 0) return c->flops;
    struct ggml_context *ctx = ggml_init(params);
    const struct ggml_tensor *node = ctx ? c->make(ctx, c) : NULL;
    const double flops = node ? table_flops(node) : 0;
    ggml_free(ctx);
    return flops;
}

static bool is_usual(const struct op_case *c) {
    const enum ggml_type type = c->sizes.type;
    return !c->has_weights || type == GGML_TYPE_F16 || type == GGML_TYPE_Q8_0 ||
           type == GGML_TYPE_Q4_0 || type == GGML_TYPE_Q4_K;
}

// Cases without columns come again with other numbers of them.
static bool is_there(const struct op_case *cases, int n, const struct op_case *like) {
    for (int i = 0; i < n; ++i) {
        if (strcmp(cases[i].op, like->op) == 0 && strcmp(cases[i].name, like->name) == 0)
            return true;
    }
    return false;
}

// The list of cases; quick: fewer types, and matrices of a quarter.
static int list_cases(const struct report_options *options, struct op_case *cases) {
    static struct op_case more[MAX_CASES];
    static const int64_t quick_columns[] = {1, 64};
    struct op_sizes sizes = {4096, 4096, 0, GGML_TYPE_COUNT};
    int n = 0;
    if (!options->quick) {
        n = op_cases(options->op, &sizes, cases, MAX_CASES);
        return n < MAX_CASES ? n : MAX_CASES;
    }
    for (int i = 0; i < 2; ++i) {
        sizes = (struct op_sizes){2048, 2048, quick_columns[i], GGML_TYPE_COUNT};
        const int n_more = op_cases(options->op, &sizes, more, MAX_CASES);
        for (int k = 0; k < n_more && k < MAX_CASES; ++k) {
            if (n < MAX_CASES && is_usual(&more[k]) && !is_there(cases, n, &more[k]))
                cases[n++] = more[k];
        }
    }
    return n;
}

// False without memory or after a failure of the device.
static bool measure_ops(struct report_device *record, ggml_backend_t stream,
                        const struct report_options *options) {
    static struct op_case cases[MAX_CASES];
    const int n = list_cases(options, cases);
    for (int i = 0; i < n; ++i) {
        const struct op_case *c = &cases[i];
        struct op_result result;
        char text[160];
        snprintf(text, sizeof(text), "%s: %s %s, %d of %d", record->name, c->op, c->name, i + 1, n);
        progress_set(text);
        const bool cold = c->has_weights && c->sizes.n < MANY_COLUMNS;
        const struct op_way way = {options->quick ? quick_seconds : full_seconds, !cold, NULL};
        if (!op_case_measure(stream, c, &way, &result)) return false;
        if (result.runs == 0) continue;
        struct report_op *op = report_add_op(record);
        if (!op) return false;
        snprintf(op->op, sizeof(op->op), "%s", c->op);
        snprintf(op->name, sizeof(op->name), "%s", c->name);
        op->columns = c->sizes.n;
        op->seconds = result.best;
        op->median = result.median;
        op->flops = count_flops(c);
        op->bytes = result.bytes;
        op->runs = result.runs;
        op->cold = cold;
    }
    return true;
}

// --- models

static const struct llama_shape *find_shape(const char *size) {
    const struct llama_shape *shape = llama_shapes;
    while (shape->name && strcmp(shape->name, size) != 0)
        ++shape;
    return shape;
}

// The best rate of a product that was measured; 0 if none was.
static double product_rate(const struct report_device *record) {
    double best = 0;
    for (size_t i = 0; i < record->n_ops; ++i) {
        const struct report_op *op = &record->ops[i];
        const double rate = op->flops / op->seconds;
        if (strcmp(op->op, "MUL_MAT") == 0 && rate > best) best = rate;
    }
    return best;
}

// Appends what was left out, and why, to the device's note.
static void leave_out(struct report_device *record, const char *size, enum ggml_type type,
                      const char *why) {
    const size_t used = strlen(record->note);
    snprintf(record->note + used, sizeof(record->note) - used, "%s%s %s: %s",
             used > 0 ? "; " : "not measured: ", size, ggml_type_name(type), why);
}

// Whether there is memory for it.
static bool fits(ggml_backend_dev_t device, double bytes) {
    size_t free = 0, total = 0;
    ggml_backend_dev_memory(device, &free, &total);
    return free == 0 || bytes * 1.3 < (double)free;
}

// False if the device failed.
static bool measure_model(struct report_device *record, ggml_backend_dev_t device, int index,
                          const struct report_options *options) {
    const int prompt = options->quick ? QUICK_PROMPT : FULL_PROMPT, runs = options->quick ? 1 : 3;
    const char *size = shapes[index].size;
    const enum ggml_type type = shapes[index].type;
    const struct llama_shape *s = find_shape(size);
    const double weights =
        (double)s->layers * s->width *
            (2.0 * s->width + 2.0 * s->width / s->heads * s->kv_heads + 3.0 * s->hidden) +
        2.0 * s->width * s->vocabulary;
    const double rate = product_rate(record);
    char why[64];
    if (!fits(device, weights * (double)ggml_type_size(type) / (double)ggml_blck_size(type))) {
        leave_out(record, size, type, "not enough memory");
        return true;
    }
    const double expected = rate > 0 ? 2 * weights * prompt / rate * (runs + 2) : 0;
    if (expected > longest_model) {
        snprintf(why, sizeof(why), "would take %.0f minutes", expected / 60 + 0.5);
        leave_out(record, size, type, why);
        return true;
    }
    struct token_machine machine;
    struct llama llama = {0};
    struct token_timing whole, token;
    const bool good =
        token_machine_init(&machine, device, 0) &&
        llama_init(&llama, s, type, prompt + CONTEXT, ggml_backend_dev_buffer_type(device)) &&
        token_measure(&machine, &llama, prompt, 0, runs, &whole) &&
        token_measure(&machine, &llama, 1, CONTEXT, 4 * runs, &token);
    struct report_model *model = good ? report_add_model(record) : NULL;
    if (model) {
        snprintf(model->size, sizeof(model->size), "%s", size);
        snprintf(model->type, sizeof(model->type), "%s", ggml_type_name(type));
        model->prompt = prompt;
        model->context = CONTEXT;
        model->prompt_seconds = whole.median;
        model->token_seconds = token.median;
        model->prompt_flops = token_prompt_flops(&llama, prompt);
        model->weight_bytes = (double)llama.weight_bytes;
    }
    llama_free(&llama);
    token_machine_free(&machine);
    return model != NULL;
}

static bool measure_models(struct report_device *record, ggml_backend_dev_t device,
                           const struct report_options *options) {
    for (int i = 0; i < (int)(sizeof(shapes) / sizeof(shapes[0])); ++i) {
        char text[160];
        if (options->quick && !shapes[i].quick) continue;
        snprintf(text, sizeof(text), "%s: a model of %s in %s", record->name, shapes[i].size,
                 ggml_type_name(shapes[i].type));
        progress_set(text);
        if (!measure_model(record, device, i, options)) return false;
    }
    return true;
}

// --- devices

static const char *type_name(enum ggml_backend_dev_type type) {
    switch (type) {
    case GGML_BACKEND_DEVICE_TYPE_CPU: return "CPU";
    case GGML_BACKEND_DEVICE_TYPE_GPU: return "GPU";
    case GGML_BACKEND_DEVICE_TYPE_IGPU: return "IGPU";
    case GGML_BACKEND_DEVICE_TYPE_ACCEL: return "ACCEL";
    default: return "other";
    }
}

static void describe(struct report_device *record, ggml_backend_dev_t device) {
    size_t free = 0, total = 0;
    ggml_backend_dev_memory(device, &free, &total);
    snprintf(record->name, sizeof(record->name), "%s", ggml_backend_dev_name(device));
    snprintf(record->description, sizeof(record->description), "%s",
             ggml_backend_dev_description(device));
    snprintf(record->type, sizeof(record->type), "%s", type_name(ggml_backend_dev_type(device)));
    snprintf(record->plugin, sizeof(record->plugin), "%s",
             ggml_backend_reg_name(ggml_backend_dev_backend_reg(device)));
    record->memory = (double)total;
}

// What fails stands in the record. Limits are taken before and after, as what else runs on the
// machine lowers them: the higher ones count.
static void measure_device(struct report_device *record, ggml_backend_dev_t device,
                           const struct report_options *options) {
    const double seconds = options->quick ? quick_seconds : full_seconds;
    struct op_bounds before = {0}, after = {0};
    char text[160];
    describe(record, device);
    snprintf(text, sizeof(text), "%s: its limits", record->name);
    progress_set(text);
    ggml_backend_t stream = ggml_backend_dev_init(device, NULL);
    bool good = stream != NULL;
    if (good) op_bounds_measure(device, stream, seconds, &before);
    good = good && measure_ops(record, stream, options) &&
           (options->op || measure_models(record, device, options));
    if (good) op_bounds_measure(device, stream, seconds, &after);
    if (!good) snprintf(record->failure, sizeof(record->failure), "%s", ggml_last_error());
    if (!good && record->failure[0] == '\0')
        snprintf(record->failure, sizeof(record->failure), "it could not be measured");
    record->flops = before.flops > after.flops ? before.flops : after.flops;
    record->reads = before.reads > after.reads ? before.reads : after.reads;
    record->copies = before.bytes > after.bytes ? before.bytes : after.bytes;
    record->launch = before.launch.whole;
    record->submit = before.launch.submit;
    ggml_backend_free(stream);
}

static bool is_wanted(const struct report_options *options, ggml_backend_dev_t device) {
    for (size_t i = 0; i < options->n_devices; ++i) {
        if (ggml_backend_dev_by_name(options->devices[i]) == device) return true;
    }
    return options->n_devices == 0;
}

// Ticks of all processors since the boot, and those of them that were not idle.
struct ticks {
    unsigned long long all, busy;
};

// Zeros where the system does not tell them.
static struct ticks read_ticks(void) {
    struct ticks ticks = {0};
#ifdef __linux__
    unsigned long long user, nice, system, idle, wait;
    FILE *file = fopen("/proc/stat", "r");
    if (file &&
        fscanf(file, "cpu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle, &wait) == 5) {
        ticks.busy = user + nice + system;
        ticks.all = ticks.busy + idle + wait;
    }
    if (file) fclose(file);
#endif
    return ticks;
}

// The share of all processors' time that other processes took since `before`, when this one had
// used `own` of its clock.
static double other_load(const struct ticks *before, clock_t own) {
#ifdef __linux__
    const struct ticks now = read_ticks();
    const double all = (double)(now.all - before->all);
    const double own_ticks =
        (double)(clock() - own) / CLOCKS_PER_SEC * (double)sysconf(_SC_CLK_TCK);
    const double others = (double)(now.busy - before->busy) - own_ticks;
    return all > 0 && others > 0 ? others / all : 0;
#else
    (void)before, (void)own;
    return 0;
#endif
}

bool report_measure(struct report *out_report, const struct report_options *options) {
    struct ggml_host_topology topology = {.size = sizeof(topology)};
    const time_t now = time(NULL);
    const struct ticks before = read_ticks();
    const clock_t own = clock();
    bool good = true;
    *out_report = (struct report){.quick = options->quick};
    strftime(out_report->time, sizeof(out_report->time), "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    snprintf(out_report->version, sizeof(out_report->version), "%s", ggml_version());
    snprintf(out_report->commit, sizeof(out_report->commit), "%s", ggml_commit());
    ggml_host_get_topology(&topology);
    out_report->threads = (int64_t)topology.default_threads;
    progress_begin("");
    for (size_t i = 0; i < ggml_backend_dev_count() && good; ++i) {
        ggml_backend_dev_t device = ggml_backend_dev_get(i);
        if (!is_wanted(options, device)) continue;
        struct report_device *record = report_add_device(out_report);
        good = record != NULL;
        if (good) measure_device(record, device, options);
    }
    progress_end();
    out_report->other_load = other_load(&before, own);
    return good;
}
