// SPDX-License-Identifier: MIT
// Kinds of memory of ggml's binaries. One object of this plugin stands for each of theirs and stays
// for good, so that pointers can be compared: the host and applications take buffer types as equal
// only if they are the same object.
#include <stdlib.h>

#include "foreign.h"

// What a binary may add to the size of a buffer, unchecked.
enum { MOST_PADDING = 1 << 20 };

// Held while the list is searched and grown. Look-ups are rare: devices, buffers and streams keep
// what they found.
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct foreign_buft *list;

static const char *buft_name(ggml_backend_buffer_type_t buft) {
    const struct foreign_buft *own = buft->context;
    typedef const char *(*entry_t)(void *);
    return FOREIGN_ENTRY(own->binary, own->theirs, buft_get_name, entry_t)(own->theirs);
}

struct foreign_buft *foreign_buft_own(ggml_backend_buffer_type_t buft) {
    return buft && buft->table->get_name == buft_name ? buft->context : NULL;
}

// SIZE_MAX without the entry: ggml has no limit then.
static size_t buft_max_size(ggml_backend_buffer_type_t buft) {
    const struct foreign_buft *own = buft->context;
    typedef size_t (*entry_t)(void *);
    const entry_t entry = FOREIGN_ENTRY(own->binary, own->theirs, buft_get_max_size, entry_t);
    return entry ? entry(own->theirs) : SIZE_MAX;
}

// The size is bounded before the call: a binary that rounds it up near the largest number would
// wrap around to a small buffer.
static int32_t buft_alloc_buffer(ggml_backend_buffer_type_t buft, size_t size,
                                 ggml_backend_buffer_t *out_buffer) {
    struct foreign_buft *own = buft->context;
    typedef void *(*entry_t)(void *, size_t);
    const entry_t entry = FOREIGN_ENTRY(own->binary, own->theirs, buft_alloc_buffer, entry_t);
    void *theirs = NULL;
    // ggml leaves it to its caller to keep to the largest size.
    if (size <= PTRDIFF_MAX - MOST_PADDING && size <= buft_max_size(buft)) {
        foreign_lock(own->binary);
        theirs = entry(own->theirs, size);
        foreign_unlock(own->binary);
    }
    *out_buffer = theirs ? foreign_buffer_adopt(own->binary, theirs) : NULL;
    if (*out_buffer) return GGML_HOST_OK;
    ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no buffer of %zu bytes", buft_name(buft), size);
    return GGML_HOST_OUT_OF_MEMORY;
}

static size_t buft_alignment(ggml_backend_buffer_type_t buft) {
    const struct foreign_buft *own = buft->context;
    typedef size_t (*entry_t)(void *);
    return FOREIGN_ENTRY(own->binary, own->theirs, buft_get_alignment, entry_t)(own->theirs);
}

// What the binary asks for can exceed the tensor, for padding of quantised rows; it is never taken
// for less than that.
static size_t buft_alloc_size(ggml_backend_buffer_type_t buft, const struct ggml_tensor *tensor) {
    struct foreign_buft *own = buft->context;
    struct foreign_node node;
    typedef size_t (*entry_t)(void *, const struct ggml_tensor *);
    const entry_t entry = FOREIGN_ENTRY(own->binary, own->theirs, buft_get_alloc_size, entry_t);
    if (!entry) return ggml_nbytes(tensor);
    foreign_lock(own->binary);
    const size_t size = entry(own->theirs, foreign_shadow_node(own->binary, tensor, &node));
    foreign_unlock(own->binary);
    return MAX(size, ggml_nbytes(tensor));
}

// Without the entry, as ggml has it: not host memory.
static bool buft_is_host(ggml_backend_buffer_type_t buft) {
    const struct foreign_buft *own = buft->context;
    typedef bool (*entry_t)(void *);
    const entry_t entry = FOREIGN_ENTRY(own->binary, own->theirs, buft_is_host, entry_t);
    return entry && entry(own->theirs);
}

// Repacking entries assert that they get all of it.
static size_t buft_access_unit(ggml_backend_buffer_type_t buft, const struct ggml_tensor *tensor) {
    const struct foreign_buft *own = buft->context;
    (void)tensor;
    return own->repacked ? SIZE_MAX : 1;
}

static const struct ggml_buffer_type_table buft_table = {
    .size = sizeof(buft_table),
    .get_name = buft_name,
    .alloc_buffer = buft_alloc_buffer,
    .get_alignment = buft_alignment,
    .get_max_size = buft_max_size,
    .get_alloc_size = buft_alloc_size,
    .is_host = buft_is_host,
    .get_access_unit = buft_access_unit,
};

// Also makes their buffer of no bytes, which stands for the host's empty buffers of this type.
// Called with list_lock held.
static struct foreign_buft *buft_new(struct foreign_binary *binary, void *theirs) {
    struct foreign_buft *own = calloc(1, sizeof(*own));
    if (!own) return NULL;
    own->binary = binary;
    own->theirs = theirs;
    own->empty = binary->base->buft_alloc_buffer(theirs, 0);
    own->buft.table = &buft_table;
    own->buft.context = own;
    own->buft.device = foreign_device_of(foreign_pointer(theirs, binary->layout->buft_device));
    return own;
}

ggml_backend_buffer_type_t foreign_buft_of(struct foreign_binary *binary, void *theirs) {
    if (!theirs) return NULL;
    if (theirs == binary->base->cpu_buffer_type()) return ggml_backend_cpu_buffer_type();
    pthread_mutex_lock(&list_lock);
    struct foreign_buft *own = list;
    while (own && own->theirs != theirs)
        own = own->next;
    if (!own && (own = buft_new(binary, theirs)) != NULL) {
        own->next = list;
        list = own;
    }
    pthread_mutex_unlock(&list_lock);
    if (own) return &own->buft;
    ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for a buffer type of %s", binary->path);
    return NULL;
}

// Host memory of every plugin is the binary's CPU memory: what differs (pinning, alignment) is
// nothing that a kernel relies on.
void *foreign_buft_theirs(const struct foreign_binary *binary, ggml_backend_buffer_type_t buft) {
    const struct foreign_buft *own = foreign_buft_own(buft);
    if (own) return own->binary->base == binary->base ? own->theirs : NULL;
    const bool is_host = buft && buft->table->is_host && buft->table->is_host(buft);
    return is_host ? binary->base->cpu_buffer_type() : NULL;
}
