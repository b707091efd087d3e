// SPDX-License-Identifier: MIT
// What every pass reads and none writes: the streams, the settings of the application and, for
// messages, the public function that is running. Passes know nothing of the scheduler itself: each
// takes this, const results of passes before it, and one result to write. A graph allocator has one
// too: its streams are buffers, of which only the memory is known.
#ifndef GGML_SCHED_SETUP_H
#define GGML_SCHED_SETUP_H

#include "alloc/memory_pool.h"
#include "base/data/tensor_index.h"
#include "ggml-backend-impl.h"
#include "ggml-host.h"
#include "ggml-impl.h"
#include "ggml-plugin.h"
#include "sched/pass/tensor_pool.h"

enum { SCHED_PIPELINE_COPIES = 4, SCHED_FRAMES = 4 };

// A stream and its memory, as long as the scheduler lives.
struct sched_stream {
    ggml_backend_t backend;
    ggml_backend_dev_t device;
    ggml_backend_buffer_type_t buft; // of its compute buffer
    int32_t pool;                    // of that type; streams of one type share the pool
    int32_t pool_stream;             // the first stream of the pool
    bool asks_size;                  // its memory has its own sizes of tensors
    size_t alignment;                // of its memory
    ggml_backend_event_t events[SCHED_PIPELINE_COPIES]; // by copy; NULL: none
    bool allowed;                                       // nodes may be placed there
    bool queues;                                        // computing returns before the work is done
};

// A tensor that the application put on a stream.
struct sched_pin {
    struct ggml_tensor *tensor;
    int32_t backend;
};

struct sched_setup {
    const char *function; // public function that is running, for messages
    int n_streams;
    struct sched_stream *streams;
    int n_pools;
    struct memory_pool *pools; // kinds of memory of the streams, with their buffers
    int pipeline_depth;
    bool op_offload;
    bool restricted; // not every stream is allowed
    bool takes_any;  // memory is taken over from a source in whichever pool that lies
    struct ggml_device_figures *figures; // by stream; NULL: place by rules alone
    struct ggml_device_link *links; // [from][to], as plugins declare them; rate 0: by the figures
    struct sched_pin *pins;         // until the next reset
    int32_t n_pins, pins_capacity;
    struct tensor_index pin_ids;
    const struct tensor_pool *own_tensors; // SCHED_FRAMES pools of copies: graphs may not use them;
                                           // NULL: there are none, and graphs may list a node twice
};

// Opens the pools of all streams, whose buffer types are set: streams of one kind of memory share
// one, so that one does not hold what another could use. false when memory runs out.
bool sched_pools_make(struct sched_setup *setup);
void sched_pools_free(struct sched_setup *setup);
// Bytes of a stream's buffers. What streams share counts for the first of them, so that a sum over
// all is what is used.
size_t sched_pools_size(const struct sched_setup *setup, int32_t b);

// Name of the stream's device, for messages.
static inline const char *sched_stream_label(const struct sched_setup *setup, int32_t backend) {
    return ggml_backend_dev_name(setup->streams[backend].device);
}

// Pin of the tensor, or -1.
static inline int32_t sched_find_pin(const struct sched_setup *setup,
                                     const struct ggml_tensor *tensor) {
    const struct tensor_list pins = {setup->pins, sizeof(setup->pins[0])};
    return tensor_index_get(&setup->pin_ids, pins, tensor);
}

#endif
