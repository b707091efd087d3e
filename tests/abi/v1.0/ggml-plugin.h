// SPDX-License-Identifier: MIT
// ggml-plugin.h: the binary contract between the host and a plugin.
//
// A plugin is a shared object named [lib]ggml-NAME[-VARIANT].{so,dll,dylib} that carries a note
// (plain data that the host reads from the file before it maps it) and exports one function,
// ggml_backend_init. Nothing else is exported, and nothing of the host is linked: what a plugin
// needs comes in the host table or from the static helper library (SDK). The numbered rules are in
// docs/plugin-contract.md. This header includes the contract's parts and pins their layout:
//
//   ggml-plugin-note.h        versions, statuses, CPU features, the note
//   ggml-plugin-host.h        what the host offers: log, errors, memory, machine
//   ggml-plugin-table.h       what a plugin offers: entry point, plugin table, layout number
//   ggml-backend-impl.h       devices, memory, streams and their tables
//   ggml-graph.h              graphs as streams see them
//   ggml-plugin-extensions.h  what either side may offer beyond: ggml-ext-*.h, one extension each
//   ggml-plugin-sdk.h         macros and helper library; no part of the contract
//   layout_pins.inl           sizes and offsets of all of it, checked where this is compiled
//
// How it grows: within a major version every struct here keeps its offsets. A later minor first
// names reserved slots, which are zero until then, and appends to a sized table when those run out.
// So an entry of a table is called, and a pointer in it read, only if `size` covers it and it isn't
// NULL.
//
// Thread tags ([any-thread], [stream], [init]) are defined in ggml.h.
#ifndef GGML_PLUGIN_H
#define GGML_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#include "ggml-backend-impl.h"
#include "ggml-plugin-extensions.h"
#include "ggml-plugin-host.h"
#include "ggml-plugin-note.h"
#include "ggml-plugin-sdk.h"
#include "ggml-plugin-table.h"

#if UINTPTR_MAX > 0xFFFFFFFF && !defined(GGML_PORT)
#ifdef __cplusplus

// Layouts are those of 64-bit machines, and of structs without what ggml-port adds.
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

#endif
