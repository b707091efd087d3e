// SPDX-License-Identifier: MIT
// A library of this machine's own format as bytes in memory, to be changed in one place.
#ifndef GGML_TEST_SUPPORT_ELF_CRAFT_H
#define GGML_TEST_SUPPORT_ELF_CRAFT_H

#include <elf.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct bytes {
    unsigned char *data;
    size_t size;
};

static inline struct bytes read_whole(const char *path) {
    struct bytes bytes = {NULL, 0};
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    bytes.size = (size_t)ftell(file);
    rewind(file);
    bytes.data = malloc(bytes.size);
    assert_non_null(bytes.data);
    assert_int_equal(fread(bytes.data, 1, bytes.size, file), bytes.size);
    fclose(file);
    return bytes;
}

static inline ElfW(Ehdr) * header_of(const struct bytes *bytes) {
    return (ElfW(Ehdr) *)(void *)bytes->data;
}

static inline ElfW(Phdr) * segments_of(const struct bytes *bytes, size_t *out_count) {
    *out_count = header_of(bytes)->e_phnum;
    return (ElfW(Phdr) *)(void *)(bytes->data + header_of(bytes)->e_phoff);
}

// Number `n` of this type; NULL if there are fewer.
static inline ElfW(Phdr) * segment_of(const struct bytes *bytes, uint32_t type, size_t n) {
    size_t count;
    ElfW(Phdr) *segments = segments_of(bytes, &count);
    for (size_t i = 0; i < count; ++i)
        if (segments[i].p_type == type && n-- == 0) return &segments[i];
    return NULL;
}

// An entry of the dynamic section, NULL if there is none; of DT_NULL the first.
static inline ElfW(Dyn) * entry_of(const struct bytes *bytes, int64_t tag) {
    const ElfW(Phdr) *dynamic = segment_of(bytes, PT_DYNAMIC, 0);
    ElfW(Dyn) *entry = (ElfW(Dyn) *)(void *)(bytes->data + dynamic->p_offset);
    while (entry->d_tag != DT_NULL && entry->d_tag != tag)
        ++entry;
    return entry->d_tag == tag ? entry : NULL;
}

static inline ElfW(Shdr) * section_of(const struct bytes *bytes, const char *name) {
    ElfW(Shdr) *sections = (ElfW(Shdr) *)(void *)(bytes->data + header_of(bytes)->e_shoff);
    const char *names =
        (const char *)bytes->data + sections[header_of(bytes)->e_shstrndx].sh_offset;
    for (size_t i = 0; i < header_of(bytes)->e_shnum; ++i)
        if (strcmp(names + sections[i].sh_name, name) == 0) return &sections[i];
    return NULL;
}

#endif
