// SPDX-License-Identifier: MIT
// ggml-port/ggml-backend.h: stands before ggml-backend.h, where sources of late 2023 look for
// ggml's interface for backends.
#ifndef GGML_PORT_BACKEND_H
#define GGML_PORT_BACKEND_H

#include "../ggml-backend.h"
#if defined(GGML_PORT_API_VERSION) && GGML_PORT_API_VERSION == 0
#include "ggml-backend-2023.h"
#endif

#endif
