// SPDX-License-Identifier: MIT
// Placement by rules: which stream computes which node. Pins, weights, graph inputs and streams
// that support the operation decide in that order; the rest is spread along the edges.
#include "base/mem.h"
#include "base/status.h"
#include "sched/sched.h"

// Whether a stream supports a node; each device is asked once per node, with two bits for the
// result (known, and what it was).
bool sched_supports(struct ggml_backend_sched *sched, int32_t node, int32_t backend) {
    if (node >= sched->n_nodes) return true; // holds data, computes nothing
    const uint32_t b = (uint32_t)backend;
    uint8_t *answers = &sched->answers[(size_t)node * sched->answers_stride + b / 4];
    const uint32_t answer = (uint32_t)*answers >> 2 * (b % 4);
    if (answer & 1) return (answer & 2) != 0;
    if (sched->values[node].traits & (SCHED_VIEW_OP | SCHED_NO_OP)) return true;
    const bool supported = sched_ask(sched, sched->values[node].tensor, backend);
    *answers |= (uint8_t)((1u + 2u * supported) << 2 * (b % 4));
    return supported;
}

bool sched_readable(const struct ggml_backend_sched *sched, int32_t value, int32_t backend) {
    const int32_t buft = sched_memory(sched, value);
    return buft >= 0 && sched_reads(sched, buft, backend);
}

// The first stream that can use this memory and computes the node, or -1.
static int32_t first_reader(struct ggml_backend_sched *sched, int32_t buft, int32_t node) {
    for (int word = 0; word < sched->mask_words; ++word) {
        uint64_t readers = sched->bufts[buft].readers[word];
        for (; readers != 0; readers &= readers - 1) {
            const int32_t b = 64 * word + __builtin_ctzll(readers);
            if (sched_supports(sched, node, b)) return b;
        }
    }
    return -1;
}

// --- 0: nothing is placed

// Makes room for a graph and forgets what devices have said about the last one.
static bool make_room(struct ggml_backend_sched *sched) {
    sched->answers_stride = ((size_t)sched->n_backends + 3) / 4;
    const size_t answers = (size_t)sched->n_nodes * sched->answers_stride;
    if (answers > sched->answers_capacity) {
        ggml_mem_free(sched->answers);
        sched->answers = ggml_mem_alloc(answers);
        sched->answers_capacity = sched->answers ? answers : 0;
    }
    if (answers > 0 && !sched->answers) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory to place %d nodes", sched->function,
                  (int)sched->n_nodes);
        return false;
    }
    if (answers > 0) memset(sched->answers, 0, answers);
    return sched_grow(&sched->placed, &sched->placed_capacity, sched->n_values,
                      sizeof(sched->placed[0]));
}

// --- 1: what is tied to a place

// Places nodes where the application wants them; pins of other graphs stay for these.
static void apply_pins(struct ggml_backend_sched *sched) {
    for (int32_t i = 0; i < sched->n_pins; ++i) {
        const int32_t value =
            tensor_index_get(&sched->value_ids, sched_list(sched->values), sched->pins[i].tensor);
        if (value >= 0) sched_assign(sched, value, sched->pins[i].backend, SCHED_REASON_PINNED);
    }
}

// Places a value that has memory on the first stream that can read it (and compute it, for a
// node). False after the error was set.
static bool place_by_buffer(struct ggml_backend_sched *sched, int32_t value, int32_t buft) {
    const int32_t backend = first_reader(sched, buft, value);
    sched_assign(sched, value, backend, SCHED_REASON_BUFFER);
    if (backend >= 0) return true;
    const struct ggml_tensor *tensor = sched->values[value].tensor;
    ggml_fail(GGML_HOST_UNSUPPORTED,
              "%s: tensor '%s' (%s) lies in %s memory, and no stream that can use it computes it: "
              "add a stream of that device, or place the tensor elsewhere",
              sched->function, tensor->name, ggml_op_name(tensor->op),
              ggml_backend_buft_name(sched->bufts[buft].buft));
    return false;
}

// A weight in host memory may be worth copying to a device for one operation.
static int32_t offload_target(struct ggml_backend_sched *sched, int32_t node) {
    const struct ggml_tensor *tensor = sched->values[node].tensor;
    for (int32_t b = 0; b < sched->n_backends - 1; ++b) {
        if (sched_supports(sched, node, b) &&
            ggml_backend_dev_offload_op(sched->streams[b].device, tensor)) {
            return b;
        }
    }
    return -1;
}

// Places a node where its weight lies. Weights in host memory may have it offloaded to a device
// that wants such nodes.
static void place_by_weight(struct ggml_backend_sched *sched, int32_t node, int32_t weight) {
    const int32_t last = sched->n_backends - 1;
    const int32_t buft = sched->values[sched->values[weight].root].buft;
    if (buft < 0) return;
    int32_t backend = sched->bufts[buft].first_reader;
    if (backend >= 0 && !sched_supports(sched, node, backend)) {
        backend = first_reader(sched, buft, node);
    }
    sched_assign(sched, node, backend, backend >= 0 ? SCHED_REASON_WEIGHT : SCHED_REASON_NONE);
    if (!sched->op_offload || backend != last || !sched->bufts[buft].host) return;
    const int32_t target = offload_target(sched, node);
    if (target >= 0) sched_assign(sched, node, target, SCHED_REASON_OFFLOAD);
}

// Places what memory, the input flag or a weight decides; others stay unplaced.
static bool place_fixed(struct ggml_backend_sched *sched, int32_t number, int32_t weight) {
    const struct sched_value *value = &sched->values[number];
    const int32_t buft = sched->values[value->root].buft;
    if (buft >= 0) return place_by_buffer(sched, number, buft);
    if (value->traits & SCHED_INPUT) {
        sched_assign(sched, number, sched->n_backends - 1, SCHED_REASON_INPUT);
    } else if (weight >= 0 && !(value->traits & SCHED_DETACHED)) {
        place_by_weight(sched, number, weight);
    }
    return true;
}

// The first source of a node that is a weight, or -1.
static int32_t first_weight(const struct ggml_backend_sched *sched, int32_t node) {
    for (int32_t e = sched->first_edge[node]; e < sched->first_edge[node + 1]; ++e) {
        if (sched->values[sched->edges[e].value].traits & SCHED_WEIGHT)
            return sched->edges[e].value;
    }
    return -1;
}

// Leafs first, as nodes are placed by them. O(nodes + edges).
static bool place_all_fixed(struct ggml_backend_sched *sched) {
    for (int32_t i = sched->n_nodes; i < sched->n_values; ++i) {
        if (sched->placed[i].backend < 0 && !place_fixed(sched, i, -1)) return false;
    }
    for (int32_t i = 0; i < sched->n_nodes; ++i) {
        if (sched->placed[i].backend >= 0) continue;
        if (!place_fixed(sched, i, first_weight(sched, i))) return false;
    }
    return true;
}

// --- 2: what lies between

// The nodes that compute and have no stream yet; all lie in [first, last].
struct unplaced {
    int32_t count;
    int32_t first, last;
};

// How many nodes are left, and between which ones the spreading has to walk.
static struct unplaced find_unplaced(const struct ggml_backend_sched *sched) {
    struct unplaced unplaced = {0};
    for (int32_t i = 0; i < sched->n_nodes; ++i) {
        if (sched->placed[i].backend >= 0 || (sched->values[i].traits & SCHED_VIEW_OP)) continue;
        if (unplaced.count++ == 0) unplaced.first = i;
        unplaced.last = i;
    }
    return unplaced;
}

// Hands streams on to unplaced nodes from the last placed one before them (step 1) or after them
// (step -1), and lowers their count. Unless spread_last, the last stream does not spread.
static void expand(struct ggml_backend_sched *sched, struct unplaced *unplaced, int32_t step,
                   bool spread_last) {
    const int32_t last = sched->n_backends - 1;
    const int32_t begin = step > 0 ? unplaced->first : unplaced->last;
    int32_t current = -1;
    if (unplaced->count == 0) return;
    int32_t i = begin - step; // back to the placed node that stands before them
    while (i >= 0 && i < sched->n_nodes && (sched->values[i].traits & SCHED_VIEW_OP)) {
        i -= step;
    }
    if (i < 0 || i >= sched->n_nodes) i = begin;
    for (; i >= 0 && i < sched->n_nodes && unplaced->count > 0; i += step) {
        const int32_t backend = sched->placed[i].backend;
        if (sched->values[i].traits & SCHED_VIEW_OP) continue;
        if (backend >= 0) {
            current = backend == last && !spread_last ? -1 : backend;
        } else if (current >= 0 && sched_supports(sched, i, current)) {
            sched_assign(sched, i, current, SCHED_REASON_NEIGHBOUR);
            unplaced->count--;
        }
    }
}

// --- 3: the rest, and better places

static bool is_located(const struct ggml_backend_sched *sched, int32_t value) {
    return sched->placed[value].backend >= 0 ||
           sched->placed[sched->values[value].root].backend >= 0;
}

// Sources of a node that a stream reads without a copy.
static int32_t count_readable(const struct ggml_backend_sched *sched, int32_t node,
                              int32_t backend) {
    int32_t count = 0;
    for (int32_t e = sched->first_edge[node]; e < sched->first_edge[node + 1]; ++e) {
        const int32_t value = sched->edges[e].value;
        count += is_located(sched, value) && sched_readable(sched, value, backend);
    }
    return count;
}

// Places a node on the stream that reads most of its sources; the first of equals. O(streams *
// sources).
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
    if (best >= 0) sched_assign(sched, node, best, SCHED_REASON_BEST_FIT);
}

// Whether a stream reads every source without a copy.
static bool reads_all_sources(const struct ggml_backend_sched *sched, int32_t node,
                              int32_t backend) {
    for (int32_t e = sched->first_edge[node]; e < sched->first_edge[node + 1]; ++e) {
        if (!sched_readable(sched, sched->edges[e].value, backend)) return false;
    }
    return true;
}

// A preferred stream whose memory is the same takes the node over (say, a matrix library before the
// CPU).
static void upgrade(struct ggml_backend_sched *sched, int32_t node) {
    const int32_t now = sched->placed[node].backend;
    const int32_t buft = sched->streams[now].buft;
    for (int32_t b = sched->streams[now].pool_stream; b < now; ++b) {
        if (sched->streams[b].buft != buft || !sched_supports(sched, node, b)) continue;
        if (!reads_all_sources(sched, node, b)) continue;
        sched_assign(sched, node, b, SCHED_REASON_UPGRADE);
        return;
    }
}

// Places what is left, and moves nodes to an earlier stream of the same memory that supports
// them.
static void place_or_upgrade(struct ggml_backend_sched *sched) {
    for (int32_t i = 0; i < sched->n_nodes; ++i) {
        if (sched->values[i].traits & SCHED_VIEW_OP) continue;
        if (sched->placed[i].backend < 0) {
            place_best_fit(sched, i);
        } else if (sched->streams[sched->placed[i].backend].pool_stream <
                   sched->placed[i].backend) {
            upgrade(sched, i);
        }
    }
}

// --- 4: views and what nodes bring with them

// A view goes where its root is.
static void place_view(struct ggml_backend_sched *sched, int32_t value) {
    const int32_t root = sched->values[value].root;
    if (sched->placed[value].backend < 0 && root != value) {
        sched_assign(sched, value, sched->placed[root].backend, SCHED_REASON_VIEW);
    }
}

// Places a node on the first stream that supports it. False after the error was set: none does.
static bool place_leftover(struct ggml_backend_sched *sched, int32_t node) {
    place_view(sched, node);
    for (int32_t b = 0; b < sched->n_backends && sched->placed[node].backend < 0; ++b) {
        if (sched_supports(sched, node, b)) sched_assign(sched, node, b, SCHED_REASON_FIRST);
    }
    if (sched->placed[node].backend >= 0) return true;
    const struct ggml_tensor *tensor = sched->values[node].tensor;
    ggml_fail(GGML_HOST_UNSUPPORTED,
              "%s: node %d '%s' (%s, %s) is supported by none of the %d streams", sched->function,
              (int)node, tensor->name, ggml_op_desc(tensor), ggml_type_name(tensor->type),
              sched->n_backends);
    return false;
}

// Places a node and its unplaced sources: with their root, or where they are read.
static bool place_sources(struct ggml_backend_sched *sched, int32_t node) {
    if (sched->placed[node].backend < 0 && !place_leftover(sched, node)) return false;
    const int32_t backend = sched->placed[node].backend;
    for (int32_t e = sched->first_edge[node]; e < sched->first_edge[node + 1]; ++e) {
        const int32_t value = sched->edges[e].value;
        if (sched->placed[value].backend >= 0) continue;
        place_view(sched, value);
        if (sched->placed[value].backend < 0) {
            sched_assign(sched, value, backend, SCHED_REASON_CONSUMER);
        }
    }
    return true;
}

// Places what is left; leafs that no node reads go to the last stream, the CPU.
static bool place_leftovers(struct ggml_backend_sched *sched) {
    for (int32_t i = 0; i < sched->n_nodes; ++i) {
        if (!place_sources(sched, i)) return false;
    }
    for (int32_t i = sched->n_nodes; i < sched->n_values; ++i) {
        if (sched->placed[i].backend >= 0) continue;
        sched_assign(sched, i, sched->n_backends - 1, SCHED_REASON_CONSUMER);
    }
    return true;
}

// Whether all nodes are on streams that the application allows; false after the error was set.
static bool is_allowed(const struct ggml_backend_sched *sched) {
    for (int32_t i = 0; i < sched->n_nodes && sched->restricted; ++i) {
        const struct sched_value *value = &sched->values[i];
        const struct sched_placed *placed = &sched->placed[i];
        if ((value->traits & (SCHED_VIEW_OP | SCHED_NO_OP)) ||
            sched->streams[placed->backend].allowed) {
            continue;
        }
        ggml_fail(GGML_HOST_UNSUPPORTED,
                  "%s: node %d '%s' (%s) would run on %s (%s), which is not allowed",
                  sched->function, (int)i, value->tensor->name, ggml_op_desc(value->tensor),
                  sched_stream_label(sched, placed->backend), sched_reason_text(placed->reason));
        return false;
    }
    return true;
}

bool sched_place(struct ggml_backend_sched *sched) {
    if (!make_room(sched)) return false;
    for (int32_t i = 0; i < sched->n_values; ++i) {
        sched_assign(sched, i, -1, SCHED_REASON_NONE);
    }
    apply_pins(sched);
    if (!place_all_fixed(sched)) return false;
    struct unplaced unplaced = find_unplaced(sched);
    expand(sched, &unplaced, 1, false);
    expand(sched, &unplaced, -1, false);
    expand(sched, &unplaced, 1, true);
    expand(sched, &unplaced, -1, true);
    if (unplaced.count > 0 || sched->shares_pools) place_or_upgrade(sched);
    if (!place_leftovers(sched)) return false;
    if (sched->figures && !sched_place_by_cost(sched)) return false;
    return is_allowed(sched);
}
