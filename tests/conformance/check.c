// SPDX-License-Identifier: MIT
// Computes the node of a case and compares every byte of the device's memory with what is right.
#include <math.h>
#include <stdlib.h>

#include "claims.h"
#include "oracle/oracle_store.h"
#include "table.h"

// One element may be off by more than the root of the mean square, but not by more than so many
// times.
// Bounds of quantised results are those of single elements already.
static double peak_allowance(enum ggml_type type) {
    return ggml_is_quantized(type) ? 3 : 8;
}

// What is checked at once: the node or a source that it writes.
struct target {
    const struct ggml_tensor *tensor; // on the device
    struct ggml_tensor before;        // mirrors
    struct ggml_tensor after;
    int64_t n;
    double *expected;
    double *actual;
    double *magnitude;
};

// The node as the oracle sees it: sources are copies from before the run.
struct witness {
    struct ggml_tensor node;
    struct ggml_tensor src[GGML_MAX_SRC];
};

static void make_witness(const struct conformance *c, const struct ggml_tensor *node,
                         struct witness *out) {
    out->node = conformance_mirror(c, node, c->memory->before);
    for (int i = 0; i < GGML_MAX_SRC; ++i) {
        if (!node->src[i]) continue;
        if (node->src[i] == node) {
            out->node.src[i] = &out->node;
            continue;
        }
        out->src[i] = conformance_mirror(c, node->src[i], c->memory->before);
        out->node.src[i] = &out->src[i];
    }
}

static uint8_t *element_at(const struct ggml_tensor *t, int64_t i) {
    const int64_t block = ggml_blck_size(t->type);
    int64_t i0, i1, i2, i3;
    ggml_unravel_index(t, i, &i0, &i1, &i2, &i3);
    return (uint8_t *)t->data + (size_t)(i0 / block) * t->nb[0] + (size_t)i1 * t->nb[1] +
           (size_t)i2 * t->nb[2] + (size_t)i3 * t->nb[3];
}

// A number far from all those in the result.
static double far_value(const struct ggml_tensor *t) {
    double largest = 0;
    for (int64_t i = 0; i < ggml_nelements(t); ++i) {
        const double value =
            oracle_element(t->type, element_at(t, i), i % t->ne[0] % ggml_blck_size(t->type));
        if (isfinite(value)) largest = fmax(largest, fabs(value));
    }
    return -4 * largest - 1;
}

// Changes one element by more than any error allows; of blocks, the scale too.
static void corrupt_result(struct conformance *c, const struct ggml_tensor *after) {
    const int64_t n = ggml_nelements(after);
    if (n == 0) {
        c->memory->after[c->memory->used - 1] ^= 1;
        return;
    }
    uint8_t *at = element_at(after, random_below(&c->random, n));
    if (!oracle_is_plain(after->type)) {
        memset(at, 0xFF, ggml_type_size(after->type));
    } else if (oracle_smallest(after->type) > 0) {
        const double value = oracle_element(after->type, at, 0);
        oracle_store(after->type, at, isfinite(value) ? far_value(after) : 0);
    } else {
        oracle_store(after->type, at, -1 - oracle_element(after->type, at, 0));
    }
}

// The outcome of comparing numbers.
struct verdict {
    double error;  // normalised mean square
    int64_t worst; // element
    bool bad;      // that element alone is not right
};

static bool same_special(double actual, double expected) {
    return isnan(expected) ? isnan(actual) : actual == expected;
}

// Square of what an error of element i is measured against.
static double power_of(const struct target *t, int64_t i) {
    const double floor = oracle_smallest(t->tensor->type);
    if (t->expected[i] == ORACLE_UNTOUCHED) return 0;
    const double value = isfinite(t->expected[i]) ? fabs(t->expected[i]) : 0;
    const bool sized = t->magnitude && isfinite(t->magnitude[i]);
    const double size = sized ? fmax(value, t->magnitude[i]) : value;
    return fmax(size, floor) * fmax(size, floor);
}

// With `rounded`, the numbers are those that the type of the result holds.
static void compare_exact(const struct target *t, bool rounded, struct verdict *out) {
    for (int64_t i = 0; i < t->n && !out->bad; ++i) {
        double expected = t->expected[i];
        if (expected == ORACLE_UNTOUCHED) continue;
        if (rounded) expected = oracle_round(t->tensor->type, expected);
        if (!same_special(t->actual[i], expected)) *out = (struct verdict){INFINITY, i, true};
    }
}

// What a floating-point type cannot hold is infinite.
static void saturate(const struct target *t) {
    for (int64_t i = 0; i < t->n && oracle_smallest(t->tensor->type) > 0; ++i) {
        if (t->expected[i] != ORACLE_UNTOUCHED &&
            isinf(oracle_round(t->tensor->type, t->expected[i]))) {
            t->expected[i] = copysign(INFINITY, t->expected[i]);
        }
    }
}

static void compare_close(const struct target *t, double bound, struct verdict *out) {
    const double allowance = peak_allowance(t->tensor->type);
    double error = 0, power = 0, mean;
    saturate(t);
    for (int64_t i = 0; i < t->n; ++i)
        power += power_of(t, i);
    mean = t->n > 0 ? power / (double)t->n : 0;
    for (int64_t i = 0; i < t->n; ++i) {
        const double expected = t->expected[i];
        if (expected == ORACLE_UNTOUCHED) continue;
        if (isfinite(expected) && isfinite(t->actual[i])) {
            const double off = (t->actual[i] - expected) * (t->actual[i] - expected);
            error += off;
            if (off <= allowance * allowance * bound * fmax(mean, power_of(t, i))) continue;
        } else if (same_special(t->actual[i], expected)) {
            continue;
        }
        *out = (struct verdict){INFINITY, i, true};
        return;
    }
    out->error = error == 0 ? 0 : error / power;
}

static void describe_failure(struct conformance *c, const struct target *t, const struct verdict *v,
                             double bound) {
    int64_t i0, i1, i2, i3;
    if (!v->bad) {
        conformance_fail(c, "mean square error %.3g, allowed %.3g", v->error, bound);
        return;
    }
    ggml_unravel_index(t->tensor, v->worst, &i0, &i1, &i2, &i3);
    conformance_fail(c, "[%d %d %d %d] is %.9g, expected %.9g", (int)i0, (int)i1, (int)i2, (int)i3,
                     t->actual[v->worst], t->expected[v->worst]);
}

// Elements that must not be written keep their bytes.
static bool check_untouched(struct conformance *c, const struct target *t) {
    for (int64_t i = 0; i < t->n; ++i) {
        if (t->expected[i] != ORACLE_UNTOUCHED) continue;
        if (memcmp(element_at(&t->before, i), element_at(&t->after, i),
                   ggml_type_size(t->tensor->type)) == 0) {
            continue;
        }
        conformance_fail(c, "element %d was written", (int)i);
        return false;
    }
    return true;
}

// The rows of the tensor become what they were, so that the rest of the image can be compared.
static void take_back(const struct target *t) {
    const int64_t n_blocks = t->tensor->ne[0] / ggml_blck_size(t->tensor->type);
    const size_t size = ggml_type_size(t->tensor->type);
    for (int64_t i = 0; i < t->n; i += t->tensor->ne[0]) {
        uint8_t *to = element_at(&t->after, i);
        const uint8_t *from = element_at(&t->before, i);
        for (int64_t j = 0; j < n_blocks; ++j)
            memcpy(to + (size_t)j * t->after.nb[0], from + (size_t)j * t->before.nb[0], size);
    }
}

static double *numbers(int64_t n) {
    return malloc((size_t)(n + 1) * sizeof(double));
}

// Compares one target; its error is added to *error. False after conformance_fail().
static bool check_target(struct conformance *c, struct target *t, const struct witness *w,
                         int source, double bound, double *error) {
    struct verdict verdict = {0, 0, false};
    t->n = ggml_nelements(t->tensor);
    t->before = conformance_mirror(c, t->tensor, c->memory->before);
    t->after = conformance_mirror(c, t->tensor, c->memory->after);
    t->expected = numbers(t->n);
    t->actual = numbers(t->n);
    if (source < 0) {
        c->op->oracle(&w->node, t->expected);
    } else {
        c->op->source_oracle(&w->node, source, t->expected);
    }
    if (c->op->magnitude && source < 0) {
        t->magnitude = numbers(t->n);
        c->op->magnitude(&w->node, t->magnitude);
    }
    oracle_read(&t->after, t->actual);
    if (c->op->canonical && source < 0) c->op->canonical(&w->node, t->actual);
    if (bound == 0) {
        compare_exact(t, oracle_is_plain(t->tensor->type) && !c->op->canonical, &verdict);
    } else {
        compare_close(t, bound, &verdict);
    }
    *error = fmax(*error, verdict.error);
    const bool good = !verdict.bad && verdict.error <= bound;
    if (!good) describe_failure(c, t, &verdict, bound);
    return good && check_untouched(c, t);
}

static void free_target(struct target *t) {
    free(t->expected);
    free(t->actual);
    free(t->magnitude);
}

// Guards, gaps and sources hold what they held. Names what byte `at` belongs to.
static bool check_rest(struct conformance *c) {
    const struct conformance_memory *m = c->memory;
    size_t at = 0;
    if (memcmp(m->before, m->after, m->used) == 0) return true;
    while (m->before[at] == m->after[at])
        ++at;
    for (struct ggml_tensor *t = ggml_get_first_tensor(c->ctx); t;
         t = ggml_get_next_tensor(c->ctx, t)) {
        const struct ggml_tensor mirror = conformance_mirror(c, t, m->before);
        const size_t start = (size_t)((uint8_t *)mirror.data - m->before);
        if (t->view_src || at < start || at >= start + ggml_nbytes(t)) continue;
        conformance_fail(c, "byte %zu of %s (%s) was written", at - start, t->name,
                         ggml_type_name(t->type));
        return false;
    }
    conformance_fail(c, "byte %zu outside all tensors was written", at);
    return false;
}

static void compare(struct conformance *c, const struct ggml_tensor *node) {
    struct target targets[1 + GGML_MAX_SRC] = {{.tensor = node}};
    struct witness witness;
    double error = 0;
    const double unit = conformance_unit(node->type);
    const double bound = c->bound == 0 || unit == UNIT_F32 ? c->bound : c->bound + unit * unit;
    int n = 1;
    make_witness(c, node, &witness);
    bool good = check_target(c, &targets[0], &witness, -1, bound, &error);
    for (int i = 0; i < GGML_MAX_SRC && good; ++i) {
        if ((c->op->written_sources >> i & 1) == 0) continue;
        targets[n].tensor = node->src[i];
        good = check_target(c, &targets[n++], &witness, i, bound, &error);
    }
    if (good) {
        for (int i = 0; i < n; ++i)
            take_back(&targets[i]);
        good = check_rest(c);
    }
    if (good) {
        conformance_pass(c, node, error, bound);
        if (c->claims) conformance_claims_note(c, node);
    }
    for (int i = 0; i < n; ++i)
        free_target(&targets[i]);
}

static bool compute(struct conformance *c, struct ggml_tensor *node) {
    struct ggml_cgraph *graph = ggml_new_graph_custom(c->ctx, 64, false);
    ggml_build_forward_expand(graph, node);
    const enum ggml_status status = ggml_backend_graph_compute(c->stream, graph);
    if (status == GGML_STATUS_SUCCESS) return true;
    conformance_fail(c, "%s: %s", ggml_status_to_string(status), ggml_last_error());
    return false;
}

// The whole image must come out byte by byte as it did, whatever the number of threads.
static bool check_threads(struct conformance *c, struct ggml_tensor *node) {
    static const int counts[] = {1, 2, 3, 0}; // the last is the device's own choice
    struct conformance_memory *m = c->memory;
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); ++i) {
        c->set_n_threads(c->stream, counts[i]);
        ggml_backend_tensor_set(m->all, m->before, 0, m->used);
        if (!compute(c, node)) return false;
        ggml_backend_tensor_get(m->all, m->again, 0, m->used);
        if (memcmp(m->again, m->after, m->used) == 0) continue;
        conformance_fail(c, "another result with %d threads", counts[i]);
        return false;
    }
    return true;
}

// Whether this claimed case is one of those that are computed.
static bool is_sampled(struct conformance *c) {
    struct test_random chance = c->random; // a copy: the operands' numbers stay the same
    const int64_t before = c->n_claimed++;
    const int sample = c->options->sample;
    return sample <= 0 || before < sample || random_below(&chance, before + 1) < sample;
}

// Kinds of types that devices have different code for.
static unsigned kind_of(const struct ggml_tensor *t) {
    if (!t) return 0;
    switch (t->type) {
    case GGML_TYPE_F32: return 1;
    case GGML_TYPE_F16: return 2;
    case GGML_TYPE_BF16: return 3;
    default: return ggml_blck_size(t->type) == 1 ? 4 : ggml_blck_size(t->type) < 128 ? 5 : 6;
    }
}

// Whether no case of the row before had such a combination.
static bool has_new_kinds(struct conformance *c, const struct ggml_tensor *node) {
    unsigned combination = kind_of(node);
    for (int i = 0; i < 3; ++i)
        combination = combination * CONFORMANCE_KINDS + kind_of(node->src[i]);
    const bool is_new = !c->has_kinds[combination];
    c->has_kinds[combination] = true;
    return is_new;
}

void conformance_check(struct conformance *c, struct ggml_tensor *node) {
    if (ggml_tensor_is_error(node)) {
        conformance_fail(c, "builder: %s", ggml_tensor_error(node));
        return;
    }
    for (int i = 0; i < GGML_MAX_SRC; ++i) {
        const struct ggml_tensor *src = node->src[i];
        if (src == node || !src || src->op == GGML_OP_NONE) continue;
        if (!ggml_backend_dev_supports_op(c->device, src)) {
            conformance_unsupported(c);
            return;
        }
    }
    if (!ggml_backend_dev_supports_op(c->device, node)) {
        conformance_unsupported(c);
        return;
    }
    conformance_claimed(c, node);
    if (c->options->ask) return;
    const bool has_kinds = has_new_kinds(c, node);
    const bool sampled = is_sampled(c) || (c->options->kinds && has_kinds);
    if (!sampled && !c->claims) return;
    if (!conformance_place(c)) return;
    if (!sampled) {
        conformance_claims_note(c, node);
        return;
    }
    conformance_upload(c);
    if (!compute(c, node)) return;
    conformance_download(c);
    if (!ggml_backend_dev_supports_op(c->device, node)) {
        conformance_fail(c, "claimed before it was computed, but not afterwards");
        return;
    }
    if (c->set_n_threads && !check_threads(c, node)) return;
    if (c->options->corruption == CORRUPT_GUARD) c->memory->after[c->memory->used - 1] ^= 1;
    if (c->options->corruption == CORRUPT_RESULT) {
        const struct ggml_tensor after = conformance_mirror(c, node, c->memory->after);
        corrupt_result(c, &after);
    }
    compare(c, node);
}
