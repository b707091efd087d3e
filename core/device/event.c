// SPDX-License-Identifier: MIT
#include "base/thread_guard.h"
#include "device/check.h"
#include "host/live.h"

ggml_backend_event_t ggml_backend_event_new(ggml_backend_dev_t device) {
    if (!device_given(device, __func__, "device")) return NULL;
    const char *label = device_label(device);
    if (!device_offers(device->iface.event_new && device->iface.event_free, __func__, label,
                       "events")) {
        return NULL;
    }
    const unsigned long told = ggml_fail_count();
    host_live_add(device);
    ggml_backend_event_t event = device->iface.event_new(device);
    device_live_settle(event ? &event->host : NULL, device);
    if (!event) {
        device_fail_unless_told(told, GGML_HOST_FAILED, "%s: %s could not make an event", __func__,
                                label);
        return NULL;
    }
    if (!event->device) event->device = device;
    return event;
}

void ggml_backend_event_free(ggml_backend_event_t event) {
    THREAD_GUARD_END(event);
    if (!event || !device_given(event->device, __func__, "device of the event")) return;
    ggml_backend_dev_t device = event->device;
    ggml_backend_dev_t counted = event->host;
    const char *label = device_label(device);
    if (!device_offers(device->iface.event_free != NULL, __func__, label, "event_free")) return;
    device->iface.event_free(device, event);
    if (counted) host_live_remove(counted);
}

void ggml_backend_event_record(ggml_backend_event_t event, ggml_backend_t backend) {
    THREAD_GUARD_VOID(event);
    THREAD_GUARD_VOID(backend);
    if (!device_given(event, __func__, "event") || !device_given(backend, __func__, "stream"))
        return;
    if (event->device != backend->device) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                  "%s: an event of %s can't be recorded on a stream of %s", __func__,
                  device_label(event->device), device_stream_label(backend));
        return;
    }
    const char *label = device_stream_label(backend);
    if (!device_offers(backend->iface.event_record != NULL, __func__, label, "event_record"))
        return;
    backend->iface.event_record(backend, event);
}

static void synchronize(const char *function, ggml_backend_event_t event) {
    ggml_backend_dev_t device = event->device;
    if (!device_given(device, function, "device of the event")) return;
    const char *label = device_label(device);
    if (!device_offers(device->iface.event_synchronize != NULL, function, label,
                       "event_synchronize")) {
        return;
    }
    device->iface.event_synchronize(device, event);
}

void ggml_backend_event_synchronize(ggml_backend_event_t event) {
    if (device_given(event, __func__, "event")) synchronize(__func__, event);
}

// A plugin is never shown another plugin's event: the host then waits instead of the stream.
void ggml_backend_event_wait(ggml_backend_t backend, ggml_backend_event_t event) {
    THREAD_GUARD_VOID(backend);
    if (!device_given(backend, __func__, "stream") || !device_given(event, __func__, "event"))
        return;
    const bool related = event->device && backend->device &&
                         (event->device == backend->device ||
                          (event->device->reg && event->device->reg == backend->device->reg));
    if (related && backend->iface.event_wait) {
        backend->iface.event_wait(backend, event);
    } else {
        synchronize(__func__, event);
    }
}
