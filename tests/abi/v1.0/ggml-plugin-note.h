// SPDX-License-Identifier: MIT
// ggml-plugin-note.h: versions and numbers of the contract, and the note that a plugin's file
// carries.
//
// A part of ggml-plugin.h that needs nothing else: what reads plugins without loading them, as a
// packager's tool does, includes this alone. It has no functions.
//
// Why a note: to map a library runs its constructors, and an instruction that the CPU lacks ends
// the process before anybody is asked. So everything that can be wrong with a plugin before its
// code runs is plain data in a section of its file: machine, contract, CPU features, layout. The
// host reads it, and refuses with a reason.
#ifndef GGML_PLUGIN_NOTE_H
#define GGML_PLUGIN_NOTE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// --- versions and constants ----------------------------------------------------------------------

// Why majors and minors: within a major nothing moves, so a plugin runs in every later host, and in
// earlier ones down to the minor that it says it needs. What grows is marked by `since` in the
// lists.

// The contract of these headers. A host loads a plugin when the majors are equal and the plugin's
// lowest minor is not above the host's.
#define GGML_CONTRACT_MAJOR 1
#define GGML_CONTRACT_MINOR 0

// First bytes of a note: 8 with a control character, which no text has; and the size of its strings
// with their NUL.
#define GGML_PLUGIN_MAGIC "GGMLPLG\x1a"
#define GGML_PLUGIN_MAGIC_SIZE 8
#define GGML_PLUGIN_STRING_SIZE 32

// Statuses that cross the boundary; 0 is success. status_list.inl says what each means;
// ggml_last_error() in the host has the message that goes with it.
enum ggml_host_status {
#define GGML_HOST_STATUS_ROW(number, name, text) GGML_HOST_##name = number,
#include "status_list.inl"
    GGML_HOST_STATUS_LIMIT = 0x7fffffff, // the enum is 32 bits wide
};

// Machines. Contract 1 is for 64-bit machines with the default calling convention of their ABI (its
// floating-point registers included); X86 and ARM are numbers that a note may carry to be refused.
enum ggml_machine {
    GGML_MACHINE_NONE = 0, // not one of these: nothing is loaded there
    GGML_MACHINE_X86_64 = 1,
    GGML_MACHINE_AARCH64 = 2,
    GGML_MACHINE_X86 = 3, // 32-bit: refused
    GGML_MACHINE_ARM = 4, // 32-bit: refused
    GGML_MACHINE_RISCV64 = 5,
    GGML_MACHINE_PPC64LE = 6, // little-endian only
    GGML_MACHINE_S390X = 7,   // big-endian, as its notes are
    GGML_MACHINE_LOONGARCH64 = 8,
};

#if defined(__x86_64__) || defined(_M_X64)
#define GGML_MACHINE_HERE GGML_MACHINE_X86_64
#elif defined(__aarch64__) || defined(_M_ARM64)
#define GGML_MACHINE_HERE GGML_MACHINE_AARCH64
#elif defined(__i386__)
#define GGML_MACHINE_HERE GGML_MACHINE_X86
#elif defined(__arm__)
#define GGML_MACHINE_HERE GGML_MACHINE_ARM
#elif defined(__riscv) && __riscv_xlen == 64
#define GGML_MACHINE_HERE GGML_MACHINE_RISCV64
#elif defined(__powerpc64__) && defined(__LITTLE_ENDIAN__)
#define GGML_MACHINE_HERE GGML_MACHINE_PPC64LE
#elif defined(__s390x__)
#define GGML_MACHINE_HERE GGML_MACHINE_S390X
#elif defined(__loongarch64)
#define GGML_MACHINE_HERE GGML_MACHINE_LOONGARCH64
#else
#define GGML_MACHINE_HERE GGML_MACHINE_NONE
#endif

// Bit numbers of CPU features: GGML_CPU_X86_64_AVX2 ... Required as (UINT64_C(1) << bit).
enum ggml_cpu_feature {
#define GGML_CPU_FEATURE_ROW(machine, bit, name, text) GGML_CPU_##machine##_##name = bit,
#include "cpu_feature_list.inl"
};

// Word 0 of ggml_plugin_note.cpu_features with this bit.
#define GGML_CPU_BIT(feature) (UINT64_C(1) << (feature))

// --- note ----------------------------------------------------------------------------------------

// What else the host has to know of a plugin.
enum ggml_plugin_flag {
    GGML_PLUGIN_FLAG_NO_UNLOAD = 1, // its driver must stay mapped: unload keeps the library open
    GGML_PLUGIN_FLAG_DYNAMIC_DEVICES = 2, // may have no device yet, and more later: "ggml.registry"
};

// The note: byte-exact, in the machine's byte order, without pointers, so that it needs no
// relocation. Strings are NUL-terminated and padded with zeros. One per file, in its own section.
// Made by GGML_PLUGIN_NOTE() in ggml-plugin-sdk.h.
//
// Why a hash of the layout beside the version: a plugin that was compiled with other headers of the
// same version, or with options that change structs, is found out before it reads past one.
struct ggml_plugin_note {
    char magic[GGML_PLUGIN_MAGIC_SIZE];    // GGML_PLUGIN_MAGIC
    uint32_t size;                         // sizeof(struct ggml_plugin_note) when it was built
    uint16_t contract_major;               // the contract it was built for
    uint16_t contract_minor;               // its minor: what it may use
    uint16_t contract_min_minor;           // lowest minor of a host that it works with
    uint16_t machine;                      // enum ggml_machine
    uint32_t flags;                        // enum ggml_plugin_flag
    int32_t priority;                      // between variants of one name the higher is tried first
    uint32_t reserved0;                    // 0
    uint64_t cpu_features[2];              // needed before any of its code may run; [1] is reserved
    uint64_t layout_hash;                  // GGML_PLUGIN_LAYOUT_HASH when it was built
    char name[GGML_PLUGIN_STRING_SIZE];    // of the plugin: NAME of the file's name; printable
    char variant[GGML_PLUGIN_STRING_SIZE]; // empty: the only or generic one
    char version[GGML_PLUGIN_STRING_SIZE]; // the plugin's own
    uint32_t reserved[16];                 // 0
};

// Section that holds the note: ELF, PE (8 characters at most), Mach-O (segment and section).
#define GGML_PLUGIN_SECTION_ELF ".ggml.note"
#define GGML_PLUGIN_SECTION_PE ".ggmlnt"
#define GGML_PLUGIN_SEGMENT_MACHO "__DATA"
#define GGML_PLUGIN_SECTION_MACHO "__ggml_note"

#ifdef __cplusplus
}
#endif

#endif
