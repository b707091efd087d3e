// SPDX-License-Identifier: MIT
// Messages go to every host that has started the plugin: a plugin is loaded once per process, its
// hosts may be several (a program and a library that brought its own core).
#define _GNU_SOURCE
#include "gpu/base/util.h"

#include <pthread.h>
#include <stdarg.h>
#include <string.h>

enum ggml_status gpu_fail_graph(enum ggml_host_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    ggml_sdk_fail_v(status, format, args);
    va_end(args);
    return status == GGML_HOST_OUT_OF_MEMORY ? GGML_STATUS_ALLOC_FAILED : GGML_STATUS_FAILED;
}

const char *gpu_config(const char *name) {
    const char *value = ggml_sdk_config(name);
    return value ? value : "";
}

bool gpu_is_set(const char *name) {
    const char *value = gpu_config(name);
    return value[0] != '\0' && strcmp(value, "0") != 0;
}

// Words are compared as a whole: a name that begins another is not it.
bool gpu_has_word(const char *list, const char *word) {
    const size_t length = strlen(word);
    while (*list) {
        const size_t n = strcspn(list, ",");
        if (n == length && memcmp(list, word, n) == 0) return true;
        list += n;
        if (*list == ',') ++list;
    }
    return false;
}

void gpu_name_thread(const char *name) {
#ifdef __linux__
    pthread_setname_np(pthread_self(), name);
#else
    (void)name;
#endif
}
