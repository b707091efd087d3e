// SPDX-License-Identifier: MIT
// Parses the input as a message of the MPI backend, and uses every field of a message that was
// accepted.
#include "fuzz/inputs/wire_input.h"

#include <stdlib.h>
#include <string.h>

#include "ggml.h"
#include "wire.h"

static void require(bool ok) {
    if (!ok) abort();
}

__extension__ typedef unsigned __int128 wide;

// Bytes from the first to the last one, in numbers that can't overflow.
static wide span_of(const struct wire_tensor *tensor) {
    const uint64_t block = (uint64_t)ggml_blck_size((enum ggml_type)tensor->type);
    wide span = ggml_type_size((enum ggml_type)tensor->type);
    for (int i = 0; i < GGML_MAX_DIMS; ++i) {
        if (tensor->ne[i] == 0) return 0;
        const uint64_t n = (uint64_t)tensor->ne[i] / (i == 0 ? block : 1);
        span += (wide)(n - 1) * tensor->nb[i];
    }
    return span;
}

// What the node makes of a tensor that was accepted.
static void use_tensor(const struct wire_tensor *tensor, size_t count) {
    const char *why;
    uint64_t span;
    struct ggml_tensor made;
    require(wire_tensor_sound(tensor, count, &span, &why));
    require(span == span_of(tensor) && span <= INT64_MAX);
    require(tensor->buffer == 0 || (wide)tensor->offset + span <= INT64_MAX);
    for (int i = 0; i < GGML_MAX_SRC; ++i)
        require(tensor->src[i] >= -1 && (tensor->src[i] < 0 || (size_t)tensor->src[i] < count));
    require(!wire_calls_program(tensor->op));
    wire_restore(tensor, &made);
    require(made.data == NULL && made.buffer == NULL && made.extra == NULL &&
            made.view_src == NULL);
    require(strlen(made.name) < GGML_MAX_NAME);
    require((made.flags & GGML_TENSOR_FLAG_ERROR) == 0);
    struct wire_tensor again;
    wire_describe(&made, &again);
    require(again.type == tensor->type && again.op == tensor->op);
    require(memcmp(again.ne, tensor->ne, sizeof(again.ne)) == 0);
    require(memcmp(again.nb, tensor->nb, sizeof(again.nb)) == 0);
}

static void use_message(const struct wire_message *message, const void *rest) {
    for (size_t i = 0; i < wire_count(message); ++i) {
        struct wire_change change;
        if (message->kind == WIRE_COMPUTE)
            wire_read_change(rest, i, &change);
        else
            wire_read_tensor(rest, i, &change.tensor);
        const bool known = message->kind == WIRE_COMPUTE && message->n_tensors == 0;
        const size_t count = message->kind != WIRE_COMPUTE ? wire_count(message)
                             : known                       ? WIRE_MAX_TENSORS
                                                           : message->n_tensors;
        use_tensor(&change.tensor, count);
    }
    if (message->kind == WIRE_SET_FILE) {
        struct wire_file file;
        uint8_t digest[WIRE_DIGEST];
        wire_read_file(rest, &file);
        require(strlen(file.name) < WIRE_FILE_NAME && !strchr(file.name, '/'));
        require((wide)file.offset + message->size <= file.size);
        for (size_t i = 0; i < wire_pieces(message->size); ++i)
            memcpy(digest, wire_digests(rest) + i * WIRE_DIGEST, sizeof(digest));
    }
    for (uint32_t i = 0; message->kind == WIRE_REDUCE && i < message->n_nodes; ++i) {
        struct wire_rank rank;
        wire_read_rank(rest, i, &rank);
    }
}

static void use_answer(const void *rest, size_t size) {
    struct wire_node node;
    const char *why;
    if (!wire_read_node(rest, size, &node, NULL, &why)) {
        require(why[0] != '\0');
        return;
    }
    struct wire_device *devices = malloc((node.n_devices + 1) * sizeof(*devices));
    require(devices != NULL);
    if (wire_read_node(rest, size, &node, devices, &why)) {
        for (uint32_t i = 0; i < node.n_devices; ++i)
            require(strlen(devices[i].name) < WIRE_TEXT && devices[i].alignment > 0);
    } else {
        require(why[0] != '\0');
    }
    free(devices);
}

void run_wire_input(const unsigned char *data, size_t size) {
    struct wire_message message;
    const void *rest;
    const char *why;
    if (!wire_read(data, size, &message, &rest, &why)) {
        require(why[0] != '\0');
        return;
    }
    use_message(&message, rest);
    if (message.kind == WIRE_ANSWER) use_answer(rest, size - sizeof(message));
}
