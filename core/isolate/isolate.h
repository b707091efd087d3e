// SPDX-License-Identifier: MIT
// Isolated devices of the host's own, which GGML_ISOLATE asks for.
#ifndef GGML_ISOLATE_ISOLATE_H
#define GGML_ISOLATE_ISOLATE_H

#include "plugin/registry/plugin.h"

// As struct isolation_maker has them.
enum ggml_host_status isolated_device_new(const struct host_plugin *plugin, size_t number,
                                          const struct host_device *device,
                                          ggml_backend_dev_t *out_device);
void isolated_device_free(ggml_backend_dev_t device);

#endif
