// SPDX-License-Identifier: MIT
// From a device to its plugin: counts the streams, buffers, events and plans that live on each
// plugin's devices, so that a plugin in use is never unloaded, and tells which contract it knows.
#ifndef GGML_PLUGIN_REGISTRY_LIVE_H
#define GGML_PLUGIN_REGISTRY_LIVE_H

#include "ggml-backend-impl.h"

struct host_plugin;

// An object of the device came to life or ended. NULL and devices that belong to no plugin are
// ignored. Lock-free. [any-thread]
void host_live_add(ggml_backend_dev_t device);
void host_live_remove(ggml_backend_dev_t device);

// The device's plugin with one more live object, which the caller takes back, so that it stays
// loaded while it is asked; NULL: the device belongs to no plugin. Lock-free. [any-thread]
struct host_plugin *host_live_hold(ggml_backend_dev_t device);

// Contract minor that the device's plugin was built with; the host's own for a device that belongs
// to no plugin. Lock-free. [any-thread]
int host_device_minor(ggml_backend_dev_t device);

#endif
