// SPDX-License-Identifier: MIT
// A backend built as ggml's are: one device that adds. Its memory keeps every byte inverted, and it
// fails where it is given anything but objects of its own side. TINY_FAULT makes it one that must
// be refused.
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ggml-impl.h"
#include "old.h"

#ifndef TINY_DEVICES
#define TINY_DEVICES 1
#endif

static struct old_device device;
static struct old_buft type;
static struct old_reg reg;
static struct old_device more[64];   // the first is `device` itself
static struct old_device far_device; // of a server
static int mark;                     // what `extra` of its tensors points to:

#ifdef TINY_PLAIN // to nothing, as its buffers are not told of their tensors
enum { ATTACHES = 0 };
#else
enum { ATTACHES = 1 };
#endif

static void *attached(void) {
    return ATTACHES ? &mark : NULL;
}

// What tests ask for: how often graphs came with a number that had come before.
static int n_known_graphs;
static uint64_t last_uid;

// --- memory --------------------------------------------------------------------------------------

static const char *type_name(struct old_buft *buft) {
    return buft == &type ? "Tiny" : NULL;
}

static size_t type_alignment(struct old_buft *buft) {
    (void)buft;
    return 64;
}

static void buffer_free(struct old_buffer *buffer) {
    free(buffer->context);
}

static void *buffer_base(struct old_buffer *buffer) {
    return buffer->context;
}

static enum ggml_status buffer_init_tensor(struct old_buffer *buffer, struct ggml_tensor *tensor) {
    if ((void *)tensor->buffer != buffer) return GGML_STATUS_FAILED;
    tensor->extra = attached();
    return GGML_STATUS_SUCCESS;
}

static void buffer_set_tensor(struct old_buffer *buffer, struct ggml_tensor *tensor,
                              const void *data, size_t offset, size_t size) {
    uint8_t *to = (uint8_t *)tensor->data + offset;
    if ((void *)tensor->buffer != buffer || tensor->extra != attached()) abort();
    for (size_t i = 0; i < size; ++i)
        to[i] = (uint8_t) ~((const uint8_t *)data)[i];
}

static void buffer_get_tensor(struct old_buffer *buffer, const struct ggml_tensor *tensor,
                              void *data, size_t offset, size_t size) {
    const uint8_t *from = (const uint8_t *)tensor->data + offset;
    if ((void *)tensor->buffer != buffer || tensor->extra != attached()) abort();
    for (size_t i = 0; i < size; ++i)
        ((uint8_t *)data)[i] = (uint8_t)~from[i];
}

// As that of ggml's Vulkan backend: whole words.
static void buffer_memset(struct old_buffer *buffer, struct ggml_tensor *tensor, uint8_t value,
                          size_t offset, size_t size) {
    if ((void *)tensor->buffer != buffer || tensor->extra != attached()) abort();
    memset((uint8_t *)tensor->data + offset / 4 * 4, ~value, size / 4 * 4);
}

// As there: one byte of each word.
static void buffer_clear(struct old_buffer *buffer, uint8_t value) {
    for (size_t i = 0; i < buffer->size; ++i)
        ((uint8_t *)buffer->context)[i] = i % 4 == 0 ? (uint8_t)~value : 0xff;
}

// Which its caller has to keep to.
static size_t type_max_size(struct old_buft *buft) {
    (void)buft;
    return 1 << 24;
}

static struct old_buffer *type_alloc(struct old_buft *buft, size_t size) {
    struct old_buffer *buffer = calloc(1, sizeof(*buffer));
    buffer->free_buffer = buffer_free;
    buffer->get_base = buffer_base;
    if (ATTACHES) buffer->init_tensor = buffer_init_tensor;
    buffer->memset_tensor = buffer_memset;
    buffer->set_tensor = buffer_set_tensor;
    buffer->get_tensor = buffer_get_tensor;
    buffer->clear = buffer_clear;
    buffer->buft = buft;
    buffer->context = aligned_alloc(64, (size + 63) / 64 * 64);
    buffer->size = size;
    return buffer;
}

static struct old_buft type = {
    .get_name = type_name,
    .alloc_buffer = type_alloc,
    .get_alignment = type_alignment,
    .get_max_size = type_max_size,
    .device = &device,
};

// --- computing -----------------------------------------------------------------------------------

static float load(const struct ggml_tensor *tensor, size_t i) {
    uint32_t bits;
    float value;
    memcpy(&bits, (const char *)tensor->data + i * sizeof(bits), sizeof(bits));
    bits = ~bits;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static void store(struct ggml_tensor *tensor, size_t i, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    bits = ~bits;
    memcpy((char *)tensor->data + i * sizeof(bits), &bits, sizeof(bits));
}

static bool is_own(const struct ggml_tensor *tensor) {
    const struct old_buffer *buffer = (const struct old_buffer *)tensor->buffer;
    return buffer && buffer->buft == &type && tensor->extra == attached();
}

static enum ggml_status stream_compute(struct old_stream *stream, struct ggml_cgraph *graph) {
    (void)stream;
    n_known_graphs += graph->uid == last_uid;
    last_uid = graph->uid;
    for (int i = 0; i < graph->n_nodes; ++i) {
        struct ggml_tensor *node = graph->nodes[i];
        const size_t slot = ggml_hash_find(&graph->visited_hash_set, node);
        if (!node->buffer || !node->data) return GGML_STATUS_FAILED; // which ggml's look at
        if (ggml_op_is_empty(node->op)) continue;
        if (node->op != GGML_OP_ADD || !is_own(node) || !is_own(node->src[0]) ||
            !is_own(node->src[1]))
            return GGML_STATUS_FAILED;
        // Sources that are computed here are the very nodes; of others nothing is to be seen. A
        // node may come twice.
        const bool again = i > 0 && node == graph->nodes[i - 1];
        if (!again && node->src[0]->op == GGML_OP_ADD &&
            (i == 0 || node->src[0] != graph->nodes[i - 1]))
            return GGML_STATUS_FAILED;
        const bool used_elsewhere = strcmp(node->name, "used elsewhere") == 0;
        const bool used_here = i + 1 < graph->n_nodes && graph->nodes[i + 1] != node;
        const int uses = used_here || used_elsewhere ? 1 : 0;
        if (slot == GGML_HASHSET_FULL || graph->use_counts[slot] != uses) return GGML_STATUS_FAILED;
        for (size_t j = 0; j < (size_t)node->ne[0]; ++j)
            store(node, j, load(node->src[0], j) + load(node->src[1], j));
    }
    return GGML_STATUS_SUCCESS;
}

static const char *stream_name(struct old_stream *stream) {
    (void)stream;
    return "Tiny0";
}

static void stream_free(struct old_stream *stream) {
    free(stream);
}

static struct old_stream *device_init(struct old_device *dev, const char *params) {
    (void)params;
    struct old_stream *stream = calloc(1, sizeof(*stream));
    stream->get_name = stream_name;
    stream->free = stream_free;
    stream->graph_compute = stream_compute;
    stream->device = dev;
    return stream;
}

// --- device --------------------------------------------------------------------------------------

static const char *device_name(struct old_device *dev) {
    static char names[64][16];
    if (dev == &far_device) return "Tiny1";
    const int number = dev == &device ? 0 : (int)(dev - more);
    snprintf(names[number], sizeof(names[number]), "Tiny%d", number);
    return names[number];
}

static void device_memory(struct old_device *dev, size_t *free_bytes, size_t *total) {
    (void)dev;
    *free_bytes = *total = 1 << 20;
}

static enum ggml_backend_dev_type device_type(struct old_device *dev) {
    (void)dev;
    return GGML_BACKEND_DEVICE_TYPE_CPU;
}

static void device_props(struct old_device *dev, struct ggml_backend_dev_props *props) {
    props->name = props->description = device_name(dev);
    props->memory_free = props->memory_total = 1 << 20;
    props->type = device_type(dev);
}

static struct old_buft *device_buffer_type(struct old_device *dev) {
    (void)dev;
    return &type;
}

static bool device_supports_op(struct old_device *dev, const struct ggml_tensor *op) {
    (void)dev;
    if (op->op == GGML_OP_CPY) return true; // which it does not do, as ggml's
    return op->op == GGML_OP_ADD && op->type == GGML_TYPE_F32 && op->src[0] && op->src[1] &&
           op->src[0]->type == GGML_TYPE_F32 && op->src[1]->type == GGML_TYPE_F32 &&
           op->src[1]->ne[0] == op->ne[0] && op->ne[1] == 1;
}

static bool device_supports_buft(struct old_device *dev, struct old_buft *buft) {
    (void)dev;
    return buft == &type;
}

// There, but its properties say that it is not to be used.
static void must_not_be_called(void) {
    abort();
}

static struct old_device device = {
    .get_name = device_name,
    .get_description = device_name,
    .get_memory = device_memory,
    .get_type = device_type,
    .get_props = device_props,
    .init_backend = device_init,
    .get_buffer_type = device_buffer_type,
    .buffer_from_host_ptr = must_not_be_called,
    .supports_op = device_supports_op,
    .supports_buft = device_supports_buft,
    .events = {must_not_be_called, must_not_be_called, must_not_be_called},
    .reg = &reg,
};

// --- registration --------------------------------------------------------------------------------

static const char *reg_name(struct old_reg *self) {
    (void)self;
    return "Tiny";
}

static size_t reg_count(struct old_reg *self) {
    (void)self;
    return TINY_DEVICES;
}

static struct old_device *reg_device(struct old_reg *self, size_t index) {
    (void)self;
    if (index == 0) return &device;
    more[index] = device;
    return &more[index];
}

static const char *far_name(struct old_reg *self) {
    (void)self;
    return "Tiny[far]";
}

static struct old_device *far_get(struct old_reg *self, size_t index) {
    (void)self;
    (void)index;
    return &far_device;
}

static void set_n_threads(struct old_stream *stream, int n_threads) {
    stream->context = &n_known_graphs;
    n_known_graphs = n_threads;
}

static struct ggml_backend_feature *get_features(struct old_reg *self) {
    static char count[16];
    static struct ggml_backend_feature features[] = {{"known_graphs", count}, {NULL, NULL}};
    (void)self;
    snprintf(count, sizeof(count), "%d", n_known_graphs);
    return features;
}

// Whether nobody else is served; the server, a file, is this process's until that ends.
static bool is_free(const char *path) {
    static int fd = -1;
    if (fd >= 0) return true;
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
    if (fd >= 0) close(fd);
    fd = -1;
    return false;
}

static void await_byte(const char *path) {
    char byte;
    const int file = open(path, O_RDONLY);
    while (file >= 0 && read(file, &byte, 1) < 0)
        ;
    close(file);
}

// Servers: "dead" ends the process, "none" is not there, every other has a device. "one:FILE"
// serves one client at a time, as ggml's. "slow:FIFO" is not there, as it says once the other end
// has written.
static struct old_reg *add_server(const char *endpoint) {
    static struct old_reg servers[2];
    const bool one = strncmp(endpoint, "one:", 4) == 0;
    if (strcmp(endpoint, "dead") == 0) abort();
    if (strcmp(endpoint, "none") == 0) return NULL;
    if (strncmp(endpoint, "slow:", 5) == 0) {
        await_byte(endpoint + 5);
        return NULL;
    }
    if (one && !is_free(endpoint + 4)) return NULL;
    struct old_reg *far = &servers[one];
    far_device = device;
    far_device.reg = far;
    *far = reg;
    far->get_name = far_name;
    far->get_device = far_get;
    return far;
}

static void *reg_proc_address(struct old_reg *self, const char *name) {
    void *address = NULL;
    struct old_reg *(*add)(const char *) = add_server;
    void (*set)(struct old_stream *, int) = set_n_threads;
    struct ggml_backend_feature *(*get)(struct old_reg *) = get_features;
    (void)self;
    if (strcmp(name, "ggml_backend_set_n_threads") == 0) memcpy(&address, &set, sizeof(set));
    if (strcmp(name, "ggml_backend_get_features") == 0) memcpy(&address, &get, sizeof(get));
    if (strcmp(name, "ggml_backend_rpc_add_server") == 0) memcpy(&address, &add, sizeof(add));
    return address;
}

static struct old_reg reg = {
    .api_version = OLD_VERSION,
    .get_name = reg_name,
    .get_device_count = reg_count,
    .get_device = reg_device,
    .get_proc_address = reg_proc_address,
};

#ifndef TINY_INIT // late 2023: what is linked in is called by its own name
#define TINY_INIT "ggml_backend_init"
#endif
OLD_EXPORT struct old_reg *tiny_init(void) __asm__(TINY_INIT);
struct old_reg *tiny_init(void) {
    // Its base, not the host's function of that name.
    if (old_cpu_buffer_type()->get_name == NULL) abort();
#ifdef TINY_ABORT
    abort();
#endif
#ifdef TINY_LEAVES // somebody who outlives the helper
    if (fork() == 0) {
        FILE *file = fopen(getenv("TINY_LEFT"), "w");
        if (file) fprintf(file, "%ld", (long)getpid());
        if (file) fclose(file);
        for (int fd = 0; fd < 64; ++fd)
            close(fd);
        sleep(60);
        _exit(0);
    }
    struct stat info = {.st_size = 0}; // until its number is written: it ends with this process
    while (stat(getenv("TINY_LEFT"), &info) != 0 || info.st_size == 0)
        usleep(1000);
    abort();
#endif
#ifdef TINY_STAYS // with a process beside it
    if (fork() == 0) {
        FILE *file = fopen(getenv("TINY_LEFT"), "w");
        if (file) fprintf(file, "%ld\n", (long)getpid());
        if (file) fclose(file);
    }
    sleep(60);
#endif
#ifdef TINY_MUTE // ends the answer, and not the process
    for (int fd = 0; fd < 64; ++fd)
        close(fd);
    sleep(60);
#endif
#ifdef TINY_UNKNOWN
    reg.api_version = TINY_UNKNOWN;
#endif
#ifdef TINY_UNVERSIONED // late 2024: the table comes first
    return (struct old_reg *)(uintptr_t)&reg.get_name;
#endif
    return &reg;
}
