// SPDX-License-Identifier: MIT
// Helper processes, per platform. Where there are none, starting one returns
// GGML_HOST_UNSUPPORTED.
#ifndef GGML_PLUGIN_PROBE_PROBE_PROCESS_H
#define GGML_PLUGIN_PROBE_PROBE_PROCESS_H

#include "plugin/probe/message/probe_protocol.h"
#include "plugin/trust/policy.h"

enum { PROBE_PATH_MAX = 4096 };

struct probe_process {
    long pid;
    int fd; // what it says, read without blocking; -1 once it is closed
};

struct probe_exit {
    bool known; // false: another thread collected it, or it can't be ended
    int signal; // 0: none
    int code;
};

// Finds the helper: at `given` if that is not NULL, else where GGML_PROBE_HELPER says, else beside
// the library, beside the executable, or where it was installed. UNSUPPORTED: there is none that
// may be used, the message says why; OUT_OF_MEMORY; IO_ERROR: it can't be told, as where there is
// no descriptor left. [any-thread]
enum ggml_host_status probe_helper_find(const char *given, const struct load_policy *policy,
                                        char out_path[PROBE_PATH_MAX]);

// Fills `key` with random bytes. IO_ERROR. [any-thread]
enum ggml_host_status probe_key_new(uint8_t out_key[PROBE_KEY_SIZE]);

// Starts the helper for one plugin, in a process group of its own, with nothing open but the two
// pipes. UNSUPPORTED: not possible here at all; OUT_OF_MEMORY and BUSY: not at the moment;
// IO_ERROR. [any-thread]
enum ggml_host_status probe_process_start(const char *helper, const char *plugin,
                                          const struct probe_request *request,
                                          struct probe_process *out_process);

// --- for starting the helper in another way, on POSIX

// A descriptor that the helper gets under a fixed number.
struct probe_descriptor {
    int fd; // -1: /dev/null
    int number;
};

// Two ends that were opened (if `good`) get numbers above those that a helper finds, so that none
// is in the way of another; what is left of `low` is closed. False with errno. [any-thread]
bool probe_ends_raise(bool good, int low[2], int out_ends[2]);
// Closes those that are not -1, and sets both to that. [any-thread]
void probe_ends_close(int ends[2]);
// Starts it in a session of its own, where there are such, else in a process group. A privileged
// process passes nothing of its environment on: the helper would not be privileged and believe it.
// Returns an errno. [any-thread]
int probe_process_spawn(const char *helper, const char *const *arguments,
                        const struct probe_descriptor *given, size_t count, long *out_pid);
// Fails with the status that the errno of starting a process stands for. [any-thread]
enum ggml_host_status probe_process_fail(int error, const char *process, const char *what);

// --- running

// Waits until one of them says something, at most so long. [any-thread]
void probe_process_wait(const struct probe_process *const *processes, size_t count, int timeout_ms);
// Takes what is there; *out_n is 0 if nothing is. Closes the pipe at its end. IO_ERROR.
// [any-thread]
enum ggml_host_status probe_process_read(struct probe_process *process, void *out_bytes,
                                         size_t size, size_t *out_n);
// Whether it has ended by itself. It still has to be ended, for the sake of its children.
// [any-thread]
bool probe_process_gone(const struct probe_process *process);
// Kills it and its group, and collects it. One that the kernel does not let go within a moment is
// left to probe_process_collect(). [any-thread]
void probe_process_end(struct probe_process *process, struct probe_exit *out_exit);
// Collects those that were left. [any-thread]
void probe_process_collect(void);

// For messages: what a signal means. [any-thread]
const char *probe_signal_name(int number);

// Physical memory in bytes and number of CPUs, at least 1. [any-thread]
uint64_t probe_machine_memory(void);
unsigned probe_machine_cpus(void);

#endif
