// SPDX-License-Identifier: MIT
// First fit in execution order. Free ranges are kept in a treap ordered by address; every node has
// the largest free range below it, so that the lowest one that fits is found in O(log n).
#include "alloc/memory_plan.h"
#include "base/mem.h"

enum { NIL = -1 };

struct hole {
    size_t offset;
    size_t size;
    size_t largest; // in this subtree
    int32_t chunk;
    int32_t left;
    int32_t right;
    uint32_t priority;
};

struct holes {
    struct hole *nodes;
    int32_t *unused; // stack of free node numbers
    int32_t n_unused;
    int32_t root;
    uint32_t seed;
};

static bool is_below(const struct hole *hole, int32_t chunk, size_t offset) {
    return hole->chunk < chunk || (hole->chunk == chunk && hole->offset < offset);
}

static size_t largest(const struct holes *holes, int32_t i) {
    return i == NIL ? 0 : holes->nodes[i].largest;
}

static void update(struct holes *holes, int32_t i) {
    struct hole *hole = &holes->nodes[i];
    const size_t left = largest(holes, hole->left), right = largest(holes, hole->right);
    const size_t below = left > right ? left : right;
    hole->largest = hole->size > below ? hole->size : below;
}

// Parts below and not below the address. Recursion is as deep as the treap: O(log n).
static void split(struct holes *holes, int32_t i, int32_t chunk, size_t offset, int32_t *out_low,
                  int32_t *out_high) {
    *out_low = *out_high = NIL;
    if (i == NIL) return;
    struct hole *hole = &holes->nodes[i];
    if (is_below(hole, chunk, offset)) {
        split(holes, hole->right, chunk, offset, &hole->right, out_high);
        *out_low = i;
    } else {
        split(holes, hole->left, chunk, offset, out_low, &hole->left);
        *out_high = i;
    }
    update(holes, i);
}

static int32_t join(struct holes *holes, int32_t low, int32_t high) {
    if (low == NIL) return high;
    if (high == NIL) return low;
    struct hole *a = &holes->nodes[low], *b = &holes->nodes[high];
    if (a->priority > b->priority) {
        a->right = join(holes, a->right, high);
        update(holes, low);
        return low;
    }
    b->left = join(holes, low, b->left);
    update(holes, high);
    return high;
}

static void insert(struct holes *holes, int32_t chunk, size_t offset, size_t size) {
    if (size == 0) return;
    const int32_t i = holes->unused[--holes->n_unused];
    int32_t low, high;
    holes->seed = holes->seed * 1664525u + 1013904223u;
    holes->nodes[i] = (struct hole){
        .offset = offset,
        .size = size,
        .largest = size,
        .chunk = chunk,
        .left = NIL,
        .right = NIL,
        .priority = holes->seed,
    };
    split(holes, holes->root, chunk, offset, &low, &high);
    holes->root = join(holes, join(holes, low, i), high);
}

static struct hole take_out(struct holes *holes, int32_t i) {
    const struct hole hole = holes->nodes[i];
    int32_t low, middle, high;
    split(holes, holes->root, hole.chunk, hole.offset, &low, &middle);
    split(holes, middle, hole.chunk, hole.offset + 1, &middle, &high);
    holes->root = join(holes, low, high);
    holes->unused[holes->n_unused++] = i;
    return hole;
}

// The lowest hole of at least `size` bytes.
static int32_t lowest_fit(const struct holes *holes, size_t size) {
    int32_t i = holes->root;
    if (largest(holes, i) < size) return NIL;
    for (;;) {
        const struct hole *hole = &holes->nodes[i];
        if (largest(holes, hole->left) >= size) {
            i = hole->left;
        } else if (hole->size >= size) {
            return i;
        } else {
            i = hole->right;
        }
    }
}

// The hole that ends at an address of a chunk, and the one that begins there.
static int32_t ending_at(const struct holes *holes, int32_t chunk, size_t offset) {
    int32_t found = NIL;
    for (int32_t i = holes->root; i != NIL;) {
        const bool below = is_below(&holes->nodes[i], chunk, offset);
        if (below) found = i;
        i = below ? holes->nodes[i].right : holes->nodes[i].left;
    }
    if (found == NIL || holes->nodes[found].chunk != chunk) return NIL;
    return holes->nodes[found].offset + holes->nodes[found].size == offset ? found : NIL;
}

static int32_t beginning_at(const struct holes *holes, int32_t chunk, size_t offset) {
    int32_t i = holes->root;
    while (i != NIL && (holes->nodes[i].chunk != chunk || holes->nodes[i].offset != offset)) {
        i = is_below(&holes->nodes[i], chunk, offset) ? holes->nodes[i].right
                                                      : holes->nodes[i].left;
    }
    return i;
}

static void release(struct holes *holes, const struct memory_block *block) {
    size_t offset = block->offset, size = block->size;
    if (size == 0) return;
    const int32_t after = beginning_at(holes, block->chunk, offset + size);
    if (after != NIL) size += take_out(holes, after).size;
    const int32_t before = ending_at(holes, block->chunk, offset);
    if (before != NIL) {
        const struct hole hole = take_out(holes, before);
        offset = hole.offset;
        size += hole.size;
    }
    insert(holes, block->chunk, offset, size);
}

static bool place(struct holes *holes, struct memory_block *block, size_t chunk_limit,
                  struct memory_chunks *chunks) {
    int32_t i = block->size > 0 ? lowest_fit(holes, block->size) : NIL;
    if (i == NIL && (block->size > 0 || chunks->count == 0)) {
        if (!memory_chunks_add(chunks, block->size, chunk_limit)) return false;
        insert(holes, chunks->count - 1, 0, chunks->limits[chunks->count - 1]);
        i = block->size > 0 ? lowest_fit(holes, block->size) : NIL;
    }
    if (i == NIL) { // nothing to store
        memory_block_place(block, chunks, 0, 0);
        return true;
    }
    const struct hole hole = take_out(holes, i);
    memory_block_place(block, chunks, hole.chunk, hole.offset);
    insert(holes, hole.chunk, hole.offset + block->size, hole.size - block->size);
    return true;
}

static bool is_earlier(const struct memory_block *a, const struct memory_block *b) {
    if (a->first != b->first) return a->first < b->first;
    if (a->last != b->last) return a->last > b->last; // the bottom is for those that stay
    return a->size > b->size;
}

static bool ends_before(const struct memory_block *a, const struct memory_block *b) {
    return a->last < b->last;
}

bool memory_plan_by_time(struct memory_block *blocks, int32_t n, size_t chunk_limit,
                         struct memory_chunks *out_chunks) {
    // Each block leaves at most one hole behind and each new chunk, at most one per block, adds
    // another.
    const size_t capacity = 2 * (size_t)n + 2;
    struct holes holes = {.root = NIL, .seed = 1};
    holes.nodes = ggml_mem_alloc(capacity * sizeof(holes.nodes[0]));
    holes.unused = ggml_mem_alloc(capacity * sizeof(holes.unused[0]));
    int32_t *starts = memory_blocks_sorted(blocks, n, is_earlier);
    int32_t *ends = memory_blocks_sorted(blocks, n, ends_before);
    bool good = holes.nodes && holes.unused && starts && ends;
    while (good && holes.n_unused < (int32_t)capacity) {
        holes.unused[holes.n_unused] = holes.n_unused;
        ++holes.n_unused;
    }
    int32_t ended = 0;
    for (int32_t i = 0; i < n && good; ++i) {
        struct memory_block *block = &blocks[starts[i]];
        for (; blocks[ends[ended]].last < block->first; ++ended) {
            release(&holes, &blocks[ends[ended]]);
        }
        good = place(&holes, block, chunk_limit, out_chunks);
    }
    ggml_mem_free(starts);
    ggml_mem_free(ends);
    ggml_mem_free(holes.nodes);
    ggml_mem_free(holes.unused);
    return good;
}
