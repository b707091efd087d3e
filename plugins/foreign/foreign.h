// SPDX-License-Identifier: MIT
// The objects that this plugin offers in place of those of ggml's binaries.
//
// A tensor that reaches a binary is a copy (shadow) whose pointers lead to that side's objects:
// `buffer` to the binary's own, `src` and `view_src` to other shadows. `extra` needs no
// translation: of tensors in a binary's buffers it is what the binary put there.
#ifndef FOREIGN_FOREIGN_H
#define FOREIGN_FOREIGN_H

#include <stdatomic.h>

#include "binary.h"
#include "ggml-backend-impl.h"
#include "ggml-impl.h"
#include "ggml-plugin.h"

enum { FOREIGN_NAME_SIZE = 128, FOREIGN_TEXT_SIZE = 512, FOREIGN_MAX_EXTRA = 32 };

struct foreign_buft {
    struct ggml_backend_buffer_type buft;
    struct foreign_buft *next;
    struct foreign_binary *binary;
    void *theirs;
    void *empty;   // their buffer of no bytes
    bool repacked; // only whole tensors can be set
};

struct foreign_device {
    struct ggml_backend_device device;
    struct foreign_device *next;
    struct foreign_binary *binary;
    void *theirs;
    bool wraps_host;            // memory of the application
    bool overclaims, is_vulkan; // their claims are not taken as they are (claim_list.inl)
    char name[FOREIGN_NAME_SIZE];
    char description[FOREIGN_TEXT_SIZE];
    ggml_backend_buffer_type_t extra[FOREIGN_MAX_EXTRA + 1]; // ends with NULL
};

// What a buffer's context is.
struct foreign_buffer {
    struct foreign_binary *binary;
    void *theirs;
    enum ggml_backend_buffer_usage usage; // that the binary was told last
};

struct foreign_event {
    struct ggml_backend_event event;
    struct foreign_device *device;
};

// The entry of an object of the binary's side, as a function of this type.
#define FOREIGN_ENTRY(binary, object, member, type)                                                \
    ((type)foreign_entry(object, (binary)->layout->member))

// Calls of entries that any thread may call stand between these. [any-thread]
void foreign_lock(struct foreign_binary *binary);
void foreign_unlock(struct foreign_binary *binary);

// --- buffer types and buffers

// The object for a buffer type of the binary: the host's own for its host memory, otherwise one
// that stays for good. NULL for NULL, or when memory runs out. [any-thread]
ggml_backend_buffer_type_t foreign_buft_of(struct foreign_binary *binary, void *theirs);
// The other way; host memory of any plugin is theirs as well. NULL: the binary can't know it.
// [any-thread]
void *foreign_buft_theirs(const struct foreign_binary *binary, ggml_backend_buffer_type_t buft);
// This plugin's own object, or NULL. [any-thread]
struct foreign_buft *foreign_buft_own(ggml_backend_buffer_type_t buft);

// Takes over a buffer of the binary; NULL, with it freed, on failure. [any-thread]
ggml_backend_buffer_t foreign_buffer_adopt(struct foreign_binary *binary, void *theirs);
// This plugin's own, or NULL. [any-thread]
struct foreign_buffer *foreign_buffer_own(ggml_backend_buffer_t buffer);
// What the binary gets in its place, with the same usage; NULL where it can't know it. [stream]
void *foreign_buffer_theirs(const struct foreign_binary *binary, ggml_backend_buffer_t buffer);
// Grows whenever a buffer of this plugin is freed: shadows that were kept may be stale.
// [any-thread]
unsigned foreign_buffers_freed(void);

// --- shadows

// One tensor and the owner of its memory: for entries that take a tensor.
struct foreign_shadow {
    struct ggml_tensor tensor;
    struct ggml_tensor owner;
};
// Without sources. Returns &out_shadow->tensor. [any-thread]
struct ggml_tensor *foreign_shadow(const struct foreign_binary *binary,
                                   const struct ggml_tensor *tensor,
                                   struct foreign_shadow *out_shadow);

// A node with its sources.
struct foreign_node {
    struct foreign_shadow node;
    struct foreign_shadow src[GGML_MAX_SRC];
};
struct ggml_tensor *foreign_shadow_node(const struct foreign_binary *binary,
                                        const struct ggml_tensor *node,
                                        struct foreign_node *out_node);

// Copies everything but sources and owner, which are NULL then. [any-thread]
void foreign_shadow_copy(const struct foreign_binary *binary, const struct ggml_tensor *tensor,
                         struct ggml_tensor *out_shadow);

// --- graphs

struct foreign_graph;
// The shadow of a graph; NULL on failure. [stream]
struct foreign_graph *foreign_graph_new(const struct foreign_binary *binary,
                                        const struct ggml_graph *original);
// Whether it still is the shadow of this graph. [stream]
bool foreign_graph_is_of(const struct foreign_graph *graph, const struct ggml_graph *original);
// What the binary computes. [stream]
struct ggml_cgraph *foreign_graph_theirs(struct foreign_graph *graph);
// NULL does nothing. [stream]
void foreign_graph_free(struct foreign_graph *graph);

// --- streams, devices, backends

// A stream of the device; NULL on failure. [any-thread]
ggml_backend_t foreign_stream_new(struct foreign_device *device, const char *params);
// What is behind it, or NULL for a stream that is not of this plugin. [any-thread]
void *foreign_stream_theirs(ggml_backend_t backend, struct foreign_binary **out_binary);

// Fills *out_device, which is all zero; `reg` is where it will be registered. [init]
void foreign_device_init(struct foreign_device *out_device, struct foreign_binary *binary,
                         void *theirs, ggml_backend_reg_t reg);
// Whether the device computes the node of a known operation, if it says so. [any-thread]
bool foreign_claim_holds(const struct foreign_device *device, const struct ggml_tensor *op);

// The device of the binary's, or NULL while it is not offered. [any-thread]
ggml_backend_dev_t foreign_device_of(const void *theirs);

// The plugin's own registration: the devices of all files that the environment names. [init]
ggml_backend_reg_t foreign_reg_all(void);

#endif
