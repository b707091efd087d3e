// SPDX-License-Identifier: MIT
// The views of ggml-devices on an inventory.
#ifndef DEVICES_PRINT_H
#define DEVICES_PRINT_H

#include <stdio.h>

#include "inventory.h"

// What a device's self-test found.
enum selftest_verdict {
    SELFTEST_PASSED,
    SELFTEST_FAILED,
    SELFTEST_UNSUPPORTED,
    SELFTEST_NOT_RUN // an earlier one ended the process
};

struct selftest_result {
    const char *workload;
    enum selftest_verdict verdict;
    double milliseconds; // best of several computations
    double error;        // normalised mean square error against double precision
    double bound;        // largest error that passes
    char message[256];   // why it failed
};

enum { SELFTEST_WORKLOADS = 5 };
// First argument of a process that tests one device.
#define SELFTEST_CHILD "--self-test-of"

const char *selftest_workload(int i);
// Runs every workload on the device; `done` (may be NULL) is told each result. Blocks.
void selftest_run(ggml_backend_dev_t device, struct selftest_result out_results[SELFTEST_WORKLOADS],
                  void (*done)(void *context, const struct selftest_result *result), void *context);
// The same in a process of its own, which loads the device's plugin. False if there can be none.
// Blocks, at most two minutes.
bool selftest_run_apart(const struct device_entry *device,
                        struct selftest_result out_results[SELFTEST_WORKLOADS]);
// Whether there can be one on this system.
extern const bool selftest_is_apart;
// main() of that process.
int selftest_child_main(int argc, char **argv);

// Copies text to out_text without control characters and invalid UTF-8 (both become '?').
void sanitise(const char *text, char *out_text, size_t size);

// How to print.
struct page {
    bool colour;
    bool verbose;
    bool utf8;      // line-drawing characters can be shown
    unsigned width; // columns; 0: lines may be as long as they are
};

// "1.5 of 2.0 GiB free (3 min ago)"
void format_memory(const struct device_entry *device, char *out_text, size_t size);
// What it is, and what is missing.
void format_gpu(const struct unserved_gpu *gpu, char *out_text, size_t size);

void print_table(const struct inventory *inventory, const struct page *page);
// Names alone.
void print_names(const struct inventory *inventory);
// All that is known of one device.
void print_device_page(const struct device_entry *device, const struct page *page);
void print_selftest(const struct device_entry *device, const struct selftest_result *results,
                    const struct page *page);
// `results` (may be NULL): SELFTEST_WORKLOADS per device. False when memory or the stream gives
// out.
bool print_json(const struct inventory *inventory, const struct selftest_result *results,
                FILE *stream);

// The machine with the devices where they hang.
bool draw_tree(const struct inventory *inventory, const struct page *page, FILE *stream);
bool draw_dot(const struct inventory *inventory, FILE *stream);
bool draw_svg(const struct inventory *inventory, FILE *stream);
// A page with that drawing.
bool draw_html(const struct inventory *inventory, FILE *stream);

#endif
