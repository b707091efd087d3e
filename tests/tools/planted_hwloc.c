// SPDX-License-Identifier: MIT
// In place of a function of hwloc, for whoever is preloaded with it: crashes, hangs, writes into
// everything that is open, a tree of its own too, or fails, as GGML_TEST_HWLOC says.
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tree.h"

__attribute__((visibility("default"))) int hwloc_topology_load(void *topology);

static void write_everywhere(const void *bytes, size_t size) {
    for (int fd = 3; fd < 64; ++fd) {
        const ssize_t n = write(fd, bytes, size);
        (void)n;
    }
}

static void write_garbage(void) {
    char garbage[4096];
    memset(garbage, 'A', sizeof(garbage));
    write_everywhere(garbage, sizeof(garbage));
}

// Whole, but for what its texts would tell a terminal.
static void write_tree(void) {
    static const struct node root = {.kind = NODE_MACHINE,
                                     .label = "Machine \x1b[31mred \xc2\x9b[5m \x7f \xff",
                                     .more = "one\ntwo \xc2\x9b[5m"};
    write_everywhere(&root, sizeof(root));
    _exit(0);
}

int hwloc_topology_load(void *topology) {
    const char *habit = getenv("GGML_TEST_HWLOC");
    (void)topology;
    if (!habit) return -1;
    if (strcmp(habit, "crash") == 0) {
        signal(SIGSEGV, SIG_DFL); // not what a sanitizer makes of it
        raise(SIGSEGV);
    }
    while (strcmp(habit, "hang") == 0)
        pause();
    if (strcmp(habit, "garbage") == 0) write_garbage();
    if (strcmp(habit, "tree") == 0) write_tree();
    return -1;
}
