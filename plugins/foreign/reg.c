// SPDX-License-Identifier: MIT
// What is registered: the devices of every binary that the environment names under one backend
// "foreign", and those of a binary that the application opens, or a server that it adds, under the
// names that they have.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

#include "files.h"
#include "foreign.h"

enum { MAX_DEVICES = 256, MAX_FILES = 64 };

struct foreign_reg {
    struct ggml_backend_reg reg;
    struct foreign_reg *next;
    struct foreign_binary *binary;
    void *theirs;
    size_t n_devices;
    struct foreign_device *devices;
};

// The files of the environment, of which the same list is tried once.
struct opened {
    char *list;
    struct foreign_binary *binaries[MAX_FILES];
    size_t n_binaries;
    struct foreign_device *devices[MAX_DEVICES];
    size_t n_devices;
    struct ggml_backend_feature features[MAX_FILES + 1]; // ends with NULLs
    size_t n_features;
    char first_refusal[FOREIGN_MESSAGE_SIZE];
};

static pthread_mutex_t regs_lock = PTHREAD_MUTEX_INITIALIZER;
static struct foreign_reg *regs;
static struct opened opened;
static struct foreign_device *made[MAX_DEVICES]; // for it, by this list or an earlier one
static size_t n_made;
static struct ggml_backend_reg all;

ggml_backend_dev_t foreign_device_of(const void *theirs) {
    for (size_t i = 0; theirs && i < n_made; ++i) {
        if (made[i]->theirs == theirs) return &made[i]->device;
    }
    ggml_backend_dev_t found = NULL;
    pthread_mutex_lock(&regs_lock);
    for (struct foreign_reg *reg = regs; theirs && reg && !found; reg = reg->next) {
        for (size_t i = 0; i < reg->n_devices; ++i) {
            if (reg->devices[i].theirs == theirs) found = &reg->devices[i].device;
        }
    }
    pthread_mutex_unlock(&regs_lock);
    return found;
}

static size_t count_of(const struct foreign_binary *binary, void *theirs) {
    typedef size_t (*entry_t)(void *);
    return FOREIGN_ENTRY(binary, theirs, reg_get_device_count, entry_t)(theirs);
}

static void *device_of(const struct foreign_binary *binary, void *theirs, size_t index) {
    typedef void *(*entry_t)(void *, size_t);
    return FOREIGN_ENTRY(binary, theirs, reg_get_device, entry_t)(theirs, index);
}

// --- named functions -----------------------------------------------------------------------------

static void set_n_threads(ggml_backend_t backend, int n_threads) {
    struct foreign_binary *binary;
    void *theirs = foreign_stream_theirs(backend, &binary);
    typedef void (*set_t)(void *, int);
    const set_t set =
        theirs ? (set_t)foreign_binary_proc(binary, "ggml_backend_set_n_threads") : NULL;
    if (set) set(theirs, n_threads);
}

static void set_abort_callback(ggml_backend_t backend, ggml_abort_callback callback, void *data) {
    struct foreign_binary *binary;
    void *theirs = foreign_stream_theirs(backend, &binary);
    typedef void (*set_t)(void *, ggml_abort_callback, void *);
    const set_t set =
        theirs ? (set_t)foreign_binary_proc(binary, "ggml_backend_set_abort_callback") : NULL;
    if (set) set(theirs, callback, data);
}

static ggml_backend_buffer_type_t *get_extra_bufts(ggml_backend_dev_t device) {
    struct foreign_device *own = (struct foreign_device *)device;
    typedef void **(*get_t)(void *);
    size_t count = 0;
    const get_t get = (get_t)foreign_binary_proc(own->binary, "ggml_backend_dev_get_extra_bufts");
    foreign_lock(own->binary);
    void **theirs = get ? get(own->theirs) : NULL;
    foreign_unlock(own->binary);
    for (; theirs && *theirs && count < FOREIGN_MAX_EXTRA; ++theirs) {
        ggml_backend_buffer_type_t buft = foreign_buft_of(own->binary, *theirs);
        if (foreign_buft_own(buft)) foreign_buft_own(buft)->repacked = true;
        if (buft) own->extra[count++] = buft;
    }
    return own->extra;
}

static struct ggml_backend_feature *get_features(ggml_backend_reg_t reg) {
    if (reg == &all) return opened.features;
    const struct foreign_reg *own = (const struct foreign_reg *)reg;
    typedef struct ggml_backend_feature *(*get_t)(void *);
    const get_t get = (get_t)foreign_binary_proc(own->binary, "ggml_backend_get_features");
    return get ? get(own->theirs) : NULL;
}

// Servers of ggml-rpc: their devices are offered under a registration of their own.
static ggml_backend_reg_t rpc_add_server(const char *endpoint) {
    typedef void *(*add_t)(const char *);
    for (size_t i = 0; i < opened.n_binaries; ++i) {
        struct foreign_binary *binary = opened.binaries[i];
        const add_t add = (add_t)foreign_binary_proc(binary, "ggml_backend_rpc_add_server");
        if (!add) continue;
        foreign_lock(binary);
        void *theirs = add(endpoint);
        foreign_unlock(binary);
        if (theirs) return foreign_reg_of(binary, theirs);
        foreign_fail(GGML_HOST_NO_DEVICE, "%s: no server answers at %s", binary->path, endpoint);
        return NULL;
    }
    foreign_fail(GGML_HOST_UNSUPPORTED, "none of the files in GGML_FOREIGN_PATH knows servers");
    return NULL;
}

static ggml_backend_reg_t foreign_load(const char *path) {
    char message[FOREIGN_MESSAGE_SIZE];
    struct foreign_binary *binary = foreign_file_open(path, message);
    if (binary) return foreign_reg_of(binary, binary->reg);
    foreign_fail(GGML_HOST_INIT_FAILED, "%s", message);
    return NULL;
}

static void *address_of(foreign_fn function) {
    void *address;
    memcpy(&address, &function, sizeof(address));
    return address;
}

static void *reg_proc_address(ggml_backend_reg_t reg, const char *name) {
    const struct {
        const char *name;
        foreign_fn function;
    } functions[] = {
        {"ggml_backend_set_n_threads", (foreign_fn)set_n_threads},
        {"ggml_backend_set_abort_callback", (foreign_fn)set_abort_callback},
        {"ggml_backend_dev_get_extra_bufts", (foreign_fn)get_extra_bufts},
        {"ggml_backend_get_features", (foreign_fn)get_features},
        {"ggml_backend_rpc_add_server", (foreign_fn)rpc_add_server},
        {"ggml_backend_foreign_load", (foreign_fn)foreign_load},
    };
    (void)reg;
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); ++i) {
        if (strcmp(functions[i].name, name) == 0) return address_of(functions[i].function);
    }
    return NULL;
}

// --- one registration of a binary ----------------------------------------------------------------

static const char *reg_name(ggml_backend_reg_t reg) {
    const struct foreign_reg *own = (const struct foreign_reg *)reg;
    typedef const char *(*entry_t)(void *);
    return FOREIGN_ENTRY(own->binary, own->theirs, reg_get_name, entry_t)(own->theirs);
}

static size_t reg_device_count(ggml_backend_reg_t reg) {
    return ((const struct foreign_reg *)reg)->n_devices;
}

static ggml_backend_dev_t reg_device(ggml_backend_reg_t reg, size_t index) {
    return &((const struct foreign_reg *)reg)->devices[index].device;
}

static const struct ggml_backend_table reg_table = {
    .size = sizeof(reg_table),
    .get_name = reg_name,
    .get_device_count = reg_device_count,
    .get_device = reg_device,
    .get_proc_address = reg_proc_address,
};

static struct foreign_reg *reg_new(struct foreign_binary *binary, void *theirs) {
    struct foreign_reg *own = calloc(1, sizeof(*own));
    const size_t count = count_of(binary, theirs);
    struct foreign_device *devices = calloc(count + 1, sizeof(*devices));
    if (!own || !devices) {
        free(own);
        free(devices);
        foreign_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for %zu devices of %s", count,
                     binary->path);
        return NULL;
    }
    own->reg.table = &reg_table;
    own->binary = binary;
    own->theirs = theirs;
    own->devices = devices;
    own->n_devices = count;
    for (size_t i = 0; i < count; ++i)
        foreign_device_init(&devices[i], binary, device_of(binary, theirs, i), &own->reg);
    return own;
}

ggml_backend_reg_t foreign_reg_of(struct foreign_binary *binary, void *theirs) {
    pthread_mutex_lock(&regs_lock);
    struct foreign_reg *own = regs;
    while (own && own->theirs != theirs)
        own = own->next;
    if (!own && (own = reg_new(binary, theirs)) != NULL) {
        own->next = regs;
        regs = own;
    }
    pthread_mutex_unlock(&regs_lock);
    return own ? &own->reg : NULL;
}

// --- all files of the environment ----------------------------------------------------------------

static const char *all_name(ggml_backend_reg_t reg) {
    (void)reg;
    return "foreign";
}

static size_t all_count(ggml_backend_reg_t reg) {
    (void)reg;
    return opened.n_devices;
}

static ggml_backend_dev_t all_device(ggml_backend_reg_t reg, size_t index) {
    (void)reg;
    return &opened.devices[index]->device;
}

// Two binaries may have a "CPU" each.
static void make_name_unique(struct foreign_device *device) {
    const size_t length = strlen(device->name);
    for (int number = 2;; ++number) {
        bool taken = false;
        for (size_t i = 0; i < opened.n_devices; ++i)
            taken |= strcmp(opened.devices[i]->name, device->name) == 0;
        if (!taken || length + 8 >= sizeof(device->name)) return;
        snprintf(device->name + length, sizeof(device->name) - length, "-%d", number);
    }
}

static void add_feature(const char *path, const char *text) {
    if (opened.n_features == MAX_FILES) return;
    struct ggml_backend_feature *feature = &opened.features[opened.n_features];
    *feature = (struct ggml_backend_feature){strdup(path), strdup(text)};
    opened.n_features += feature->name && feature->value;
}

// Buffer types point to their devices, so that these stay the same.
static struct foreign_device *make_device(struct foreign_binary *binary, void *theirs) {
    for (size_t i = 0; i < n_made; ++i) {
        if (made[i]->theirs == theirs) return made[i];
    }
    struct foreign_device *device = n_made < MAX_DEVICES ? calloc(1, sizeof(*device)) : NULL;
    if (!device) return NULL;
    foreign_device_init(device, binary, theirs, &all);
    return made[n_made++] = device;
}

static void add_devices(struct foreign_binary *binary) {
    const size_t count = count_of(binary, binary->reg);
    for (size_t i = 0; i < count && opened.n_devices < MAX_DEVICES; ++i) {
        struct foreign_device *device = make_device(binary, device_of(binary, binary->reg, i));
        if (!device) return;
        make_name_unique(device);
        opened.devices[opened.n_devices++] = device;
    }
}

static void note_file(const char *path, struct foreign_binary *binary, const char *message,
                      void *context) {
    char text[FOREIGN_MESSAGE_SIZE];
    (void)context;
    if (!binary) {
        GGML_LOG_WARN("foreign: %s\n", message);
        if (!opened.first_refusal[0]) foreign_say(opened.first_refusal, "%s", message);
        foreign_say(text, "refused: %s", message);
        add_feature(path, text);
        return;
    }
    for (size_t i = 0; i < opened.n_binaries; ++i) {
        if (opened.binaries[i] == binary) return;
    }
    if (opened.n_binaries == MAX_FILES) return;
    opened.binaries[opened.n_binaries++] = binary;
    snprintf(text, sizeof(text), "%s, ggml %s", binary->layout->text,
             binary->base->version ? binary->base->version() : "of unknown version");
    add_feature(path, text);
    add_devices(binary);
}

ggml_backend_reg_t foreign_reg_all(void) {
    const struct ggml_host_table *host = ggml_sdk_host();
    const char *list = host->get_config(host, "GGML_FOREIGN_PATH");
    if (!list) {
        foreign_fail(GGML_HOST_NO_DEVICE, "GGML_FOREIGN_PATH names no binaries of ggml to load");
        return NULL;
    }
    if (!opened.list || strcmp(opened.list, list) != 0) {
        memset(&opened, 0, sizeof(opened));
        opened.list = strdup(list);
        if (strcmp(list, "none") != 0) foreign_files_open(list, note_file, NULL);
    }
    if (opened.n_binaries == 0 && opened.first_refusal[0]) {
        foreign_fail(GGML_HOST_NO_DEVICE, "%s", opened.first_refusal);
        return NULL;
    }
    static const struct ggml_backend_table table = {
        .size = sizeof(table),
        .get_name = all_name,
        .get_device_count = all_count,
        .get_device = all_device,
        .get_proc_address = reg_proc_address,
    };
    all.table = &table;
    return &all;
}
