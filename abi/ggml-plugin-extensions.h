// SPDX-License-Identifier: MIT
// ggml-plugin-extensions.h: the extension tables of the contract, those that the host offers and
// those that plugins do.
//
// A part of ggml-plugin.h. Each is found by its id with get_extension of the host table or of the
// plugin table, and may be missing. `size` and `revision` stand first in each: a revision adds at
// the end and changes nothing that is there. Thread tags are defined in ggml.h.
#ifndef GGML_PLUGIN_EXTENSIONS_H
#define GGML_PLUGIN_EXTENSIONS_H

#include <stdint.h>

#include "ggml-backend-impl.h"
#include "ggml-plugin-host.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- offered by the host -------------------------------------------------------------------------

// How a plugin asks, in its entry or later (a host may lack any of them):
//
//     const struct ggml_extension_plugin_path *paths =
//         host->get_extension(host, GGML_EXTENSION_PLUGIN_PATH, 1);
//     if (paths) load_kernels(paths->folder(host));

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
    // get_device_count returns more than before: the host asks again, and shows the new devices to
    // the application, before this returns or when whoever is loading or unloading is done. An enum
    // ggml_host_status; UNSUPPORTED without the flag. Never blocks. [any-thread]
    int32_t (*devices_changed)(const struct ggml_host_table *host);
};

// Extension "ggml.plugin-path", revision 1: where a plugin's own file lies, for data that is
// installed beside it. Missing in a plugin that is linked into the host.
#define GGML_EXTENSION_PLUGIN_PATH "ggml.plugin-path"
#define GGML_EXTENSION_PLUGIN_PATH_REVISION 1
struct ggml_extension_plugin_path {
    uint32_t size;
    uint32_t revision;
    // Absolute path of the file that this plugin was loaded from, and of the folder it lies in, as
    // the host found them: links are not resolved, and the file need not be what is mapped, which
    // may be a copy in memory. Valid until shutdown returns. [any-thread]
    const char *(*file)(const struct ggml_host_table *host);
    const char *(*folder)(const struct ggml_host_table *host);
};

// Extension "ggml.trial", revision 1: offered where a plugin is started only to see what becomes of
// it, in a process that soon ends. A plugin that could disturb others by that (by taking part in a
// job, by holding what only one process can) leaves it out and shows the devices that it knows
// without, or none if its note has GGML_PLUGIN_FLAG_DYNAMIC_DEVICES.
#define GGML_EXTENSION_TRIAL "ggml.trial"
#define GGML_EXTENSION_TRIAL_REVISION 1
struct ggml_extension_trial {
    uint32_t size;
    uint32_t revision;
};

// --- offered by plugins --------------------------------------------------------------------------

// How a plugin offers one, by the function that it names in GGML_PLUGIN_ENTRY(), and how a program
// asks:
//
//     static const void *extension(const char *id, uint32_t min_revision) {
//         static const struct ggml_extension_device_info info = {sizeof(info), 1, device_info};
//         if (strcmp(id, GGML_EXTENSION_DEVICE_INFO) == 0 && min_revision <= info.revision)
//             return &info;
//         return NULL;
//     }
//
//     const struct ggml_extension_device_info *info =
//         ggml_backend_reg_get_extension(reg, GGML_EXTENSION_DEVICE_INFO, 1); // ggml-host.h
//
// `size` of a table is for those who read a later revision's entries; an entry of the revision that
// was asked for is always there.

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
    uint64_t reserved[8];         // 0
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

// Extension "ggml.device-info", revision 1, which plugins offer: what is worth knowing about a
// device beyond its properties, for people and for programs that place work.
//
// Keys are lower-case letters, digits and '-'. Those with a meaning here:
//   driver, driver-version, api-version  of what runs the device, as it says itself
//   unified-memory   "yes": its memory is the host's; "no"
//   numa-node        number of the node that it is attached to, as the system counts them
//   link             how it is attached: "pci", "usb", "network", or a word of the plugin's
//   peers            names of devices of this plugin that it copies to directly, with commas
// Others begin with the plugin's name and a '-'.
#define GGML_EXTENSION_DEVICE_INFO "ggml.device-info"
#define GGML_EXTENSION_DEVICE_INFO_REVISION 1
enum { GGML_DEVICE_INFO_MAX_PAIRS = 32, GGML_DEVICE_INFO_MAX_TEXT = 128 };
struct ggml_extension_device_info {
    uint32_t size;
    uint32_t revision;
    // Keys (name) and values of a device of this plugin, up to a key that is NULL: no key twice, at
    // most MAX_PAIRS, each text valid UTF-8 of less than MAX_TEXT bytes. NULL: nothing is known.
    // The list stays the same until shutdown. [any-thread]
    const struct ggml_backend_feature *(*info)(ggml_backend_dev_t device);
};

// A piece of a stream's time.
struct ggml_profile_slice {
    uint64_t tag;       // that the graph was computed under
    int32_t first_node; // index in the graph of the first node that was computed in it
    int32_t n_nodes;    // that were computed in it, wherever in the graph; several where fused
    uint64_t begin_ns;  // of the host's clock, see struct ggml_extension_profile
    uint64_t end_ns;    // not before begin_ns
};

// Extension "ggml.profile", revision 1, which plugins offer: when the nodes of graphs are computed.
//
// Each node that a graph computes is counted in one slice; those that compute nothing, and those
// without GGML_TENSOR_FLAG_COMPUTE, in none. A slice begins and ends while its graph is computed:
// after the call, and before synchronize returns that waits for it. Slices of a stream do not
// overlap and are read in the order of their time. A graph that fails has the slices of what ran.
// The clock is CLOCK_MONOTONIC in nanoseconds, on Windows the performance counter: a plugin with a
// clock of its own converts, and begin is UNSUPPORTED where it can't. Times then err by what the
// conversion does, but by no more than holds the rules above.
#define GGML_EXTENSION_PROFILE "ggml.profile"
#define GGML_EXTENSION_PROFILE_REVISION 1
struct ggml_extension_profile {
    uint32_t size;
    uint32_t revision;
    // From now on records what graphs the stream is given, under tag 0, and keeps up to capacity
    // (> 0) slices that aren't read. An enum ggml_host_status as all entries here: BUSY if it
    // records already, UNSUPPORTED on this device, OUT_OF_MEMORY. May wait for queued work.
    // [stream]
    int32_t (*begin)(ggml_backend_t stream, uint64_t capacity);
    // Tag of the graphs that the stream is given from now on. INVALID_ARGUMENT if it doesn't
    // record. Never blocks. [stream]
    int32_t (*tag)(ggml_backend_t stream, uint64_t tag);
    // Moves up to max of the oldest slices to `slices`: after synchronize none is missing, before
    // that perhaps those of work that is queued. *out_count: how many these are; *out_lost: slices
    // that found no room since the last call. A slice that is lost displaces none that is kept.
    // INVALID_ARGUMENT if it doesn't record: both are 0 then. Never blocks. [stream]
    int32_t (*read)(ggml_backend_t stream, struct ggml_profile_slice *slices, uint64_t max,
                    uint64_t *out_count, uint64_t *out_lost);
    // Stops, and forgets what was not read. INVALID_ARGUMENT if it doesn't record. A stream that is
    // freed does the same. May wait for queued work. [stream]
    int32_t (*end)(ggml_backend_t stream);
};

// Memory of a device that others use in place: what names it.
enum ggml_external_type {
    GGML_EXTERNAL_OPAQUE_FD = 1, // a POSIX file descriptor of the driver's
};
#define GGML_EXTERNAL_UUID_BYTES 16
// It may grow at the end.
struct ggml_external_memory {
    uint32_t size;             // set by whoever provides the memory
    uint32_t type;             // enum ggml_external_type
    int32_t fd;                // OPAQUE_FD; -1: none
    uint32_t memory_type;      // the exporter's own
    uint64_t bytes;            // of the buffer
    uint64_t allocation_bytes; // of the memory behind the handle, at least `bytes`
    uint8_t device_uuid[GGML_EXTERNAL_UUID_BYTES]; // of the physical device
    uint8_t driver_uuid[GGML_EXTERNAL_UUID_BYTES]; // of the driver and its version
};

// Extension "ggml.external-memory", revision 1, which plugins offer: buffers that several instances
// of a plugin use, in one process or in several, on one physical device.
//
// Entries return an enum ggml_host_status, after set_error unless it is OK or UNSUPPORTED. Work on
// either side isn't ordered with that of the other: whoever reads waits on the host until the
// writer's streams were synchronized. Each side frees its buffer; the memory goes with the last.
#define GGML_EXTENSION_EXTERNAL_MEMORY "ggml.external-memory"
#define GGML_EXTENSION_EXTERNAL_MEMORY_REVISION 1
struct ggml_extension_external_memory {
    uint32_t size;
    uint32_t revision;
    // A buffer of the device's default type, `bytes` > 0 long, that can be exported. [any-thread]
    int32_t (*buffer_new)(ggml_backend_dev_t device, size_t bytes,
                          ggml_backend_buffer_t *out_buffer);
    // Sets what names the memory of a buffer of buffer_new, all zero but `size` so far; the file
    // descriptor is new, close-on-exec and the caller's. UNSUPPORTED for other buffers and types.
    // [any-thread]
    int32_t (*buffer_export)(ggml_backend_buffer_t buffer, uint32_t type,
                             struct ggml_external_memory *out_memory);
    // A buffer in the memory that is named; the file descriptor stays the caller's, and may be
    // closed afterwards. INVALID_ARGUMENT if it is none, or none of such memory, for sizes that
    // don't fit and for other UUIDs than the device's. The sender is trusted to leave the memory as
    // it is. [any-thread]
    int32_t (*buffer_import)(ggml_backend_dev_t device, const struct ggml_external_memory *memory,
                             ggml_backend_buffer_t *out_buffer);
};

#ifdef __cplusplus
}
#endif

#endif
