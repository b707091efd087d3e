// SPDX-License-Identifier: MIT
// On Windows, owners and access lists are not checked.
#ifdef _WIN32
#include "plugin/trust/trust.h"

enum ggml_host_status trust_check_file(const char *path, const struct plugin_file *file) {
    (void)path;
    (void)file;
    return GGML_HOST_OK;
}

enum ggml_host_status trust_check_dir(const char *path) {
    (void)path;
    return GGML_HOST_OK;
}
#endif
