// SPDX-License-Identifier: MIT
// What a port of sources of late 2023 adds to them.
#include "ggml-backend.h"

#ifdef __cplusplus
extern "C"
#endif
    ggml_backend_t
    ggml_backend_port_init(void);

GGML_PORT_DEVICE("PORT0", "PORT0", GGML_BACKEND_DEVICE_TYPE_ACCEL, ggml_backend_port_init)
