// SPDX-License-Identifier: MIT
// Opening libraries by dlopen(), and finding the directory of the running program.
#ifndef _WIN32
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

#include "base/dl/dl.h"
#include "base/fault.h"

struct dl_library *dl_open(const char *path, char *out_message, size_t size) {
    const bool refused = ggml_fault(GGML_FAULT_LINK);
    void *handle = refused ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle && out_message) {
        const char *text = refused ? strerror(errno) : dlerror();
        snprintf(out_message, size, "%s", text ? text : "no reason given");
    }
    return handle;
}

void *dl_symbol(struct dl_library *library, const char *name) {
    return dlsym(library, name);
}

void dl_close(struct dl_library *library) {
    if (library) dlclose(library);
}

// Cuts the last component off an absolute path.
static bool keep_directory(char *path) {
    char *slash = strrchr(path, '/');
    if (path[0] != '/' || !slash) return false;
    slash[slash == path ? 1 : 0] = '\0';
    return true;
}

// Resolves symbolic links first: plugins are looked for beside the real file.
static bool resolve_directory(const char *file, char *out_path, size_t size) {
    char *real = realpath(file, NULL);
    const bool fits = real && strlen(real) < size;
    if (fits) memcpy(out_path, real, strlen(real) + 1);
    free(real);
    return fits && keep_directory(out_path);
}

bool dl_executable_dir(char *out_path, size_t size) {
#ifdef __APPLE__
    char file[PATH_MAX];
    uint32_t length = sizeof(file);
    return _NSGetExecutablePath(file, &length) == 0 && resolve_directory(file, out_path, size);
#elif defined(__FreeBSD__)
    return resolve_directory("/proc/curproc/file", out_path, size);
#else
    return resolve_directory("/proc/self/exe", out_path, size);
#endif
}

#ifdef __linux__
// The file that is mapped there, as the kernel knows it: always absolute, and neither what the
// program was told as its own name nor a path that the working directory has moved away from.
static bool mapped_file(const void *address, char *out_path, size_t size) {
    char *line = NULL;
    size_t capacity = 0;
    bool found = false;
    FILE *file = fopen("/proc/self/maps", "re");
    while (file && !found && getline(&line, &capacity, file) > 0) {
        unsigned long long start, end;
        if (sscanf(line, "%llx-%llx", &start, &end) != 2) continue;
        if ((uintptr_t)address < start || (uintptr_t)address >= end) continue;
        const char *path = strchr(line, '/');
        const size_t length = path ? strcspn(path, "\n") : size;
        found = length < size;
        if (!found) break;
        memcpy(out_path, path, length);
        out_path[length] = '\0';
    }
    free(line);
    if (file) fclose(file);
    return found;
}
#endif

// A library that was found by a relative path is where the working directory was at that time.
bool dl_module_dir(const void *address, char *out_path, size_t size) {
    Dl_info info;
#ifdef __linux__
    char path[PATH_MAX];
    if (mapped_file(address, path, sizeof(path))) return resolve_directory(path, out_path, size);
#endif
    memset(&info, 0, sizeof(info));
    if (dladdr((void *)(uintptr_t)address, &info) == 0 || !info.dli_fname) return false;
    // A name without a slash is argv[0] of the executable, which glibc records for it.
    if (!strchr(info.dli_fname, '/')) return dl_executable_dir(out_path, size);
    // Without /proc a relative name can't be resolved any more: the working directory may have
    // changed.
    return info.dli_fname[0] == '/' && resolve_directory(info.dli_fname, out_path, size);
}
#endif
