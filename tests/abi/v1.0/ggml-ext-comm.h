// SPDX-License-Identifier: MIT
// ggml-ext-comm.h: extension "ggml.comm", which plugins offer: streams that exchange tensors as the
// ranks of a group, on the devices of one plugin, or, by a plugin that is a transport, in several
// processes and machines.
//
// A part of ggml-plugin.h; how extensions are offered and found is in ggml-plugin-extensions.h.
// Here [stream] means one thread at a time for a group and all of its streams.
#ifndef GGML_EXT_COMM_H
#define GGML_EXT_COMM_H

#include <stddef.h>
#include <stdint.h>

#include "ggml-backend-impl.h"

#ifdef __cplusplus
extern "C" {
#endif

// How an all-reduce combines elements.
enum ggml_comm_reduction {
    GGML_COMM_SUM = 0, // added up
    GGML_COMM_MAX = 1, // the largest
};

// A group; the plugin's own.
typedef struct ggml_comm_group *ggml_comm_group_t;

enum { GGML_COMM_ID_BYTES = 128 };

// Which ranks of a group the caller holds. It may grow at the end.
struct ggml_comm_ranks {
    uint32_t size;      // set by the caller
    uint32_t n_ranks;   // of the whole group, above 0
    uint32_t first;     // rank of streams[0]; the others follow it
    uint32_t n_streams; // ranks of the caller, above 0
    // Each of a device of the plugin, none twice. They outlive the group.
    const ggml_backend_t *streams;
    // What id_new returned, GGML_COMM_ID_BYTES of it and the same for all callers, where others
    // hold the remaining ranks; NULL where the caller holds all.
    const uint8_t *id;
};

// Extension "ggml.comm", revision 1.
//
// Statuses. Entries return an enum ggml_host_status, after set_error unless it is OK or
// UNSUPPORTED. With OK the work of every rank of the caller is queued on that rank's stream, after
// what the stream has queued and before what it queues later; nothing is queued after any other
// status:
//   UNSUPPORTED       the plugin can't do that, with this type or memory; the group stays usable
//   INVALID_ARGUMENT  what the call breaks is said below; the group stays usable
//   OUT_OF_MEMORY     the group stays usable
//   any other         the group has failed, as after a rank whose queued work fails
//
// State failed (of a group). When a rank fails while queued work runs (its device is lost, its
// process ends), the group fails for all ranks: `synchronize` of each stream with such work returns
// a status, DEVICE_LOST where the device or the process is gone; what the tensors hold is
// undefined; work of the streams that is not the group's goes on. No stream waits for ever: a
// transport gives up on ranks that don't come. Every later call returns a status that is not OK,
// and the group can only be freed.
//
// Tensors. Each entry takes one per rank of the caller, in order of the ranks, in an array that may
// go when the call returns; so may the tensors, but not their memory before the work is done. A
// tensor is contiguous and in memory of its rank's device. Where the ranks of one caller differ in
// type or number of elements, and for a rank that isn't in the group, entries return
// INVALID_ARGUMENT; where ranks of different callers differ, the group fails.
//
// Order. All callers call the same entries for the whole group (all but send and receive) in the
// same order. No entry waits for another rank.
#define GGML_EXTENSION_COMM "ggml.comm"
#define GGML_EXTENSION_COMM_REVISION 1
struct ggml_extension_comm {
    uint32_t size;
    uint32_t revision;
    // (opt: a group is one caller's) Sets the GGML_COMM_ID_BYTES at out_id to what names a new
    // group for all its callers; one calls it and sends it to the others. [any-thread]
    int32_t (*id_new)(ggml_backend_dev_t device, uint8_t *out_id);
    // A new group. UNSUPPORTED: these streams can't be one. May block until all callers are there.
    // [stream]
    int32_t (*group_new)(const struct ggml_comm_ranks *ranks, ggml_comm_group_t *out_group);
    // Queued work goes on; what was sent and not received is dropped. NULL does nothing. [stream]
    void (*group_free)(ggml_comm_group_t group);
    // Combines the parts element by element; every rank gets the same bits in place of its part.
    // counts[i] 0: what part i holds is not counted; NULL: all count. Where no rank of any caller
    // counts, the result is 0; MAX may pass over NaN. F32 is supported, of F16, BF16 and others
    // what the plugin likes: sums are made with no less precision than the type's, in an order that
    // is the plugin's. [stream & !failed]
    int32_t (*all_reduce)(ggml_comm_group_t group, enum ggml_comm_reduction reduction,
                          struct ggml_tensor *const *parts, const uint8_t *counts);
    // Copies the tensor of rank `root` to those of all others; any type. [stream & !failed]
    int32_t (*broadcast)(ggml_comm_group_t group, uint32_t root,
                         struct ggml_tensor *const *tensors);
    // Copies the parts of all ranks, in order of the ranks, one behind the other into each result,
    // which has n_ranks times the bytes of a part, is of its type and doesn't overlap it.
    // [stream & !failed]
    int32_t (*all_gather)(ggml_comm_group_t group, const struct ggml_tensor *const *parts,
                          struct ggml_tensor *const *results);
    // Send `tensor` of rank `from`, which is the caller's, to rank `to`, another; and receive it
    // there. What one rank sends to another arrives in the order of the calls, each in a tensor of
    // the same type and number of elements. A rank of the caller's own is sent to before it
    // receives: a receive without a send is INVALID_ARGUMENT. Later work of the sending stream may
    // wait for the receive to be called. [stream & !failed]
    int32_t (*send)(ggml_comm_group_t group, uint32_t from, uint32_t to,
                    const struct ggml_tensor *tensor);
    int32_t (*receive)(ggml_comm_group_t group, uint32_t to, uint32_t from,
                       struct ggml_tensor *tensor);
};

#ifdef __cplusplus
}
#endif

#endif
