// SPDX-License-Identifier: MIT
// Internals of the scheduler. sched_index() turns a graph into arrays once. Every tensor that the
// graph mentions becomes a "value" with a number: the nodes first, in order, then the leafs, then
// tensors that are only referred to. All later passes work on these numbers.
//
// Passes: index.c (numbering) -> place.c, cost*.c (placement) -> partition.c (splits) -> copies.c
// (tensors that are copied to) -> subgraphs.c (a graph per split) -> liveness.c -> plan.c (memory)
// -> bind.c -> run.c. replay.c skips most of them for a graph that repeats the last one.
#ifndef GGML_SCHED_SCHED_H
#define GGML_SCHED_SCHED_H

#include "alloc/gallocr.h"
#include "alloc/liveness.h"
#include "alloc/memory_quick.h"
#include "base/tensor_index.h"
#include "device/stream_view.h"
#include "device/stream_watch.h"
#include "ggml-alloc.h"
#include "ggml-backend-impl.h"
#include "ggml-host.h"
#include "ggml-impl.h"
#include "ggml-plugin.h"
#include "sched/cache.h"
#include "sched/tensor_pool.h"
#include "tensor/node_since.h"

// Branch hints for loops over all nodes.
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define LIKELY(condition) __builtin_expect(!!(condition), 1)

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
    SCHED_OUTPUT = 1 << 7,     // flagged by the user
    SCHED_EARLY = 1 << 8,      // flagged by the user: set before the first node is computed
    SCHED_IN_PLACE = 1 << 9    // the operation may overwrite a source
};

struct sched_value {
    struct ggml_tensor *tensor;
    size_t bytes; // 0: a view, or it lies in a buffer
    int32_t root; // value that owns the memory; itself unless it is a view
    int32_t buft; // of its own buffer, or -1
    uint16_t traits;
};

// Where a value is computed or lies, and why.
struct sched_placed {
    int32_t backend; // -1: not known yet, which only placement meets
    uint8_t reason;
};

// The plan of one pool of the allocator. Only where quick planning wastes too much is more tried.
struct sched_pool_plan {
    size_t live;         // bytes, while they are counted
    size_t most_live;    // no plan needs less
    bool used;           // something lies there, if only without bytes
    bool settled;        // quick planning need not go on
    bool is_open;        // while planning thoroughly: what is to be done
    int32_t best_policy; // of this graph
    size_t least;        // what it needs
    struct memory_quick quick;
    struct memory_chunks chunks; // of the thorough plan; empty: the quick one holds
};

// Address of a pool's first chunk.
struct sched_base {
    ggml_backend_buffer_t buffer;
    char *address;
};

struct sched_buft {
    ggml_backend_buffer_type_t buft;
    uint64_t *readers;    // bit b: stream b can use it
    int32_t first_reader; // the first of them, or -1
    bool host;
};

struct sched_stream {
    ggml_backend_t backend;
    ggml_backend_dev_t device;
    int32_t buft;        // of its compute buffer
    int32_t pool_stream; // first stream whose memory is of the same pool
    int32_t pool;        // of the allocator
    bool asks_size;      // of tensors in its memory
    size_t alignment;    // of its memory
    ggml_backend_event_t events[SCHED_PIPELINE_COPIES]; // by copy; NULL: none
    bool busy;                                          // may have queued work
    bool allowed;                                       // nodes may be placed there
    int contract_minor;                                 // that its device was built with
    uint64_t done_run;                                  // runs up to this one are finished
    struct stream_watch watch;                          // the application may free it first
};

// A value's double on a stream that can't read the original, with one tensor per run in flight.
struct sched_copy {
    int32_t value;
    int32_t backend;
    int32_t next;       // further copies of the value, or -1
    int32_t expert_ids; // value with the only experts that are used; -1: all
    bool with_original; // an input on its own stream: the original is one of the tensors
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
    struct tensor_pool pool;   // copies and markers
    struct ggml_graph *graphs; // by split
    int32_t graphs_capacity;
    uint64_t run; // the last that used it
};

// A source of a node was replaced by a copy.
struct sched_rewrite {
    int32_t node;
    int32_t edge;
    int32_t copy;
};

// The result of sched_partition(), which other passes only read; sched_split() empties it.
struct sched_partition {
    struct sched_split *splits;
    int32_t n_splits, splits_capacity;
    struct sched_copy *copies;
    int32_t n_copies, copies_capacity;
    int32_t *first_copy; // by value: of its copies, or -1
    int32_t first_copy_capacity;
    int32_t *inputs; // copies that a split makes
    int32_t n_inputs, inputs_capacity;
    int32_t *waits; // streams whose results a split reads in place
    int32_t n_waits, waits_capacity;
    struct sched_rewrite *rewrites;
    int32_t n_rewrites, rewrites_capacity;
};

// The result of sched_find_liveness(). Entries are the values and, behind them, the copies.
struct sched_liveness {
    struct live_place *places; // by entry: size, pool and first step; planning adds the offset
    struct live_last *last;    // by entry
    struct live_edge *edges;   // those of the graph, to copies where these are read
    int32_t *early;            // values that have to be there from the start
    int32_t n_early;
    int32_t *inplace_steps; // steps of nodes that may take over the memory of a source
    int32_t places_capacity, last_capacity, edges_capacity, early_capacity;
    int32_t inplace_steps_capacity;
};

struct sched_pin {
    struct ggml_tensor *tensor;
    int32_t backend;
};

enum sched_state { SCHED_RESET, SCHED_SPLIT, SCHED_ALLOCATED };

struct ggml_backend_sched {
    enum sched_state state;
    const char *function; // public function that is running, for messages
    int n_backends;
    int pipeline_depth;
    int cur_copy;
    int next_copy;
    bool op_offload;
    bool restricted; // not every stream is allowed
    struct sched_stream *streams;
    struct ggml_device_figures *figures; // by stream; NULL: place as usual
    double predicted_seconds;            // of the last graph
    ggml_backend_sched_eval_callback callback;
    void *callback_data;
    ggml_backend_sched_copy_callback copy_callback;
    void *copy_callback_data;
    ggml_backend_sched_realloc_callback realloc_callback;
    void *realloc_callback_data;
    uint64_t placement_hash; // of the last graph that was allocated while realloc_callback was set
    int32_t placement_nodes; // of that graph

    // Buffer types that were met; the streams' own come first and stay.
    struct sched_buft *bufts;
    int32_t n_bufts, bufts_capacity, n_own_bufts;
    int mask_words;
    uint16_t op_traits[GGML_OP_COUNT];
    uint16_t block_sizes[GGML_TYPE_COUNT]; // elements per block; 0: no such type
    uint16_t type_sizes[GGML_TYPE_COUNT];  // bytes per block

    // Tensors that the application put on a stream, kept until the next reset.
    struct sched_pin *pins;
    int32_t n_pins, pins_capacity;
    struct tensor_index pin_ids;

    // The graph as arrays: written by numbering (index.c).
    struct ggml_cgraph *graph; // only compared after the call that it was passed to
    uint64_t graph_uid;
    bool in_place; // its tensors have the places that the last allocation gave them
    int32_t n_nodes, n_leafs, n_values, values_capacity;
    struct sched_value *values;
    struct tensor_index value_ids;
    uint64_t value_ids_uid; // of the graph whose tensors value_ids has
    uint8_t *used;          // by value: is a source of some node
    int32_t used_capacity;
    int32_t *results; // values that are an output, and nodes that compute something for nobody
    int32_t n_results, results_capacity;
    bool in_order;       // what a node refers to has a smaller number or is no node
    int32_t *first_edge; // of each node, and the end
    int32_t first_edge_capacity;
    struct live_edge *edges;
    int32_t n_edges, edges_capacity;

    struct sched_placed *placed; // by value: written by placement
    int32_t placed_capacity;
    uint8_t *answers; // per node two bits per stream: asked, supported
    size_t answers_stride, answers_capacity;

    struct sched_partition partition;
    struct ggml_tensor **copy_tensors; // pipeline_depth per copy
    int32_t copy_tensors_capacity;
    struct sched_liveness live;
    struct sched_frame frames[SCHED_FRAMES];
    int cur_frame;
    uint64_t run; // number of the last

    // Memory: offsets (plan.c), buffers (memory.c).
    ggml_gallocr_t galloc;
    struct sched_pool_plan *pool_plans; // by pool of the allocator, as the next ones
    struct sched_base *bases;
    struct sched_caches caches;
    const int32_t *order; // value by step; NULL: the numbers of nodes are their steps
    const int32_t *steps; // the inverse
    int32_t *order_room;  // for both
    int32_t order_capacity;
    int32_t *use_counts; // by step
    int32_t use_counts_capacity;
    uint64_t structure;         // of the first split; those of the others follow
    bool shares_pools;          // some streams use the same kind of memory
    ggml_gallocr_t slot_galloc; // pipeline copies, which live for ever; NULL without
    struct ggml_cgraph slots;   // the pipeline copies as leafs
    int32_t slots_capacity;
    int *slot_ids;
    int32_t slot_ids_capacity;
    int32_t n_planned_slots;       // that the plan was made for
    struct sched_profile *profile; // NULL: no times are recorded
};

// Makes an array of `element` bytes hold `needed` elements, doubling; `array` points to the
// pointer. false with a message when memory runs out: nothing is changed then. [stream]
bool sched_grow(void *array, int32_t *capacity, int64_t needed, size_t element);

// Whether tensors in this kind of memory can be used by the stream.
static inline bool sched_reads(const struct ggml_backend_sched *sched, int32_t buft,
                               int32_t backend) {
    return (sched->bufts[buft].readers[backend / 64] >> (backend % 64)) & 1u;
}

// Kind of memory where the value lies or will lie, or -1.
static inline int32_t sched_memory(const struct ggml_backend_sched *sched, int32_t value) {
    const struct sched_value *root = &sched->values[sched->values[value].root];
    if (root->buft >= 0) return root->buft;
    const struct sched_placed *own = &sched->placed[value];
    const int32_t backend =
        own->backend >= 0 ? own->backend : sched->placed[sched->values[value].root].backend;
    return backend >= 0 ? sched->streams[backend].buft : -1;
}

// Whether the stream can read the value where it lies.
bool sched_readable(const struct ggml_backend_sched *sched, int32_t value, int32_t backend);

static inline struct tensor_list sched_list(const struct sched_value *values) {
    return (struct tensor_list){values, sizeof(values[0])};
}

// Pin of the tensor, or -1.
static inline int32_t sched_find_pin(const struct ggml_backend_sched *sched,
                                     const struct ggml_tensor *tensor) {
    return tensor_index_get(&sched->pin_ids,
                            (struct tensor_list){sched->pins, sizeof(sched->pins[0])}, tensor);
}

// Fetches early what a walk will read of a tensor.
enum { SCHED_FETCH_AHEAD = 12 }; // tensors
static inline void sched_fetch(const struct ggml_tensor *tensor) {
    const char *bytes = (const char *)tensor;
    for (size_t i = 0; i <= offsetof(struct ggml_tensor, name); i += 64) {
        __builtin_prefetch(bytes + i);
    }
}

static inline int32_t sched_entry_count(const struct ggml_backend_sched *sched) {
    return sched->n_values + sched->partition.n_copies;
}

// Item that is computed at a step.
static inline int32_t sched_value_at(const struct ggml_backend_sched *sched, int32_t step) {
    return sched->order ? sched->order[step] : step;
}

// Step at which a node is computed.
static inline int32_t sched_step_of(const struct ggml_backend_sched *sched, int32_t node) {
    return sched->steps ? sched->steps[node] : node;
}

// The tensor that the current run uses for a copy.
static inline struct ggml_tensor *sched_copy_tensor(const struct ggml_backend_sched *sched,
                                                    int32_t copy) {
    return sched->copy_tensors[(int64_t)copy * sched->pipeline_depth + sched->cur_copy];
}

static inline struct sched_frame *sched_frame(struct ggml_backend_sched *sched) {
    return &sched->frames[sched->cur_frame];
}

const char *sched_reason_text(enum sched_reason reason);
// Name of the stream's device, for messages.
const char *sched_stream_label(const struct ggml_backend_sched *sched, int32_t backend);
// Whether the stream has not been freed; otherwise records that.
bool sched_stream_is_live(const struct ggml_backend_sched *sched, int32_t backend,
                          const char *function);
// Index of the stream, the first of several equal ones, or -1.
int32_t sched_find_stream(const struct ggml_backend_sched *sched, ggml_backend_t backend);
// Number of a kind of memory, entered if it is new; -1 with a message when memory runs out.
int32_t sched_buft_id(struct ggml_backend_sched *sched, ggml_backend_buffer_type_t buft);

static inline void sched_assign(struct ggml_backend_sched *sched, int32_t value, int32_t backend,
                                enum sched_reason reason) {
    sched->placed[value] = (struct sched_placed){backend, (uint8_t)reason};
}

// Fails because the tensor is in error or unknown.
void sched_refuse(const struct ggml_backend_sched *sched, const struct ggml_tensor *tensor);
// Fills in what depends on an operation or a type alone.
void sched_learn_kinds(struct ggml_backend_sched *sched);

// The passes, in order. Each returns false with a message.
bool sched_index(struct ggml_backend_sched *sched, struct ggml_cgraph *graph);
bool sched_place(struct ggml_backend_sched *sched);
// Improves the placement by the caller's figures.
bool sched_place_by_cost(struct ggml_backend_sched *sched);
bool sched_partition(const struct ggml_backend_sched *sched, struct sched_partition *out);
void sched_partition_free(struct sched_partition *partition);
// New tensors for the copies; false with a message.
bool sched_make_copies(struct ggml_backend_sched *sched);
// Makes nodes read the copies, or the originals again.
void sched_read_copies(const struct ggml_backend_sched *sched);
void sched_read_originals(const struct ggml_backend_sched *sched);
// The parts of the graph that streams compute, in the order that their devices prefer.
bool sched_make_subgraphs(struct ggml_backend_sched *sched, struct ggml_cgraph *graph);
// The same for a graph that repeats the last one, in the order of that; false, and nothing was
// changed, when memory runs out.
bool sched_repeat_subgraphs(struct ggml_backend_sched *sched, struct ggml_cgraph *graph);
// The order that the last graph had before devices changed it.
void sched_restore_order(struct ggml_backend_sched *sched, struct ggml_cgraph *graph);
// All of these passes. On failure the graph is as it was.
bool sched_split(struct ggml_backend_sched *sched, struct ggml_cgraph *graph);
// The same, for a graph that may have been split before.
bool sched_split_fresh(struct ggml_backend_sched *sched, struct ggml_cgraph *graph);
// Makes the last graph what it was before it was split: own sources and order, no memory. It must
// be alive.
void sched_restore(struct ggml_backend_sched *sched, struct ggml_cgraph *graph);

// Asks the device about a tensor that computes something and is not in error.
static inline bool sched_ask(const struct ggml_backend_sched *sched,
                             const struct ggml_tensor *tensor, int32_t backend) {
    const ggml_backend_dev_t device = sched->streams[backend].device;
    const int minor = sched->streams[backend].contract_minor;
    if (minor < GGML_CONTRACT_MINOR && op_needs_minor(tensor) > minor) return false;
    return device->table->supports_op ? device->table->supports_op(device, tensor)
                                      : ggml_backend_dev_supports_op(device, tensor);
}

// Asks once per node and stream.
bool sched_supports(struct ggml_backend_sched *sched, int32_t node, int32_t backend);

// Gives the split graph memory.
bool sched_allocate(struct ggml_backend_sched *sched);
// Plans it and makes the buffers large enough, or only tells their sizes.
bool sched_reserve_buffers(struct ggml_backend_sched *sched);
bool sched_measure(struct ggml_backend_sched *sched, size_t *out_sizes);

// Live ranges and takeovers; false with a message.
bool sched_find_liveness(const struct ggml_backend_sched *sched, struct sched_liveness *out);
void sched_liveness_free(struct sched_liveness *live);
// Plans the memory of the split graph by its live ranges. If for_use, a plan that fits into the
// buffers is good enough. *out_fits: whether the buffers are as large as planned. false with a
// message.
bool sched_plan(struct ggml_backend_sched *sched, bool for_use, bool *out_fits);
// Bytes of the pool's chunks as they were planned last.
const size_t *sched_planned_chunks(const struct ggml_backend_sched *sched, int pool,
                                   int32_t *out_count);
// Makes the buffers as large as planned, and remembers the plan; false with a message.
bool sched_grow_buffers(struct ggml_backend_sched *sched);
// Gives all tensors their places. On failure none has one.
enum plan_result sched_bind(struct ggml_backend_sched *sched);
// The same for one value, and for the copies, after sched_reset_buffers().
enum plan_result sched_bind_value(const struct ggml_backend_sched *sched, int32_t number);
enum plan_result sched_bind_copies(const struct ggml_backend_sched *sched);
bool sched_reset_buffers(struct ggml_backend_sched *sched);
// Item of a tensor of the last graph, or -1; copies have numbers from n_values.
int32_t sched_find_value(struct ggml_backend_sched *sched, const struct ggml_tensor *tensor);

// Waits for a stream, or for all.
void sched_wait(struct ggml_backend_sched *sched, int32_t backend);
void sched_wait_all(struct ggml_backend_sched *sched);
// Waits for an event that the stream recorded.
void sched_wait_event(struct ggml_backend_sched *sched, int32_t backend,
                      ggml_backend_event_t event);
// Takes the next frame, when nothing looks at it any more.
void sched_next_frame(struct ggml_backend_sched *sched);

// Runs the splits of the allocated graph.
enum ggml_status sched_run(struct ggml_backend_sched *sched, struct ggml_cgraph *graph);

// Expert-only copies: see expert.c. `known` is kept from one copy to the next of a run.
struct sched_experts {
    int32_t ids;   // value that `used` was read from, or -1
    int64_t count; // of experts
    uint8_t *used; // by expert
    int64_t used_capacity;
};
// Whether the input is a weight in host memory.
bool sched_is_host_weight(const struct ggml_backend_sched *sched, int32_t copy);
// Whether only some experts of the input have to be copied.
bool sched_is_expert_copy(const struct ggml_backend_sched *sched, int32_t copy);
// Queues the copy of the experts that are used; false with a message.
bool sched_copy_experts(struct ggml_backend_sched *sched, int32_t copy,
                        struct sched_experts *known);

// Logs the splits if GGML_SCHED_DEBUG says so.
void sched_log(const struct ggml_backend_sched *sched, const struct ggml_cgraph *graph);

#endif
