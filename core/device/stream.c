// SPDX-License-Identifier: MIT
// Streams: validating wrappers of struct ggml_stream_table, computing and transfers apart.
#include "device/stream.h"

#include "base/mem.h"
#include "base/thread_guard.h"

#include "device/check.h"
#include "device/stream_watch.h"
#include "plugin/registry/live.h"

// An address that is unique to this copy of the library: members of streams that another copy made
// are not touched.
const void *stream_host_maker(void) {
    static const char maker = 0;
    return &maker;
}

// The identity of the backend that made the stream; NULL for none. Programs compare it by content.
ggml_guid_t ggml_backend_guid(ggml_backend_t backend) {
    return backend ? (ggml_guid_t)(uintptr_t)backend->table->guid : NULL;
}

const char *ggml_backend_name(ggml_backend_t backend) {
    if (!backend) return "NULL";
    const char *name = backend->table->get_name ? backend->table->get_name(backend) : NULL;
    if (name) return name;
    ggml_fail(GGML_HOST_BAD_PLUGIN, "%s: a stream of device %s has no name", __func__,
              device_label(backend->device));
    return "unnamed";
}

// The use count of the device goes down last: until then the plugin's code runs.
void ggml_backend_free(ggml_backend_t backend) {
    THREAD_GUARD_END(backend);
    if (!backend) return;
    stream_watch_end(backend);
    struct stream_host *own = stream_host_of(backend);
    if (!device_offers(backend->table->free != NULL, __func__, device_stream_label(backend),
                       // Without the entry the stream can't be freed, but the record about it can.
                       "free")) {
        backend->host = NULL;
    } else {
        backend->table->free(backend);
    }
    if (!own) return;
    host_live_remove(own->counted);
    ggml_mem_free(own->uses.counts);
    ggml_mem_free(own);
}

ggml_backend_dev_t ggml_backend_get_device(ggml_backend_t backend) {
    return device_require_arg(backend, __func__, "stream") ? backend->device : NULL;
}

ggml_backend_buffer_type_t ggml_backend_get_default_buffer_type(ggml_backend_t backend) {
    if (!device_require_arg(backend, __func__, "stream")) return NULL;
    return ggml_backend_dev_buffer_type(backend->device);
}

// Convenience wrappers of the device's default buffer type.
ggml_backend_buffer_t ggml_backend_alloc_buffer(ggml_backend_t backend, size_t size) {
    ggml_backend_buffer_type_t buft = ggml_backend_get_default_buffer_type(backend);
    return buft ? ggml_backend_buft_alloc_buffer(buft, size) : NULL;
}

size_t ggml_backend_get_alignment(ggml_backend_t backend) {
    return ggml_backend_buft_get_alignment(ggml_backend_get_default_buffer_type(backend));
}

size_t ggml_backend_get_max_size(ggml_backend_t backend) {
    return ggml_backend_buft_get_max_size(ggml_backend_get_default_buffer_type(backend));
}

void ggml_backend_synchronize(ggml_backend_t backend) {
    THREAD_GUARD_VOID(backend);
    if (device_require_arg(backend, __func__, "stream")) stream_synchronize(backend);
}

// A stream that queues nothing has no entry, or one that returns UNSUPPORTED: nothing to wait for.
enum ggml_host_status stream_synchronize(ggml_backend_t backend) {
    if (!backend->table->synchronize) return GGML_HOST_OK;
    const unsigned long errors_before = ggml_fail_count();
    const int32_t status = backend->table->synchronize(backend);
    if (status == GGML_HOST_UNSUPPORTED && ggml_fail_count() == errors_before) return GGML_HOST_OK;
    return device_check_status(status, errors_before, "ggml_backend_synchronize",
                               device_stream_label(backend));
}

bool ggml_backend_supports_op(ggml_backend_t backend, const struct ggml_tensor *op) {
    if (!device_require_arg(backend, __func__, "stream")) return false;
    return ggml_backend_dev_supports_op(backend->device, op);
}

bool ggml_backend_supports_buft(ggml_backend_t backend, ggml_backend_buffer_type_t buft) {
    if (!device_require_arg(backend, __func__, "stream")) return false;
    return ggml_backend_dev_supports_buft(backend->device, buft);
}

bool ggml_backend_offload_op(ggml_backend_t backend, const struct ggml_tensor *op) {
    if (!device_require_arg(backend, __func__, "stream")) return false;
    return ggml_backend_dev_offload_op(backend->device, op);
}

// Reordering is optional: a stream without the entry, or without a better order, is no failure.
void stream_graph_optimize(ggml_backend_t backend, struct ggml_graph *graph) {
    THREAD_GUARD_VOID(backend);
    if (!device_require_arg(backend, __func__, "stream") ||
        !device_require_arg(graph, __func__, "graph"))
        return;
    if (!backend->table->graph_optimize) return;
    const unsigned long errors_before = ggml_fail_count();
    const int32_t status = backend->table->graph_optimize(backend, graph);
    if (status == GGML_HOST_UNSUPPORTED && ggml_fail_count() == errors_before) return;
    device_check_status(status, errors_before, __func__, device_stream_label(backend));
}
