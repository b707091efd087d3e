// SPDX-License-Identifier: MIT
// Bytes that travel by themselves: straight from and to memory that MPI may use, the host's and
// perhaps a device's, else in pieces, of which one is on its way while the device copies the other.
#include <stdlib.h>
#include <string.h>

#include "server.h"

// Two pieces of memory in turn: the network has one, the device the other.
struct pieces {
    struct server *server;
    struct link_op ops[2];
    char *memory[2];
    bool posted[2];
};

// Bytes for which there is no memory all come here, and from here: the other side has begun its
// part, which MPI would keep for good, and perhaps take for a later transfer's of the same tag.
static char nowhere[LINK_PIECE];

static enum ggml_host_status lost(void) {
    return fail(GGML_HOST_DEVICE_LOST, "the other side of a transfer is gone");
}

// False: no memory, the bytes have no meaning. The caller ends the pieces in any case.
static bool begin(struct pieces *pieces, struct server *server, size_t size, int peer, uint32_t tag,
                  bool receives) {
    const size_t most = size < LINK_PIECE ? size : LINK_PIECE;
    bool good = true;
    *pieces = (struct pieces){.server = server};
    for (int i = 0; i < 2; ++i) {
        char *memory = calloc(1, most);
        good = good && memory;
        pieces->memory[i] = memory ? memory : nowhere;
        pieces->ops[i] = (struct link_op){
            .peer = peer, .tag = (int)tag, .receives = receives, .data = pieces->memory[i]};
    }
    return good;
}

// Starts to send or receive piece i without waiting.
static void post(struct pieces *pieces, int i, size_t size) {
    pieces->ops[i].size = size;
    pieces->posted[i] = true;
    link_post(pieces->server->link, &pieces->ops[i]);
}

// Waits for piece i if it is on its way. False: the peer is gone.
static bool await(struct pieces *pieces, int i) {
    if (!pieces->posted[i]) return true;
    pieces->posted[i] = false;
    return link_wait(pieces->server->link, &pieces->ops[i]);
}

// Waits for both, since MPI may still use their memory, and frees them.
static bool end(struct pieces *pieces) {
    bool good = true;
    for (int i = 0; i < 2; ++i) {
        good = await(pieces, i) && good;
        if (pieces->memory[i] != nowhere) free(pieces->memory[i]);
    }
    return good;
}

// Bytes of the piece that begins at an offset.
static size_t piece_at(const struct wire_message *message, size_t at) {
    const size_t left = (size_t)message->size - at;
    return left < LINK_PIECE ? left : LINK_PIECE;
}

// Whether MPI may use the tensor's own memory. After a failure bytes go through pieces: the
// other side waits for them all the same.
static bool is_direct(const struct held_buffer *buffer, enum ggml_host_status status) {
    return status == GGML_HOST_OK && buffer && buffer->is_for_mpi;
}

// One message for all bytes. A device has nothing to do with them meanwhile: work of the queue, and
// what it waits for, was done before, and what comes later begins when MPI has ended.
static enum ggml_host_status directly(struct server *server, const struct wire_message *message,
                                      const struct ggml_tensor *tensor,
                                      const struct held_buffer *buffer, int peer, bool receives) {
    struct link_op op = {.peer = peer,
                         .tag = (int)message->tag,
                         .receives = receives,
                         .data = (char *)tensor->data + message->offset,
                         .size = (size_t)message->size};
    link_post(server->link, &op);
    if (!link_wait(server->link, &op)) return lost();
    if (!buffer->is_host) atomic_fetch_add(&server->device_memory.bytes, message->size);
    return GGML_HOST_OK;
}

// After a failure bytes without meaning are sent, as many as were promised: the receiver learns
// of the failure by the answer. GGML_HOST_DEVICE_LOST: the peer is gone.
enum ggml_host_status transfer_out(struct server *server, const struct wire_message *message,
                                   const struct ggml_tensor *tensor,
                                   const struct held_buffer *buffer, int peer,
                                   enum ggml_host_status status) {
    struct pieces pieces;
    if (is_direct(buffer, status)) return directly(server, message, tensor, buffer, peer, false);
    bool good = true;
    if (!begin(&pieces, server, (size_t)message->size, peer, message->tag, false) &&
        status == GGML_HOST_OK)
        status = fail(GGML_HOST_OUT_OF_MEMORY, "no memory for a transfer");
    for (size_t at = 0, n; good && at < message->size; at += n) {
        const int i = (int)(at / LINK_PIECE % 2);
        n = piece_at(message, at);
        good = await(&pieces, i);
        if (good && status == GGML_HOST_OK) {
            ggml_backend_tensor_get(tensor, pieces.memory[i], (size_t)message->offset + at, n);
            status = last_status();
        }
        if (good) post(&pieces, i, n);
    }
    good = end(&pieces) && good;
    return good ? status : lost();
}

// Both pieces are posted ahead; each is posted again once the device has taken its bytes.
enum ggml_host_status transfer_in(struct server *server, const struct wire_message *message,
                                  struct ggml_tensor *tensor, const struct held_buffer *buffer,
                                  int peer, enum ggml_host_status status) {
    struct pieces pieces;
    if (is_direct(buffer, status)) return directly(server, message, tensor, buffer, peer, true);
    bool good = true;
    if (!begin(&pieces, server, (size_t)message->size, peer, message->tag, true) &&
        status == GGML_HOST_OK)
        status = fail(GGML_HOST_OUT_OF_MEMORY, "no memory for a transfer");
    for (size_t at = 0; good && at < message->size && at < 2 * (size_t)LINK_PIECE; at += LINK_PIECE)
        post(&pieces, (int)(at / LINK_PIECE), piece_at(message, at));
    for (size_t at = 0, n; good && at < message->size; at += n) {
        const int i = (int)(at / LINK_PIECE % 2);
        const size_t next = at + 2 * (size_t)LINK_PIECE;
        n = piece_at(message, at);
        good = await(&pieces, i);
        if (good && status == GGML_HOST_OK) {
            ggml_backend_tensor_set(tensor, pieces.memory[i], (size_t)message->offset + at, n);
            status = last_status();
        }
        if (good && next < message->size) post(&pieces, i, piece_at(message, next));
    }
    good = end(&pieces) && good;
    return good ? status : lost();
}

// --- measuring -----------------------------------------------------------------------------------

enum { MEASURED_ECHOES = 4, ECHO_BYTES = 4 };

// One direction of what is timed; false: the peer is gone.
static bool pass(struct server *server, const struct wire_message *message, char *bytes,
                 size_t size, bool receives) {
    struct link_op op = {.peer = (int)message->peer,
                         .tag = (int)message->tag,
                         .receives = receives,
                         .data = bytes,
                         .size = size};
    link_post(server->link, &op);
    return link_wait(server->link, &op);
}

// `size` bytes to the other node and a few back, or the other way round for the one that follows.
static bool echo(struct server *server, const struct wire_message *message, char *bytes,
                 size_t size) {
    const bool leads = message->value != 0;
    return pass(server, message, bytes, size, !leads) &&
           pass(server, message, bytes, ECHO_BYTES, leads);
}

// The least of some echoes of a few bytes, then one of many.
static bool time_echoes(struct server *server, const struct wire_message *message, char *bytes,
                        struct wire_link *out_link) {
    double least = 0;
    for (int i = 0; i <= MEASURED_ECHOES; ++i) {
        const bool is_large = i == MEASURED_ECHOES;
        const double begin = link_now();
        if (!echo(server, message, bytes, is_large ? (size_t)message->size : ECHO_BYTES))
            return false;
        const double took = link_now() - begin;
        if (i == 0 || (took < least && !is_large)) least = took;
        if (is_large && took > 0) // on a busy machine all of the few bytes may have taken longer
            out_link->bytes_per_second =
                (double)message->size / (took > least ? took - least : took);
    }
    out_link->seconds = least / 2;
    return true;
}

void transfer_measure(struct server *server, const struct wire_message *message) {
    struct wire_link link = {0};
    char *bytes = calloc(1, (size_t)message->size + ECHO_BYTES);
    enum ggml_host_status status = GGML_HOST_OK;
    if (!bytes) status = fail(GGML_HOST_OUT_OF_MEMORY, "no memory to time a transfer");
    if (bytes && !time_echoes(server, message, bytes, &link)) status = lost();
    free(bytes);
    answer(server, message->id, status, &link, message->value != 0 ? sizeof(link) : 0);
}
