// SPDX-License-Identifier: MIT
// ggml-plugin.h: the binary contract between the host and a plugin.
//
// A plugin is a shared object named [lib]ggml-NAME[-VARIANT].{so,dll,dylib} that carries a note
// (plain data that the host reads from the file before it maps it) and exports one function,
// ggml_backend_init. Nothing else is exported, and nothing of the host is linked: what a plugin
// needs comes in the host table or from the static helper library (SDK). The numbered rules are in
// docs/plugin-contract.md.
//
// How it grows: within a major version every struct here keeps its offsets. A later minor first
// names reserved slots, which are zero until then, and appends to a sized table when those run out.
// So an entry of a table is called, and a pointer in it read, only if `size` covers it and it isn't
// NULL.
//
// Thread tags ([any-thread], [stream], [init]) are defined in ggml.h.
#ifndef GGML_PLUGIN_H
#define GGML_PLUGIN_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "ggml-backend-impl.h"
#include "ggml-impl.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- versions and constants ----------------------------------------------------------------------

// A host loads a plugin when the majors are equal and the plugin's lowest minor is not above the
// host's.
#define GGML_CONTRACT_MAJOR 1
#define GGML_CONTRACT_MINOR 0

#define GGML_PLUGIN_MAGIC "GGMLPLG\x1a"
#define GGML_PLUGIN_MAGIC_SIZE 8
#define GGML_PLUGIN_STRING_SIZE 32

// Statuses that cross the boundary; 0 is success.
enum ggml_host_status {
#define GGML_HOST_STATUS_ROW(number, name, text) GGML_HOST_##name = number,
#include "status_list.inl"
    GGML_HOST_STATUS_LIMIT = 0x7fffffff, // the enum is 32 bits wide
};

// Machines. Contract 1 is for 64-bit machines with the default calling convention of their ABI (its
// floating-point registers included); X86 and ARM are numbers that a note may carry to be refused.
enum ggml_machine {
    GGML_MACHINE_NONE = 0,
    GGML_MACHINE_X86_64 = 1,
    GGML_MACHINE_AARCH64 = 2,
    GGML_MACHINE_X86 = 3,
    GGML_MACHINE_ARM = 4,
    GGML_MACHINE_RISCV64 = 5,
    GGML_MACHINE_PPC64LE = 6,
    GGML_MACHINE_S390X = 7,
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
#define GGML_CPU_BIT(feature) (UINT64_C(1) << (feature))

// --- note ----------------------------------------------------------------------------------------

enum ggml_plugin_flag {
    GGML_PLUGIN_FLAG_NO_UNLOAD = 1, // its driver must stay mapped: unload keeps the library open
    GGML_PLUGIN_FLAG_DYNAMIC_DEVICES = 2, // may have no device yet, and more later: "ggml.registry"
};

// The note: byte-exact, in the machine's byte order, without pointers, so that it needs no
// relocation. Strings are NUL-terminated and padded with zeros.
struct ggml_plugin_note {
    char magic[GGML_PLUGIN_MAGIC_SIZE]; // GGML_PLUGIN_MAGIC
    uint32_t size;                      // sizeof(struct ggml_plugin_note) when it was built
    uint16_t contract_major;            // the contract it was built for
    uint16_t contract_minor;
    uint16_t contract_min_minor; // lowest minor of a host that it works with
    uint16_t machine;            // enum ggml_machine
    uint32_t flags;              // enum ggml_plugin_flag
    int32_t priority;            // between variants of one name the higher is tried first
    uint32_t reserved0;
    uint64_t cpu_features[2]; // needed before any of its code may run; [1] is reserved
    uint64_t layout_hash;     // GGML_PLUGIN_LAYOUT_HASH when it was built
    char name[GGML_PLUGIN_STRING_SIZE];
    char variant[GGML_PLUGIN_STRING_SIZE]; // empty: the only or generic one
    char version[GGML_PLUGIN_STRING_SIZE]; // the plugin's own
    uint32_t reserved[16];
};

// Section that holds the note: ELF, PE (8 characters at most), Mach-O.
#define GGML_PLUGIN_SECTION_ELF ".ggml.note"
#define GGML_PLUGIN_SECTION_PE ".ggmlnt"
#define GGML_PLUGIN_SEGMENT_MACHO "__DATA"
#define GGML_PLUGIN_SECTION_MACHO "__ggml_note"

// --- host table ----------------------------------------------------------------------------------

// What bounded the default number of threads.
enum ggml_thread_bound {
    GGML_THREAD_BOUND_CORES = 0,    // physical performance cores
    GGML_THREAD_BOUND_AFFINITY = 1, // allowed CPUs
    GGML_THREAD_BOUND_QUOTA = 2,    // cgroup CPU quota
    GGML_THREAD_BOUND_MINIMUM = 3,  // raised to 1
};

// The machine as a plugin needs to know it; `size` is set by the caller.
struct ggml_host_topology {
    uint32_t size;
    uint32_t n_packages;
    uint32_t n_cores;             // physical, allowed to this process
    uint32_t n_performance_cores; // of those, of the fastest kind
    uint32_t n_pus;               // logical CPUs allowed to this process
    uint32_t n_numa_nodes;
    uint32_t default_threads;
    uint32_t default_threads_bound; // enum ggml_thread_bound
    uint64_t l1d_bytes;             // of one performance core; 0: unknown
    uint64_t l2_bytes;
    uint64_t l3_bytes;
    uint64_t cpu_features[2]; // usable: CPU and operating system
    uint64_t reserved[8];
};

// What the host offers to one plugin, valid until that plugin's shutdown returned. Every call
// passes the pointer that the plugin was given, by which the host knows who is calling; another
// plugin, or the same one after its shutdown, may be given another.
struct ggml_host_table {
    uint32_t size;
    uint16_t contract_major;
    uint16_t contract_minor;
    const char *host_version;

    // Logs text at an enum ggml_log_level: whole lines, which GGML_LOG_LEVEL_CONT continues.
    // [any-thread]
    void (*log)(const struct ggml_host_table *host, int32_t level, const char *text);
    // Records why the current call fails, for the calling thread. [any-thread]
    void (*set_error)(const struct ggml_host_table *host, int32_t status, const char *text);
    // size > 0 bytes, aligned to a power of two; NULL on failure, which is not yet a failure of the
    // plugin's call: that is set_error. [any-thread]
    void *(*alloc)(const struct ggml_host_table *host, size_t size, size_t alignment);
    // Frees what alloc gave, be it that of another host in this process, and also when that one has
    // gone. NULL does nothing. [any-thread]
    void (*free)(const struct ggml_host_table *host, void *memory);
    // Fills out_topology; the first call may take milliseconds. [any-thread]
    int32_t (*get_topology)(const struct ggml_host_table *host,
                            struct ggml_host_topology *out_topology);
    // Binds the calling thread as worker `index` of `count`, spread over performance cores first. A
    // count of 0 undoes it. [any-thread]
    int32_t (*bind_thread)(const struct ggml_host_table *host, uint32_t index, uint32_t count);
    // Binds the calling thread to the logical CPUs of a bit mask. [any-thread]
    int32_t (*bind_thread_mask)(const struct ggml_host_table *host, const uint64_t *mask,
                                size_t n_words);
    // Value of an environment variable, or NULL: of those that the host documents, and of the
    // plugin's own, GGML_<NAME>_* with the name of its note in capitals and '_' for what isn't a
    // letter or digit. Valid until the process changes its environment. NULL in programs with
    // raised privileges. [any-thread]
    const char *(*get_config)(const struct ggml_host_table *host, const char *name);
    // Extension table by string id, at least of this revision, or NULL. Ids that begin with "ggml."
    // are this contract's, others with a domain of whoever defines them ("org.example.name"), be it
    // the application or a plugin; one that is still a draft keeps its id when it is done.
    // [any-thread]
    const void *(*get_extension)(const struct ggml_host_table *host, const char *id,
                                 uint32_t min_revision);
    void *reserved[16];
};

// Extension "ggml.host-memory", revision 1: the host's own buffer types, so that every plugin and
// the application see the same objects.
#define GGML_EXTENSION_HOST_MEMORY "ggml.host-memory"
#define GGML_EXTENSION_HOST_MEMORY_REVISION 1
struct ggml_extension_host_memory {
    uint32_t size;
    uint32_t revision;
    // As ggml_backend_cpu_buffer_type(). [any-thread]
    ggml_backend_buffer_type_t (*buffer_type)(void);
    // As ggml_backend_cpu_buffer_from_ptr(). [any-thread]
    ggml_backend_buffer_t (*buffer_from_ptr)(void *ptr, size_t size);
};

// Extension "ggml.cpu-features", revision 1: what the topology's cpu_features[0] says, without the
// cost of discovering the rest of the machine.
#define GGML_EXTENSION_CPU_FEATURES "ggml.cpu-features"
#define GGML_EXTENSION_CPU_FEATURES_REVISION 1
struct ggml_extension_cpu_features {
    uint32_t size;
    uint32_t revision;
    // As ggml_host_cpu_features(). [any-thread]
    uint64_t (*features)(void);
};

// Extension "ggml.registry", revision 1: for plugins whose devices become more while they are in
// use, which their notes say with GGML_PLUGIN_FLAG_DYNAMIC_DEVICES.
#define GGML_EXTENSION_REGISTRY "ggml.registry"
#define GGML_EXTENSION_REGISTRY_REVISION 1
struct ggml_extension_registry {
    uint32_t size;
    uint32_t revision;
    // get_device_count answers more than before: the host asks again, and shows the new devices to
    // the application, before this returns or when whoever is loading or unloading is done. An enum
    // ggml_host_status; UNSUPPORTED without the flag. Never blocks. [any-thread]
    int32_t (*devices_changed)(const struct ggml_host_table *host);
};

// How fast a device is: declared by its plugin, or measured. flops_of may grow at the end.
#define GGML_DEVICE_FIGURES_TYPES 64
#define GGML_DEVICE_FIGURES_DIRECT_COPY 1u // see `flags`
struct ggml_device_figures {
    uint32_t size;  // set by whoever provides the memory
    uint32_t flags; // DIRECT_COPY: from and to such devices of its plugin, not through the host
    double flops;   // floating-point operations per second, of types that flops_of leaves out
    double bytes_per_second;      // of its memory
    double launch_seconds;        // per node
    double link_bytes_per_second; // between its memory and the host's; 0: it is the host's
    double link_seconds;          // per copy over that link
    uint64_t memory_bytes;        // most that results and copies may take together; 0: no limit
    uint64_t reserved[8];
    double flops_of[GGML_DEVICE_FIGURES_TYPES]; // by enum ggml_type of a node's first source
};

// Extension "ggml.device-figures", revision 1, which plugins offer.
#define GGML_EXTENSION_DEVICE_FIGURES "ggml.device-figures"
#define GGML_EXTENSION_DEVICE_FIGURES_REVISION 1
struct ggml_extension_device_figures {
    uint32_t size;
    uint32_t revision;
    // Sets what is known about a device of this plugin in *out_figures, all zero but `size` so far:
    // no more than `size` bytes. An enum ggml_host_status; UNSUPPORTED if nothing is. [any-thread]
    int32_t (*figures)(ggml_backend_dev_t device, struct ggml_device_figures *out_figures);
};

// --- plugin table --------------------------------------------------------------------------------

// What the plugin offers; static, valid until shutdown returned. `self` is the table's own address,
// so that one image can hold several plugins.
struct ggml_plugin_table {
    uint32_t size;
    uint16_t contract_major;
    uint16_t contract_minor;
    ggml_backend_reg_t reg;
    // (opt: 1) 0: not usable on this machine after all. [init]
    int (*score)(const struct ggml_plugin_table *self);
    // (opt) Last call: ends threads, frees everything, forgets this host. Never while another call
    // into the plugin is under way on this host's behalf. A process may end without it. [init]
    void (*shutdown)(const struct ggml_plugin_table *self, const struct ggml_host_table *host);
    // (opt: NULL) Extension table by string id, at least of this revision, or NULL. [any-thread]
    const void *(*get_extension)(const struct ggml_plugin_table *self, const char *id,
                                 uint32_t min_revision);
    // (opt: NULL) The note as it is mapped: the same bytes as in the file.
    const struct ggml_plugin_note *note;
    void *reserved[8];
};

// The entry point. Called once per host before anything else, from one thread; it may be called
// again after shutdown, or by a second host in the same process. On success *out_plugin is set and
// GGML_HOST_OK answered; otherwise a status after set_error, with everything undone. [init]
typedef int32_t (*ggml_plugin_init_t)(const struct ggml_host_table *host,
                                      const struct ggml_plugin_table **out_plugin);
#define GGML_PLUGIN_ENTRY_SYMBOL "ggml_backend_init"

// --- layout --------------------------------------------------------------------------------------

#define GGML_LAYOUT_MIX(hash, value) (((hash) ^ (uint64_t)(value)) * UINT64_C(1099511628211))
#define GGML_LAYOUT_TENSOR(hash)                                                                   \
    GGML_LAYOUT_MIX(                                                                               \
        GGML_LAYOUT_MIX(GGML_LAYOUT_MIX(GGML_LAYOUT_MIX(hash, sizeof(struct ggml_tensor)),         \
                                        offsetof(struct ggml_tensor, op_params)),                  \
                        offsetof(struct ggml_tensor, data)),                                       \
        offsetof(struct ggml_tensor, extra))
#define GGML_LAYOUT_INTERFACE(hash)                                                                \
    GGML_LAYOUT_MIX(                                                                               \
        GGML_LAYOUT_MIX(                                                                           \
            GGML_LAYOUT_MIX(                                                                       \
                GGML_LAYOUT_MIX(GGML_LAYOUT_MIX(hash, sizeof(struct ggml_backend_buffer_type)),    \
                                sizeof(struct ggml_backend_buffer)),                               \
                sizeof(struct ggml_backend)),                                                      \
            sizeof(struct ggml_backend_device)),                                                   \
        sizeof(struct ggml_backend_reg))
#define GGML_LAYOUT_TABLES(hash)                                                                   \
    GGML_LAYOUT_MIX(                                                                               \
        GGML_LAYOUT_MIX(                                                                           \
            GGML_LAYOUT_MIX(                                                                       \
                GGML_LAYOUT_MIX(GGML_LAYOUT_MIX(hash, sizeof(struct ggml_stream_table)),           \
                                sizeof(struct ggml_host_table)),                                   \
                sizeof(struct ggml_plugin_table)),                                                 \
            sizeof(struct ggml_backend_dev_props)),                                                \
        sizeof(struct ggml_cgraph))
// Digest of every size that both sides must agree on.
#define GGML_PLUGIN_LAYOUT_HASH                                                                    \
    GGML_LAYOUT_TABLES(GGML_LAYOUT_INTERFACE(GGML_LAYOUT_TENSOR(UINT64_C(14695981039346656037))))

// --- how a plugin is written ---------------------------------------------------------------------

// The plugin table refers to the note, so that linkers keep it with --gc-sections as well.
#if defined(_WIN32)
#define GGML_PLUGIN_SECTION __attribute__((section(GGML_PLUGIN_SECTION_PE), used))
#define GGML_PLUGIN_EXPORT __declspec(dllexport)
#elif defined(__APPLE__)
#define GGML_PLUGIN_SECTION                                                                        \
    __attribute__((section(GGML_PLUGIN_SEGMENT_MACHO "," GGML_PLUGIN_SECTION_MACHO), used))
#define GGML_PLUGIN_EXPORT __attribute__((visibility("default")))
#else
#define GGML_PLUGIN_SECTION __attribute__((section(GGML_PLUGIN_SECTION_ELF), used))
#define GGML_PLUGIN_EXPORT __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
#define GGML_PLUGIN_EXTERN extern "C"
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
#define GGML_PLUGIN_ENTRY_NAME ggml_backend_init
#define GGML_PLUGIN_ENTRY_EXPORT GGML_PLUGIN_EXPORT
#endif

// Defaults for backends that only say GGML_BACKEND_DL_IMPL(reg_fn); override with -D.
#ifndef GGML_PLUGIN_NAME
#define GGML_PLUGIN_NAME "unnamed"
#endif
#ifndef GGML_PLUGIN_VARIANT
#define GGML_PLUGIN_VARIANT ""
#endif
#ifndef GGML_PLUGIN_VERSION
#define GGML_PLUGIN_VERSION "0"
#endif
#ifndef GGML_PLUGIN_PRIORITY
#define GGML_PLUGIN_PRIORITY 0
#endif
#ifndef GGML_PLUGIN_CPU_FEATURES
#define GGML_PLUGIN_CPU_FEATURES 0
#endif
// Raise it in a plugin that calls something which a later minor added.
#ifndef GGML_PLUGIN_MIN_MINOR
#define GGML_PLUGIN_MIN_MINOR 0
#endif

// Defines the note. name, variant and version are string literals of less than 32 bytes.
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
// answers the backend, or NULL after setting the error. The others may be NULL: score_, as in
// struct ggml_plugin_table without self; shutdown_, called when the last host leaves; extension_.
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
    const struct ggml_plugin_note *note;
    // Answers the backend, or NULL after setting the error. [init]
    ggml_backend_reg_t (*start)(void);
    // (opt: 1) As in the table. [init]
    int (*score)(void);
    // (opt) Called when the last host leaves. [init]
    void (*shutdown)(void);
    // (opt: NULL) As in the table. [any-thread]
    const void *(*get_extension)(const char *id, uint32_t min_revision);
    struct ggml_plugin_table table;
    uint32_t n_hosts;
};

// Does the work of GGML_PLUGIN_ENTRY. [init]
GGML_API int32_t ggml_sdk_enter(struct ggml_sdk_plugin *plugin, const struct ggml_host_table *host,
                                const struct ggml_plugin_table **out_plugin);

// The host that is attached last, or NULL before the entry was called: any of them logs, gives and
// takes memory and knows the machine. [any-thread]
GGML_API const struct ggml_host_table *ggml_sdk_host(void);

// Tells every attached host why the calling thread's current call fails, since it isn't known which
// of them called; what exceeds 1023 bytes is cut off. Answers status. [any-thread]
GGML_API enum ggml_host_status ggml_sdk_fail_v(enum ggml_host_status status, const char *format,
                                               va_list args);

// What an entry answers for the status that computing ended with.
static inline int32_t ggml_entry_status(enum ggml_status status) {
    switch (status) {
    case GGML_STATUS_SUCCESS: return GGML_HOST_OK;
    case GGML_STATUS_ALLOC_FAILED: return GGML_HOST_OUT_OF_MEMORY;
    case GGML_STATUS_ABORTED: return GGML_HOST_ABORTED;
    default: return GGML_HOST_FAILED;
    }
}

// Score used by GGML_BACKEND_DL_IMPL: 1, unless GGML_BACKEND_DL_SCORE_IMPL replaces it. [init]
GGML_API int ggml_sdk_score(void);

// --- sizes and offsets ---------------------------------------------------------------------------

#if UINTPTR_MAX > 0xFFFFFFFF
#ifdef __cplusplus
#define GGML_STATIC_ASSERT(condition, message) static_assert(condition, message)
#else
#define GGML_STATIC_ASSERT(condition, message) _Static_assert(condition, message)
#endif
#define GGML_PIN_SIZE(type, bytes)                                                                 \
    GGML_STATIC_ASSERT(sizeof(type) == (bytes), #type " changed size")
#define GGML_PIN(type, member, bytes)                                                              \
    GGML_STATIC_ASSERT(offsetof(type, member) == (bytes), #type "." #member " moved")
#include "layout_pins.inl"
#endif

#ifdef __cplusplus
}
#endif

#endif
