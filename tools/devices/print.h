// SPDX-License-Identifier: MIT
// The views of ggml-devices on an inventory.
#ifndef DEVICES_PRINT_H
#define DEVICES_PRINT_H

#include <stdint.h>
#include <stdio.h>

#include "inventory.h"
#include "sanitise.h"

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

const char *selftest_workload(int i);
// Runs every workload on the device; `done` (may be NULL) is told each result. Blocks.
void selftest_run(ggml_backend_dev_t device, struct selftest_result out_results[SELFTEST_WORKLOADS],
                  void (*done)(void *context, const struct selftest_result *result), void *context);
// The same in a process of its own, which loads the device's plugin; one that can't be started is a
// failed test. False on systems where there can be none. Blocks, at most two minutes.
bool selftest_run_apart(const struct device_entry *device,
                        struct selftest_result out_results[SELFTEST_WORKLOADS]);

// First argument of a process that has one device.
#define DEVICE_CHILD "--child-for"

// This program once more, with one device, so that what a device does to it is a line in the list.
enum child_job { CHILD_TESTS, CHILD_TELLS };
struct device_child {
    FILE *told;    // what it wrote, and what other processes with its descriptors wrote
    uint64_t key;  // that its results have
    char how[256]; // it ended, "" for well; else why it is not there
};
// Whether there can be one on this system.
extern const bool has_device_children;
// Runs one, which loads the device's plugin, to its end and that of what it left in its session.
// False, with nothing to free, if there can be none. Blocks, at most two minutes.
bool device_child_run(const struct device_entry *device, enum child_job job,
                      struct device_child *out_child);
void device_child_free(struct device_child *child);
// main() of that process.
int device_child_main(int argc, char **argv);

// What a child tells of its device, line by line: figures, and operations with their types.
void tell_operations(ggml_backend_dev_t device, FILE *out);

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
// Of that page: its figures and its operations by type, as a process of its own tells them.
void print_operations(const struct device_entry *device, const struct page *page);
// Prints text that may come from a plugin: control characters are replaced, and it is wrapped at
// the page's width. `column` is where the line stands, `indent` where further lines begin;
// returns the column after it.
unsigned put(const struct page *page, unsigned column, unsigned indent, const char *format, ...)
    GGML_ATTRIBUTE_FORMAT(4, 5);
// A row of the page of one device; nothing for a text that is NULL.
void put_row(const struct page *page, const char *name, const char *text);
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
