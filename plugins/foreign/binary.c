// SPDX-License-Identifier: MIT
// A binary needs symbols of libggml-base whose names this host's library has as well, for objects
// of other layouts. dlmopen() gives it and its own libggml-base a namespace in which they are
// alone; binaries with the same libggml-base share one, since there are few (16 in glibc).
#define _GNU_SOURCE
#include "binary.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "ggml-impl.h"

enum {
    PARENT_FOLDERS = 3,
    OBJECT_SIZE = 32, // of ggml_object, which precedes each tensor of a context
};

// Both lists only grow: what is in them is never unmapped. The lock is held from the look for a
// file until it is in its list, so that of two threads that open it the second finds it.
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static struct foreign_base *bases;
static struct foreign_binary *binaries;

// The message is cut off where it is too long, as it is only shown.
void foreign_say(char out_message[FOREIGN_MESSAGE_SIZE], const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(out_message, FOREIGN_MESSAGE_SIZE, format, args);
    va_end(args);
}

// --- what has to be as it is here ----------------------------------------------------------------

// Graphs are made by this side, by the layout of struct ggml_cgraph in this host's headers, so the
// binary has to build one that looks the same through them. Builds NEG of a leaf by the binary's
// functions and compares every member that foreign_graph_new() fills: arrays, hash set, use counts,
// order and number.
static bool builds_same_graphs(const struct foreign_base *base) {
    struct ggml_init_params params = {1 << 16, NULL, true};
    struct ggml_context *ctx = base->init(params);
    if (!ctx) return false;
    struct ggml_tensor *leaf = base->new_tensor_1d(ctx, GGML_TYPE_F32, 8);
    struct ggml_tensor *node = base->neg(ctx, leaf);
    struct ggml_cgraph *graph = base->new_graph_custom(ctx, 16, false);
    base->build_forward_expand(graph, node);
    const bool arrays = graph->size == 16 && graph->n_nodes == 1 && graph->n_leafs == 1 &&
                        graph->nodes[0] == node && graph->leafs[0] == leaf && !graph->grads;
    bool same = false;
    if (arrays) {
        const size_t slot = ggml_hash_find(&graph->visited_hash_set, leaf);
        same = slot != GGML_HASHSET_FULL && graph->visited_hash_set.keys[slot] == leaf &&
               graph->use_counts[slot] == 1 &&
               graph->order == GGML_CGRAPH_EVAL_ORDER_LEFT_TO_RIGHT && graph->uid == 0 &&
               node->op == GGML_OP_UNARY && node->src[0] == leaf &&
               node->op_params[0] == GGML_UNARY_OP_NEG && leaf->ne[0] == 8;
    }
    base->free(ctx);
    return same;
}

// Returns what differs between the two sides, or NULL. A binary is used only if the things that
// cross over without being translated are equal: the size of a tensor, the numbers of operations,
// unary operations and types (compared by name), and the size of a block of each type. A type of
// size 0 here was removed from ggml; its number is never sent.
static const char *difference(const struct foreign_base *base) {
    if (base->tensor_overhead() != OBJECT_SIZE + sizeof(struct ggml_tensor))
        return "tensors have another size";
    for (int i = 0; i < FOREIGN_OPS; ++i) {
        const char *name = base->op_name((enum ggml_op)i);
        if (!name || strcmp(name, ggml_op_name((enum ggml_op)i)) != 0)
            return "operations have other numbers";
    }
    for (int i = 0; i < FOREIGN_UNARY_OPS; ++i) {
        const char *name = base->unary_op_name((enum ggml_unary_op)i);
        if (!name || strcmp(name, ggml_unary_op_name((enum ggml_unary_op)i)) != 0)
            return "unary operations have other numbers";
    }
    for (int i = 0; i < FOREIGN_TYPES; ++i) {
        if (ggml_type_size((enum ggml_type)i) == 0) continue;
        const char *name = base->type_name((enum ggml_type)i);
        if (!name || strcmp(name, ggml_type_name((enum ggml_type)i)) != 0 ||
            base->type_size((enum ggml_type)i) != ggml_type_size((enum ggml_type)i))
            return "types have other numbers";
    }
    return builds_same_graphs(base) ? NULL : "graphs have another layout";
}

// --- libggml-base --------------------------------------------------------------------------------

// Messages of the binary join those of the host, with their level.
static void forward_log(enum ggml_log_level level, const char *text, void *user_data) {
    (void)user_data;
    ggml_log_internal(level, "%s", text);
}

// The process ends after that. Without it ggml would start a debugger for a backtrace first.
static void forward_abort(const char *text) {
    ggml_log_internal(GGML_LOG_LEVEL_ERROR, "a binary of ggml ends the process: %s\n", text);
}

// Looks up every function that is called of a libggml-base. Without a needed one there is nothing
// to fall back to; ggml_version() and the abort callback came later than the oldest base that is
// accepted.
static bool find_functions(struct foreign_base *base, char *out_message) {
    const struct {
        const char *name;
        void *out_function;
        bool needed;
    } functions[] = {
        {"ggml_backend_cpu_buffer_type", &base->cpu_buffer_type, true},
        {"ggml_backend_cpu_buffer_from_ptr", &base->cpu_buffer_from_ptr, true},
        {"ggml_backend_buft_alloc_buffer", &base->buft_alloc_buffer, true},
        {"ggml_backend_buffer_free", &base->buffer_free, true},
        {"ggml_backend_buffer_set_usage", &base->buffer_set_usage, true},
        {"ggml_log_set", &base->log_set, true},
        {"ggml_set_abort_callback", &base->set_abort_callback, false},
        {"ggml_op_name", &base->op_name, true},
        {"ggml_type_name", &base->type_name, true},
        {"ggml_type_size", &base->type_size, true},
        {"ggml_unary_op_name", &base->unary_op_name, true},
        {"ggml_tensor_overhead", &base->tensor_overhead, true},
        {"ggml_init", &base->init, true},
        {"ggml_free", &base->free, true},
        {"ggml_new_tensor_1d", &base->new_tensor_1d, true},
        {"ggml_neg", &base->neg, true},
        {"ggml_new_graph_custom", &base->new_graph_custom, true},
        {"ggml_build_forward_expand", &base->build_forward_expand, true},
        {"ggml_version", &base->version, false},
    };
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); ++i) {
        void *symbol = dlsym(base->handle, functions[i].name);
        memcpy(functions[i].out_function, &symbol, sizeof(symbol));
        if (symbol || !functions[i].needed) continue;
        foreign_say(out_message, "%s has no %s", base->path, functions[i].name);
        return false;
    }
    return true;
}

// Tensors in host memory belong to buffers of this host, which the binary can't read, so its own
// objects stand for them: one buffer over the whole address space, from the lowest address that is
// aligned, so that any pointer lies within it. There are two, as kernels treat weights differently.
static bool make_host_buffers(struct foreign_base *base, char *out_message) {
    for (int i = 0; i < 2; ++i) {
        base->host_buffers[i] =
            base->cpu_buffer_from_ptr((void *)(uintptr_t)TENSOR_ALIGNMENT, SIZE_MAX / 2);
        if (!base->host_buffers[i]) {
            foreign_say(out_message, "%s makes no buffer of host memory", base->path);
            return false;
        }
    }
    base->buffer_set_usage(base->host_buffers[1], GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    return true;
}

// Opens a libggml-base in a new namespace, or returns the one that is open already under this path.
// A base that is refused is unmapped again: only its constructors and the functions that were
// compared have run.
static struct foreign_base *open_base(const char *path, char *out_message) {
    for (struct foreign_base *base = bases; base; base = base->next) {
        if (strcmp(base->path, path) == 0) return base;
    }
    Lmid_t id;
    const char *different;
    struct foreign_base *base = calloc(1, sizeof(*base));
    if (!base || !(base->path = strdup(path))) goto no_memory;
    base->handle = dlmopen(LM_ID_NEWLM, path, RTLD_NOW | RTLD_LOCAL);
    if (!base->handle) {
        foreign_say(out_message, "the dynamic linker refuses %s: %s", path, dlerror());
        goto fail;
    }
    if (dlinfo(base->handle, RTLD_DI_LMID, &id) != 0 || !find_functions(base, out_message))
        goto fail;
    base->namespace = (long)id;
    if ((different = difference(base)) != NULL) {
        foreign_say(out_message, "%s (ggml %s) is not known: %s", path,
                    base->version ? base->version() : "of an unknown version", different);
        goto fail;
    }
    if (!make_host_buffers(base, out_message)) goto fail;
    base->log_set(forward_log, NULL);
    if (base->set_abort_callback) base->set_abort_callback(forward_abort);
    base->next = bases;
    bases = base;
    return base;
no_memory:
    foreign_say(out_message, "no memory to open %s", path);
fail:
    if (base && base->handle) dlclose(base->handle);
    if (base) free(base->path);
    free(base);
    return NULL;
}

// Beside the binary or in a folder above it, where distributions have it; never by the linker's
// search, which may be led to this host's library of that name.
bool foreign_base_find(const char *path, char out_base[PATH_MAX],
                       char out_message[FOREIGN_MESSAGE_SIZE]) {
    static const char *const names[] = {"libggml-base.so.0", "libggml-base.so"};
    char folder[PATH_MAX], candidate[PATH_MAX + 32];
    snprintf(folder, sizeof(folder), "%s", path);
    for (int up = 0; up <= PARENT_FOLDERS; ++up) {
        char *slash = strrchr(folder, '/');
        if (!slash) break;
        *slash = '\0';
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
            snprintf(candidate, sizeof(candidate), "%s/%s", folder, names[i]);
            if (realpath(candidate, out_base)) return true;
        }
    }
    foreign_say(
        out_message,
        "no libggml-base.so.0 beside %s or in a folder above it: install the one that it was "
        "built with",
        path);
    return false;
}

// --- binary --------------------------------------------------------------------------------------

// Whether the library was bound to the base that was opened for it, and not to one that it found by
// itself.
static bool bound_to(void *handle, const struct foreign_base *base) {
    void *expected = dlsym(base->handle, "ggml_backend_cpu_buffer_type");
    return dlsym(handle, "ggml_backend_cpu_buffer_type") == expected;
}

// Calls the two exported functions of a binary: the score, which says whether this processor runs
// it, and init, which registers its devices. The first member of what init returns is the version
// of the interface; in binaries of before version 1 it is a pointer.
static bool start(struct foreign_binary *binary, void *handle, char *out_message) {
    void *symbol = dlsym(handle, "ggml_backend_score");
    int (*score)(void) = NULL;
    void *(*init)(void) = NULL;
    int32_t version;
    memcpy(&score, &symbol, sizeof(symbol));
    symbol = dlsym(handle, "ggml_backend_init");
    memcpy(&init, &symbol, sizeof(symbol));
    if (!init) {
        foreign_say(out_message,
                    "%s exports no ggml_backend_init, as backends of before 2025 that are to be "
                    "linked in",
                    binary->path);
        return false;
    }
    binary->score = score ? score() : 1;
    if (binary->score <= 0) {
        foreign_say(out_message, "%s says that this machine can't run it", binary->path);
        return false;
    }
    binary->reg = init();
    if (!binary->reg) {
        foreign_say(out_message, "%s registers nothing", binary->path);
        return false;
    }
    memcpy(&version, binary->reg, sizeof(version));
    binary->layout = foreign_layout_of(version);
    if (binary->layout) return true;
    if (version < 1 || version > 1000) { // half of a pointer
        foreign_say(out_message,
                    "%s has ggml's backend interface of before its version 1; 2 and 3 are known",
                    binary->path);
        return false;
    }
    foreign_say(out_message, "%s has version %d of ggml's backend interface; 2 and 3 are known",
                binary->path, (int)version);
    return false;
}

// RTLD_NOW: a symbol that is missing is a message here, not the end of the process later. On a
// failure after dlmopen() the library stays mapped, since its constructors may have left threads or
// handlers behind. The caller holds open_lock.
static struct foreign_binary *open_binary(const char *path, char *out_message) {
    char base_path[PATH_MAX];
    struct foreign_base *base;
    void *handle = NULL;
    out_message[0] = '\0';
    for (struct foreign_binary *binary = binaries; binary; binary = binary->next) {
        if (strcmp(binary->path, path) == 0) return binary;
    }
    if (!foreign_base_find(path, base_path, out_message)) return NULL;
    struct foreign_binary *binary = calloc(1, sizeof(*binary));
    if (!binary || !(binary->path = strdup(path))) {
        foreign_say(out_message, "no memory to open %s", path);
        goto fail;
    }
    if (!(base = open_base(base_path, out_message))) goto fail;
    handle = dlmopen((Lmid_t)base->namespace, path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        foreign_say(out_message, "the dynamic linker refuses %s: %s", path, dlerror());
        goto fail;
    }
    if (!bound_to(handle, base)) {
        foreign_say(out_message, "%s needs another libggml-base than %s", path, base_path);
        goto fail;
    }
    if (!start(binary, handle, out_message)) goto fail;
    binary->base = base;
    pthread_mutex_init(&binary->lock, NULL);
    binary->next = binaries;
    binaries = binary;
    return binary;
fail: // what ran once stays mapped
    if (binary) free(binary->path);
    free(binary);
    return NULL;
}

struct foreign_binary *foreign_binary_open(const char *path,
                                           char out_message[FOREIGN_MESSAGE_SIZE]) {
    pthread_mutex_lock(&open_lock);
    struct foreign_binary *binary = open_binary(path, out_message);
    pthread_mutex_unlock(&open_lock);
    return binary;
}

// Named functions are asked of the registration, as ggml's own programs do it: they need not be
// exported.
foreign_fn foreign_binary_proc(const struct foreign_binary *binary, const char *name) {
    void *(*get)(void *reg, const char *name) = (void *(*)(void *, const char *))foreign_entry(
        binary->reg, binary->layout->reg_get_proc_address);
    foreign_fn function = NULL;
    void *address = get ? get(binary->reg, name) : NULL;
    memcpy(&function, &address, sizeof(address));
    return function;
}
