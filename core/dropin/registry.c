// SPDX-License-Identifier: MIT
// The registry as programs find it that were built with a ggml without built-in backends: empty
// until they load. libllama, for one, loads only if it counts no backend, and would never see a
// plugin beside the CPU that is built into this library.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

#include "ggml-backend.h"

typedef size_t (*count_fn)(void);
typedef void (*load_fn)(void);
typedef void (*load_from_fn)(const char *dir_path);

static atomic_bool loaded;

// The function of this name in the library behind this one; out_function is one of the types above.
static void find_next(const char *name, void *out_function) {
    void *address = dlsym(RTLD_NEXT, name);
    memcpy(out_function, &address, sizeof(address));
}

size_t ggml_backend_reg_count(void) {
    count_fn next;
    find_next("ggml_backend_reg_count", &next);
    const size_t count = next ? next() : 0;
    return count > 1 || atomic_load(&loaded) ? count : 0;
}

void ggml_backend_load_all(void) {
    load_fn next;
    find_next("ggml_backend_load_all", &next);
    if (next) next();
    atomic_store(&loaded, true);
}

void ggml_backend_load_all_from_path(const char *dir_path) {
    load_from_fn next;
    find_next("ggml_backend_load_all_from_path", &next);
    if (next) next(dir_path);
    atomic_store(&loaded, true);
}
