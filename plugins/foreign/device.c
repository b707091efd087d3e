// SPDX-License-Identifier: MIT
// Devices of ggml's binaries. Entries are called under the binary's lock, unless they return a
// constant or block: ggml's devices are made for one thread, this contract's for any.
#include <stdio.h>

#include "foreign.h"
#include "ggml-shape.h"

static const char *device_name(ggml_backend_dev_t device) {
    return ((const struct foreign_device *)device)->name;
}

static const char *device_description(ggml_backend_dev_t device) {
    return ((const struct foreign_device *)device)->description;
}

// The contract has no more free memory than there is in all; nothing makes a binary keep to that.
static void device_memory(ggml_backend_dev_t device, size_t *free, size_t *total) {
    const struct foreign_device *own = (const struct foreign_device *)device;
    typedef void (*entry_t)(void *, size_t *, size_t *);
    *free = *total = 0;
    foreign_lock(own->binary);
    FOREIGN_ENTRY(own->binary, own->theirs, device_get_memory, entry_t)(own->theirs, free, total);
    foreign_unlock(own->binary);
    *free = MIN(*free, *total);
}

static enum ggml_backend_dev_type device_type(ggml_backend_dev_t device) {
    const struct foreign_device *own = (const struct foreign_device *)device;
    typedef enum ggml_backend_dev_type (*entry_t)(void *);
    return FOREIGN_ENTRY(own->binary, own->theirs, device_get_type, entry_t)(own->theirs);
}

// Pinned memory, for backends that have it.
static ggml_backend_buffer_type_t device_host_buffer_type(ggml_backend_dev_t device);

// The struct of theirs is that of this host's headers, but for what was appended to it.
static void read_props(const struct foreign_binary *binary, void *theirs,
                       struct ggml_backend_dev_props *out_props) {
    typedef void (*entry_t)(void *, struct ggml_backend_dev_props *);
    FOREIGN_ENTRY(binary, theirs, device_get_props, entry_t)(theirs, out_props);
}

// Names are this plugin's own, and a capability is passed on only if its entries are there too.
static void device_props(ggml_backend_dev_t device, struct ggml_backend_dev_props *props) {
    const struct foreign_device *own = (const struct foreign_device *)device;
    foreign_lock(own->binary);
    read_props(own->binary, own->theirs, props);
    foreign_unlock(own->binary);
    props->name = own->name;
    props->description = own->description;
    props->memory_free = MIN(props->memory_free, props->memory_total);
    props->caps.host_buffer = device_host_buffer_type(device) != NULL;
    props->caps.buffer_from_host_ptr = own->wraps_host;
    props->caps.events = own->device.table->event_new != NULL;
}

// foreign_stream_new() has recorded why there is no stream.
static int32_t device_init_backend(ggml_backend_dev_t device, const char *params,
                                   ggml_backend_t *out_stream) {
    *out_stream = foreign_stream_new((struct foreign_device *)device, params);
    return *out_stream ? GGML_HOST_OK : GGML_HOST_FAILED;
}

// The host's own CPU buffer type where the binary's is its CPU's.
static ggml_backend_buffer_type_t device_buffer_type(ggml_backend_dev_t device) {
    struct foreign_device *own = (struct foreign_device *)device;
    typedef void *(*entry_t)(void *);
    return foreign_buft_of(
        own->binary,
        FOREIGN_ENTRY(own->binary, own->theirs, device_get_buffer_type, entry_t)(own->theirs));
}

static ggml_backend_buffer_type_t device_host_buffer_type(ggml_backend_dev_t device) {
    struct foreign_device *own = (struct foreign_device *)device;
    typedef void *(*entry_t)(void *);
    if (!foreign_entry(own->theirs, own->binary->layout->device_get_host_buffer_type)) return NULL;
    return foreign_buft_of(
        own->binary,
        FOREIGN_ENTRY(own->binary, own->theirs, device_get_host_buffer_type, entry_t)(own->theirs));
}

// Memory of the application, say a mapped file of weights, without a copy. For a device that
// computes in the host's memory the host's own buffer does it.
static int32_t device_buffer_from_host_ptr(ggml_backend_dev_t device, void *ptr, size_t size,
                                           size_t max_tensor_size,
                                           ggml_backend_buffer_t *out_buffer) {
    struct foreign_device *own = (struct foreign_device *)device;
    typedef void *(*entry_t)(void *, void *, size_t, size_t);
    if (device_buffer_type(device) == ggml_backend_cpu_buffer_type()) {
        *out_buffer = ggml_backend_cpu_buffer_from_ptr(ptr, size);
        return *out_buffer ? GGML_HOST_OK : GGML_HOST_FAILED;
    }
    if (!own->wraps_host) return GGML_HOST_UNSUPPORTED;
    foreign_lock(own->binary);
    void *theirs = FOREIGN_ENTRY(own->binary, own->theirs, device_buffer_from_host_ptr,
                                 entry_t)(own->theirs, ptr, size, max_tensor_size);
    foreign_unlock(own->binary);
    *out_buffer = theirs ? foreign_buffer_adopt(own->binary, theirs) : NULL;
    if (*out_buffer) return GGML_HOST_OK;
    ggml_sdk_fail(GGML_HOST_FAILED, "%s: %zu bytes at %p can't be used as they are", own->name,
                  size, ptr);
    return GGML_HOST_FAILED;
}

// --- what it computes ----------------------------------------------------------------------------

// A type that the binary knows by the same number; removed types have size 0.
static bool is_known(const struct ggml_tensor *tensor) {
    return (unsigned)tensor->type < FOREIGN_TYPES && ggml_type_size(tensor->type) > 0;
}

// Functions of the application would see tensors of the other side.
static bool calls_back(enum ggml_op op) {
    return op == GGML_OP_MAP_CUSTOM1 || op == GGML_OP_MAP_CUSTOM2 || op == GGML_OP_MAP_CUSTOM3 ||
           op == GGML_OP_CUSTOM;
}

// What is new since the binary was built is not for it to judge: it would abort.
static bool is_for_binary(const struct foreign_binary *binary, const struct ggml_tensor *op) {
    if ((unsigned)op->op >= FOREIGN_OPS || calls_back(op->op) || !is_known(op)) return false;
    for (int i = 0; i < GGML_MAX_SRC; ++i) {
        if (op->src[i] && !is_known(op->src[i])) return false;
    }
    const unsigned kind = (unsigned)op->op_params[0];
    if (op->op == GGML_OP_UNARY) return kind < FOREIGN_UNARY_OPS;
    return op->op != GGML_OP_GLU || kind < (unsigned)binary->layout->n_glu_ops;
}

// From the cheapest test to the dearest: is the node's meaning known to this host, does it compute
// anything, can the binary know it, is the claim to be believed, and what does the device say. The
// last builds a shadow and takes the lock.
static bool device_supports_op(ggml_backend_dev_t device, const struct ggml_tensor *op) {
    const struct foreign_device *own = (const struct foreign_device *)device;
    struct foreign_node node;
    typedef bool (*entry_t)(void *, const struct ggml_tensor *);
    if (!ggml_node_is_known(op)) return false;
    if (ggml_op_is_empty(op->op)) return true;
    if (!is_for_binary(own->binary, op)) return false;
    if (!foreign_claim_holds(own, op)) return false;
    const struct ggml_tensor *shadow = foreign_shadow_node(own->binary, op, &node);
    foreign_lock(own->binary);
    const bool supported =
        FOREIGN_ENTRY(own->binary, own->theirs, device_supports_op, entry_t)(own->theirs, shadow);
    foreign_unlock(own->binary);
    return supported;
}

static bool device_supports_buft(ggml_backend_dev_t device, ggml_backend_buffer_type_t buft) {
    const struct foreign_device *own = (const struct foreign_device *)device;
    typedef bool (*entry_t)(void *, void *);
    void *theirs = foreign_buft_theirs(own->binary, buft);
    return theirs && FOREIGN_ENTRY(own->binary, own->theirs, device_supports_buft,
                                   entry_t)(own->theirs, theirs);
}

// Whether copying a weight to the device pays; backends without the entry never ask for it.
static bool device_offload_op(ggml_backend_dev_t device, const struct ggml_tensor *op) {
    const struct foreign_device *own = (const struct foreign_device *)device;
    struct foreign_node node;
    typedef bool (*entry_t)(void *, const struct ggml_tensor *);
    return foreign_entry(own->theirs, own->binary->layout->device_offload_op) &&
           is_for_binary(own->binary, op) &&
           FOREIGN_ENTRY(own->binary, own->theirs, device_offload_op,
                         entry_t)(own->theirs, foreign_shadow_node(own->binary, op, &node));
}

// --- events --------------------------------------------------------------------------------------

// `context` of an event is the binary's object.
static void event_free(ggml_backend_event_t event) {
    const struct foreign_device *own = ((const struct foreign_event *)event)->device;
    typedef void (*entry_t)(void *, void *);
    foreign_lock(own->binary);
    FOREIGN_ENTRY(own->binary, own->theirs, device_event_free, entry_t)
    (own->theirs, event->context);
    foreign_unlock(own->binary);
    ggml_aligned_free(event, sizeof(struct foreign_event));
}

// Not under the lock: it blocks, and other threads have to be able to go on.
static int32_t event_synchronize(ggml_backend_event_t event) {
    const struct foreign_device *own = ((const struct foreign_event *)event)->device;
    typedef void (*entry_t)(void *, void *);
    FOREIGN_ENTRY(own->binary, own->theirs, device_event_synchronize, entry_t)
    (own->theirs, event->context);
    return GGML_HOST_OK;
}

static const struct ggml_event_table event_table = {
    .size = sizeof(struct ggml_event_table),
    .free = event_free,
    .synchronize = event_synchronize,
};

// The event of the contract and this plugin's part of it are one allocation.
static int32_t device_event_new(ggml_backend_dev_t device, ggml_backend_event_t *out_event) {
    struct foreign_device *own = (struct foreign_device *)device;
    typedef void *(*entry_t)(void *);
    struct foreign_event *event = ggml_aligned_malloc(sizeof(*event));
    if (!event) {
        ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory for an event", own->name);
        return GGML_HOST_OUT_OF_MEMORY;
    }
    memset(event, 0, sizeof(*event));
    foreign_lock(own->binary);
    event->event.context =
        FOREIGN_ENTRY(own->binary, own->theirs, device_event_new, entry_t)(own->theirs);
    foreign_unlock(own->binary);
    event->event.table = &event_table;
    event->event.device = device;
    event->device = own;
    if (event->event.context) {
        *out_event = &event->event;
        return GGML_HOST_OK;
    }
    ggml_sdk_fail(GGML_HOST_FAILED, "%s: %s makes no event", own->name, own->binary->path);
    ggml_aligned_free(event, sizeof(*event));
    return GGML_HOST_FAILED;
}

// --- making one ----------------------------------------------------------------------------------

#define DEVICE_ENTRIES                                                                             \
    .size = sizeof(struct ggml_device_table), .get_name = device_name,                             \
    .get_description = device_description, .get_memory = device_memory, .get_type = device_type,   \
    .get_props = device_props, .init_backend = device_init_backend,                                \
    .get_buffer_type = device_buffer_type, .get_host_buffer_type = device_host_buffer_type,        \
    .buffer_from_host_ptr = device_buffer_from_host_ptr, .supports_op = device_supports_op,        \
    .supports_buft = device_supports_buft, .offload_op = device_offload_op

// Without events, and with.
static const struct ggml_device_table device_tables[] = {
    {DEVICE_ENTRIES},
    {DEVICE_ENTRIES, .event_new = device_event_new},
};

// All three entries, or events can't be offered: an event that can't be waited for would have to be
// ignored.
static bool has_events(const struct foreign_binary *binary, void *theirs) {
    return foreign_entry(theirs, binary->layout->device_event_new) &&
           foreign_entry(theirs, binary->layout->device_event_free) &&
           foreign_entry(theirs, binary->layout->device_event_synchronize);
}

void foreign_device_init(struct foreign_device *out_device, struct foreign_binary *binary,
                         void *theirs, ggml_backend_reg_t reg) {
    typedef const char *(*entry_t)(void *);
    const char *name = FOREIGN_ENTRY(binary, theirs, device_get_name, entry_t)(theirs);
    struct ggml_backend_dev_props props = {0};
    foreign_lock(binary); // others may compute on devices that were there before
    read_props(binary, theirs, &props);
    foreign_unlock(binary);
    out_device->device.table = &device_tables[props.caps.events && has_events(binary, theirs)];
    // Some have the entries and say that they are not to be used.
    out_device->wraps_host = props.caps.buffer_from_host_ptr &&
                             foreign_entry(theirs, binary->layout->device_buffer_from_host_ptr);
    out_device->device.reg = reg;
    out_device->binary = binary;
    out_device->theirs = theirs;
    // Servers claim everything, whatever is behind them: by default that is ggml's CPU backend.
    out_device->overclaims = strcmp(name, "CPU") == 0 || strncmp(name, "RPC", 3) == 0;
    out_device->is_vulkan = strncmp(name, "Vulkan", strlen("Vulkan")) == 0;
    snprintf(out_device->name, sizeof(out_device->name), "foreign-%s", name);
    snprintf(out_device->description, sizeof(out_device->description), "%s (foreign: %s, %s)",
             FOREIGN_ENTRY(binary, theirs, device_get_description, entry_t)(theirs), binary->path,
             binary->layout->text);
}
