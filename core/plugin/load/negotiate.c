// SPDX-License-Identifier: MIT
// Compares the note with this host, one term after another: contract, machine, features of the
// processor, layout of structures. The message says which side has to be replaced.
#include "plugin/load/negotiate.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"

// For messages.
static const char *machine_text(enum ggml_machine machine) {
    switch (machine) {
    case GGML_MACHINE_X86_64: return "x86-64";
    case GGML_MACHINE_AARCH64: return "AArch64";
    case GGML_MACHINE_X86: return "x86 (32-bit)";
    case GGML_MACHINE_ARM: return "ARM (32-bit)";
    case GGML_MACHINE_RISCV64: return "RISC-V 64";
    case GGML_MACHINE_PPC64LE: return "PowerPC 64 little-endian";
    case GGML_MACHINE_S390X: return "s390x";
    case GGML_MACHINE_LOONGARCH64: return "LoongArch 64";
    case GGML_MACHINE_NONE: break;
    }
    return "an unknown machine";
}

// Major versions must be equal; a newer minor is accepted unless the plugin needs it.
static enum ggml_host_status compare_contracts(const struct ggml_plugin_note *note) {
    if (note->contract_major != GGML_CONTRACT_MAJOR) {
        return ggml_fail(
            GGML_HOST_WRONG_CONTRACT,
            "plugin '%.*s' was built for plugin contract %u.%u, this host has %u.%u: get "
            "the %s of matching major version",
            GGML_PLUGIN_STRING_SIZE, note->name, note->contract_major, note->contract_minor,
            GGML_CONTRACT_MAJOR, GGML_CONTRACT_MINOR,
            note->contract_major < GGML_CONTRACT_MAJOR ? "plugin" : "host");
    }
    if (note->contract_min_minor > GGML_CONTRACT_MINOR) {
        return ggml_fail(GGML_HOST_WRONG_CONTRACT,
                         "plugin '%.*s' needs plugin contract %u.%u or newer, this host has %u.%u: "
                         "update the host",
                         GGML_PLUGIN_STRING_SIZE, note->name, note->contract_major,
                         note->contract_min_minor, GGML_CONTRACT_MAJOR, GGML_CONTRACT_MINOR);
    }
    return GGML_HOST_OK;
}

// Lists the names of feature bits; a bit without a name is given by number.
static void name_features(uint64_t bits, char *out_text, size_t size) {
    size_t used = 0;
    out_text[0] = '\0';
    for (unsigned bit = 0; bit < 64 && used < size; ++bit) {
        if (!(bits >> bit & 1)) continue;
        const char *name = ggml_host_cpu_feature_name(bit);
        const char *separator = used > 0 ? ", " : "";
        const int n = name ? snprintf(out_text + used, size - used, "%s%s", separator, name)
                           : snprintf(out_text + used, size - used,
                                      "%sfeature %u (unknown to this host)", separator, bit);
        used += n > 0 ? (size_t)n : 0;
    }
}

// What the plugin needs and this machine lacks; bits beyond the first word are from a future host.
static enum ggml_host_status compare_features(const struct ggml_plugin_note *note,
                                              uint64_t cpu_features) {
    char names[512];
    const uint64_t missing = note->cpu_features[0] & ~cpu_features;
    if (missing != 0) {
        name_features(missing, names, sizeof(names));
        return ggml_fail(GGML_HOST_MISSING_CPU_FEATURE,
                         "plugin '%.*s' needs what this CPU or operating system lacks: %s",
                         GGML_PLUGIN_STRING_SIZE, note->name, names);
    }
    if (note->cpu_features[1] != 0) {
        return ggml_fail(GGML_HOST_MISSING_CPU_FEATURE,
                         "plugin '%.*s' needs CPU features that this host does not know: update "
                         "the host",
                         GGML_PLUGIN_STRING_SIZE, note->name);
    }
    return GGML_HOST_OK;
}

// In the order in which the message is most useful: a plugin of another contract may have other
// meanings for all that follows.
enum ggml_host_status plugin_negotiate(const struct ggml_plugin_note *note, uint64_t cpu_features) {
    enum ggml_host_status status = compare_contracts(note);
    if (status != GGML_HOST_OK) return status;
    if (note->machine != GGML_MACHINE_HERE) {
        return ggml_fail(GGML_HOST_WRONG_MACHINE, "plugin '%.*s' is built for %s, this is %s",
                         GGML_PLUGIN_STRING_SIZE, note->name,
                         machine_text((enum ggml_machine)note->machine),
                         machine_text(GGML_MACHINE_HERE));
    }
    status = compare_features(note, cpu_features);
    if (status != GGML_HOST_OK) return status;
    if (note->layout_hash != GGML_PLUGIN_LAYOUT_HASH) {
        return ggml_fail(
            GGML_HOST_LAYOUT_MISMATCH,
            "plugin '%.*s' was built with other structure layouts: build it with the headers of "
            "this host",
            GGML_PLUGIN_STRING_SIZE, note->name);
    }
    return GGML_HOST_OK;
}
