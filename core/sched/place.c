// SPDX-License-Identifier: MIT
// Which stream computes which node.
#include "base/status.h"
#include "sched/sched.h"

bool sched_supports(struct ggml_backend_sched *sched, int32_t node, int32_t backend) {
    if (node >= sched->n_nodes) return true; // holds data, computes nothing
    if (sched->items[node].traits & (SCHED_VIEW_OP | SCHED_NO_OP)) return true;
    uint8_t *answers = &sched->answers[(size_t)node * sched->answers_stride + (size_t)backend / 4];
    const int shift = 2 * (backend % 4);
    if (!((*answers >> shift) & 1)) {
        const bool yes =
            ggml_backend_dev_supports_op(sched->streams[backend].device, sched->items[node].tensor);
        *answers |= (uint8_t)((yes ? 3 : 1) << shift);
    }
    return (*answers >> shift) & 2;
}

static void assign(struct ggml_backend_sched *sched, int32_t item, int32_t backend,
                   enum sched_reason reason) {
    sched->items[item].backend = backend;
    sched->items[item].reason = (uint8_t)reason;
}

// The first stream that can use this memory and computes the node, or -1.
static int32_t first_reader(struct ggml_backend_sched *sched, int32_t buft, int32_t node) {
    for (int32_t b = 0; b < sched->n_backends; ++b) {
        if (sched_reads(sched, buft, b) && sched_supports(sched, node, b)) return b;
    }
    return -1;
}

// --- 1: what is tied to a place

static bool place_by_buffer(struct ggml_backend_sched *sched, int32_t item, int32_t buft) {
    const int32_t backend = first_reader(sched, buft, item);
    assign(sched, item, backend, SCHED_REASON_BUFFER);
    if (backend >= 0) return true;
    const struct ggml_tensor *tensor = sched->items[item].tensor;
    ggml_fail(GGML_HOST_UNSUPPORTED,
              "%s: tensor '%s' (%s) lies in %s memory, and no stream that can use it computes it: "
              "add a stream of that device, or place the tensor elsewhere",
              sched->function, tensor->name, ggml_op_name(tensor->op),
              ggml_backend_buft_name(sched->bufts[buft].buft));
    return false;
}

// A weight in host memory may be worth copying to a device for one operation.
static int32_t offload_target(struct ggml_backend_sched *sched, int32_t node) {
    const struct ggml_tensor *tensor = sched->items[node].tensor;
    for (int32_t b = 0; b < sched->n_backends - 1; ++b) {
        if (sched_supports(sched, node, b) &&
            ggml_backend_dev_offload_op(sched->streams[b].device, tensor)) {
            return b;
        }
    }
    return -1;
}

static void place_by_weight(struct ggml_backend_sched *sched, int32_t node, int32_t weight) {
    const int32_t last = sched->n_backends - 1;
    const int32_t buft = sched->items[sched->items[weight].root].buft;
    if (buft < 0) return;
    const int32_t backend = first_reader(sched, buft, node);
    assign(sched, node, backend, backend >= 0 ? SCHED_REASON_WEIGHT : SCHED_REASON_NONE);
    if (!sched->op_offload || backend != last || !sched->bufts[buft].host) return;
    const int32_t target = offload_target(sched, node);
    if (target >= 0) assign(sched, node, target, SCHED_REASON_OFFLOAD);
}

static bool place_fixed(struct ggml_backend_sched *sched, int32_t number) {
    const struct sched_item *item = &sched->items[number];
    if (item->backend >= 0) return true;
    const int32_t buft = sched->items[item->root].buft;
    if (buft >= 0) return place_by_buffer(sched, number, buft);
    if (item->traits & SCHED_INPUT) {
        assign(sched, number, sched->n_backends - 1, SCHED_REASON_INPUT);
        return true;
    }
    if (number >= sched->n_nodes || (item->traits & SCHED_DETACHED)) return true;
    for (int32_t e = sched->first_edge[number]; e < sched->first_edge[number + 1]; ++e) {
        if (!(sched->items[sched->edges[e].item].traits & SCHED_WEIGHT)) continue;
        place_by_weight(sched, number, sched->edges[e].item);
        break;
    }
    return true;
}

static bool place_all_fixed(struct ggml_backend_sched *sched) {
    for (int32_t i = sched->n_nodes; i < sched->n_items; ++i) {
        if (!place_fixed(sched, i)) return false;
    }
    for (int32_t i = 0; i < sched->n_nodes; ++i) {
        if (!place_fixed(sched, i)) return false;
    }
    return true;
}

// --- 2: what lies between

// Hands streams on to unplaced nodes from the last placed one before them (step 1) or after them
// (step -1). Unless spread_last, the last stream does not spread.
static void expand(struct ggml_backend_sched *sched, int32_t step, bool spread_last) {
    const int32_t last = sched->n_backends - 1;
    int32_t current = -1;
    for (int32_t n = 0; n < sched->n_nodes; ++n) {
        const int32_t i = step > 0 ? n : sched->n_nodes - 1 - n;
        const struct sched_item *item = &sched->items[i];
        if (item->traits & SCHED_VIEW_OP) continue;
        if (item->backend >= 0) {
            current = item->backend == last && !spread_last ? -1 : item->backend;
        } else if (current >= 0 && sched_supports(sched, i, current)) {
            assign(sched, i, current, SCHED_REASON_NEIGHBOUR);
        }
    }
}

// --- 3: the rest, and better places

static bool is_located(const struct ggml_backend_sched *sched, int32_t item) {
    return sched->items[item].backend >= 0 || sched->items[sched->items[item].root].backend >= 0;
}

static int32_t count_readable(const struct ggml_backend_sched *sched, int32_t node,
                              int32_t backend) {
    int32_t count = 0;
    for (int32_t e = sched->first_edge[node]; e < sched->first_edge[node + 1]; ++e) {
        const int32_t item = sched->edges[e].item;
        count += is_located(sched, item) && sched_readable(sched, item, backend);
    }
    return count;
}

static void place_best_fit(struct ggml_backend_sched *sched, int32_t node) {
    int32_t best = -1;
    int32_t best_count = -1;
    for (int32_t b = 0; b < sched->n_backends; ++b) {
        if (!sched_supports(sched, node, b)) continue;
        const int32_t count = count_readable(sched, node, b);
        if (count <= best_count) continue;
        best = b;
        best_count = count;
    }
    if (best >= 0) assign(sched, node, best, SCHED_REASON_BEST_FIT);
}

static bool reads_all_sources(const struct ggml_backend_sched *sched, int32_t node,
                              int32_t backend) {
    for (int32_t e = sched->first_edge[node]; e < sched->first_edge[node + 1]; ++e) {
        if (!sched_readable(sched, sched->edges[e].item, backend)) return false;
    }
    return true;
}

// A preferred stream whose memory is the same takes the node over (say, a matrix library before the
// CPU).
static void upgrade(struct ggml_backend_sched *sched, int32_t node) {
    const int32_t now = sched->items[node].backend;
    const int32_t buft = sched->streams[now].buft;
    for (int32_t b = sched->streams[now].pool; b < now; ++b) {
        if (sched->streams[b].buft != buft || !sched_supports(sched, node, b)) continue;
        if (!reads_all_sources(sched, node, b)) continue;
        assign(sched, node, b, SCHED_REASON_UPGRADE);
        return;
    }
}

static void place_or_upgrade(struct ggml_backend_sched *sched) {
    for (int32_t i = 0; i < sched->n_nodes; ++i) {
        if (sched->items[i].traits & SCHED_VIEW_OP) continue;
        if (sched->items[i].backend < 0) {
            place_best_fit(sched, i);
        } else if (sched->streams[sched->items[i].backend].pool < sched->items[i].backend) {
            upgrade(sched, i);
        }
    }
}

// --- 4: views and what nodes bring with them

static void place_view(struct ggml_backend_sched *sched, int32_t item) {
    const int32_t root = sched->items[item].root;
    if (sched->items[item].backend < 0 && root != item) {
        assign(sched, item, sched->items[root].backend, SCHED_REASON_VIEW);
    }
}

static void place_sources(struct ggml_backend_sched *sched, int32_t node) {
    const int32_t backend = sched->items[node].backend;
    for (int32_t e = sched->first_edge[node]; e < sched->first_edge[node + 1]; ++e) {
        const int32_t item = sched->edges[e].item;
        if (sched->items[item].backend >= 0) continue;
        place_view(sched, item);
        if (sched->items[item].backend < 0) assign(sched, item, backend, SCHED_REASON_CONSUMER);
    }
}

static bool place_leftover(struct ggml_backend_sched *sched, int32_t node) {
    place_view(sched, node);
    for (int32_t b = 0; b < sched->n_backends && sched->items[node].backend < 0; ++b) {
        if (sched_supports(sched, node, b)) assign(sched, node, b, SCHED_REASON_FIRST);
    }
    if (sched->items[node].backend >= 0) return true;
    const struct ggml_tensor *tensor = sched->items[node].tensor;
    ggml_fail(GGML_HOST_UNSUPPORTED,
              "%s: node %d '%s' (%s, %s) is supported by none of the %d streams", sched->function,
              (int)node, tensor->name, ggml_op_desc(tensor), ggml_type_name(tensor->type),
              sched->n_backends);
    return false;
}

static bool place_leftovers(struct ggml_backend_sched *sched) {
    for (int32_t i = 0; i < sched->n_nodes; ++i) {
        if (sched->items[i].backend < 0 && !place_leftover(sched, i)) return false;
        place_sources(sched, i);
    }
    for (int32_t i = sched->n_nodes; i < sched->n_items; ++i) { // what nobody uses
        if (sched->items[i].backend >= 0) continue;
        assign(sched, i, sched->n_backends - 1, SCHED_REASON_CONSUMER);
    }
    return true;
}

static bool is_allowed(const struct ggml_backend_sched *sched) {
    for (int32_t i = 0; i < sched->n_nodes && sched->restricted; ++i) {
        const struct sched_item *item = &sched->items[i];
        if ((item->traits & (SCHED_VIEW_OP | SCHED_NO_OP)) ||
            sched->streams[item->backend].allowed) {
            continue;
        }
        ggml_fail(GGML_HOST_UNSUPPORTED,
                  "%s: node %d '%s' (%s) would run on %s (%s), which is not allowed",
                  sched->function, (int)i, item->tensor->name, ggml_op_desc(item->tensor),
                  sched_stream_label(sched, item->backend), sched_reason_text(item->reason));
        return false;
    }
    return true;
}

bool sched_place(struct ggml_backend_sched *sched) {
    if (!place_all_fixed(sched)) return false;
    expand(sched, 1, false);
    expand(sched, -1, false);
    expand(sched, 1, true);
    expand(sched, -1, true);
    place_or_upgrade(sched);
    if (!place_leftovers(sched)) return false;
    if (sched->figures && !sched_place_by_cost(sched)) return false;
    return is_allowed(sched);
}
