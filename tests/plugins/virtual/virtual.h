// SPDX-License-Identifier: MIT
// Devices to test with; docs/plugins/virtual-device.md explains them. The functions are reached by
// name through ggml_backend_reg_get_proc_address().
#ifndef VIRTUAL_H
#define VIRTUAL_H

#include "ggml-backend.h"

// Most devices that GGML_VIRTUAL can ask for.
#define VIRTUAL_MAX_DEVICES 256

struct virtual_config {
#define VIRTUAL_OPTION(name, value, text) int64_t name;
#include "option_list.inl"
    uint64_t refused_ops[4];   // bit of an enum ggml_op: supports_op returns false
    uint64_t refused_types[4]; // bit of an enum ggml_type, of the result and of operands
    // (opt) A further condition of supports_op. [any-thread]
    bool (*supports_op)(void *user, int device, const struct ggml_tensor *node);
    // (opt) Nanoseconds that a node takes at least. [any-thread]
    int64_t (*node_ns)(void *user, int device, const struct ggml_tensor *node);
    void *user;
};

// How the extension "ggml.profile", which the devices don't have otherwise, breaks its contract.
enum hostile_profile {
    HOSTILE_PROFILE_ENDLESS = 1, // there is always more to read
    HOSTILE_PROFILE_LIES,        // of HOSTILE_SLICES only the first can be, and more are counted
    HOSTILE_PROFILE_NO_STATUS,   // it begins with a status that is none
    HOSTILE_PROFILE_NO_BEGIN,    // and without the other entries, in turn
    HOSTILE_PROFILE_NO_TAG,
    HOSTILE_PROFILE_NO_READ,
    HOSTILE_PROFILE_NO_END,
    HOSTILE_PROFILE_SHORT, // a table that ends before its entries
    HOSTILE_PROFILE_COUNT
};
enum { HOSTILE_SLICES = 8 };

// The same for "ggml.comm".
enum hostile_comm {
    HOSTILE_COMM_NO_STATUS = 1, // sums with a status that is none
    HOSTILE_COMM_NO_NEW,        // without this entry
    HOSTILE_COMM_NO_FREE,
    HOSTILE_COMM_NO_SUM,
    HOSTILE_COMM_SHORT,     // a table that ends before its entries
    HOSTILE_COMM_NO_GROUP,  // success without a group
    HOSTILE_COMM_BAD_GROUP, // a status that is none, and a group at an address that faults
    HOSTILE_COMM_COUNT
};

enum virtual_call {
#define VIRTUAL_CALL(name, text) VIRTUAL_CALL_##name,
#include "call_list.inl"
    VIRTUAL_CALL_COUNT
};

// Times are nanoseconds of one monotonic clock. end_ns is 0 until the work is done.
struct virtual_record {
    enum virtual_call call;
    int32_t device;
    int32_t peer;    // device that a COPY reads from, -1 for none
    uint32_t stream; // number of the stream, from 1; 0: a blocking call
    int32_t op;      // of a NODE
    int32_t n_nodes; // of a GRAPH: those that compute
    int32_t status;  // enum ggml_status
    uint64_t bytes;
    uint64_t called_ns;
    uint64_t begin_ns;
    uint64_t end_ns;
    char text[192]; // name of the tensor, or what a VIOLATION is
};

// "virtual_configure": sets a device up (index -1: all), revives a lost one and starts the counts
// of failures anew. Options about objects (async, events, alignment) apply to those made later.
// False for an index or value out of range. [any-thread]
typedef bool (*virtual_configure_t)(int device, const struct virtual_config *config);
// "virtual_default_config" [any-thread]
typedef void (*virtual_default_config_t)(struct virtual_config *out_config);
// "virtual_log_clear": forgets all records and the count of violations. [any-thread]
typedef void (*virtual_log_clear_t)(void);
// "virtual_log_count" and "virtual_log_get", by order of the calls; false past the end.
// [any-thread]
typedef size_t (*virtual_log_count_t)(void);
typedef bool (*virtual_log_get_t)(size_t i, struct virtual_record *out_record);
// "virtual_violations": how many since the log was cleared. [any-thread]
typedef size_t (*virtual_violations_t)(void);
// "virtual_storage": where a tensor's bytes really are, to look at them behind the host's back;
// NULL if it is not on a virtual device. [any-thread]
typedef void *(*virtual_storage_t)(const struct ggml_tensor *tensor);

#endif
