// SPDX-License-Identifier: MIT
// A host of contract 1.0 in small, built against the frozen headers beside it and linked to nothing
// else of the project: it has to get along with every later plugin of contract 1. Speaks TAP.
//
// usage: host PLUGIN
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <elf.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggml-backend-impl.h"
#include "ggml-host.h"
#include "ggml-impl.h"
#include "ggml-plugin.h"

enum { N_NUMBERS = 64, ALIGNMENT = 64 };

static int n_tests, n_failed;

static bool ok(bool condition, const char *what, const char *detail) {
    printf("%s %d - %s\n", condition ? "ok" : "not ok", ++n_tests, what);
    if (!condition) printf("# %s\n", detail ? detail : "");
    n_failed += !condition;
    return condition;
}

// --- the note, by the rules of 1.0 ---------------------------------------------------------------

static unsigned char *read_file(const char *path, size_t *out_size) {
    FILE *file = fopen(path, "rb");
    unsigned char *bytes = NULL;
    long size = -1;
    *out_size = 0;
    if (file && fseek(file, 0, SEEK_END) == 0) size = ftell(file);
    if (size > 0) bytes = malloc((size_t)size);
    if (bytes) rewind(file);
    if (bytes && fread(bytes, 1, (size_t)size, file) == (size_t)size) *out_size = (size_t)size;
    if (file) fclose(file);
    return bytes;
}

// Copies the note of the file; fields behind its size are zero. False if there is none.
static bool find_note(const unsigned char *file, size_t size, struct ggml_plugin_note *out_note) {
    Elf64_Ehdr header;
    Elf64_Shdr names, section;
    memset(out_note, 0, sizeof(*out_note));
    if (size < sizeof(header)) return false;
    memcpy(&header, file, sizeof(header));
    const size_t end = header.e_shoff + (size_t)header.e_shnum * sizeof(section);
    if (end > size || header.e_shstrndx >= header.e_shnum) return false;
    memcpy(&names, file + header.e_shoff + header.e_shstrndx * sizeof(names), sizeof(names));
    for (size_t i = 0; i < header.e_shnum; ++i) {
        memcpy(&section, file + header.e_shoff + i * sizeof(section), sizeof(section));
        const char *name = (const char *)file + names.sh_offset + section.sh_name;
        if (strcmp(name, GGML_PLUGIN_SECTION_ELF) != 0) continue;
        if (section.sh_offset + section.sh_size > size) return false;
        const size_t n = section.sh_size < sizeof(*out_note) ? section.sh_size : sizeof(*out_note);
        memcpy(out_note, file + section.sh_offset, n);
        return true;
    }
    return false;
}

static bool check_note(const char *path) {
    struct ggml_plugin_note note;
    size_t size;
    unsigned char *file = read_file(path, &size);
    bool good = ok(file && find_note(file, size, &note), "the file has a note", path);
    free(file);
    if (!good) return false;
    good = ok(memcmp(note.magic, GGML_PLUGIN_MAGIC, GGML_PLUGIN_MAGIC_SIZE) == 0 &&
                  note.size >= sizeof(note),
              "the note has the magic and at least the size of 1.0", "");
    good = ok(note.contract_major == 1 && note.contract_min_minor == 0,
              "it gets along with a host of 1.0", "") &&
           good;
    good = ok(note.machine == GGML_MACHINE_HERE, "it is for this machine", "") && good;
    return ok(note.layout_hash == GGML_PLUGIN_LAYOUT_HASH, "it has the layout of 1.0", "") && good;
}

// --- services ------------------------------------------------------------------------------------

static int live_blocks;
static char last_error[256];

static void host_log(const struct ggml_host_table *host, int32_t level, const char *text) {
    (void)host;
    (void)level;
    (void)text;
}

static void host_set_error(const struct ggml_host_table *host, int32_t status, const char *text) {
    (void)host;
    snprintf(last_error, sizeof(last_error), "status %d: %s", status, text ? text : "");
}

static void *host_alloc(const struct ggml_host_table *host, size_t size, size_t alignment) {
    void *memory = NULL;
    (void)host;
    if (alignment < sizeof(void *)) alignment = sizeof(void *);
    if (posix_memalign(&memory, alignment, size) != 0) return NULL;
    __atomic_fetch_add(&live_blocks, 1, __ATOMIC_RELAXED);
    return memory;
}

static void host_free(const struct ggml_host_table *host, void *memory) {
    (void)host;
    if (memory) __atomic_fetch_sub(&live_blocks, 1, __ATOMIC_RELAXED);
    free(memory);
}

static int32_t host_get_topology(const struct ggml_host_table *host,
                                 struct ggml_host_topology *out_topology) {
    const uint32_t size = out_topology->size;
    const struct ggml_host_topology one = {.size = size,
                                           .n_packages = 1,
                                           .n_cores = 1,
                                           .n_performance_cores = 1,
                                           .n_pus = 1,
                                           .n_numa_nodes = 1,
                                           .default_threads = 1};
    (void)host;
    memcpy(out_topology, &one, size < sizeof(one) ? size : sizeof(one));
    return GGML_HOST_OK;
}

static int32_t host_bind_thread(const struct ggml_host_table *host, uint32_t index,
                                uint32_t count) {
    (void)host;
    (void)index;
    (void)count;
    return GGML_HOST_OK;
}

static int32_t host_bind_mask(const struct ggml_host_table *host, const uint64_t *mask, size_t n) {
    (void)host;
    (void)mask;
    (void)n;
    return GGML_HOST_OK;
}

static const char *host_get_config(const struct ggml_host_table *host, const char *name) {
    (void)host;
    (void)name;
    return NULL;
}

// --- host memory ---------------------------------------------------------------------------------

static const char *memory_name(ggml_backend_buffer_type_t buft) {
    (void)buft;
    return "CPU";
}

static size_t memory_alignment(ggml_backend_buffer_type_t buft) {
    (void)buft;
    return ALIGNMENT;
}

static bool memory_is_host(ggml_backend_buffer_type_t buft) {
    (void)buft;
    return true;
}

static void memory_free(ggml_backend_buffer_t buffer) {
    free(buffer->context);
    free(buffer);
}

static void *memory_base(ggml_backend_buffer_t buffer) {
    return buffer->context;
}

static int32_t memory_set(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor,
                          const void *data, size_t offset, size_t size) {
    (void)buffer;
    memcpy((char *)tensor->data + offset, data, size);
    return GGML_HOST_OK;
}

static int32_t memory_get(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor,
                          void *data, size_t offset, size_t size) {
    (void)buffer;
    memcpy(data, (const char *)tensor->data + offset, size);
    return GGML_HOST_OK;
}

static const struct ggml_buffer_table memory_table = {
    .size = sizeof(memory_table),
    .free = memory_free,
    .get_base = memory_base,
    .set_tensor = memory_set,
    .get_tensor = memory_get,
};

static int32_t memory_alloc(ggml_backend_buffer_type_t buft, size_t size,
                            ggml_backend_buffer_t *out_buffer) {
    struct ggml_backend_buffer *buffer = calloc(1, sizeof(*buffer));
    void *memory = NULL;
    if (!buffer || posix_memalign(&memory, ALIGNMENT, size) != 0) {
        free(buffer);
        return GGML_HOST_OUT_OF_MEMORY;
    }
    buffer->table = &memory_table;
    buffer->buft = buft;
    buffer->context = memory;
    buffer->size = size;
    *out_buffer = buffer;
    return GGML_HOST_OK;
}

static const struct ggml_buffer_type_table memory_type_table = {
    .size = sizeof(memory_type_table),
    .get_name = memory_name,
    .alloc_buffer = memory_alloc,
    .get_alignment = memory_alignment,
    .is_host = memory_is_host,
};

static struct ggml_backend_buffer_type memory_type = {.table = &memory_type_table};

static ggml_backend_buffer_type_t get_memory_type(const struct ggml_host_table *host) {
    (void)host;
    return &memory_type;
}

static int32_t no_wrapping(const struct ggml_host_table *host, void *memory, size_t size,
                           ggml_backend_buffer_t *out_buffer) {
    (void)host;
    (void)memory;
    (void)size;
    *out_buffer = NULL;
    return GGML_HOST_UNSUPPORTED;
}

static const struct ggml_extension_host_memory host_memory = {
    sizeof(host_memory), GGML_EXTENSION_HOST_MEMORY_REVISION, get_memory_type, no_wrapping};

static const void *host_get_extension(const struct ggml_host_table *host, const char *id,
                                      uint32_t min_revision) {
    (void)host;
    return strcmp(id, GGML_EXTENSION_HOST_MEMORY) == 0 && min_revision <= 1 ? &host_memory : NULL;
}

static const struct ggml_host_table host_table = {
    .size = sizeof(host_table),
    .contract_major = 1,
    .contract_minor = 0,
    .host_version = "1.0",
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

// --- a sum on a device ---------------------------------------------------------------------------

struct sum {
    struct ggml_tensor tensors[3]; // a, b, a + b
    struct ggml_tensor *nodes[1];
    ggml_backend_buffer_t buffer;
};

static void sum_begin(struct sum *sum) {
    memset(sum, 0, sizeof(*sum));
    for (int i = 0; i < 3; ++i) {
        struct ggml_tensor *t = &sum->tensors[i];
        t->type = GGML_TYPE_F32;
        t->ne[0] = N_NUMBERS;
        t->ne[1] = t->ne[2] = t->ne[3] = 1;
        t->nb[0] = sizeof(float);
        t->nb[1] = t->nb[2] = t->nb[3] = N_NUMBERS * sizeof(float);
    }
    sum->tensors[2].op = GGML_OP_ADD;
    sum->tensors[2].flags = GGML_TENSOR_FLAG_COMPUTE;
    sum->tensors[2].src[0] = &sum->tensors[0];
    sum->tensors[2].src[1] = &sum->tensors[1];
    sum->nodes[0] = &sum->tensors[2];
}

static bool sum_place(struct sum *sum, ggml_backend_buffer_type_t buft) {
    const size_t alignment = buft->table->get_alignment(buft);
    const size_t step = (N_NUMBERS * sizeof(float) + alignment - 1) / alignment * alignment;
    if (buft->table->alloc_buffer(buft, 3 * step, &sum->buffer) != GGML_HOST_OK) return false;
    const struct ggml_buffer_table *table = sum->buffer->table;
    char *base = table->get_base(sum->buffer);
    for (int i = 0; i < 3; ++i) {
        sum->tensors[i].buffer = sum->buffer;
        sum->tensors[i].data = base + (size_t)i * step;
        if (table->init_tensor && table->init_tensor(sum->buffer, &sum->tensors[i]) != GGML_HOST_OK)
            return false;
    }
    return true;
}

static bool sum_compute(struct sum *sum, ggml_backend_t stream) {
    static const int32_t use_counts[1];
    const struct ggml_graph graph = {
        .size = sizeof(graph), .n_nodes = 1, .nodes = sum->nodes, .use_counts = use_counts};
    float numbers[N_NUMBERS];
    for (int i = 0; i < N_NUMBERS; ++i)
        numbers[i] = (float)i;
    for (int i = 0; i < 2; ++i)
        sum->buffer->table->set_tensor(sum->buffer, &sum->tensors[i], numbers, 0, sizeof(numbers));
    if (stream->table->graph_compute(stream, &graph) != GGML_HOST_OK) return false;
    if (stream->table->synchronize && stream->table->synchronize(stream) != GGML_HOST_OK)
        return false;
    sum->buffer->table->get_tensor(sum->buffer, &sum->tensors[2], numbers, 0, sizeof(numbers));
    for (int i = 0; i < N_NUMBERS; ++i) {
        if (fabsf(numbers[i] - 2 * (float)i) > 0) return false;
    }
    return true;
}

static void check_sum(ggml_backend_dev_t device) {
    struct sum sum;
    sum_begin(&sum);
    if (!device->table->supports_op(device, &sum.tensors[2])) {
        printf("# %s does not claim additions\n", device->table->get_name(device));
        return;
    }
    ggml_backend_t stream = NULL;
    const int32_t status = device->table->init_backend(device, NULL, &stream);
    if (!ok(status == GGML_HOST_OK && stream, "a device that claims additions makes a stream",
            last_error))
        return;
    if (ok(sum_place(&sum, device->table->get_buffer_type(device)), "and a buffer", last_error))
        ok(sum_compute(&sum, stream), "and computes an addition", last_error);
    stream->table->free(stream);
    if (!sum.buffer) return;
    sum.buffer->table->free(sum.buffer);
}

// --- the plugin ----------------------------------------------------------------------------------

static void check_device(ggml_backend_dev_t device) {
    struct ggml_backend_dev_props props;
    struct ggml_tensor strange;
    memset(&props, 0, sizeof(props));
    memset(&strange, 0, sizeof(strange));
    device->table->get_props(device, &props);
    printf("# device %s: %s\n", device->table->get_name(device),
           device->table->get_description(device));
    ok(props.name && strcmp(props.name, device->table->get_name(device)) == 0,
       "a device has the properties that it says", props.name);
    strange.op = (enum ggml_op)(GGML_OP_COUNT + 100);
    ok(!device->table->supports_op(device, &strange), "operations of later contracts are declined",
       "");
    check_sum(device);
}

static void check_table(const struct ggml_plugin_table *table) {
    ggml_backend_reg_t reg = table->reg;
    ok(table->contract_major == 1 && table->size >= offsetof(struct ggml_plugin_table, reserved),
       "its table is one of contract 1", "");
    if (!ok(reg && reg->table && reg->table->size >= offsetof(struct ggml_backend_table, reserved),
            "it has a backend", ""))
        return;
    for (size_t i = 0; i < reg->table->get_device_count(reg); ++i)
        check_device(reg->table->get_device(reg, i));
    if (table->shutdown) table->shutdown(table, &host_table);
    ok(live_blocks == 0, "its shutdown gives all memory back", "");
}

static void check_plugin(const char *path) {
    const struct ggml_plugin_table *table = NULL;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    ggml_plugin_init_t init = NULL;
    if (!ok(library, "it is mapped", library ? "" : dlerror())) return;
    *(void **)&init = dlsym(library, GGML_PLUGIN_ENTRY_SYMBOL);
    if (ok(init, "it has the entry", "")) {
        const int32_t status = init(&host_table, &table);
        if (status == GGML_HOST_NO_DEVICE) {
            printf("# no device: %s\n", last_error);
        } else if (ok(status == GGML_HOST_OK && table, "the entry answers OK", last_error)) {
            check_table(table);
        }
    }
    dlclose(library);
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    if (check_note(argv[1])) check_plugin(argv[1]);
    printf("1..%d\n", n_tests);
    return n_failed > 0;
}
