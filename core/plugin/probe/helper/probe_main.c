// SPDX-License-Identifier: MIT
// ggml-probe PLUGIN: the helper process. It starts one plugin and reports what became of it, so
// that whatever the plugin does to its process is harmless to the application. With --machine it
// asks hwloc instead, with --isolate it serves a device of the plugin (core/isolate).
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

#include "base/sanitizer.h"
#include "base/status.h"
#include "ggml-impl.h"
#include "isolate/serve.h"
#include "plugin/load/candidate.h"
#include "plugin/offer/extensions.h"
#include "plugin/probe/cache/probe_libraries.h"
#include "plugin/probe/helper/probe_sandbox.h"
#include "plugin/probe/message/probe_protocol.h"
#include "plugin/probe/probe_machine.h"
#include "plugin/probe/process/probe_group.h"
#include "plugin/probe/process/probe_watch.h"
#include "plugin/registry/plugin.h"

enum { EXIT_USAGE = 64, FILE_SIZE_LIMIT = 256 << 20, OPEN_FILES_LIMIT = 4096 };

struct conversation {
    uint8_t key[PROBE_KEY_SIZE];
    uint32_t sequence;
    pid_t process; // a plugin may fork: only the first of them speaks
    int64_t since; // before anything of the plugin was mapped
};

// --- the process ---------------------------------------------------------------------------------

// Reads until the request is whole; false if it ends early or is of another build.
static bool read_request(struct probe_request *out_request) {
    unsigned char bytes[PROBE_REQUEST_SIZE];
    size_t done = 0;
    while (done < sizeof(bytes)) {
        const ssize_t n = read(STDIN_FILENO, bytes + done, sizeof(bytes) - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        done += (size_t)n;
    }
    return probe_request_read(bytes, out_request);
}

// Closes everything that the application left open to its children.
static void close_inherited(void) {
    enum { MOST = 65536 };
    const int first = PROBE_ANSWER_FD + 1;
#if defined(__linux__) && defined(SYS_close_range)
    if (syscall(SYS_close_range, first, ~0U, 0) == 0) return;
#endif
    const long limit = sysconf(_SC_OPEN_MAX);
    for (int fd = first; fd < (limit > 0 && limit < MOST ? (int)limit : MOST); ++fd)
        close(fd);
}

// Leaves the plugin only the standard descriptors and that of the answer, which is closed on exec.
static bool keep_standard_descriptors(void) {
    const int null = open("/dev/null", O_RDONLY);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0) return false;
    close_inherited();
    return fcntl(PROBE_ANSWER_FD, F_SETFD, FD_CLOEXEC) == 0;
}

// Lowers soft and hard limit to `value`; lower ones stay.
static void lower(int resource, rlim_t value) {
    struct rlimit limit;
    if (getrlimit(resource, &limit) != 0) return;
    if (limit.rlim_max == RLIM_INFINITY || limit.rlim_max > value) limit.rlim_max = value;
    if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > value) limit.rlim_cur = value;
    setrlimit(resource, &limit);
}

// Limits what a plugin can use up. The address space is not limited: drivers of GPUs and sanitizers
// reserve hundreds of gigabytes of it. Writable memory is, by RLIMIT_DATA on Linux.
static void limit_resources(const struct probe_request *request) {
    lower(RLIMIT_CORE, 0);
    lower(RLIMIT_FSIZE, FILE_SIZE_LIMIT);
    lower(RLIMIT_NOFILE, OPEN_FILES_LIMIT);
    if (request->cpu_seconds > 0) lower(RLIMIT_CPU, request->cpu_seconds);
#if !GGML_SANITIZED
    if (request->memory_limit > 0) lower(RLIMIT_DATA, (rlim_t)request->memory_limit);
#endif
}

// Makes this process the first one that ends when memory runs out, and one that ends with its
// parent.
static void be_expendable(const struct probe_request *request) {
#ifdef __linux__
    const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        const ssize_t written = write(fd, "1000", 4);
        (void)written; // a sandbox may forbid it
        close(fd);
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != (pid_t)request->parent) _exit(PROBE_EXIT_NO_ANSWER);
#else
    (void)request;
#endif
}

// Starts what ends the whole group with the parent; without it no plugin is started.
static void watch_parent(const struct probe_request *request) {
    if (!probe_watch_parent((long)request->parent, PROBE_ANSWER_FD)) _exit(PROBE_EXIT_NO_ANSWER);
}

// --- the answer ----------------------------------------------------------------------------------

// Sends a frame. On failure the process ends with a status that tells the other side; there is no
// other way to report it.
static void send(struct conversation *conversation, enum probe_frame_kind kind,
                 const struct probe_writer *payload) {
    struct probe_writer frame = {0};
    if (getpid() != conversation->process) _exit(0);
    if (payload->failed) _exit(PROBE_EXIT_NO_ANSWER);
    probe_frame_write(&frame, conversation->key, kind, conversation->sequence++, payload->data,
                      payload->size);
    if (frame.failed) _exit(PROBE_EXIT_NO_ANSWER);
    for (size_t done = 0; done < frame.size;) {
        const ssize_t n = write(PROBE_ANSWER_FD, frame.data + done, frame.size - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) _exit(PROBE_EXIT_NO_ANSWER);
        done += (size_t)n;
    }
    probe_writer_free(&frame);
}

// The host then knows where the plugin was, if it crashes next.
static void send_stage(void *context, enum ggml_plugin_stage stage) {
    struct probe_writer payload = {0};
    probe_put_u32(&payload, (uint32_t)stage);
    send(context, PROBE_FRAME_STAGE, &payload);
    probe_writer_free(&payload);
}

static void send_hello(struct conversation *conversation) {
    struct probe_writer payload = {0};
    probe_hello_write(&payload);
    send(conversation, PROBE_FRAME_HELLO, &payload);
    probe_writer_free(&payload);
}

// Sends the result. Without memory for it the helper ends with the exit status that means no
// answer.
static void send_result(struct conversation *conversation, const struct plugin_file_id *file,
                        struct probe_result *result) {
    struct probe_writer payload = {0};
    if (probe_libraries_take(result, file, conversation->since) != GGML_HOST_OK)
        _exit(PROBE_EXIT_NO_ANSWER);
    probe_result_write(result, &payload);
    send(conversation, PROBE_FRAME_RESULT, &payload);
    probe_writer_free(&payload);
    probe_result_free(result);
}

// Enters the sandbox before anything of the plugin runs, and reports what the system could not
// confine.
static void enter_sandbox(struct conversation *conversation) {
    struct probe_writer payload = {0};
    char missing[PROBE_SANDBOX_TEXT];
    probe_sandbox_enter(missing, sizeof(missing));
    probe_put_bytes(&payload, missing, strlen(missing));
    send(conversation, PROBE_FRAME_SANDBOX, &payload);
    probe_writer_free(&payload);
}

// Warnings that the plugin logs while it is tried, from any thread, in one line.
static struct {
    pthread_mutex_t mutex;
    char text[sizeof(((struct record *)NULL)->message)];
    size_t length;
    bool continues; // what comes with GGML_LOG_LEVEL_CONT belongs to it
} warned = {.mutex = PTHREAD_MUTEX_INITIALIZER};

// Appends the first line of a message, separated by "; " from earlier ones, cut where the room
// ends.
static void append_warning(const char *text, bool begins) {
    const size_t room = sizeof(warned.text) - warned.length;
    const int length = (int)strcspn(text, "\n");
    const int n = snprintf(warned.text + warned.length, room, "%s%.*s",
                           begins && warned.length > 0 ? "; " : "", length, text);
    if (n > 0)
        warned.length = (size_t)n < room ? warned.length + (size_t)n : sizeof(warned.text) - 1;
}

// Log callback: keeps warnings and errors with their continuations.
static void keep_warnings(enum ggml_log_level level, const char *text, void *context) {
    const bool more = level == GGML_LOG_LEVEL_CONT;
    (void)context;
    pthread_mutex_lock(&warned.mutex);
    if (!more) warned.continues = level == GGML_LOG_LEVEL_WARN || level == GGML_LOG_LEVEL_ERROR;
    if (warned.continues) append_warning(text, !more);
    pthread_mutex_unlock(&warned.mutex);
}

// Shown in the report although the plugin works.
static void record_warnings(struct record *record) {
    pthread_mutex_lock(&warned.mutex);
    snprintf(record->message, sizeof(record->message), "%s", warned.text);
    pthread_mutex_unlock(&warned.mutex);
}

// Examines the file without the policy, which the host has applied; here it only has to be the same
// file.
static enum ggml_host_status examine(struct candidate *candidate,
                                     const struct plugin_file_id *expected) {
    const struct load_policy anything = {.allow_unsafe = true};
    const enum ggml_host_status status = candidate_examine(candidate, &anything);
    if (status != GGML_HOST_OK || plugin_file_is_same(&candidate->file.id, expected)) return status;
    return candidate_refuse(candidate, GGML_PLUGIN_STAGE_FILE, GGML_HOST_DAMAGED_FILE,
                            "'%s' changed while it was being probed: try again",
                            candidate->record->path);
}

// Loads the plugin by the code that loading uses, up to the list of devices, reports that, and
// shuts it down. The last frame says that shutdown has returned too.
static void probe(struct conversation *conversation, const char *path,
                  const struct plugin_file_id *file) {
    const struct probe_writer nothing = {0};
    struct candidate candidate;
    struct host_plugin *plugin = NULL;
    struct probe_result result;
    extensions_set_trial();
    if (candidate_init(&candidate, path, NULL) != GGML_HOST_OK) _exit(PROBE_EXIT_NO_ANSWER);
    candidate.on_stage = send_stage;
    candidate.stage_context = conversation;
    if (examine(&candidate, file) == GGML_HOST_OK &&
        candidate_start(&candidate, &plugin) == GGML_HOST_OK) {
        candidate.record->stage = GGML_PLUGIN_STAGE_READY;
        record_warnings(candidate.record);
    }
    if (probe_result_take(&result, candidate.record, plugin) != GGML_HOST_OK)
        _exit(PROBE_EXIT_NO_ANSWER);
    send_result(conversation, file, &result);
    plugin_free(plugin);
    send(conversation, PROBE_FRAME_END, &nothing);
}

// Asks hwloc about the machine, as it is: without what its environment would make of it.
static void probe_machine(struct conversation *conversation) {
    const struct probe_writer nothing = {0};
    const struct plugin_file_id none = {0};
    struct probe_result result = {0};
    probe_machine_take(&result);
    send_result(conversation, &none, &result);
    send(conversation, PROBE_FRAME_END, &nothing);
}

int main(int argc, char **argv) {
    struct conversation conversation = {.process = getpid(), .since = probe_libraries_now()};
    struct probe_request request;
    if (argc == 3 && strcmp(argv[1], ISOLATE_ARGUMENT) == 0) _exit(isolate_serve(argv[2]));
    if (argc != 2 || isatty(STDIN_FILENO) || !read_request(&request)) {
        fputs("ggml-probe is started by the ggml library to try out a plugin; see "
              "ggml-devices(1)\n",
              stderr);
        return EXIT_USAGE;
    }
    memcpy(conversation.key, request.key, sizeof(conversation.key));
    // The key must not be in memory where the plugin could find it by accident. The copy in
    // `conversation` is needed.
    memset(&request.key, 0, sizeof(request.key));
    if (!keep_standard_descriptors()) return PROBE_EXIT_NO_ANSWER;
    be_expendable(&request);
    probe_group_enter();
    limit_resources(&request);
    ggml_log_set(keep_warnings, NULL);
    send_hello(&conversation);
    if (request.sandbox) enter_sandbox(&conversation);
    watch_parent(&request); // confined, so that it can be ended
    if (strcmp(argv[1], PROBE_MACHINE) == 0)
        probe_machine(&conversation);
    else
        probe(&conversation, argv[1], &request.file);
    probe_watch_end();
    _exit(0);
}
