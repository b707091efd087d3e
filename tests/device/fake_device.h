// SPDX-License-Identifier: MIT
// A device that exists only here. Its memory can't be reached through tensor->data, its streams
// queue until they are synchronised, and every entry counts its calls. Tests take entries away by
// setting them to NULL in the templates, and make it misbehave with the switches.
#ifndef GGML_TESTS_FAKE_DEVICE_H
#define GGML_TESTS_FAKE_DEVICE_H

#include <string.h>

#include "ggml-backend-impl.h"
#include "ggml-host.h"
#include "ggml-plugin.h"

enum { FAKE_QUEUE = 256 };

struct fake_calls {
    int alloc_buffer, free_buffer, init_tensor, memset_tensor, set_tensor, get_tensor;
    int set_tensor_2d, get_tensor_2d, cpy_tensor, clear, reset;
    int init_backend, free, set_async, get_async, set_2d_async, get_2d_async, cpy_async,
        synchronize;
    int plan_create, plan_free, plan_compute, graph_compute, event_record, event_wait,
        graph_optimize;
    int buffer_from_host_ptr, supports_op, supports_buft, offload_op;
    int event_new, event_free, event_synchronize;
};

struct fake_work {
    int kind;
    ggml_backend_t stream;
    struct ggml_tensor *tensor;
    void *data;
    size_t offset, size;
};

struct fake_device {
    struct ggml_backend_device device;
    struct ggml_backend_reg reg;
    struct ggml_backend_buffer_type buft;
    struct ggml_backend_buffer_type host_buft; // the same, but its memory is the host's
    struct ggml_device_table device_table;     // of the device
    struct ggml_backend_table reg_table;       // of its backend
    struct ggml_buffer_type_table buft_table;  // of both types
    struct ggml_buffer_table buffer_table;     // of all buffers
    struct ggml_stream_table stream_table;     // of all streams
    struct ggml_event_table event_table;       // of all events
    struct fake_calls calls;
    int n_buffers, n_streams, n_events, n_plans; // alive
    struct fake_work queue[FAKE_QUEUE];
    int n_queued;
    void *last; // object that was made last

    // switches
    const char *name; // NULL: returns no name
    size_t alignment;
    size_t max_size;
    size_t padding;  // added to ggml_nbytes
    size_t short_by; // buffers are this much smaller than asked for
    size_t memory_free, memory_total;
    int type; // enum ggml_backend_dev_type, or a wrong number
    bool no_base;
    bool fails;          // everything that makes an object returns NULL
    const char *reason;  // what it says then, or NULL
    bool refuses_copy;   // cpy_tensor and cpy_tensor_async return false
    bool forgets_device; // new streams and events have no device
    bool lies;           // says that it made what it didn't
    int init_answer;     // of init_tensor: an enum ggml_host_status
    int answer;          // of plans and graphs: an enum ggml_host_status
    float error;         // added to every computed element
};

// Ready for use; nothing to free but what it made. The device must outlive its objects.
void fake_device_init(struct fake_device *fake, const char *name);
// Objects alive.
int fake_device_alive(const struct fake_device *fake);
// Host address of device memory.
void *fake_memory(const void *device_address);

// A packed F32 tensor without memory. [ne0, ne1]
struct ggml_tensor fake_tensor(const char *name, int64_t ne0, int64_t ne1);
// The view of `owner` at this offset, not initialised.
struct ggml_tensor fake_view(struct ggml_tensor *owner, int64_t ne0, size_t offset);
// A node that adds a and b; without memory.
struct ggml_tensor fake_add(struct ggml_tensor *a, struct ggml_tensor *b);
// Places the tensor at this offset.
void fake_place(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor, size_t offset);

// The call fails with this status and a message that contains the text.
#define assert_refused(status_, text_, call_)                                                      \
    do {                                                                                           \
        ggml_clear_error();                                                                        \
        call_;                                                                                     \
        if (!strstr(ggml_last_error(), text_))                                                     \
            fail_msg("no '%s' in: %s", text_, ggml_last_error());                                  \
        assert_int_equal(ggml_last_status(), status_);                                             \
    } while (0)
// The call records no failure.
#define assert_quiet(call_)                                                                        \
    do {                                                                                           \
        ggml_clear_error();                                                                        \
        call_;                                                                                     \
        assert_string_equal(ggml_last_error(), "");                                                \
    } while (0)

#endif
