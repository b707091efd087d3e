// SPDX-License-Identifier: MIT
// Figures of devices that stand for a registered one.
#ifndef GGML_PLUGIN_QUERY_FIGURES_H
#define GGML_PLUGIN_QUERY_FIGURES_H

#include "ggml-backend-impl.h"

// Sets the function that maps an unregistered device, such as an isolated one, to the registered
// device whose figures it has; it returns NULL for others. [any-thread]
void figures_set_stand_in(ggml_backend_dev_t (*original_of)(ggml_backend_dev_t device));
// That device, or `device` itself. [any-thread]
ggml_backend_dev_t figures_original_of(ggml_backend_dev_t device);

#endif
