// SPDX-License-Identifier: MIT
// Runs the conformance cases on a device: every operation, compared with an oracle in double
// precision. Uses the public API only.
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include <stdio.h>

#include "ggml-backend.h"

enum conformance_corruption {
    CORRUPT_NOTHING,
    CORRUPT_RESULT, // one element of each result is changed after the run
    CORRUPT_GUARD,  // one byte that no result owns is changed after the run
};

struct conformance_options {
    uint64_t seed;
    const char *op;   // only this row, or NULL
    const char *name; // only this case (or those that begin so, if it ends in '*'), or NULL
    int every;        // only one case of so many; 0 or 1: all
    // Of each row so many cases that the device claims, and of those behind them fewer and fewer,
    // which the seed chooses: about sample * (1 + log(claimed / sample)). 0: all.
    int sample;
    bool kinds; // besides the sample, one case for each combination of kinds of types
    enum conformance_corruption corruption;
    bool ask;     // only ask what the device claims, and compute nothing
    bool claims;  // also compute what the device claims to support and no case has
    bool threads; // also compute with other numbers of threads: the bytes must be equal
    FILE *list;   // prints names there and runs nothing, unless NULL
    FILE *trace;  // prints each name before it runs, unless NULL
    // Called with each name before it runs, unless NULL.
    void (*progress)(void *data, const char *name);
    void *progress_data;
};

// Outcome of the cases of one row whose types are the same.
struct conformance_group {
    const char *op;
    char types[64];
    int64_t n_passed;
    int64_t n_failed;
    int64_t n_unsupported;
    double worst;       // largest error of a supported case
    double worst_share; // the largest share of its bound that an error used up
};

struct conformance_failure {
    char *name;
    char *message;
};

// Bit sets of types of the result and of the first sources.
struct conformance_type_set {
    int64_t n; // nodes
    uint64_t slot[4];
};

// Of one row: what was computed rightly, and what the device claims to support, computed or not.
struct conformance_types {
    const char *op;
    struct conformance_type_set passed, claimed;
};

struct conformance_report {
    struct conformance_types *types; // one for each row
    int n_types;
    struct conformance_group *groups;
    int n_groups;
    int max_groups;
    struct conformance_failure *failures; // the first ones
    int n_failures;
    int64_t n_cases; // all that were selected
    int64_t n_passed;
    int64_t n_failed;
    int64_t n_unsupported;
    double seconds;
};

// Runs the selected cases. False if the device could not be used; the report is empty then. The
// caller ends the report with conformance_report_free(). [any-thread]
bool conformance_run(ggml_backend_dev_t device, const struct conformance_options *options,
                     struct conformance_report *out_report);
void conformance_report_free(struct conformance_report *report);

// Rows of the table. [any-thread]
int conformance_op_count(void);
// Its name; NULL past the end.
const char *conformance_op_name(int i);

// One line per group, and the failures. [stream]
void conformance_print_tap(FILE *out, const struct conformance_report *report);
// The schema is in docs/conformance.md. [stream]
void conformance_print_json(FILE *out, const struct conformance_report *report,
                            ggml_backend_dev_t device, const struct conformance_options *options);
// Operations and their types: computed / not supported. [stream]
void conformance_print_matrix(FILE *out, const struct conformance_report *report);

// "f32, f16, 20 coded" of a bit set of types; nothing for an empty one. [stream]
void conformance_print_types(FILE *out, uint64_t types);

// The same as a page of documentation, docs/ops-cpu.md. With claimed it is made from what the
// device claims: the same page if all that passes too. [stream]
void conformance_print_page(FILE *out, const struct conformance_report *report,
                            ggml_backend_dev_t device, bool claimed);

#endif
