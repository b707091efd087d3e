// SPDX-License-Identifier: MIT
// Records by tensor address: open addressing with linear probing, at most half full. A tensor at
// the address of one that is gone takes over its record. Records of graphs' tensors go when the
// buffer is reset; in static memory, which seldom is, when the table would have to grow. Who owns
// static memory is in a list of its own, by addresses in that memory: weights outlive their
// tensors where a program goes on with copies of the structs.
#define _POSIX_C_SOURCE 200809L // recursive mutexes

#include <pthread.h>

#include "base/array.h"
#include "base/mem.h"
#include "meta/meta.h"

enum { FIRST_SLOTS = 64 };

// --- the lock ------------------------------------------------------------------------------------

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t mutex;
static int depth;        // how often the thread that has the mutex took it
static uint64_t section; // counts the times that it was free before

static void make_mutex(void) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

static void begin(void);

void meta_lock(void) {
    pthread_once(&once, begin);
    pthread_mutex_lock(&mutex);
    if (depth++ == 0) ++section;
}

void meta_unlock(void) {
    --depth;
    pthread_mutex_unlock(&mutex);
}

#ifndef _WIN32
// In the child the calling thread is another one, which can't release what its parent took. It has
// the lock still if the application's callback forked.
static void forked(void) {
    const int n = depth - 1;
    make_mutex();
    for (depth = 0; depth < n;)
        meta_lock();
}
#endif

// fork() waits until no other thread has the lock: records would be half made in the child, and
// the lock taken for ever.
static void begin(void) {
    make_mutex();
#ifndef _WIN32
    pthread_atfork(meta_lock, meta_unlock, forked);
#endif
}

// --- the table -----------------------------------------------------------------------------------

// Fibonacci hashing (Knuth, TAOCP 3, 6.4); the low four bits of addresses are equal.
static size_t home(const struct ggml_tensor *tensor, size_t n_slots) {
    const uint64_t key = (uint64_t)(uintptr_t)tensor >> 4;
    return (size_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 20) & (n_slots - 1);
}

// The slot of the tensor, or the free one where it belongs.
static size_t find(struct meta_record *const *slots, size_t n_slots,
                   const struct ggml_tensor *tensor) {
    size_t i = home(tensor, n_slots);
    while (slots[i] && slots[i]->tensor != tensor)
        i = (i + 1) & (n_slots - 1);
    return i;
}

// --- records -------------------------------------------------------------------------------------

static struct meta_identity identity_of(const struct ggml_tensor *tensor) {
    return (struct meta_identity){.op = tensor->op,
                                  .layout = meta_layout_of(tensor),
                                  .view_src = tensor->view_src,
                                  .data = meta_root(tensor)->data};
}

static bool is_same_layout(const struct meta_layout *a, const struct meta_layout *b) {
    return a->type == b->type && a->offset == b->offset &&
           memcmp(a->ne, b->ne, sizeof(a->ne)) == 0 && memcmp(a->nb, b->nb, sizeof(a->nb)) == 0;
}

static bool is_same(const struct meta_identity *a, const struct meta_identity *b) {
    return a->op == b->op && a->view_src == b->view_src && a->data == b->data &&
           is_same_layout(&a->layout, &b->layout);
}

// The state of a tensor of the meta device: a slice per device.
static struct meta_record *record_new(const struct ggml_tensor *tensor, size_t n) {
    struct meta_record *record = ggml_mem_calloc(1, sizeof(*record));
    struct ggml_tensor *slices = ggml_mem_calloc(n, sizeof(*slices));
    if (!record || !slices) {
        ggml_mem_free(slices);
        ggml_mem_free(record);
        return NULL;
    }
    record->tensor = tensor;
    record->slices = slices;
    record->n_refs = 1;
    return record;
}

void meta_record_ref(struct meta_record *record) {
    ++record->n_refs;
}

// Records outlive their table as long as a plan has them, since plans are freed after buffers too.
void meta_record_unref(struct meta_record *record) {
    if (!record || --record->n_refs > 0) return;
    for (int k = 0; k < GGML_MAX_SRC; ++k)
        ggml_mem_free(record->cuts[k]);
    ggml_mem_free(record->slices);
    ggml_mem_free(record);
}

// Two graphs without a touch: one graph alternates with another in many programs. Static memory is
// used without a word, so there it is what neither a plan nor the list of owners has, and nobody in
// this section under the lock.
static bool is_expired(const struct meta_buffer *buffer, const struct meta_record *record) {
    return buffer->is_static ? record->n_refs == 1 && record->used != section
                             : record->epoch + 1 < buffer->epoch;
}

// Moves what is not expired to another table. Pointers are moved, not records: callers keep them.
static bool rebuild(struct meta_buffer *buffer, size_t n_slots, bool expires) {
    struct meta_record **slots = ggml_mem_calloc(n_slots, sizeof(*slots));
    if (!slots) return false;
    size_t n_kept = 0;
    for (size_t i = 0; i < buffer->n_slots; ++i) {
        struct meta_record *record = buffer->slots[i];
        if (!record) continue;
        if (expires && is_expired(buffer, record)) {
            meta_record_unref(record);
        } else {
            slots[find(slots, n_slots, record->tensor)] = record;
            ++n_kept;
        }
    }
    ggml_mem_free(buffer->slots);
    buffer->slots = slots;
    buffer->n_slots = n_slots;
    buffer->n_records = n_kept;
    return true;
}

static size_t count_kept(const struct meta_buffer *buffer) {
    size_t n = 0;
    for (size_t i = 0; i < buffer->n_slots; ++i)
        n += buffer->slots[i] && !(buffer->is_static && is_expired(buffer, buffer->slots[i]));
    return n;
}

// Room for one more. A table of which a quarter at most is still needed keeps its size, so that the
// next search for old records is far enough away.
static bool make_room(struct meta_buffer *buffer) {
    if (2 * (buffer->n_records + 1) <= buffer->n_slots) return true;
    if (buffer->n_slots == 0) return rebuild(buffer, FIRST_SLOTS, false);
    const bool fits = 4 * count_kept(buffer) <= buffer->n_slots;
    return rebuild(buffer, fits ? buffer->n_slots : 2 * buffer->n_slots, buffer->is_static);
}

// The record in the table, or a new one in it. NULL without memory.
static struct meta_record *enter(struct meta_buffer *buffer, const struct ggml_tensor *tensor) {
    if (buffer->n_slots > 0) {
        struct meta_record *record = buffer->slots[find(buffer->slots, buffer->n_slots, tensor)];
        if (record) return record;
    }
    struct meta_record *record = make_room(buffer) ? record_new(tensor, buffer->device->n) : NULL;
    if (!record) return NULL;
    buffer->slots[find(buffer->slots, buffer->n_slots, tensor)] = record;
    ++buffer->n_records;
    return record;
}

// Whose memory that is; owners are sorted by it. O(log owners).
static struct meta_record *find_owner(const struct meta_buffer *buffer,
                                      const struct meta_identity *identity) {
    size_t low = 0, high = buffer->n_owners;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if ((uintptr_t)buffer->owners[middle]->identity.data < (uintptr_t)identity->data)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == buffer->n_owners) return NULL;
    const struct meta_identity *found = &buffer->owners[low]->identity;
    const bool fits =
        found->data == identity->data && is_same_layout(&found->layout, &identity->layout);
    return fits ? buffer->owners[low] : NULL;
}

// A tensor in static memory that is no view is one that was there when it was made, or a copy of
// its struct: training computes copies of graphs. It shares the slices' memory. What it is computed
// from, which may be gone, is looked at only when a graph has it.
static void adopt(const struct meta_buffer *buffer, struct meta_record *record) {
    record->owner = NULL;
    if (!buffer->is_placed || record->identity.view_src) return;
    record->owner = find_owner(buffer, &record->identity);
    if (!record->owner) return;
    record->is_resolved = true;
    record->state = record->owner->state;
    memcpy(record->slices, record->owner->slices, buffer->device->n * sizeof(*record->slices));
}

// A record is reset if it is of an earlier graph, or if the tensor isn't what it was: another one
// may be at that address.
struct meta_record *meta_record_get(const struct ggml_tensor *tensor) {
    struct meta_buffer *buffer = meta_buffer_with(tensor);
    if (!buffer) return NULL;
    struct meta_record *record = enter(buffer, tensor);
    if (!record) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "meta device: no memory for the slices of '%s'",
                  tensor->name);
        return NULL;
    }
    record->used = section;
    const struct meta_identity identity = identity_of(tensor);
    if (record->epoch != buffer->epoch || !is_same(&record->identity, &identity)) {
        record->is_resolved = false;
        record->epoch = buffer->epoch;
        record->identity = identity;
        adopt(buffer, record);
    }
    return record;
}

// Records that the last two graphs did not touch go. Without memory for a table they stay longer.
void meta_records_expire(struct meta_buffer *buffer) {
    ++buffer->epoch;
    if (buffer->n_slots > 0) rebuild(buffer, buffer->n_slots, true);
}

static void free_table(struct meta_buffer *buffer) {
    for (size_t i = 0; i < buffer->n_slots; ++i)
        meta_record_unref(buffer->slots[i]);
    ggml_mem_free(buffer->slots);
    buffer->slots = NULL;
    buffer->n_slots = 0;
    buffer->n_records = 0;
}

bool meta_record_own(struct meta_buffer *buffer, struct meta_record *record) {
    if (!array_grow(&buffer->owners, &buffer->owners_capacity, (int64_t)buffer->n_owners + 1,
                    sizeof(buffer->owners[0]))) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY,
                  "meta device: no memory to list the tensors of a buffer");
        return false;
    }
    meta_record_ref(record);
    buffer->owners[buffer->n_owners++] = record;
    return true;
}

// What was computed in slices goes with the table. A computed sum counts as added up.
void meta_records_settle(struct meta_buffer *buffer) {
    free_table(buffer);
    for (size_t i = 0; i < buffer->n_owners; ++i) {
        struct meta_record *owner = buffer->owners[i];
        for (size_t j = 0; j < buffer->device->n; ++j) {
            owner->slices[j].op = GGML_OP_NONE;
            memset(owner->slices[j].src, 0, sizeof(owner->slices[j].src));
        }
        if (owner->identity.op != GGML_OP_NONE &&
            owner->state.axis == GGML_BACKEND_SPLIT_AXIS_PARTIAL) {
            owner->state = meta_state_plain(GGML_BACKEND_SPLIT_AXIS_MIRRORED);
        }
    }
    buffer->is_placed = true;
}

void meta_records_free(struct meta_buffer *buffer) {
    free_table(buffer);
    for (size_t i = 0; i < buffer->n_owners; ++i)
        meta_record_unref(buffer->owners[i]);
    ggml_mem_free(buffer->owners);
    buffer->owners = NULL;
    buffer->n_owners = 0;
}
