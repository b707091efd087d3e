// SPDX-License-Identifier: MIT
// The measurements that ggml-bench report makes a page of; times are in seconds, rates per second.
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

// One operation with operands of certain types and sizes.
struct report_op {
    char op[32];
    char name[96];
    int64_t columns; // 1: as for a token, more: as for a prompt
    double seconds;  // the shortest run
    double median;
    double flops; // as the table of operations counts them; 0: it only moves data
    double bytes; // of the operands, each once
    int64_t runs;
    bool cold; // weights came from memory, not from a cache
};

// One shape of a model.
struct report_model {
    char size[16], type[16];
    int64_t prompt, context; // tokens
    double prompt_seconds, token_seconds;
    double prompt_flops, weight_bytes;
};

struct report_device {
    char name[64], description[160], type[16], plugin[64];
    char failure[256]; // what went wrong; ""
    char note[256];    // what was left out; ""
    double memory;     // bytes; 0: not known
    double flops;      // fused multiply-adds of the host's processors; 0: not known
    double reads;      // bytes that they read; 0: not known
    double copies;     // bytes read and written by a copy on the device
    double launch;     // of one node
    double submit;     // the part of it until the device has the node
    struct report_op *ops;
    size_t n_ops;
    struct report_model *models;
    size_t n_models;
};

struct report {
    char time[32]; // ISO 8601, UTC
    char version[32], commit[48];
    int64_t threads;
    bool quick;
    double other_load; // share of the processors' time that other programs took; 0: not known
    struct report_device *devices;
    size_t n_devices;
};

// What to measure.
struct report_options {
    const char *const *devices; // names; none: all
    size_t n_devices;
    const char *op; // only this one, and no models; NULL: all
    bool quick;
};

// --- data

// A new last element of zeros; NULL without memory.
struct report_device *report_add_device(struct report *report);
struct report_op *report_add_op(struct report_device *device);
struct report_model *report_add_model(struct report_device *device);
void report_free(struct report *report);

const struct report_device *report_find_device(const struct report *report, const char *name);
// The same measurement of a device; NULL. `device` may be NULL.
const struct report_op *report_find_op(const struct report_device *device,
                                       const struct report_op *like);
const struct report_model *report_find_model(const struct report_device *device,
                                             const struct report_model *like);

// --- measuring, and reading and writing measurements

// Measures all devices that are there; one that fails has the reason in its record. False without
// memory.
bool report_measure(struct report *out_report, const struct report_options *options);

// False if the stream gave out.
bool report_write_json(const struct report *report, FILE *stream);
// Reads a page or the JSON of one. False after a message on stderr.
bool report_read(struct report *out_report, const char *path);

// --- the page

// `earlier` may be NULL; earlier_name: what it is called on the page. False if the stream or
// memory gave out.
bool report_write_page(const struct report *report, const struct report *earlier,
                       const char *earlier_name, FILE *stream);

#endif
