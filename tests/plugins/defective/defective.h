// SPDX-License-Identifier: MIT
// Plugins with one defect each. The code is the same in all of them: a small plugin that keeps the
// contract, and at each place where one of them errs a question which one this is.
#ifndef DEFECTIVE_H
#define DEFECTIVE_H

#include "ggml-impl.h"
#include "ggml-plugin.h"

enum defect {
#define DEFECT(name, check) DEFECT_##name,
#include "defects.inl"
};

// The one of this plugin (note.c). copy_plugin.py finds it in the file by its mark.
struct defect_choice {
    char mark[12]; // "which defect"
    int32_t defect;
};
extern const struct defect_choice defect_choice;
#define HAS(name) (defect_choice.defect == DEFECT_##name)

enum { N_DEVICES = 2 };
extern struct ggml_backend_device defective_devices[N_DEVICES];
extern struct ggml_backend_reg defective_reg;

int32_t defective_init(const struct ggml_host_table *host,
                       const struct ggml_plugin_table **out_plugin);
// What the plugin does to its process; undone in process_end() unless that is the defect.
void process_begin(void);
// Called when a stream is made: what the process was given for as long as nothing is used ends.
void process_use(void);
bool is_attached(void);
bool is_forked(void);
// Tells every host that is attached; returns status.
int32_t fail(enum ggml_host_status status, const char *text, ...);

// Memory (memory.c).
ggml_backend_buffer_type_t memory_type(ggml_backend_dev_t device);
ggml_backend_buffer_t memory_wrap(ggml_backend_dev_t device, void *memory, size_t size,
                                  size_t max_tensor_size);
// Brings queued changes of the host to the memory.
void memory_flush(void);

// Streams (stream.c).
ggml_backend_t stream_new(ggml_backend_dev_t device, const char *params);
ggml_backend_event_t event_new(ggml_backend_dev_t device);
void stream_set_abort(ggml_backend_t stream, ggml_abort_callback callback, void *data);

// Works off what is queued.
void stream_drain(ggml_backend_t stream);
bool stream_lose(ggml_backend_dev_t device);
bool stream_is_lost(ggml_backend_dev_t device);
// For as long as a defect has it: a lock that is held over callbacks.
void stream_lock(bool lock);

// When nodes are computed (profile.c): NULL until the stream has been asked for it.
struct profile;
struct profile **stream_profile(ggml_backend_t stream);
uint64_t profile_tag(const struct profile *profile);
uint64_t profile_begin(const struct profile *profile);
void profile_node(struct profile *profile, const struct ggml_graph *graph, int i, uint64_t tag,
                  uint64_t begin_ns);
void profile_free(struct profile *profile);
const struct ggml_extension_profile *profile_extension(void);

// Groups of streams (comm.c).
const struct ggml_extension_comm *comm_extension(void);

// Memory that others use too (external.c).
const struct ggml_extension_external_memory *external_extension(void);

// Operations (compute.c).
bool op_is_claimed(ggml_backend_dev_t device, const struct ggml_tensor *node);
enum ggml_status op_compute(const struct ggml_tensor *node);

_Noreturn static inline void hang(void) {
    for (volatile unsigned i = 0;; ++i) {
    }
}

#endif
