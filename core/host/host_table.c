// SPDX-License-Identifier: MIT
#include "host/host_table.h"

#include <pthread.h>
#include <string.h>

#include "base/env.h"
#include "base/mem.h"
#include "base/status.h"
#include "ggml-impl.h"
#include "host/topology.h"

static void table_log(const struct ggml_host_table *host, int32_t level, const char *text) {
    (void)host;
    if (text) ggml_log_internal((enum ggml_log_level)level, "%s", text);
}

static void table_set_error(const struct ggml_host_table *host, int32_t status, const char *text) {
    (void)host;
    ggml_fail((enum ggml_host_status)status, "%s", text ? text : "");
}

static void *table_alloc(const struct ggml_host_table *host, size_t size, size_t alignment) {
    (void)host;
    const bool valid = size > 0 && alignment > 0 && (alignment & (alignment - 1)) == 0;
    void *memory = valid ? ggml_mem_aligned_alloc(alignment, size) : NULL;
    if (!valid) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                  "host alloc: %zu bytes aligned to %zu: the size must "
                  "not be 0 and the alignment a power of two",
                  size, alignment);
    } else if (!memory) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "host alloc: no memory for %zu bytes", size);
    }
    return memory;
}

static void table_free(const struct ggml_host_table *host, void *memory) {
    (void)host;
    ggml_mem_aligned_free(memory);
}

static int32_t table_get_topology(const struct ggml_host_table *host,
                                  struct ggml_host_topology *out_topology) {
    (void)host;
    return (int32_t)topology_get(out_topology);
}

static int32_t table_bind_thread(const struct ggml_host_table *host, uint32_t index,
                                 uint32_t count) {
    (void)host;
    return (int32_t)topology_bind_thread(index, count);
}

static int32_t table_bind_thread_mask(const struct ggml_host_table *host, const uint64_t *mask,
                                      size_t n_words) {
    (void)host;
    return (int32_t)topology_bind_mask(mask, n_words);
}

static const char *table_get_config(const struct ggml_host_table *host, const char *name) {
    (void)host;
    return name ? ggml_env_by_name(name) : NULL;
}

static const struct ggml_extension_host_memory host_memory = {
    .size = (uint32_t)sizeof(host_memory),
    .revision = GGML_EXTENSION_HOST_MEMORY_REVISION,
    .buffer_type = ggml_backend_cpu_buffer_type,
    .buffer_from_ptr = ggml_backend_cpu_buffer_from_ptr,
};

static const struct ggml_extension_cpu_features cpu_features = {
    .size = (uint32_t)sizeof(cpu_features),
    .revision = GGML_EXTENSION_CPU_FEATURES_REVISION,
    .features = ggml_host_cpu_features,
};

static const void *table_get_extension(const struct ggml_host_table *host, const char *id,
                                       uint32_t min_revision) {
    (void)host;
    if (!id) return NULL;
    if (strcmp(id, GGML_EXTENSION_HOST_MEMORY) == 0) {
        return min_revision <= host_memory.revision ? &host_memory : NULL;
    }
    if (strcmp(id, GGML_EXTENSION_CPU_FEATURES) == 0) {
        return min_revision <= cpu_features.revision ? &cpu_features : NULL;
    }
    return NULL;
}

static struct ggml_host_table table = {
    .size = (uint32_t)sizeof(table),
    .contract_major = GGML_CONTRACT_MAJOR,
    .contract_minor = GGML_CONTRACT_MINOR,
    .log = table_log,
    .set_error = table_set_error,
    .alloc = table_alloc,
    .free = table_free,
    .get_topology = table_get_topology,
    .bind_thread = table_bind_thread,
    .bind_thread_mask = table_bind_thread_mask,
    .get_config = table_get_config,
    .get_extension = table_get_extension,
};

static void complete_table(void) {
    table.host_version = ggml_version();
}

const struct ggml_host_table *host_table(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, complete_table);
    return &table;
}
