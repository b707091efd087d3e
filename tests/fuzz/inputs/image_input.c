// SPDX-License-Identifier: MIT
// Checks the input as an image; one that was accepted as ELF has its segments checked again
// here, by a second implementation.
#include "fuzz/inputs/image_input.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "plugin/image/image_load.h"

static void require(bool holds) {
    if (!holds) abort();
}

static enum ggml_host_status read_memory(void *context, uint64_t offset, void *out, size_t size) {
    memcpy(out, (const unsigned char *)context + offset, size);
    return GGML_HOST_OK;
}

static uint64_t number(const unsigned char *bytes, size_t size) {
    uint64_t value = 0;
    for (size_t i = 0; i < size; ++i)
        value |= (uint64_t)bytes[i] << 8 * i;
    return value;
}

// The rules once more, written down independently, for 64-bit little-endian ELF.
static void check_segments(const unsigned char *data, size_t size) {
    enum { HEADER_SIZE = 64, ENTRY_SIZE = 56, LOAD = 1, DYNAMIC = 2, STACK = 0x6474e551 };
    uint64_t end = 0; // of the segments so far
    unsigned n_loads = 0, n_dynamic = 0;
    require(size >= HEADER_SIZE);
    const uint64_t table = number(data + 32, 8), count = number(data + 56, 2);
    require(table <= size && count * ENTRY_SIZE <= size - table);
    for (uint64_t i = 0; i < count; ++i) {
        const unsigned char *entry = data + table + i * ENTRY_SIZE;
        const uint64_t type = number(entry, 4), flags = number(entry + 4, 4);
        const uint64_t offset = number(entry + 8, 8), address = number(entry + 16, 8);
        const uint64_t in_file = number(entry + 32, 8), in_memory = number(entry + 40, 8);
        if (type == STACK) require((flags & 1) == 0);
        n_dynamic += type == DYNAMIC;
        if (type != LOAD) continue;
        require(offset <= size && in_file <= size - offset && in_file <= in_memory);
        require(address >= end && in_memory <= UINT64_MAX - address);
        require(offset % 4096 == address % 4096);
        end = address + in_memory;
        ++n_loads;
    }
    require(n_loads > 0 && n_dynamic > 0);
}

enum ggml_host_status run_image_input(const unsigned char *data, size_t size) {
    static const unsigned char elf64[] = {0x7f, 'E', 'L', 'F', 2, 1};
    const struct image_source source = {read_memory, (void *)(uintptr_t)data, size, "input"};
    struct image_needs needs;
    ggml_clear_error();
    const enum ggml_host_status status = plugin_image_check(&source, &needs);
    if (status != GGML_HOST_OK) {
        require(ggml_last_status() == status && ggml_last_error()[0] != '\0');
    } else if (size >= sizeof(elf64) && memcmp(data, elf64, sizeof(elf64)) == 0) {
        check_segments(data, size);
    }
    return status;
}
