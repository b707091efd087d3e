// SPDX-License-Identifier: MIT
// The views of ggml-devices on an inventory.
#ifndef DEVICES_PRINT_H
#define DEVICES_PRINT_H

#include <stdio.h>

#include "inventory.h"

// What a device's self-test found.
enum selftest_verdict { SELFTEST_PASSED, SELFTEST_FAILED, SELFTEST_UNSUPPORTED };

struct selftest_result {
    const char *workload;
    enum selftest_verdict verdict;
    double milliseconds; // best of several computations
    double error;        // normalised mean square error against double precision
    double bound;        // largest error that passes
    char message[256];   // why it failed
};

enum { SELFTEST_WORKLOADS = 4 };

// Runs every workload on the device. Blocks.
void selftest_run(ggml_backend_dev_t device,
                  struct selftest_result out_results[SELFTEST_WORKLOADS]);

// Copies text to out_text without control characters and invalid UTF-8 (both become '?').
void sanitise(const char *text, char *out_text, size_t size);

void print_table(const struct inventory *inventory, bool colour, bool verbose);
void print_selftest(const struct device_entry *device, const struct selftest_result *results,
                    bool colour);
// `results` (may be NULL): SELFTEST_WORKLOADS per device. False when memory or the stream gives
// out.
bool print_json(const struct inventory *inventory, const struct selftest_result *results,
                FILE *stream);

// The machine with the devices where they hang.
bool draw_tree(const struct inventory *inventory, FILE *stream);
bool draw_dot(const struct inventory *inventory, FILE *stream);
bool draw_svg(const struct inventory *inventory, FILE *stream);

#endif
