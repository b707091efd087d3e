// SPDX-License-Identifier: MIT
// ggml-node told nonsense: random and damaged requests in random order, to queues that work at the
// same time, on the CPU. Sanitizers see what a request reads and writes. A link that is none takes
// the place of MPI.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/data/sha256.h"
#include "node/server.h" // before a macro "fail"

#include <cmocka.h>

enum {
    SERVERS = 300,
    REQUESTS = 120,
    FIRST_ID = 100,
    MOST_TENSORS = 6,
    OBJECTS = 3,
    QUEUES = 3,
    PEERS = 3,
    FEW_BYTES = 4096
};

// --- a folder of files ---------------------------------------------------------------------------

enum { FILE_BYTES = 200 };
#define FILE_NAME "weights"

static char folder[] = "/tmp/ggml-node-XXXXXX";
static float file_floats[FILE_BYTES / sizeof(float)];

static void path_in(const char *name, char path[64]) {
    snprintf(path, 64, "%s/%s", folder, name);
}

// A file, a link to one that is elsewhere, and a pipe, which nobody writes to.
static int make_folder(void **state) {
    char path[64], other[64];
    (void)state;
    if (!mkdtemp(folder)) return -1;
    for (size_t i = 0; i < sizeof(file_floats) / sizeof(file_floats[0]); ++i)
        file_floats[i] = (float)i + 0.5f;
    path_in(FILE_NAME, path);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(file_floats, 1, FILE_BYTES, file) != FILE_BYTES || fclose(file) != 0)
        return -1;
    path_in("link", other);
    if (symlink(path, other) != 0) return -1;
    path_in("pipe", other);
    return mkfifo(other, 0600);
}

static int remove_folder(void **state) {
    static const char *const names[] = {FILE_NAME, "link", "pipe"};
    char path[64];
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
        path_in(names[i], path);
        unlink(path);
    }
    return rmdir(folder);
}

// --- no link -------------------------------------------------------------------------------------

static atomic_int n_answers, n_good, n_computed;
static uint32_t kinds_sent[FIRST_ID + REQUESTS]; // by number of the request
static atomic_bool holds;                        // transfers don't end
static atomic_int n_waiting;                     // for one to end
static atomic_int answers[FIRST_ID];             // by number: 1 + status
static float answered;                           // what followed the last one of four bytes
static char said[LINK_TEXT];                     // by the last one that failed
static atomic_size_t bytes_posted;
static atomic_bool lacks_memory; // for more than a few bytes at once

extern void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size) {
    return atomic_load(&lacks_memory) && size > FEW_BYTES ? NULL : __real_calloc(n, size);
}

extern void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__wrap_malloc(size_t size) {
    return atomic_load(&lacks_memory) && size > FEW_BYTES ? NULL : __real_malloc(size);
}

int link_count(const struct link *link) {
    (void)link;
    return PEERS;
}

int link_self(const struct link *link) {
    (void)link;
    return 1;
}

bool link_has_cuda(const struct link *link) {
    (void)link;
    return true;
}

double link_now(void) {
    return 0;
}

void link_cond_init(pthread_cond_t *cond) {
    pthread_cond_init(cond, NULL);
}

static struct link_op *posted; // that call back
static pthread_mutex_t posted_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t calling_lock = PTHREAD_MUTEX_INITIALIZER;

// What was posted to the last peer fails, what to others never ends unless it is cancelled.
static struct link_op *take_posted(void) {
    pthread_mutex_lock(&posted_lock);
    struct link_op **at = &posted;
    while (*at && (*at)->peer != PEERS - 1 && !atomic_load(&(*at)->is_cancelled))
        at = &(*at)->next;
    struct link_op *op = *at;
    if (op) *at = op->next;
    pthread_mutex_unlock(&posted_lock);
    return op;
}

// As the link's thread: one at a time.
static bool call_back(void) {
    pthread_mutex_lock(&calling_lock);
    struct link_op *op = take_posted();
    if (op) {
        op->failed = true;
        op->on_done(op);
    }
    pthread_mutex_unlock(&calling_lock);
    return op != NULL;
}

void link_await(struct link *link, const struct link_waiting *waiting) {
    (void)link;
    while (!waiting->is_over(waiting->context)) {
        pthread_mutex_unlock(waiting->lock);
        if (!call_back()) usleep(100);
        pthread_mutex_lock(waiting->lock);
    }
}

void link_post(struct link *link, struct link_op *op) {
    (void)link;
    if (op->receives) memset(op->data, 0, op->size);
    atomic_fetch_add(&bytes_posted, op->size);
    if (!op->on_done) return;
    pthread_mutex_lock(&posted_lock);
    op->next = posted;
    posted = op;
    pthread_mutex_unlock(&posted_lock);
}

void link_cancel(struct link *link, struct link_op *op) {
    (void)link;
    atomic_store(&op->is_cancelled, true);
}

bool link_wait(struct link *link, struct link_op *op) {
    (void)link;
    atomic_fetch_add(&n_waiting, 1);
    while (atomic_load(&holds))
        usleep(1000);
    atomic_fetch_sub(&n_waiting, 1);
    return op->peer != PEERS - 1;
}

bool link_wait_unless(struct link *link, struct link_op *op, bool (*gives_up)(void *context),
                      void *context) {
    return !gives_up(context) && link_wait(link, op);
}

bool link_send(struct link *link, int peer, void *bytes, size_t size) {
    struct wire_message message;
    const void *rest;
    const char *why;
    (void)link;
    // A program takes what the node sends.
    assert_true(peer == 0 && wire_read(bytes, size, &message, &rest, &why));
    atomic_fetch_add(&n_answers, 1);
    const bool good = message.status == GGML_HOST_OK;
    const bool is_known = message.id < FIRST_ID + REQUESTS;
    atomic_fetch_add(&n_good, good);
    if (good && is_known && kinds_sent[message.id] == WIRE_COMPUTE)
        atomic_fetch_add(&n_computed, 1);
    if (size - sizeof(message) == sizeof(answered)) memcpy(&answered, rest, sizeof(answered));
    if (!good && message.id < FIRST_ID)
        snprintf(said, sizeof(said), "%.*s", (int)(size - sizeof(message)), (const char *)rest);
    if (message.id < FIRST_ID) atomic_store(&answers[message.id], 1 + message.status);
    free(bytes);
    return true;
}

void link_drop(struct link *link, int peer) {
    (void)link;
    assert_in_range(peer, 1, PEERS - 1);
}

// --- requests ------------------------------------------------------------------------------------

static uint64_t seed;

static uint32_t next(uint32_t below) {
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % below;
}

static struct wire_tensor any_tensor(int32_t n, bool is_node) {
    static const int32_t types[] = {GGML_TYPE_F32, GGML_TYPE_F32,  GGML_TYPE_F32, GGML_TYPE_F32,
                                    GGML_TYPE_F16, GGML_TYPE_Q8_0, GGML_TYPE_I32, GGML_TYPE_I64};
    static const int64_t extents[] = {1, 1, 2, 3, 4, 8, 32, 64, 0};
    struct wire_tensor tensor = {.type = types[next(8)], .view_src = -1, .use_count = 1};
    const uint64_t size = ggml_type_size((enum ggml_type)tensor.type);
    const int64_t block = ggml_blck_size((enum ggml_type)tensor.type);
    tensor.ne[0] = block > 1 ? block * (1 + next(2)) : extents[next(9)];
    for (int i = 1; i < GGML_MAX_DIMS; ++i)
        tensor.ne[i] = extents[next(i == 1 ? 9 : 3)];
    tensor.nb[0] = size;
    tensor.nb[1] = size * (uint64_t)(tensor.ne[0] / block);
    for (int i = 2; i < GGML_MAX_DIMS; ++i)
        tensor.nb[i] = tensor.nb[i - 1] * (uint64_t)tensor.ne[i - 1];
    for (int k = 0; k < GGML_MAX_SRC; ++k)
        tensor.src[k] =
            n > 0 && is_node && (k < 2 || next(4) == 0) ? (int32_t)next((uint32_t)n) : -1;
    if (is_node) tensor.op = (int32_t)next(GGML_OP_COUNT);
    if (is_node) tensor.flags = GGML_TENSOR_FLAG_COMPUTE;
    for (int i = 0; i < 4 && is_node; ++i)
        tensor.op_params[i] = next(3) ? (int32_t)next(4) : (int32_t)(next(1 << 16) << 16);
    if (next(8) == 0 && n > 0) tensor.view_src = (int32_t)next((uint32_t)n);
    tensor.buffer = next(16) ? 1 + next(OBJECTS) : 0;
    tensor.offset = 32 * (uint64_t)next(64);
    strcpy(tensor.name, "any");
    return tensor;
}

struct request {
    struct wire_message message;
    unsigned char rest[MOST_TENSORS * sizeof(struct wire_change) + 64];
    size_t size;
};

static void put(struct request *request, const void *bytes, size_t size) {
    memcpy(request->rest + request->size, bytes, size);
    request->size += size;
}

// As a program makes one, but for the operation: one node, operands of its shape that lie
// somewhere.
static void put_plain_graph(struct request *request) {
    const uint32_t n = 3, n_sources = 1 + next(2);
    static const int32_t usual[] = {
        GGML_OP_ADD,    GGML_OP_SUB,   GGML_OP_MUL,      GGML_OP_DIV,      GGML_OP_SQR,
        GGML_OP_SQRT,   GGML_OP_SCALE, GGML_OP_CONT,     GGML_OP_DUP,      GGML_OP_CPY,
        GGML_OP_NORM,   GGML_OP_UNARY, GGML_OP_RMS_NORM, GGML_OP_CLAMP,    GGML_OP_ROPE,
        GGML_OP_REPEAT, GGML_OP_ACC,   GGML_OP_SET,      GGML_OP_SOFT_MAX, GGML_OP_L2_NORM};
    struct wire_tensor like;
    do {
        like = any_tensor(0, false);
    } while (like.type != GGML_TYPE_F32 && next(4));
    like.view_src = -1;
    request->message.n_tensors = n;
    request->message.n_nodes = 1;
    request->message.size = n;
    for (uint64_t i = 0; i < n; ++i) {
        struct wire_change change = {i, like};
        change.tensor.buffer = 1 + next(OBJECTS);
        change.tensor.offset = 256 * (uint64_t)next(8);
        if (i == 0) {
            const struct wire_tensor node = any_tensor((int32_t)n, true);
            change.tensor.op = next(4) ? usual[next(sizeof(usual) / sizeof(usual[0]))] : node.op;
            change.tensor.flags = node.flags;
            memcpy(change.tensor.op_params, node.op_params, sizeof(node.op_params));
            for (uint32_t k = 0; k < n_sources; ++k)
                change.tensor.src[k] = 1 + (int32_t)k;
        }
        put(request, &change, sizeof(change));
    }
}

static void put_graph(struct request *request) {
    struct wire_message *message = &request->message;
    const uint32_t n = 2 + next(MOST_TENSORS - 1);
    const bool is_new = next(3) != 0;
    message->n_tensors = is_new ? n : 0;
    message->n_nodes = is_new ? 1 + next(n - 1) : 0;
    message->size = is_new ? n : next(n);
    for (uint64_t i = 0; i < message->size; ++i) {
        const bool is_node = i < message->n_nodes || (!is_new && next(2));
        const struct wire_change change = {next(16) ? i : next(MOST_TENSORS),
                                           any_tensor((int32_t)n, is_node)};
        put(request, &change, sizeof(change));
    }
}

static struct request any_request(uint64_t id) {
    static const uint32_t kinds[] = {WIRE_COMPUTE, WIRE_COMPUTE, WIRE_COMPUTE, WIRE_COMPUTE,
                                     WIRE_SET,     WIRE_GET,     WIRE_COPY,    WIRE_BUFFER_NEW};
    struct request request = {.size = 0};
    struct wire_message *message = &request.message;
    uint32_t kind = next(2) ? kinds[next(8)] : 1 + next(WIRE_KINDS - 1);
    // What is freed is made again before long.
    if (kind == WIRE_STREAM_FREE && next(4)) kind = WIRE_STREAM_NEW;
    if (kind == WIRE_BUFFER_FREE && next(4)) kind = WIRE_BUFFER_NEW;
    *message =
        (struct wire_message){.magic = WIRE_MAGIC,
                              .kind = kind == WIRE_BYE || kind == WIRE_WAIT ? WIRE_PING : kind,
                              .id = id,
                              .queue = 1 + next(QUEUES),
                              .device = next(16) == 0,
                              .object = 1 + next(OBJECTS),
                              .peer = next(PEERS + 1)};
    struct wire_tensor tensors[2] = {any_tensor(2, kind == WIRE_SUPPORTS), any_tensor(0, false)};
    const unsigned char bytes[64] = {0};
    if (kind == WIRE_COMPUTE) {
        (next(3) ? put_plain_graph : put_graph)(&request);
        return request;
    }
    message->size = 4 * next(16);
    message->offset = 4 * next(16);
    if (kind == WIRE_SEND || kind == WIRE_RECEIVE) message->tag = LINK_FIRST_TAG + next(4);
    if (kind == WIRE_SUPPORTS) message->n_tensors = 2;
    if (kind == WIRE_BUFFER_NEW) message->size = 1 + next(1 << 14);
    const bool has_one = kind == WIRE_SET || kind == WIRE_GET || kind == WIRE_MEMSET ||
                         kind == WIRE_SEND || kind == WIRE_RECEIVE || kind == WIRE_ALLOC_SIZE;
    if (has_one) put(&request, tensors, sizeof(tensors[0]));
    if (kind == WIRE_COPY || kind == WIRE_SUPPORTS) put(&request, tensors, sizeof(tensors));
    if (kind == WIRE_SET) put(&request, bytes, (size_t)message->size);
    if (kind == WIRE_SET_FILE) {
        const struct wire_file file = {next(8), next(4) ? FILE_BYTES : 80, FILE_NAME};
        const uint8_t digest[WIRE_DIGEST] = {0};
        put(&request, tensors, sizeof(tensors[0]));
        put(&request, &file, sizeof(file));
        put(&request, digest, wire_pieces(message->size) * WIRE_DIGEST);
    }
    if (kind == WIRE_SET && next(2)) {
        message->queue = 0;
        message->value = WIRE_QUIET;
    }
    return request;
}

static void damage(unsigned char *bytes, size_t size) {
    for (uint32_t i = 0, n = 1 + next(3); i < n; ++i) {
        const int32_t value = next(4) ? (int32_t)next(64) : -1;
        memcpy(bytes + next((uint32_t)(size / 4)) * 4, &value, sizeof(value));
    }
}

static void send_request(struct server *server, const struct request *request) {
    const size_t size = sizeof(request->message) + request->size;
    unsigned char *bytes = malloc(size);
    assert_non_null(bytes);
    memcpy(bytes, &request->message, sizeof(request->message));
    memcpy(bytes + sizeof(request->message), request->rest, request->size);
    // Of the kind it says. Those that a server begins with are sound, and memory is not limited.
    const bool is_sound =
        request->message.id < FIRST_ID || request->message.kind == WIRE_BUFFER_NEW;
    if (next(4) == 0 && !is_sound) damage(bytes + 8, size - 8);
    server_take(server, 0, bytes, size);
}

static void keep_quiet(enum ggml_log_level level, const char *text, void *context) {
    (void)level;
    (void)text;
    (void)context;
}

static void run_server(void) {
    struct server server;
    server_init(&server);
    server.files = file_open_folder(folder);
    server.devices[server.n_devices++] = ggml_backend_dev_by_name("CPU");
    for (uint32_t i = 0; i < QUEUES + OBJECTS; ++i) {
        struct request first = {.message = {.magic = WIRE_MAGIC, .id = 1 + i, .size = 1 << 14}};
        first.message.kind = i < QUEUES ? WIRE_STREAM_NEW : WIRE_BUFFER_NEW;
        first.message.queue = i < QUEUES ? 1 + i : 0;
        first.message.object = i < QUEUES ? 0 : 1 + i - QUEUES;
        if (i < QUEUES) first.message.size = 0;
        send_request(&server, &first);
    }
    for (uint64_t id = FIRST_ID; id < FIRST_ID + REQUESTS; ++id) {
        const struct request request = any_request(id);
        kinds_sent[id] = request.message.kind;
        send_request(&server, &request);
    }
    // The queues do what they have before they are told to end.
    for (uint32_t queue = 0; queue <= QUEUES; ++queue) {
        pthread_mutex_lock(&server.lock);
        while (server.queues[queue].runs && server.queues[queue].first)
            pthread_cond_wait(&server.progress, &server.lock);
        pthread_mutex_unlock(&server.lock);
    }
    const struct request bye = {.message = {.magic = WIRE_MAGIC, .kind = WIRE_BYE}};
    send_request(&server, &bye);
    server_wait(&server);
    server_free(&server);
}

static void test_a_node_survives_whatever_it_is_told(void **state) {
    (void)state;
    const char *first = getenv("GGML_TEST_SEED");
    ggml_log_set(keep_quiet, NULL);
    for (uint64_t i = 0; i < SERVERS; ++i) {
        seed = (first ? strtoull(first, NULL, 10) : 1) + i;
        run_server();
    }
    print_message("# %d answers, %d good, %d of them graphs\n", atomic_load(&n_answers),
                  atomic_load(&n_good), atomic_load(&n_computed));
    assert_true(atomic_load(&n_computed) > SERVERS / 6);
    assert_true(atomic_load(&n_good) > SERVERS * (QUEUES + OBJECTS) / 2);
    assert_true(atomic_load(&n_good) < atomic_load(&n_answers));
}

// --- sets that nobody waits for ------------------------------------------------------------------

static struct wire_tensor one_float(uint64_t offset) {
    struct wire_tensor tensor = {.type = GGML_TYPE_F32,
                                 .ne = {1, 1, 1, 1},
                                 .nb = {4, 4, 4, 4},
                                 .view_src = -1,
                                 .buffer = 1,
                                 .offset = offset};
    for (int k = 0; k < GGML_MAX_SRC; ++k)
        tensor.src[k] = -1;
    return tensor;
}

static void tell(struct server *server, struct wire_message message, uint64_t offset, float value) {
    struct request request = {.message = message};
    const struct wire_tensor tensor = one_float(offset);
    request.message.magic = WIRE_MAGIC;
    if (message.kind == WIRE_SET || message.kind == WIRE_GET)
        put(&request, &tensor, sizeof(tensor));
    if (message.kind == WIRE_SET && message.tag == 0) put(&request, &value, sizeof(value));
    send_request(server, &request);
}

static void await_answer(uint64_t id) {
    for (int i = 0; i < 10000 && atomic_load(&answers[id]) == 0; ++i)
        usleep(1000);
    assert_int_not_equal(atomic_load(&answers[id]), 0);
}

static void begin_server(struct server *server) {
    for (int i = 0; i < FIRST_ID; ++i)
        atomic_store(&answers[i], 0);
    server_init(server);
    server->devices[server->n_devices++] = ggml_backend_dev_by_name("CPU");
    tell(server, (struct wire_message){.kind = WIRE_BUFFER_NEW, .id = 1, .object = 1, .size = 256},
         0, 0);
    await_answer(1);
}

static void end_server(struct server *server) {
    tell(server, (struct wire_message){.kind = WIRE_BYE}, 0, 0);
    server_wait(server);
    server_free(server);
}

static const struct wire_message quiet_set = {
    .kind = WIRE_SET, .id = 3, .size = 4, .value = WIRE_QUIET};

// Queue 0 is busy with a transfer when the set comes, so that another queue could overtake it.
static void test_a_quiet_set_is_done_before_later_requests_of_other_queues(void **state) {
    struct server server;
    (void)state;
    begin_server(&server);
    atomic_store(&holds, true);
    tell(&server,
         (struct wire_message){.kind = WIRE_SET, .id = 2, .size = 4, .tag = LINK_FIRST_TAG}, 0, 0);
    while (atomic_load(&n_waiting) == 0)
        usleep(1000);
    tell(&server, quiet_set, 64, 7.0f);
    tell(&server, (struct wire_message){.kind = WIRE_GET, .id = 4, .queue = 1, .size = 4}, 64, 0);
    usleep(50000);
    assert_int_equal(atomic_load(&answers[4]), 0);
    atomic_store(&holds, false);
    await_answer(4);
    assert_true(answered == 7.0f);
    end_server(&server);
    assert_int_equal(atomic_load(&answers[3]), 0);
}

static void test_a_quiet_set_is_answered_only_if_it_fails(void **state) {
    struct server server;
    (void)state;
    begin_server(&server);
    tell(&server, quiet_set, 8, 3.0f); // nothing else is under way: it is done at once
    tell(&server, (struct wire_message){.kind = WIRE_GET, .id = 4, .size = 4}, 8, 0);
    await_answer(4);
    assert_true(answered == 3.0f);
    assert_int_equal(atomic_load(&answers[3]), 0);
    tell(&server, quiet_set, 256, 3.0f); // beyond the buffer
    await_answer(3);
    assert_int_equal(atomic_load(&answers[3]), 1 + GGML_HOST_INVALID_ARGUMENT);
    end_server(&server);
}

// --- answers that can wait
// ------------------------------------------------------------------------

// The queue has a transfer before it and more behind it: what is done meanwhile is told by the last
// answer, but not what failed.
static void test_answers_wait_for_the_next_one(void **state) {
    const struct wire_tensor tensor = one_float(0), beyond = one_float(300);
    struct server server;
    (void)state;
    begin_server(&server);
    tell(&server, (struct wire_message){.kind = WIRE_STREAM_NEW, .id = 2, .queue = 1}, 0, 0);
    await_answer(2);
    atomic_store(&holds, true);
    for (uint64_t id = 3; id <= 8; ++id) {
        const bool copies = id >= 5 && id <= 7;
        struct request request = {.message = {.magic = WIRE_MAGIC,
                                              .kind = copies    ? WIRE_COPY
                                                      : id == 8 ? WIRE_GET
                                                                : WIRE_RECEIVE,
                                              .id = id,
                                              .status = WIRE_OR_NEXT,
                                              .queue = 1,
                                              .size = copies ? 0 : 4,
                                              .peer = id < 5 ? 2 : 0,
                                              .tag = id < 5 ? LINK_FIRST_TAG : 0}};
        if (id < 5) request.message.kind = WIRE_SET;
        put(&request, &tensor, sizeof(tensor));
        if (copies) put(&request, id == 6 ? &beyond : &tensor, sizeof(tensor));
        send_request(&server, &request);
    }
    while (atomic_load(&n_waiting) == 0)
        usleep(1000);
    atomic_store(&holds, false);
    await_answer(8);
    assert_int_equal(atomic_load(&answers[8]), 1 + GGML_HOST_OK);
    assert_int_equal(atomic_load(&answers[7]), 0);
    assert_int_equal(atomic_load(&answers[6]), 1 + GGML_HOST_INVALID_ARGUMENT);
    assert_int_equal(atomic_load(&answers[5]), 0);
    assert_int_equal(atomic_load(&answers[4]), 0);
    end_server(&server);
}

// --- bytes beside a message ----------------------------------------------------------------------

// The other side has begun to send or to receive, and MPI keeps what nobody takes.
static void test_bytes_travel_without_memory_for_them(void **state) {
    enum { BYTES = 9 << 20 };
    struct server server;
    (void)state;
    begin_server(&server);
    for (uint64_t id = 2; id <= 3; ++id) {
        struct request request = {.message = {.magic = WIRE_MAGIC,
                                              .kind = id == 2 ? WIRE_SET : WIRE_GET,
                                              .id = id,
                                              .size = BYTES,
                                              .tag = LINK_FIRST_TAG}};
        struct wire_tensor tensor = one_float(0); // more than its buffer has
        tensor.ne[0] = BYTES / 4;
        tensor.nb[1] = tensor.nb[2] = tensor.nb[3] = BYTES;
        put(&request, &tensor, sizeof(tensor));
        atomic_store(&bytes_posted, 0);
        atomic_store(&lacks_memory, true);
        send_request(&server, &request);
        await_answer(id);
        atomic_store(&lacks_memory, false);
        assert_int_equal(atomic_load(&answers[id]), 1 + GGML_HOST_INVALID_ARGUMENT);
        assert_int_equal(atomic_load(&bytes_posted), BYTES);
    }
    end_server(&server);
}

// A program whose pings are answered would wait for it for ever.
static void test_a_request_is_answered_without_memory_for_its_result(void **state) {
    struct server server;
    struct wire_tensor tensor = one_float(0);
    struct request get = {
        .message = {.magic = WIRE_MAGIC, .kind = WIRE_GET, .id = 3, .size = 2 * FEW_BYTES}};
    (void)state;
    begin_server(&server);
    tell(&server,
         (struct wire_message){.kind = WIRE_BUFFER_NEW, .id = 2, .object = 2, .size = 1 << 14}, 0,
         0);
    await_answer(2);
    tensor.buffer = 2;
    tensor.ne[0] = 2 * FEW_BYTES / 4;
    tensor.nb[1] = tensor.nb[2] = tensor.nb[3] = 2 * FEW_BYTES;
    put(&get, &tensor, sizeof(tensor));
    atomic_store(&lacks_memory, true);
    send_request(&server, &get);
    await_answer(3);
    atomic_store(&lacks_memory, false);
    assert_int_equal(atomic_load(&answers[3]), 1 + GGML_HOST_OUT_OF_MEMORY);
    end_server(&server);
}

// --- sums within a node --------------------------------------------------------------------------

// Rank `rank` of two that are both of this node, in a queue of its own, of n floats.
static void add_up(struct server *server, uint64_t id, uint32_t rank, int64_t n) {
    static const struct wire_rank ranks[2] = {{.peer = 1, .counts = 1}, {.peer = 1, .counts = 1}};
    struct request request = {.message = {.magic = WIRE_MAGIC,
                                          .kind = WIRE_REDUCE,
                                          .id = id,
                                          .queue = 1 + rank,
                                          .device = rank,
                                          .value = GGML_COMM_SUM,
                                          .object = 9,
                                          .tag = LINK_FIRST_GROUP_TAG,
                                          .peer = WIRE_BY_NODES,
                                          .n_nodes = 2}};
    struct wire_tensor tensor = one_float(64 * (uint64_t)rank);
    tensor.ne[0] = n;
    tensor.nb[1] = tensor.nb[2] = tensor.nb[3] = 4 * (uint64_t)n;
    put(&request, &tensor, sizeof(tensor));
    put(&request, ranks, sizeof(ranks));
    send_request(server, &request);
}

static bool has_meeting(struct server *server) {
    pthread_mutex_lock(&server->lock);
    const bool any = server->meetings != NULL;
    pthread_mutex_unlock(&server->lock);
    return any;
}

// Sums again and again, then one that the ranks do not agree on: who waits is told with the group.
static void test_ranks_of_a_node_add_up_in_it(void **state) {
    struct server server;
    (void)state;
    begin_server(&server);
    for (uint32_t rank = 0; rank < 2; ++rank) {
        struct wire_message stream = {.kind = WIRE_STREAM_NEW, .id = 2 + rank, .queue = 1 + rank};
        tell(&server, stream, 0, 0);
        await_answer(2 + rank);
    }
    tell(&server, quiet_set, 0, 1.0f);
    tell(&server, quiet_set, 64, 2.0f);
    for (uint64_t id = 10; id < 16; id += 2) { // 1 + 2, 3 + 3, 6 + 6
        add_up(&server, id, 1, 1);
        add_up(&server, id + 1, 0, 1);
    }
    await_answer(14);
    await_answer(15);
    for (uint32_t rank = 0; rank < 2; ++rank) {
        tell(&server, (struct wire_message){.kind = WIRE_GET, .id = 20 + rank, .size = 4},
             64 * rank, 0);
        await_answer(20 + rank);
        assert_true(answered == 12.0f);
    }
    add_up(&server, 30, 0, 1);
    while (!has_meeting(&server))
        usleep(1000);
    add_up(&server, 31, 1, 2);
    await_answer(31);
    assert_int_equal(atomic_load(&answers[31]), 1 + GGML_HOST_INVALID_ARGUMENT);
    usleep(20000);
    assert_int_equal(atomic_load(&answers[30]), 0);
    tell(&server, (struct wire_message){.kind = WIRE_GROUP_LOST, .object = 9}, 0, 0);
    await_answer(30);
    assert_int_equal(atomic_load(&answers[30]), 1 + GGML_HOST_DEVICE_LOST);
    assert_false(has_meeting(&server));
    end_server(&server);
}

// --- sums between nodes --------------------------------------------------------------------------

enum { RING_FLOATS = 50000 };

// The first rank's part of a sum of many bytes; `others` are the peers of the other two.
static void begin_ring(struct server *server, uint64_t id, const uint32_t others[2]) {
    const struct wire_rank ranks[3] = {
        {.peer = 1, .counts = 1}, {.peer = others[0], .counts = 1}, {.peer = others[1]}};
    struct request request = {.message = {.magic = WIRE_MAGIC,
                                          .kind = WIRE_REDUCE,
                                          .id = id,
                                          .queue = 1,
                                          .value = GGML_COMM_SUM,
                                          .object = 9,
                                          .tag = LINK_FIRST_GROUP_TAG,
                                          .n_nodes = 3}};
    struct wire_tensor tensor = one_float(0);
    tensor.buffer = 2;
    tensor.ne[0] = RING_FLOATS;
    tensor.nb[1] = tensor.nb[2] = tensor.nb[3] = RING_FLOATS * sizeof(float);
    put(&request, &tensor, sizeof(tensor));
    put(&request, ranks, sizeof(ranks));
    send_request(server, &request);
}

// A rank whose neighbour fails does not wait for the other one, which waits as well; nor does one
// that is told that its group is lost.
static void test_a_ring_ends_with_its_ranks(void **state) {
    struct server server;
    (void)state;
    begin_server(&server);
    tell(&server, (struct wire_message){.kind = WIRE_STREAM_NEW, .id = 2, .queue = 1}, 0, 0);
    await_answer(2);
    const struct wire_message buffer = {
        .kind = WIRE_BUFFER_NEW, .id = 3, .object = 2, .size = RING_FLOATS * sizeof(float)};
    tell(&server, buffer, 0, 0);
    await_answer(3);
    for (uint64_t id = 10; id < 13; ++id) { // one fails, the other one, none
        begin_ring(&server, id, (const uint32_t[2]){id == 10 ? 2 : 1, id == 11 ? 2 : 1});
        if (id == 12) {
            usleep(20000);
            assert_int_equal(atomic_load(&answers[12]), 0);
            tell(&server, (struct wire_message){.kind = WIRE_GROUP_LOST, .object = 9}, 0, 0);
        }
        await_answer(id);
        assert_int_equal(atomic_load(&answers[id]), 1 + GGML_HOST_DEVICE_LOST);
    }
    end_server(&server);
}

// --- what is refused, and how --------------------------------------------------------------------

static void expect_refusal(struct server *server, const struct request *request, const char *why) {
    static uint64_t id;
    struct request sent = *request;
    id = 10 + (id + 1) % (FIRST_ID - 10);
    sent.message.magic = WIRE_MAGIC;
    sent.message.id = id;
    atomic_store(&answers[id], 0);
    send_request(server, &sent);
    await_answer(id);
    assert_int_equal(atomic_load(&answers[id]), 1 + GGML_HOST_INVALID_ARGUMENT);
    if (!strstr(said, why)) fail_msg("'%s', not '%s'", said, why);
}

static void expect_buffer_refused(struct server *server, struct wire_message message,
                                  const char *why) {
    message.kind = WIRE_BUFFER_NEW;
    expect_refusal(server, &(struct request){.message = message}, why);
}

static void test_buffers_that_can_not_be_are_refused_by_name(void **state) {
    struct server server;
    (void)state;
    begin_server(&server);
    expect_buffer_refused(&server, (struct wire_message){.object = 1, .size = 64},
                          "a buffer that there is already");
    expect_buffer_refused(&server, (struct wire_message){.object = 2, .size = 64, .device = 1},
                          "a device that there is not");
    expect_buffer_refused(&server, (struct wire_message){.object = 2}, "without a size or id");
    expect_buffer_refused(&server, (struct wire_message){.size = 64}, "without a size or id");
    end_server(&server);
}

// Another queue waits for a request that is refused before its queue sees it, and for one that is
// refused behind others.
static void test_what_is_refused_is_done_in_its_queue(void **state) {
    struct server server;
    struct request request = {
        .message = {.magic = WIRE_MAGIC, .kind = WIRE_GET, .id = 11, .queue = 1, .size = 4}};
    struct wire_tensor tensor = one_float(0);
    (void)state;
    begin_server(&server);
    tensor.type = GGML_TYPE_COUNT;
    put(&request, &tensor, sizeof(tensor));
    atomic_store(&holds, true);
    tell(&server,
         (struct wire_message){
             .kind = WIRE_SET, .id = 10, .queue = 1, .size = 4, .tag = LINK_FIRST_TAG},
         0, 0);
    while (atomic_load(&n_waiting) == 0)
        usleep(1000);
    send_request(&server, &request);
    tell(&server,
         (struct wire_message){.kind = WIRE_WAIT, .id = 12, .queue = 2, .object = 1, .offset = 11},
         0, 0);
    usleep(20000);
    assert_int_equal(atomic_load(&answers[11]), 0);
    atomic_store(&holds, false);
    await_answer(12);
    assert_int_equal(atomic_load(&answers[10]), 1 + GGML_HOST_OK);
    assert_int_equal(atomic_load(&answers[11]), 1 + GGML_HOST_INVALID_ARGUMENT);
    if (!strstr(said, "a type that there is not")) fail_msg("'%s'", said);
    end_server(&server);
}

// Of 256 bytes.
static void test_tensors_lie_within_their_buffers(void **state) {
    static const struct {
        uint64_t offset;
        int64_t ne;
        bool is_view;
    } rows[] = {{256, 1, false}, {260, 1, false}, {260, 1, true}, {200, 20, true}};
    struct server server;
    (void)state;
    begin_server(&server);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        struct request request = {.message = {.kind = WIRE_GET, .size = 4}};
        struct wire_tensor tensor = one_float(rows[i].offset);
        tensor.ne[0] = rows[i].ne;
        tensor.nb[1] = tensor.nb[2] = tensor.nb[3] = 4 * (uint64_t)rows[i].ne;
        tensor.view_src = rows[i].is_view ? 0 : -1;
        put(&request, &tensor, sizeof(tensor));
        expect_refusal(&server, &request, "does not lie within its buffer");
    }
    end_server(&server);
}

static struct request two_tensors(uint64_t id, const struct wire_tensor *first,
                                  const struct wire_tensor *second) {
    struct request request = {.message = {.kind = WIRE_COMPUTE,
                                          .queue = 1,
                                          .object = id,
                                          .size = 2,
                                          .n_tensors = 2,
                                          .n_nodes = 1}};
    const struct wire_change changes[2] = {{0, *first}, {1, *second}};
    put(&request, changes, sizeof(changes));
    return request;
}

static void test_graphs_that_can_not_be_are_refused_by_name(void **state) {
    const struct wire_tensor plain = one_float(0);
    struct wire_tensor node = one_float(4), viewer = one_float(0), viewed = one_float(0);
    struct server server;
    (void)state;
    begin_server(&server);
    tell(&server, (struct wire_message){.kind = WIRE_STREAM_NEW, .id = 2, .queue = 1}, 0, 0);
    await_answer(2);
    struct request request = two_tensors(0, &plain, &plain);
    expect_refusal(&server, &request, "a graph without an id");
    node.op = GGML_OP_ADD; // of nothing
    node.flags = GGML_TENSOR_FLAG_COMPUTE;
    request = two_tensors(1, &node, &plain);
    expect_refusal(&server, &request, "a node that the device does not support");
    viewer.view_src = 1;
    viewed.view_src = 0; // each of the other
    request = two_tensors(2, &viewer, &viewed);
    expect_refusal(&server, &request, "a view of a view");
    end_server(&server);
}

// A view of transposed blocks may be in a graph, but nothing reads it: what its extents and strides
// say of where it lies is not true.
static void test_transposed_blocks_are_not_computed_with(void **state) {
    const uint64_t size = ggml_type_size(GGML_TYPE_Q8_0);
    struct wire_tensor viewed = one_float(0), view = one_float(0);
    struct server server;
    (void)state;
    begin_server(&server);
    tell(&server, (struct wire_message){.kind = WIRE_STREAM_NEW, .id = 2, .queue = 1}, 0, 0);
    await_answer(2);
    viewed.type = view.type = GGML_TYPE_Q8_0;
    viewed.ne[0] = view.ne[1] = 64;
    viewed.ne[1] = view.ne[0] = 3;
    viewed.nb[0] = view.nb[1] = size;
    viewed.nb[1] = view.nb[0] = 2 * size;
    viewed.nb[2] = viewed.nb[3] = view.nb[2] = view.nb[3] = 6 * size;
    view.op = GGML_OP_TRANSPOSE;
    view.src[0] = view.view_src = 1;
    view.flags = GGML_TENSOR_FLAG_COMPUTE;
    struct request request = two_tensors(1, &view, &viewed);
    request.message.magic = WIRE_MAGIC;
    request.message.id = 3;
    send_request(&server, &request);
    await_answer(3);
    if (atomic_load(&answers[3]) != 1 + GGML_HOST_OK) fail_msg("%s", said);
    view.op = GGML_OP_CONT;
    request = two_tensors(1, &view, &viewed);
    expect_refusal(&server, &request, "transposed blocks");
    view.op = GGML_OP_TRANSPOSE;
    view.view_src = -1; // no view, so it has memory of its own
    request = two_tensors(1, &view, &viewed);
    expect_refusal(&server, &request, "does not lie within its buffer");
    end_server(&server);
}

static bool has_graphs(struct server *server) {
    pthread_mutex_lock(&server->lock);
    const bool any = server->graphs != NULL;
    pthread_mutex_unlock(&server->lock);
    return any;
}

// Nobody can name them any more.
static void test_graphs_end_with_their_stream(void **state) {
    const struct wire_tensor plain = one_float(0);
    struct wire_tensor node = one_float(64);
    struct server server;
    (void)state;
    begin_server(&server);
    node.op = GGML_OP_SQR;
    node.src[0] = 1;
    node.flags = GGML_TENSOR_FLAG_COMPUTE;
    for (uint64_t id = 2; id < 8; id += 3) {
        tell(&server, (struct wire_message){.kind = WIRE_STREAM_NEW, .id = id, .queue = 1}, 0, 0);
        struct request request = two_tensors(id, &node, &plain);
        request.message.magic = WIRE_MAGIC;
        request.message.id = id + 1;
        send_request(&server, &request);
        await_answer(id + 1);
        assert_int_equal(atomic_load(&answers[id + 1]), 1 + GGML_HOST_OK);
        assert_true(has_graphs(&server));
        tell(&server, (struct wire_message){.kind = WIRE_STREAM_FREE, .id = id + 2, .queue = 1}, 0,
             0);
        await_answer(id + 2);
        assert_false(has_graphs(&server));
    }
    end_server(&server);
}

// --- bytes from files ----------------------------------------------------------------------------

// One float at an offset of a file of that name and size, if its digest is that of `expected`.
static int set_from_file(struct server *server, const char *name, uint64_t size, uint64_t offset,
                         float expected) {
    struct request request = {
        .message = {.magic = WIRE_MAGIC, .kind = WIRE_SET_FILE, .id = 5, .size = sizeof(float)}};
    const struct wire_tensor tensor = one_float(16);
    struct wire_file file = {.offset = offset, .size = size};
    uint8_t digest[WIRE_DIGEST];
    struct ggml_sha256 sum;
    strcpy(file.name, name);
    ggml_sha256_init(&sum);
    ggml_sha256_update(&sum, &expected, sizeof(expected));
    ggml_sha256_final(&sum, digest);
    put(&request, &tensor, sizeof(tensor));
    put(&request, &file, sizeof(file));
    put(&request, digest, sizeof(digest));
    atomic_store(&answers[5], 0);
    send_request(server, &request);
    await_answer(5);
    return atomic_load(&answers[5]) - 1;
}

static float read_back(struct server *server) {
    atomic_store(&answers[6], 0);
    tell(server, (struct wire_message){.kind = WIRE_GET, .id = 6, .size = 4}, 16, 0);
    await_answer(6);
    return answered;
}

// A refusal leaves the tensor as it was, and only regular files of the folder are read.
static void test_bytes_of_a_file_are_taken_if_their_digest_agrees(void **state) {
    struct server server;
    (void)state;
    begin_server(&server);
    assert_int_equal(set_from_file(&server, FILE_NAME, FILE_BYTES, 40, 10.5f),
                     GGML_HOST_UNSUPPORTED);
    server.files = file_open_folder(folder);
    assert_true(server.files >= 0);
    tell(&server, quiet_set, 16, 3.0f);
    assert_int_equal(set_from_file(&server, FILE_NAME, FILE_BYTES, 40, 11.5f), GGML_HOST_NOT_FOUND);
    assert_int_equal(set_from_file(&server, FILE_NAME, FILE_BYTES + 1, 40, 10.5f),
                     GGML_HOST_NOT_FOUND);
    assert_int_equal(set_from_file(&server, "other", FILE_BYTES, 40, 10.5f), GGML_HOST_NOT_FOUND);
    assert_int_equal(set_from_file(&server, "link", FILE_BYTES, 40, 10.5f), GGML_HOST_NOT_FOUND);
    assert_int_equal(set_from_file(&server, "pipe", FILE_BYTES, 40, 10.5f), GGML_HOST_NOT_FOUND);
    assert_int_equal(set_from_file(&server, "../x", FILE_BYTES, 40, 10.5f),
                     GGML_HOST_INVALID_ARGUMENT);
    assert_true(read_back(&server) == 3.0f);
    assert_int_equal(set_from_file(&server, FILE_NAME, FILE_BYTES, 40, 10.5f), GGML_HOST_OK);
    assert_true(read_back(&server) == 10.5f);
    end_server(&server);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_node_survives_whatever_it_is_told),
        cmocka_unit_test(test_a_quiet_set_is_done_before_later_requests_of_other_queues),
        cmocka_unit_test(test_a_quiet_set_is_answered_only_if_it_fails),
        cmocka_unit_test(test_answers_wait_for_the_next_one),
        cmocka_unit_test(test_bytes_travel_without_memory_for_them),
        cmocka_unit_test(test_a_request_is_answered_without_memory_for_its_result),
        cmocka_unit_test(test_ranks_of_a_node_add_up_in_it),
        cmocka_unit_test(test_a_ring_ends_with_its_ranks),
        cmocka_unit_test(test_buffers_that_can_not_be_are_refused_by_name),
        cmocka_unit_test(test_what_is_refused_is_done_in_its_queue),
        cmocka_unit_test(test_tensors_lie_within_their_buffers),
        cmocka_unit_test(test_graphs_that_can_not_be_are_refused_by_name),
        cmocka_unit_test(test_transposed_blocks_are_not_computed_with),
        cmocka_unit_test(test_graphs_end_with_their_stream),
        cmocka_unit_test(test_bytes_of_a_file_are_taken_if_their_digest_agrees)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
