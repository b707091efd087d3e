// SPDX-License-Identifier: MIT
// Inside the scheduler. A graph is turned into arrays once: every tensor it mentions gets a number
// (an "item"): nodes first, in order, then leafs, then tensors that are only mentioned. From there
// on everything is found by number.
#ifndef GGML_SCHED_SCHED_H
#define GGML_SCHED_SCHED_H

#include "ggml-alloc.h"
#include "ggml-backend-impl.h"
#include "ggml-host.h"
#include "ggml-impl.h"
#include "graph/gallocr.h"
#include "sched/tensor_map.h"
#include "sched/tensor_pool.h"

enum { SCHED_PIPELINE_COPIES = 4, SCHED_FRAMES = 4 };

enum sched_reason {
#define SCHED_REASON_ROW(name, text) SCHED_REASON_##name,
#include "sched/reason_list.inl"
};

enum sched_trait {
    SCHED_VIEW_OP = 1 << 0,    // VIEW, RESHAPE, PERMUTE, TRANSPOSE
    SCHED_NO_OP = 1 << 1,      // NONE
    SCHED_INPUT = 1 << 2,      // flagged by the user
    SCHED_WEIGHT = 1 << 3,     // lies in a buffer of weights
    SCHED_DETACHED = 1 << 4,   // its operands must not decide where it runs
    SCHED_EXPERTS = 1 << 5,    // MUL_MAT_ID
    SCHED_HAS_MEMORY = 1 << 6, // before the scheduler gave it any
};

struct sched_item {
    struct ggml_tensor *tensor;
    int32_t root;    // item that owns the memory; itself unless it is a view
    int32_t backend; // -1: not known (yet)
    int32_t copies;  // first of its copies, or -1
    int32_t buft;    // of its own buffer, or -1
    uint8_t traits;
    uint8_t plan_traits; // see graph/gallocr.h
    uint8_t reason;
};

// Use of an item as source `slot` of a node.
struct sched_edge {
    int32_t item;
    int32_t slot;
};

struct sched_buft {
    ggml_backend_buffer_type_t buft;
    uint64_t *readers; // bit b: stream b can use it
    bool host;
};

struct sched_stream {
    ggml_backend_t backend;
    ggml_backend_dev_t device;
    int32_t buft;                                       // of its compute buffer
    int32_t pool;                                       // first stream with the same one
    ggml_backend_event_t events[SCHED_PIPELINE_COPIES]; // by copy; NULL: none
    bool busy;                                          // may have queued work
    bool allowed;                                       // nodes may be placed there
    uint64_t done_run;                                  // runs up to this one are finished
};

// An item's double on a stream that can't read the original.
struct sched_copy {
    int32_t item;
    int32_t backend;
    int32_t next;       // further copies of the item, or -1
    int32_t expert_ids; // item with the only experts that are used; -1: all
};

struct sched_split {
    int32_t backend;
    int32_t i_start;
    int32_t i_end;
    int32_t first_input; // into `inputs`
    int32_t n_inputs;
    int32_t first_wait; // into `waits`
    int32_t n_waits;
};

// What streams may still look at after a run was queued.
struct sched_frame {
    struct tensor_pool pool;    // copies and markers
    struct ggml_cgraph *graphs; // by split
    int32_t graphs_capacity;
    uint64_t run; // the last that used it
};

// Source `slot` of a node was replaced by a copy.
struct sched_rewrite {
    int32_t node;
    int32_t slot;
    int32_t item;
    int32_t copy;
};

struct sched_pin {
    const struct ggml_tensor *tensor;
    int32_t backend;
};

struct sched_known_item {
    int64_t ne[GGML_MAX_DIMS];
    size_t nb[GGML_MAX_DIMS];
    size_t view_offs;
    int32_t op_params[GGML_MAX_OP_PARAMS / sizeof(int32_t)];
    int32_t type, op, flags;
    int32_t root, pool;
    int32_t entry; // of the allocator's plan, or -1
    uint8_t traits, plan_traits;
};

// The structure that the allocator's plan was made for.
struct sched_known {
    bool valid;
    bool repeatable; // the scheduler's arrays still describe it, and all was decided without pins
    int32_t n_nodes, n_leafs, n_items, n_edges, n_splits, n_copied;
    struct sched_known_item *items;
    int32_t *first_edge;
    struct sched_edge *edges;
    struct sched_split *splits;
    struct sched_copy *copies;
    int32_t *copy_entries;
    int32_t items_capacity, first_edge_capacity, edges_capacity, splits_capacity;
    int32_t copies_capacity, copy_entries_capacity;
};

enum sched_state { SCHED_RESET, SCHED_SPLIT, SCHED_ALLOCATED };

struct ggml_backend_sched {
    enum sched_state state;
    const char *function; // public function under way, for messages
    int n_backends;
    int n_copies;
    int cur_copy;
    int next_copy;
    bool op_offload;
    bool restricted; // not every stream is allowed
    struct sched_stream *streams;
    struct ggml_device_figures *figures; // by stream; NULL: place as usual
    double predicted_seconds;            // of the last graph
    ggml_backend_sched_eval_callback callback;
    void *callback_data;

    // kinds of memory that were met; the streams' own come first and stay
    struct sched_buft *bufts;
    int32_t n_bufts, bufts_capacity, n_own_bufts;
    struct tensor_map buft_ids;
    int mask_words;

    // pins, kept until the next reset
    struct sched_pin *pins;
    int32_t n_pins, pins_capacity;
    struct tensor_map pin_ids;

    // the graph as arrays
    struct ggml_cgraph *graph; // only compared after the call that it was passed to
    uint64_t graph_uid;
    bool in_place; // its tensors have the places that the last allocation gave them
    int32_t n_nodes, n_leafs, n_items, items_capacity;
    struct sched_item *items;
    struct tensor_map item_ids;
    int32_t *first_edge; // of each node, and the end
    int32_t first_edge_capacity;
    struct sched_edge *edges;
    int32_t n_edges, edges_capacity;
    uint8_t *answers; // per node two bits per stream: asked, supported
    size_t answers_stride, answers_capacity;

    // splits
    struct sched_split *splits;
    int32_t n_splits, splits_capacity;
    struct sched_copy *copies;
    int32_t n_copied, copies_capacity;
    struct ggml_tensor **copy_slots; // n_copies per copy
    int32_t copy_slots_capacity;
    int32_t *inputs; // copies that a split makes
    int32_t n_inputs, inputs_capacity;
    int32_t *waits; // streams whose results a split reads in place
    int32_t n_waits, waits_capacity;
    int32_t *seen_by; // per stream: last split that waits for it
    struct sched_rewrite *rewrites;
    int32_t n_rewrites, rewrites_capacity;
    struct sched_frame frames[SCHED_FRAMES];
    int cur_frame;
    uint64_t run; // number of the last

    // what the allocator sees
    ggml_gallocr_t galloc;
    struct sched_known known;
    bool reordered;             // a device changed the order of nodes
    bool ids_stale;             // item_ids is of an earlier graph than items
    ggml_gallocr_t slot_galloc; // pipeline copies, which live for ever; NULL without
    struct ggml_cgraph work;    // splits with markers and copies
    int32_t work_nodes_capacity, work_leafs_capacity;
    struct ggml_cgraph slots; // the pipeline copies as leafs
    int32_t slots_capacity;
    int *node_ids, *leaf_ids, *slot_ids;
    int32_t node_ids_capacity, leaf_ids_capacity, slot_ids_capacity;
    int32_t n_planned_nodes, n_planned_leafs, n_planned_slots; // that the plans were made for
    bool ids_changed; // nodes or leafs moved to other memory since the plan was made
    bool slots_changed;
};

// Makes an array of `element` bytes hold `needed` elements, doubling; `array` points to the
// pointer. false with a message when memory runs out: nothing is changed then. [stream]
bool sched_grow(void *array, int32_t *capacity, int64_t needed, size_t element);

// Whether tensors in this kind of memory can be used by the stream.
static inline bool sched_reads(const struct ggml_backend_sched *sched, int32_t buft,
                               int32_t backend) {
    return (sched->bufts[buft].readers[backend / 64] >> (backend % 64)) & 1u;
}

// Kind of memory where the item lies or will lie, or -1.
static inline int32_t sched_memory(const struct ggml_backend_sched *sched, int32_t item) {
    const struct sched_item *root = &sched->items[sched->items[item].root];
    if (root->buft >= 0) return root->buft;
    const int32_t backend =
        sched->items[item].backend >= 0 ? sched->items[item].backend : root->backend;
    return backend >= 0 ? sched->streams[backend].buft : -1;
}

// Whether the stream can read the item where it lies.
static inline bool sched_readable(const struct ggml_backend_sched *sched, int32_t item,
                                  int32_t backend) {
    const int32_t buft = sched_memory(sched, item);
    return buft >= 0 && sched_reads(sched, buft, backend);
}

// The tensor that the current run uses for a copy.
static inline struct ggml_tensor *sched_copy_tensor(const struct ggml_backend_sched *sched,
                                                    int32_t copy) {
    return sched->copy_slots[(int64_t)copy * sched->n_copies + sched->cur_copy];
}

static inline struct sched_frame *sched_frame(struct ggml_backend_sched *sched) {
    return &sched->frames[sched->cur_frame];
}

const char *sched_reason_text(enum sched_reason reason);
// Name of the stream's device, for messages.
const char *sched_stream_label(const struct ggml_backend_sched *sched, int32_t backend);
// Index of the stream, or -1.
int32_t sched_find_stream(const struct ggml_backend_sched *sched, ggml_backend_t backend);
// Number of a kind of memory, entered if it is new; -1 with a message when memory runs out.
int32_t sched_buft_id(struct ggml_backend_sched *sched, ggml_backend_buffer_type_t buft);

// The stages, in order. Each answers false with a message.
bool sched_index(struct ggml_backend_sched *sched, struct ggml_cgraph *graph);
bool sched_place(struct ggml_backend_sched *sched);
// Improves the placement by the caller's figures.
bool sched_place_by_cost(struct ggml_backend_sched *sched);
bool sched_cut(struct ggml_backend_sched *sched);
bool sched_assemble(struct ggml_backend_sched *sched);
// The parts of the graph that streams compute, and in sched_assemble() what the allocator sees.
bool sched_make_parts(struct ggml_backend_sched *sched, struct ggml_cgraph *graph);
// All stages but sched_assemble(). On failure the graph is as it was.
bool sched_split(struct ggml_backend_sched *sched, struct ggml_cgraph *graph);
// The same, for a graph that may have been split before.
bool sched_split_fresh(struct ggml_backend_sched *sched, struct ggml_cgraph *graph);
// Makes the last graph what it was before it was split: own sources, no memory. It must be alive.
void sched_restore(struct ggml_backend_sched *sched, struct ggml_cgraph *graph);

// Asks once per node and stream.
bool sched_supports(struct ggml_backend_sched *sched, int32_t node, int32_t backend);

// Gives the split graph memory.
bool sched_allocate(struct ggml_backend_sched *sched);
// Plans it and makes the buffers large enough, or only tells their sizes.
bool sched_reserve_buffers(struct ggml_backend_sched *sched);
bool sched_measure(struct ggml_backend_sched *sched, size_t *out_sizes);

// The short way for a structure that is known: see bind.c.
bool sched_plan_is_known(const struct ggml_backend_sched *sched);
enum plan_result sched_use_known_plan(struct ggml_backend_sched *sched);
// After the plan was made and used.
void sched_remember_plan(struct ggml_backend_sched *sched);
// After it was used for tensors of other layouts.
void sched_update_known(struct ggml_backend_sched *sched);
void sched_forget_plan(struct ggml_backend_sched *sched);
void sched_free_known(struct sched_known *known);
// Gives an item whose layout is as planned its place. Its buffers must have been reset.
enum plan_result sched_place_same(const struct ggml_backend_sched *sched, int32_t number);
enum plan_result sched_place_copies(const struct ggml_backend_sched *sched);
void sched_reset_buffers(struct ggml_backend_sched *sched);
// The shortest way: splits and allocates a graph that repeats the known one in everything but the
// addresses of its tensors. false without effect if it does not.
bool sched_retrace(struct ggml_backend_sched *sched, struct ggml_cgraph *graph);
// A tensor for a copy on that stream; NULL with a message when memory runs out.
struct ggml_tensor *sched_duplicate(struct ggml_backend_sched *sched,
                                    const struct ggml_tensor *tensor, int32_t backend, int slot);
// Item of a tensor of the last graph, or -1; copies have numbers from n_items.
int32_t sched_find_item(struct ggml_backend_sched *sched, const struct ggml_tensor *tensor);

// Waits for a stream, or for all.
void sched_wait(struct ggml_backend_sched *sched, int32_t backend);
void sched_wait_all(struct ggml_backend_sched *sched);
// Takes the next frame, when nothing looks at it any more.
void sched_next_frame(struct ggml_backend_sched *sched);

// Runs the splits of the allocated graph.
enum ggml_status sched_run(struct ggml_backend_sched *sched);

// Expert-only copies: see expert.c. `known` is kept from one copy to the next of a run.
struct sched_experts {
    int32_t ids;   // item that `used` was read from, or -1
    int64_t count; // of experts
    uint8_t *used; // by expert
    int64_t used_capacity;
};
// Whether only some experts of the input have to be copied.
bool sched_is_expert_copy(const struct ggml_backend_sched *sched, int32_t copy);
// Queues the copy of the experts that are used; false with a message.
bool sched_copy_experts(struct ggml_backend_sched *sched, int32_t copy,
                        struct sched_experts *known);

// Logs the splits if GGML_SCHED_DEBUG says so.
void sched_log(const struct ggml_backend_sched *sched, const struct ggml_cgraph *graph);

#endif
