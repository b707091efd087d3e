// SPDX-License-Identifier: MIT
// Loads the virtual plugin with options, finds its functions for tests, and searches its record
// of calls.
#define _POSIX_C_SOURCE 200809L
#include "virtual_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/setenv.h"

static void require(bool condition, const char *what) {
    if (condition) return;
    fprintf(stderr, "%s: %s\n", what, ggml_last_error());
    abort();
}

static void find_function(const struct virtual_host *host, const char *name, void *out_function) {
    void *address = ggml_backend_reg_get_proc_address(host->reg, name);
    require(address != NULL, name);
    memcpy(out_function, &address, sizeof(address));
}

void virtual_open(struct virtual_host *host, const char *options) {
    setenv("GGML_VIRTUAL", options, 1);
    *host = (struct virtual_host){0};
    require(ggml_plugin_load(VIRTUAL_PLUGIN, &host->reg) == GGML_HOST_OK,
            "loading " VIRTUAL_PLUGIN);
    find_function(host, "virtual_configure", &host->configure);
    find_function(host, "virtual_default_config", &host->default_config);
    find_function(host, "virtual_log_clear", &host->log_clear);
    find_function(host, "virtual_log_count", &host->log_count);
    find_function(host, "virtual_log_get", &host->log_get);
    find_function(host, "virtual_violations", &host->violations);
    find_function(host, "virtual_storage", &host->storage);
}

size_t virtual_print_violations(const struct virtual_host *host) {
    struct virtual_record record;
    for (size_t i = 0; virtual_find(host, VIRTUAL_CALL_VIOLATION, -1, i, &record); ++i) {
        printf("# violation on device %d: %s\n", (int)record.device, record.text);
    }
    return host->violations();
}

size_t virtual_close(struct virtual_host *host) {
    const size_t n_violations = virtual_print_violations(host);
    require(ggml_plugin_unload(host->reg) == GGML_HOST_OK, "unloading");
    *host = (struct virtual_host){0};
    return n_violations;
}

ggml_backend_dev_t virtual_device(const struct virtual_host *host, size_t i) {
    return ggml_backend_reg_dev_get(host->reg, i);
}

static bool matches(const struct virtual_record *record, enum virtual_call call, int device) {
    return record->call == call && (device < 0 || record->device == device);
}

bool virtual_find(const struct virtual_host *host, enum virtual_call call, int device, size_t i,
                  struct virtual_record *out_record) {
    for (size_t k = 0; host->log_get(k, out_record); ++k) {
        if (matches(out_record, call, device) && i-- == 0) return true;
    }
    return false;
}

size_t virtual_count(const struct virtual_host *host, enum virtual_call call, int device,
                     uint64_t *out_bytes) {
    struct virtual_record record;
    size_t count = 0;
    uint64_t bytes = 0;
    for (size_t k = 0; host->log_get(k, &record); ++k) {
        if (!matches(&record, call, device)) continue;
        ++count;
        bytes += record.bytes;
    }
    if (out_bytes) *out_bytes = bytes;
    return count;
}
