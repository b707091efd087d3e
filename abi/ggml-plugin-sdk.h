// SPDX-License-Identifier: MIT
// ggml-plugin-sdk.h: macros that define a plugin's note and entry point, and the functions of the
// helper library (core/sdk) that is linked into plugins.
//
// A part of ggml-plugin.h. No part of the binary contract: a plugin may do without it.
//
// A whole plugin's frame, compiled with -DGGML_PLUGIN_BUILD and linked with libggml-sdk
// (plugins/null is one to copy; docs/writing-a-plugin.md goes through it):
//
//     #include "ggml-plugin.h"
//
//     static struct ggml_backend_reg backend = {.table = &backend_table};
//     static struct ggml_backend_device device = {.table = &device_table, .reg = &backend};
//
//     static ggml_backend_reg_t start(void) {
//         if (!driver_is_there()) { // said to the host, which records it
//             ggml_sdk_fail(GGML_HOST_NO_DEVICE, "no driver: install libexample");
//             return NULL;
//         }
//         return &backend;
//     }
//
//     static void stop(void) { driver_close(); }
//
//     GGML_PLUGIN_NOTE("example", "", "1.0", 0, 0, 0)
//     GGML_PLUGIN_ENTRY(start, NULL, stop, NULL)
#ifndef GGML_PLUGIN_SDK_H
#define GGML_PLUGIN_SDK_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "ggml-ext-comm.h"
#include "ggml-plugin-host.h"
#include "ggml-plugin-note.h"
#include "ggml-plugin-table.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- how a plugin is written ---------------------------------------------------------------------

// Macros for gcc, clang, MinGW and MSVC, for which there is no helper library: a plugin built with
// it has an entry of its own.

// Linkers keep the note with --gc-sections, even if nothing refers to it: by its `retain`; where
// the compiler has no such word, because GGML_PLUGIN_ENTRY refers to it, and an entry of one's own
// has to.
#if !defined(_WIN32) && !defined(__APPLE__) && defined(__has_attribute)
#if __has_attribute(retain)
#define GGML_PLUGIN_RETAIN , retain // gcc 11, clang 13
#endif
#endif
#ifndef GGML_PLUGIN_RETAIN
#define GGML_PLUGIN_RETAIN
#endif
// Where the note goes, and how the entry point is exported, in each system's words. `used` keeps
// the compiler from leaving the note out, since nothing may refer to it.
#if defined(_MSC_VER)
#define GGML_PLUGIN_SECTION                                                                        \
    __pragma(section(GGML_PLUGIN_SECTION_PE, read)) __declspec(allocate(GGML_PLUGIN_SECTION_PE))
#define GGML_PLUGIN_EXPORT __declspec(dllexport)
#elif defined(_WIN32)
#define GGML_PLUGIN_SECTION __attribute__((section(GGML_PLUGIN_SECTION_PE), used))
#define GGML_PLUGIN_EXPORT __declspec(dllexport)
#elif defined(__APPLE__)
#define GGML_PLUGIN_SECTION                                                                        \
    __attribute__((section(GGML_PLUGIN_SEGMENT_MACHO "," GGML_PLUGIN_SECTION_MACHO), used))
#define GGML_PLUGIN_EXPORT __attribute__((visibility("default")))
#else
#define GGML_PLUGIN_SECTION                                                                        \
    __attribute__((section(GGML_PLUGIN_SECTION_ELF), used GGML_PLUGIN_RETAIN))
#define GGML_PLUGIN_EXPORT __attribute__((visibility("default")))
#endif

#ifdef __cplusplus

// C linkage, and an initialiser with nothing in it, in both languages.
#define GGML_PLUGIN_EXTERN extern "C" // C++
#define GGML_PLUGIN_ZERO                                                                           \
    {}
#else
#define GGML_PLUGIN_EXTERN
#define GGML_PLUGIN_ZERO                                                                           \
    { 0 }
#endif

// A plugin that is linked into the core instead (GGML_PLUGIN_BUILTIN=name) has the same two symbols
// under names of its own.
#ifdef GGML_PLUGIN_BUILTIN
#define GGML_PLUGIN_PASTE_(a, b) a##b
#define GGML_PLUGIN_PASTE(a, b) GGML_PLUGIN_PASTE_(a, b)
#define GGML_PLUGIN_NOTE_NAME GGML_PLUGIN_PASTE(ggml_builtin_note_, GGML_PLUGIN_BUILTIN)
#define GGML_PLUGIN_NOTE_OBJECT                                                                    \
    extern const struct ggml_plugin_note GGML_PLUGIN_NOTE_NAME;                                    \
    const struct ggml_plugin_note GGML_PLUGIN_NOTE_NAME
#define GGML_PLUGIN_ENTRY_NAME GGML_PLUGIN_PASTE(ggml_builtin_init_, GGML_PLUGIN_BUILTIN)
#define GGML_PLUGIN_ENTRY_EXPORT
#else
#define GGML_PLUGIN_NOTE_NAME ggml_plugin_note_
#define GGML_PLUGIN_NOTE_OBJECT                                                                    \
    GGML_PLUGIN_SECTION static const struct ggml_plugin_note GGML_PLUGIN_NOTE_NAME
#define GGML_PLUGIN_ENTRY_NAME ggml_backend_init    // GGML_PLUGIN_ENTRY_SYMBOL
#define GGML_PLUGIN_ENTRY_EXPORT GGML_PLUGIN_EXPORT // the only symbol that is
#endif

// Defaults for backends that only say GGML_BACKEND_DL_IMPL(reg_fn); override with -D.
#ifndef GGML_PLUGIN_NAME

// Defaults for backends that only say GGML_BACKEND_DL_IMPL(reg_fn); override with -D. They mean
// what the arguments of GGML_PLUGIN_NOTE() do.
#define GGML_PLUGIN_NAME "unnamed" // lower case, as in the file's name
#endif
#ifndef GGML_PLUGIN_VARIANT
#define GGML_PLUGIN_VARIANT "" // the only one
#endif
#ifndef GGML_PLUGIN_VERSION
#define GGML_PLUGIN_VERSION "0" // none
#endif
#ifndef GGML_PLUGIN_PRIORITY
#define GGML_PLUGIN_PRIORITY 0 // the generic one
#endif
#ifndef GGML_PLUGIN_CPU_FEATURES
#define GGML_PLUGIN_CPU_FEATURES 0 // runs on any CPU of the machine
#endif
// Raise it in a plugin that calls something which a later minor added.
#ifndef GGML_PLUGIN_MIN_MINOR
#define GGML_PLUGIN_MIN_MINOR 0 // any host of the major
#endif

// Defines the note. name, variant and version are string literals of less than 32 bytes: NAME and
// VARIANT of the file's name, and the plugin's own version. priority: of variants of one name the
// highest that fits the machine is used. cpu_features: GGML_CPU_BIT() of all that any code of the
// file needs. flags: enum ggml_plugin_flag.
#define GGML_PLUGIN_NOTE(name_, variant_, version_, priority_, cpu_features_, flags_)              \
    GGML_PLUGIN_NOTE_OBJECT = {{'G', 'G', 'M', 'L', 'P', 'L', 'G', '\x1a'},                        \
                               (uint32_t)sizeof(struct ggml_plugin_note),                          \
                               GGML_CONTRACT_MAJOR,                                                \
                               GGML_CONTRACT_MINOR,                                                \
                               GGML_PLUGIN_MIN_MINOR,                                              \
                               GGML_MACHINE_HERE,                                                  \
                               flags_,                                                             \
                               priority_,                                                          \
                               0,                                                                  \
                               {cpu_features_, 0},                                                 \
                               GGML_PLUGIN_LAYOUT_HASH,                                            \
                               name_,                                                              \
                               variant_,                                                           \
                               version_,                                                           \
                               {0}};

// Defines the entry point; the note stands before it in the same file. reg_ is a function that
// returns the backend, or NULL after setting the error; it runs for each host that enters, one at a
// time, and returns the same each time: writing to what an earlier one got is a race with its
// threads. The others may be NULL: score_, as in struct
// ggml_plugin_table without self; shutdown_, called when the last host leaves; extension_.
#define GGML_PLUGIN_ENTRY(reg_, score_, shutdown_, extension_)                                     \
    GGML_PLUGIN_EXTERN GGML_PLUGIN_ENTRY_EXPORT int32_t GGML_PLUGIN_ENTRY_NAME(                    \
        const struct ggml_host_table *host, const struct ggml_plugin_table **out_plugin);          \
    GGML_PLUGIN_EXTERN GGML_PLUGIN_ENTRY_EXPORT int32_t GGML_PLUGIN_ENTRY_NAME(                    \
        const struct ggml_host_table *host, const struct ggml_plugin_table **out_plugin) {         \
        static struct ggml_sdk_plugin plugin = {                                                   \
            &GGML_PLUGIN_NOTE_NAME, reg_, score_, shutdown_, extension_, GGML_PLUGIN_ZERO, 0};     \
        return ggml_sdk_enter(&plugin, host, out_plugin);                                          \
    }

// --- helper library (core/sdk) -------------------------------------------------------------------

// One per plugin, static. GGML_PLUGIN_ENTRY sets what stands before the table; the rest is the
// helper library's.
struct ggml_sdk_plugin {
    const struct ggml_plugin_note *note; // of the same file
    // Returns the backend, or NULL after setting the error. [init]
    ggml_backend_reg_t (*start)(void);
    // (opt: 1) As in the table. [init]
    int (*score)(void);
    // (opt) Called when the last host leaves. [init]
    void (*shutdown)(void);
    // (opt: NULL) As in the table. [any-thread]
    const void *(*get_extension)(const char *id, uint32_t min_revision);
    struct ggml_plugin_table table; // what hosts are given
    uint32_t n_hosts;               // that are attached
};

// Does the work of GGML_PLUGIN_ENTRY: remembers the host, calls the plugin's start, and fills the
// table for the first host. Returns what an entry point does. [init]
GGML_API int32_t ggml_sdk_enter(struct ggml_sdk_plugin *plugin, const struct ggml_host_table *host,
                                const struct ggml_plugin_table **out_plugin);

// The host that is attached last, or NULL before the entry was called: any of them logs, gives and
// takes memory and knows the machine. Ask again for each use: it may leave. In start, score and
// shutdown it stays until they return. [any-thread]
GGML_API const struct ggml_host_table *ggml_sdk_host(void);

// The same, which stays until it is released: its shutdown waits for that. For everywhere else,
// since another host than the one that called may leave at any time. Held for one call of it, and
// never while waiting for another thread; release takes NULL too. [any-thread]
GGML_API const struct ggml_host_table *ggml_sdk_host_hold(void);
GGML_API void ggml_sdk_host_release(const struct ggml_host_table *host);

// As get_config and get_topology of the host table; NULL and false without a host. [any-thread]
GGML_API const char *ggml_sdk_config(const char *name);
GGML_API bool ggml_sdk_topology(struct ggml_host_topology *out_topology);

// The file that this plugin was loaded from and the folder it lies in, as in the extension
// "ggml.plugin-path"; NULL if it is linked into the host, or the host doesn't say. Valid until that
// host leaves. [any-thread]
GGML_API const char *ggml_sdk_plugin_file(void);
GGML_API const char *ggml_sdk_plugin_folder(void);

// Tells every attached host why the calling thread's current call fails, since it isn't known which
// of them called; what exceeds 1023 bytes is cut off. Returns status, so that an entry can end with
// return ggml_sdk_fail(...). [any-thread]
GGML_API enum ggml_host_status ggml_sdk_fail(enum ggml_host_status status, const char *format, ...)
    GGML_ATTRIBUTE_FORMAT(2, 3);
GGML_API enum ggml_host_status ggml_sdk_fail_v(enum ggml_host_status status, const char *format,
                                               va_list args);

// What an entry returns for the status that computing ended with. The host translates it back.
static inline int32_t ggml_entry_status(enum ggml_status status) {
    switch (status) {
    case GGML_STATUS_SUCCESS: return GGML_HOST_OK;
    case GGML_STATUS_ALLOC_FAILED: return GGML_HOST_OUT_OF_MEMORY;
    case GGML_STATUS_ABORTED: return GGML_HOST_ABORTED;
    default: return GGML_HOST_FAILED;
    }
}

// Score used by GGML_BACKEND_DL_IMPL: 1, unless GGML_BACKEND_DL_SCORE_IMPL replaces it; 0 keeps the
// plugin from being used. [init]
GGML_API int ggml_sdk_score(void);

// --- for plugins that offer "ggml.comm" ----------------------------------------------------------

// What every implementation of ggml-ext-comm.h checks and adds up, written once.

// Whether the streams can be all the ranks of a group of this backend: OK; UNSUPPORTED if other
// callers hold ranks; INVALID_ARGUMENT after set_error. [any-thread]
GGML_API int32_t ggml_sdk_comm_check_ranks(const struct ggml_comm_ranks *ranks,
                                           ggml_backend_reg_t reg);
// Whether the n tensors, one per stream, are what the extension says of tensors: OK, or
// INVALID_ARGUMENT after set_error. [any-thread]
GGML_API int32_t ggml_sdk_comm_check_tensors(const ggml_backend_t *streams, uint32_t n,
                                             const struct ggml_tensor *const *tensors);
// Whether `to` is of the type and holds n_parts times the elements of `part`, without overlap: as
// before. [any-thread]
GGML_API int32_t ggml_sdk_comm_check_copy(const struct ggml_tensor *part, uint32_t n_parts,
                                          const struct ggml_tensor *to);
// Whether ggml_sdk_comm_combine() knows both; types are F32, F16, BF16. [any-thread]
GGML_API bool ggml_sdk_comm_combines(enum ggml_comm_reduction reduction, enum ggml_type type);
// Combines elements [begin, end) of n_parts parts in host memory: in order, in F32, rounded once,
// into `out`, which may be one of them. Parts that are NULL don't count. [any-thread]
GGML_API void ggml_sdk_comm_combine(enum ggml_comm_reduction reduction, enum ggml_type type,
                                    const void *const *parts, size_t n_parts, size_t begin,
                                    size_t end, void *out);

#ifdef __cplusplus
}
#endif

#endif
