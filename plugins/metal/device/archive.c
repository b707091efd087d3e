// SPDX-License-Identifier: MIT
// One file for each device and source of kernels. Metal reads it by its path, and trusts what is in
// it: so the file and its folder have to be the user's own, and nobody else's to write. A new file
// takes the place of the old at once. Metal itself refuses one that another version of the system
// has made; then it is begun anew.
#define _GNU_SOURCE
#include "device/archive.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu/base/folder.h"
#include "gpu/base/util.h"

// --- where ---------------------------------------------------------------------------------------

// Of the user's environment, which the host's table does not have. A program with more rights than
// its caller does not follow the caller's variables.
static const char *variable(const char *name) {
#ifdef __APPLE__
    const char *value = issetugid() ? NULL : getenv(name);
#else
    const char *value = secure_getenv(name);
#endif
    return value ? value : "";
}

// The folder, made if it isn't there. False: no file is to be used.
static bool find_folder(char *out_path, size_t size) {
    const char *own = gpu_config("GGML_METAL_CACHE"), *base = variable("XDG_CACHE_HOME"),
               *home = variable("HOME");
    struct stat about;
    if (*own) {
        snprintf(out_path, size, "%s", own);
    } else if (*base == '/') {
        snprintf(out_path, size, "%s/ggml-host", base);
    } else if (*home == '/') {
        snprintf(out_path, size, "%s/.cache/ggml-host", home);
    } else {
        return false;
    }
    return gpu_folder_is_trusted(out_path, true) && stat(out_path, &about) == 0 &&
           S_ISDIR(about.st_mode) && about.st_uid == geteuid() &&
           (about.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// FNV-1a.
static uint64_t hash_of(const char *text) {
    uint64_t hash = UINT64_C(14695981039346656037);
    for (; *text; ++text)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return hash;
}

static bool is_own_file(const char *path) {
    struct stat about;
    return lstat(path, &about) == 0 && S_ISREG(about.st_mode) && about.st_uid == geteuid() &&
           (about.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

static mtl_id url_of(const char *path) {
    return mtl_url_of_path(mtl_api.get_class("NSURL"),
                           mtl_string(mtl_api.get_class("NSString"), path));
}

// --- the archive ---------------------------------------------------------------------------------

// An empty one without a URL.
static mtl_id read_archive(mtl_id device, mtl_id url) {
    mtl_id error = NULL;
    const mtl_id descriptor = mtl_new(mtl_api.get_class("MTLBinaryArchiveDescriptor"));
    if (!descriptor) return NULL;
    if (url) mtl_set_url(descriptor, url);
    const mtl_id archive = mtl_new_archive(device, descriptor, &error);
    mtl_release(descriptor);
    return archive;
}

void metal_archive_open(struct metal_archive *archive, mtl_id device, const char *source) {
    char folder[METAL_ARCHIVE_PATH - 80];
    *archive = (struct metal_archive){0};
    if (!find_folder(folder, sizeof(folder))) return;
    snprintf(archive->path, sizeof(archive->path), "%s/metal-%016llx-%016llx.archive", folder,
             (unsigned long long)mtl_registry_id(device), (unsigned long long)hash_of(source));
    if (is_own_file(archive->path)) archive->handle = read_archive(device, url_of(archive->path));
    if (!archive->handle) archive->handle = read_archive(device, NULL);
}

void metal_archive_write(struct metal_archive *archive) {
    char path[METAL_ARCHIVE_PATH + 32];
    mtl_id error = NULL;
    if (!archive->handle || !archive->is_changed) return;
    archive->is_changed = false;
    snprintf(path, sizeof(path), "%s.%ld", archive->path, (long)getpid());
    remove(path); // of a process that ended on the way
    const mtl_id url = url_of(path);
    if (!url || !mtl_serialize(archive->handle, url, &error) || chmod(path, 0600) != 0 ||
        rename(path, archive->path) != 0)
        remove(path);
}

mtl_id metal_archive_pipeline(struct metal_archive *archive, mtl_id device, mtl_id function,
                              mtl_id *out_error) {
    mtl_id error = NULL;
    if (!archive->handle) return mtl_new_pipeline(device, function, out_error);
    const mtl_id descriptor = mtl_new(mtl_api.get_class("MTLComputePipelineDescriptor"));
    const mtl_id archives = mtl_array_of(mtl_api.get_class("NSArray"), archive->handle);
    if (!descriptor || !archives) {
        mtl_release(descriptor);
        return mtl_new_pipeline(device, function, out_error);
    }
    mtl_set_function(descriptor, function);
    mtl_set_archives(descriptor, archives);
    // Fails where it isn't in the archive.
    mtl_id pipeline =
        mtl_new_pipeline_of(device, descriptor, MTL_PIPELINE_FROM_ARCHIVE, NULL, &error);
    if (!pipeline) {
        archive->is_changed |= mtl_add_to_archive(archive->handle, descriptor, &error);
        pipeline = mtl_new_pipeline_of(device, descriptor, 0, NULL, out_error);
    }
    mtl_release(descriptor);
    return pipeline;
}
