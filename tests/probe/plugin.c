// SPDX-License-Identifier: MIT
// Plugins that no process survives, one habit each (HABIT, see meson.build).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/ptrace.h>
#endif

#include "ggml-impl.h"
#include "ggml-plugin.h"

enum habit {
    NO_HABIT,
    ENDLESS_CONSTRUCTOR,
    ENDLESS_INIT,
    ENDLESS_SHUTDOWN,
    CRASH_CONSTRUCTOR,
    CRASH_INIT,
    ABORT_INIT,
    CRASH_SHUTDOWN,
    EXIT_INIT,
    EXIT_CONSTRUCTOR,
    IGNORE_TERM,
    GRANDCHILD,
    GRANDCHILD_SESSION,
    GRANDCHILD_ONLY,
    FLOOD,
    FORGE,
    CLOSE_ALL,
    MEMORY,
    STOP,
    FORK_BOTH,
    OWN_SESSION,
    ESCAPES,
    TRESPASS,
    DRIVER,
    FAMILY,
    FAMILY_SESSION,
    FLOOD_LATER, // when a stream is opened, which no probe does
    HANG_LATER,
};

static struct ggml_backend_device device;

_Noreturn static void hang(void) {
    for (;;)
        pause();
}

// Not what a sanitizer makes of it.
static void crash(void) {
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
}

// A child that outlives this process with everything open that it had.
static void leave_child(bool own_session) {
    if (fork() != 0) return;
    signal(SIGHUP, SIG_IGN); // which a group gets whose last parent ended while one was stopped
    if (own_session) setsid();
    signal(SIGTERM, SIG_IGN);
    alarm(20);
    hang();
}

// A child that stops this process again, whatever lets it go on.
static void keep_stopped(void) {
    const pid_t parent = getpid();
    if (fork() != 0) return;
    signal(SIGHUP, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    alarm(20);
    while (getppid() == parent)
        kill(parent, SIGSTOP);
    hang();
}

// Text that a careless library might print, into everything that is open.
static void flood(void) {
    for (int fd = 0; fd < 64; ++fd) {
        const ssize_t n = write(fd, "GBRF garbage from a driver\n", 27);
        (void)n;
    }
}

// What reads as good results where nothing tells whose they are.
static void flood_with_zeros(void) {
    static const char zeros[4096];
    for (int fd = 0; fd < 64; ++fd) {
        const ssize_t n = write(fd, zeros, sizeof(zeros));
        (void)n;
    }
}

// What a whole answer would look like, made without knowing the key.
static void forge(void) {
    unsigned char frame[64] = {'G', 'B', 'R', 'F', 1, 0, 0, 0, 4};
    for (int fd = 0; fd < 64; ++fd) {
        const ssize_t n = write(fd, frame, sizeof(frame));
        (void)n;
    }
}

// Compilers leave out memory that nothing looks at.
static char *volatile last_memory;

// More than the probe that tries this allows. Memory counts when it is mapped: to fill it would
// take a busy machine longer than the deadline.
static void take_memory(void) {
    const size_t size = 64u << 20;
    for (int i = 0; i < 8; ++i) {
        char *memory = malloc(size);
        if (!memory) abort();
        memory[0] = 1;
        last_memory = memory;
    }
}

// --- what a probe may not do ---------------------------------------------------------------------

static char trespasses[256] = "did:"; // what worked

static void note(const char *name, bool worked) {
    const size_t used = strlen(trespasses);
    if (worked) snprintf(trespasses + used, sizeof(trespasses) - used, " %s", name);
}

static bool opens_socket(int domain) {
    const int fd = socket(domain, SOCK_STREAM, 0);
    if (fd >= 0) close(fd);
    return fd >= 0;
}

static bool writes_file(const char *folder, const char *name) {
    char path[600];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    const int fd = open(path, O_WRONLY | O_CREAT, 0600);
    const bool worked = fd >= 0 && write(fd, "x", 1) == 1;
    if (fd >= 0) close(fd);
    return worked;
}

static bool truncates(const char *folder) {
    char path[600];
    snprintf(path, sizeof(path), "%s/precious", folder);
    return truncate(path, 1) == 0;
}

static bool changes_mode(const char *folder) {
    char path[600];
    snprintf(path, sizeof(path), "%s/precious", folder);
    return chmod(path, 0640) == 0;
}

#ifdef __linux__
// Without stopping it; it is let go when this process ends.
static bool traces(pid_t process) {
    return ptrace(PTRACE_SEIZE, process, NULL, NULL) == 0;
}

static bool traces_child(void) {
    const pid_t child = fork();
    if (child == 0) hang();
    if (child < 0) return false;
    const bool worked = traces(child);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return worked;
}
#endif

static void trespass(void) {
    const char *home = getenv("HOME");
    note("inet", opens_socket(AF_INET));
    note("inet6", opens_socket(AF_INET6));
    note("unix", opens_socket(AF_UNIX));
    note("home", writes_file(home ? home : "/nonexistent", "written"));
    note("cwd", writes_file(".", "written"));
    note("null", writes_file("/dev", "null"));
    note("truncate", truncates(home ? home : "/nonexistent"));
    note("chmod", changes_mode(home ? home : "/nonexistent"));
#ifdef __linux__
    const int shared = memfd_create("shared", MFD_CLOEXEC);
    note("memfd", shared >= 0 && write(shared, "x", 1) == 1);
    note("signal", kill(getppid(), 0) == 0);
    note("parent", traces(getppid()));
    note("child", traces_child());
#endif
}

static void *driver; // stays open, as those of GPUs do

static void open_driver(void) {
    const char *path = getenv("GGML_TEST_DRIVER");
    driver = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (driver && getenv("GGML_TEST_CHANGE_DRIVER")) chmod(path, 0700);
}

static void act(enum habit habit) {
    switch (habit) {
    case ENDLESS_CONSTRUCTOR:
    case ENDLESS_INIT: hang();
    case CRASH_CONSTRUCTOR:
    case CRASH_INIT: crash(); break;
    case ABORT_INIT: abort();
    case EXIT_CONSTRUCTOR:
    case EXIT_INIT: exit(0);
    case IGNORE_TERM:
        signal(SIGTERM, SIG_IGN);
        signal(SIGINT, SIG_IGN);
        hang();
    case GRANDCHILD: leave_child(false); break;
    case GRANDCHILD_SESSION: leave_child(true); break;
    case GRANDCHILD_ONLY: leave_child(false); _exit(0);
    case FLOOD: flood(); break;
    case FORGE: forge(); break;
    case CLOSE_ALL:
        for (int fd = 0; fd < 64; ++fd)
            close(fd);
        break;
    case MEMORY: take_memory(); break;
    case STOP: raise(SIGSTOP); break;
    case FORK_BOTH:
        if (fork() < 0) abort();
        break;
    case OWN_SESSION: // and no child that it did not start
        if (getsid(0) != getpgrp()) abort();
#ifndef EMULATED
        if (waitpid(-1, NULL, WNOHANG) >= 0) abort();
#endif
        break;
    case TRESPASS: trespass(); break;
    case DRIVER: open_driver(); break;
    case FAMILY:
        keep_stopped();
        alarm(20);
        hang();
    case FAMILY_SESSION:
        leave_child(true);
        alarm(20);
        raise(SIGSTOP);
        hang();
    default: break;
    }
}

__attribute__((constructor)) static void begin(void) {
    if (HABIT == ENDLESS_CONSTRUCTOR || HABIT == CRASH_CONSTRUCTOR || HABIT == EXIT_CONSTRUCTOR) {
        act(HABIT);
    }
}

static const char *device_name(ggml_backend_dev_t dev) {
    (void)dev;
    return "PROBED0";
}

static const char *device_description(ggml_backend_dev_t dev) {
    (void)dev;
    return HABIT == TRESPASS ? trespasses : "A device to be found";
}

static void device_memory(ggml_backend_dev_t dev, size_t *free_bytes, size_t *total) {
    (void)dev;
    *free_bytes = HABIT == ESCAPES ? SIZE_MAX : 1u << 20; // more than there is
    *total = HABIT == ESCAPES ? SIZE_MAX / 2 + 6 : 3u << 20;
}

static enum ggml_backend_dev_type device_type(ggml_backend_dev_t dev) {
    (void)dev;
    return GGML_BACKEND_DEVICE_TYPE_GPU;
}

static void device_props(ggml_backend_dev_t dev, struct ggml_backend_dev_props *props) {
    props->name = device_name(dev);
    props->description = device_description(dev);
    props->type = device_type(dev);
    props->device_id = HABIT == ESCAPES ? "\xc2\x9b"
                                          "31mred"
                                        : "0000:0a:00.0";
    device_memory(dev, &props->memory_free, &props->memory_total);
    props->caps.async = true;
    props->caps.events = true;
}

static int32_t device_init(ggml_backend_dev_t dev, const char *params, ggml_backend_t *out_stream) {
    (void)dev;
    (void)params;
    (void)out_stream;
    if (HABIT == FLOOD_LATER) flood_with_zeros();
    if (HABIT == HANG_LATER) hang();
    return GGML_HOST_UNSUPPORTED;
}

static ggml_backend_buffer_type_t device_buffer_type(ggml_backend_dev_t dev) {
    (void)dev;
    return ggml_backend_cpu_buffer_type();
}

static bool device_supports_op(ggml_backend_dev_t dev, const struct ggml_tensor *op) {
    (void)dev;
    (void)op;
    return false;
}

static bool device_supports_buft(ggml_backend_dev_t dev, ggml_backend_buffer_type_t buft) {
    return buft == device_buffer_type(dev);
}

static const char *reg_name(ggml_backend_reg_t reg) {
    (void)reg;
    return "PROBED";
}

static size_t reg_count(ggml_backend_reg_t reg) {
    (void)reg;
    return 1;
}

static ggml_backend_dev_t reg_device(ggml_backend_reg_t reg, size_t index) {
    (void)reg;
    (void)index;
    return &device;
}

static const struct ggml_backend_table reg_table = {
    .size = sizeof(reg_table),
    .get_name = reg_name,
    .get_device_count = reg_count,
    .get_device = reg_device,
};

static struct ggml_backend_reg reg = {.table = &reg_table};

static const struct ggml_device_table device_table = {
    .size = sizeof(device_table),
    .get_name = device_name,
    .get_description = device_description,
    .get_memory = device_memory,
    .get_type = device_type,
    .get_props = device_props,
    .init_backend = device_init,
    .get_buffer_type = device_buffer_type,
    .supports_op = device_supports_op,
    .supports_buft = device_supports_buft,
};

static ggml_backend_reg_t start(void) {
    act(HABIT);
    device.reg = &reg;
    device.table = &device_table;
    return &reg;
}

static void stop(void) {
    if (HABIT == ENDLESS_SHUTDOWN) hang();
    if (HABIT == CRASH_SHUTDOWN) crash();
}

GGML_PLUGIN_NOTE(GGML_PLUGIN_NAME, GGML_PLUGIN_VARIANT, "1.2", 0, 0, 0)

GGML_PLUGIN_EXPORT int32_t ggml_backend_init(const struct ggml_host_table *host,
                                             const struct ggml_plugin_table **out_plugin);
GGML_PLUGIN_EXPORT int32_t ggml_backend_init(const struct ggml_host_table *host,
                                             const struct ggml_plugin_table **out_plugin) {
    static struct ggml_sdk_plugin plugin = {
        .note = &GGML_PLUGIN_NOTE_NAME, .start = start, .shutdown = stop};
    return ggml_sdk_enter(&plugin, host, out_plugin);
}
