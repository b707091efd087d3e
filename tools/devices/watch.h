// SPDX-License-Identifier: MIT
// What devices are doing: memory, how busy they are, and who uses them.
#ifndef DEVICES_WATCH_H
#define DEVICES_WATCH_H

#include "inventory.h"
#include "print.h"

// Prints what the devices of the inventory, which are loaded, do every `seconds` until a signal or
// the key q ends it: in the same place on a terminal, one block after the other elsewhere. False
// after a message where that is impossible. Blocks.
bool watch(const struct inventory *inventory, const struct page *page, double seconds,
           const char *root);

// --- what the system tells -----------------------------------------------------------------------

enum { WATCH_MAX_PROCESSES = 8, WATCH_NAME_SIZE = 32 };

struct watch_process {
    long pid;
    char name[WATCH_NAME_SIZE];
    uint64_t bytes;   // of the device's memory; 0: not told
    uint64_t busy_ns; // of the engine that it used longest, since it began
};

// Of one device. Counters only grow: what happened is their difference.
struct watch_sample {
    double busy; // part of the time, 0 to 1, if the driver tells at once; below 0: no
    uint64_t busy_time, all_time; // counters that tell it as a ratio; 0: none
    struct watch_process processes[WATCH_MAX_PROCESSES]; // that may be looked at, the largest first
    int n_processes;
    int n_more; // that found no room
};

// Of the processors of this machine.
void watch_sample_cpu(const char *root, struct watch_sample *out_sample);
// Of the GPU at a PCI address. now_ns: of a clock that only grows.
void watch_sample_gpu(const char *root, const char *address, uint64_t now_ns,
                      struct watch_sample *out_sample);

#endif
