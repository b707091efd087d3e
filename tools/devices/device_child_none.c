// SPDX-License-Identifier: MIT
// In place of device_child.c where devices compute in this process.
#include "print.h"

const bool has_device_children = false;

int device_child_main(int argc, char **argv) {
    (void)argc;
    (void)argv;
    return 4;
}

bool device_child_run(const struct device_entry *device, enum child_job job,
                      struct device_child *out_child) {
    (void)device;
    (void)job;
    out_child->how[0] = '\0';
    return false;
}

void device_child_free(struct device_child *child) {
    (void)child;
}

bool selftest_run_apart(const struct device_entry *device,
                        struct selftest_result out_results[SELFTEST_WORKLOADS]) {
    (void)device;
    (void)out_results;
    return false;
}
