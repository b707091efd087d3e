// SPDX-License-Identifier: MIT
// Buffer types, buffers, and access to the tensors in them.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "elf_view.h"
#include "ggml-host.h"
#include "subject.h"

enum { N_BYTES = 4000, N_FREES = 100, GUARD = 64 };

// The bufts that a check goes through, opened; ends the check without any.
#define FOR_EACH_BUFT(run, bufts, buft)                                                            \
    bufts_open(run, &bufts);                                                                       \
    ggml_backend_buffer_type_t buft = bufts.items[0];                                              \
    for (int buft##_i = 0; buft##_i < bufts.n; buft = bufts.items[++buft##_i % bufts.n])

// Those for weights as well, which applications ask for by name.
#define FOR_EACH_BUFT_AND_EXTRA(run, bufts, buft)                                                  \
    bufts_open(run, &bufts);                                                                       \
    bufts_add_extra(&bufts);                                                                       \
    ggml_backend_buffer_type_t buft = bufts.items[0];                                              \
    for (int buft##_i = 0; buft##_i < bufts.n; buft = bufts.items[++buft##_i % bufts.n])

static const char *name_of(ggml_backend_buffer_type_t buft) {
    const char *name = buft->table->get_name ? buft->table->get_name(buft) : NULL;
    return name ? name : "(unnamed)";
}

// --- buffer types --------------------------------------------------------------------------------

void buffer_type_table(struct check_run *run) {
    struct bufts bufts;
    FOR_EACH_BUFT_AND_EXTRA(run, bufts, buft) {
        CHECK_THAT(run, buft->table, "a buffer type has no table");
        CHECK_THAT(run, buft->table->size >= offsetof(struct ggml_buffer_type_table, reserved),
                   "the table of a buffer type is %u bytes long, less than that of contract 1.0",
                   (unsigned)buft->table->size);
    }
}

void buffer_type_name(struct check_run *run) {
    struct bufts bufts;
    FOR_EACH_BUFT_AND_EXTRA(run, bufts, buft) {
        const char *name = buft->table->get_name ? buft->table->get_name(buft) : NULL;
        CHECK_THAT(run, name && name[0] && valid_utf8(name), "a buffer type has no valid name");
        CHECK_THAT(run, strcmp(buft->table->get_name(buft), name) == 0, "the name of %s changes",
                   name);
    }
}

void buffer_type_entries(struct check_run *run) {
    struct bufts bufts;
    FOR_EACH_BUFT_AND_EXTRA(run, bufts, buft) {
        CHECK_THAT(run, buft->table->alloc_buffer, "%s has no alloc_buffer", name_of(buft));
        CHECK_THAT(run, buft->table->get_alignment, "%s has no get_alignment", name_of(buft));
    }
}

void buffer_type_alignment(struct check_run *run) {
    struct bufts bufts;
    FOR_EACH_BUFT_AND_EXTRA(run, bufts, buft) {
        const size_t alignment = buft->table->get_alignment(buft);
        CHECK_THAT(run, alignment > 0 && (alignment & (alignment - 1)) == 0,
                   "the alignment of %s is %zu, not a power of two", name_of(buft), alignment);
        CHECK_THAT(run, buft->table->get_alignment(buft) == alignment,
                   "the alignment of %s changes", name_of(buft));
    }
}

void buffer_type_max_size(struct check_run *run) {
    struct bufts bufts;
    FOR_EACH_BUFT_AND_EXTRA(run, bufts, buft) {
        CHECK_THAT(run, !buft->table->get_max_size || buft->table->get_max_size(buft) > 0,
                   "the largest buffer of %s has 0 bytes", name_of(buft));
    }
}

// A backend may want more bytes than a tensor has, never less; tried for 24 shapes of plain and
// block types.
void buffer_type_alloc_size(struct check_run *run) {
    static const enum ggml_type types[] = {GGML_TYPE_F32,  GGML_TYPE_F16,  GGML_TYPE_I8,
                                           GGML_TYPE_Q4_0, GGML_TYPE_Q8_0, GGML_TYPE_Q6_K};
    static const int64_t extents[] = {256, 512, 1280, 4096};
    struct bufts bufts;
    struct ggml_context *ctx = ggml_init(
        (struct ggml_init_params){.mem_size = 64 * ggml_tensor_overhead(), .no_alloc = true});
    CHECK_THAT(run, ctx, "no memory");
    FOR_EACH_BUFT(run, bufts, buft) {
        for (size_t i = 0; buft->table->get_alloc_size && i < 24; ++i) {
            ggml_reset(ctx);
            const struct ggml_tensor *t =
                ggml_new_tensor_2d(ctx, types[i / 4], extents[i % 4], 1 + (int64_t)i);
            const size_t size = buft->table->get_alloc_size(buft, t);
            CHECK_THAT(run, size >= ggml_nbytes(t), "%s wants %zu bytes for a tensor of %zu",
                       name_of(buft), size, ggml_nbytes(t));
        }
    }
}

// What is_host says decides how the host reads the memory; it may not change between calls.
void buffer_type_is_host(struct check_run *run) {
    struct bufts bufts;
    FOR_EACH_BUFT_AND_EXTRA(run, bufts, buft) {
        if (!buft->table->is_host) continue;
        const bool host = buft->table->is_host(buft);
        CHECK_THAT(run, buft->table->is_host(buft) == host, "%s is host memory now and then",
                   name_of(buft));
    }
}

// A buffer type of host memory may be the host's own.
void buffer_type_device(struct check_run *run) {
    struct bufts bufts;
    FOR_EACH_BUFT_AND_EXTRA(run, bufts, buft) {
        CHECK_THAT(run,
                   buft == ggml_backend_cpu_buffer_type() ||
                       (buft->device && buft->device->reg == bufts.devices.reg),
                   "%s belongs to no device of the plugin", name_of(buft));
    }
}

static bool all_zero(const void *memory, size_t size) {
    for (size_t i = 0; i < size; ++i) {
        if (((const char *)memory)[i] != 0) return false;
    }
    return true;
}

void buffer_type_reserved(struct check_run *run) {
    struct bufts bufts;
    if (elf_view_is_newer(run)) check_skip(run, "the plugin may know more than this program");
    FOR_EACH_BUFT_AND_EXTRA(run, bufts, buft) {
        CHECK_THAT(run,
                   all_zero(buft->reserved, sizeof(buft->reserved)) &&
                       all_zero(buft->table->reserved, sizeof(buft->table->reserved)),
                   "a reserved slot of %s is not zero", name_of(buft));
    }
}

// --- buffers -------------------------------------------------------------------------------------

// Whether a buffer of that size fails with a status, and sets no object beside it.
static bool is_refused(ggml_backend_buffer_type_t buft, size_t size) {
    ggml_backend_buffer_t buffer = NULL;
    return buft->table->alloc_buffer(buft, size, &buffer) != GGML_HOST_OK && !buffer;
}

// Calls the table's entry, not the host's wrapper, which would hide wrong results. Fails the
// check if there is no usable buffer.
static ggml_backend_buffer_t new_buffer(const struct check_run *run,
                                        ggml_backend_buffer_type_t buft, size_t size) {
    ggml_backend_buffer_t buffer = NULL;
    const int32_t status = buft->table->alloc_buffer(buft, size, &buffer);
    CHECK_THAT(run, status == GGML_HOST_OK && buffer,
               "%s: no buffer of %zu bytes: status %d (%s), %s", name_of(buft), size, (int)status,
               status_text(status), host_counters.last_error);
    CHECK_THAT(run,
               buffer->table &&
                   buffer->table->size >= offsetof(struct ggml_buffer_table, reserved) &&
                   buffer->table->free && buffer->table->get_base,
               "%s: a buffer has no table of contract 1.0 with free and get_base", name_of(buft));
    return buffer;
}

// Sizes around alignments and pages, and some of megabytes.
void buffer_alloc(struct check_run *run) {
    static const size_t sizes[] = {1, 2, 31, 32, 33, 4095, 4097, 1000003, 4 << 20};
    struct bufts bufts;
    FOR_EACH_BUFT(run, bufts, buft) {
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
            ggml_backend_buffer_t buffer = new_buffer(run, buft, sizes[i]);
            CHECK_THAT(run, buffer->size >= sizes[i], "%s: a buffer of %zu bytes instead of %zu",
                       name_of(buft), buffer->size, sizes[i]);
            ggml_backend_buffer_free(buffer);
        }
    }
}

// The object says which type it is of, and leaves reserved slots zero.
void buffer_object(struct check_run *run) {
    struct bufts bufts;
    const bool newer = elf_view_is_newer(run);
    FOR_EACH_BUFT(run, bufts, buft) {
        const struct ggml_backend_buffer *buffer = new_buffer(run, buft, 100);
        CHECK_THAT(run, buffer->buft == buft, "%s: the buffer is of another type", name_of(buft));
        CHECK_THAT(run,
                   newer || (all_zero(buffer->reserved, sizeof(buffer->reserved)) &&
                             all_zero(buffer->table->reserved, sizeof(buffer->table->reserved))),
                   "%s: a reserved slot of a buffer is not zero", name_of(buft));
    }
}

void buffer_usage_initial(struct check_run *run) {
    struct bufts bufts;
    FOR_EACH_BUFT(run, bufts, buft) {
        ggml_backend_buffer_t buffer = new_buffer(run, buft, 100);
        CHECK_THAT(run, buffer->usage == GGML_BACKEND_BUFFER_USAGE_ANY,
                   "%s: a new buffer has usage %d", name_of(buft), (int)buffer->usage);
        ggml_backend_buffer_set_usage(buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
        CHECK_THAT(run, buffer->usage == GGML_BACKEND_BUFFER_USAGE_WEIGHTS,
                   "%s: the usage does not stay", name_of(buft));
        ggml_backend_buffer_free(buffer);
    }
}

void buffer_base(struct check_run *run) {
    struct bufts bufts;
    FOR_EACH_BUFT(run, bufts, buft) {
        ggml_backend_buffer_t buffer = new_buffer(run, buft, 1000);
        CHECK_THAT(run, buffer->table->get_base, "%s: a buffer has no get_base", name_of(buft));
        const void *base = buffer->table->get_base(buffer);
        CHECK_THAT(run, base, "%s: the base of a buffer is NULL", name_of(buft));
        CHECK_THAT(run, buffer->table->get_base(buffer) == base, "%s: the base of a buffer changes",
                   name_of(buft));
    }
}

// Sizes that are no multiples of the alignment, from 1 to 100,000 bytes.
void buffer_base_aligned(struct check_run *run) {
    struct bufts bufts;
    FOR_EACH_BUFT(run, bufts, buft) {
        const size_t alignment = buft->table->get_alignment(buft);
        for (size_t size = 1; size < 100000; size = size * 3 + 1) {
            ggml_backend_buffer_t buffer = new_buffer(run, buft, size);
            const uintptr_t base = (uintptr_t)buffer->table->get_base(buffer);
            CHECK_THAT(run, base % alignment == 0, "%s: base %#zx is not aligned to %zu",
                       name_of(buft), (size_t)base, alignment);
        }
    }
}

// One byte above get_max_size is refused. A type without a limit is left out.
void buffer_over_limit(struct check_run *run) {
    struct bufts bufts;
    FOR_EACH_BUFT(run, bufts, buft) {
        const size_t most = buft->table->get_max_size ? buft->table->get_max_size(buft) : SIZE_MAX;
        if (most > SIZE_MAX - 4096) continue;
        CHECK_THAT(run, is_refused(buft, most + 1), "%s: a buffer larger than the largest one",
                   name_of(buft));
    }
}

// Sizes near SIZE_MAX, where adding the alignment or a header wraps to a small number.
void buffer_absurd(struct check_run *run) {
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 63, SIZE_MAX - 8192, SIZE_MAX / 2 + 1};
    struct bufts bufts;
    FOR_EACH_BUFT(run, bufts, buft) {
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
            CHECK_THAT(run, is_refused(buft, sizes[i]), "%s: a buffer of %zu bytes", name_of(buft),
                       sizes[i]);
        }
    }
}

// N_FREES buffers leave no block of the host's memory; a first one takes what is allocated once.
void buffer_free_often(struct check_run *run) {
    struct bufts bufts;
    FOR_EACH_BUFT(run, bufts, buft) {
        ggml_backend_buffer_free(new_buffer(run, buft, 1000));
        const long before = atomic_load(&host_counters.live_blocks);
        for (int i = 0; i < N_FREES; ++i)
            ggml_backend_buffer_free(new_buffer(run, buft, 1000));
        const long left = atomic_load(&host_counters.live_blocks) - before;
        CHECK_THAT(run, left == 0, "%s: %ld blocks are left of %d buffers", name_of(buft), left,
                   N_FREES);
    }
}

// Every allocation of making a buffer fails in turn.
void buffer_out_of_memory(struct check_run *run) {
    struct bufts bufts;
    FOR_EACH_BUFT(run, bufts, buft) {
        ggml_backend_buffer_free(new_buffer(run, buft, 1000));
        const long live = atomic_load(&host_counters.live_blocks);
        for (long n = 1; n < 50; ++n) {
            const long begun = atomic_load(&host_counters.n_allocs);
            atomic_store(&host_counters.fail_at, begun + n);
            ggml_backend_buffer_t buffer = NULL;
            const int32_t status = buft->table->alloc_buffer(buft, 1000, &buffer);
            atomic_store(&host_counters.fail_at, 0);
            CHECK_THAT(run, (status == GGML_HOST_OK) == (buffer != NULL),
                       "%s: status %d (%s), and %s buffer", name_of(buft), (int)status,
                       status_text(status), buffer ? "a" : "no");
            if (buffer) ggml_backend_buffer_free(buffer);
            const long left = atomic_load(&host_counters.live_blocks) - live;
            CHECK_THAT(run, left <= 0, "%s: %ld blocks are left after allocation %ld failed",
                       name_of(buft), left, n);
            if (atomic_load(&host_counters.n_allocs) - begun < n) break;
        }
    }
}

// --- tensors -------------------------------------------------------------------------------------

struct placed {
    struct ggml_context *ctx;
    struct ggml_tensor *tensor; // N_BYTES bytes
    struct ggml_tensor *other;  // the same in the same buffer
    struct ggml_tensor *whole;  // all of the buffer
    ggml_backend_buffer_t buffer;
};

// A tensor of n bytes at that offset of the buffer.
static struct ggml_tensor *put(const struct check_run *run, const struct placed *p, int64_t n,
                               size_t offset) {
    struct ggml_tensor *tensor = ggml_new_tensor_1d(p->ctx, GGML_TYPE_I8, n);
    char *base = p->buffer->table->get_base(p->buffer);
    const enum ggml_status status = ggml_backend_tensor_alloc(p->buffer, tensor, base + offset);
    CHECK_THAT(run, status == GGML_STATUS_SUCCESS, "no tensor at offset %zu: %s", offset,
               ggml_last_error());
    return tensor;
}

// Whether the number is in the contract's list of statuses.
static bool status_is_known(int32_t status) {
    static const int32_t known[] = {
#define GGML_HOST_STATUS_ROW(number, name, text) number,
#include "status_list.inl"
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); ++i) {
        if (known[i] == status) return true;
    }
    return false;
}

// Two tensors with bytes on either side that belong to none. False if this memory can't be read and
// written.
static bool place(const struct check_run *run, ggml_backend_buffer_type_t buft,
                  struct placed *out_placed) {
    const size_t alignment = buft->table->get_alignment(buft);
    const size_t step = (N_BYTES + GUARD + alignment - 1) / alignment * alignment;
    const size_t first = (GUARD + alignment - 1) / alignment * alignment;
    *out_placed = (struct placed){.buffer = new_buffer(run, buft, first + 2 * step)};
    if (!out_placed->buffer->table->set_tensor || !out_placed->buffer->table->get_tensor)
        return false;
    out_placed->ctx = ggml_init(
        (struct ggml_init_params){.mem_size = 16 * ggml_tensor_overhead(), .no_alloc = true});
    CHECK_THAT(run, out_placed->ctx, "no memory");
    out_placed->tensor = put(run, out_placed, N_BYTES, first);
    out_placed->other = put(run, out_placed, N_BYTES, first + step);
    out_placed->whole = put(run, out_placed, (int64_t)(first + 2 * step), 0);
    return true;
}

// A tensor of that buft with random bytes, which are in `expected` as well.
static bool place_random(const struct check_run *run, ggml_backend_buffer_type_t buft,
                         struct placed *p, unsigned char *expected) {
    struct numbers numbers = {run->seed};
    if (!place(run, buft, p)) return false;
    numbers_fill(&numbers, expected, N_BYTES);
    ggml_backend_tensor_set(p->tensor, expected, 0, N_BYTES);
    return true;
}

// Reads the tensor back, into memory filled with another byte, and compares.
static void expect(const struct check_run *run, ggml_backend_buffer_type_t buft,
                   const struct ggml_tensor *tensor, const unsigned char *expected) {
    unsigned char actual[N_BYTES];
    memset(actual, 0x5a, sizeof(actual));
    ggml_backend_tensor_get(tensor, actual, 0, N_BYTES);
    for (int i = 0; i < N_BYTES; ++i) {
        CHECK_THAT(run, actual[i] == expected[i], "%s: byte %d is %#x instead of %#x",
                   name_of(buft), i, actual[i], expected[i]);
    }
}

// What was set is read back unchanged.
void buffer_round_trip(struct check_run *run) {
    struct bufts bufts;
    struct placed p;
    unsigned char expected[N_BYTES];
    FOR_EACH_BUFT(run, bufts, buft) {
        if (!place_random(run, buft, &p, expected)) continue;
        expect(run, buft, p.tensor, expected);
    }
}

// Offsets and sizes around powers of two and at both ends: where code that moves words or
// vectors treats the rest apart.
static const struct piece {
    size_t offset;
    size_t size;
} pieces[] = {{0, 1},   {1, 1},      {1, 2},    {3, 5},    {7, 9},     {15, 17},
              {16, 16}, {31, 33},    {64, 64},  {63, 65},  {127, 129}, {255, 1},
              {256, 4}, {1000, 999}, {1001, 1}, {3999, 1}, {3996, 4},  {0, N_BYTES}};
enum { N_PIECES = sizeof(pieces) / sizeof(pieces[0]) };

// After each piece the whole tensor is compared: neither too little nor too much may be written.
void buffer_set_offsets(struct check_run *run) {
    struct bufts bufts;
    struct placed p;
    unsigned char expected[N_BYTES], data[N_BYTES];
    struct numbers numbers = {run->seed + 1};
    FOR_EACH_BUFT(run, bufts, buft) {
        if (!place_random(run, buft, &p, expected)) continue;
        for (int i = 0; i < N_PIECES; ++i) {
            numbers_fill(&numbers, data, pieces[i].size);
            memcpy(expected + pieces[i].offset, data, pieces[i].size);
            ggml_backend_tensor_set(p.tensor, data, pieces[i].offset, pieces[i].size);
            expect(run, buft, p.tensor, expected);
        }
    }
}

// A byte of the host's memory on either side of the target must stay as it was.
void buffer_get_offsets(struct check_run *run) {
    struct bufts bufts;
    struct placed p;
    unsigned char expected[N_BYTES], data[N_BYTES + 2];
    FOR_EACH_BUFT(run, bufts, buft) {
        if (!place_random(run, buft, &p, expected)) continue;
        for (int i = 0; i < N_PIECES; ++i) {
            memset(data, 0xa5, sizeof(data));
            ggml_backend_tensor_get(p.tensor, data + 1, pieces[i].offset, pieces[i].size);
            CHECK_THAT(run, memcmp(data + 1, expected + pieces[i].offset, pieces[i].size) == 0,
                       "%s: %zu bytes at %zu are wrong", name_of(buft), pieces[i].size,
                       pieces[i].offset);
            CHECK_THAT(run, data[0] == 0xa5 && data[pieces[i].size + 1] == 0xa5,
                       "%s: more than %zu bytes were written to the host", name_of(buft),
                       pieces[i].size);
        }
    }
}

// After each piece the whole tensor is compared, so that a write outside it is seen.
void buffer_memset(struct check_run *run) {
    struct bufts bufts;
    struct placed p;
    unsigned char expected[N_BYTES];
    FOR_EACH_BUFT(run, bufts, buft) {
        if (!place_random(run, buft, &p, expected)) continue;
        for (int i = 0; i < N_PIECES; ++i) {
            memset(expected + pieces[i].offset, 0x30 + i, pieces[i].size);
            ggml_backend_tensor_memset(p.tensor, (uint8_t)(0x30 + i), pieces[i].offset,
                                       pieces[i].size);
            expect(run, buft, p.tensor, expected);
        }
    }
}

// 13 pieces of 17 bytes, with strides of 101 in the tensor and of 37 in the host's memory.
void buffer_set_2d(struct check_run *run) {
    struct bufts bufts;
    struct placed p;
    unsigned char expected[N_BYTES], data[N_BYTES];
    struct numbers numbers = {run->seed + 2};
    FOR_EACH_BUFT(run, bufts, buft) {
        if (!place_random(run, buft, &p, expected)) continue;
        numbers_fill(&numbers, data, sizeof(data));
        for (size_t i = 0; i < 13; ++i)
            memcpy(expected + 5 + i * 101, data + i * 37, 17);
        ggml_backend_tensor_set_2d(p.tensor, data, 5, 17, 13, 101, 37);
        expect(run, buft, p.tensor, expected);
    }
}

// 13 pieces of 17 bytes, 101 bytes apart in the tensor and 37 in host memory; the bytes between
// must stay as they are.
void buffer_get_2d(struct check_run *run) {
    struct bufts bufts;
    struct placed p;
    unsigned char expected[N_BYTES], data[N_BYTES], wanted[N_BYTES];
    FOR_EACH_BUFT(run, bufts, buft) {
        if (!place_random(run, buft, &p, expected)) continue;
        memset(data, 0xa5, sizeof(data));
        memset(wanted, 0xa5, sizeof(wanted));
        for (size_t i = 0; i < 13; ++i)
            memcpy(wanted + i * 37, expected + 5 + i * 101, 17);
        ggml_backend_tensor_get_2d(p.tensor, data, 5, 17, 13, 101, 37);
        CHECK_THAT(run, memcmp(data, wanted, sizeof(data)) == 0, "%s: the pieces are wrong",
                   name_of(buft));
    }
}

// The host memory is free again when set_tensor returned.
void buffer_set_complete(struct check_run *run) {
    struct bufts bufts;
    struct placed p;
    unsigned char expected[N_BYTES];
    FOR_EACH_BUFT(run, bufts, buft) {
        if (!place_random(run, buft, &p, expected)) continue;
        unsigned char *copy = malloc(N_BYTES);
        CHECK_THAT(run, copy, "no memory");
        memcpy(copy, expected, N_BYTES);
        ggml_backend_tensor_set(p.tensor, copy, 0, N_BYTES);
        memset(copy, 0, N_BYTES);
        expect(run, buft, p.tensor, expected);
        free(copy);
    }
}

// What lies around a tensor stays what it is.
// argument: 0 set, 1 memset, 2 2-D.
void buffer_guard(struct check_run *run) {
    struct bufts bufts;
    struct placed p;
    unsigned char data[N_BYTES] = {0};
    FOR_EACH_BUFT(run, bufts, buft) {
        if (!place(run, buft, &p)) continue;
        const size_t size = (size_t)p.whole->ne[0];
        const size_t at = (size_t)((char *)p.tensor->data - (char *)p.whole->data);
        unsigned char *image = malloc(size);
        CHECK_THAT(run, image, "no memory");
        memset(image, 0x77, size);
        ggml_backend_tensor_set(p.whole, image, 0, size);
        switch (run->check->argument) {
        case 0: ggml_backend_tensor_set(p.tensor, data, 0, N_BYTES); break;
        case 1: ggml_backend_tensor_memset(p.tensor, 0, 0, N_BYTES); break;
        default: ggml_backend_tensor_set_2d(p.tensor, data, 0, 40, 100, 40, 40);
        }
        ggml_backend_tensor_get(p.whole, image, 0, size);
        for (size_t i = 0; i < size; ++i) {
            CHECK_THAT(run, image[i] == (i >= at && i - at < N_BYTES ? 0 : 0x77),
                       "%s: byte %zd of a tensor of %d bytes is %#x", name_of(buft),
                       (ptrdiff_t)(i - at), N_BYTES, image[i]);
        }
        free(image);
    }
}

// clear fills the whole buffer, also between tensors.
void buffer_clear(struct check_run *run) {
    struct bufts bufts;
    struct placed p;
    unsigned char expected[N_BYTES];
    FOR_EACH_BUFT(run, bufts, buft) {
        if (!place_random(run, buft, &p, expected) || !p.buffer->table->clear) continue;
        const size_t size = (size_t)p.whole->ne[0];
        unsigned char *image = malloc(size);
        CHECK_THAT(run, image, "no memory");
        ggml_backend_buffer_clear(p.buffer, 0xc3);
        ggml_backend_tensor_get(p.whole, image, 0, size);
        for (size_t i = 0; i < size; ++i)
            CHECK_THAT(run, image[i] == 0xc3, "%s: byte %zu is not cleared", name_of(buft), i);
        free(image);
    }
}

// cpy_tensor: OK with everything copied, or UNSUPPORTED with nothing changed. In `expected` is what
// lies in `to`, and then what has to.
static void copy_directly(const struct check_run *run, const struct placed *from,
                          const struct placed *to, const struct ggml_tensor *src,
                          unsigned char *expected) {
    unsigned char data[N_BYTES];
    struct numbers numbers = {run->seed + 3};
    const char *name = name_of(to->buffer->buft);
    numbers_fill(&numbers, data, sizeof(data));
    ggml_backend_tensor_set(from->other, data, 0, N_BYTES);
    const int32_t status = to->buffer->table->cpy_tensor(to->buffer, src, to->tensor);
    CHECK_THAT(run, status == GGML_HOST_OK || status == GGML_HOST_UNSUPPORTED,
               "%s: cpy_tensor returns status %d (%s)", name, (int)status, status_text(status));
    if (status == GGML_HOST_OK) memcpy(expected, data, N_BYTES);
    expect(run, to->buffer->buft, to->tensor, expected);
    expect(run, from->buffer->buft, from->other, data);
}

// argument: 0 from memory of the host, 1 from the same buffer.
void buffer_copy_direct(struct check_run *run) {
    const bool own = run->check->argument == 1;
    struct bufts bufts;
    struct placed p, host;
    unsigned char expected[N_BYTES];
    FOR_EACH_BUFT(run, bufts, buft) {
        if (!place(run, ggml_backend_cpu_buffer_type(), &host)) continue;
        if (!place_random(run, buft, &p, expected) || !p.buffer->table->cpy_tensor) continue;
        const struct placed *from = own ? &p : &host;
        copy_directly(run, from, &p, from->other, expected);
    }
}

// Between two buffers, of one type or of two.
void buffer_copy_pairs(struct check_run *run) {
    struct bufts bufts;
    struct placed from, to;
    unsigned char expected[N_BYTES];
    FOR_EACH_BUFT(run, bufts, buft) {
        for (int i = 0; i < bufts.n; ++i) {
            if (!place_random(run, buft, &to, expected) || !to.buffer->table->cpy_tensor) continue;
            if (!place(run, bufts.items[i], &from)) continue;
            copy_directly(run, &from, &to, from.other, expected);
        }
    }
}

// Every entry that returns a status, used as it may be used.
void buffer_statuses(struct check_run *run) {
    struct bufts bufts;
    struct placed p;
    unsigned char data[N_BYTES] = {0};
    FOR_EACH_BUFT(run, bufts, buft) {
        if (!place(run, buft, &p)) continue;
        const struct ggml_buffer_table *table = p.buffer->table;
        ggml_backend_buffer_t b = p.buffer;
        const struct {
            const char *name;
            int32_t status;
        } answers[] = {
            {"set_tensor", table->set_tensor(b, p.tensor, data, 0, N_BYTES)},
            {"get_tensor", table->get_tensor(b, p.tensor, data, 0, N_BYTES)},
            {"memset_tensor",
             table->memset_tensor ? table->memset_tensor(b, p.tensor, 1, 0, N_BYTES) : 0},
            {"set_tensor_2d",
             table->set_tensor_2d ? table->set_tensor_2d(b, p.tensor, data, 0, 4, 8, 16, 8) : 0},
            {"get_tensor_2d",
             table->get_tensor_2d ? table->get_tensor_2d(b, p.tensor, data, 0, 4, 8, 16, 8) : 0},
            {"cpy_tensor", table->cpy_tensor ? table->cpy_tensor(b, p.other, p.tensor) : 0},
            {"clear", table->clear ? table->clear(b, 0) : 0},
            {"set_usage",
             table->set_usage ? table->set_usage(b, GGML_BACKEND_BUFFER_USAGE_COMPUTE) : 0},
            {"reset", table->reset ? table->reset(b) : 0},
        };
        for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); ++i)
            CHECK_THAT(run, status_is_known(answers[i].status), "%s: %s returns %d, no status",
                       name_of(buft), answers[i].name, (int)answers[i].status);
    }
}

// Whole rows of quantised numbers, in as many transfers as the type allows. False: it takes no such
// tensor.
static bool transfer_quantised(const struct check_run *run, ggml_backend_buffer_type_t buft,
                               enum ggml_type type) {
    struct ggml_context *ctx = ggml_init(
        (struct ggml_init_params){.mem_size = 4 * ggml_tensor_overhead(), .no_alloc = true});
    CHECK_THAT(run, ctx, "no memory");
    struct ggml_tensor *tensor = ggml_new_tensor_2d(ctx, type, 256, 64);
    const size_t size = ggml_nbytes(tensor);
    size_t unit = buft->table->get_access_unit ? buft->table->get_access_unit(buft, tensor) : 1;
    if (unit > size) unit = size;
    CHECK_THAT(run, unit > 0, "%s: the unit of access is 0", name_of(buft));
    const size_t room =
        buft->table->get_alloc_size ? buft->table->get_alloc_size(buft, tensor) : size;
    ggml_backend_buffer_t buffer = new_buffer(run, buft, room);
    const struct ggml_buffer_table *table = buffer->table;
    unsigned char *data = malloc(2 * size);
    CHECK_THAT(run, data, "no memory");
    if (!table->set_tensor || !table->get_tensor ||
        ggml_backend_tensor_alloc(buffer, tensor, table->get_base(buffer)) != GGML_STATUS_SUCCESS)
        return false;
    struct numbers numbers = {run->seed + 4};
    numbers_fill(&numbers, data, size);
    const size_t part = (size / 3 + unit) / unit * unit;
    for (size_t at = 0; at < size; at += part)
        ggml_backend_tensor_set(tensor, data + at, at, at + part > size ? size - at : part);
    if (table->get_tensor(buffer, tensor, data + size, 0, size) == GGML_HOST_UNSUPPORTED)
        return false;
    CHECK_THAT(run, memcmp(data, data + size, size) == 0,
               "%s: a tensor of %s is not read as it was set", name_of(buft), ggml_type_name(type));
    ggml_backend_buffer_free(buffer);
    ggml_free(ctx);
    free(data);
    return true;
}

// Weights' own buffer types are tried too, as they may store blocks in another order.
void buffer_quantised(struct check_run *run) {
    static const enum ggml_type types[] = {GGML_TYPE_Q4_0, GGML_TYPE_Q8_0, GGML_TYPE_Q4_K};
    struct bufts bufts;
    bool any = false;
    bufts_open(run, &bufts);
    bufts_add_extra(&bufts);
    for (int i = 0; i < bufts.n; ++i) {
        for (size_t j = 0; j < sizeof(types) / sizeof(types[0]); ++j)
            any = transfer_quantised(run, bufts.items[i], types[j]) || any;
    }
    if (!any) check_skip(run, "no buffer takes quantised tensors");
}

// Bytes set through a view appear at its offset in the tensor below.
void buffer_view(struct check_run *run) {
    struct bufts bufts;
    struct placed p;
    unsigned char expected[N_BYTES];
    const unsigned char data[100] = {1, 2, 3};
    FOR_EACH_BUFT(run, bufts, buft) {
        if (!place_random(run, buft, &p, expected)) continue;
        struct ggml_tensor *view = ggml_view_1d(p.ctx, p.tensor, sizeof(data), 1000);
        CHECK_THAT(run, ggml_backend_view_init(view) == GGML_STATUS_SUCCESS, "%s: no view: %s",
                   name_of(buft), ggml_last_error());
        ggml_backend_tensor_set(view, data, 0, sizeof(data));
        memcpy(expected + 1000, data, sizeof(data));
        expect(run, buft, p.tensor, expected);
    }
}

// After reset a tensor can be placed and used at the buffer's start again.
void buffer_reset(struct check_run *run) {
    struct bufts bufts;
    struct placed p;
    unsigned char expected[N_BYTES];
    FOR_EACH_BUFT(run, bufts, buft) {
        if (!place_random(run, buft, &p, expected)) continue;
        ggml_backend_buffer_reset(p.buffer);
        struct ggml_tensor *again = put(run, &p, N_BYTES, 0);
        ggml_backend_tensor_set(again, expected, 0, N_BYTES);
        expect(run, buft, again, expected);
    }
}

// set_usage is a hint: it may not change what lies in the buffer.
void buffer_usage_kept(struct check_run *run) {
    static const enum ggml_backend_buffer_usage usages[] = {GGML_BACKEND_BUFFER_USAGE_WEIGHTS,
                                                            GGML_BACKEND_BUFFER_USAGE_COMPUTE,
                                                            GGML_BACKEND_BUFFER_USAGE_ANY};
    struct bufts bufts;
    struct placed p;
    unsigned char expected[N_BYTES];
    FOR_EACH_BUFT(run, bufts, buft) {
        if (!place_random(run, buft, &p, expected)) continue;
        for (size_t i = 0; i < sizeof(usages) / sizeof(usages[0]); ++i) {
            ggml_backend_buffer_set_usage(p.buffer, usages[i]);
            expect(run, buft, p.tensor, expected);
        }
    }
}

// The address of a tensor in host memory can be used by anybody.
void buffer_host_address(struct check_run *run) {
    struct bufts bufts;
    struct placed p;
    unsigned char expected[N_BYTES];
    FOR_EACH_BUFT(run, bufts, buft) {
        if (!buft->table->is_host || !buft->table->is_host(buft)) continue;
        if (!place_random(run, buft, &p, expected)) continue;
        CHECK_THAT(run, memcmp(p.tensor->data, expected, N_BYTES) == 0,
                   "%s: the bytes are not at the tensor's address", name_of(buft));
        memset(p.tensor->data, 0x42, N_BYTES);
        memset(expected, 0x42, N_BYTES);
        expect(run, buft, p.tensor, expected);
    }
}

// Wraps memory of the host (64 KiB, aligned to its size) and frees the buffer: the memory is the
// caller's and stays as it was.
void buffer_wrapped_memory(struct check_run *run) {
    struct devices devices;
    bool any = false;
    devices_open(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        ggml_backend_dev_t device = devices.items[i];
        unsigned char *memory = aligned_alloc(65536, 65536);
        CHECK_THAT(run, memory, "no memory");
        memset(memory, 0x21, 65536);
        ggml_backend_buffer_t buffer =
            device->table->buffer_from_host_ptr ? wrap_memory(device, memory, 65536, 65536) : NULL;
        if (!buffer) continue;
        any = true;
        CHECK_THAT(run, buffer->size == 65536, "%s: %zu bytes of 65536 are wrapped", label(device),
                   buffer->size);
        ggml_backend_buffer_free(buffer);
        for (size_t j = 0; j < 65536; ++j)
            CHECK_THAT(run, memory[j] == 0x21, "%s changed the wrapped memory", label(device));
        free(memory);
    }
    if (!any) check_skip(run, "no device wraps host memory");
}

// Of memory that can only be read.
void buffer_wrapped_read_only(struct check_run *run) {
    enum { SIZE = 65536 };
    struct devices devices;
    bool any = false;
    devices_open(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        ggml_backend_dev_t device = devices.items[i];
        unsigned char *memory =
            mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK_THAT(run, memory != MAP_FAILED, "no memory");
        memset(memory, 0x21, SIZE);
        CHECK_THAT(run, mprotect(memory, SIZE, PROT_READ) == 0, "no memory");
        any = any || device->table->buffer_from_host_ptr;
        ggml_backend_buffer_t buffer = wrap_memory(device, memory, SIZE, SIZE);
        if (buffer) ggml_backend_buffer_free(buffer);
        munmap(memory, SIZE);
    }
    if (!any) check_skip(run, "no device wraps host memory");
}

// --- threads -------------------------------------------------------------------------------------

struct round_tripper {
    struct placed place;
    atomic_int *n_done; // threads with N_ROUNDS behind them
};

enum { N_ROUNDS = 100 };

// Sets random bytes and reads them back; false if they differ.
static bool round_trip(const struct placed *p, struct numbers *numbers) {
    unsigned char data[N_BYTES], back[N_BYTES];
    numbers_fill(numbers, data, sizeof(data));
    ggml_backend_tensor_set(p->tensor, data, 0, N_BYTES);
    ggml_backend_tensor_get(p->tensor, back, 0, N_BYTES);
    return memcmp(data, back, sizeof(data)) == 0;
}

// Goes on until the other thread has its rounds too: on a busy machine one may be done before the
// other begins.
static void *round_trips(void *argument) {
    const struct round_tripper *self = argument;
    struct numbers numbers = {(uint64_t)(uintptr_t)argument};
    void *wrong = NULL;
    for (int i = 0; !wrong && (i <= N_ROUNDS || atomic_load(self->n_done) < 2); ++i) {
        if (i == N_ROUNDS) atomic_fetch_add(self->n_done, 1);
        if (!round_trip(&self->place, &numbers)) wrong = argument;
    }
    if (wrong) atomic_store(self->n_done, 2);
    return wrong;
}

// Each thread has a buffer of its own: that is all that the contract promises.
void buffer_threads(struct check_run *run) {
    struct bufts bufts;
    atomic_int n_done;
    struct round_tripper trippers[2] = {{.n_done = &n_done}, {.n_done = &n_done}};
    FOR_EACH_BUFT(run, bufts, buft) {
        pthread_t threads[2];
        if (!place(run, buft, &trippers[0].place) || !place(run, buft, &trippers[1].place))
            continue;
        atomic_store(&n_done, 0);
        for (int i = 0; i < 2; ++i) {
            CHECK_THAT(run, pthread_create(&threads[i], NULL, round_trips, &trippers[i]) == 0,
                       "no thread");
        }
        for (int i = 0; i < 2; ++i) {
            void *wrong;
            pthread_join(threads[i], &wrong);
            CHECK_THAT(run, !wrong, "%s: two buffers in two threads disturb each other",
                       name_of(buft));
        }
    }
}
