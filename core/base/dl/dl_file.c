// SPDX-License-Identifier: MIT
// Loading by descriptor. The linker takes only paths, so it is given the descriptor's name in
// /proc. It remembers that name: it compares the names of later loads with it, and shows it to
// dladdr() and debuggers. So each name is spelled in a way of its own, which no later load repeats
// when the descriptor's number comes again, be it by another copy of this library in the process,
// and is overwritten by the real path afterwards, for which it is made long enough.
#ifndef _WIN32
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dl/dl.h"
#include "base/fault.h"

#ifdef __GLIBC__
#include <limits.h>
#include <link.h>

static const char folder[] = "/proc/self/fd/";
// A number is spelled in steps that lead nowhere: "./" for a 0, "/" for a 1.
enum { SERIAL_BITS = 40, SUFFIX_SIZE = 16, MIN_NAME = sizeof(folder) + 2 * SERIAL_BITS };

static atomic_ullong next_serial;
static pthread_once_t serial_once = PTHREAD_ONCE_INIT;

// Another copy of this library in the process counts from elsewhere.
static void start_serial(void) {
    unsigned long long start = (unsigned long long)(uintptr_t)&next_serial;
    if (getentropy(&start, sizeof(start)) != 0) start *= 0x9e3779b97f4a7c15u;
    atomic_store(&next_serial, start);
}

// Writes the name to open the file by: the folder, a serial number of this load as SERIAL_BITS
// steps, steps that pad it to the length of `path`, and the descriptor. false if that exceeds
// PATH_MAX.
static bool name_of(intptr_t file, const char *path, char out_name[PATH_MAX]) {
    const size_t wanted = strlen(path);
    if (wanted + MIN_NAME + SUFFIX_SIZE > PATH_MAX) return false;
    pthread_once(&serial_once, start_serial);
    unsigned long long serial = atomic_fetch_add(&next_serial, 1);
    size_t used = sizeof(folder) - 1;
    memcpy(out_name, folder, used);
    for (int i = 0; i < SERIAL_BITS; ++i, serial >>= 1) {
        if (!(serial & 1)) out_name[used++] = '.';
        out_name[used++] = '/';
    }
    // Room for `path`, which put_path() writes over the name.
    while (used < wanted) {
        out_name[used++] = '.';
        out_name[used++] = '/';
    }
    snprintf(out_name + used, SUFFIX_SIZE, "%ld", (long)file);
    return true;
}

bool dl_can_open_file(intptr_t file, const char *path) {
    char name[PATH_MAX];
    struct stat by_name, by_file;
    if (ggml_fault(GGML_FAULT_STAT) || !name_of(file, path, name)) return false;
    // The padded name has to lead to the same file: /proc may be missing or restricted.
    return stat(name, &by_name) == 0 && fstat((int)file, &by_file) == 0 &&
           by_name.st_dev == by_file.st_dev && by_name.st_ino == by_file.st_ino;
}

// Replaces the name in the linker's own record, in place: dladdr() and debuggers read it there.
static void put_path(void *handle, const char *name, const char *path) {
    struct link_map *map = NULL;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || !map || !map->l_name) return;
    // The linker returned a library that it had mapped before, by another name: that name stays.
    if (strcmp(map->l_name, name) == 0) memcpy(map->l_name, path, strlen(path) + 1);
}

// The linker's message, with the path where it has the name.
static void put_message(const char *name, const char *path, char *out_message, size_t size) {
    const char *text = dlerror();
    const char *found = text ? strstr(text, name) : NULL;
    if (!text) text = "no reason given";
    if (found) {
        snprintf(out_message, size, "%.*s%s%s", (int)(found - text), text, path,
                 found + strlen(name));
    } else {
        snprintf(out_message, size, "%s", text);
    }
}

struct dl_library *dl_open_file(intptr_t file, const char *path, char *out_message, size_t size) {
    char name[PATH_MAX];
    if (ggml_fault(GGML_FAULT_LINK) || !name_of(file, path, name)) {
        snprintf(out_message, size, "%s: can't be opened by its descriptor", path);
        return NULL;
    }
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle) {
        put_path(handle, name, path);
    } else {
        put_message(name, path, out_message, size);
    }
    return handle;
}

#else

bool dl_can_open_file(intptr_t file, const char *path) {
    (void)file;
    (void)path;
    return false;
}

struct dl_library *dl_open_file(intptr_t file, const char *path, char *out_message, size_t size) {
    (void)file;
    return dl_open(path, out_message, size);
}

#endif
#endif
