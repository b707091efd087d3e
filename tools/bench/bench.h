// SPDX-License-Identifier: MIT
// The measurements of ggml-bench: each is one file and one row in main.c.
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>

#include "ggml-backend.h"
#include "ggml.h"

enum bench_exit { BENCH_OK = 0, BENCH_USAGE = 2, BENCH_NO_DEVICE = 3, BENCH_ERROR = 4 };

// argv[0] is the measurement's name, argv[1..argc) its options. Returns an exit code.
int bench_load(int argc, char **argv);
// Hidden: one scan and load of a directory in this process, for bench_load.
int bench_load_once(int argc, char **argv);
int bench_figures(int argc, char **argv);
int bench_graph(int argc, char **argv);
int bench_isolate(int argc, char **argv);
int bench_kernels(int argc, char **argv);
int bench_model(int argc, char **argv);
int bench_mpi(int argc, char **argv);
int bench_ops(int argc, char **argv);
int bench_report(int argc, char **argv);
int bench_sched(int argc, char **argv);

// Nanoseconds of a clock that only goes forward.
double bench_ns(void);
// Nanoseconds that all processors together have spent in this process. Systems may add those of
// threads that are running only every few milliseconds: take the mean of many short spans.
double bench_busy_ns(void);
// Keeps the processor busy for 0.3 s: one that was idle takes a while to reach its clock.
void bench_warm_up(void);
// Leaves nothing of use in the processor's caches, as computing with large weights does. Blocks for
// up to some tenths of a second. Where memory is short some caches keep what they have.
void bench_evict(void);
// Takes the size of the largest cache in MiB from an option: a virtual machine may be told of all
// caches of its host. False if it is no size. [init]
bool bench_set_cache(const char *text);

// Weights of which none is in a cache when it is read in turn: eight times the largest cache, at
// least 256 MiB, at most 2 GiB.
size_t bench_cold_bytes(void);
// Sorts the values.
double bench_median(double *values, int n);
// Prints a row of a table: a label of so many columns, then the rest, below it on a terminal that
// is too narrow for both.
void bench_print_row(const char *label, unsigned label_width, const char *cells);
// Reads a whole number in [low, high] from the text of an option.
bool bench_read_number(const char *text, int low, int high, int *out_number);
// Reads the name of a type of tensors, in letters of either case, from the text of an option; false
// after a message that names those there are.
bool bench_read_type(const char *text, enum ggml_type *out_type);
// The device of this name (NULL: the CPU); NULL after a message that names those there are.
ggml_backend_dev_t bench_find_device(const char *name);
// Ends a line of stderr with the devices that there are.
void bench_list_devices(void);
// Says on stderr what getopt_long() stopped at: the value of the last option if that is not valid,
// else an argument that is not expected.
enum bench_exit bench_usage_error(int argc, char **argv, bool valid);

#endif
