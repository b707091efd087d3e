// SPDX-License-Identifier: MIT
// ggml-probe --isolate PLUGIN: the process of an isolated device. It does what the application
// asks, one request after the other, and ends with it.
#define _GNU_SOURCE
#include "isolate/serve.h"
#include "isolate/wait.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/mem.h"
#include "base/status.h"
#include "device/check.h"
#include "device/stream.h"
#include "ggml-backend-impl.h"
#include "ggml-impl.h"
#include "plugin/load/candidate.h"
#include "plugin/probe/process/probe_group.h"
#include "plugin/probe/process/probe_watch.h"
#include "plugin/registry/plugin.h"

enum { EXIT_NO_SERVICE = 74 };

// --- the process ---------------------------------------------------------------------------------

static void close_inherited(void) {
    enum { MOST = 65536 };
    const int first = ISOLATE_SOCKET_FD + 1;
#ifdef SYS_close_range
    if (syscall(SYS_close_range, first, ~0U, 0) == 0) return;
#endif
    for (int fd = first; fd < MOST; ++fd)
        close(fd);
}

// What the driver logs must not get into a file that it opens, where the application has closed its
// standard error output; and where nobody reads that any more, it is no reason to end.
static void keep_standard_error(void) {
    signal(SIGPIPE, SIG_IGN);
    if (fcntl(STDERR_FILENO, F_GETFD) >= 0) return;
    const int fd = open("/dev/null", O_WRONLY); // the first that is free
    if (fd > ISOLATE_SOCKET_FD) close(fd);
}

// A crash is to be known at once, and not when all memory has been written to a file. Of one byte:
// a limit of 0 does not hold for dumps that are piped to a program.
static void dump_no_core(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_CORE, &limit) != 0) return;
    if (limit.rlim_cur > 1) limit.rlim_cur = 1;
    setrlimit(RLIMIT_CORE, &limit);
}

// --- lists ---------------------------------------------------------------------------------------

void *server_append(void **list, size_t *count, size_t size) {
    char *items = ggml_mem_realloc(*list, (*count + 1) * size);
    if (!items) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "the process of an isolated device has no memory");
        return NULL;
    }
    *list = items;
    return items + (*count)++ * size;
}

struct served_buffer *server_buffer(const struct server *server, uint64_t id) {
    for (size_t i = 0; i < server->n_buffers; ++i)
        if (server->buffers[i].id == id) return &server->buffers[i];
    ggml_fail(GGML_HOST_INVALID_ARGUMENT, "the process of an isolated device has no such buffer");
    return NULL;
}

static struct served_stream *find_stream(const struct server *server, uint64_t id) {
    for (size_t i = 0; i < server->n_streams; ++i)
        if (server->streams[i].id == id) return &server->streams[i];
    ggml_fail(GGML_HOST_INVALID_ARGUMENT, "the process of an isolated device has no such stream");
    return NULL;
}

// --- starting ------------------------------------------------------------------------------------

// Structs go over the socket as they lie in memory, so both sides have to be compiled alike.
static bool is_of_this_build(const struct isolate_start *start) {
    return start->layout == GGML_PLUGIN_LAYOUT_HASH &&
           strncmp(start->version, ggml_version(), sizeof(start->version)) == 0 &&
           strncmp(start->commit, ggml_commit(), sizeof(start->commit)) == 0;
}

// The application has checked whether the file may be loaded; here it has to be the same.
static enum ggml_host_status examine(struct candidate *candidate, const struct isolate_start *start,
                                     const char *path) {
    const struct load_policy anything = {.allow_unsafe = true};
    uint8_t sum[GGML_SHA256_SIZE];
    enum ggml_host_status status = candidate_examine(candidate, &anything);
    if (status != GGML_HOST_OK || start->is_builtin) return status;
    status = plugin_file_sha256(&candidate->file, path, sum);
    if (status != GGML_HOST_OK) return status;
    if (plugin_file_is_same(&candidate->file.id, &start->file) &&
        memcmp(sum, start->sha256, sizeof(sum)) == 0) {
        return GGML_HOST_OK;
    }
    return ggml_fail(GGML_HOST_DAMAGED_FILE, "'%s' changed since it was loaded", path);
}

// Loads the plugin and finds the device. Once: a process serves one device for as long as it
// lives.
static enum ggml_host_status start(struct server *server, const char *path) {
    struct candidate candidate;
    struct isolate_start start;
    const struct builtin_plugin *builtin = NULL;
    if (server->shared_size < sizeof(start) || server->plugin)
        return ggml_fail(GGML_HOST_INVALID_ARGUMENT, "an isolated device is started once");
    memcpy(&start, server->shared, sizeof(start));
    if (!is_of_this_build(&start))
        return ggml_fail(GGML_HOST_UNSUPPORTED, "the helper is of another build of the library");
    if (!probe_watch_parent((long)start.parent, ISOLATE_SOCKET_FD))
        return ggml_fail(GGML_HOST_OUT_OF_MEMORY, "nothing can watch the application");
    size_t n_builtins;
    const struct builtin_plugin *builtins = builtin_plugins(&n_builtins);
    for (size_t i = 0; i < n_builtins && start.is_builtin; ++i) {
        if (strncmp(builtins[i].note->name, start.plugin, sizeof(start.plugin)) == 0)
            builtin = &builtins[i];
    }
    if (start.is_builtin && !builtin)
        return ggml_fail(GGML_HOST_NOT_FOUND, "the helper has no such plugin built in");
    enum ggml_host_status status = candidate_init(&candidate, path, builtin);
    if (status == GGML_HOST_OK) status = examine(&candidate, &start, path);
    if (status == GGML_HOST_OK) status = candidate_start(&candidate, &server->plugin);
    if (status != GGML_HOST_OK) return status;
    const struct device_list *list = plugin_devices(server->plugin);
    if (start.device >= list->count)
        return ggml_fail(GGML_HOST_NO_DEVICE, "the plugin has fewer devices in another process");
    server->device = list->items[start.device].device;
    return GGML_HOST_OK;
}

// --- memory --------------------------------------------------------------------------------------

// NULL on failure, with errno.
static void *map(int fd, size_t size) {
    if (fd < 0) {
        errno = EMFILE; // none came
        return NULL;
    }
    if (ggml_fault(GGML_FAULT_MAP)) return NULL;
    void *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return data == MAP_FAILED ? NULL : data;
}

// The new memory replaces the old: requests refer to the latest only.
static enum ggml_host_status share(struct server *server, const struct isolate_request *request,
                                   int fd) {
    void *data = map(fd, request->size);
    if (!data)
        return ggml_fail(GGML_HOST_OUT_OF_MEMORY, "memory can't be shared: %s", strerror(errno));
    if (server->shared) munmap(server->shared, server->shared_size);
    server->shared = data;
    server->shared_size = request->size;
    return GGML_HOST_OK;
}

static void *host_base(ggml_backend_buffer_t buffer) {
    return buffer->context;
}

// The host's own type of memory, but shared.
static ggml_backend_buffer_t host_buffer(void *data, size_t size) {
    static const struct ggml_buffer_table table = {
        .size = sizeof(table), .free = ggml_sdk_buffer_free, .get_base = host_base};
    return ggml_sdk_buffer_new(ggml_backend_cpu_buffer_type(), &table, data, size);
}

// One of three kinds: the device's own memory, memory that the device wraps, or plain host
// memory; the latter two are mapped in both processes. Nothing is left after a failure.
static enum ggml_host_status new_buffer(struct server *server,
                                        const struct isolate_request *request, int fd,
                                        struct isolate_answer *answer) {
    struct served_buffer held = {.id = request->id, .size = request->size};
    const bool own = request->flag == ISOLATE_MEMORY_OWN;
    void *list = server->buffers;
    if (!own) {
        held.mapped = map(fd, request->size);
        if (!held.mapped)
            return ggml_fail(GGML_HOST_OUT_OF_MEMORY, "a buffer can't be shared: %s",
                             strerror(errno));
    }
    if (own) {
        held.buffer = ggml_backend_buft_alloc_buffer(ggml_backend_dev_buffer_type(server->device),
                                                     request->size);
    } else if (request->flag == ISOLATE_MEMORY_WRAP) {
        held.buffer = ggml_backend_dev_buffer_from_host_ptr(server->device, held.mapped, held.size,
                                                            held.size);
    } else {
        held.buffer = host_buffer(held.mapped, held.size);
    }
    struct served_buffer *added =
        held.buffer ? server_append(&list, &server->n_buffers, sizeof(held)) : NULL;
    server->buffers = list;
    if (added) {
        *added = held;
        answer->attaches = held.buffer->table->init_tensor != NULL;
        return GGML_HOST_OK;
    }
    ggml_backend_buffer_free(held.buffer);
    if (held.mapped) munmap(held.mapped, held.size);
    return ggml_last_status();
}

static void free_buffer(struct server *server, struct served_buffer *held) {
    ggml_backend_buffer_free(held->buffer);
    serve_tensors_free(server, held);
    if (held->mapped) munmap(held->mapped, held->size);
}

// Graphs that are kept may refer to it: all are forgotten.
static enum ggml_host_status end_buffer(struct server *server, uint64_t id) {
    struct served_buffer *held = server_buffer(server, id);
    if (!held) return ggml_last_status();
    serve_graph_free(server, 0);
    free_buffer(server, held);
    *held = server->buffers[--server->n_buffers];
    return GGML_HOST_OK;
}

// The statuses of calls that have none.
static enum ggml_host_status status_since(unsigned long failures_before) {
    return ggml_fail_count() == failures_before ? GGML_HOST_OK : ggml_last_status();
}

static enum ggml_host_status reset_buffer(struct server *server, uint64_t id) {
    const unsigned long failures_before = ggml_fail_count();
    struct served_buffer *held = server_buffer(server, id);
    if (!held) return ggml_last_status();
    ggml_backend_buffer_reset(held->buffer);
    serve_tensors_free(server, held);
    return status_since(failures_before);
}

// The longest request: what follows the text's place goes on behind it.
struct request_message {
    struct isolate_request request;
    char more[sizeof(struct isolate_tensor) + ISOLATE_POST_BYTES];
};

// Fails with what a request that was not answered failed with.
static bool has_failed_late(struct server *server) {
    if (server->late == GGML_HOST_OK) return false;
    ggml_fail(server->late, "an earlier %s", server->late_text);
    server->late = GGML_HOST_OK;
    return true;
}

// The server remembers of a placing what it failed with, and so does what uses the tensor.
static void init_posted(struct server *server, const struct isolate_request *request,
                        const struct isolate_tensor *from, const char *bytes) {
    struct isolate_tensor owner;
    const bool is_view = request->size == sizeof(owner);
    if (is_view) memcpy(&owner, bytes, sizeof(owner));
    serve_init(server, from, is_view ? &owner : NULL);
}

// What the message is about: the bytes follow the tensor's description.
static enum ggml_host_status do_posted(struct server *server, const struct isolate_request *request,
                                       const struct isolate_tensor *from, const char *bytes) {
    const unsigned long failures_before = ggml_fail_count();
    struct ggml_tensor tensor;
    if (request->flag == ISOLATE_POST_RESET) return reset_buffer(server, from->buffer);
    if (request->flag == ISOLATE_POST_INIT) {
        init_posted(server, request, from, bytes);
        return GGML_HOST_OK;
    }
    if (!serve_tensor(server, from, &tensor)) return ggml_last_status();
    ggml_backend_tensor_set(&tensor, bytes, request->offset, request->size);
    return status_since(failures_before);
}

// The description and the bytes lie in the message, `taken` in all. The first failure is kept.
static void post_tensor(struct server *server, const struct request_message *message,
                        size_t taken) {
    const struct isolate_request *request = &message->request;
    const size_t head = offsetof(struct isolate_request, text);
    const char *rest = (const char *)message + head;
    struct isolate_tensor from;
    enum ggml_host_status status = GGML_HOST_INVALID_ARGUMENT;
    ggml_clear_error();
    memcpy(&from, rest, sizeof(from));
    if (!server->device || request->size > ISOLATE_POST_BYTES ||
        taken != head + sizeof(from) + request->size) {
        ggml_fail(status, "a message of another length than it says");
    } else {
        status = do_posted(server, request, &from, rest + sizeof(from));
    }
    if (status == GGML_HOST_OK || server->late != GGML_HOST_OK) return;
    server->late = status;
    snprintf(server->late_text, sizeof(server->late_text), "%s failed: %s",
             request->flag == ISOLATE_POST_RESET ? "reset of a buffer" : "transfer",
             ggml_last_error());
}

// One or two descriptions lie in shared memory.
static enum ggml_host_status init_tensor(struct server *server,
                                         const struct isolate_request *request) {
    const struct isolate_tensor *from = (const struct isolate_tensor *)(const void *)server->shared;
    if (server->shared_size < (request->flag ? 2 : 1) * sizeof(*from))
        return ggml_fail(GGML_HOST_INVALID_ARGUMENT, "more bytes than are shared");
    return serve_init(server, from, request->flag ? from + 1 : NULL) ? GGML_HOST_OK
                                                                     : ggml_last_status();
}

// The description and the bytes lie in shared memory. The offset and size within the tensor are
// checked by the call that is made, as any application's.
static enum ggml_host_status access_tensor(struct server *server,
                                           const struct isolate_request *request) {
    struct ggml_tensor tensor, second;
    const bool moves = request->kind != ISOLATE_TENSOR_MEMSET;
    const size_t needed = sizeof(struct isolate_tensor) + (moves ? request->size : 0);
    if (has_failed_late(server)) return ggml_last_status();
    if (request->size > SIZE_MAX / 2 || request->id > server->shared_size ||
        request->id % _Alignof(struct isolate_tensor) != 0 ||
        needed > server->shared_size - request->id)
        return ggml_fail(GGML_HOST_INVALID_ARGUMENT, "more bytes than are shared");
    const struct isolate_tensor *from =
        (const struct isolate_tensor *)(const void *)(server->shared + request->id);
    char *bytes = server->shared + request->id + sizeof(*from);
    if (!serve_tensor(server, from, &tensor)) return ggml_last_status();
    const unsigned long failures_before = ggml_fail_count();
    switch (request->kind) {
    case ISOLATE_TENSOR_SET:
        ggml_backend_tensor_set(&tensor, bytes, request->offset, request->size);
        break;
    case ISOLATE_TENSOR_GET:
        ggml_backend_tensor_get(&tensor, bytes, request->offset, request->size);
        break;
    case ISOLATE_TENSOR_COPY:
        if (!serve_tensor(server, from + 1, &second)) return ggml_last_status();
        ggml_backend_tensor_copy(&tensor, &second);
        break;
    default:
        ggml_backend_tensor_memset(&tensor, (uint8_t)request->flag, request->offset, request->size);
    }
    return status_since(failures_before);
}

// --- streams -------------------------------------------------------------------------------------

// A stream that finds no room in the list is freed again.
static enum ggml_host_status new_stream(struct server *server,
                                        const struct isolate_request *request) {
    void *list = server->streams;
    ggml_backend_t backend =
        ggml_backend_dev_init(server->device, request->flag ? request->text : NULL);
    struct served_stream *added =
        backend ? server_append(&list, &server->n_streams, sizeof(*added)) : NULL;
    server->streams = list;
    if (added) {
        *added = (struct served_stream){request->id, backend};
        return GGML_HOST_OK;
    }
    ggml_backend_free(backend);
    return ggml_last_status();
}

static enum ggml_host_status end_stream(struct server *server, uint64_t id) {
    struct served_stream *stream = find_stream(server, id);
    if (!stream) return ggml_last_status();
    ggml_backend_free(stream->backend);
    *stream = server->streams[--server->n_streams];
    return GGML_HOST_OK;
}

// A graph that hasn't changed goes without the checks that it has passed before: nobody but this
// process changes its tensors. *out_ns: how long the device was busy, without checks.
static enum ggml_status compute_graph(ggml_backend_t backend, const struct ggml_graph *graph,
                                      bool has_changed, int64_t *out_ns) {
    if (has_changed && !stream_graph_check(__func__, backend, graph)) return GGML_STATUS_FAILED;
    const int64_t start = wait_clock_ns();
    const enum ggml_status status = stream_graph_enter(__func__, backend, graph);
    const enum ggml_host_status late = stream_synchronize(backend);
    *out_ns = wait_clock_ns() - start;
    return status == GGML_STATUS_SUCCESS ? device_graph_status(late) : status;
}

// A graph that failed is forgotten on both sides.
static enum ggml_host_status compute(struct server *server, const struct isolate_request *request,
                                     struct isolate_answer *answer) {
    const struct served_stream *stream =
        has_failed_late(server) ? NULL : find_stream(server, request->id);
    const struct served_graph *graph = stream ? serve_graph(server, request) : NULL;
    answer->compute = GGML_STATUS_FAILED;
    if (graph)
        answer->compute = (int32_t)compute_graph(stream->backend, &graph->view, request->size > 0,
                                                 &answer->compute_ns);
    if (graph && answer->compute == GGML_STATUS_SUCCESS) return GGML_HOST_OK;
    const enum ggml_host_status status = ggml_last_status();
    serve_graph_free(server, request->graph);
    return status != GGML_HOST_OK ? status : GGML_HOST_FAILED;
}

// --- requests ------------------------------------------------------------------------------------

static enum ggml_host_status handle(struct server *server, const char *path,
                                    const struct isolate_request *request, int fd,
                                    struct isolate_answer *answer) {
    const unsigned long failures_before = ggml_fail_count();
    struct served_buffer *held;
    ggml_clear_error();
    if (request->kind > ISOLATE_SHARE && !server->device)
        return ggml_fail(GGML_HOST_INVALID_ARGUMENT, "the isolated device was not started");
    switch (request->kind) {
    case ISOLATE_START: return start(server, path);
    case ISOLATE_SHARE: return share(server, request, fd);
    case ISOLATE_BUFFER_NEW: return new_buffer(server, request, fd, answer);
    case ISOLATE_BUFFER_FREE: return end_buffer(server, request->id);
    case ISOLATE_BUFFER_CLEAR:
        held = has_failed_late(server) ? NULL : server_buffer(server, request->id);
        if (held) ggml_backend_buffer_clear(held->buffer, (uint8_t)request->flag);
        return status_since(failures_before);
    case ISOLATE_BUFFER_USAGE:
        held = server_buffer(server, request->id);
        if (held)
            ggml_backend_buffer_set_usage(held->buffer,
                                          (enum ggml_backend_buffer_usage)request->flag);
        return status_since(failures_before);
    case ISOLATE_TENSOR_SET:
    case ISOLATE_TENSOR_GET:
    case ISOLATE_TENSOR_MEMSET:
    case ISOLATE_TENSOR_COPY: return access_tensor(server, request);
    case ISOLATE_TENSOR_INIT: return init_tensor(server, request);
    case ISOLATE_STREAM_NEW: return new_stream(server, request);
    case ISOLATE_STREAM_FREE: return end_stream(server, request->id);
    case ISOLATE_COMPUTE: return compute(server, request, answer);
    case ISOLATE_WAIT: return GGML_HOST_OK;
    case ISOLATE_GRAPH_FREE: serve_graph_free(server, request->graph); return GGML_HOST_OK;
    default: return ggml_fail(GGML_HOST_INVALID_ARGUMENT, "an unknown request");
    }
}

// As recvmsg(), which sleeps, after looking for a message without.
static ssize_t receive_message(struct msghdr *message, struct wait_habit *habit) {
    const int64_t start = wait_clock_ns();
    ssize_t n = -1;
    errno = EAGAIN;
    for (bool looks = wait_looks(habit); looks && n < 0 && errno == EAGAIN;
         looks = wait_clock_ns() - start < WAIT_LOOK_NS)
        n = recvmsg(ISOLATE_SOCKET_FD, message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) n = recvmsg(ISOLATE_SOCKET_FD, message, MSG_CMSG_CLOEXEC);
    const struct isolate_request *request = message->msg_iov->iov_base;
    const int error = errno;
    if (n > (ssize_t)offsetof(struct isolate_request, text))
        wait_learn(habit, wait_clock_ns() - start, request->taken_ns);
    errno = error;
    return n;
}

// Size of the message, 0 at the end. *out_fd is -1 if none came.
static size_t receive(struct request_message *out_message, int *out_fd, struct wait_habit *habit) {
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct isolate_request *request = &out_message->request;
    struct iovec piece = {out_message, sizeof(*out_message)};
    struct msghdr message = {.msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    ssize_t n;
    *out_fd = -1;
    do {
        n = ggml_fault(GGML_FAULT_READ) ? -1 : receive_message(&message, habit);
    } while (n < 0 && errno == EINTR);
    if (n <= (ssize_t)offsetof(struct isolate_request, text)) return 0;
    if (request->kind != ISOLATE_TENSOR_POST) ((char *)out_message)[n - 1] = '\0';
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_type == SCM_RIGHTS)
        memcpy(out_fd, CMSG_DATA(header), sizeof(*out_fd));
    return (size_t)n;
}

// False: the application is gone, or no longer reads.
static bool answer_with(const struct isolate_answer *answer) {
    const size_t size = offsetof(struct isolate_answer, text) + strlen(answer->text) + 1;
    ssize_t n;
    do {
        n = ggml_fault(GGML_FAULT_WRITE) ? -1 : send(ISOLATE_SOCKET_FD, answer, size, MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    return n == (ssize_t)size;
}

// Streams before the buffers that their work may use, the plugin last.
static void end(struct server *server) {
    serve_graph_free(server, 0);
    for (size_t i = 0; i < server->n_streams; ++i)
        ggml_backend_free(server->streams[i].backend);
    for (size_t i = 0; i < server->n_buffers; ++i)
        free_buffer(server, &server->buffers[i]);
    plugin_free(server->plugin);
}

// Log callback: warnings and errors with their continuations. The application's own is in another
// process, and the rest would only disturb its terminal.
static void log_to_stderr(enum ggml_log_level level, const char *text, void *user_data) {
    static _Thread_local bool continues;
    (void)user_data;
    if (level != GGML_LOG_LEVEL_CONT)
        continues = level == GGML_LOG_LEVEL_WARN || level == GGML_LOG_LEVEL_ERROR;
    if (!continues) return;
    fputs(text, stderr);
    fflush(stderr);
}

int isolate_serve(const char *path) {
    struct server server = {0};
    struct wait_habit habits[2] = {{0}}; // after other requests, after those that compute
    static struct request_message message;
    struct isolate_request *request = &message.request;
    size_t size;
    int fd;
    // First of all: without its socket the process has nobody to serve.
    const int socket_flags = fcntl(ISOLATE_SOCKET_FD, F_SETFD, FD_CLOEXEC);
    if (socket_flags != 0) return EXIT_NO_SERVICE;
    close_inherited();
    keep_standard_error();
    dump_no_core();
    probe_group_enter();
    ggml_log_set(log_to_stderr, NULL);
    while ((size = receive(&message, &fd, &habits[request->kind == ISOLATE_COMPUTE])) > 0) {
        const int64_t start = wait_clock_ns();
        struct isolate_answer answer = {.number = request->number, .compute = GGML_STATUS_SUCCESS};
        if (request->kind == ISOLATE_TENSOR_POST) {
            post_tensor(&server, &message, size);
            if (fd >= 0) close(fd);
            continue;
        }
        answer.status = (int32_t)handle(&server, path, request, fd, &answer);
        if (answer.status != GGML_HOST_OK)
            snprintf(answer.text, sizeof(answer.text), "%s", ggml_last_error());
        if (fd >= 0) close(fd);
        answer.taken_ns = wait_clock_ns() - start;
        if (!answer_with(&answer)) break;
    }
    end(&server);
    probe_watch_end();
    return 0;
}
