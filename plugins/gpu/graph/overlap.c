// SPDX-License-Identifier: MIT
// Each launch is compared with those before it, the latest first; one that another of its
// predecessors waits for anyway is passed over, so that the edges are the transitive reduction
// (Aho, Garey, Ullman 1972), built as the graph grows. To bound that, every window begins with a
// launch that waits for all before it and that all later ones wait for: it costs the overlap of a
// few launches in hundreds. Time: at most GPU_OVERLAP_WINDOW comparisons per launch; a chain needs
// one.
#include "gpu/graph/overlap.h"

#include <string.h>

static bool has(const struct gpu_overlap_launch *l, int k) {
    return l->before[k / 64] >> (k % 64) & 1;
}

static void take(struct gpu_overlap *o, struct gpu_overlap_launch *l, int k) {
    struct gpu_overlap_launch *other = &o->window[k];
    for (int w = 0; w < GPU_OVERLAP_WINDOW / 64; ++w)
        l->before[w] |= other->before[w];
    l->before[k / 64] |= UINT64_C(1) << (k % 64);
    other->is_waited_for = true;
}

static bool conflict(const struct gpu_overlap_launch *a, const struct gpu_overlap_launch *b) {
    for (int i = 0; i < a->n; ++i) {
        for (int k = 0; k < b->n; ++k) {
            const struct gpu_touch *x = &a->touches[i], *y = &b->touches[k];
            if ((x->writes || y->writes) && x->begin < y->end && y->begin < x->end) return true;
        }
    }
    return false;
}

// The one that comes next waits for all that is not waited for yet, and begins the window.
static int begin_window(struct gpu_overlap *o, int32_t *out_before) {
    int n = 0;
    for (int k = 0; k < o->n; ++k) {
        if (!o->window[k].is_waited_for) out_before[n++] = o->first + k;
    }
    o->first += o->n;
    o->n = 0;
    return n;
}

int gpu_overlap_add(struct gpu_overlap *overlap, const struct gpu_touch *touches, int n,
                    int32_t *out_before) {
    int n_before = 0;
    if (overlap->n == GPU_OVERLAP_WINDOW) n_before = begin_window(overlap, out_before);
    struct gpu_overlap_launch *l = &overlap->window[overlap->n];
    *l = (struct gpu_overlap_launch){.n = n};
    memcpy(l->touches, touches, (size_t)n * sizeof(*touches));
    for (int k = overlap->n - 1; k >= 0; --k) {
        const bool is_first = k == 0 && overlap->first > 0;
        if (has(l, k) || !(is_first || conflict(l, &overlap->window[k]))) continue;
        take(overlap, l, k);
        out_before[n_before++] = overlap->first + k;
    }
    overlap->n++;
    return n_before;
}
