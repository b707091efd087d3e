// SPDX-License-Identifier: MIT
// ggml-host.h: what this implementation adds to ggml's API: errors that say what happened, a record
// of every plugin candidate, the machine's topology. Nothing here is needed by a program written
// for ggml.
//
// Structs that the caller passes in begin with `size`, which the caller sets to sizeof.
#ifndef GGML_HOST_H
#define GGML_HOST_H

#include "ggml-backend.h"
#include "ggml-plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- errors --------------------------------------------------------------------------------------

// Every failing call of the library leaves a message in the terms of the program: what was being
// done, with which object, and what helps. It is per thread and kept until the next failure, so a
// program looks when it knows that something failed; calls that return nothing need the status to
// be cleared before:
//
//     ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(ctx, stream);
//     if (!buffer) fprintf(stderr, "%s\n", ggml_last_error());
//
//     ggml_clear_error();
//     ggml_backend_tensor_set(x, data, 0, size); // returns nothing
//     if (ggml_last_status() == GGML_HOST_OUT_OF_RANGE) ...

// Message of the last call that failed on this thread; "" if none did. Valid until the next failing
// call on this thread. Successful calls leave it alone. [any-thread]
GGML_API const char *ggml_last_error(void);
// Status of the same call; GGML_HOST_OK if none failed. [any-thread]
GGML_API enum ggml_host_status ggml_last_status(void);
// Forgets it. [any-thread]
GGML_API void ggml_clear_error(void);
// Constant text of a status, never NULL. [any-thread]
GGML_API const char *ggml_host_status_text(enum ggml_host_status status);

// --- graphs --------------------------------------------------------------------------------------

// The first thing that went wrong while a graph was built is what these say: later builders pass it
// on.
//
//     y = build_model(ctx, x);
//     if (ggml_tensor_is_error(y)) fprintf(stderr, "%s\n", ggml_tensor_error(y));
//     // "ggml_mul_mat: src0 ne0 = 8 differs from src1 ne0 = 4, the length of the dot product"

// Whether a builder refused its operands: such a tensor can be passed on but not computed.
// [any-thread]
GGML_API bool ggml_tensor_is_error(const struct ggml_tensor *tensor);
// Why the tensor or graph is in error, or NULL if it is not; valid as long as its context.
// [any-thread]
GGML_API const char *ggml_tensor_error(const struct ggml_tensor *tensor);
GGML_API const char *ggml_graph_error(const struct ggml_cgraph *cgraph);

// --- plugins -------------------------------------------------------------------------------------

// Which plugins there are, and why some are not used:
//
//     size_t loaded;
//     ggml_plugin_load_all(NULL, &loaded);
//     ggml_plugin_report_t report = ggml_plugin_report_new();
//     for (size_t i = 0; report && i < ggml_plugin_report_count(report); ++i) {
//         const struct ggml_plugin_record *r = ggml_plugin_report_get(report, i);
//         if (r->status != GGML_HOST_OK) fprintf(stderr, "%s: %s\n", r->path, r->message);
//     }
//     ggml_plugin_report_free(report);

// What may be loaded. By default a plugin is refused (GGML_HOST_UNTRUSTED) when its file, or a
// directory on the way to it, belongs to another user than root and the effective user or can be
// written by others; docs/security.md has the whole rule.
struct ggml_plugin_policy {
    size_t size;       // sizeof, set by the caller
    bool allow_unsafe; // load such plugins all the same
    // SHA-256 sums of the files that may be loaded, 64 hexadecimal digits each; NULL: any file.
    // What GGML_PLUGIN_SHA256 lists restricts them further.
    const char *const *sha256;
    size_t n_sha256; // 0 with NULL
};
// Holds for what this process loads from now on; NULL: the default. The sums are copied.
// INVALID_ARGUMENT, OUT_OF_MEMORY: nothing is changed. [any-thread]
GGML_API enum ggml_host_status ggml_plugin_set_policy(const struct ggml_plugin_policy *policy);

// Loads one plugin by its absolute path. *out_reg is set on success, and also with
// GGML_HOST_DUPLICATE, then to the one loaded before. Runs the plugin's start-up code. [any-thread]
GGML_API enum ggml_host_status ggml_plugin_load(const char *path, ggml_backend_reg_t *out_reg);
// Starts a plugin that is linked into the application (its source compiled with
// GGML_PLUGIN_BUILTIN=name, which gives it ggml_builtin_note_NAME and ggml_builtin_init_NAME), with
// everything that is looked at in one from a file: contract, CPU features, layouts, devices. Its
// note and code stay. *out_reg (may be NULL) is set on success, and with DUPLICATE (a plugin of
// that name, or with that `init`, is linked in and running) to that one; DAMAGED_FILE if the note
// contradicts itself; else as ggml_plugin_load. [any-thread]
GGML_API enum ggml_host_status ggml_plugin_load_static(const struct ggml_plugin_note *note,
                                                       ggml_plugin_init_t init,
                                                       ggml_backend_reg_t *out_reg);
// Extension table of a plugin by string id, at least of this revision; NULL if it has none. Valid
// until the plugin is unloaded. [any-thread]
GGML_API const void *ggml_backend_reg_get_extension(ggml_backend_reg_t reg, const char *id,
                                                    uint32_t min_revision);
// Offers a table of the application to every plugin that asks for this id, from now on and until
// the process ends. The id is copied and begins with a domain of the application's
// ("org.example.name"). INVALID_ARGUMENT, DUPLICATE, OUT_OF_MEMORY. [any-thread]
GGML_API enum ggml_host_status ggml_host_offer_extension(const char *id, uint32_t revision,
                                                         const void *table);
// Loads every plugin found: in `dir` only, or with NULL along the search path. *out_loaded (may be
// NULL): number of backends that became available by this call. May be called again: files that
// were added since are loaded, and of those that went away the record says so (NOT_FOUND; a plugin
// that is loaded stays so). Candidates that are refused leave records and do not make the call
// fail. [any-thread]
GGML_API enum ggml_host_status ggml_plugin_load_all(const char *dir, size_t *out_loaded);
// Shuts a plugin down and unmaps it. GGML_HOST_BUSY while streams, buffers or events of it live;
// nothing is changed then. [any-thread]
GGML_API enum ggml_host_status ggml_plugin_unload(ggml_backend_reg_t reg);

// How far a candidate got.
enum ggml_plugin_stage {
    GGML_PLUGIN_STAGE_FOUND = 0,     // seen in a directory
    GGML_PLUGIN_STAGE_FILE = 1,      // opened, a regular file
    GGML_PLUGIN_STAGE_NOTE = 2,      // its note was read
    GGML_PLUGIN_STAGE_NEGOTIATE = 3, // contract, machine, CPU features, layout compared
    GGML_PLUGIN_STAGE_SELECT = 4,    // chosen among the variants of its name
    GGML_PLUGIN_STAGE_MAP = 5,       // mapped; from here on its code runs
    GGML_PLUGIN_STAGE_INIT = 6,      // ggml_backend_init returned
    GGML_PLUGIN_STAGE_VERIFY = 7,    // tables and devices checked
    GGML_PLUGIN_STAGE_READY = 8,     // in use
};
// Constant text of a stage, never NULL. [any-thread]
GGML_API const char *ggml_plugin_stage_text(enum ggml_plugin_stage stage);

// What is known of a candidate. Strings are never NULL; "" where unknown.
struct ggml_plugin_record {
    const char *path;             // "(built-in)" for a plugin linked into the library
    const char *name;             // of its note
    const char *variant;          // of its note
    const char *version;          // of its note: the plugin's own
    int contract_major;           // -1 where the note could not be read
    int contract_minor;           // likewise
    enum ggml_machine machine;    // of its note
    enum ggml_plugin_stage stage; // the last one reached
    enum ggml_host_status status; // why it stopped there; GGML_HOST_OK when loaded
    const char *message; // for a person: what happened and what to do; of one that is well, what it
                         // warned of when a helper tried it, why GGML_ISOLATE left a device out,
                         // why what is at its path now could not be loaded, or ""
    const char *missing; // library that could not be found
    ggml_backend_reg_t reg; // NULL unless loaded
    double microseconds;    // spent on it
};

// A directory of the search path, in order.
struct ggml_plugin_directory {
    const char *path;
    const char *origin; // "caller", "GGML_PLUGIN_PATH", "configured", "library", "executable"
    enum ggml_host_status status; // GGML_HOST_NOT_FOUND: does not exist
};

// A copy of everything known at this moment; NULL when memory runs out. The caller frees it.
// [any-thread]
typedef struct ggml_plugin_report *ggml_plugin_report_t;
GGML_API ggml_plugin_report_t ggml_plugin_report_new(void);
GGML_API void ggml_plugin_report_free(ggml_plugin_report_t report);
// Records in the order in which candidates were found; NULL past the end. They belong to the
// report. [any-thread]
GGML_API size_t ggml_plugin_report_count(ggml_plugin_report_t report);
GGML_API const struct ggml_plugin_record *ggml_plugin_report_get(ggml_plugin_report_t report,
                                                                 size_t i);
GGML_API size_t ggml_plugin_report_directory_count(ggml_plugin_report_t report);
GGML_API const struct ggml_plugin_directory *
ggml_plugin_report_directory_get(ggml_plugin_report_t report, size_t i);

// --- devices -------------------------------------------------------------------------------------

// What ggml_backend_dev_memory() is worth.
enum ggml_memory_quality {
    GGML_MEMORY_UNKNOWN = 0,   // nothing reported
    GGML_MEMORY_ESTIMATED = 1, // free is an estimate
    GGML_MEMORY_KNOWN = 2,     // as the driver counts it
};

// What the host knows of a device beyond its properties.
struct ggml_device_info {
    size_t size;                 // sizeof, set by the caller
    const char *plugin_path;     // "(built-in)" for one in the library, "" if registered by hand
    const char *plugin_name;     // "" if registered by hand
    ggml_backend_dev_t alias_of; // the same hardware through a plugin found earlier, or NULL
    enum ggml_memory_quality memory; // what its numbers of bytes are worth
};
// Fills out_info; GGML_HOST_INVALID_ARGUMENT if the device is not registered. Strings are valid
// until the plugin is unloaded. [any-thread]
GGML_API enum ggml_host_status ggml_backend_dev_info(ggml_backend_dev_t device,
                                                     struct ggml_device_info *out_info);
// Figures that the device's plugin declares; ggml-bench figures measures them. out_figures->size is
// set by the caller. INVALID_ARGUMENT if the device is not registered, UNSUPPORTED if nothing is
// declared: *out_figures is zero then, but for its size. [any-thread]
GGML_API enum ggml_host_status ggml_backend_dev_figures(ggml_backend_dev_t device,
                                                        struct ggml_device_figures *out_figures);
// What a plugin declares of direct copies from one of its devices to another; NULL for one of both
// stands for the host's memory. out_link->size is set by the caller. INVALID_ARGUMENT if a device
// is not registered, BAD_PLUGIN if what is declared is no time and rate, UNSUPPORTED if nothing is
// declared, the devices are of different plugins, or one is isolated: *out_link is zero then, but
// for its size. [any-thread]
GGML_API enum ggml_host_status ggml_backend_dev_link(ggml_backend_dev_t from, ggml_backend_dev_t to,
                                                     struct ggml_device_link *out_link);
// What the device's plugin says of it beyond its properties (extension "ggml.device-info"): keys
// and values up to a key that is NULL, valid until the plugin is unloaded. NULL if it says nothing;
// also after INVALID_ARGUMENT, if the device is not registered, and BAD_PLUGIN, if the list breaks
// the contract. [any-thread]
GGML_API const struct ggml_backend_feature *ggml_backend_dev_details(ggml_backend_dev_t device);

// --- memory that others use too ------------------------------------------------------------------
//
// Buffers that several hosts or processes use in place, on one physical device whose plugin offers
// "ggml.external-memory" (ggml-ext-external-memory.h, where ownership and order are written).
// Statuses: INVALID_ARGUMENT, also for devices that are not registered; UNSUPPORTED; what the
// plugin says.

// A buffer of `bytes` > 0 that can be exported, or NULL. [any-thread]
GGML_API ggml_backend_buffer_t ggml_backend_dev_alloc_external(ggml_backend_dev_t device,
                                                               size_t bytes);
// Names the memory of such a buffer. The caller sets out_memory->size, and closes out_memory->fd,
// which is -1 after a failure. [any-thread]
GGML_API enum ggml_host_status ggml_backend_buffer_export(ggml_backend_buffer_t buffer,
                                                          enum ggml_external_type type,
                                                          struct ggml_external_memory *out_memory);
// A buffer in the memory that is named, or NULL. memory->fd stays the caller's. [any-thread]
GGML_API ggml_backend_buffer_t ggml_backend_dev_import_external(
    ggml_backend_dev_t device, const struct ggml_external_memory *memory);

// --- probing -------------------------------------------------------------------------------------
//
// Finds out which plugins work and what devices they offer without running any of their code in
// this process: each candidate is tried in a helper process (ggml-probe) with a deadline, which is
// ended with everything that it started. A driver that crashes or hangs costs a record.
// Results are remembered per user and hold until the plugin's file, the library, the kernel, its
// drivers or the machine's devices change; a failure is remembered for an hour. docs/probing.md
// says more.

enum ggml_probe_flag {
    GGML_PROBE_IN_PROCESS = 1,    // in this process, without a helper and without the cache
    GGML_PROBE_ISOLATED_ONLY = 2, // never in this process: without a helper a plugin is refused
    GGML_PROBE_NO_CACHE = 4,      // neither use nor remember results
    GGML_PROBE_RESCAN = 8,        // don't use results, but remember the new ones
    GGML_PROBE_NO_SANDBOX = 16,   // helpers may do what this process may
};

// All zero but for size is the default of everything.
struct ggml_probe_options {
    size_t size;
    const char *dir;         // as in ggml_plugin_load_all
    const char *helper;      // absolute path of the helper; NULL: it is looked for
    const char *cache_dir;   // absolute, made if needed; NULL: the user's
    uint32_t flags;          // enum ggml_probe_flag
    uint32_t jobs;           // helpers at a time, at most 64; 0: 4
    uint32_t deadline_ms;    // for each, at most an hour; 0: 15 seconds
    uint32_t failure_expiry; // seconds that a failure is remembered; 0: 3600, or what
                             // GGML_PROBE_FAILURE_SECONDS says
    uint64_t memory_limit;   // bytes that a helper may use; 0: half of the machine's
    // (opt) Called on the calling thread when `done` of `total` have been probed, `path` last.
    void (*progress)(void *user_data, size_t done, size_t total, const char *path);
    void *user_data;
};

// Where the answer comes from.
enum ggml_probe_source {
    GGML_PROBE_SOURCE_FILE = 0,    // the file alone: nothing of the plugin ran
    GGML_PROBE_SOURCE_HELPER = 1,  // a helper process, just now
    GGML_PROBE_SOURCE_CACHE = 2,   // a helper process, earlier
    GGML_PROBE_SOURCE_PROCESS = 3, // this process, just now: built in, loaded, or without a helper
};

struct ggml_probe_record {
    const struct ggml_plugin_record *plugin; // GGML_HOST_OK: it would be loaded; reg is NULL
    enum ggml_probe_source source;
    int64_t probed_at; // seconds since 1970; 0: nothing ran
};

struct ggml_probe_device {
    struct ggml_backend_dev_props props; // device_id is NULL if there is none
    enum ggml_memory_quality memory;     // estimated at best if it comes from the cache
    size_t record;                       // index of its plugin's record
    size_t alias_of;                     // index of a device, the same hardware; SIZE_MAX: none
    const struct ggml_backend_feature *details; // as ggml_backend_dev_details()
};

typedef struct ggml_probe_report *ggml_probe_report_t;

// Probes every plugin that ggml_plugin_load_all would look at, and changes nothing of what is
// loaded. Blocks for candidates * deadline / jobs at most, and a moment. The caller frees
// *out_report, which is NULL on failure. INVALID_ARGUMENT; for options->dir also NOT_FOUND,
// PERMISSION_DENIED and IO_ERROR; OUT_OF_MEMORY; BUSY inside a plugin's start-up. options may be
// NULL. [any-thread]
GGML_API enum ggml_host_status ggml_plugin_probe(const struct ggml_probe_options *options,
                                                 ggml_probe_report_t *out_report);
// Loads what the report says would be loaded, file by file, and the built-in plugins; what was
// refused gets its record. *out_loaded (may be NULL): plugins from files that became available. A
// file that changed in between is refused. [any-thread]
GGML_API enum ggml_host_status ggml_plugin_load_probed(ggml_probe_report_t report,
                                                       size_t *out_loaded);
// NULL does nothing. [any-thread]
GGML_API void ggml_probe_report_free(ggml_probe_report_t report);
// Why plugins were probed in this process although a helper was asked for; "" if none was.
// Everything that these functions return belongs to it. [any-thread]
GGML_API const char *ggml_probe_report_not_isolated(ggml_probe_report_t report);
// Why results are not remembered; "" if they are, or if that was asked for. [any-thread]
GGML_API const char *ggml_probe_report_not_cached(ggml_probe_report_t report);
// What helpers could have done although they should not (Linux: which of the kernel's features is
// missing); "" if they were confined, if none ran, or if that was not asked for. [any-thread]
GGML_API const char *ggml_probe_report_not_sandboxed(ggml_probe_report_t report);
// Candidates in the order in which they were found; devices in the order of ggml_backend_dev_get.
// NULL past the end. [any-thread]
GGML_API size_t ggml_probe_report_count(ggml_probe_report_t report);
GGML_API const struct ggml_probe_record *ggml_probe_report_get(ggml_probe_report_t report,
                                                               size_t i);
GGML_API size_t ggml_probe_report_device_count(ggml_probe_report_t report);
GGML_API const struct ggml_probe_device *ggml_probe_report_device_get(ggml_probe_report_t report,
                                                                      size_t i);
GGML_API size_t ggml_probe_report_directory_count(ggml_probe_report_t report);
GGML_API const struct ggml_plugin_directory *
ggml_probe_report_directory_get(ggml_probe_report_t report, size_t i);

// --- isolation -----------------------------------------------------------------------------------
//
// A device whose driver may crash while it computes can be computed by another process (the helper
// that also probes plugins). Whatever ends that process loses the device and nothing else.
// docs/crash-isolation.md says what it costs.

// All zero but for size is the default of everything.
struct ggml_isolate_options {
    size_t size;
    const char *helper;   // absolute path of the helper; NULL: it is looked for
    uint32_t deadline_ms; // for each call, a graph included, at most an hour: a process that takes
                          // longer is ended; 0: none. The start may take 15 seconds at least
};

// Makes a device that is computed by a process of its own, with the name, type and operations of
// `device`, which is of a plugin that this process has loaded and stays in use. The new device is
// not registered; the caller ends it with ggml_host_isolated_free(). It works like any other, but
// its calls wait, one after the other, until they are done, but for setting up to 32 KiB of what is
// not weights, whose failure is that of the next use of contents; it computes only on its own
// memory, and no nodes that call functions of the application. When its process has ended (a crash,
// a signal, the deadline) every call on it, the one under way included, fails with DEVICE_LOST (a
// graph with GGML_STATUS_FAILED and that as last status), and its objects can still be freed. The
// process ends with this one. *out_device is NULL on failure: INVALID_ARGUMENT; UNSUPPORTED (not on
// this system, no helper, a device that is registered by hand); DAMAGED_FILE (the plugin's file
// changed since); DEVICE_LOST (its start ended the process or took too long); OUT_OF_MEMORY, BUSY,
// IO_ERROR; what the plugin's start fails with. options may be NULL. Blocks while the plugin
// starts. [any-thread]
GGML_API enum ggml_host_status ggml_host_isolate(ggml_backend_dev_t device,
                                                 const struct ggml_isolate_options *options,
                                                 ggml_backend_dev_t *out_device);
// Ends the process and frees the device. BUSY while streams or buffers of it live, INVALID_ARGUMENT
// for a device that is not isolated, or that GGML_ISOLATE isolated, which ends with its plugin;
// nothing is changed then. NULL does nothing. Blocks for two seconds at most. [stream]
GGML_API enum ggml_host_status ggml_host_isolated_free(ggml_backend_dev_t device);
// Why an isolated device is lost, valid as long as it; NULL while it is not, or for one that is not
// isolated. [any-thread]
GGML_API const char *ggml_host_isolated_lost(ggml_backend_dev_t device);
// Number of the process that computes it; 0 when it is known to have ended, or for a device that is
// not isolated. [any-thread]
GGML_API int64_t ggml_host_isolated_process(ggml_backend_dev_t device);
// For measurements: nanoseconds that the graphs so far took on an isolated device, after the checks
// that each device's graphs pass, and those of them in which the device itself was busy, in the
// other process. Their difference is what isolation cost. The second is what that process says, up
// to the first. Both are 0 for a device that is not isolated. [any-thread]
GGML_API void ggml_host_isolated_time(ggml_backend_dev_t device, int64_t *out_total_ns,
                                      int64_t *out_device_ns);

// --- scheduler -----------------------------------------------------------------------------------

// What a scheduler does with a graph, or would do: a copy that outlives both. Strings and arrays in
// the structs below belong to the report; indexes past the end give NULL.
typedef struct ggml_sched_report *ggml_sched_report_t;

// A tensor that is copied at the start of a split.
struct ggml_sched_copy_info {
    const char *tensor;
    const char *from;   // device
    const char *reason; // why it has to be copied
    size_t bytes;       // at most, where only the experts that are used are copied
};

// Consecutive nodes on one device.
struct ggml_sched_split_info {
    const char *device;
    int stream;     // index among the scheduler's
    int first_node; // by order in the graph
    int n_nodes;
    size_t n_copies;
    const struct ggml_sched_copy_info *copies;
    size_t copied_bytes; // of all of them
};

struct ggml_sched_node_info {
    const char *name;
    const char *op;
    const char *device;
    int stream;
    int split;
    const char *reason; // why it runs there
};

struct ggml_sched_stream_info {
    const char *device;
    const char *memory; // buffer type of its tensors
    int n_nodes;        // that compute something
    int n_splits;
    size_t bytes;      // planned exactly; 0 if an earlier stream has the same memory
    size_t free_bytes; // of the device, 0: not reported
};

// Splits and plans the graph without allocating and leaves it as it was; pins are honoured, then
// the scheduler is reset. graph NULL: of the graph that was split or allocated last, with the bytes
// that are allocated. NULL on failure. [stream]
GGML_API ggml_sched_report_t ggml_sched_report_new(ggml_backend_sched_t sched,
                                                   struct ggml_cgraph *graph);
// NULL does nothing. [any-thread]
GGML_API void ggml_sched_report_free(ggml_sched_report_t report);
// [any-thread]
GGML_API size_t ggml_sched_report_split_count(ggml_sched_report_t report);
GGML_API size_t ggml_sched_report_node_count(ggml_sched_report_t report);
GGML_API size_t ggml_sched_report_stream_count(ggml_sched_report_t report);
GGML_API const struct ggml_sched_split_info *ggml_sched_report_split(ggml_sched_report_t report,
                                                                     size_t i);
GGML_API const struct ggml_sched_node_info *ggml_sched_report_node(ggml_sched_report_t report,
                                                                   size_t i);
GGML_API const struct ggml_sched_stream_info *ggml_sched_report_stream(ggml_sched_report_t report,
                                                                       size_t i);
// All of it for a person, and as JSON; belongs to the report. NULL when memory runs out.
// [any-thread]
GGML_API const char *ggml_sched_report_text(ggml_sched_report_t report);
GGML_API const char *ggml_sched_report_json(ggml_sched_report_t report);

// From now on a graph fails to split when one of its nodes would run on another stream than these
// n_allowed; views don't count. n_allowed 0: every stream is allowed again. INVALID_ARGUMENT for a
// stream that is not the scheduler's, nothing is changed then. [stream]
GGML_API enum ggml_host_status
ggml_sched_set_allowed(ggml_backend_sched_t sched, const ggml_backend_t *allowed, size_t n_allowed);

// Places graphs so that the predicted time, the sum of nodes and copies, is small, and not longer
// than that of the usual placement if that fits the limits of memory. figures: one per stream,
// copied; a NULL among them stands for what the plugin declares. What plugins declare of direct
// copies between two streams' devices (ggml_backend_dev_link) counts instead of the figures of
// both. NULL: the usual placement again.
// INVALID_ARGUMENT for rates that are not positive, UNSUPPORTED where nothing is declared; nothing
// is changed then. [stream]
GGML_API enum ggml_host_status
ggml_sched_set_costs(ggml_backend_sched_t sched, const struct ggml_device_figures *const *figures);
// Predicted seconds of the graph as if nothing overlapped: what the placement makes small. 0
// without figures. [any-thread]
GGML_API double ggml_sched_report_seconds(ggml_sched_report_t report);
// Predicted seconds from start to end, with streams that queue work side by side. [any-thread]
GGML_API double ggml_sched_report_elapsed(ggml_sched_report_t report);

// --- models over several devices -----------------------------------------------------------------

// A model of equal layers, of which each is read once for a token.
struct ggml_split_model {
    uint32_t size; // set by the caller
    uint32_t n_layers;
    uint64_t layer_bytes; // of weights, and of the caches that are to fit beside them
    uint64_t value_bytes; // of what one token takes from layer to layer
    const struct ggml_device_figures *const *figures; // (opt) one per device; a NULL among them
                                                      // stands for what its plugin declares
};

// Devices that split the tensors of their layers among them (ggml_backend_meta_device).
struct ggml_island {
    uint32_t n_devices;
    uint32_t first_layer, n_layers; // n_layers 0: the others are enough
    uint32_t reserved;              // 0
    double layer_seconds;           // predicted for a token
    ggml_backend_dev_t devices[GGML_BACKEND_META_MAX_DEVICES];
};

// Divides 1 to 64 devices into islands and layers among these, so that a token's predicted time is
// small: tensors are split between devices whose links make sums cheaper than what they save,
// layers between islands. Memory counts that is free now; a device that is lost has none. *out_n
// islands, at most n_devices, in the order of their layers, are written to out_islands; every
// device is in one. UNSUPPORTED where figures are neither given nor declared, OUT_OF_MEMORY where
// not all layers fit, INVALID_ARGUMENT for rates that are not positive, a device that is there
// twice, or none, BAD_PLUGIN for a link that can't be; *out_n is 0 then. [any-thread]
GGML_API enum ggml_host_status ggml_host_plan_islands(const ggml_backend_dev_t *devices,
                                                      size_t n_devices,
                                                      const struct ggml_split_model *model,
                                                      struct ggml_island *out_islands,
                                                      size_t *out_n);

// --- when nodes are computed ---------------------------------------------------------------------
//
// What a scheduler's streams and the scheduler itself were busy with, from begin to end. Streams
// whose plugin offers the extension "ggml.profile" tell it of each node; of others it is known how
// long the call took that gave them their nodes, which for a device that queues is not the time
// that these take. docs/profiling.md has an example.

enum ggml_sched_slice_kind {
    GGML_SCHED_SLICE_NODE = 0,  // a node, or several that are fused, on the stream
    GGML_SCHED_SLICE_SPLIT = 1, // the call that computes nodes on a stream without "ggml.profile"
    GGML_SCHED_SLICE_COPY = 2,  // the host copies a tensor to the stream, or queues that
    GGML_SCHED_SLICE_WAIT = 3,  // the host waits for the stream
};

struct ggml_sched_slice {
    enum ggml_sched_slice_kind kind;
    int stream;         // index among the scheduler's
    int from;           // COPY: the stream where the tensor lies; else -1
    int node;           // NODE, SPLIT: the first, by order in the graph; else -1
    int n_nodes;        // NODE: that it computed; SPLIT: of the graph given, views included; else 0
    uint64_t run;       // the computation of a graph, counted from 1; 0: between them
    const char *device; // of the stream
    const char *name;   // of the first node, or of the tensor that is copied; "" for WAIT
    const char *op;     // of the first node; else ""
    const char *type;   // of the tensor; else ""
    int64_t ne[4];      // of the tensor
    uint64_t bytes;     // of the tensor
    uint64_t begin_ns;  // since ggml_sched_profile_begin
    uint64_t end_ns;
};

typedef struct ggml_sched_profile *ggml_sched_profile_t;

// From now on records what the scheduler computes. A stream keeps up to max_slices slices that
// aren't collected, which happens before each graph: as many as the computed nodes of the graphs
// that are queued at once will do; 0: 65,536, and never more than 4,194,304. Collected ones take
// memory until the end. Waits for the streams. BUSY if it records already, or if something else
// does on one of the streams; INVALID_ARGUMENT, OUT_OF_MEMORY, what the plugin fails with; nothing
// is recorded then. [stream]
GGML_API enum ggml_host_status ggml_sched_profile_begin(ggml_backend_sched_t sched,
                                                        size_t max_slices);
// Waits for the streams, stops, and returns what was recorded; the caller frees it, before or after
// the scheduler. NULL if nothing is being recorded or memory runs out, it is lost then. A scheduler
// that is freed stops too. [stream]
GGML_API ggml_sched_profile_t ggml_sched_profile_end(ggml_backend_sched_t sched);
// NULL does nothing. [any-thread]
GGML_API void ggml_sched_profile_free(ggml_sched_profile_t profile);
// Slices in the order in which they begin, of all streams; NULL past the end. They belong to the
// profile. [any-thread]
GGML_API size_t ggml_sched_profile_count(ggml_sched_profile_t profile);
GGML_API const struct ggml_sched_slice *ggml_sched_profile_get(ggml_sched_profile_t profile,
                                                               size_t i);
// Slices that are missing because there was no room for them. [any-thread]
GGML_API uint64_t ggml_sched_profile_lost(ggml_sched_profile_t profile);
// Time by device and operation for a person, and all slices in Chrome's trace event format (JSON,
// which Perfetto opens too): a track for the host and one per stream. They belong to the profile.
// NULL when memory runs out. [stream]
GGML_API const char *ggml_sched_profile_text(ggml_sched_profile_t profile);
GGML_API const char *ggml_sched_profile_json(ggml_sched_profile_t profile);
// Writes the JSON to a file, replacing it. INVALID_ARGUMENT, OUT_OF_MEMORY, IO_ERROR: the file may
// be incomplete then. Blocks. [stream]
GGML_API enum ggml_host_status ggml_sched_profile_write(ggml_sched_profile_t profile,
                                                        const char *path);

// --- machine -------------------------------------------------------------------------------------

// Topology of this machine as far as this process may use it. The first call discovers it
// (milliseconds); later ones copy it. out_topology->size is set by the caller. [any-thread]
GGML_API enum ggml_host_status ggml_host_get_topology(struct ggml_host_topology *out_topology);
// The default number of threads: physical performance cores, affinity and CPU quota, at least 1.
// [any-thread]
GGML_API int ggml_host_default_threads(void);
// Bit set of usable CPU features (GGML_CPU_BIT); a feature counts only if the operating system
// saves its registers. [any-thread]
GGML_API uint64_t ggml_host_cpu_features(void);
// Name of feature bit `bit` on this machine, or NULL. [any-thread]
GGML_API const char *ggml_host_cpu_feature_name(unsigned bit);

#ifdef __cplusplus
}
#endif

#endif
