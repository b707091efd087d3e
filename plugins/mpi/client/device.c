// SPDX-License-Identifier: MIT
// Devices of nodes as the host sees them.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"

static struct remote_device *device_of(ggml_backend_dev_t device) {
    return device->context;
}

static const char *device_name(ggml_backend_dev_t device) {
    return device_of(device)->name;
}

static const char *device_description(ggml_backend_dev_t device) {
    return device_of(device)->description;
}

// Asks the node each time, as others use its devices too; of a lost one nothing is free.
static void device_memory(ggml_backend_dev_t handle, size_t *free, size_t *total) {
    const struct remote_device *device = device_of(handle);
    struct wire_message message = {.kind = WIRE_MEMORY, .device = device->index};
    struct wire_memory memory = device->about.memory;
    struct request *request = NULL;
    if (!atomic_load(&device->node->lost) &&
        client_call(device->node, &message, NULL, &request) == GGML_HOST_OK) {
        if (request->rest_size == sizeof(memory)) memcpy(&memory, request->rest, sizeof(memory));
        request_free(request);
    } else {
        memory.free = 0;
    }
    *total = (size_t)memory.total;
    *free = (size_t)(memory.free < memory.total ? memory.free : memory.total);
}

// Its memory is not the program's, whatever it is there: programs give layers to GPUs alone, and
// take an accelerator for a helper of the CPU.
static enum ggml_backend_dev_type device_type(ggml_backend_dev_t device) {
    const enum ggml_backend_dev_type type =
        (enum ggml_backend_dev_type)device_of(device)->about.type;
    return type == GGML_BACKEND_DEVICE_TYPE_ACCEL ? type : GGML_BACKEND_DEVICE_TYPE_GPU;
}

static void device_props(ggml_backend_dev_t handle, struct ggml_backend_dev_props *props) {
    const struct remote_device *device = device_of(handle);
    props->name = device->name;
    props->description = device->description;
    device_memory(handle, &props->memory_free, &props->memory_total);
    props->type = device_type(handle);
    props->caps.async = true;
    props->caps.events = true;
}

static int32_t device_init_backend(ggml_backend_dev_t device, const char *params,
                                   ggml_backend_t *out_stream) {
    return remote_stream_new(device_of(device), params, out_stream);
}

static int32_t device_event_new(ggml_backend_dev_t device, ggml_backend_event_t *out_event) {
    return remote_event_new(device_of(device), out_event);
}

static ggml_backend_buffer_type_t device_buffer_type(ggml_backend_dev_t device) {
    return &device_of(device)->buft;
}

static bool device_supports_op(ggml_backend_dev_t device, const struct ggml_tensor *op) {
    return remote_supports(device_of(device), op, WIRE_SUPPORTED);
}

static bool device_offload_op(ggml_backend_dev_t device, const struct ggml_tensor *op) {
    return remote_supports(device_of(device), op, WIRE_OFFLOADED);
}

static bool device_supports_buft(ggml_backend_dev_t device, ggml_backend_buffer_type_t buft) {
    return buft == &device_of(device)->buft;
}

static const struct ggml_device_table device_table = {
    .size = sizeof(device_table),
    .get_name = device_name,
    .get_description = device_description,
    .get_memory = device_memory,
    .get_type = device_type,
    .get_props = device_props,
    .init_backend = device_init_backend,
    .get_buffer_type = device_buffer_type,
    .supports_op = device_supports_op,
    .supports_buft = device_supports_buft,
    .offload_op = device_offload_op,
    .event_new = device_event_new,
};

// Names the device MPI<rank>:<name there>, and prepares the texts of the device-info extension,
// which point into the device.
void remote_device_init(struct remote_device *device, struct node *node, uint32_t index,
                        const struct wire_device *about, ggml_backend_reg_t reg) {
    size_t n = 0;
    device->base =
        (struct ggml_backend_device){.table = &device_table, .reg = reg, .context = device};
    device->node = node;
    device->index = index;
    device->about = *about;
    snprintf(device->name, sizeof(device->name), "MPI%d:%s", node->peer, about->name);
    snprintf(device->description, sizeof(device->description), "%.120s on %.120s",
             about->description, node->about.host);
    snprintf(device->rank_text, sizeof(device->rank_text), "%d", node->peer);
    device->info[n++] = (struct ggml_backend_feature){"link", "network"};
    device->info[n++] = (struct ggml_backend_feature){"unified-memory", "no"};
    device->info[n++] = (struct ggml_backend_feature){"host", node->about.host};
    snprintf(device->node_text, sizeof(device->node_text), "MPI%d", node->peer);
    device->info[n++] = (struct ggml_backend_feature){"node", device->node_text};
    device->info[n++] = (struct ggml_backend_feature){"mpi-rank", device->rank_text};
    device->info[n++] = (struct ggml_backend_feature){"mpi-version", node->about.version};
    snprintf(device->process_text, sizeof(device->process_text), "%u", node->about.process);
    device->info[n++] = (struct ggml_backend_feature){"mpi-process", device->process_text};
    snprintf(device->latency_text, sizeof(device->latency_text), "%.1f us",
             node->link_seconds * 1e6);
    snprintf(device->rate_text, sizeof(device->rate_text), "%.2f GB/s",
             node->link_bytes_per_second * 1e-9);
    device->info[n++] = (struct ggml_backend_feature){"mpi-round-trip", device->latency_text};
    device->info[n++] = (struct ggml_backend_feature){"mpi-rate", device->rate_text};
    if (about->id[0] != '\0')
        device->info[n++] = (struct ggml_backend_feature){"mpi-device-id", device->about.id};
    for (int i = 0; i < CLIENT_LINKS; ++i) {
        const struct wire_link *link = &node->links[i];
        if (link->seconds <= 0) continue;
        snprintf(device->link_names[i], sizeof(device->link_names[i]), "mpi-link-%d", i + 1);
        snprintf(device->link_texts[i], sizeof(device->link_texts[i]), "%.1f us, %.3f GB/s",
                 link->seconds * 1e6, link->bytes_per_second * 1e-9);
        device->info[n++] =
            (struct ggml_backend_feature){device->link_names[i], device->link_texts[i]};
    }
    remote_buft_init(device);
}
