// SPDX-License-Identifier: MIT
// Answers to the program, and why a request fails.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server.h"

static _Thread_local enum ggml_host_status noted;
static _Thread_local char text[LINK_TEXT];

enum ggml_host_status fail(enum ggml_host_status status, const char *why) {
    noted = status;
    snprintf(text, sizeof(text), "ggml-node: %.240s", why);
    return status;
}

enum ggml_host_status refuse(const char *why) {
    char sentence[LINK_TEXT - 16];
    snprintf(sentence, sizeof(sentence), "the program sent %s", why);
    return fail(GGML_HOST_INVALID_ARGUMENT, sentence);
}

void forget_failure(void) {
    noted = GGML_HOST_OK;
    ggml_clear_error();
}

enum ggml_host_status last_status(void) {
    return noted != GGML_HOST_OK ? noted : ggml_last_status();
}

static const char *last_text(enum ggml_host_status status) {
    if (noted != GGML_HOST_OK) return text;
    const char *said = ggml_last_error();
    return said && said[0] != '\0' ? said : ggml_host_status_text(status);
}

// False: no memory.
static bool try_to_send(struct server *server, uint64_t id, enum ggml_host_status status,
                        uint32_t value, const void *data, size_t size) {
    const struct wire_message message = {.magic = WIRE_MAGIC,
                                         .kind = WIRE_ANSWER,
                                         .id = id,
                                         .status = (int32_t)status,
                                         .value = value};
    char *bytes = malloc(sizeof(message) + size);
    if (!bytes) return false;
    memcpy(bytes, &message, sizeof(message));
    if (size > 0) memcpy(bytes + sizeof(message), data, size);
    atomic_fetch_add(&server->n_messages_sent, 1);
    return link_send(server->link, 0, bytes, sizeof(message) + size);
}

// A program waits for an answer for as long as the node answers its pings, so one that there is no
// memory for says so at least, or the node ends.
static void send(struct server *server, uint64_t id, enum ggml_host_status status, uint32_t value,
                 const void *data, size_t size) {
    static const char why[] = "ggml-node: no memory for an answer";
    if (try_to_send(server, id, status, value, data, size)) return;
    if (!try_to_send(server, id, GGML_HOST_OUT_OF_MEMORY, value, why, sizeof(why) - 1))
        server_end(server, "there is no memory for an answer");
}

void answer(struct server *server, uint64_t id, enum ggml_host_status status, const void *data,
            size_t size) {
    if (status != GGML_HOST_OK) {
        data = last_text(status);
        size = strlen(data);
    }
    send(server, id, status, WIRE_IN_ORDER, data, size);
}

// That of a graph or a sum waits for its result to be copied or few bytes of it to be read at most,
// that of other requests also for the graph that comes next, of which an older one may be forgotten
// before, or the bytes of another node; none waits for a sum.
bool answer_can_wait(struct server *server, const struct job *job) {
    const struct wire_message *message = &job->message;
    if (message->status != WIRE_OR_NEXT || message->queue == 0) return false;
    pthread_mutex_lock(&server->lock);
    const struct job *next = server->queues[message->queue].first;
    const uint32_t kind = next ? next->message.kind : WIRE_ANSWER;
    const bool is_read = kind == WIRE_GET && next->message.tag == 0;
    pthread_mutex_unlock(&server->lock);
    const bool is_short = message->kind != WIRE_COMPUTE && message->kind != WIRE_REDUCE;
    const bool can_wait =
        kind == WIRE_SEND || kind == WIRE_COPY || is_read ||
        (is_short && (kind == WIRE_COMPUTE || kind == WIRE_RECEIVE || kind == WIRE_GRAPH_FREE));
    if (can_wait) atomic_fetch_add(&server->n_left_out, 1);
    return can_wait;
}

void answer_refusal(struct server *server, uint64_t id, enum ggml_host_status status,
                    const char *why) {
    char sentence[LINK_TEXT];
    const int n = snprintf(sentence, sizeof(sentence), "ggml-node: the program sent %.200s", why);
    send(server, id, status, 0, sentence, (size_t)n);
}
