// SPDX-License-Identifier: MIT
// The plugins of the tests: one source, one defect or trait each (see meson.build). Whoever maps
// one finds its name in the file that GGML_TEST_MARKER names.
#if defined(FIXTURE_MEDDLES) && !defined(_WIN32)
#define _GNU_SOURCE
#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#endif
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include "ggml-impl.h"
#include "ggml-plugin.h"
#include "ggml-shape.h"

enum defect {
    NO_DEFECT,
    INIT_FAILS,
    NO_TABLE,
    NO_DEVICES,
    DEVICES_LATER,
    NO_SUPPORTS_OP,
    NO_REG_NAME,
    OLD_API_VERSION,
    SHORT_TABLE,
    SAME_NAMES,
    BAD_NAME,
    SCORE_ZERO,
    NULL_DEVICE,
    LOGS,
    WAITS,
    GROWS,
};

struct fixture_extension {
    int32_t (*find_one_more)(void);
    int32_t (*find_two_more)(void);
};

#ifndef FIXTURE_DEFECT
#define FIXTURE_DEFECT NO_DEFECT
#endif
#ifndef FIXTURE_FLAGS
#define FIXTURE_FLAGS 0
#endif
#ifndef FIXTURE_DEVICES
#define FIXTURE_DEVICES                                                                            \
    { GGML_PLUGIN_NAME "0", NULL, GGML_BACKEND_DEVICE_TYPE_ACCEL }
#endif

struct row {
    const char *name;
    const char *id;
    enum ggml_backend_dev_type type;
};

static const struct row rows[] = {FIXTURE_DEVICES};
enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };
static struct ggml_backend_device devices[N_ROWS];

#ifdef FIXTURE_HELPER
__attribute__((visibility("default"))) int fixture_helper(void);
#else
static int fixture_helper(void) {
    return 0;
}
#endif

__attribute__((constructor)) static void leave_marker(void) {
    const char *path = getenv("GGML_TEST_MARKER");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file) return;
    fprintf(file, "%s\n", GGML_PLUGIN_NAME GGML_PLUGIN_VARIANT);
    fclose(file);
}

#if defined(FIXTURE_MEDDLES) && !defined(_WIN32)
// What constructors of drivers and flags like -Ofast do to the process.
static void meddle(void) {
    sigset_t set;
    struct rlimit limit;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    fesetround(FE_UPWARD);
    umask(077);
    if (chdir("/") != 0) abort();
    if (getrlimit(RLIMIT_CORE, &limit) != 0) abort();
    limit.rlim_cur = limit.rlim_cur == 4096 ? 0 : 4096;
    setrlimit(RLIMIT_CORE, &limit);
}
__attribute__((constructor)) static void meddle_first(void) {
    meddle();
}
__attribute__((destructor)) static void meddle_last(void) {
    meddle();
}
#endif

// --- stream --------------------------------------------------------------------------------------

static const char *stream_name(ggml_backend_t backend) {
    return rows[backend->device - devices].name;
}

static void stream_free(ggml_backend_t backend) {
    ggml_aligned_free(backend, sizeof(*backend));
}

static int32_t stream_compute(ggml_backend_t backend, const struct ggml_graph *graph) {
    (void)backend;
    return graph->n_nodes == 0 ? GGML_HOST_OK : GGML_HOST_FAILED;
}

// What GGML_WAITS_MODE says: what was queued has failed, or memory is tight and half of it does.
static int32_t stream_wait(ggml_backend_t backend) {
    (void)backend;
    const struct ggml_host_table *host = ggml_sdk_host();
    const char *mode = host->get_config(host, "GGML_WAITS_MODE");
    if (mode && strcmp(mode, "fail") == 0) {
        ggml_sdk_fail(GGML_HOST_DEVICE_LOST, "queued work failed");
        return GGML_HOST_DEVICE_LOST;
    }
    if (mode && strcmp(mode, "fail-silently") == 0) return GGML_HOST_DEVICE_LOST;
    if (mode && strcmp(mode, "recover") == 0) {
        void *memory = host->alloc(host, SIZE_MAX - 8, 64);
        if (!memory) memory = host->alloc(host, 64, 64);
        host->free(host, memory);
    }
    return GGML_HOST_OK;
}

static const struct ggml_stream_table stream_table = {
    .size = sizeof(struct ggml_stream_table),
    .guid = {'f', 'i', 'x'},
    .get_name = stream_name,
    .free = stream_free,
    .synchronize = FIXTURE_DEFECT == WAITS ? stream_wait : NULL,
    .graph_compute = stream_compute,
};

// --- device --------------------------------------------------------------------------------------

static const char *device_name(ggml_backend_dev_t device) {
    if (FIXTURE_DEFECT == SAME_NAMES) return "TWIN";
    if (FIXTURE_DEFECT == BAD_NAME) return "\xc3\x28";
    return rows[device - devices].name;
}

static void device_memory(ggml_backend_dev_t device, size_t *free, size_t *total) {
    (void)device;
    *free = 1u << 20;
    *total = 2u << 20;
}

static enum ggml_backend_dev_type device_type(ggml_backend_dev_t device) {
    return rows[device - devices].type;
}

static void device_props(ggml_backend_dev_t device, struct ggml_backend_dev_props *props) {
    props->name = device_name(device);
    props->description = device_name(device);
    props->type = device_type(device);
    props->device_id = rows[device - devices].id;
    device_memory(device, &props->memory_free, &props->memory_total);
}

static int32_t device_init(ggml_backend_dev_t device, const char *params,
                           ggml_backend_t *out_stream) {
    (void)params;
    struct ggml_backend *backend = ggml_aligned_malloc(sizeof(*backend));
    if (!backend) return GGML_HOST_OUT_OF_MEMORY;
    memset(backend, 0, sizeof(*backend));
    backend->table = &stream_table;
    backend->device = device;
    *out_stream = backend;
    return GGML_HOST_OK;
}

static ggml_backend_buffer_type_t device_buffer_type(ggml_backend_dev_t device) {
    (void)device;
    return ggml_backend_cpu_buffer_type();
}

static bool device_supports_op(ggml_backend_dev_t device, const struct ggml_tensor *op) {
    (void)device;
    return ggml_node_is_known(op) && ggml_op_is_empty(op->op);
}

static bool device_supports_buft(ggml_backend_dev_t device, ggml_backend_buffer_type_t buft) {
    return buft == device_buffer_type(device);
}

static const struct ggml_device_table device_table = {
    .size = sizeof(device_table),
    .get_name = device_name,
    .get_description = device_name,
    .get_memory = device_memory,
    .get_type = device_type,
    .get_props = device_props,
    .init_backend = device_init,
    .get_buffer_type = device_buffer_type,
    .supports_op = FIXTURE_DEFECT == NO_SUPPORTS_OP ? NULL : device_supports_op,
    .supports_buft = device_supports_buft,
};

// --- backend -------------------------------------------------------------------------------------

static const char *reg_name(ggml_backend_reg_t reg) {
    (void)reg;
    return GGML_PLUGIN_NAME;
}

static atomic_size_t n_found; // of a plugin that GROWS
static atomic_bool finds_while_asked;

// What the application calls, and calls itself what that returns.
static int32_t find_one_more(void) {
    const struct ggml_host_table *host = ggml_sdk_host();
    const struct ggml_extension_registry *registry =
        host->get_extension(host, GGML_EXTENSION_REGISTRY, GGML_EXTENSION_REGISTRY_REVISION);
    if (atomic_load(&n_found) < N_ROWS) atomic_fetch_add(&n_found, 1);
    return registry->devices_changed(host);
}

// The second while the host asks about the first.
static int32_t find_two_more(void) {
    atomic_store(&finds_while_asked, true);
    return find_one_more();
}

static size_t reg_count(ggml_backend_reg_t reg) {
    (void)reg;
    if (FIXTURE_DEFECT == GROWS) {
        const size_t count = atomic_load(&n_found);
        if (atomic_exchange(&finds_while_asked, false)) find_one_more();
        return count;
    }
    return FIXTURE_DEFECT == NO_DEVICES || FIXTURE_DEFECT == DEVICES_LATER ? 0 : N_ROWS;
}

static ggml_backend_dev_t reg_device(ggml_backend_reg_t reg, size_t index) {
    (void)reg;
    return FIXTURE_DEFECT == NULL_DEVICE ? NULL : &devices[index];
}

static ggml_backend_dev_t find_device(void) {
    return &devices[0];
}

// Finds a device of that name somewhere else.
static ggml_backend_reg_t find_backend(const char *name) {
    if (strcmp(name, "remote") != 0) return NULL;
    find_one_more();
    return devices[0].reg;
}

static void *reg_procedure(ggml_backend_reg_t reg, const char *name) {
    (void)reg;
    void *procedure = NULL;
    ggml_backend_dev_t (*const found)(void) = find_device;
    ggml_backend_reg_t (*const by_name)(const char *) = find_backend;
    if (FIXTURE_DEFECT != GROWS && strcmp(name, "find_device") == 0)
        memcpy(&procedure, &found, sizeof(procedure));
    if (FIXTURE_DEFECT == GROWS && strcmp(name, "ggml_backend_reg_by_name") == 0)
        memcpy(&procedure, &by_name, sizeof(procedure));
    return procedure;
}

// One that GROWS without saying so has none, by which its devices could come.
#define HAS_PROCEDURES                                                                             \
    (FIXTURE_DEFECT == DEVICES_LATER ||                                                            \
     (FIXTURE_DEFECT == GROWS && (FIXTURE_FLAGS)&GGML_PLUGIN_FLAG_DYNAMIC_DEVICES))

static const struct ggml_backend_table reg_table = {
    .size = sizeof(reg_table),
    .get_name = FIXTURE_DEFECT == NO_REG_NAME ? NULL : reg_name,
    .get_device_count = reg_count,
    .get_device = reg_device,
    .get_proc_address = HAS_PROCEDURES ? reg_procedure : NULL,
};

// Of one with ggml's own interface the first member is a version.
static struct ggml_backend_reg fixture_reg = {
    .table = FIXTURE_DEFECT == OLD_API_VERSION ? (const struct ggml_backend_table *)2 : &reg_table,
};

static ggml_backend_reg_t fixture_start(void) {
    const struct ggml_host_table *host = ggml_sdk_host();
    if (FIXTURE_DEFECT == INIT_FAILS) {
        host->set_error(host, GGML_HOST_FAILED, "the driver is on strike");
        return NULL;
    }
    if (FIXTURE_DEFECT == LOGS) {
        GGML_LOG_INFO("hello from the entry\n");
        GGML_LOG_WARN("the driver is old");
        GGML_LOG_CONT(" and slow\n");
        GGML_LOG_INFO("nothing");
        GGML_LOG_CONT(" of importance\n");
        GGML_LOG_ERROR("one device was left out\n");
    }
    for (int i = 0; i < N_ROWS; ++i) {
        devices[i].table = &device_table;
        devices[i].reg = &fixture_reg;
    }
    return &fixture_reg;
}

// Valid, or as GGML_GROWS_DETAILS says.
static const struct ggml_backend_feature *fixture_details(ggml_backend_dev_t device) {
    static char endless[256];
    static const struct ggml_backend_feature list[] = {{"driver", "fixture"}, {NULL, NULL}};
    static const struct ggml_backend_feature broken[] = {{"driver", endless}, {NULL, NULL}};
    const struct ggml_host_table *host = ggml_sdk_host();
    const char *mode = host->get_config(host, "GGML_GROWS_DETAILS");
    memset(endless, 'x', sizeof(endless) - 1);
    if (mode && strcmp(mode, "broken") == 0) return broken;
    return device == &devices[0] ? list : NULL;
}

static const void *fixture_extension(const char *id, uint32_t min_revision) {
    static const struct ggml_extension_device_info info = {
        .size = sizeof(info), .revision = 1, .info = fixture_details};
    static const struct fixture_extension table = {find_one_more, find_two_more};
    const struct ggml_host_table *host = ggml_sdk_host();
    if (strcmp(id, "org.example.grow") == 0) return min_revision <= 1 ? &table : NULL;
    if (strcmp(id, "org.example.file") == 0) return ggml_sdk_plugin_file();
    if (strcmp(id, "org.example.folder") == 0) return ggml_sdk_plugin_folder();
    if (strcmp(id, GGML_EXTENSION_DEVICE_INFO) == 0) return min_revision <= 1 ? &info : NULL;
    if (strcmp(id, "org.example.echo") == 0)
        return host->get_extension(host, "org.example.application", min_revision);
    return NULL;
}

static int fixture_score(void) {
    return FIXTURE_DEFECT == SCORE_ZERO ? 0 : 1 + fixture_helper();
}

GGML_PLUGIN_NOTE(GGML_PLUGIN_NAME, GGML_PLUGIN_VARIANT, "1.2", GGML_PLUGIN_PRIORITY,
                 GGML_PLUGIN_CPU_FEATURES, FIXTURE_FLAGS)

GGML_PLUGIN_EXPORT int32_t ggml_backend_init(const struct ggml_host_table *host,
                                             const struct ggml_plugin_table **out_plugin);
GGML_PLUGIN_EXPORT int32_t ggml_backend_init(const struct ggml_host_table *host,
                                             const struct ggml_plugin_table **out_plugin) {
    static struct ggml_sdk_plugin plugin = {.note = &GGML_PLUGIN_NOTE_NAME,
                                            .start = fixture_start,
                                            .score = fixture_score,
                                            .get_extension =
                                                FIXTURE_DEFECT == GROWS ? fixture_extension : NULL};
    const int32_t status = ggml_sdk_enter(&plugin, host, out_plugin);
    if (FIXTURE_DEFECT == SHORT_TABLE) plugin.table.size = 12;
    if (FIXTURE_DEFECT == NO_TABLE) *out_plugin = NULL;
    return status;
}
