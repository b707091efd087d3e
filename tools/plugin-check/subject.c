// SPDX-License-Identifier: MIT
// A host table that counts calls and allocations and can make them fail, and helpers that open all
// devices, buffer types and streams of the plugin.
#define _GNU_SOURCE
#include "subject.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct host_counters host_counters;

// --- the host table ------------------------------------------------------------------------------

// Drops what the plugin logs; on_log lets a check act in the midst of it.
static void host_log(const struct ggml_host_table *host, int32_t level, const char *text) {
    (void)host;
    (void)level;
    (void)text;
    if (host_counters.on_log) host_counters.on_log();
}

// Keeps the last failure and counts them, for each of two hosts apart.
static void host_set_error(const struct ggml_host_table *host, int32_t status, const char *text) {
    (void)host;
    for (int i = 0; i < 2; ++i) {
        if (host == host_counters.hosts[i]) atomic_fetch_add(&host_counters.n_told[i], 1);
    }
    atomic_fetch_add(&host_counters.n_errors, 1);
    atomic_store(&host_counters.last_status, status);
    snprintf(host_counters.last_error, sizeof(host_counters.last_error), "%s", text ? text : "");
}

// Allocates, counts, and fails the call with the number that a check asked for.
static void *host_alloc(const struct ggml_host_table *host, size_t size, size_t alignment) {
    void *memory = NULL;
    (void)host;
    const long number = atomic_fetch_add(&host_counters.n_allocs, 1) + 1;
    if (number == atomic_load(&host_counters.fail_at) || size == 0) return NULL;
    if (alignment < sizeof(void *)) alignment = sizeof(void *);
    if (size > PTRDIFF_MAX || posix_memalign(&memory, alignment, size) != 0) return NULL;
    atomic_fetch_add(&host_counters.live_blocks, 1);
    return memory;
}

static void host_free(const struct ggml_host_table *host, void *memory) {
    (void)host;
    if (memory) atomic_fetch_sub(&host_counters.live_blocks, 1);
    free(memory);
}

// Counts calls whose struct has no plausible size: such a plugin doesn't set it.
static int32_t host_get_topology(const struct ggml_host_table *host,
                                 struct ggml_host_topology *out_topology) {
    (void)host;
    const size_t least = offsetof(struct ggml_host_topology, n_packages), most = 1 << 16;
    if (out_topology->size <= least || out_topology->size > most)
        atomic_fetch_add(&host_counters.n_unsized, 1);
    return (int32_t)ggml_host_get_topology(out_topology);
}

// Who was bound to what.
enum { MAX_BOUND = 256 };
static pthread_mutex_t bound_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    pid_t thread;
    cpu_set_t set;
} bound[MAX_BOUND];
static int n_bound;

// Binds this thread and notes where to, for life.thread-affinity to compare with.
static void bind_here(const cpu_set_t *set) {
    const pid_t thread = gettid();
    int i = 0;
    if (!host_counters.binds || sched_setaffinity(thread, sizeof(*set), set) != 0) return;
    pthread_mutex_lock(&bound_lock);
    while (i < n_bound && bound[i].thread != thread)
        ++i;
    if (i < MAX_BOUND) {
        bound[i].thread = thread;
        bound[i].set = *set;
        if (i == n_bound) ++n_bound;
    }
    pthread_mutex_unlock(&bound_lock);
}

bool subject_bound_to(pid_t thread, cpu_set_t *out_set) {
    bool found = false;
    pthread_mutex_lock(&bound_lock);
    for (int i = 0; i < n_bound; ++i) {
        if (bound[i].thread != thread) continue;
        *out_set = bound[i].set;
        found = true;
    }
    pthread_mutex_unlock(&bound_lock);
    return found;
}

// The CPUs of this process, before anything was bound.
static cpu_set_t allowed;
__attribute__((constructor)) static void see_allowed(void) {
    sched_getaffinity(0, sizeof(allowed), &allowed);
}

// Thread i of n to the i-th CPU allowed; a count of 0 takes the binding away.
static int32_t host_bind_thread(const struct ggml_host_table *host, uint32_t index,
                                uint32_t count) {
    const uint32_t n = (uint32_t)CPU_COUNT(&allowed);
    cpu_set_t set;
    uint32_t number = 0;
    (void)host;
    CPU_ZERO(&set);
    for (int i = 0; i < CPU_SETSIZE && count > 0 && n > 0; ++i) {
        if (CPU_ISSET(i, &allowed) && number++ == index % n) CPU_SET(i, &set);
    }
    bind_here(count > 0 ? &set : &allowed);
    return GGML_HOST_OK;
}

static int32_t host_bind_mask(const struct ggml_host_table *host, const uint64_t *mask, size_t n) {
    cpu_set_t set;
    (void)host;
    CPU_ZERO(&set);
    for (size_t i = 0; i < 64 * n && i < CPU_SETSIZE; ++i) {
        if (mask[i / 64] >> i % 64 & 1) CPU_SET((int)i, &set);
    }
    bind_here(&set);
    return GGML_HOST_OK;
}

static const char *host_get_config(const struct ggml_host_table *host, const char *name) {
    (void)host;
    return name && strncmp(name, "GGML_", 5) == 0 ? getenv(name) : NULL;
}

static ggml_backend_buffer_type_t memory_type(const struct ggml_host_table *host) {
    (void)host;
    return ggml_backend_cpu_buffer_type();
}

static int32_t memory_from_ptr(const struct ggml_host_table *host, void *ptr, size_t size,
                               ggml_backend_buffer_t *out_buffer) {
    (void)host;
    *out_buffer = ggml_backend_cpu_buffer_from_ptr(ptr, size);
    return (int32_t)(*out_buffer ? GGML_HOST_OK : ggml_last_status());
}

static uint64_t features_here(const struct ggml_host_table *host) {
    (void)host;
    return ggml_host_cpu_features();
}

static const struct ggml_extension_host_memory host_memory = {
    .size = (uint32_t)sizeof(host_memory),
    .revision = GGML_EXTENSION_HOST_MEMORY_REVISION,
    .buffer_type = memory_type,
    .buffer_from_ptr = memory_from_ptr,
};

static const struct ggml_extension_cpu_features cpu_features = {
    .size = (uint32_t)sizeof(cpu_features),
    .revision = GGML_EXTENSION_CPU_FEATURES_REVISION,
    .features = features_here,
};

// Memory of `size` bytes that ends at a page without access: a read behind it crashes. NULL
// without memory.
static void *new_before_nothing(size_t size) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages + page, page, PROT_NONE) != 0) return NULL;
    return pages + page - size;
}

// The extension as it is, or where `small` is set a copy behind which nothing can be read.
static const void *offered(const void *extension, size_t size) {
    void *copy = host_counters.small ? new_before_nothing(size) : NULL;
    return copy ? memcpy(copy, extension, size) : extension;
}

static const void *host_get_extension(const struct ggml_host_table *host, const char *id,
                                      uint32_t min_revision) {
    (void)host;
    if (host_counters.no_extensions || min_revision > 1) return NULL;
    if (strcmp(id, GGML_EXTENSION_HOST_MEMORY) == 0)
        return offered(&host_memory, sizeof(host_memory));
    if (strcmp(id, GGML_EXTENSION_CPU_FEATURES) == 0)
        return offered(&cpu_features, sizeof(cpu_features));
    return NULL;
}

// What a later minor has put where this contract has nothing.
static void later_entry(void) {
}

// A later minor has an entry in each slot that this contract reserves, where a plugin that tests
// them for NULL finds something.
struct ggml_host_table *subject_new_host(size_t size, uint16_t minor) {
    const bool later = minor > GGML_CONTRACT_MINOR;
    char *table = new_before_nothing(size);
    if (!table) return NULL;
    const struct ggml_host_table whole = {
        .size = (uint32_t)size,
        .contract_major = GGML_CONTRACT_MAJOR,
        .contract_minor = minor,
        .host_version = ggml_version(),
        .log = host_log,
        .set_error = host_set_error,
        .alloc = host_alloc,
        .free = host_free,
        .get_topology = host_get_topology,
        .bind_thread = host_bind_thread,
        .bind_thread_mask = host_bind_mask,
        .get_config = host_get_config,
        .get_extension = host_get_extension,
    };
    void (*const entry)(void) = later_entry;
    memcpy(table, &whole, size < sizeof(whole) ? size : sizeof(whole));
    for (size_t at = offsetof(struct ggml_host_table, reserved); later && at < size;
         at += sizeof(entry))
        memcpy(table + at, &entry, sizeof(entry));
    return (struct ggml_host_table *)(void *)table;
}

// --- the plugin ----------------------------------------------------------------------------------

bool subject_map(struct subject *subject, const char *path) {
    *subject = (struct subject){.library = dlopen(path, RTLD_NOW | RTLD_LOCAL)};
    if (!subject->library) return false;
    *(void **)&subject->init = dlsym(subject->library, GGML_PLUGIN_ENTRY_SYMBOL);
    return subject->init != NULL;
}

int32_t subject_init(struct subject *subject) {
    subject->table = NULL;
    if (!subject->host)
        subject->host = subject_new_host(sizeof(*subject->host), GGML_CONTRACT_MINOR);
    return subject->host ? subject->init(subject->host, &subject->table) : GGML_HOST_OUT_OF_MEMORY;
}

void subject_shutdown(struct subject *subject) {
    if (subject->table && subject->table->shutdown)
        subject->table->shutdown(subject->table, subject->host);
    subject->table = NULL;
}

void subject_unmap(struct subject *subject) {
    if (subject->library) dlclose(subject->library);
    subject->library = NULL;
}

bool subject_found_no_device(int32_t status) {
    return status == GGML_HOST_NO_DEVICE ||
           (status == GGML_HOST_INIT_FAILED &&
            atomic_load(&host_counters.last_status) == GGML_HOST_NO_DEVICE);
}

static const struct check_run *opened_by; // a check has a process of its own

// Maps and starts the plugin; fails the check if it can't, skips it without a device.
void subject_open(const struct check_run *run, struct subject *subject) {
    opened_by = run;
    if (!subject_map(subject, run->path)) check_fail(run, "can't be mapped: %s", dlerror());
    const int32_t status = subject_init(subject);
    if (subject_found_no_device(status)) check_skip(run, "no device: %s", host_counters.last_error);
    CHECK_THAT(run, status == GGML_HOST_OK, "ggml_backend_init answers status %d (%s): %s", status,
               status_text(status), host_counters.last_error);
    CHECK_THAT(run, subject->table && subject->table->reg, "ggml_backend_init gives no backend");
}

// A device's name for messages; devices without one are a finding of their own.
const char *label(ggml_backend_dev_t device) {
    const char *name = device && device->table->get_name ? device->table->get_name(device) : NULL;
    return name ? name : "(unnamed)";
}

// An object and a failure, or neither, is what no host can use.
static void *made(ggml_backend_dev_t device, const char *what, int32_t status, void *object) {
    if ((status == GGML_HOST_OK) != (object != NULL))
        check_fail(opened_by, "%s: %s returns status %d (%s) and makes %s", label(device), what,
                   (int)status, status_text(status), object ? "an object" : "none");
    return object;
}

ggml_backend_t make_stream(ggml_backend_dev_t device, const char *params) {
    ggml_backend_t stream = NULL;
    const int32_t status = device->table->init_backend(device, params, &stream);
    return made(device, "init_backend", status, stream);
}

ggml_backend_event_t make_event(ggml_backend_dev_t device) {
    ggml_backend_event_t event = NULL;
    if (!device->table->event_new) return NULL;
    const int32_t status = device->table->event_new(device, &event);
    return made(device, "event_new", status, event);
}

ggml_backend_buffer_t wrap_memory(ggml_backend_dev_t device, void *memory, size_t size,
                                  size_t max_tensor_size) {
    ggml_backend_buffer_t buffer = NULL;
    if (!device->table->buffer_from_host_ptr) return NULL;
    const int32_t status =
        device->table->buffer_from_host_ptr(device, memory, size, max_tensor_size, &buffer);
    return made(device, "buffer_from_host_ptr", status, buffer);
}

// The plugin's devices, or the one that was chosen; at most MAX_DEVICES.
void devices_open(const struct check_run *run, struct devices *out_devices) {
    struct devices *devices = out_devices;
    *devices = (struct devices){.n = 0};
    subject_open(run, &devices->subject);
    devices->reg = devices->subject.table->reg;
    const size_t count = devices->reg->table->get_device_count(devices->reg);
    for (size_t i = 0; i < count && devices->n < MAX_DEVICES; ++i) {
        ggml_backend_dev_t device = devices->reg->table->get_device(devices->reg, i);
        if (!device || (run->device && strcmp(label(device), run->device) != 0)) continue;
        devices->items[devices->n++] = device;
    }
    if (devices->n == 0 && run->device) check_fail(run, "no device is called %s", run->device);
    if (devices->n == 0) check_skip(run, "no device on this machine");
}

// Adds a buffer type unless it is there: devices may share one.
static void add_buft(struct bufts *bufts, ggml_backend_buffer_type_t buft, ggml_backend_dev_t dev) {
    for (int i = 0; i < bufts->n; ++i) {
        if (bufts->items[i] == buft) return;
    }
    if (!buft || bufts->n == MAX_BUFTS) return;
    bufts->owners[bufts->n] = dev;
    bufts->items[bufts->n++] = buft;
}

void bufts_open(const struct check_run *run, struct bufts *out_bufts) {
    out_bufts->n = 0;
    devices_open(run, &out_bufts->devices);
    for (int i = 0; i < out_bufts->devices.n; ++i) {
        ggml_backend_dev_t device = out_bufts->devices.items[i];
        const struct ggml_device_table *table = device->table;
        add_buft(out_bufts, table->get_buffer_type(device), device);
        if (table->get_host_buffer_type)
            add_buft(out_bufts, table->get_host_buffer_type(device), device);
    }
    if (out_bufts->n == 0) check_skip(run, "no buffer type");
}

void bufts_add_extra(struct bufts *bufts) {
    ggml_backend_reg_t reg = bufts->devices.reg;
    ggml_backend_dev_get_extra_bufts_t extra = NULL;
    if (reg->table->get_proc_address)
        *(void **)&extra = reg->table->get_proc_address(reg, "ggml_backend_dev_get_extra_bufts");
    for (int i = 0; i < bufts->devices.n && extra; ++i) {
        ggml_backend_dev_t device = bufts->devices.items[i];
        const ggml_backend_buffer_type_t *types = extra(device);
        for (int j = 0; types && types[j]; ++j)
            add_buft(bufts, types[j], device);
    }
}

// --- numbers -------------------------------------------------------------------------------------

// SplitMix64 (Steele, Lea, Flood, 2014): any seed will do, also 0.
uint64_t numbers_next(struct numbers *numbers) {
    uint64_t z = (numbers->state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

void numbers_fill(struct numbers *numbers, void *memory, size_t size) {
    for (size_t i = 0; i < size; ++i)
        ((unsigned char *)memory)[i] = (unsigned char)numbers_next(numbers);
}

float numbers_float(struct numbers *numbers) {
    return (float)(numbers_next(numbers) >> 40) * 0x1p-23f - 1.0f;
}
