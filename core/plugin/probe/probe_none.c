// SPDX-License-Identifier: MIT
// Stubs for systems without helper processes: plugins are probed in the application's process.
#ifdef _WIN32
#include <string.h>

#include "base/status.h"
#include "plugin/probe/cache/probe_cache.h"
#include "plugin/probe/cache/probe_libraries.h"
#include "plugin/probe/process/probe_process.h"

static enum ggml_host_status unsupported(void) {
    return ggml_fail(GGML_HOST_UNSUPPORTED, "there are no helper processes on this system");
}

// Functions of systems where plugins can't be probed: all return UNSUPPORTED or empty values.
enum ggml_host_status probe_helper_find(const char *given, const struct load_policy *policy,
                                        char out_path[PROBE_PATH_MAX]) {
    (void)given;
    (void)policy;
    out_path[0] = '\0';
    return unsupported();
}

enum ggml_host_status probe_key_new(uint8_t out_key[PROBE_KEY_SIZE]) {
    memset(out_key, 0, PROBE_KEY_SIZE);
    return unsupported();
}

enum ggml_host_status probe_process_start(const char *helper, const char *plugin,
                                          const struct probe_request *request,
                                          struct probe_process *out_process) {
    (void)helper;
    (void)plugin;
    (void)request;
    *out_process = (struct probe_process){.fd = -1};
    return unsupported();
}

void probe_process_wait(const struct probe_process *const *processes, size_t count,
                        int timeout_ms) {
    (void)processes;
    (void)count;
    (void)timeout_ms;
}

enum ggml_host_status probe_process_read(struct probe_process *process, void *out_bytes,
                                         size_t size, size_t *out_n) {
    (void)process;
    (void)out_bytes;
    (void)size;
    *out_n = 0;
    return unsupported();
}

bool probe_process_gone(const struct probe_process *process) {
    (void)process;
    return true;
}

void probe_process_end(struct probe_process *process, struct probe_exit *out_exit) {
    (void)process;
    *out_exit = (struct probe_exit){0};
}

void probe_process_collect(void) {
}

const char *probe_signal_name(int number) {
    (void)number;
    return "";
}

uint64_t probe_machine_memory(void) {
    return 1;
}

unsigned probe_machine_cpus(void) {
    return 1;
}

void probe_system_digest(const char *helper, uint8_t out_digest[GGML_SHA256_SIZE]) {
    (void)helper;
    memset(out_digest, 0, GGML_SHA256_SIZE);
}

void probe_machine_digest(const char *helper, uint8_t out_digest[GGML_SHA256_SIZE]) {
    probe_system_digest(helper, out_digest);
}

enum ggml_host_status probe_store_open(const char *dir, int *out_dir) {
    (void)dir;
    *out_dir = -1;
    return unsupported();
}

void probe_store_close(int dir) {
    (void)dir;
}

enum ggml_host_status probe_store_read(int dir, const char *name, struct probe_writer *out_bytes) {
    (void)dir;
    (void)name;
    (void)out_bytes;
    return unsupported();
}

enum ggml_host_status probe_store_write(int dir, const char *name, const void *bytes, size_t size) {
    (void)dir;
    (void)name;
    (void)bytes;
    (void)size;
    return unsupported();
}

bool probe_libraries_hold(const struct probe_result *result) {
    return result->n_libraries == 0;
}

void probe_store_prune(int dir, int64_t older_than_seconds) {
    (void)dir;
    (void)older_than_seconds;
}
#endif
