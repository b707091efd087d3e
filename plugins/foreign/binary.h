// SPDX-License-Identifier: MIT
// ggml's binaries: opening them, each with the libggml-base that it was built with, in a namespace
// of the dynamic linker that shares no symbol with the rest of the process.
#ifndef FOREIGN_BINARY_H
#define FOREIGN_BINARY_H

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>

#include "ggml-backend.h"
#include "layout.h"

enum {
    FOREIGN_MESSAGE_SIZE = 512,
    // How many ggml 0.21 to 0.27 have: what this host knows beyond is not for such a binary.
    FOREIGN_OPS = 101,
    FOREIGN_UNARY_OPS = 22,
    FOREIGN_TYPES = 43,
};

// Writes a message, cut off where it is too long. [any-thread]
void foreign_say(char out_message[FOREIGN_MESSAGE_SIZE], const char *format, ...)
    GGML_ATTRIBUTE_FORMAT(2, 3);

// What is called of a libggml-base. Objects of that side are void pointers: their layouts are not
// those of this host's headers.
struct foreign_base {
    struct foreign_base *next;
    char *path;
    long namespace; // Lmid_t
    void *handle;
    void *(*cpu_buffer_type)(void);
    void *(*cpu_buffer_from_ptr)(void *ptr, size_t size);
    void *(*buft_alloc_buffer)(void *buft, size_t size);
    void (*buffer_free)(void *buffer);
    void (*buffer_set_usage)(void *buffer, enum ggml_backend_buffer_usage usage);
    void (*log_set)(ggml_log_callback callback, void *user_data);
    ggml_abort_callback_t (*set_abort_callback)(ggml_abort_callback_t callback); // may be NULL
    const char *(*op_name)(enum ggml_op op);
    const char *(*type_name)(enum ggml_type type);
    size_t (*type_size)(enum ggml_type type);
    const char *(*unary_op_name)(enum ggml_unary_op op);
    size_t (*tensor_overhead)(void);
    struct ggml_context *(*init)(struct ggml_init_params params);
    void (*free)(struct ggml_context *ctx);
    struct ggml_tensor *(*new_tensor_1d)(struct ggml_context *ctx, enum ggml_type type,
                                         int64_t ne0);
    struct ggml_tensor *(*neg)(struct ggml_context *ctx, struct ggml_tensor *a);
    struct ggml_cgraph *(*new_graph_custom)(struct ggml_context *ctx, size_t size, bool grads);
    void (*build_forward_expand)(struct ggml_cgraph *cgraph, struct ggml_tensor *tensor);
    const char *(*version)(void); // may be NULL
    void *host_buffers[2];        // host memory as a whole; [1]: of weights
};

// One binary. It is never closed: its threads, and what it registered, may live on.
struct foreign_binary {
    struct foreign_binary *next;
    char *path;
    const struct foreign_layout *layout;
    const struct foreign_base *base;
    void *reg;
    int score; // of variants the highest is the best; 1 where it does not tell
    pthread_mutex_t
        lock; // held in entries that any thread may call: theirs are not all made for it
};

// Opens a file, or finds it open already; an absolute path. NULL with a message that says why not.
// Runs code of the file, which may crash: untrusted files are tried in another process before.
// [any-thread]
struct foreign_binary *foreign_binary_open(const char *path,
                                           char out_message[FOREIGN_MESSAGE_SIZE]);

// The libggml-base that belongs to a binary: beside it or in a folder above. false with a message.
// [init]
bool foreign_base_find(const char *path, char out_base[PATH_MAX],
                       char out_message[FOREIGN_MESSAGE_SIZE]);

// The binary's function of this name, or NULL. [any-thread]
foreign_fn foreign_binary_proc(const struct foreign_binary *binary, const char *name);

#endif
