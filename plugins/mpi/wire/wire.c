// SPDX-License-Identifier: MIT
// Whether bytes that came from elsewhere are a message. Whatever they are, nothing is read beyond
// them and no number in them is used before it was compared with what it may be.
#define _POSIX_C_SOURCE 200809L
#include "wire.h"

#include <string.h>

// Names what is wrong with a message, in words that follow "sent".
static bool refuse(const char **out_why, const char *why) {
    *out_why = why;
    return false;
}

// --- tensors -------------------------------------------------------------------------------------

// Operations with pointers to functions, which mean nothing to another process.
bool wire_calls_program(int32_t op) {
    return op == GGML_OP_MAP_CUSTOM1 || op == GGML_OP_MAP_CUSTOM2 || op == GGML_OP_MAP_CUSTOM3 ||
           op == GGML_OP_CUSTOM;
}

// a * b within int64_t; false beyond.
static bool multiply(uint64_t a, uint64_t b, uint64_t *out) {
    return !__builtin_mul_overflow(a, b, out) && *out <= INT64_MAX;
}

bool wire_has_transposed_blocks(const struct wire_tensor *tensor) {
    const enum ggml_type type = (enum ggml_type)tensor->type;
    return ggml_blck_size(type) > 1 && tensor->nb[0] != ggml_type_size(type);
}

// Bytes from the first to the last one of a tensor whose blocks lie side by side in a row. Of one
// that is transposed nothing says along which extent its blocks are: it has no more than this,
// whatever ggml_nbytes() says.
static bool span_of(const struct wire_tensor *tensor, uint64_t *out_span) {
    const enum ggml_type type = (enum ggml_type)tensor->type;
    const uint64_t block = (uint64_t)ggml_blck_size(type), bytes = ggml_type_size(type);
    uint64_t elements = 1, span = bytes, step;
    for (int i = 0; i < GGML_MAX_DIMS; ++i) {
        const int64_t ne = tensor->ne[i];
        if (ne < 0 || !multiply(elements, (uint64_t)ne, &elements)) return false;
        if (tensor->nb[i] > INT64_MAX) return false;
    }
    const bool is_transposed = wire_has_transposed_blocks(tensor);
    const uint64_t ne0 = (uint64_t)tensor->ne[0];
    if (ne0 % block != 0 && !is_transposed) return false;
    *out_span = 0;
    if (elements == 0) return true;
    for (int i = 0; i < GGML_MAX_DIMS; ++i) {
        const uint64_t in_row = is_transposed ? ne0 : ne0 / block - 1;
        const uint64_t steps = i == 0 ? in_row : (uint64_t)tensor->ne[i] - 1;
        if (!multiply(steps, tensor->nb[i], &step)) return false;
        span += step;
        if (span > INT64_MAX) return false;
    }
    *out_span = span;
    return true;
}

// An index of a tensor of the message, or -1 for none.
static bool is_index(int32_t index, size_t count) {
    return index >= -1 && (index < 0 || (size_t)index < count);
}

// Checks each member before anything is computed from it: type and operation exist, extents and
// strides stay within 63 bits, references stay within the message.
bool wire_tensor_sound(const struct wire_tensor *tensor, size_t count, uint64_t *out_span,
                       const char **out_why) {
    if (tensor->type < 0 || tensor->type >= GGML_TYPE_COUNT ||
        ggml_blck_size((enum ggml_type)tensor->type) <= 0 ||
        ggml_type_size((enum ggml_type)tensor->type) == 0) {
        return refuse(out_why, "a type that there is not");
    }
    if (tensor->op < 0 || tensor->op >= GGML_OP_COUNT)
        return refuse(out_why, "an operation that there is not");
    if (wire_calls_program(tensor->op))
        return refuse(out_why, "an operation that calls a function of the program");
    if (!span_of(tensor, out_span)) return refuse(out_why, "extents or strides out of range");
    for (int i = 0; i < GGML_MAX_SRC; ++i)
        if (!is_index(tensor->src[i], count)) return refuse(out_why, "a source that there is not");
    if (!is_index(tensor->view_src, count))
        return refuse(out_why, "a view of a tensor that there is not");
    if (tensor->buffer != 0 && tensor->offset > INT64_MAX - *out_span)
        return refuse(out_why, "an offset out of range");
    if (tensor->reserved != 0) return refuse(out_why, "a member that has no meaning yet");
    if (tensor->name[GGML_MAX_NAME - 1] != '\0') return refuse(out_why, "a name without an end");
    return true;
}

// Pointers become -1 here; the caller replaces those that the message contains.
void wire_describe(const struct ggml_tensor *tensor, struct wire_tensor *out) {
    memset(out, 0, sizeof(*out));
    out->type = (int32_t)tensor->type;
    out->op = (int32_t)tensor->op;
    out->flags = tensor->flags;
    for (int i = 0; i < GGML_MAX_DIMS; ++i) {
        out->ne[i] = tensor->ne[i];
        out->nb[i] = tensor->nb[i];
    }
    memcpy(out->op_params, tensor->op_params, sizeof(out->op_params));
    for (int i = 0; i < GGML_MAX_SRC; ++i)
        out->src[i] = -1;
    out->view_src = -1;
    out->view_offs = tensor->view_offs;
    memcpy(out->name, tensor->name, strnlen(tensor->name, sizeof(out->name) - 1));
}

// Makes a tensor of a description that was checked. Flags are masked: a tensor in error has a
// text where others have what a backend attaches, and no message may make one.
void wire_restore(const struct wire_tensor *from, struct ggml_tensor *tensor) {
    enum {
        FLAGS = GGML_TENSOR_FLAG_INPUT | GGML_TENSOR_FLAG_OUTPUT | GGML_TENSOR_FLAG_PARAM |
                GGML_TENSOR_FLAG_LOSS | GGML_TENSOR_FLAG_COMPUTE,
    };
    memset(tensor, 0, sizeof(*tensor));
    tensor->type = (enum ggml_type)from->type;
    tensor->op = (enum ggml_op)from->op;
    tensor->flags = from->flags & FLAGS;
    for (int i = 0; i < GGML_MAX_DIMS; ++i) {
        tensor->ne[i] = from->ne[i];
        tensor->nb[i] = (size_t)from->nb[i];
    }
    memcpy(tensor->op_params, from->op_params, sizeof(tensor->op_params));
    tensor->view_offs = (size_t)from->view_offs;
    memcpy(tensor->name, from->name, sizeof(tensor->name));
}

// --- messages ------------------------------------------------------------------------------------

// What follows a message.
enum shape {
    NOTHING,
    ANYTHING,
    TEXT,
    PROGRAM,
    ONE,
    ONE_AND_BYTES,
    ONE_AND_RANKS,
    ONE_AND_FILE,
    TWO,
    LIST,
    CHANGES
};

static enum shape shape_of(uint32_t kind) {
    switch (kind) {
    case WIRE_ANSWER: return ANYTHING;
    case WIRE_STREAM_NEW: return TEXT;
    case WIRE_SET: return ONE_AND_BYTES;
    case WIRE_REDUCE: return ONE_AND_RANKS;
    case WIRE_SET_FILE: return ONE_AND_FILE;
    case WIRE_PROGRAM: return PROGRAM;
    case WIRE_ALLOC_SIZE:
    case WIRE_GET:
    case WIRE_MEMSET:
    case WIRE_SEND:
    case WIRE_RECEIVE: return ONE;
    case WIRE_COPY: return TWO;
    case WIRE_SUPPORTS: return LIST;
    case WIRE_COMPUTE: return CHANGES;
    default: return NOTHING;
    }
}

// How many tensors, or changes of tensors, follow the message.
size_t wire_count(const struct wire_message *message) {
    switch (shape_of(message->kind)) {
    case ONE:
    case ONE_AND_BYTES:
    case ONE_AND_RANKS:
    case ONE_AND_FILE: return 1;
    case TWO: return 2;
    case LIST: return message->n_tensors;
    case CHANGES: return (size_t)message->size;
    default: return 0;
    }
}

// Bytes of these, or of what is always of one size; text, data and ranks come after them.
size_t wire_fixed_size(const struct wire_message *message) {
    const size_t one = shape_of(message->kind) == CHANGES ? sizeof(struct wire_change)
                                                          : sizeof(struct wire_tensor);
    if (shape_of(message->kind) == PROGRAM) return sizeof(struct wire_program);
    return wire_count(message) * one;
}

void wire_read_tensor(const void *rest, size_t i, struct wire_tensor *out_tensor) {
    memcpy(out_tensor, (const char *)rest + i * sizeof(*out_tensor), sizeof(*out_tensor));
}

void wire_read_change(const void *rest, size_t i, struct wire_change *out_change) {
    memcpy(out_change, (const char *)rest + i * sizeof(*out_change), sizeof(*out_change));
}

void wire_read_rank(const void *rest, size_t i, struct wire_rank *out_rank) {
    const char *ranks = (const char *)rest + sizeof(struct wire_tensor);
    memcpy(out_rank, ranks + i * sizeof(*out_rank), sizeof(*out_rank));
}

void wire_read_program(const void *rest, struct wire_program *out_program) {
    memcpy(out_program, rest, sizeof(*out_program));
}

void wire_read_file(const void *rest, struct wire_file *out_file) {
    memcpy(out_file, (const char *)rest + sizeof(struct wire_tensor), sizeof(*out_file));
}

size_t wire_pieces(uint64_t size) {
    return (size_t)(size / WIRE_FILE_PIECE + (size % WIRE_FILE_PIECE != 0));
}

const uint8_t *wire_digests(const void *rest) {
    return (const uint8_t *)rest + sizeof(struct wire_tensor) + sizeof(struct wire_file);
}

// A transfer of a part of the tensor, whose blocks lie as those of a whole one.
static bool is_transfer(const struct wire_message *message) {
    return message->kind == WIRE_SET || message->kind == WIRE_GET || message->kind == WIRE_MEMSET ||
           message->kind == WIRE_SEND || message->kind == WIRE_RECEIVE ||
           message->kind == WIRE_SET_FILE;
}

// Checks tensor i of a message: a transfer must stay within the tensor's span, in bytes.
static bool one_sound(const struct wire_message *message, const void *rest, size_t i,
                      const char **out_why) {
    struct wire_tensor tensor;
    uint64_t span;
    wire_read_tensor(rest, i, &tensor);
    if (!wire_tensor_sound(&tensor, wire_count(message), &span, out_why)) return false;
    if (shape_of(message->kind) == LIST) return true;
    if (message->kind != WIRE_ALLOC_SIZE && tensor.buffer == 0)
        return refuse(out_why, "a tensor that lies nowhere");
    if (is_transfer(message) && (message->offset > span || message->size > span - message->offset))
        return refuse(out_why, "a transfer beyond the tensor");
    return true;
}

static bool change_sound(const struct wire_message *message, const void *rest, size_t i,
                         const char **out_why) {
    struct wire_change change;
    uint64_t span;
    wire_read_change(rest, i, &change);
    // Of a graph that is known the node knows how many tensors there are.
    const size_t count = message->n_tensors > 0 ? message->n_tensors : WIRE_MAX_TENSORS;
    if (change.index >= count) return refuse(out_why, "a tensor that the graph does not have");
    if (message->n_tensors > 0 && change.index != i) return refuse(out_why, "tensors out of order");
    return wire_tensor_sound(&change.tensor, count, &span, out_why);
}

static bool numbers_sound(const struct wire_message *message, const char **out_why) {
    if (message->kind == 0 || message->kind >= WIRE_KINDS)
        return refuse(out_why, "an unknown kind");
    if (message->queue >= WIRE_MAX_QUEUES) return refuse(out_why, "a queue out of range");
    if (message->device >= WIRE_MAX_DEVICES) return refuse(out_why, "a device out of range");
    const bool reduces = message->kind == WIRE_REDUCE;
    if (reduces && (message->n_nodes > WIRE_MAX_RANKS || message->device >= message->n_nodes))
        return refuse(out_why, "a rank that the group does not have");
    if (message->n_tensors > WIRE_MAX_TENSORS ||
        (!reduces && message->n_nodes > message->n_tensors))
        return refuse(out_why, "more nodes than tensors, or too many");
    if (message->kind == WIRE_SUPPORTS && message->n_tensors == 0)
        return refuse(out_why, "a node that is missing");
    if (message->kind == WIRE_COMPUTE &&
        (message->size > WIRE_MAX_TENSORS ||
         (message->n_tensors > 0 && message->size != message->n_tensors))) {
        return refuse(out_why, "a graph that is not whole");
    }
    if (message->size > INT64_MAX || message->offset > INT64_MAX)
        return refuse(out_why, "a size out of range");
    if (message->tag > INT32_MAX || message->peer > INT32_MAX)
        return refuse(out_why, "a tag or peer out of range");
    return true;
}

static bool rest_sound(const struct wire_message *message, size_t size, const char **out_why) {
    const enum shape shape = shape_of(message->kind);
    const size_t fixed = wire_fixed_size(message);
    if (shape == ANYTHING) return true;
    if (shape == TEXT) {
        return size <= 4096 || refuse(out_why, "parameters that are too long");
    }
    if (size < fixed) return refuse(out_why, "less than it says");
    if (shape == ONE_AND_BYTES && message->tag == 0)
        return size - fixed == message->size || refuse(out_why, "another number of bytes");
    if (shape == ONE_AND_FILE)
        return size - fixed ==
                   sizeof(struct wire_file) + wire_pieces(message->size) * WIRE_DIGEST ||
               refuse(out_why, "another number of digests");
    if (shape == ONE_AND_RANKS)
        return size - fixed == message->n_nodes * sizeof(struct wire_rank) ||
               refuse(out_why, "another number of ranks");
    return size == fixed || refuse(out_why, "more than it says");
}

// Whether the name can only be one of the folder's own entries, and the bytes are in the file.
static bool file_sound(const struct wire_message *message, const void *rest, const char **out_why) {
    struct wire_file file;
    wire_read_file(rest, &file);
    const char *name = file.name;
    if (!memchr(name, '\0', sizeof(file.name))) return refuse(out_why, "a name without an end");
    if (name[0] == '\0' || strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return refuse(out_why, "a name of a file that is none");
    if (message->tag != 0) return refuse(out_why, "a tag that has no meaning");
    if (file.size > INT64_MAX || file.offset > file.size ||
        message->size > file.size - file.offset || message->size == 0) {
        return refuse(out_why, "bytes that the file does not have");
    }
    return true;
}

bool wire_read(const void *bytes, size_t size, struct wire_message *out_message,
               const void **out_rest, const char **out_why) {
    *out_rest = NULL;
    *out_why = "";
    memset(out_message, 0, sizeof(*out_message));
    if (size < sizeof(*out_message)) return refuse(out_why, "less than a message");
    memcpy(out_message, bytes, sizeof(*out_message));
    *out_rest = (const char *)bytes + sizeof(*out_message);
    if (out_message->magic != WIRE_MAGIC) return refuse(out_why, "no message");
    if (!numbers_sound(out_message, out_why)) return false;
    if (!rest_sound(out_message, size - sizeof(*out_message), out_why)) return false;
    const bool changes = shape_of(out_message->kind) == CHANGES;
    for (size_t i = 0; i < wire_count(out_message); ++i) {
        if (!(changes ? change_sound : one_sound)(out_message, *out_rest, i, out_why)) return false;
    }
    return out_message->kind != WIRE_SET_FILE || file_sound(out_message, *out_rest, out_why);
}

// --- nodes ---------------------------------------------------------------------------------------

static bool is_text(const char *text) {
    return memchr(text, '\0', WIRE_TEXT) != NULL;
}

static bool device_sound(const struct wire_device *device, const char **out_why) {
    if (!is_text(device->name) || !is_text(device->description) || !is_text(device->id))
        return refuse(out_why, "a text without an end");
    if (device->name[0] == '\0') return refuse(out_why, "a device without a name");
    if (device->alignment == 0 || (device->alignment & (device->alignment - 1)) != 0 ||
        device->alignment > 1 << 20) {
        return refuse(out_why, "an alignment that is none");
    }
    if (device->memory.free > device->memory.total)
        return refuse(out_why, "more memory free than there is");
    return true;
}

bool wire_read_node(const void *rest, size_t size, struct wire_node *out_node,
                    struct wire_device *out_devices, const char **out_why) {
    *out_why = "";
    if (size < sizeof(*out_node)) return refuse(out_why, "less than a node");
    memcpy(out_node, rest, sizeof(*out_node));
    if (!is_text(out_node->host) || !is_text(out_node->version))
        return refuse(out_why, "a text without an end");
    if (out_node->n_devices > WIRE_MAX_DEVICES ||
        size - sizeof(*out_node) != out_node->n_devices * sizeof(*out_devices)) {
        return refuse(out_why, "another number of devices");
    }
    if (!out_devices) return true;
    memcpy(out_devices, (const char *)rest + sizeof(*out_node),
           out_node->n_devices * sizeof(*out_devices));
    for (uint32_t i = 0; i < out_node->n_devices; ++i)
        if (!device_sound(&out_devices[i], out_why)) return false;
    return true;
}
