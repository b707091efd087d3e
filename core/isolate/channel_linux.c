// SPDX-License-Identifier: MIT
// Shared memory and a socket pair between the application and the helper.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/status.h"
#include "ggml-impl.h"
#include "isolate/channel.h"
#include "machine/cgroup.h"

#define PROCESS "a process for an isolated device"

// A process may be gone while one of its children still holds the socket: checked at least this
// often.
enum { TICK_MS = 100, PATIENCE_MS = 2000 };

// --- shared memory -------------------------------------------------------------------------------

// 0 where rounding up would overflow.
static size_t whole_pages(size_t size) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return size > SIZE_MAX - page ? 0 : (size + page - 1) / page * page;
}

// A number of /proc/meminfo, in bytes. 0 if there is none.
static uint64_t meminfo_bytes(const char *text, const char *key) {
    unsigned long long kib = 0;
    const char *line = strstr(text, key);
    return line && sscanf(line + strlen(key), " %llu", &kib) == 1 ? (uint64_t)kib * 1024 : 0;
}

// What the system can still give, with what it would write to swap. Without /proc less than that:
// caches which it could drop count as used.
static uint64_t available_memory(void) {
    char text[4096] = "";
    struct sysinfo info;
    FILE *file = fopen("/proc/meminfo", "re");
    if (file) {
        text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
        fclose(file);
    }
    const uint64_t available = meminfo_bytes(text, "\nMemAvailable:");
    if (available > 0) return available + meminfo_bytes(text, "\nSwapFree:");
    if (sysinfo(&info) != 0) return UINT64_MAX;
    return ((uint64_t)info.freeram + info.bufferram + info.freeswap) * info.mem_unit;
}

enum { WHY_SIZE = 256 };

static bool beyond(int error, const char *limit, uint64_t bytes, char out_why[WHY_SIZE]) {
    snprintf(out_why, WHY_SIZE, "%s: %s %llu bytes", strerror(error), limit,
             (unsigned long long)bytes);
    return true;
}

// The pages are of no process, so a system or a control group that runs out of them ends any: they
// are asked first. A file beyond the limit would end this process by a signal.
static bool is_beyond_limits(size_t size, char out_why[WHY_SIZE]) {
    struct rlimit limit;
    const uint64_t available = available_memory();
    const uint64_t left = cgroup_memory_left_here();
    if (size == 0 || size > INT64_MAX || size > available)
        return beyond(ENOMEM, "the system can give", available, out_why);
    if (size > left)
        return beyond(ENOMEM, "the limit of memory of a control group leaves", left, out_why);
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && size > limit.rlim_cur)
        return beyond(EFBIG, "the limit of sizes of files (ulimit -f) is", limit.rlim_cur, out_why);
    return false;
}

// Other signals wait meanwhile: they end the call before Linux 6.11. An errno.
static int take_pages(int fd, size_t size) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = posix_fallocate(fd, 0, (off_t)size);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

static enum ggml_host_status fail_to_share(size_t size, const char *why) {
    return ggml_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for %zu bytes that a process shares: %s",
                     size, why);
}

// Sealed: the other process can't shrink it under this one, which would be a bus error.
enum ggml_host_status shared_memory_new(size_t size, struct shared_memory *out_memory) {
    char why[WHY_SIZE];
    *out_memory = (struct shared_memory){.fd = -1};
    size = whole_pages(size);
    // Before the file, which may take the last descriptor: to ask takes one.
    if (is_beyond_limits(size, why)) return fail_to_share(size, why);
    const int fd = ggml_fault(GGML_FAULT_OPEN)
                       ? -1
                       : memfd_create("ggml-isolated", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) {
        const bool unknown = errno == ENOSYS;
        return ggml_fail(unknown ? GGML_HOST_UNSUPPORTED : GGML_HOST_OUT_OF_MEMORY,
                         "no memory can be shared with a process: %s", strerror(errno));
    }
    int error = take_pages(fd, size);
    if (error == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        error = errno;
    void *data = MAP_FAILED;
    if (error == 0 && !ggml_fault(GGML_FAULT_MAP))
        data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (error == 0 && data == MAP_FAILED) error = errno;
    if (error == 0) {
        *out_memory = (struct shared_memory){fd, data, size};
        return GGML_HOST_OK;
    }
    close(fd);
    return fail_to_share(size, strerror(error));
}

void shared_memory_free(struct shared_memory *memory) {
    if (memory->data) munmap(memory->data, memory->size);
    if (memory->fd >= 0) close(memory->fd);
    *memory = (struct shared_memory){.fd = -1};
}

// --- children of a fork --------------------------------------------------------------------------

// Memory of which a child of a fork finds zeros (Linux 4.14). To ask for the process's number would
// be one more system call per graph, which can take 2 us where page tables are isolated.
static char *mark_new(void) {
#ifdef MADV_WIPEONFORK
    const size_t size = whole_pages(1);
    char *mark = ggml_fault(GGML_FAULT_MAP)
                     ? MAP_FAILED
                     : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mark == MAP_FAILED) return NULL;
    if (madvise(mark, size, MADV_WIPEONFORK) == 0) {
        *mark = 1;
        return mark;
    }
    munmap(mark, size);
#endif
    return NULL;
}

// Whether this is the process that made the channel.
static bool is_ours(const struct channel *channel) {
    return channel->ours ? *channel->ours != 0 : channel->owner == (long)getpid();
}

// --- starting ------------------------------------------------------------------------------------

// Both directions time out after a moment, to check on the process: while waiting for an answer,
// and for room for a request, which a process that reads nothing never makes.
static bool open_sockets(int out_ends[2]) {
    const struct timeval tick = {.tv_usec = TICK_MS * 1000};
    int low[2] = {-1, -1};
    if (ggml_fault(GGML_FAULT_PIPE)) return false;
    const bool good = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, low) == 0;
    if (!probe_ends_raise(good, low, out_ends)) return false;
    if (setsockopt(out_ends[0], SOL_SOCKET, SO_RCVTIMEO, &tick, sizeof(tick)) == 0 &&
        setsockopt(out_ends[0], SOL_SOCKET, SO_SNDTIMEO, &tick, sizeof(tick)) == 0) {
        return true;
    }
    const int error = errno;
    probe_ends_close(out_ends);
    errno = error;
    return false;
}

enum ggml_host_status channel_open(struct channel *channel, const char *helper, const char *plugin,
                                   const char *name, uint32_t deadline_ms) {
    int ends[2];
    memset(channel, 0, sizeof(*channel));
    pthread_mutex_init(&channel->mutex, NULL);
    snprintf(channel->name, sizeof(channel->name), "%s", name);
    channel->owner = (long)getpid();
    channel->ours = mark_new();
    channel->deadline_ms = deadline_ms;
    channel->process.fd = -1;
    if (!open_sockets(ends)) return probe_process_fail(errno, PROCESS, "talked to");
    // The driver's standard error remains the application's.
    const char *const arguments[] = {"ggml-probe", ISOLATE_ARGUMENT, plugin, NULL};
    const struct probe_descriptor given[] = {{-1, 0}, {-1, 1}, {ends[1], ISOLATE_SOCKET_FD}};
    const int error = probe_process_spawn(helper, arguments, given,
                                          sizeof(given) / sizeof(given[0]), &channel->process.pid);
    if (error == 0) {
        atomic_store(&channel->pid, channel->process.pid);
        channel->process.fd = ends[0];
        ends[0] = -1;
    } else {
        channel->process.pid = 0;
    }
    probe_ends_close(ends);
    return error == 0 ? GGML_HOST_OK : probe_process_fail(error, PROCESS, "started");
}

// --- ending --------------------------------------------------------------------------------------

// Text for "the process ... %s".
static void describe_exit(const struct probe_exit *left, char *text, size_t size) {
    if (left->signal != 0) {
        snprintf(text, size, "ended by signal %d (%s)", left->signal,
                 probe_signal_name(left->signal));
    } else if (left->known) {
        snprintf(text, size, "ended with exit status %d", left->code);
    } else {
        snprintf(text, size, "ended");
    }
}

// Whether it is lost; records DEVICE_LOST then.
static bool is_lost(struct channel *channel) {
    if (!atomic_load(&channel->lost)) return false;
    ggml_fail(GGML_HOST_DEVICE_LOST, "%s is lost: the process that computed for it %s",
              channel->name, channel->why);
    return true;
}

// Waits for its end, so long at most.
static bool ends_within(const struct channel *channel, int ms) {
    const struct timespec moment = {.tv_nsec = 1000000};
    const int64_t end = wait_clock_ns() + (int64_t)ms * 1000000;
    while (!probe_process_gone(&channel->process)) {
        if (wait_clock_ns() >= end) return false;
        nanosleep(&moment, NULL);
    }
    return true;
}

// With the lock held. `fault`: reason for killing it, NULL if it ended by itself.
static enum ggml_host_status lose(struct channel *channel, const char *fault) {
    struct probe_exit left = {0};
    char how[128];
    if (!atomic_load(&channel->lost)) {
        atomic_store(&channel->pid, 0);
        // Its socket is closed a moment before it is gone.
        if (!fault && !ends_within(channel, TICK_MS)) fault = "closed its connection and was ended";
        probe_process_end(&channel->process, &left);
        describe_exit(&left, how, sizeof(how));
        snprintf(channel->why, sizeof(channel->why), "%s", fault ? fault : how);
        atomic_store(&channel->lost, true);
        if (channel->logs_loss)
            GGML_LOG_ERROR("%s is lost: the process that computed for it %s\n", channel->name,
                           channel->why);
    }
    is_lost(channel);
    return GGML_HOST_DEVICE_LOST;
}

// Closing the socket ends the process; one that doesn't within PATIENCE_MS is killed. A forked
// child only closes its descriptors: the process isn't its own.
void channel_close(struct channel *channel) {
    struct probe_exit left;
    const bool ours = is_ours(channel);
    atomic_store(&channel->pid, 0);
    if (ours && channel->process.pid != 0 && channel->process.fd >= 0) {
        shutdown(channel->process.fd, SHUT_RDWR);
        ends_within(channel, PATIENCE_MS);
        probe_process_end(&channel->process, &left);
    }
    if (channel->process.fd >= 0) close(channel->process.fd);
    if (channel->shared) munmap(channel->shared, channel->shared_size);
    if (channel->ours) munmap(channel->ours, whole_pages(1));
    if (ours) pthread_mutex_destroy(&channel->mutex);
    channel->process = (struct probe_process){.fd = -1};
    channel->shared = NULL;
    channel->ours = NULL;
}

bool channel_usable(struct channel *channel) {
    if (is_lost(channel)) return false;
    if (is_ours(channel)) return true;
    ggml_fail(GGML_HOST_DEVICE_LOST, "%s is lost: it belongs to the process that was forked",
              channel->name);
    return false;
}

// --- talking -------------------------------------------------------------------------------------

bool channel_lock(struct channel *channel) {
    if (!channel_usable(channel)) return false;
    pthread_mutex_lock(&channel->mutex);
    return true;
}

void channel_unlock(struct channel *channel) {
    pthread_mutex_unlock(&channel->mutex);
}

static bool is_hang_up(int error) {
    return error == EPIPE || error == ECONNRESET || error == ECONNREFUSED || error == ENOTCONN;
}

// Whether to go on waiting after a call that failed; declares the process lost if it is gone or
// late, or if the system can't pass messages. Repeated signals must not prevent that.
static bool patient(struct channel *channel) {
    const int error = errno;
    char fault[128];
    if (is_hang_up(error) || probe_process_gone(&channel->process))
        return lose(channel, NULL), false;
    if (error != EINTR && error != EAGAIN) {
        snprintf(fault, sizeof(fault), "can't be talked to and was ended: %s", strerror(error));
        return lose(channel, fault), false;
    }
    const int64_t deadline_us = (int64_t)channel->deadline_ms * 1000;
    if (deadline_us == 0 || ggml_time_us() - channel->asked_us <= deadline_us) return true;
    return lose(channel, "did not answer in time and was ended"), false;
}

// Sends a message of the pieces, and `fd` beside it unless that is -1. False after the process was
// lost.
static bool send_pieces(struct channel *channel, struct iovec *pieces, size_t n_pieces, int fd) {
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = n_pieces};
    if (fd >= 0) {
        memset(&control, 0, sizeof(control));
        message.msg_control = &control;
        message.msg_controllen = sizeof(control);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(header), &fd, sizeof(fd));
    }
    // Asked once: how often a call is repeated depends on how busy the machine is.
    bool fails = ggml_fault(GGML_FAULT_WRITE);
    for (;; fails = false) { // a whole message or nothing
        const ssize_t n = fails ? -1 : sendmsg(channel->process.fd, &message, MSG_NOSIGNAL);
        if (n >= 0) return true;
        if (!patient(channel)) return false;
    }
}

// The text is cut to what is used.
static bool send_request(struct channel *channel, const struct isolate_request *request, int fd) {
    const size_t text = strnlen(request->text, sizeof(request->text) - 1) + 1;
    struct iovec piece = {(void *)request, offsetof(struct isolate_request, text) + text};
    return send_pieces(channel, &piece, 1, fd);
}

// The other process isn't trusted: its number must be one of the list.
static bool is_status(int32_t number) {
    switch (number) {
#define GGML_HOST_STATUS_ROW(number, name, text) case number:
#include "status_list.inl"
        return true;
    default: return false;
    }
}

// Whether the message is the answer to the request; terminates its text.
static bool is_answer(struct isolate_answer *answer, size_t size, uint64_t number) {
    if (size < offsetof(struct isolate_answer, text)) return false;
    const size_t end = size - offsetof(struct isolate_answer, text);
    answer->text[end < ISOLATE_TEXT_SIZE ? end : ISOLATE_TEXT_SIZE - 1] = '\0';
    return answer->number == number && is_status(answer->status);
}

// Receives a message: first polls for a moment, then sleeps. After an interruption it looks once
// more: an application that was stopped for longer than the deadline may have its answer already.
static ssize_t receive_message(struct channel *channel, bool computes,
                               struct isolate_answer *out_answer) {
    struct wait_habit *habit = &channel->habits[computes];
    const int64_t start = wait_clock_ns();
    ssize_t n = -1;
    errno = EAGAIN;
    for (bool looks = wait_looks(habit); looks && n < 0 && errno == EAGAIN;
         looks = wait_clock_ns() - start < WAIT_LOOK_NS)
        n = recv(channel->process.fd, out_answer, sizeof(*out_answer), MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) n = recv(channel->process.fd, out_answer, sizeof(*out_answer), 0);
    if (n < 0 && errno == EINTR)
        n = recv(channel->process.fd, out_answer, sizeof(*out_answer), MSG_DONTWAIT);
    const int error = errno;
    channel->answered_ns = wait_clock_ns();
    if (n >= (ssize_t)offsetof(struct isolate_answer, text))
        wait_learn(habit, channel->answered_ns - start, out_answer->taken_ns);
    errno = error;
    return n;
}

// Waits for the answer to the request; any other message makes the process lost. false after that.
static bool receive(struct channel *channel, const struct isolate_request *request,
                    struct isolate_answer *out_answer) {
    const bool computes = request->kind == ISOLATE_COMPUTE;
    bool fails = ggml_fault(GGML_FAULT_READ); // once, as above
    for (;; fails = false) {
        const ssize_t n = fails ? -1 : receive_message(channel, computes, out_answer);
        if (n == 0) return lose(channel, NULL), false;
        if (n > 0 && is_answer(out_answer, (size_t)n, request->number)) return true;
        if (n > 0) return lose(channel, "answered what it was not asked and was ended"), false;
        if (!patient(channel)) return false;
    }
}

// Numbers a request; its deadline counts from now on.
static void begin(struct channel *channel, struct isolate_request *request) {
    request->number = ++channel->number;
    request->taken_ns = wait_clock_ns() - channel->answered_ns;
    channel->asked_us = channel->deadline_ms > 0 ? ggml_time_us() : 0;
}

enum ggml_host_status channel_send(struct channel *channel, struct isolate_request *request,
                                   int fd) {
    if (is_lost(channel)) return GGML_HOST_DEVICE_LOST;
    begin(channel, request);
    return send_request(channel, request, fd) ? GGML_HOST_OK : GGML_HOST_DEVICE_LOST;
}

// A failure that the other process reports becomes this thread's error.
enum ggml_host_status channel_wait(struct channel *channel, const struct isolate_request *request,
                                   struct isolate_answer *out_answer) {
    struct isolate_answer own;
    struct isolate_answer *answer = out_answer ? out_answer : &own;
    if (!receive(channel, request, answer)) {
        answer->compute = GGML_STATUS_FAILED;
        return GGML_HOST_DEVICE_LOST;
    }
    if (answer->status == GGML_HOST_OK) return GGML_HOST_OK;
    const enum ggml_host_status status = (enum ggml_host_status)answer->status;
    const char *why = answer->text[0] != '\0' ? answer->text : ggml_host_status_text(status);
    return ggml_fail(status, "%s", why);
}

enum ggml_host_status channel_call(struct channel *channel, struct isolate_request *request, int fd,
                                   struct isolate_answer *out_answer) {
    if (out_answer) out_answer->compute = GGML_STATUS_FAILED;
    const enum ggml_host_status status = channel_send(channel, request, fd);
    return status == GGML_HOST_OK ? channel_wait(channel, request, out_answer) : status;
}

// Returns when the system has the bytes.
enum ggml_host_status channel_post(struct channel *channel, struct isolate_request *request,
                                   const struct isolate_tensor *tensor, const void *bytes,
                                   size_t size) {
    struct iovec pieces[] = {{request, offsetof(struct isolate_request, text)},
                             {(void *)(uintptr_t)tensor, sizeof(*tensor)},
                             {(void *)(uintptr_t)bytes, size}};
    if (is_lost(channel)) return GGML_HOST_DEVICE_LOST;
    begin(channel, request);
    const bool sent = send_pieces(channel, pieces, 3, -1);
    channel->answered_ns = wait_clock_ns();
    return sent ? GGML_HOST_OK : GGML_HOST_DEVICE_LOST;
}

enum ggml_host_status channel_ask(struct channel *channel, struct isolate_request *request,
                                  int fd) {
    if (!channel_lock(channel)) return GGML_HOST_DEVICE_LOST;
    const enum ggml_host_status status = channel_call(channel, request, fd, NULL);
    channel_unlock(channel);
    return status;
}

enum { SHARED_LEAST = 1 << 16, SHARED_DOUBLED = 4 << 20 };

// Shares other memory instead, which the other side has to map. The old contents aren't copied.
static enum ggml_host_status share(struct channel *channel, size_t size) {
    struct shared_memory memory;
    enum ggml_host_status status = shared_memory_new(size, &memory);
    if (status != GGML_HOST_OK) return status;
    struct isolate_request request = {.kind = ISOLATE_SHARE, .size = memory.size};
    status = channel_call(channel, &request, memory.fd, NULL);
    if (status == GGML_HOST_OK) {
        if (channel->shared) munmap(channel->shared, channel->shared_size);
        channel->shared = memory.data;
        channel->shared_size = memory.size;
        memory.data = NULL;
    }
    shared_memory_free(&memory);
    return status;
}

// Whether more is shared, and has been for a while, than pieces of transfers need: by a device that
// takes whole tensors at once. One that is set after each graph keeps it.
static bool is_wasteful(struct channel *channel, size_t size) {
    enum { KEPT = 16 << 20, UNUSED = 64 };
    channel->n_unused = channel->shared_size > KEPT && size <= KEPT ? channel->n_unused + 1 : 0;
    return channel->n_unused > UNUSED;
}

// So that little is shared anew, a little at least doubles.
enum ggml_host_status channel_reserve(struct channel *channel, size_t size) {
    const bool is_less = is_wasteful(channel, size);
    if (size <= channel->shared_size && !is_less) return GGML_HOST_OK;
    if (channel->shared_size <= SHARED_DOUBLED) size = MAX(size, 2 * channel->shared_size);
    if (size < SHARED_LEAST) size = SHARED_LEAST;
    struct ggml_saved_error saved;
    ggml_error_save(&saved);
    channel->n_unused = 0;
    const enum ggml_host_status status = share(channel, size);
    // Without memory for less it is what it was, which is enough.
    if (!is_less || status == GGML_HOST_OK || is_lost(channel)) return status;
    ggml_error_restore(&saved);
    return GGML_HOST_OK;
}
