// SPDX-License-Identifier: MIT
// ggml-foreign-probe PARENT FILE [SERVER]: opens a binary, adds a server to it and asks the devices
// what the plugin is going to ask, in a process of its own. Whatever it does to that process is
// told by how far the lines on stdout go.
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "binary.h"
#include "ggml-backend-impl.h"
#include "plugin/probe/process/probe_group.h"
#include "plugin/probe/process/probe_watch.h"

#define ENTRY(object, member, type) ((type)foreign_entry(object, binary->layout->member))

static FILE *answers;

// Flushed at once: the line has to be in the pipe when the next step kills the process.
static void at(const char *step, const char *what) {
    fprintf(answers, "at %s %s\n", step, what);
    fflush(answers);
}

// Everything that listing needs, and a stream.
static void ask_device(const struct foreign_binary *binary, void *device) {
    typedef const char *(*text_t)(void *);
    typedef void (*memory_t)(void *, size_t *, size_t *);
    typedef int (*type_t)(void *);
    typedef void (*props_t)(void *, struct ggml_backend_dev_props *);
    typedef void *(*get_t)(void *);
    typedef void *(*init_t)(void *, const char *);
    typedef void (*free_t)(void *);
    struct ggml_backend_dev_props props;
    size_t free_bytes, total_bytes;
    const char *name = ENTRY(device, device_get_name, text_t)(device);
    at("describing", name);
    ENTRY(device, device_get_description, text_t)(device);
    ENTRY(device, device_get_memory, memory_t)(device, &free_bytes, &total_bytes);
    ENTRY(device, device_get_type, type_t)(device);
    memset(&props, 0, sizeof(props));
    ENTRY(device, device_get_props, props_t)(device, &props);
    at("looking at the memory of", name);
    void *buft = ENTRY(device, device_get_buffer_type, get_t)(device);
    ENTRY(buft, buft_get_name, text_t)(buft);
    at("making a stream on", name);
    void *stream = ENTRY(device, device_init_backend, init_t)(device, NULL);
    if (stream) ENTRY(stream, stream_free, free_t)(stream);
}

// The same questions in the same order as the plugin asks them later.
static void ask_devices(const struct foreign_binary *binary, void *reg) {
    typedef size_t (*count_t)(void *);
    typedef void *(*get_t)(void *, size_t);
    at("listing", "devices");
    const size_t count = ENTRY(reg, reg_get_device_count, count_t)(reg);
    for (size_t i = 0; i < count; ++i)
        ask_device(binary, ENTRY(reg, reg_get_device, get_t)(reg, i));
}

// Leaves by _exit(): destructors of the binary are not to be trusted either.
_Noreturn static void end(void) {
    fflush(answers);
    probe_watch_end();
    _exit(0);
}

static void refuse(const char *message) {
    fprintf(answers, "refused %s\n", message);
    end();
}

// It ends with the application, with what the binary starts: all of its process group, and all of
// its control group where one can be made. The signal alone would leave those.
static bool end_with(pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) return false;
    probe_group_enter();
    probe_watch_parent((long)parent, STDOUT_FILENO);
    return true;
}

int main(int argc, char **argv) {
    char message[FOREIGN_MESSAGE_SIZE];
    const struct rlimit no_core = {0, 0};
    if (argc != 3 && argc != 4) {
        fputs("ggml-foreign-probe is started by the plugin ggml-foreign to try out a file\n",
              stderr);
        return 64;
    }
    setrlimit(RLIMIT_CORE, &no_core);
    if (!end_with((pid_t)strtol(argv[1], NULL, 10))) return 65;
    // What the binary prints is not an answer.
    const int answers_fd = dup(STDOUT_FILENO);
    answers = answers_fd >= 0 ? fdopen(answers_fd, "w") : NULL;
    if (!answers || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return 65;
    at("opening", "the file");
    const struct foreign_binary *binary = foreign_binary_open(argv[2], message);
    if (!binary) refuse(message);
    if (argc == 4) {
        typedef void *(*add_t)(const char *);
        const add_t add = (add_t)foreign_binary_proc(binary, "ggml_backend_rpc_add_server");
        at("connecting to", argv[3]);
        void *reg = add ? add(argv[3]) : NULL;
        if (!reg) refuse("no such server");
        ask_devices(binary, reg);
    } else {
        ask_devices(binary, binary->reg);
    }
    fprintf(answers, "score %d\n", binary->score);
    end();
}
