// SPDX-License-Identifier: MIT
// The machine as hwloc sees it, from a process of its own: hwloc may crash, hang, or map libraries
// that do. Whatever becomes of it is a line, and a simpler drawing.
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "print.h"
#include "tree.h"

enum { DEADLINE_MS = 5000, MAX_DEPTH = 64, EXIT_NO_TREE = 70 };
enum { MAX_BYTES = 16 << 20, MAX_CORES = 1 << 16 }; // some 20,000 boxes

// --- the child

// Nodes in the order of a depth-first walk, as they lie in memory; the pointers say only whether
// there is such a node.
static bool send_nodes(const struct node *node, int out) {
    for (; node; node = node->next) {
        for (size_t done = 0; done < sizeof(*node);) {
            const ssize_t n = write(out, (const char *)node + done, sizeof(*node) - done);
            if (n <= 0) return false;
            done += (size_t)n;
        }
        if (!send_nodes(node->first_child, out)) return false;
    }
    return true;
}

_Noreturn static void run_child(const struct inventory *inventory, int out, pid_t parent) {
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(EXIT_NO_TREE);
    const struct node *root = tree_build_hwloc(inventory);
    // What crashes or hangs when it is unmapped is not waited for.
    _exit(root && send_nodes(root, out) ? 0 : EXIT_NO_TREE);
}

// --- this process

static int64_t now_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

// Takes what comes until the child ends; false if it is late, or has too much to say.
static bool receive(int from, char *bytes, size_t *out_size) {
    const int64_t end = now_ms() + DEADLINE_MS;
    *out_size = 0;
    for (int64_t left = DEADLINE_MS; left > 0 && *out_size < MAX_BYTES; left = end - now_ms()) {
        struct pollfd polled = {.fd = from, .events = POLLIN};
        if (poll(&polled, 1, (int)left) <= 0) continue;
        const ssize_t n = read(from, bytes + *out_size, MAX_BYTES - *out_size);
        if (n == 0) return true;
        if (n > 0) *out_size += (size_t)n;
    }
    return false;
}

struct reader {
    const char *bytes;
    size_t left;
};

// Makes nothing longer. Lines stay lines.
static void take_text(char *text, size_t size) {
    char clean[sizeof(((struct node *)NULL)->more)];
    size_t used = 0;
    text[size - 1] = '\0';
    for (char *line = text, *end; line; line = end ? end + 1 : NULL) {
        end = strchr(line, '\n');
        if (end) *end = '\0';
        sanitise(line, clean + used, sizeof(clean) - used);
        used += strlen(clean + used);
        if (end) clean[used++] = '\n';
    }
    memcpy(text, clean, used + 1);
}

// Reads nodes that anybody may have written; NULL on damage, and when memory gives out.
static struct node *take_nodes(struct reader *reader, int depth) {
    struct node *first = NULL, **end = &first;
    for (bool more = true; more; end = &(*end)->next) {
        struct node *node =
            depth < MAX_DEPTH && reader->left >= sizeof(*node) ? malloc(sizeof(*node)) : NULL;
        if (!node) goto fail;
        memcpy(node, reader->bytes, sizeof(*node));
        reader->bytes += sizeof(*node);
        reader->left -= sizeof(*node);
        more = node->next != NULL;
        const bool has_children = node->first_child != NULL;
        node->first_child = node->next = node->ends[0] = node->ends[1] = NULL;
        *end = node;
        take_text(node->label, sizeof(node->label));
        take_text(node->more, sizeof(node->more));
        if ((unsigned)node->kind > NODE_DEVICE || node->count > MAX_CORES) goto fail;
        if (has_children && !(node->first_child = take_nodes(reader, depth + 1))) goto fail;
    }
    return first;
fail:
    tree_free(first);
    return NULL;
}

// The root, if all that came is one tree of a machine.
static struct node *take_tree(const char *bytes, size_t size) {
    struct reader reader = {bytes, size};
    struct node *root = take_nodes(&reader, 0);
    if (root && reader.left == 0 && !root->next && root->kind == NODE_MACHINE) return root;
    tree_free(root);
    return NULL;
}

// Collects the child, and says why there is nothing of it.
static void end_child(pid_t child, bool ended, bool good) {
    int status = 0;
    if (!ended) kill(-child, SIGKILL);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (good) return;
    if (!ended) {
        fputs("ggml-devices: hwloc doesn't answer", stderr);
    } else if (WIFSIGNALED(status)) {
        fprintf(stderr, "ggml-devices: hwloc ended its process by signal %d (%s)", WTERMSIG(status),
                strsignal(WTERMSIG(status)));
    } else {
        fputs("ggml-devices: hwloc can't read the machine", stderr);
    }
    fputs(": it is drawn without\n", stderr);
}

struct node *tree_build_machine(const struct inventory *inventory) {
    struct node *root = NULL;
    int ends[2] = {-1, -1};
    char *bytes = malloc(MAX_BYTES);
    const pid_t parent = getpid();
    fflush(NULL); // what is buffered would be written twice
    const pid_t child = bytes && pipe(ends) == 0 ? fork() : -1;
    if (child == 0) {
        close(ends[0]);
        run_child(inventory, ends[1], parent);
    }
    if (ends[1] >= 0) close(ends[1]);
    if (child > 0) {
        size_t size;
        const bool ended = receive(ends[0], bytes, &size);
        if (ended) root = take_tree(bytes, size);
        end_child(child, ended, root != NULL);
    }
    if (ends[0] >= 0) close(ends[0]);
    free(bytes);
    return root ? root : tree_build_plain(inventory);
}
