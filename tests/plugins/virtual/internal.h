// SPDX-License-Identifier: MIT
// What the files of this plugin share.
#ifndef VIRTUAL_INTERNAL_H
#define VIRTUAL_INTERNAL_H

#include <pthread.h>

#include "ggml-impl.h"
#include "ggml-plugin.h"
#include "virtual.h"

// --- log -----------------------------------------------------------------------------------------

// Nanoseconds of the clock of the records.
uint64_t log_now(void);
// Appends; called_ns is set. Returns a ticket for the other two; 0: not recorded. [any-thread]
uint64_t log_add(struct virtual_record record);
void log_begin(uint64_t ticket);
void log_end(uint64_t ticket, enum ggml_status status);
// A record that begins and ends now.
void log_once(enum virtual_call call, int device, uint32_t stream, uint64_t bytes,
              const char *text);
void log_violation(int device, const char *format, ...) GGML_ATTRIBUTE_FORMAT(2, 3);
void log_clear(void);
size_t log_count(void);
bool log_get(size_t i, struct virtual_record *out_record);
size_t log_violations(void);
void log_free(void);

// --- devices -------------------------------------------------------------------------------------

enum gate {
    GATE_ALLOC,
    GATE_COPY,
    GATE_COMPUTE,
    GATE_COUNT,
};

struct virtual_device {
    struct ggml_backend_device base;
    struct ggml_backend_buffer_type buft;
    struct ggml_backend_buffer_type host_buft;
    int index;
    char name[16];
    char host_name[24];
    char place[24]; // name of the host that it is said to be in
    struct ggml_backend_feature info[3];
    pthread_mutex_t mutex; // guards what follows
    struct virtual_config config;
    size_t used;
    int64_t n_calls[GATE_COUNT];
    bool is_lost;
};

// The device behind the handle; NULL if it is another plugin's.
struct virtual_device *virtual_device_of(ggml_backend_dev_t device);
// Set up as it is at this moment.
struct virtual_config device_config(struct virtual_device *device);
// Counts a call; a failure that is due is told to the host. [any-thread]
enum ggml_status device_gate(struct virtual_device *device, enum gate gate);
// What the delays amount to; false if there are none.
bool device_figures(struct virtual_device *device, struct ggml_device_figures *out_figures);
// At the start: where the device is said to be from then on, whatever it is set up as later.
void device_place(struct virtual_device *device);
// Entries of extensions.
const struct ggml_backend_feature *device_info(ggml_backend_dev_t device);
int32_t device_link(ggml_backend_dev_t from, ggml_backend_dev_t to,
                    struct ggml_device_link *out_link);
bool device_computes(struct virtual_device *device, const struct ggml_tensor *node);
// Sets *out_config from "key=value,..."; returns the number of devices, 0 for a text it can't
// read.
size_t config_parse(const char *text, struct virtual_config *out_config);
void config_default(struct virtual_config *out_config);

// --- memory --------------------------------------------------------------------------------------

enum { VIRTUAL_MAX_ALIGNMENT = 1 << 16 };

// Addresses that fault when they are touched, aligned for every tensor; NULL on failure.
void *space_reserve(size_t size);
void space_release(void *base, size_t size);

void memory_init_types(struct virtual_device *device);
ggml_backend_buffer_t memory_import(struct virtual_device *device, void *ptr, size_t size);
// The device whose memory holds the tensor, or NULL.
struct virtual_device *memory_device(const struct ggml_tensor *tensor);
// Where size bytes at offset of the tensor really are, for work of `device` (NULL: of anyone); NULL
// and a violation if the device can't get at them.
char *memory_resolve(struct virtual_device *device, const struct ggml_tensor *tensor, size_t offset,
                     size_t size);
bool memory_type_is_mine(ggml_backend_buffer_type_t buft);
// Sleeps for what a transfer of that size takes; between two devices the slower one decides.
void memory_delay(struct virtual_device *device, struct virtual_device *peer, size_t bytes);
void sleep_ns(int64_t nanoseconds);

// --- hazards: work that touches the same bytes unordered -----------------------------------------

struct hazard_range {
    const char *begin;
    const char *end;
    bool writes;
};

struct hazard {
    struct hazard *next, *previous;
    struct hazard_range *ranges;
    size_t n_ranges;
    const void *stream; // NULL: the host itself
    bool runs;
    bool reported; // in a race; whichever of the two starts first tells of it, once
    int device;
    char name[48];
};

// Between these two the ranges must stay.
void hazard_queue(struct hazard *hazard);
void hazard_done(struct hazard *hazard);
// Reports what runs at the same time on other streams, and for the host what is queued too.
void hazard_start(struct hazard *hazard);
// Whether queued or running work touches the bytes.
bool hazard_touches(const char *begin, size_t size);

// --- fences: one moment of a stream that others wait for -----------------------------------------

struct fence;
struct fence *fence_new(void);
struct fence *fence_share(struct fence *fence);
void fence_signal(struct fence *fence);
void fence_wait(struct fence *fence);
void fence_drop(struct fence *fence); // NULL does nothing

// --- streams -------------------------------------------------------------------------------------

struct stream;

struct job {
    struct job *next;
    enum ggml_status (*run)(struct stream *stream, struct job *job);
    void (*release)(struct job *job); // (opt) frees what the job holds, not the job
    uint64_t ticket;
    enum gate gate; // GATE_COUNT: none
    struct hazard hazard;
    union {
        struct transfer {
            char *dst;
            const char *src;
            size_t size, n_pieces, stride_dst, stride_src;
            struct virtual_device *peer; // that it comes from or goes to; NULL: the host
        } transfer;
        struct fence *fence;
        struct shadow *shadow;
        struct share *share;
        struct message *message;
    } of;
};

struct stream {
    struct ggml_backend base;
    struct virtual_device *device;
    uint32_t number;
    char name[32];
    ggml_backend_t cpu; // computes, on the worker only
    pthread_t worker;
    pthread_mutex_t mutex; // guards what follows
    pthread_cond_t changed;
    struct job *first, *last;
    bool is_busy;
    bool ends;
    enum ggml_status status; // of work that failed late
};

ggml_backend_t stream_new(struct virtual_device *device);
// NULL if it is another plugin's.
struct stream *stream_of(ggml_backend_t backend);
struct job *job_new(void);
// Takes the job. Waits for it on a device whose streams don't queue.
void stream_queue(struct stream *stream, struct job *job);
void stream_wait(struct stream *stream);
// Queues a wait for the fence, which is dropped then; false: no memory, waited for at once.
bool stream_wait_for(struct stream *stream, struct fence *fence);
// Tells the host that queued work failed.
void stream_fail_late(struct stream *stream);
// Asks the gate now, unless failures come late.
enum ggml_status stream_gate(struct stream *stream, enum gate gate, struct job *job);

ggml_backend_event_t event_new(ggml_backend_dev_t device);
void event_free(ggml_backend_event_t event);
int32_t stream_event_record(ggml_backend_t backend, ggml_backend_event_t event);
int32_t stream_event_wait(ggml_backend_t backend, ggml_backend_event_t event);

int32_t stream_graph_compute(ggml_backend_t backend, const struct ggml_graph *graph);

int32_t stream_set_async(ggml_backend_t backend, struct ggml_tensor *tensor, const void *data,
                         size_t offset, size_t size);
int32_t stream_get_async(ggml_backend_t backend, const struct ggml_tensor *tensor, void *data,
                         size_t offset, size_t size);
int32_t stream_set_2d_async(ggml_backend_t backend, struct ggml_tensor *tensor, const void *data,
                            size_t offset, size_t size, size_t n_copies, size_t stride_tensor,
                            size_t stride_data);
int32_t stream_get_2d_async(ggml_backend_t backend, const struct ggml_tensor *tensor, void *data,
                            size_t offset, size_t size, size_t n_copies, size_t stride_tensor,
                            size_t stride_data);
int32_t stream_copy_async(ggml_backend_t backend_src, ggml_backend_t backend_dst,
                          const struct ggml_tensor *src, struct ggml_tensor *dst);
void transfer_run(const struct transfer *transfer);

// --- groups of streams ---------------------------------------------------------------------------

extern const struct ggml_extension_comm comm_extension;

// --- extensions that break their contract; NULL for 0 --------------------------------------------

const struct ggml_extension_profile *hostile_profile(int64_t kind);
const struct ggml_extension_comm *hostile_comm(int64_t kind);

#endif
