// SPDX-License-Identifier: MIT
// In place of a function of hwloc, for whoever is preloaded with it: crashes, hangs, writes into
// everything that is open, or fails, as GGML_TEST_HWLOC says.
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((visibility("default"))) int hwloc_topology_load(void *topology);

static void write_everywhere(void) {
    char garbage[4096];
    memset(garbage, 'A', sizeof(garbage));
    for (int fd = 3; fd < 64; ++fd) {
        const ssize_t n = write(fd, garbage, sizeof(garbage));
        (void)n;
    }
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
    if (strcmp(habit, "garbage") == 0) write_everywhere();
    return -1;
}
