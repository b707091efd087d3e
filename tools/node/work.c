// SPDX-License-Identifier: MIT
// What each request makes this process do. By the thread of its queue.
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server.h"

// Answers a request with a status alone; the message of a failure goes with it.
static void answer_status(struct server *server, const struct job *job,
                          enum ggml_host_status status) {
    if (status == GGML_HOST_OK && answer_can_wait(server, job)) return;
    answer(server, job->message.id, status, NULL, 0);
}

// Answers with the status of the calls before: ggml's functions without a result leave their
// failure in this thread's last error.
static enum ggml_host_status answer_last_status(struct server *server, const struct job *job) {
    const enum ggml_host_status status = last_status();
    answer_status(server, job, status);
    return status;
}

// The device that a request names; NULL after the error was set.
static ggml_backend_dev_t device_of(const struct server *server, const struct job *job) {
    if (job->message.device < server->n_devices) return server->devices[job->message.device];
    refuse("a device that there is not");
    return NULL;
}

// --- what there is -------------------------------------------------------------------------------

// Copies a text into a field of the wire, cut and terminated.
static void copy_text(char *to, const char *from) {
    strncpy(to, from ? from : "", WIRE_TEXT - 1);
    to[WIRE_TEXT - 1] = '\0';
}

// What the program has to know of a device without asking again, and its figures if the plugin
// tells any.
static void describe_device(ggml_backend_dev_t device, struct wire_device *out) {
    struct ggml_backend_dev_props props;
    struct ggml_device_figures figures = {.size = sizeof(figures)};
    ggml_backend_buffer_type_t buft = ggml_backend_dev_buffer_type(device);
    memset(out, 0, sizeof(*out));
    ggml_backend_dev_get_props(device, &props);
    copy_text(out->name, props.name);
    copy_text(out->description, props.description);
    copy_text(out->id, props.device_id);
    out->memory = (struct wire_memory){props.memory_free, props.memory_total};
    out->alignment = ggml_backend_buft_get_alignment(buft);
    out->max_size = ggml_backend_buft_get_max_size(buft);
    out->type = (uint32_t)props.type;
    out->plain_sizes = buft->table->get_alloc_size == NULL;
    out->async = props.caps.async;
    if (ggml_backend_dev_figures(device, &figures) != GGML_HOST_OK) return;
    out->has_figures = 1;
    out->flops = figures.flops;
    out->bytes_per_second = figures.bytes_per_second;
    out->launch_seconds = figures.launch_seconds;
    memcpy(out->flops_of, figures.flops_of, sizeof(out->flops_of));
}

// Answers with this node and all its devices, in one message.
static void describe(struct server *server, const struct job *job) {
    struct wire_node node = {.process = (uint32_t)getpid(), .n_devices = server->n_devices};
    const size_t size = sizeof(node) + server->n_devices * sizeof(struct wire_device);
    char *bytes = malloc(size);
    if (!bytes) {
        answer_status(server, job, fail(GGML_HOST_OUT_OF_MEMORY, "no memory"));
        return;
    }
    gethostname(node.host, sizeof(node.host) - 1);
    copy_text(node.version, ggml_version());
    memcpy(bytes, &node, sizeof(node));
    for (uint32_t i = 0; i < server->n_devices; ++i) {
        struct wire_device device;
        describe_device(server->devices[i], &device);
        memcpy(bytes + sizeof(node) + i * sizeof(device), &device, sizeof(device));
    }
    answer(server, job->message.id, GGML_HOST_OK, bytes, size);
    free(bytes);
}

// Answers with free and total bytes of a device.
static void tell_memory(struct server *server, const struct job *job) {
    ggml_backend_dev_t device = device_of(server, job);
    size_t free_bytes = 0, total = 0;
    if (device) ggml_backend_dev_memory(device, &free_bytes, &total);
    const struct wire_memory memory = {free_bytes, total};
    answer(server, job->message.id, device ? GGML_HOST_OK : last_status(), &memory, sizeof(memory));
}

// --- questions -----------------------------------------------------------------------------------

// Makes tensors of a node and its sources, without memory, for questions about them. False for a
// view of a view or of itself: such chains could have a loop.
static bool restore_list(const struct job *job, struct ggml_tensor *tensors, size_t count) {
    struct wire_tensor from;
    for (size_t i = 0; i < count; ++i) {
        wire_read_tensor(job->rest, i, &from);
        wire_restore(&from, &tensors[i]);
        for (int k = 0; k < GGML_MAX_SRC; ++k)
            tensors[i].src[k] = from.src[k] >= 0 ? &tensors[from.src[k]] : NULL;
        tensors[i].view_src = from.view_src >= 0 ? &tensors[from.view_src] : NULL;
    }
    for (size_t i = 0; i < count; ++i) {
        if (!tensors[i].view_src) continue;
        if (tensors[i].view_src == &tensors[i] || tensors[i].view_src->view_src) return false;
    }
    return true;
}

// Answers whether the device computes a node, and whether it wants it for weights elsewhere.
static void tell_support(struct server *server, const struct job *job) {
    enum { MOST = GGML_MAX_SRC + 2 };
    struct ggml_tensor tensors[MOST];
    ggml_backend_dev_t device = device_of(server, job);
    uint64_t support = 0;
    if (!device || job->message.n_tensors > MOST ||
        !restore_list(job, tensors, job->message.n_tensors)) {
        answer_status(server, job, refuse("a node that can't be"));
        return;
    }
    if (ggml_backend_dev_supports_op(device, tensors)) support |= WIRE_SUPPORTED;
    if (ggml_backend_dev_offload_op(device, tensors)) support |= WIRE_OFFLOADED;
    answer(server, job->message.id, GGML_HOST_OK, &support, sizeof(support));
}

// Answers how many bytes a tensor takes in the device's memory.
static void tell_size(struct server *server, const struct job *job) {
    struct wire_tensor from;
    struct ggml_tensor tensor;
    ggml_backend_dev_t device = device_of(server, job);
    uint64_t size = 0;
    wire_read_tensor(job->rest, 0, &from);
    wire_restore(&from, &tensor);
    if (device)
        size = ggml_backend_buft_get_alloc_size(ggml_backend_dev_buffer_type(device), &tensor);
    answer(server, job->message.id, device ? GGML_HOST_OK : last_status(), &size, sizeof(size));
}

// --- buffers -------------------------------------------------------------------------------------

// Clears a buffer or sets its usage.
static void change_buffer(struct server *server, const struct job *job) {
    struct held_buffer *held = buffer_find(server, job->message.object);
    if (held && job->message.kind == WIRE_BUFFER_CLEAR)
        ggml_backend_buffer_clear(held->buffer, (uint8_t)job->message.value);
    if (held && job->message.kind == WIRE_BUFFER_USAGE)
        ggml_backend_buffer_set_usage(held->buffer,
                                      (enum ggml_backend_buffer_usage)job->message.value);
    answer_last_status(server, job);
    buffer_release(server, held);
}

// --- transfers -----------------------------------------------------------------------------------

// Reads a small tensor and sends its bytes within the answer.
static void give_inline(struct server *server, const struct job *job,
                        const struct ggml_tensor *tensor) {
    const size_t size = (size_t)job->message.size;
    if (size > WIRE_INLINE_BYTES) {
        answer_status(server, job, refuse("a large transfer without a tag"));
        return;
    }
    char bytes[WIRE_INLINE_BYTES];
    ggml_backend_tensor_get(tensor, bytes, (size_t)job->message.offset, size);
    answer(server, job->message.id, last_status(), bytes, size);
}

// Whether the tag is one of those for transfers: others carry messages.
static bool is_tag(const struct wire_message *message) {
    return message->tag >= LINK_FIRST_TAG && message->tag < LINK_FIRST_TAG + LINK_TAGS;
}

// Whether the peer is another node; 0 is the program, which has requests of its own for it.
static bool is_peer(const struct server *server, const struct wire_message *message) {
    return message->peer > 0 && (int)message->peer < link_count(server->link) &&
           (int)message->peer != link_self(server->link);
}

// A transfer of bytes beside the message, from or to the program or another node. Without a
// place for the tensor it is made all the same, into nothing: the other side has begun it and
// waits.
static void transfer_alone(struct server *server, const struct job *job, struct ggml_tensor *tensor,
                           const struct held_buffer *held, bool comes) {
    const struct wire_message *message = &job->message;
    const bool from_program = message->kind == WIRE_SET || message->kind == WIRE_GET;
    const int peer = from_program ? 0 : (int)message->peer;
    if (!is_tag(message) || (!from_program && !is_peer(server, message))) {
        answer_status(server, job, refuse("a transfer by a tag or peer that there is not"));
        return;
    }
    const enum ggml_host_status before = held ? GGML_HOST_OK : last_status();
    const enum ggml_host_status status =
        comes ? transfer_in(server, message, tensor, held, peer, before)
              : transfer_out(server, message, tensor, held, peer, before);
    answer_status(server, job, status);
}

// The outcome of a quiet set is told only if it failed.
static void answer_set(struct server *server, const struct job *job) {
    if (job->message.value != WIRE_QUIET || last_status() != GGML_HOST_OK)
        answer_last_status(server, job);
}

bool work_set_at_once(struct server *server, const struct job *job) {
    const struct wire_message *message = &job->message;
    struct wire_tensor from;
    struct placed place;
    forget_failure();
    wire_read_tensor(job->rest, 0, &from);
    const bool placed = tensor_place_alone(server, &from, &place);
    const bool waits = placed && !(place.held && place.held->is_host);
    if (placed && !waits)
        ggml_backend_tensor_set(&place.tensor, (const char *)job->rest + sizeof(from),
                                (size_t)message->offset, (size_t)message->size);
    if (!waits) answer_set(server, job);
    buffer_release(server, place.held);
    return !waits;
}

static void measure(struct server *server, const struct job *job) {
    const struct wire_message *message = &job->message;
    if (is_tag(message) && is_peer(server, message) && message->size <= WIRE_MAX_MEASURED)
        transfer_measure(server, message);
    else
        answer_status(server, job, refuse("a measurement that can't be"));
}

// Answers that the bytes were taken, or why not.
static void set_from_file(struct server *server, const struct job *job,
                          struct ggml_tensor *tensor) {
    const uint64_t taken = 1;
    const enum ggml_host_status status = file_set(server, &job->message, job->rest, tensor);
    answer(server, job->message.id, status, &taken, sizeof(taken));
}

// Requests about one tensor's bytes. The buffer is held until the end, so that freeing it
// meanwhile does no harm.
static void access_tensor(struct server *server, const struct job *job) {
    const struct wire_message *message = &job->message;
    struct wire_tensor from;
    struct placed place;
    struct ggml_tensor *tensor = &place.tensor;
    const size_t offset = (size_t)message->offset, size = (size_t)message->size;
    const bool comes = message->kind == WIRE_SET || message->kind == WIRE_RECEIVE;
    wire_read_tensor(job->rest, 0, &from);
    const bool placed = tensor_place_alone(server, &from, &place);
    if (message->tag != 0 || message->kind == WIRE_SEND || message->kind == WIRE_RECEIVE) {
        transfer_alone(server, job, tensor, place.held, comes);
    } else if (!placed) {
        answer_status(server, job, last_status());
    } else if (message->kind == WIRE_SET_FILE) {
        set_from_file(server, job, tensor);
    } else if (message->kind == WIRE_GET) {
        give_inline(server, job, tensor);
    } else if (message->kind == WIRE_SET) {
        ggml_backend_tensor_set(tensor, (const char *)job->rest + sizeof(from), offset, size);
        answer_set(server, job);
    } else {
        ggml_backend_tensor_memset(tensor, (uint8_t)message->value, offset, size);
        answer_last_status(server, job);
    }
    buffer_release(server, place.held);
}

// A copy within this node, also from one device to another.
static void copy_tensor(struct server *server, const struct job *job) {
    struct wire_tensor from[2];
    struct placed places[2] = {{.held = NULL}, {.held = NULL}};
    bool placed = true;
    for (int i = 0; i < 2; ++i) {
        wire_read_tensor(job->rest, (size_t)i, &from[i]);
        placed = placed && tensor_place_alone(server, &from[i], &places[i]);
    }
    if (placed) ggml_backend_tensor_copy(&places[0].tensor, &places[1].tensor);
    answer_last_status(server, job);
    buffer_release(server, places[0].held);
    buffer_release(server, places[1].held);
}

// --- streams -------------------------------------------------------------------------------------

// Makes the stream of a queue. Queue 0 is for requests without a stream and gets none.
static void new_stream(struct queue *queue, const struct job *job) {
    struct server *server = queue->server;
    ggml_backend_dev_t device = device_of(server, job);
    char params[4097] = "";
    if (queue->index == 0 || queue->backend) {
        answer_status(server, job, refuse("a stream that there is already"));
        return;
    }
    memcpy(params, job->rest, job->rest_size);
    if (device) queue->backend = ggml_backend_dev_init(device, job->rest_size > 0 ? params : NULL);
    queue->device = job->message.device;
    answer_status(server, job, queue->backend ? GGML_HOST_OK : last_status());
}

// The plugin's own status, if it set one; otherwise the one that the result of a graph stands
// for.
static enum ggml_host_status status_of(enum ggml_status status) {
    if (status == GGML_STATUS_SUCCESS) return GGML_HOST_OK;
    const enum ggml_host_status said = last_status();
    if (said != GGML_HOST_OK) return said;
    return status == GGML_STATUS_ALLOC_FAILED ? GGML_HOST_OUT_OF_MEMORY
           : status == GGML_STATUS_ABORTED    ? GGML_HOST_ABORTED
                                              : GGML_HOST_FAILED;
}

// Computes a graph of the queue and waits for it. The answer tells the program that it is done.
static void compute(struct queue *queue, const struct job *job) {
    struct server *server = queue->server;
    if (!queue->backend) {
        answer_status(server, job, refuse("a graph for a queue that is no stream"));
        return;
    }
    struct held_graph *graph = graph_take(server, &job->message, job->rest);
    enum ggml_host_status status = GGML_HOST_OK;
    if (graph) {
        status = status_of(ggml_backend_graph_compute(queue->backend, graph->graph));
        graph_release(server, graph);
    } else {
        status = last_status();
        if (status == GGML_HOST_OK) status = fail(GGML_HOST_OUT_OF_MEMORY, "no memory for a graph");
    }
    answer_status(server, job, status);
}

// What it waits for was asked for earlier, so queues don't wait for each other.
static void wait_for(struct queue *queue, const struct job *job) {
    struct server *server = queue->server;
    const uint64_t other = job->message.object;
    if (other >= WIRE_MAX_QUEUES || job->message.offset >= job->message.id) {
        answer_status(server, job, refuse("a wait for what comes later"));
        return;
    }
    pthread_mutex_lock(&server->lock);
    while (server->queues[other].last_done < job->message.offset && !server->ends)
        pthread_cond_wait(&server->progress, &server->lock);
    pthread_mutex_unlock(&server->lock);
    answer_status(server, job, GGML_HOST_OK);
}

// --- requests ------------------------------------------------------------------------------------

// Does one request and answers it, exactly once.
void work_do(struct queue *queue, const struct job *job) {
    struct server *server = queue->server;
    forget_failure();
    if (job->refusal) {
        answer_status(server, job, refuse(job->refusal));
        return;
    }
    switch (job->message.kind) {
    case WIRE_DESCRIBE: describe(server, job); break;
    case WIRE_MEMORY: tell_memory(server, job); break;
    case WIRE_BUFFER_NEW: answer_status(server, job, buffer_make(server, &job->message)); break;
    case WIRE_BUFFER_FREE:
        answer_status(server, job, buffer_end(server, job->message.object));
        break;
    case WIRE_BUFFER_CLEAR:
    case WIRE_BUFFER_USAGE: change_buffer(server, job); break;
    case WIRE_ALLOC_SIZE: tell_size(server, job); break;
    case WIRE_SUPPORTS: tell_support(server, job); break;
    case WIRE_STREAM_NEW: new_stream(queue, job); break;
    case WIRE_STREAM_FREE:
        graph_forget_queue(server, queue->index);
        ggml_backend_free(queue->backend);
        queue->backend = NULL;
        answer_last_status(server, job);
        break;
    case WIRE_SET:
    case WIRE_SET_FILE:
    case WIRE_GET:
    case WIRE_MEMSET:
    case WIRE_SEND:
    case WIRE_RECEIVE: access_tensor(server, job); break;
    case WIRE_COPY: copy_tensor(server, job); break;
    case WIRE_REDUCE: answer_status(server, job, reduce(queue, job)); break;
    case WIRE_COMPUTE: compute(queue, job); break;
    case WIRE_GRAPH_FREE:
        graph_forget(server, job->message.object, NULL);
        answer_last_status(server, job);
        break;
    case WIRE_WAIT: wait_for(queue, job); break;
    case WIRE_MEASURE: measure(server, job); break;
    default: answer_status(server, job, refuse("a request that there is not"));
    }
}
