// SPDX-License-Identifier: MIT
// What is registered: the devices of every binary that the environment names, and of the servers
// that are added to them, under one backend "foreign"; those of a binary that the application opens
// under the name that it has. A binary or server that is part of "foreign" has a backend with the
// same devices besides, for who looks for it by name.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "files.h"
#include "foreign.h"
#include "trial.h"

enum { MAX_DEVICES = 256, MAX_FILES = 64 };

// One registration as the host sees it: that of a binary as a whole, or of a server that was added
// to it. Its devices are fixed when it is made, while a server that comes later gets a registration
// of its own.
struct foreign_reg {
    struct ggml_backend_reg reg;
    struct foreign_reg *next;
    struct foreign_binary *binary;
    void *theirs;
    char *endpoint; // of a server, else NULL
    size_t n_devices;
    struct foreign_device *devices[];
};

// The files of the environment, of which the same list is tried once.
struct opened {
    char *list;
    struct foreign_binary *binaries[MAX_FILES];
    size_t n_binaries;
    struct ggml_backend_feature features[MAX_FILES + 1]; // ends with NULLs
    size_t n_features;
    char first_refusal[FOREIGN_MESSAGE_SIZE];
};

// Guards the lists of registrations and devices; held while a binary lists its devices and
// describes new ones.
static pthread_mutex_t regs_lock = PTHREAD_MUTEX_INITIALIZER;
static struct foreign_reg *regs;
static struct foreign_device *made; // each has one for good: buffer types point to it
static struct opened opened;
static struct foreign_device *all_devices[MAX_DEVICES]; // grows while it is read
static atomic_size_t n_all_devices;
static struct ggml_backend_reg all;

// The caller holds regs_lock. A linear search: there are as many devices as the machine has, and
// each is looked up when it is listed only.
static struct foreign_device *find_device(const void *theirs) {
    struct foreign_device *device = made;
    while (device && device->theirs != theirs)
        device = device->next;
    return device;
}

ggml_backend_dev_t foreign_device_of(const void *theirs) {
    pthread_mutex_lock(&regs_lock);
    struct foreign_device *found = theirs ? find_device(theirs) : NULL;
    pthread_mutex_unlock(&regs_lock);
    return found ? &found->device : NULL;
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

// The functions below are what programs look up by name in ggml's backends. Each translates its
// objects and calls the binary's function of that name; a binary without it does nothing.
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

// The extra buffer types of ggml's CPU backend repack weights while they are set, so that only
// whole tensors can be: buft_access_unit() says so for those that are marked here. The array is the
// device's, ends with NULL and is valid until the next call.
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

// Of all files together: what was opened or refused, with its reason. Of one binary: its own list.
static struct ggml_backend_feature *get_features(ggml_backend_reg_t reg) {
    if (reg == &all) return opened.features;
    const struct foreign_reg *own = (const struct foreign_reg *)reg;
    typedef struct ggml_backend_feature *(*get_t)(void *);
    const get_t get = (get_t)foreign_binary_proc(own->binary, "ggml_backend_get_features");
    return get ? get(own->theirs) : NULL;
}

typedef void *(*add_server_t)(const char *endpoint);

// NULL for every backend but RPC.
static add_server_t adds_servers(const struct foreign_binary *binary) {
    return (add_server_t)foreign_binary_proc(binary, "ggml_backend_rpc_add_server");
}

// The first that the environment names, or else that the application opened.
static struct foreign_binary *find_rpc(void) {
    struct foreign_binary *found = NULL;
    for (size_t i = 0; i < opened.n_binaries && !found; ++i) {
        if (adds_servers(opened.binaries[i])) found = opened.binaries[i];
    }
    pthread_mutex_lock(&regs_lock);
    for (struct foreign_reg *reg = regs; reg && !found; reg = reg->next) {
        if (adds_servers(reg->binary)) found = reg->binary;
    }
    pthread_mutex_unlock(&regs_lock);
    return found;
}

// One registration for each of the binary's, made when it is first asked for. `owner` is the
// backend that new devices belong to, NULL for the registration itself.
static struct foreign_reg *reg_of(struct foreign_binary *binary, void *theirs,
                                  ggml_backend_reg_t owner);
static bool add_to_all(struct foreign_device *device);

// Held while a server is added, so that of two threads that name the same one the second finds it.
// That takes long where a server does not answer: one that is known is found without it.
static pthread_mutex_t servers_lock = PTHREAD_MUTEX_INITIALIZER;

// The registration of a server that was added before, or NULL.
static struct foreign_reg *find_server(const struct foreign_binary *binary, const char *endpoint) {
    pthread_mutex_lock(&regs_lock);
    struct foreign_reg *reg = regs;
    while (reg && (reg->binary != binary || !reg->endpoint || strcmp(reg->endpoint, endpoint) != 0))
        reg = reg->next;
    pthread_mutex_unlock(&regs_lock);
    return reg;
}

// ggml-rpc ends the process over a server that it can't reach or understand: a helper tries it.
static struct foreign_reg *try_server(struct foreign_binary *binary, const char *endpoint,
                                      char out_message[FOREIGN_MESSAGE_SIZE]) {
    if (foreign_trial(binary->path, endpoint, out_message) <= 0) return NULL;
    foreign_lock(binary);
    void *theirs = adds_servers(binary)(endpoint);
    foreign_unlock(binary);
    struct foreign_reg *reg = theirs ? reg_of(binary, theirs, &all) : NULL;
    if (!reg) foreign_say(out_message, "%s: no server at %s", binary->path, endpoint);
    pthread_mutex_lock(&regs_lock);
    if (reg && !reg->endpoint) reg->endpoint = strdup(endpoint); // without memory: tried again
    pthread_mutex_unlock(&regs_lock);
    return reg;
}

// A server is tried once: it serves one client at a time, so that a helper would wait in vain for
// one that this process uses, and programs name a server in every call (ggml-rpc.h).
static struct foreign_reg *add_server(const char *endpoint,
                                      char out_message[FOREIGN_MESSAGE_SIZE]) {
    struct foreign_binary *binary = find_rpc();
    out_message[0] = '\0';
    if (!binary) {
        foreign_say(out_message, "none of the files in GGML_FOREIGN_PATH knows servers");
        return NULL;
    }
    struct foreign_reg *reg = find_server(binary, endpoint);
    if (!reg) {
        pthread_mutex_lock(&servers_lock);
        reg = find_server(binary, endpoint);
        if (!reg) reg = try_server(binary, endpoint, out_message);
        pthread_mutex_unlock(&servers_lock);
    }
    for (size_t i = 0; reg && i < reg->n_devices; ++i)
        add_to_all(reg->devices[i]);
    return reg;
}

// The devices join those of "foreign", and the host is told that its list has changed; the result
// is the backend of this server alone, which programs register themselves.
static ggml_backend_reg_t rpc_add_server(const char *endpoint) {
    char message[FOREIGN_MESSAGE_SIZE];
    struct foreign_reg *reg = add_server(endpoint, message);
    if (!reg) {
        ggml_sdk_fail(GGML_HOST_NO_DEVICE, "%s", message);
        return NULL;
    }
    const struct ggml_host_table *host = ggml_sdk_host_hold();
    const struct ggml_extension_registry *registry =
        host->get_extension(host, GGML_EXTENSION_REGISTRY, GGML_EXTENSION_REGISTRY_REVISION);
    if (registry) registry->devices_changed(host);
    ggml_sdk_host_release(host);
    return &reg->reg;
}

// For applications that name a file themselves: the same checks and the same trial as for the files
// of the environment.
static ggml_backend_reg_t foreign_load(const char *path) {
    char message[FOREIGN_MESSAGE_SIZE];
    struct foreign_binary *binary = foreign_file_open(path, message);
    struct foreign_reg *reg = binary ? reg_of(binary, binary->reg, NULL) : NULL;
    if (reg) return &reg->reg;
    ggml_sdk_fail(GGML_HOST_INIT_FAILED, "%s", message);
    return NULL;
}

static const char *reg_name(ggml_backend_reg_t reg);

// "RPC", as programs look for it.
static ggml_backend_reg_t find_by_name(const char *name) {
    for (size_t i = 0; i < opened.n_binaries; ++i) {
        struct foreign_binary *binary = opened.binaries[i];
        struct foreign_reg *reg = reg_of(binary, binary->reg, &all);
        if (reg && strcasecmp(reg_name(&reg->reg), name) == 0) return &reg->reg;
    }
    return NULL;
}

// What is told for programs that ask whether a stream is of the backend that they named: the
// devices of a binary are those of its servers too.
static bool has_device(ggml_backend_reg_t reg, ggml_backend_dev_t device) {
    pthread_mutex_lock(&regs_lock);
    const struct foreign_device *own = made;
    while (own && &own->device != device)
        own = own->next;
    pthread_mutex_unlock(&regs_lock);
    if (!own || reg == &all) return own && device->reg == &all;
    return ((const struct foreign_reg *)reg)->binary == own->binary;
}

// ISO C has no conversion from a function's pointer to void *; POSIX demands that the bits can be
// copied.
static void *address_of(foreign_fn function) {
    void *address;
    memcpy(&address, &function, sizeof(address));
    return address;
}

// Searched linearly: programs look up a handful of names when they start.
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
        {"ggml_backend_reg_by_name", (foreign_fn)find_by_name},
        {"ggml_backend_reg_has_device", (foreign_fn)has_device},
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
    return &((const struct foreign_reg *)reg)->devices[index]->device;
}

static const struct ggml_backend_table reg_table = {
    .size = sizeof(reg_table),
    .get_name = reg_name,
    .get_device_count = reg_device_count,
    .get_device = reg_device,
    .get_proc_address = reg_proc_address,
};

// Whether the device is offered: by "foreign", or by a backend of its own. regs_lock is held.
static bool is_offered(const struct foreign_device *device) {
    bool offered = device->device.reg != &all;
    for (size_t i = 0; i < atomic_load(&n_all_devices) && !offered; ++i)
        offered = all_devices[i] == device;
    return offered;
}

// Two binaries may have a "CPU" each. Called before the device is offered; regs_lock is held.
static void make_name_unique(struct foreign_device *device) {
    const size_t length = strlen(device->name);
    for (int number = 2;; ++number) {
        bool taken = false;
        for (const struct foreign_device *other = made; other; other = other->next)
            taken |= other != device && strcmp(other->name, device->name) == 0 && is_offered(other);
        if (!taken || length + 8 >= sizeof(device->name)) return;
        snprintf(device->name + length, sizeof(device->name) - length, "-%d", number);
    }
}

// The one for a device of a binary; `owner` is its backend if it is new. regs_lock is held.
static struct foreign_device *make_device(struct foreign_binary *binary, void *theirs,
                                          ggml_backend_reg_t owner) {
    struct foreign_device *device = find_device(theirs);
    if (device || !(device = calloc(1, sizeof(*device)))) return device;
    foreign_device_init(device, binary, theirs, owner);
    if (owner != &all) make_name_unique(device); // others when they join the list of "foreign"
    device->next = made;
    return made = device;
}

static struct foreign_reg *reg_new(struct foreign_binary *binary, void *theirs,
                                   ggml_backend_reg_t owner) {
    const size_t count = count_of(binary, theirs);
    struct foreign_reg *own =
        count <= MAX_DEVICES ? calloc(1, sizeof(*own) + count * sizeof(own->devices[0])) : NULL;
    for (; own && own->n_devices < count; ++own->n_devices) {
        struct foreign_device *device = make_device(
            binary, device_of(binary, theirs, own->n_devices), owner ? owner : &own->reg);
        own->devices[own->n_devices] = device;
        if (device) continue;
        free(own);
        own = NULL;
    }
    if (!own) {
        ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for %zu devices of %s", count,
                      binary->path);
        return NULL;
    }
    own->reg.table = &reg_table;
    own->binary = binary;
    own->theirs = theirs;
    return own;
}

// The same object each time. NULL on failure.
static struct foreign_reg *reg_of(struct foreign_binary *binary, void *theirs,
                                  ggml_backend_reg_t owner) {
    pthread_mutex_lock(&regs_lock);
    struct foreign_reg *own = regs;
    while (own && own->theirs != theirs)
        own = own->next;
    if (!own && (own = reg_new(binary, theirs, owner)) != NULL) {
        own->next = regs;
        regs = own;
    }
    pthread_mutex_unlock(&regs_lock);
    return own;
}

// --- all files of the environment ----------------------------------------------------------------

// The backend "foreign": a list of devices that grows while other threads read it. The count is
// raised after the entry is written, and entries never change.
static const char *all_name(ggml_backend_reg_t reg) {
    (void)reg;
    return "foreign";
}

static size_t all_count(ggml_backend_reg_t reg) {
    (void)reg;
    return atomic_load(&n_all_devices);
}

static ggml_backend_dev_t all_device(ggml_backend_reg_t reg, size_t index) {
    (void)reg;
    return &all_devices[index]->device;
}

// Listed by ggml-devices as features of the plugin. Without memory for a copy the line is left out.
static void add_feature(const char *path, const char *text) {
    if (opened.n_features == MAX_FILES) return;
    struct ggml_backend_feature *feature = &opened.features[opened.n_features];
    *feature = (struct ggml_backend_feature){strdup(path), strdup(text)};
    opened.n_features += feature->name && feature->value;
}

// false if there is no room for it. One that the application opened first stays with its backend.
static bool add_to_all(struct foreign_device *device) {
    pthread_mutex_lock(&regs_lock);
    const size_t count = atomic_load(&n_all_devices);
    const bool known = is_offered(device);
    if (!known && count < MAX_DEVICES) {
        make_name_unique(device);
        all_devices[count] = device;
        atomic_store(&n_all_devices, count + 1);
    }
    pthread_mutex_unlock(&regs_lock);
    return known || count < MAX_DEVICES;
}

// The devices of a binary that the environment names. A backend that only adds servers has none of
// its own.
static void add_devices(struct foreign_binary *binary) {
    const struct foreign_reg *reg = reg_of(binary, binary->reg, &all);
    if (reg && reg->n_devices == 0 && !adds_servers(binary))
        GGML_LOG_WARN("foreign: %s finds no devices here\n", binary->path);
    for (size_t i = 0; reg && i < reg->n_devices; ++i) {
        if (!add_to_all(reg->devices[i])) return;
    }
}

// Servers that the environment names, separated by commas.
static void add_servers(const char *list) {
    while (*list) {
        char endpoint[256], message[FOREIGN_MESSAGE_SIZE];
        const size_t length = strcspn(list, ",");
        snprintf(endpoint, sizeof(endpoint), "%.*s", (int)length, list);
        list += length + (list[length] == ',');
        if (length == 0) continue;
        const bool added = length < sizeof(endpoint) && add_server(endpoint, message);
        if (length >= sizeof(endpoint)) foreign_say(message, "its name is too long");
        if (!added) {
            GGML_LOG_WARN("foreign: server %s: %s\n", endpoint, message);
            add_feature(endpoint, message);
        }
    }
}

// Called for each file with the binary or with why it was refused. The first refusal is also the
// plugin's own message if no file can be used: a user who names one file sees its reason at once.
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

// Files are opened once for each value of GGML_FOREIGN_PATH: each trial starts a process, and a
// plugin may be started again after it was unloaded.
ggml_backend_reg_t foreign_reg_all(void) {
    const char *list = ggml_sdk_config("GGML_FOREIGN_PATH");
    const char *servers = ggml_sdk_config("GGML_FOREIGN_RPC");
    if (!list) {
        ggml_sdk_fail(GGML_HOST_NO_DEVICE, "GGML_FOREIGN_PATH names no binaries of ggml to load");
        return NULL;
    }
    if (!opened.list || strcmp(opened.list, list) != 0) {
        memset(&opened, 0, sizeof(opened));
        atomic_store(&n_all_devices, 0);
        opened.list = strdup(list);
        if (strcmp(list, "none") != 0) foreign_files_open(list, note_file, NULL);
        if (servers) add_servers(servers);
    }
    if (opened.n_binaries == 0 && opened.first_refusal[0]) {
        ggml_sdk_fail(GGML_HOST_NO_DEVICE, "%s", opened.first_refusal);
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
