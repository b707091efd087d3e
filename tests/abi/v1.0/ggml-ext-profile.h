// SPDX-License-Identifier: MIT
// ggml-ext-profile.h: extension "ggml.profile", which plugins offer: when the nodes of graphs are
// computed.
//
// A part of ggml-plugin.h; how extensions are offered and found is in ggml-plugin-extensions.h.
#ifndef GGML_EXT_PROFILE_H
#define GGML_EXT_PROFILE_H

#include <stdint.h>

#include "ggml-backend-impl.h"

#ifdef __cplusplus
extern "C" {
#endif

// A piece of a stream's time.
struct ggml_profile_slice {
    uint64_t tag;       // that the graph was computed under
    int32_t first_node; // index in the graph of the first node that was computed in it
    int32_t n_nodes;    // that were computed in it, wherever in the graph; several where fused
    uint64_t begin_ns;  // of the host's clock, see struct ggml_extension_profile
    uint64_t end_ns;    // not before begin_ns
};

// Extension "ggml.profile", revision 1: when the nodes of graphs are computed.
//
// Each node that a graph computes is counted in one slice; those that compute nothing, and those
// without GGML_TENSOR_FLAG_COMPUTE, in none. A slice begins and ends while its graph is computed:
// after the call, and before synchronize returns that waits for it. Slices of a stream do not
// overlap and are read in the order of their time. A graph that fails has the slices of what ran.
// The clock is CLOCK_MONOTONIC in nanoseconds, on Windows the performance counter: a plugin with a
// clock of its own converts, and begin is UNSUPPORTED where it can't. Times then err by what the
// conversion does, but by no more than holds the rules above.
//
// State recording: between begin and end of a stream. In the other state an entry changes nothing
// and says so by its status.
#define GGML_EXTENSION_PROFILE "ggml.profile"
#define GGML_EXTENSION_PROFILE_REVISION 1
struct ggml_extension_profile {
    uint32_t size;
    uint32_t revision;
    // From now on records what graphs the stream is given, under tag 0, and keeps up to capacity
    // (> 0) slices that aren't read. An enum ggml_host_status as all entries here: BUSY if it
    // records already, UNSUPPORTED on this device, OUT_OF_MEMORY. May wait for queued work.
    // [stream & !recording]
    int32_t (*begin)(ggml_backend_t stream, uint64_t capacity);
    // Tag of the graphs that the stream is given from now on. INVALID_ARGUMENT if it doesn't
    // record. Never blocks. [stream & recording]
    int32_t (*tag)(ggml_backend_t stream, uint64_t tag);
    // Moves up to max of the oldest slices to `slices`: after synchronize none is missing, before
    // that perhaps those of work that is queued. *out_count: how many these are; *out_lost: slices
    // that found no room since the last call. A slice that is lost displaces none that is kept.
    // INVALID_ARGUMENT if it doesn't record: both are 0 then. Never blocks. [stream & recording]
    int32_t (*read)(ggml_backend_t stream, struct ggml_profile_slice *slices, uint64_t max,
                    uint64_t *out_count, uint64_t *out_lost);
    // Stops, and forgets what was not read. INVALID_ARGUMENT if it doesn't record. A stream that is
    // freed does the same. May wait for queued work. [stream & recording]
    int32_t (*end)(ggml_backend_t stream);
};

#ifdef __cplusplus
}
#endif

#endif
