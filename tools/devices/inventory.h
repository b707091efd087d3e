// SPDX-License-Identifier: MIT
// Everything that ggml-devices shows, gathered once.
#ifndef DEVICES_INVENTORY_H
#define DEVICES_INVENTORY_H

#include "ggml-host.h"
#include "gpus.h"

// How to find out.
struct inventory_options {
    const char *plugin_path; // only there; NULL: along the search path
    bool in_process;         // load the plugins instead of probing them
    bool no_cache;
    bool rescan;
    bool no_sandbox;
    bool load;         // whatever is found, load what works: devices have handles then
    double timeout;    // seconds per plugin; 0: the default
    unsigned jobs;     // 0: the default
    const char *sysfs; // folder with a copy of /sys, in which GPUs are looked for; NULL: /sys
};

struct device_entry {
    ggml_backend_dev_t handle; // NULL: its plugin was probed and is not loaded
    struct ggml_backend_dev_props props;
    enum ggml_memory_quality memory;
    int64_t memory_age; // seconds since free memory was asked for; 0: just now
    size_t index;       // among the devices of its plugin
    int64_t process;    // that computes it, as GGML_ISOLATE asked for; 0: this one would
    size_t node;        // number, from 1, of the node that lends it; 0: it is in this machine
    const char *plugin_path;
    const char *plugin_name;
    const char *alias_of;                       // name of the device; NULL
    const struct ggml_backend_feature *details; // up to a key that is NULL; NULL
};

// What lends devices of a host.
struct node_entry {
    const char *host, *name;
    ggml_backend_dev_t handle; // of one of them; NULL: none is loaded
};

// As a plugin declares it; 0 for the program, or the number of a node.
struct link_entry {
    size_t from, to;
    double seconds, bytes_per_second;
};

struct plugin_entry {
    const struct ggml_plugin_record *record;
    bool usable;
    const char *source; // who says so: "helper", "cache", "process", "file"
    int64_t probed_at;  // seconds since 1970; 0: unknown
};

// A GPU that no device stands for.
struct unserved_gpu {
    struct gpu gpu;
    const char *plugin;  // that would serve it; NULL
    const char *perhaps; // name of a device whose plugin tells no PCI address; NULL
    char advice[320];
};

// A shared library in a directory of plugins whose name is none of a plugin.
struct ignored_file {
    size_t directory; // index for inventory_directory()
    char *name;
};

struct inventory {
    ggml_plugin_report_t report; // of the plugins that were loaded, or NULL
    ggml_probe_report_t probe;   // of the plugins that were probed, or NULL
    const char *not_confined;    // who asked for helpers that may do what this program may; NULL
    struct ggml_host_topology topology;
    struct device_entry *devices;
    size_t n_devices;
    struct plugin_entry *plugins;
    size_t n_plugins;
    struct node_entry *nodes;
    size_t n_nodes;
    struct link_entry *links;
    size_t n_links;
    struct unserved_gpu *gpus;
    size_t n_gpus;
    struct ignored_file *ignored;
    size_t n_ignored;
};

// Finds the plugins and gathers. False after a message on stderr when that is impossible.
// inventory_free() ends it.
bool inventory_gather(struct inventory *out_inventory, const struct inventory_options *options);
void inventory_free(struct inventory *inventory);

// Sets the nodes of the devices, and the links; false when memory gives out. For
// inventory_gather().
bool inventory_take_hosts(struct inventory *inventory);

// Directories that were searched; NULL past the end.
const struct ggml_plugin_directory *inventory_directory(const struct inventory *inventory,
                                                        size_t i);
// Why plugins ran in this process, why nothing is remembered, or what helpers could do that they
// should not; "" if there is nothing to say.
const char *inventory_not_isolated(const struct inventory *inventory);
const char *inventory_not_cached(const struct inventory *inventory);
const char *inventory_not_sandboxed(const struct inventory *inventory);

// Writes the entries of GGML_ISOLATE that are neither a device nor a plugin here, separated by
// commas, as far as there is room; "" if there are none, or if not all devices are listed: because
// of GGML_DEVICES, or because one could not be isolated, as its plugin's record says.
void inventory_not_found(const struct inventory *inventory, char *out_text, size_t size);

const char *device_type_name(enum ggml_backend_dev_type type);
const char *machine_name(enum ggml_machine machine);
const char *memory_quality_name(enum ggml_memory_quality quality);
const char *thread_bound_name(enum ggml_thread_bound bound);
// Identifier of a status or stage for programs: "WRONG_CONTRACT", "negotiate".
const char *status_identifier(enum ggml_host_status status);

#endif
