// SPDX-License-Identifier: MIT
// What a device computes and how much memory a tensor takes: asked once for each node or tensor
// that differs in more than its name and place.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "ggml-shape.h"

enum { SLOTS = 8192 };

struct known_op {
    uint64_t key[2]; // 0 and 0: nothing
    uint64_t answer;
};

// By hash; a newer one displaces an older one in its slot.
struct known_ops {
    pthread_mutex_t lock;
    struct known_op slots[SLOTS];
};

static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

// The device's table, made at the first question; NULL without memory, where each is asked.
static struct known_ops *ops_of(struct remote_device *device) {
    pthread_mutex_lock(&making);
    if (!device->ops) {
        device->ops = calloc(1, sizeof(*device->ops));
        if (device->ops) pthread_mutex_init(&device->ops->lock, NULL);
    }
    struct known_ops *ops = device->ops;
    pthread_mutex_unlock(&making);
    return ops;
}

// Two sums of 64 bits by multiplication (as FNV-1a, but eight bytes at a time).
static void hash(const void *data, size_t size, uint32_t kind, uint64_t out_key[2]) {
    uint64_t a = UINT64_C(0xcbf29ce484222325) ^ kind, b = UINT64_C(0x9e3779b97f4a7c15) + kind;
    for (size_t i = 0; i + sizeof(uint64_t) <= size; i += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, (const char *)data + i, sizeof(word));
        a = (a ^ word) * UINT64_C(0x100000001b3);
        a ^= a >> 29;
        b = (b + word) * UINT64_C(0xbf58476d1ce4e5b9);
        b ^= b >> 31;
    }
    out_key[0] = a;
    out_key[1] = b | 1;
}

// Whether the answer is known. Keys of 128 bits are taken as equal tensors.
static bool look_up(struct known_ops *ops, const uint64_t key[2], uint64_t *out_answer) {
    pthread_mutex_lock(&ops->lock);
    const struct known_op *slot = &ops->slots[key[0] % SLOTS];
    const bool found = slot->key[0] == key[0] && slot->key[1] == key[1];
    *out_answer = slot->answer;
    pthread_mutex_unlock(&ops->lock);
    return found;
}

static void note(struct known_ops *ops, const uint64_t key[2], uint64_t answer) {
    pthread_mutex_lock(&ops->lock);
    ops->slots[key[0] % SLOTS] = (struct known_op){{key[0], key[1]}, answer};
    pthread_mutex_unlock(&ops->lock);
}

// Asks the node unless the same was asked before: a scheduler asks for every node of every new
// graph, and a question takes a round trip.
static bool ask(struct remote_device *device, struct wire_message *message,
                const struct wire_tensor *tensors, size_t count, uint64_t *out_answer) {
    const struct parts parts = {.first = tensors, .first_size = count * sizeof(*tensors)};
    struct known_ops *ops = ops_of(device);
    uint64_t key[2];
    struct request *request;
    hash(tensors, parts.first_size, message->kind, key);
    *out_answer = 0;
    if (ops && look_up(ops, key, out_answer)) return true;
    message->device = device->index;
    message->n_tensors = (uint32_t)count;
    if (client_call(device->node, message, &parts, &request) != GGML_HOST_OK) return false;
    const bool good = request->rest_size == sizeof(*out_answer);
    if (good) memcpy(out_answer, request->rest, sizeof(*out_answer));
    request_free(request);
    if (good && ops) note(ops, key, *out_answer);
    return good;
}

static bool add(struct wire_tensor *tensors, size_t *count, const struct ggml_tensor *tensor) {
    struct wire_tensor *out = &tensors[*count];
    wire_describe(tensor, out);
    memset(out->name, 0, sizeof(out->name));
    if (*count > 0) { // how it comes about doesn't matter
        out->op = GGML_OP_NONE;
        memset(out->op_params, 0, sizeof(out->op_params));
    }
    ++*count;
    return true;
}

static int32_t add_once(struct wire_tensor *tensors, const struct ggml_tensor **added,
                        size_t *count, const struct ggml_tensor *tensor) {
    for (size_t i = 0; i < *count; ++i)
        if (added[i] == tensor) return (int32_t)i;
    added[*count] = tensor;
    add(tensors, count, tensor);
    return (int32_t)*count - 1;
}

bool remote_supports(struct remote_device *device, const struct ggml_tensor *op, uint32_t which) {
    struct wire_tensor tensors[GGML_MAX_SRC + 2];
    const struct ggml_tensor *added[GGML_MAX_SRC + 2];
    struct wire_message message = {.kind = WIRE_SUPPORTS};
    size_t count = 0;
    uint64_t answer;
    if (!ggml_node_is_known(op) || wire_calls_program((int32_t)op->op) ||
        atomic_load(&device->node->lost)) {
        return false;
    }
    added[0] = op;
    add(tensors, &count, op);
    for (int k = 0; k < GGML_MAX_SRC; ++k)
        tensors[0].src[k] = op->src[k] ? add_once(tensors, added, &count, op->src[k]) : -1;
    if (op->view_src) {
        const int32_t root = add_once(tensors, added, &count, op->view_src);
        tensors[0].view_src = root;
    }
    return ask(device, &message, tensors, count, &answer) && (answer & which) != 0;
}

size_t remote_alloc_size(struct remote_device *device, const struct ggml_tensor *tensor) {
    struct wire_message message = {.kind = WIRE_ALLOC_SIZE};
    const size_t plain = ggml_nbytes(tensor);
    struct wire_tensor described;
    size_t count = 0;
    uint64_t answer;
    if (device->about.plain_sizes || atomic_load(&device->node->lost)) return plain;
    add(&described, &count, tensor);
    described.op = GGML_OP_NONE;
    memset(described.op_params, 0, sizeof(described.op_params));
    if (!ask(device, &message, &described, count, &answer)) return plain;
    return answer > plain ? (size_t)answer : plain;
}
