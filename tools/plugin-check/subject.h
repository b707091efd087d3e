// SPDX-License-Identifier: MIT
// The plugin as the checks meet it: mapped by hand and attached to a host table of their own, so
// that nothing between hides what it does.
#ifndef PLUGIN_CHECK_SUBJECT_H
#define PLUGIN_CHECK_SUBJECT_H

#include <sched.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "check.h"
#include "ggml-backend-impl.h"
#include "ggml-host.h"
#include "json_text.h"

// What plugins asked of the hosts of this process.
struct host_counters {
    atomic_long n_allocs;
    atomic_long fail_at; // the number of the allocation that fails, counted from 1; 0: none
    atomic_long live_blocks;
    atomic_long n_errors; // calls of set_error
    atomic_int last_status;
    char last_error[256];                   // of the last call; one thread at a time
    bool no_extensions;                     // get_extension returns NULL
    bool small;                             // extensions lie before memory that can't be read
    bool binds;                             // threads are really bound
    atomic_int n_unsized;                   // structs without a size that were given to be filled
    const struct ggml_host_table *hosts[2]; // whose errors are counted apart
    atomic_long n_told[2];
    void (*on_log)(void); // called by log, unless NULL
};
extern struct host_counters host_counters;

// The host's words for what an entry of a plugin returned, also where it is no status.
static inline const char *status_text(int32_t status) {
    return ggml_host_status_text((enum ggml_host_status)status);
}

struct subject {
    void *library;
    ggml_plugin_init_t init;
    struct ggml_host_table *host;
    const struct ggml_plugin_table *table; // NULL unless initialised
};

// Maps the plugin, or tells why not by NULL and dlerror(). [init]
bool subject_map(struct subject *subject, const char *path);
// A host table of `size` bytes and that minor, with nothing readable behind it; never freed. Slots
// that this contract has no name for are set in tables of a later minor. NULL without memory.
struct ggml_host_table *subject_new_host(size_t size, uint16_t minor);
// The CPUs that a thread was bound to through the host table; false: it was not. [any-thread]
bool subject_bound_to(pid_t thread, cpu_set_t *out_set);
// Calls the entry with subject->host, made if there is none. [init]
int32_t subject_init(struct subject *subject);
void subject_shutdown(struct subject *subject);
void subject_unmap(struct subject *subject);

// Whether that is how the entry ends without a device: as NO_DEVICE, or as the helper library's
// entry does, failing with the reason that the plugin set.
bool subject_found_no_device(int32_t status);
// Maps and initialises the plugin or ends the check: failed, or skipped if the plugin has no device
// on this machine.
void subject_open(const struct check_run *run, struct subject *subject);

enum { MAX_DEVICES = 64, MAX_BUFTS = 64 };

// The devices that are to be checked.
struct devices {
    struct subject subject;
    ggml_backend_reg_t reg;
    ggml_backend_dev_t items[MAX_DEVICES];
    int n;
};

// Opens the plugin and collects its devices, as many as the user selected. Ends the check unless
// there is one.
void devices_open(const struct check_run *run, struct devices *out_devices);

// The buffer types of the devices, each once: default ones, and those for pinned host memory.
struct bufts {
    struct devices devices;
    ggml_backend_buffer_type_t items[MAX_BUFTS];
    ggml_backend_dev_t owners[MAX_BUFTS];
    int n;
};
void bufts_open(const struct check_run *run, struct bufts *out_bufts);
// Adds those that ggml_backend_dev_get_extra_bufts returns.
void bufts_add_extra(struct bufts *bufts);

// A name to print, whatever the plugin returns.
const char *label(ggml_backend_dev_t device);

// What the device's own entries make; NULL if they fail or are not there. An answer that
// contradicts what was made ends the check.
ggml_backend_t make_stream(ggml_backend_dev_t device, const char *params);
ggml_backend_event_t make_event(ggml_backend_dev_t device);
ggml_backend_buffer_t wrap_memory(ggml_backend_dev_t device, void *memory, size_t size,
                                  size_t max_tensor_size);

// Pseudo-random numbers that follow from the seed.
struct numbers {
    uint64_t state;
};
uint64_t numbers_next(struct numbers *numbers);
void numbers_fill(struct numbers *numbers, void *memory, size_t size);
// Uniform in [-1, 1).
float numbers_float(struct numbers *numbers);

#endif
