// SPDX-License-Identifier: MIT
// The public functions of ggml-host.h. They are in a file of their own, because plugins are linked
// with the rest.
#include "ggml-host.h"
#include "machine/cpu_features.h"

uint64_t ggml_host_cpu_features(void) {
    return cpu_features_detect();
}

const char *ggml_host_cpu_feature_name(unsigned bit) {
    static const struct {
        enum ggml_machine machine;
        unsigned bit;
        const char *name;
    } rows[] = {
#define GGML_CPU_FEATURE_ROW(machine, bit, name, text) {GGML_MACHINE_##machine, bit, text},
#include "cpu_feature_list.inl"
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        if (rows[i].machine == GGML_MACHINE_HERE && rows[i].bit == bit) return rows[i].name;
    }
    return NULL;
}
