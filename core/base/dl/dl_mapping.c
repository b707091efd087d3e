// SPDX-License-Identifier: MIT
// Whether a library is a mapping of an open file. The linker answers what it knows by a name before
// it looks at the file, and replaces some words in names; the kernel says what is really there.
// Device and inode are compared as /proc/self/maps tells them of the library and of a page of the
// file that is mapped for that, because some file systems tell fstat() others.
#ifndef _WIN32
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dl/dl.h"
#include "base/fault.h"
#include "base/status.h"

#ifdef __linux__
#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>

struct mapping {
    uintptr_t address; // somewhere within it
    bool found;
    unsigned device_major, device_minor;
    unsigned long long inode;
};

// Takes over device and inode if the line of /proc/self/maps is the mapping that holds the address.
static void take_line(const char *line, struct mapping *mapping) {
    unsigned long long start, end, inode;
    unsigned device_major, device_minor;
    if (sscanf(line, "%llx-%llx %*s %*x %x:%x %llu", &start, &end, &device_major, &device_minor,
               &inode) != 5 ||
        mapping->address < start || mapping->address >= end) {
        return;
    }
    mapping->found = true;
    mapping->device_major = device_major;
    mapping->device_minor = device_minor;
    mapping->inode = inode;
}

// Looks up both addresses in one pass; stops as soon as both are found.
static enum ggml_host_status find_mappings(struct mapping *a, struct mapping *b) {
    char *line = NULL;
    size_t size = 0;
    FILE *file = ggml_fault(GGML_FAULT_OPEN) ? NULL : fopen("/proc/self/maps", "re");
    if (!file) return GGML_HOST_IO_ERROR;
    while (!(a->found && b->found) && getline(&line, &size, file) > 0) {
        take_line(line, a);
        take_line(line, b);
    }
    free(line);
    fclose(file);
    return GGML_HOST_OK;
}

static enum ggml_host_status different(const char *path) {
    return ggml_fail(GGML_HOST_DAMAGED_FILE,
                     "'%s': the dynamic linker mapped another file than the one that was checked",
                     path);
}

enum ggml_host_status dl_check_mapping(struct dl_library *library, intptr_t file,
                                       const char *path) {
    struct link_map *map = NULL;
    // l_ld is the library's dynamic section: an address that is certainly inside its mapping.
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || !map || !map->l_ld) return GGML_HOST_OK;
    void *page = mmap(NULL, 1, PROT_READ, MAP_PRIVATE, (int)file, 0);
    if (page == MAP_FAILED) {
        return ggml_fail(GGML_HOST_IO_ERROR, "'%s' can't be mapped: %s", path, strerror(errno));
    }
    struct mapping loaded = {.address = (uintptr_t)map->l_ld};
    struct mapping checked = {.address = (uintptr_t)page};
    const enum ggml_host_status status = find_mappings(&loaded, &checked);
    const int why = errno;
    munmap(page, 1);
    if (status != GGML_HOST_OK) {
        if (why == ENOENT) return GGML_HOST_OK; // no /proc
        return ggml_fail(status, "'%s': what was mapped can't be told: %s", path, strerror(why));
    }
    if (!loaded.found || !checked.found) return different(path);
    const bool same = loaded.device_major == checked.device_major &&
                      loaded.device_minor == checked.device_minor && loaded.inode == checked.inode;
    return same ? GGML_HOST_OK : different(path);
}

#else

enum ggml_host_status dl_check_mapping(struct dl_library *library, intptr_t file,
                                       const char *path) {
    (void)library;
    (void)file;
    (void)path;
    return GGML_HOST_OK;
}

#endif

bool dl_takes_path(const char *path) {
#ifdef __APPLE__
    (void)path;
    return true;
#else
    return !strchr(path, '$'); // $ORIGIN, $LIB, $PLATFORM
#endif
}
#endif
