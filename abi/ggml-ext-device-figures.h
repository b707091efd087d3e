// SPDX-License-Identifier: MIT
// ggml-ext-device-figures.h: extension "ggml.device-figures", which plugins offer: how fast a
// device is.
//
// A part of ggml-plugin.h; how extensions are offered and found is in ggml-plugin-extensions.h.
#ifndef GGML_EXT_DEVICE_FIGURES_H
#define GGML_EXT_DEVICE_FIGURES_H

#include <stdint.h>

#include "ggml-backend-impl.h"

#ifdef __cplusplus
extern "C" {
#endif

// How fast a device is: declared by its plugin, or measured. flops_of may grow at the end.
#define GGML_DEVICE_FIGURES_TYPES 64
#define GGML_DEVICE_FIGURES_DIRECT_COPY 1u // see `flags`
struct ggml_device_figures {
    uint32_t size;  // set by the caller
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

// How fast copies between two devices of one plugin are, or between one and the host's memory.
struct ggml_device_link {
    uint32_t size; // set by the caller
    uint32_t reserved;
    double seconds;          // per copy
    double bytes_per_second; // while it lasts
};

// Extension "ggml.device-figures", revision 2; revision 1 ends before `link`.
#define GGML_EXTENSION_DEVICE_FIGURES "ggml.device-figures"
#define GGML_EXTENSION_DEVICE_FIGURES_REVISION 2
struct ggml_extension_device_figures {
    uint32_t size;
    uint32_t revision;
    // Sets what is known about a device of this plugin in *out_figures, all zero but `size` so far:
    // no more than `size` bytes. An enum ggml_host_status; UNSUPPORTED if nothing is. [any-thread]
    int32_t (*figures)(ggml_backend_dev_t device, struct ggml_device_figures *out_figures);
    // (opt) Sets what is known about direct copies from one device of this plugin to another one of
    // it, in *out_link, as above; one of both may be NULL for the host's memory. UNSUPPORTED if
    // nothing is: what `figures` says of both counts then. [any-thread]
    int32_t (*link)(ggml_backend_dev_t from, ggml_backend_dev_t to,
                    struct ggml_device_link *out_link);
};

#ifdef __cplusplus
}
#endif

#endif
