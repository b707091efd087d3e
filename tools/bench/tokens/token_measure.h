// SPDX-License-Identifier: MIT
// Time of a prompt and of single tokens of a llama on a device, through the scheduler.
#ifndef BENCH_TOKEN_MEASURE_H
#define BENCH_TOKEN_MEASURE_H

#include "bench/tokens/llama.h"

enum { TOKEN_MAX_RUNS = 1000 };

// What computes: the device, and the CPU if that is another.
struct token_machine {
    ggml_backend_t streams[2];
    int n_streams;
    double flops, reads; // per second at most; 0: not known
};

// Of one graph, in seconds.
struct token_timing {
    double best, median;
    double busy; // mean of all processors
    double by_op[GGML_OP_COUNT];
    double stepwise; // the sum of these, node by node
};

// Makes the streams. token_machine_free() is needed also after a failure, of which the error is
// set. threads: of the CPU, 0: as the library chooses.
bool token_machine_init(struct token_machine *machine, ggml_backend_dev_t device, int threads);
// On the host's processors also measures their limits, which results are compared with.
void token_machine_measure(struct token_machine *machine, ggml_backend_dev_t device);
void token_machine_free(struct token_machine *machine);

// Times a graph of n_tokens after n_past: `runs` times whole, then once node by node, which has
// a wait after each node and is therefore slower.
bool token_measure(const struct token_machine *machine, const struct llama *llama, int n_tokens,
                   int n_past, int runs, struct token_timing *out_timing);
// A graph of as many nodes, in which there is nothing to compute: launching, barriers and waiting.
bool token_measure_launching(const struct token_machine *machine, const struct llama_shape *of,
                             int runs, struct token_timing *out_timing);
// Operations of a prompt: the output layer is computed for its last token alone.
double token_prompt_flops(const struct llama *llama, int n_tokens);

#endif
