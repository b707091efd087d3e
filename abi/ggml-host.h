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

// Whether a builder refused its operands: such a tensor can be passed on but not computed.
// [any-thread]
GGML_API bool ggml_tensor_is_error(const struct ggml_tensor *tensor);
// Why the tensor or graph is in error, or NULL if it is not; valid as long as its context.
// [any-thread]
GGML_API const char *ggml_tensor_error(const struct ggml_tensor *tensor);
GGML_API const char *ggml_graph_error(const struct ggml_cgraph *cgraph);

// --- plugins -------------------------------------------------------------------------------------

// What may be loaded. By default a plugin is refused (GGML_HOST_UNTRUSTED) when its file, or a
// directory on the way to it, belongs to somebody else than root and the effective user or can be
// written by others; docs/security.md has the whole rule.
struct ggml_plugin_policy {
    size_t size;
    bool allow_unsafe; // load such plugins all the same
    // SHA-256 sums of the files that may be loaded, 64 hexadecimal digits each; NULL: any file.
    // What GGML_PLUGIN_SHA256 lists restricts them further.
    const char *const *sha256;
    size_t n_sha256;
};
// Holds for what this process loads from now on; NULL: the default. The sums are copied.
// INVALID_ARGUMENT, OUT_OF_MEMORY: nothing is changed. [any-thread]
GGML_API enum ggml_host_status ggml_plugin_set_policy(const struct ggml_plugin_policy *policy);

// Loads one plugin by its absolute path. *out_reg is set on success, and also with
// GGML_HOST_DUPLICATE, then to the one loaded before. Runs the plugin's start-up code. [any-thread]
GGML_API enum ggml_host_status ggml_plugin_load(const char *path, ggml_backend_reg_t *out_reg);
// Loads every plugin found: in `dir` only, or with NULL along the search path. *out_loaded (may be
// NULL): number of backends that became available by this call. May be called again: files that
// were added since are loaded, and of those that went away the record says so (NOT_FOUND; a plugin
// that is loaded stays so). Candidates that are refused leave records and do not make the call fail.
// [any-thread]
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
    const char *path; // "(built-in)" for a plugin linked into the library
    const char *name;
    const char *variant;
    const char *version;
    int contract_major; // -1 where the note could not be read
    int contract_minor;
    enum ggml_machine machine;
    enum ggml_plugin_stage stage; // the last one reached
    enum ggml_host_status status; // why it stopped there; GGML_HOST_OK when loaded
    const char *message;          // for a person: what happened and what to do
    const char *missing;          // library that could not be found
    ggml_backend_reg_t reg;       // NULL unless loaded
    double microseconds;          // spent on it
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

enum ggml_memory_quality {
    GGML_MEMORY_UNKNOWN = 0,   // nothing reported
    GGML_MEMORY_ESTIMATED = 1, // free is an estimate
    GGML_MEMORY_KNOWN = 2,
};

struct ggml_device_info {
    size_t size;
    const char *plugin_path;     // "(built-in)" for one in the library, "" if registered by hand
    const char *plugin_name;     // "" if registered by hand
    ggml_backend_dev_t alias_of; // the same hardware through a plugin found earlier, or NULL
    enum ggml_memory_quality memory;
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

// --- scheduler -----------------------------------------------------------------------------------

// What a scheduler does with a graph, or would do: a copy that outlives both. Strings and arrays in
// the structs below belong to the report; indexes past the end answer NULL.
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
// copied; a NULL among them stands for what the plugin declares. NULL: the usual placement again.
// INVALID_ARGUMENT for rates that are not positive, UNSUPPORTED where nothing is declared; nothing
// is changed then. [stream]
GGML_API enum ggml_host_status
ggml_sched_set_costs(ggml_backend_sched_t sched, const struct ggml_device_figures *const *figures);
// Predicted seconds of the graph; 0 without figures. [any-thread]
GGML_API double ggml_sched_report_seconds(ggml_sched_report_t report);

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
