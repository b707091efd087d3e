// SPDX-License-Identifier: MIT
// Placement by beam search: dynamic programming over the nodes in order. The state before a node is
// the stream of every result that is still to be read, and the streams that hold a copy which is
// still to be read. Of all partial placements with the same state only the cheapest is kept
// (exact); if there are more states than the beam is wide, the cheapest of them (a heuristic).
#include "sched/cost/cost.h"

enum {
    MOST_STATES = 1024,
    FEWEST_STATES = 4,
    CANDIDATE_BUDGET = 1 << 20, // over all nodes
    WORD_BUDGET = 1 << 26,      // words of states that are copied over all nodes
};

// A partial placement, up to some node. Two states with the same key have the same future.
struct state {
    uint64_t key;
    double seconds;
    double peak;    // bytes held on `stream` since its split began
    int32_t stream; // of the last node
};

// A state that may follow, before the best of all are kept.
struct candidate {
    struct state next;
    int32_t parent;
};

// How the state of a step came about: enough to walk back from the last one.
struct choice {
    int32_t parent;
    int32_t stream;
};

struct beam {
    struct cost_memory memory; // of the arrays
    const struct cost_model *model;
    const int32_t *forced; // [root]: placement to follow, or NULL
    bool limited;
    int32_t width;            // most states
    int32_t n_slots;          // values that states remember
    int32_t words;            // of a set of streams
    size_t stride;            // words of a state: per slot its stream, and the streams with copies
    int32_t n_steps;          // nodes that compute
    int32_t *slot_of;         // [value] or -1
    int32_t *first_unread;    // [node]: first value that it is the last to read, or -1
    int32_t *first_untouched; // [node]: first root whose memory it is the last to use, or -1
    int32_t *next_unread, *next_untouched; // [value]
    struct state *states, *next_states;
    uint64_t *slots, *next_slots;
    double *held, *next_held; // [state][stream]: bytes, with limits
    int32_t n_states;
    struct candidate *candidates;
    int32_t n_candidates;
    int32_t *table; // candidate by key, -1: none
    uint32_t table_mask;
    struct choice *choices; // [step][state]
};

// Hashes by Zobrist: the key of a state is the exclusive or of one number for each result with
// its stream, and for each copy, so that a step changes it by what it adds and forgets. Equal
// keys of different states are possible, and cost a placement that is not the best; nothing
// depends on it.
static uint64_t mix(int32_t value, int32_t stream, bool copy) {
    uint64_t x = ((uint64_t)(uint32_t)value << 20) ^ ((uint64_t)(uint32_t)stream << 1) ^ copy;
    x = (x + 0x9E3779B97F4A7C15u) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

// --- states

// The stream of the value, then the set of streams that hold a copy of it.
static uint64_t *slot(const struct beam *beam, uint64_t *slots, int32_t state, int32_t value) {
    const size_t size = 1 + (size_t)beam->words;
    return &slots[(size_t)state * beam->stride + (size_t)beam->slot_of[value] * size];
}

// Bit b of a set of streams.
static bool in_set(const uint64_t *set, int32_t b) {
    return (set[b / 64] >> (b % 64)) & 1u;
}

// Whether the search decides where the root is computed.
static bool is_free(const struct beam *beam, int32_t root) {
    return root < beam->model->graph->n_nodes && beam->model->kinds[root] == COST_FREE;
}

// Where the value lies: with its root, in this state if that is for the search to decide.
static int32_t stream_of(const struct beam *beam, int32_t state, int32_t value) {
    const int32_t root = beam->model->graph->values[value].root;
    if (!is_free(beam, root)) return beam->model->usual[root];
    return (int32_t)*slot(beam, beam->slots, state, root);
}

// A value that a node reads, as a state has it.
struct source {
    int32_t value;
    int32_t from;           // stream where it lies
    const uint64_t *copies; // set of streams that have one; NULL: it is not remembered
};

// Each source of the node once; returns how many there are.
static int32_t list_sources(const struct beam *beam, int32_t state, int32_t node,
                            struct source *out_sources) {
    const struct sched_graph *graph = beam->model->graph;
    int32_t n = 0;
    for (int32_t e = graph->first_edge[node]; e < graph->first_edge[node + 1]; ++e) {
        const int32_t value = graph->edges[e].value;
        if (!cost_is_first_edge(graph, node, e)) continue;
        out_sources[n++] = (struct source){
            .value = value,
            .from = stream_of(beam, state, value),
            .copies = beam->slot_of[value] < 0 ? NULL : slot(beam, beam->slots, state, value) + 1,
        };
    }
    return n;
}

// Whether a node on b needs a copy of the source that the state lacks.
static bool needs_copy(const struct beam *beam, const struct source *source, int32_t b) {
    return !cost_reaches(beam->model, source->value, source->from, b) &&
           !(source->copies && in_set(source->copies, b));
}

// Pipeline copies exist several times and for ever.
static double copy_bytes(const struct beam *beam, int32_t value) {
    return beam->model->bytes[value] * beam->model->setup->pipeline_depth;
}

// Whether its memory is never given back while the graph is computed.
static bool is_kept(const struct beam *beam, int32_t root) {
    const struct sched_value *value = &beam->model->graph->values[root];
    return (value->traits & SCHED_HAS_MEMORY) || root >= beam->model->graph->n_nodes ||
           (value->tensor->flags & GGML_TENSOR_FLAG_OUTPUT) != 0;
}

// Views, and what has its memory from the application, take none.
static double result_bytes(const struct beam *beam, int32_t node) {
    const struct sched_value *value = &beam->model->graph->values[node];
    if (value->root != node || (value->traits & SCHED_HAS_MEMORY)) return 0;
    return beam->model->bytes[node];
}

// --- from one node to the next

// What is forgotten of the state once the node is done.
static uint64_t forgotten(const struct beam *beam, int32_t state, int32_t node) {
    uint64_t key = 0;
    for (int32_t i = beam->first_unread[node]; i >= 0; i = beam->next_unread[i]) {
        if (beam->slot_of[i] < 0) continue;
        const uint64_t *copies = slot(beam, beam->slots, state, i) + 1;
        for (int32_t b = 0; b < beam->model->n_streams; ++b) {
            if (in_set(copies, b)) key ^= mix(i, b, true);
        }
    }
    for (int32_t i = beam->first_untouched[node]; i >= 0; i = beam->next_untouched[i]) {
        if (i != node && is_free(beam, i)) key ^= mix(i, stream_of(beam, state, i), false);
    }
    return key;
}

// Most bytes that stream b holds in the split to which the node would belong.
static double peak_after(const struct beam *beam, int32_t state, int32_t node, int32_t b,
                         double copied) {
    const struct state *before = &beam->states[state];
    const double held =
        beam->held[(int64_t)state * beam->model->n_streams + b] + copied + result_bytes(beam, node);
    // Copies are made when the split begins.
    const double earlier = before->stream == b ? before->peak + copied : 0;
    return MAX(held, earlier);
}

// A limit of 0 is none.
static bool exceeds(const struct beam *beam, int32_t b, double bytes) {
    const double limit = (double)beam->model->figures[b].memory_bytes;
    return limit > 0 && bytes > limit;
}

// Open addressing with linear probing; the table is never more than half full. Of two with the
// same key the cheaper stays.
static void enter_candidate(struct beam *beam, const struct candidate *candidate) {
    uint32_t place = (uint32_t)(candidate->next.key >> 7) & beam->table_mask;
    while (beam->table[place] >= 0) {
        struct candidate *other = &beam->candidates[beam->table[place]];
        if (other->next.key == candidate->next.key) {
            if (candidate->next.seconds < other->next.seconds) *other = *candidate;
            return;
        }
        place = (place + 1) & beam->table_mask;
    }
    beam->table[place] = beam->n_candidates;
    beam->candidates[beam->n_candidates++] = *candidate;
}

// Adds the candidate that computes the node on stream b: what the node takes there, and the
// copies that it needs of its n sources. One that would exceed the stream's memory is dropped.
static void try_stream(struct beam *beam, int32_t state, int32_t node, int32_t b, uint64_t forget,
                       const struct source *sources, int32_t n) {
    const struct cost_model *model = beam->model;
    struct state next = {.key = beam->states[state].key ^ forget,
                         .seconds = beam->states[state].seconds + cost_of_node(model, node, b),
                         .stream = b};
    double copied = 0;
    for (int32_t i = 0; i < n; ++i) {
        const int32_t value = sources[i].value;
        if (!needs_copy(beam, &sources[i], b)) continue;
        next.seconds += cost_of_copy(model, value, sources[i].from, b);
        copied += copy_bytes(beam, value);
        if (model->last_read[value] != node) next.key ^= mix(value, b, true);
    }
    if (is_free(beam, node) && model->last_touch[node] != node) next.key ^= mix(node, b, false);
    if (beam->limited) next.peak = peak_after(beam, state, node, b, copied);
    if (beam->limited && exceeds(beam, b, next.peak)) return;
    enter_candidate(beam, &(struct candidate){next, state});
}

// The stream that a node runs on in a state, or -1: the search decides. A placement that is given
// (`forced`) leaves one: so the same code predicts what a placement costs.
static int32_t only_stream(const struct beam *beam, int32_t state, int32_t node) {
    switch ((enum cost_kind)beam->model->kinds[node]) {
    case COST_FREE: return beam->forced ? beam->forced[node] : -1;
    case COST_FOLLOWS: return stream_of(beam, state, node);
    default: return beam->model->usual[node];
    }
}

// Candidates for all states of the step before. O(states * streams * sources).
static void expand(struct beam *beam, int32_t node) {
    struct source sources[GGML_MAX_SRC];
    memset(beam->table, 0xFF, ((size_t)beam->table_mask + 1) * sizeof(beam->table[0]));
    beam->n_candidates = 0;
    for (int32_t s = 0; s < beam->n_states; ++s) {
        const int32_t n = list_sources(beam, s, node, sources);
        const int32_t only = only_stream(beam, s, node);
        const uint64_t forget = forgotten(beam, s, node);
        const int32_t end = only >= 0 ? only + 1 : beam->model->n_streams;
        for (int32_t b = MAX(only, 0); b < end; ++b) {
            if (only >= 0 || cost_of_node(beam->model, node, b) >= 0)
                try_stream(beam, s, node, b, forget, sources, n);
        }
    }
}

// --- keeping the best

// The `n` cheapest come first.
// Quickselect, O(count) on average: the order among the cheapest doesn't matter.
static void select_cheapest(struct candidate *candidates, int32_t count, int32_t n) {
    int32_t low = 0, high = count - 1;
    while (low < high) {
        const double pivot = candidates[low + (high - low) / 2].next.seconds;
        int32_t i = low, k = high;
        while (i <= k) {
            while (candidates[i].next.seconds < pivot)
                ++i;
            while (candidates[k].next.seconds > pivot)
                --k;
            if (i > k) break;
            const struct candidate swap = candidates[i];
            candidates[i++] = candidates[k];
            candidates[k--] = swap;
        }
        if (n <= k) {
            high = k;
        } else if (n >= i) {
            low = i;
        } else {
            return;
        }
    }
}

// Bytes are counted only where there are limits.
static void add_held(struct beam *beam, int32_t state, int32_t b, double bytes) {
    if (beam->limited) beam->next_held[(int64_t)state * beam->model->n_streams + b] += bytes;
}

// Notes in the next state the copies that the candidate makes for the node.
static void make_copies(struct beam *beam, int32_t state, const struct candidate *from,
                        int32_t node) {
    struct source sources[GGML_MAX_SRC];
    const int32_t n = list_sources(beam, from->parent, node, sources);
    for (int32_t i = 0; i < n; ++i) {
        const int32_t value = sources[i].value;
        if (!needs_copy(beam, &sources[i], from->next.stream)) continue;
        const bool passing = !sources[i].copies && beam->model->setup->pipeline_depth == 1;
        if (!passing) add_held(beam, state, from->next.stream, copy_bytes(beam, value));
        if (!sources[i].copies) continue;
        slot(beam, beam->next_slots, state, value)[1 + from->next.stream / 64] |=
            (uint64_t)1 << (from->next.stream % 64);
    }
}

// Nobody reads these values any more: their copies' memory is free, but for pipeline copies,
// which stay.
static void forget_copies(struct beam *beam, int32_t state, int32_t node) {
    for (int32_t i = beam->first_unread[node]; i >= 0; i = beam->next_unread[i]) {
        if (beam->slot_of[i] < 0) continue;
        uint64_t *copies = slot(beam, beam->next_slots, state, i) + 1;
        for (int32_t b = 0; b < beam->model->n_streams && beam->limited; ++b) {
            if (!in_set(copies, b) || beam->model->setup->pipeline_depth > 1) continue;
            add_held(beam, state, b, -copy_bytes(beam, i));
        }
        memset(copies, 0, (size_t)beam->words * sizeof(copies[0]));
    }
}

// Likewise for results that the node was the last to use.
static void forget_results(struct beam *beam, int32_t state, const struct candidate *from,
                           int32_t node) {
    for (int32_t i = beam->first_untouched[node]; i >= 0; i = beam->next_untouched[i]) {
        const int32_t b = i == node ? from->next.stream : stream_of(beam, from->parent, i);
        if (i != node && !is_kept(beam, i)) add_held(beam, state, b, -beam->model->bytes[i]);
        if (beam->slot_of[i] >= 0) *slot(beam, beam->next_slots, state, i) = 0;
    }
}

// The state that the candidate leads to.
static void follow(struct beam *beam, int32_t state, const struct candidate *from, int32_t node) {
    const size_t n = (size_t)beam->model->n_streams;
    beam->next_states[state] = from->next;
    memcpy(&beam->next_slots[(size_t)state * beam->stride],
           &beam->slots[(size_t)from->parent * beam->stride],
           beam->stride * sizeof(beam->slots[0]));
    if (beam->limited) {
        memcpy(&beam->next_held[(size_t)state * n], &beam->held[(size_t)from->parent * n],
               n * sizeof(beam->held[0]));
    }
    add_held(beam, state, from->next.stream, result_bytes(beam, node));
    make_copies(beam, state, from, node);
    forget_copies(beam, state, node);
    if (is_free(beam, node) && beam->slot_of[node] >= 0) {
        *slot(beam, beam->next_slots, state, node) = (uint64_t)from->next.stream;
    }
    forget_results(beam, state, from, node);
}

// Makes states of the cheapest candidates and notes how each came about; the two sets of states
// change places.
static void keep_best(struct beam *beam, int32_t node, int32_t step) {
    const int32_t n = MIN(beam->n_candidates, beam->width);
    struct choice *choices = beam->choices + (int64_t)step * beam->width;
    if (beam->n_candidates > n) select_cheapest(beam->candidates, beam->n_candidates, n);
    for (int32_t s = 0; s < n; ++s) {
        const struct candidate *candidate = &beam->candidates[s];
        follow(beam, s, candidate, node);
        choices[s] = (struct choice){candidate->parent, candidate->next.stream};
    }
    struct state *states = beam->states;
    uint64_t *slots = beam->slots;
    double *held = beam->held;
    beam->states = beam->next_states;
    beam->slots = beam->next_slots;
    beam->held = beam->next_held;
    beam->next_states = states;
    beam->next_slots = slots;
    beam->next_held = held;
    beam->n_states = n;
}

// --- setting up

// A result that the search places and that is used later, for its stream; of all others those that
// several nodes read, for their copies.
static bool is_remembered(const struct beam *beam, int32_t value) {
    const struct cost_model *model = beam->model;
    if (is_free(beam, value) && model->last_touch[value] > value) return true;
    return model->n_readers[value] > 1;
}

// Lists by node, linked through the values: what ends at each.
static void list_ends(struct beam *beam) {
    const struct cost_model *model = beam->model;
    for (int32_t i = 0; i <= model->graph->n_values; ++i) {
        beam->first_unread[i] = beam->first_untouched[i] = -1;
    }
    for (int32_t i = 0; i < model->graph->n_values; ++i) {
        const int32_t read = model->last_read[i];
        const int32_t touched = model->last_touch[i];
        if (read >= 0) {
            beam->next_unread[i] = beam->first_unread[read];
            beam->first_unread[read] = i;
        }
        if (touched >= 0) {
            beam->next_untouched[i] = beam->first_untouched[touched];
            beam->first_untouched[touched] = i;
        }
    }
}

// A value has its slot from the first node that makes or reads it to the last that does.
static void give_slot(struct beam *beam, int32_t value, int32_t *free_slots, int32_t *n_free) {
    if (beam->slot_of[value] >= 0 || !is_remembered(beam, value)) return;
    beam->slot_of[value] = *n_free > 0 ? free_slots[--*n_free] : beam->n_slots++;
}

// Of the value itself and, where its place is for the search to decide, of its memory.
static int32_t last_use(const struct beam *beam, int32_t value) {
    const int32_t read = beam->model->last_read[value];
    const int32_t touch = is_free(beam, value) ? beam->model->last_touch[value] : -1;
    return MAX(read, touch);
}

// Frees the slots of values whose last use this node is, for later ones: states stay short.
static void take_slots(const struct beam *beam, int32_t node, int32_t *free_slots,
                       int32_t *n_free) {
    for (int32_t i = beam->first_unread[node]; i >= 0; i = beam->next_unread[i]) {
        if (beam->slot_of[i] >= 0 && last_use(beam, i) == node) {
            free_slots[(*n_free)++] = beam->slot_of[i];
        }
    }
    for (int32_t i = beam->first_untouched[node]; i >= 0; i = beam->next_untouched[i]) {
        if (beam->slot_of[i] >= 0 && is_free(beam, i) && beam->model->last_read[i] != node) {
            free_slots[(*n_free)++] = beam->slot_of[i];
        }
    }
}

// A register allocation of its own: as many slots as values are alive at once. False: no memory.
static bool assign_slots(struct beam *beam) {
    const struct sched_graph *graph = beam->model->graph;
    int32_t n_free = 0;
    int32_t *free_slots =
        cost_take(&beam->memory, (size_t)graph->n_values + 1, sizeof(free_slots[0]));
    for (int32_t i = 0; i < graph->n_values; ++i) {
        beam->slot_of[i] = -1;
    }
    for (int32_t i = 0; i < graph->n_nodes && free_slots; ++i) {
        if (beam->model->kinds[i] == COST_SKIPPED) continue;
        beam->n_steps++;
        give_slot(beam, i, free_slots, &n_free);
        for (int32_t e = graph->first_edge[i]; e < graph->first_edge[i + 1]; ++e) {
            give_slot(beam, graph->edges[e].value, free_slots, &n_free);
        }
        take_slots(beam, i, free_slots, &n_free);
    }
    beam->words = (beam->model->n_streams + 63) / 64;
    beam->stride = (size_t)beam->n_slots * (1 + (size_t)beam->words) + 1;
    return free_slots != NULL;
}

// The beam is as wide as the budgets allow, so that a search takes about as long for any graph:
// wide for small ones, narrow for large ones.
static int32_t width_of(const struct beam *beam) {
    if (beam->forced) return 1;
    const size_t steps = (size_t)beam->n_steps + 1;
    const size_t choices = (size_t)beam->model->n_streams;
    const size_t by_budget = CANDIDATE_BUDGET / steps / choices;
    const size_t by_words = WORD_BUDGET / steps / beam->stride;
    const size_t wanted = MIN(MAX(by_budget, FEWEST_STATES), MOST_STATES);
    return (int32_t)MAX(MIN(wanted, by_words), 1);
}

static void make_states(struct beam *beam, struct state **out_states, uint64_t **out_slots,
                        double **out_held) {
    const size_t width = (size_t)beam->width, n = (size_t)beam->model->n_streams;
    *out_states = cost_take(&beam->memory, width, sizeof(beam->states[0]));
    *out_slots = cost_take(&beam->memory, width, beam->stride * sizeof(beam->slots[0]));
    *out_held = cost_take(&beam->memory, width, n * sizeof(beam->held[0]));
}

static void make_candidates(struct beam *beam) {
    const size_t width = (size_t)beam->width, steps = (size_t)beam->n_steps + 1;
    const size_t most = width * (size_t)beam->model->n_streams;
    size_t table = 4;
    while (table < 2 * most)
        table *= 2;
    beam->table_mask = (uint32_t)table - 1;
    beam->candidates = cost_take(&beam->memory, most, sizeof(beam->candidates[0]));
    beam->table = cost_take(&beam->memory, table, sizeof(beam->table[0]));
    beam->choices = cost_take(&beam->memory, steps, width * sizeof(beam->choices[0]));
}

static bool beam_init(struct beam *beam) {
    const size_t values = (size_t)beam->model->graph->n_values + 1;
    int32_t **const lists[] = {&beam->slot_of, &beam->first_unread, &beam->first_untouched,
                               &beam->next_unread, &beam->next_untouched};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); ++i) {
        *lists[i] = cost_take(&beam->memory, values, sizeof(int32_t));
    }
    if (beam->memory.failed) return false;
    list_ends(beam);
    if (!assign_slots(beam)) return false;
    beam->width = width_of(beam);
    make_states(beam, &beam->states, &beam->slots, &beam->held);
    make_states(beam, &beam->next_states, &beam->next_slots, &beam->next_held);
    make_candidates(beam);
    if (beam->memory.failed) return false;
    memcpy(beam->held, beam->model->held, (size_t)beam->model->n_streams * sizeof(beam->held[0]));
    beam->n_states = 1;
    beam->states[0].stream = -1;
    return true;
}

// Stops where no state is left: then nothing fits the limits.
static void run(struct beam *beam) {
    const struct sched_graph *graph = beam->model->graph;
    int32_t step = 0;
    for (int32_t i = 0; i < graph->n_nodes && beam->n_states > 0; ++i) {
        if (beam->model->kinds[i] == COST_SKIPPED) continue;
        expand(beam, i);
        keep_best(beam, i, step++);
    }
}

// There is at least one state.
static int32_t cheapest_state(const struct beam *beam) {
    int32_t state = 0;
    for (int32_t s = 1; s < beam->n_states; ++s) {
        if (beam->states[s].seconds < beam->states[state].seconds) state = s;
    }
    return state;
}

// From a last state to the first node.
static void trace_back(const struct beam *beam, int32_t state, int32_t *place) {
    const struct sched_graph *graph = beam->model->graph;
    int32_t step = beam->n_steps;
    for (int32_t i = graph->n_nodes - 1; i >= 0; --i) {
        if (beam->model->kinds[i] == COST_SKIPPED) continue;
        const struct choice *choice = &beam->choices[(int64_t)--step * beam->width + state];
        if (beam->model->kinds[i] == COST_FREE) place[i] = choice->stream;
        state = choice->parent;
    }
}

// With `forced` predicts that placement; else looks for the best one, which is written to `place`.
// false when memory runs out.
static bool search(const struct cost_model *model, const int32_t *forced, bool limited,
                   int32_t *place, struct cost_result *out_result) {
    struct beam beam = {.model = model, .limited = limited, .forced = forced};
    *out_result = (struct cost_result){0};
    const bool done = beam_init(&beam);
    if (done) run(&beam);
    if (done && beam.n_states > 0) {
        const int32_t best = cheapest_state(&beam);
        *out_result = (struct cost_result){beam.states[best].seconds, true};
        if (place) trace_back(&beam, best, place);
    }
    arena_free(&beam.memory.arena);
    return done;
}

bool cost_beam(const struct cost_model *model, int32_t *place, struct cost_result *out_result) {
    memcpy(place, model->usual, (size_t)model->graph->n_values * sizeof(place[0]));
    return search(model, NULL, model->limited, place, out_result);
}

// A placement that exceeds the limits is predicted without them.
bool cost_walk(const struct cost_model *model, const int32_t *place,
               struct cost_result *out_result) {
    if (!search(model, place, model->limited, NULL, out_result)) return false;
    if (out_result->fits) return true;
    const bool done = search(model, place, false, NULL, out_result);
    out_result->fits = false;
    return done;
}
