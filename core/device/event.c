// SPDX-License-Identifier: MIT
// Events: validating wrappers of struct ggml_event_table.
#include "base/thread_guard.h"
#include "device/check.h"
#include "plugin/registry/live.h"

// The device is counted as in use before the plugin is called, and for as long as the event lives.
ggml_backend_event_t ggml_backend_event_new(ggml_backend_dev_t device) {
    if (!device_require_arg(device, __func__, "device")) return NULL;
    const char *label = device_label(device);
    if (!device_offers(device->table->event_new != NULL, __func__, label, "events")) return NULL;
    const unsigned long errors_before = ggml_fail_count();
    host_live_add(device);
    ggml_backend_event_t event = NULL;
    const int32_t status = device->table->event_new(device, &event);
    if (status != GGML_HOST_OK) {
        event = NULL;
        device_failed_to(status, errors_before, "%s: %s could not make an event", __func__, label);
    }
    if (event &&
        !(event->table && event->table->size >= offsetof(struct ggml_event_table, reserved))) {
        ggml_fail(GGML_HOST_BAD_PLUGIN, "%s: %s made an event without a table", __func__, label);
        event = NULL; // nothing of it can be called
    }
    device_live_transfer(event ? &event->host : NULL, device);
    if (!event) {
        device_fail_default(errors_before, GGML_HOST_BAD_PLUGIN,
                            "%s: %s made no event, and says that it did", __func__, label);
        return NULL;
    }
    if (!event->device) event->device = device;
    return event;
}

// The use count of the device goes down last: until then the plugin's code runs.
void ggml_backend_event_free(ggml_backend_event_t event) {
    THREAD_GUARD_END(event);
    if (!event) return;
    // Read first: the plugin frees the object.
    ggml_backend_dev_t counted = event->host;
    const char *label = device_label(event->device);
    if (!device_offers(event->table->free != NULL, __func__, label, "free of events")) return;
    event->table->free(event);
    if (counted) host_live_remove(counted);
}

// Events belong to one device; recording one on a stream of another would mean nothing to its
// plugin.
void ggml_backend_event_record(ggml_backend_event_t event, ggml_backend_t backend) {
    THREAD_GUARD_VOID(event);
    THREAD_GUARD_VOID(backend);
    if (!device_require_arg(event, __func__, "event") ||
        !device_require_arg(backend, __func__, "stream"))
        return;
    if (event->device != backend->device) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                  "%s: an event of %s can't be recorded on a stream of %s", __func__,
                  device_label(event->device), device_stream_label(backend));
        return;
    }
    const char *label = device_stream_label(backend);
    if (!device_offers(backend->table->event_record != NULL, __func__, label, "event_record"))
        return;
    const unsigned long errors_before = ggml_fail_count();
    device_check_status(backend->table->event_record(backend, event), errors_before, __func__,
                        label);
}

// Waits on the host until all work recorded before the event is done.
static void synchronize(const char *function, ggml_backend_event_t event) {
    const char *label = device_label(event->device);
    if (!device_offers(event->table->synchronize != NULL, function, label, "waiting for events"))
        return;
    const unsigned long errors_before = ggml_fail_count();
    device_check_status(event->table->synchronize(event), errors_before, function, label);
}

void ggml_backend_event_synchronize(ggml_backend_event_t event) {
    if (device_require_arg(event, __func__, "event")) synchronize(__func__, event);
}

// A plugin never gets another plugin's event: then the host waits instead of the stream.
void ggml_backend_event_wait(ggml_backend_t backend, ggml_backend_event_t event) {
    THREAD_GUARD_VOID(backend);
    if (!device_require_arg(backend, __func__, "stream") ||
        !device_require_arg(event, __func__, "event"))
        return;
    const bool related = event->device && backend->device &&
                         (event->device == backend->device ||
                          (event->device->reg && event->device->reg == backend->device->reg));
    if (related && backend->table->event_wait) {
        const unsigned long errors_before = ggml_fail_count();
        const int32_t status = backend->table->event_wait(backend, event);
        // UNSUPPORTED without a message: the stream can't wait for events; the host waits below.
        if (status != GGML_HOST_UNSUPPORTED || ggml_fail_count() != errors_before) {
            device_check_status(status, errors_before, __func__, device_stream_label(backend));
            return;
        }
    }
    synchronize(__func__, event);
}
