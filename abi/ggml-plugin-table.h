// SPDX-License-Identifier: MIT
// ggml-plugin-table.h: what a plugin offers to the host: the entry point and the plugin table, and
// the layout number by which both sides know that their structs are the same.
//
// A part of ggml-plugin.h, where it is written how these structs grow. The tables of devices,
// streams, events and buffers are in ggml-backend-impl.h. Thread tags are defined in ggml.h.
//
// A plugin's life, as a host sees it:
//
//   file       its note is read; nothing of it runs
//   mapped     its constructors have run, its tables are not known yet
//   entered    ggml_backend_init(host, &table) runs once; returning OK makes it live
//   live       every other entry may be called, from any thread as tagged
//   shut down  shutdown(table, host) has returned; the host calls nothing more, and unmaps it
//              unless the note says NO_UNLOAD
//
// Several hosts in one process each enter and shut down by themselves; the plugin keeps apart what
// is theirs. [init] entries are called by one thread at a time per host.
#ifndef GGML_PLUGIN_TABLE_H
#define GGML_PLUGIN_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "ggml-backend-impl.h"
#include "ggml-impl.h"
#include "ggml-plugin-host.h"
#include "ggml-plugin-note.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- plugin table --------------------------------------------------------------------------------

// What the plugin offers; static, valid until shutdown returned. `self` is the table's own address,
// so that one image can hold several plugins.
//
// State attached: ggml_backend_init() has returned GGML_HOST_OK to that host, and its shutdown was
// not called. Entries of objects are called so, and no other way: their tags don't repeat it.
struct ggml_plugin_table {
    uint32_t size;           // bytes of the table that the plugin knows
    uint16_t contract_major; // as in its note
    uint16_t contract_minor; // as in its note
    ggml_backend_reg_t reg;  // the backend, not NULL; static
    // (opt: 1) 0: not usable on this machine after all. [init & attached]
    int (*score)(const struct ggml_plugin_table *self);
    // (opt) Last call: ends threads, frees everything, forgets this host. Never while another call
    // into the plugin is under way on this host's behalf. A process may end without it.
    // [init & attached]
    void (*shutdown)(const struct ggml_plugin_table *self, const struct ggml_host_table *host);
    // (opt: NULL) Extension table by string id, at least of this revision, or NULL.
    // [any-thread & attached]
    const void *(*get_extension)(const struct ggml_plugin_table *self, const char *id,
                                 uint32_t min_revision);
    // (opt: NULL) The note as it is mapped: the same bytes as in the file.
    const struct ggml_plugin_note *note;
    void *reserved[8]; // NULL
};

// The entry point. Called once per host before anything else, from one thread; it may be called
// again after shutdown, or by a second host in the same process. On success *out_plugin is set and
// GGML_HOST_OK returned; otherwise a status after set_error, with everything undone.
// [init & !attached]
typedef int32_t (*ggml_plugin_init_t)(const struct ggml_host_table *host,
                                      const struct ggml_plugin_table **out_plugin);

// Its name, the only one that a plugin exports.
#define GGML_PLUGIN_ENTRY_SYMBOL "ggml_backend_init"

// --- layout --------------------------------------------------------------------------------------

// Why a number: two sides that were compiled from headers of different layouts corrupt each other's
// memory, at best. The number is in the note, so the host finds out before the plugin's code runs
// (LAYOUT_MISMATCH).

// A step of FNV-1a, 64 bits, over a number as one unit.
#define GGML_LAYOUT_MIX(hash, value) (((hash) ^ (uint64_t)(value)) * UINT64_C(1099511628211))

// Of struct ggml_tensor: its size and three offsets, which move if any member before them does.
#define GGML_LAYOUT_TENSOR(hash)                                                                   \
    GGML_LAYOUT_MIX(                                                                               \
        GGML_LAYOUT_MIX(GGML_LAYOUT_MIX(GGML_LAYOUT_MIX(hash, sizeof(struct ggml_tensor)),         \
                                        offsetof(struct ggml_tensor, op_params)),                  \
                        offsetof(struct ggml_tensor, data)),                                       \
        offsetof(struct ggml_tensor, extra))

// Size of a struct that ends in reserved slots, without what ggml-port may put behind them.
#define GGML_LAYOUT_SIZE(type) (offsetof(type, reserved) + sizeof(((type *)0)->reserved))

// Of the objects that both sides see.
#define GGML_LAYOUT_INTERFACE(hash)                                                                \
    GGML_LAYOUT_MIX(                                                                               \
        GGML_LAYOUT_MIX(                                                                           \
            GGML_LAYOUT_MIX(                                                                       \
                GGML_LAYOUT_MIX(                                                                   \
                    GGML_LAYOUT_MIX(hash, GGML_LAYOUT_SIZE(struct ggml_backend_buffer_type)),      \
                    GGML_LAYOUT_SIZE(struct ggml_backend_buffer)),                                 \
                GGML_LAYOUT_SIZE(struct ggml_backend)),                                            \
            GGML_LAYOUT_SIZE(struct ggml_backend_device)),                                         \
        GGML_LAYOUT_SIZE(struct ggml_backend_reg))

// Of tables, properties and graphs.
#define GGML_LAYOUT_TABLES(hash)                                                                   \
    GGML_LAYOUT_MIX(                                                                               \
        GGML_LAYOUT_MIX(                                                                           \
            GGML_LAYOUT_MIX(                                                                       \
                GGML_LAYOUT_MIX(GGML_LAYOUT_MIX(hash, sizeof(struct ggml_stream_table)),           \
                                sizeof(struct ggml_host_table)),                                   \
                sizeof(struct ggml_plugin_table)),                                                 \
            sizeof(struct ggml_backend_dev_props)),                                                \
        GGML_LAYOUT_SIZE(struct ggml_graph))

// Digest of every size that both sides must agree on; docs/plugin-contract.md states its value on
// 64-bit machines.
#define GGML_PLUGIN_LAYOUT_HASH                                                                    \
    GGML_LAYOUT_TABLES(GGML_LAYOUT_INTERFACE(GGML_LAYOUT_TENSOR(UINT64_C(14695981039346656037))))

#ifdef __cplusplus
}
#endif

#endif
