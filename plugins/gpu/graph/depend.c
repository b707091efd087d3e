// SPDX-License-Identifier: MIT
// Builds the graph of dependences in one walk over the nodes, as a compiler does for memory: reads
// wait for the last write (flow), writes for the last write (output) and for the reads since then
// (anti). Memory is told apart by the root of a view, and, where places are given already, by
// address ranges. Time: linear in nodes and sources, and n log n for the ranges; one block of
// memory for the result and one for the work.
#include "gpu/graph/depend.h"

#include <stdlib.h>
#include <string.h>

#include "gpu/base/nodes.h"

enum { NONE = -1 };

// A root with a place of its own.
struct range {
    uintptr_t begin, end;
    int32_t memory;
};

struct builder {
    struct gpu_depend *depend;
    const struct ggml_graph *graph;
    const struct ggml_tensor **tensors; // by number: nodes, then roots that are no nodes
    int n_tensors;
    int32_t *slots; // hash table: numbers plus one
    uint32_t mask;
    int32_t *uses;   // of each node by nodes of this graph
    int32_t *merged; // by memory: the one that stands for it
    struct range *ranges;
    int32_t *writer;      // by memory: the last, or NONE
    int32_t *reader;      // by memory: the latest read since then, or NONE
    int32_t *read_by;     // by read
    int32_t *read_before; // by read: the one before it of the same memory
    int n_reads;
    void *block;
    size_t block_bytes;
};

// Views of views are rare, but nothing forbids them.
static const struct ggml_tensor *root_of(const struct ggml_tensor *tensor) {
    while (tensor->view_src)
        tensor = tensor->view_src;
    return tensor;
}

// Pieces of one block; with base NULL only the size is counted.
static void *carve(char *base, size_t *used, size_t n, size_t element) {
    void *piece = base ? base + *used : NULL;
    *used += (n * element + 15) / 16 * 16;
    return piece;
}

struct counts {
    size_t n, touches, slots;
};

// Upper bounds: every source may be a memory of its own. The table is at most half full, so that
// linear probing stays short.
static struct counts count(const struct ggml_graph *graph) {
    struct counts counts = {.n = (size_t)graph->n_nodes, .slots = 64};
    for (int i = 0; i < graph->n_nodes; ++i) {
        counts.touches++;
        for (int s = 0; s < GGML_MAX_SRC; ++s)
            counts.touches += graph->nodes[i]->src[s] != NULL;
    }
    while (counts.slots < 2 * (counts.n + counts.touches))
        counts.slots *= 2;
    return counts;
}

static size_t lay_out_result(struct gpu_depend *d, char *base, const struct counts *c) {
    const size_t memories = c->n + c->touches;
    size_t used = 0;
    d->bytes = carve(base, &used, memories, sizeof(*d->bytes));
    d->n_touches = carve(base, &used, memories, sizeof(*d->n_touches));
    d->first_before = carve(base, &used, c->n + 1, sizeof(*d->first_before));
    // Of each source the node, the writer, and the reader that a writer waits for; of the node
    // itself the tensor that it is a view of, and the writer before it.
    d->before = carve(base, &used, 3 * c->touches, sizeof(*d->before));
    d->user = carve(base, &used, c->n, sizeof(*d->user));
    d->first_touched = carve(base, &used, c->n + 1, sizeof(*d->first_touched));
    d->touched = carve(base, &used, c->touches, sizeof(*d->touched));
    return used;
}

static size_t lay_out_builder(struct builder *b, char *base, const struct counts *c) {
    const size_t memories = c->n + c->touches;
    size_t used = 0;
    b->tensors = carve(base, &used, memories, sizeof(*b->tensors));
    b->ranges = carve(base, &used, memories, sizeof(*b->ranges));
    b->slots = carve(base, &used, c->slots, sizeof(*b->slots));
    b->uses = carve(base, &used, c->n, sizeof(*b->uses));
    b->merged = carve(base, &used, memories, sizeof(*b->merged));
    b->writer = carve(base, &used, memories, sizeof(*b->writer));
    b->reader = carve(base, &used, memories, sizeof(*b->reader));
    b->read_by = carve(base, &used, c->touches, sizeof(*b->read_by));
    b->read_before = carve(base, &used, c->touches, sizeof(*b->read_before));
    return used;
}

static bool make_room(struct builder *b) {
    const struct counts c = count(b->graph);
    struct gpu_depend *d = b->depend;
    if (c.n + c.touches > INT32_MAX / 4) return false;
    d->block_bytes = lay_out_result(d, NULL, &c);
    b->block_bytes = lay_out_builder(b, NULL, &c);
    d->block = ggml_aligned_malloc(d->block_bytes);
    b->block = ggml_aligned_malloc(b->block_bytes);
    if (!d->block || !b->block) return false;
    lay_out_result(d, d->block, &c);
    lay_out_builder(b, b->block, &c);
    memset(b->slots, 0, c.slots * sizeof(*b->slots));
    b->mask = (uint32_t)c.slots - 1;
    return true;
}

// --- numbers

// Fibonacci hashing of the address, linear probing; an empty slot is where it would go. The upper
// half of the product is taken: the lower bits of an address are alike for all tensors.
static int32_t *find(const struct builder *b, const struct ggml_tensor *tensor) {
    uint32_t i = (uint32_t)(((uint64_t)(uintptr_t)tensor * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
    while (b->slots[i & b->mask] && b->tensors[b->slots[i & b->mask] - 1] != tensor)
        ++i;
    return &b->slots[i & b->mask];
}

static int32_t number_of(struct builder *b, const struct ggml_tensor *tensor) {
    int32_t *slot = find(b, tensor);
    if (*slot == 0) {
        b->tensors[b->n_tensors++] = tensor;
        *slot = b->n_tensors;
    }
    return *slot - 1;
}

// Number of a node of the graph, or NONE.
static int32_t node_of(const struct builder *b, const struct ggml_tensor *tensor) {
    const int32_t number = *find(b, tensor) - 1;
    return number < b->depend->n ? number : NONE;
}

// Nodes come first, so that a number below n is a node. A node that comes twice has two places in
// the order, which nothing here could keep apart.
static bool number_nodes(struct builder *b) {
    for (int i = 0; i < b->graph->n_nodes; ++i) {
        if (number_of(b, b->graph->nodes[i]) != i) return false;
        b->depend->user[i] = NONE;
        b->uses[i] = 0;
    }
    return true;
}

static void note_use(struct builder *b, const struct ggml_tensor *source, int32_t by) {
    const int32_t node = node_of(b, source);
    if (node == NONE) return;
    b->uses[node]++;
    b->depend->user[node] = by;
}

static void number_memories(struct builder *b) {
    struct gpu_depend *d = b->depend;
    int32_t n = 0;
    for (int32_t i = 0; i < d->n; ++i) {
        const struct ggml_tensor *node = b->graph->nodes[i];
        d->first_touched[i] = n;
        d->touched[n++] = number_of(b, root_of(node));
        for (int s = 0; s < GGML_MAX_SRC; ++s) {
            if (!node->src[s]) continue;
            d->touched[n++] = number_of(b, root_of(node->src[s]));
            note_use(b, node->src[s], i);
        }
    }
    d->first_touched[d->n] = n;
    d->n_memories = b->n_tensors;
}

// --- memory that has its place already

static int by_address(const void *a, const void *b) {
    const struct range *left = a, *right = b;
    if (left->begin != right->begin) return left->begin < right->begin ? -1 : 1;
    return left->memory < right->memory ? -1 : left->memory > right->memory;
}

static bool writes(const struct ggml_tensor *node) {
    return !ggml_op_is_empty(node->op);
}

// Whether the node writes memory that has its place, be it that of a source.
static bool writes_place(const struct builder *b, int32_t i) {
    const struct gpu_depend *d = b->depend;
    const struct ggml_tensor *node = b->graph->nodes[i];
    if (!writes(node)) return false;
    bool found = b->tensors[d->touched[d->first_touched[i]]]->data != NULL;
    for (int s = 0; s < GGML_MAX_SRC && !found; ++s)
        found = node->src[s] && gpu_writes_source(node, s) && root_of(node->src[s])->data;
    return found;
}

static bool writes_places(const struct builder *b) {
    bool found = false;
    for (int32_t i = 0; i < b->depend->n && !found; ++i)
        found = writes_place(b, i);
    return found;
}

// Tensors that are no views of each other may still overlap where other code gave them memory.
static void merge_memories(struct builder *b) {
    struct gpu_depend *d = b->depend;
    size_t n = 0;
    for (int32_t m = 0; m < d->n_memories; ++m)
        b->merged[m] = m;
    if (!writes_places(b)) return;
    for (int32_t m = 0; m < d->n_memories; ++m) {
        const uintptr_t begin = (uintptr_t)b->tensors[m]->data;
        if (begin && !b->tensors[m]->view_src)
            b->ranges[n++] = (struct range){begin, begin + ggml_nbytes(b->tensors[m]), m};
    }
    // Sweep over the ranges by their begin: one that begins before the end of the one before it
    // shares its memory. The end grows along, so that a long range covers all that lie in it.
    qsort(b->ranges, n, sizeof(*b->ranges), by_address);
    for (size_t i = 1; i < n; ++i) {
        struct range *before = &b->ranges[i - 1], *range = &b->ranges[i];
        if (range->begin >= before->end) continue;
        b->merged[range->memory] = b->merged[before->memory];
        range->end = MAX(range->end, before->end);
    }
    for (int32_t i = 0; i < d->first_touched[d->n]; ++i)
        d->touched[i] = b->merged[d->touched[i]];
}

// --- what comes before what

static void put(struct gpu_depend *d, int32_t *n, int32_t before, int32_t node) {
    if (before != NONE && before < node) d->before[(*n)++] = before;
}

static void put_read(struct builder *b, int32_t *n, int32_t memory, int32_t node) {
    put(b->depend, n, b->writer[memory], node);
    b->read_by[b->n_reads] = node;
    b->read_before[b->n_reads] = b->reader[memory];
    b->reader[memory] = b->n_reads++;
}

// Readers since the last write are a list through read_before: each is dropped by the next write,
// so that all writes together look at each read once.
static void put_write(struct builder *b, int32_t *n, int32_t memory, int32_t node) {
    put(b->depend, n, b->writer[memory], node);
    for (int32_t r = b->reader[memory]; r != NONE; r = b->read_before[r])
        put(b->depend, n, b->read_by[r], node);
    b->reader[memory] = NONE;
    b->writer[memory] = node;
}

// Of a source that the node writes too there are no more than three: the read is the node's own.
static void put_node(struct builder *b, int32_t *n, int32_t i) {
    struct gpu_depend *d = b->depend;
    const struct ggml_tensor *node = b->graph->nodes[i];
    if (node->view_src) put(d, n, node_of(b, node->view_src), i);
    for (int s = 0; s < GGML_MAX_SRC; ++s) {
        if (node->src[s]) put(d, n, node_of(b, node->src[s]), i);
    }
    if (!writes(node)) return; // nor does it read
    const int32_t *memory = &d->touched[d->first_touched[i]];
    for (int s = 0, t = 0; s < GGML_MAX_SRC; ++s) {
        if (!node->src[s]) continue;
        put_read(b, n, memory[++t], i);
        if (gpu_writes_source(node, s)) put_write(b, n, memory[t], i);
    }
    put_write(b, n, memory[0], i);
}

static void link_nodes(struct builder *b) {
    struct gpu_depend *d = b->depend;
    int32_t n = 0;
    for (int32_t m = 0; m < d->n_memories; ++m)
        b->writer[m] = b->reader[m] = NONE;
    for (int32_t i = 0; i < d->n; ++i) {
        d->first_before[i] = n;
        put_node(b, &n, i);
    }
    d->first_before[d->n] = n;
}

// --- how long memory is used

// Whether it is a result, or other graphs read it.
static bool is_kept(const struct builder *b, int32_t i) {
    const int32_t uses = b->graph->use_counts[i];
    const struct ggml_tensor *node = b->graph->nodes[i];
    return (node->flags & GGML_TENSOR_FLAG_OUTPUT) || uses > b->uses[i] ||
           (b->uses[i] == 0 && writes(node));
}

// Only what this graph makes, and what has no memory yet, counts for the peak: the rest is there
// whatever the order is.
static void measure(struct builder *b) {
    struct gpu_depend *d = b->depend;
    for (int32_t m = 0; m < d->n_memories; ++m) {
        const struct ggml_tensor *t = b->tensors[m];
        const bool is_made = m < d->n && writes(t) && !t->view_src && !t->data && !t->buffer;
        d->bytes[m] = is_made ? ggml_nbytes(t) : 0;
        d->n_touches[m] = 0;
    }
    for (int32_t i = 0; i < d->first_touched[d->n]; ++i)
        d->n_touches[d->touched[i]]++;
    for (int32_t i = 0; i < d->n; ++i) {
        if (is_kept(b, i)) d->n_touches[d->touched[d->first_touched[i]]] = NONE;
    }
}

bool gpu_depend_make(struct gpu_depend *out_depend, const struct ggml_graph *graph) {
    struct builder b = {.depend = out_depend, .graph = graph};
    *out_depend = (struct gpu_depend){.graph = graph, .n = graph->n_nodes};
    const bool made = make_room(&b) && number_nodes(&b);
    if (made) {
        number_memories(&b);
        merge_memories(&b);
        link_nodes(&b);
        measure(&b);
    }
    ggml_aligned_free(b.block, b.block_bytes);
    if (!made) gpu_depend_free(out_depend);
    return made;
}

void gpu_depend_free(struct gpu_depend *depend) {
    ggml_aligned_free(depend->block, depend->block_bytes);
    *depend = (struct gpu_depend){0};
}
