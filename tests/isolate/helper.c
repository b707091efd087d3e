// SPDX-License-Identifier: MIT
// A helper of isolated devices that goes wrong, as GGML_TEST_ISOLATE says:
//   fail N       the N-th call that may fail does
//   kill N       the process is killed there
//   nonsense N   taken over: answers of all kinds, by this seed, from the N-th request on
//   flood        answers without reading what it is asked
//   stay         answers what it is asked, and doesn't end with its socket
//   leave        closes its socket instead of a later answer, and doesn't end
//
//   short        makes the memory that it was given smaller, or tries to, frees its pages, and
//                writes into it without end
//
// A file is made at GGML_TEST_REACHED when the N-th call was reached.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/mem.h"
#include "isolate/serve.h"
#include "support/fault_sweep.h"

static atomic_long n_left;
static struct fault_run reads = {.most = FAULT_READS};
static bool kills;

static void reached(void) {
    const int fd = open(getenv("GGML_TEST_REACHED"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0) close(fd);
    if (kills) raise(SIGKILL);
}

static bool may(void) {
    if (atomic_fetch_sub(&n_left, 1) != 0) return true;
    reached();
    return false;
}

static bool may_allocate(void *context) {
    (void)context;
    fault_run_counts(&reads, false);
    return may();
}

static bool may_call(enum ggml_fault_point point, void *context) {
    (void)context;
    return !fault_run_counts(&reads, point == GGML_FAULT_READ) || may();
}

// --- one that was taken over ---------------------------------------------------------------------

static uint64_t state;

static uint64_t next_random(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static ssize_t take(struct isolate_request *request, int *out_fd) {
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec piece = {request, sizeof(*request)};
    struct msghdr message = {.msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    *out_fd = -1;
    const ssize_t n = recvmsg(ISOLATE_SOCKET_FD, &message, 0);
    const struct cmsghdr *header = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (header) memcpy(out_fd, CMSG_DATA(header), sizeof(*out_fd));
    return n;
}

static void give(const void *bytes, size_t size) {
    if (send(ISOLATE_SOCKET_FD, bytes, size, MSG_NOSIGNAL) < 0) _exit(0);
}

static void answer_nonsense(const struct isolate_request *request) {
    struct isolate_answer answer;
    unsigned char *bytes = (unsigned char *)&answer;
    for (size_t i = 0; i < sizeof(answer); ++i)
        bytes[i] = (unsigned char)next_random();
    uint64_t kind = next_random() % 8;
    if (kind == 6 && request->kind <= ISOLATE_SHARE) kind = 7; // the deadline of a start is longer
    if (kind < 6) answer.number = request->number;
    if (kind < 5) answer.status = (int32_t)(next_random() % 44);
    if (kind < 3) answer.status = 0;
    if (kind == 6) return; // none, in time
    give(&answer, kind == 7 ? next_random() % sizeof(answer) : sizeof(answer));
    if (kind == 2) give(&answer, sizeof(answer));
}

// Memory of the application's that is written to while the application uses it.
struct memory {
    uint64_t *words;
    size_t n_words;
};

static void *scribble(void *context) {
    const struct memory memory = *(struct memory *)context;
    uint64_t word = 1;
    for (size_t at = 0;; at = at + 1 < memory.n_words ? at + 1 : 0)
        ((volatile uint64_t *)memory.words)[at] = word *= UINT64_C(0x9e3779b97f4a7c15);
    return NULL;
}

// It must not be possible to take it away, or to keep the application from writing to it. To free
// its pages is possible: they come back as zeros.
static void attack(int fd) {
    enum { MOST = 4 };
    static struct memory held[MOST];
    static int n_held;
    struct stat about;
    pthread_t thread;
    if (ftruncate(fd, 0) == 0 || ftruncate(fd, 1 << 30) == 0) reached();
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) == 0) reached();
    if (fstat(fd, &about) != 0) _exit(1);
    fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, about.st_size);
    if (n_held == MOST) return;
    struct memory *memory = &held[n_held++];
    void *data = mmap(NULL, (size_t)about.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    *memory = (struct memory){data, (size_t)about.st_size / sizeof(uint64_t)};
    if (data == MAP_FAILED || pthread_create(&thread, NULL, scribble, memory) != 0) _exit(1);
}

_Noreturn static void be_taken_over(const char *how) {
    struct isolate_request request;
    const long first = strtol(strchr(how, ' ') ? strchr(how, ' ') : "0", NULL, 10);
    int fd;
    state = 0x9e3779b97f4a7c15u * (uint64_t)(first + 1);
    for (uint64_t number = 1; strcmp(how, "flood") == 0; ++number) {
        const struct isolate_answer good = {.number = number};
        give(&good, offsetof(struct isolate_answer, text) + 1);
    }
    for (long i = 0; take(&request, &fd) > 0; ++i) {
        const struct isolate_answer good = {.number = request.number};
        if (fd >= 0) attack(fd);
        if (fd >= 0) close(fd);
        if (strcmp(how, "leave") == 0 && request.kind > ISOLATE_BUFFER_NEW) {
            close(ISOLATE_SOCKET_FD);
            for (;;)
                pause();
        }
        if (strcmp(how, "short") == 0 || strcmp(how, "stay") == 0 || strcmp(how, "leave") == 0 ||
            i < first % 24) {
            give(&good, offsetof(struct isolate_answer, text) + 1);
        } else {
            answer_nonsense(&request);
        }
    }
    if (strcmp(how, "stay") == 0) pause();
    _exit(0);
}

int main(int argc, char **argv) {
    const char *how = getenv("GGML_TEST_ISOLATE");
    if (argc != 3 || !how) return 64;
    kills = strncmp(how, "kill", 4) == 0;
    if (!kills && strncmp(how, "fail", 4) != 0) be_taken_over(how);
    atomic_store(&n_left, strtol(how + 4, NULL, 10));
    ggml_mem_set_fault_hook(may_allocate, NULL);
    ggml_fault_set_hook(may_call, NULL);
    _exit(isolate_serve(argv[2]));
}
