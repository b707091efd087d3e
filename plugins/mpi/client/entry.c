// SPDX-License-Identifier: MIT
// The plugin: note, entry, backend, extensions.
#include <stdlib.h>
#include <string.h>

#include "client.h"

static struct ggml_backend_reg mpi_reg;

static const char *reg_name(ggml_backend_reg_t reg) {
    (void)reg;
    return "MPI";
}

static size_t reg_device_count(ggml_backend_reg_t reg) {
    const struct client *client = client_get();
    size_t count = 0;
    (void)reg;
    for (int i = 0; client && i < atomic_load(&client->n_shown); ++i)
        count += client->nodes[i].n_devices;
    return count;
}

static ggml_backend_dev_t reg_device(ggml_backend_reg_t reg, size_t index) {
    struct client *client = client_get();
    (void)reg;
    for (int i = 0; client && i < atomic_load(&client->n_shown); ++i) {
        struct node *node = &client->nodes[i];
        if (index < node->n_devices) return &node->devices[index].base;
        index -= node->n_devices;
    }
    return NULL;
}

static const struct ggml_backend_table reg_table = {
    .size = sizeof(reg_table),
    .get_name = reg_name,
    .get_device_count = reg_device_count,
    .get_device = reg_device,
};

// --- extensions ----------------------------------------------------------------------------------

static const struct ggml_backend_feature *device_info(ggml_backend_dev_t device) {
    return ((struct remote_device *)device->context)->info;
}

static const struct ggml_extension_device_info info_extension = {
    .size = sizeof(info_extension),
    .revision = GGML_EXTENSION_DEVICE_INFO_REVISION,
    .info = device_info,
};

// The node's plugin says how fast the device is, what was measured how far away it is.
static int32_t device_figures(ggml_backend_dev_t handle, struct ggml_device_figures *out) {
    const struct remote_device *device = handle->context;
    const struct wire_device *about = &device->about;
    struct ggml_device_figures figures = {
        .size = out->size,
        .flags = device->node->joined ? 0 : GGML_DEVICE_FIGURES_DIRECT_COPY,
        .flops = about->flops,
        .bytes_per_second = about->bytes_per_second,
        .launch_seconds = about->launch_seconds,
        .link_bytes_per_second = device->node->link_bytes_per_second,
        .link_seconds = device->node->link_seconds,
    };
    if (!about->has_figures) return GGML_HOST_UNSUPPORTED;
    memcpy(figures.flops_of, about->flops_of, sizeof(figures.flops_of));
    memcpy(out, &figures, out->size < sizeof(figures) ? out->size : sizeof(figures));
    return GGML_HOST_OK;
}

// Between two nodes, or from or to the program: what was measured at start. A copy within a node
// doesn't travel, and was not measured.
static int32_t device_link(ggml_backend_dev_t from, ggml_backend_dev_t to,
                           struct ggml_device_link *out_link) {
    const struct node *a = from ? ((struct remote_device *)from->context)->node : NULL;
    const struct node *b = to ? ((struct remote_device *)to->context)->node : NULL;
    const struct node *one = a ? a : b;
    const bool both = a && b;
    if (a == b || (both && b->peer > CLIENT_LINKS)) return GGML_HOST_UNSUPPORTED;
    out_link->seconds = both ? a->links[b->peer - 1].seconds : one->link_seconds;
    out_link->bytes_per_second =
        both ? a->links[b->peer - 1].bytes_per_second : one->link_bytes_per_second;
    return out_link->seconds > 0 && out_link->bytes_per_second > 0 ? GGML_HOST_OK
                                                                   : GGML_HOST_UNSUPPORTED;
}

static const struct ggml_extension_device_figures figures_extension = {
    .size = sizeof(figures_extension),
    .revision = GGML_EXTENSION_DEVICE_FIGURES_REVISION,
    .figures = device_figures,
    .link = device_link,
};

static const void *get_extension(const char *id, uint32_t min_revision) {
    if (strcmp(id, GGML_EXTENSION_DEVICE_INFO) == 0 &&
        min_revision <= GGML_EXTENSION_DEVICE_INFO_REVISION) {
        return &info_extension;
    }
    if (strcmp(id, GGML_EXTENSION_DEVICE_FIGURES) == 0 &&
        min_revision <= GGML_EXTENSION_DEVICE_FIGURES_REVISION) {
        return &figures_extension;
    }
    if (strcmp(id, GGML_EXTENSION_COMM) == 0 && min_revision <= GGML_EXTENSION_COMM_REVISION)
        return &remote_comm;
    return NULL;
}

// --- start and end -------------------------------------------------------------------------------

// MPI can't be started again once it has ended: it runs until the process ends.
static ggml_backend_reg_t mpi_start(void) {
    static bool ends_at_exit;
    mpi_reg.table = &reg_table;
    const struct ggml_host_table *host = ggml_sdk_host();
    // A helper that took part in the job would be taken for the program.
    if (host->get_extension(host, GGML_EXTENSION_TRIAL, 1))
        return client_may_start(NULL) ? &mpi_reg : NULL;
    if (!client_start(&mpi_reg)) return NULL;
    if (!ends_at_exit) atexit(client_end);
    ends_at_exit = true;
    return &mpi_reg;
}

GGML_PLUGIN_NOTE("mpi", "", PLUGIN_VERSION, 0, 0,
                 GGML_PLUGIN_FLAG_NO_UNLOAD | GGML_PLUGIN_FLAG_DYNAMIC_DEVICES)
GGML_PLUGIN_ENTRY(mpi_start, NULL, NULL, get_extension)
