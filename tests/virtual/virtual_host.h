// SPDX-License-Identifier: MIT
// The virtual plugin, loaded for a test.
#ifndef VIRTUAL_HOST_H
#define VIRTUAL_HOST_H

#include "ggml-host.h"
#include "virtual.h"

struct virtual_host {
    ggml_backend_reg_t reg;
    virtual_configure_t configure;
    virtual_default_config_t default_config;
    virtual_log_clear_t log_clear;
    virtual_log_count_t log_count;
    virtual_log_get_t log_get;
    virtual_violations_t violations;
    virtual_storage_t storage;
};

// Loads it with that text in GGML_VIRTUAL; ends the process on failure.
void virtual_open(struct virtual_host *host, const char *options);
// Unloads it; nothing of it may live. Fails the test if the host broke a rule: prints the log's
// violations and returns their number.
size_t virtual_close(struct virtual_host *host);
ggml_backend_dev_t virtual_device(const struct virtual_host *host, size_t i);

// Of the log: the i-th record of that call on that device (-1: any); false if there are fewer.
bool virtual_find(const struct virtual_host *host, enum virtual_call call, int device, size_t i,
                  struct virtual_record *out_record);
// How many there are, and their bytes (out_bytes may be NULL).
size_t virtual_count(const struct virtual_host *host, enum virtual_call call, int device,
                     uint64_t *out_bytes);
// Prints violations as comments; returns how many.
size_t virtual_print_violations(const struct virtual_host *host);

#endif
