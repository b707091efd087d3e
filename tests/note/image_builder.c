// SPDX-License-Identifier: MIT
// Builds ELF, PE, Mach-O and universal images that hold a plugin note and nothing else.
#include "note/image_builder.h"

#include <string.h>

enum { NOTE_AT = 2048, TABLE_AT = 1024, NAMES_AT = 768 };

static void put(unsigned char *p, uint64_t value, size_t size, bool big_endian) {
    for (size_t i = 0; i < size; ++i) {
        p[big_endian ? size - 1 - i : i] = (unsigned char)(value >> (8 * i));
    }
}

struct ggml_plugin_note valid_note(void) {
    struct ggml_plugin_note note = {
        .size = sizeof(note),
        .contract_major = GGML_CONTRACT_MAJOR,
        .contract_minor = GGML_CONTRACT_MINOR,
        .machine = GGML_MACHINE_HERE,
        .layout_hash = GGML_PLUGIN_LAYOUT_HASH,
        .name = "sample",
        .variant = "v1",
        .version = "1.2.3",
    };
    memcpy(note.magic, GGML_PLUGIN_MAGIC, sizeof(note.magic));
    return note;
}

static void start(struct built_image *out_image, const struct ggml_plugin_note *note) {
    memset(out_image, 0, sizeof(*out_image));
    memcpy(out_image->bytes + NOTE_AT, note, sizeof(*note));
    out_image->size = NOTE_AT + sizeof(*note);
}

static void put_elf_section(unsigned char *p, bool is_64, bool big, unsigned name, uint64_t offset,
                            uint64_t size) {
    const size_t width = is_64 ? 8 : 4;
    put(p, name, 4, big);
    put(p + 4, 1, 4, big);
    put(p + (is_64 ? 24 : 16), offset, width, big);
    put(p + (is_64 ? 32 : 20), size, width, big);
}

void build_elf(struct built_image *out_image, bool is_64, bool big_endian, uint16_t machine,
               const struct ggml_plugin_note *note) {
    static const char names[] = "\0.shstrtab\0.text\0" GGML_PLUGIN_SECTION_ELF;
    unsigned char *p = out_image->bytes;
    const size_t section = is_64 ? 64 : 40;
    start(out_image, note);
    memcpy(p,
           "\x7f"
           "ELF",
           4);
    p[4] = is_64 ? 2 : 1;
    p[5] = big_endian ? 2 : 1;
    p[6] = 1;
    put(p + 16, 3, 2, big_endian);
    put(p + 18, machine, 2, big_endian);
    put(p + (is_64 ? 40 : 32), TABLE_AT, is_64 ? 8 : 4, big_endian);
    put(p + (is_64 ? 58 : 46), section, 2, big_endian);
    put(p + (is_64 ? 60 : 48), 4, 2, big_endian);
    put(p + (is_64 ? 62 : 50), 1, 2, big_endian);
    memcpy(p + NAMES_AT, names, sizeof(names));
    p += TABLE_AT;
    put_elf_section(p + section, is_64, big_endian, 1, NAMES_AT, sizeof(names));
    put_elf_section(p + 2 * section, is_64, big_endian, 11, 64, 16);
    put_elf_section(p + 3 * section, is_64, big_endian, 17, NOTE_AT, sizeof(*note));
}

void build_elf_extended(struct built_image *out_image, const struct ggml_plugin_note *note) {
    build_elf(out_image, true, false, ELF_HERE, note);
    put(out_image->bytes + 60, 0, 2, false);
    put(out_image->bytes + 62, 0xffff, 2, false);
    put(out_image->bytes + TABLE_AT + 32, 4, 8, false);
    put(out_image->bytes + TABLE_AT + 40, 1, 4, false);
}

void build_pe(struct built_image *out_image, uint16_t machine,
              const struct ggml_plugin_note *note) {
    enum { PE_AT = 128, OPTIONAL_SIZE = 240 };
    unsigned char *p = out_image->bytes;
    start(out_image, note);
    memcpy(p, "MZ", 2);
    put(p + 0x3c, PE_AT, 4, false);
    p += PE_AT;
    memcpy(p, "PE\0\0", 4);
    put(p + 4, machine, 2, false);
    put(p + 6, 2, 2, false);
    put(p + 20, OPTIONAL_SIZE, 2, false);
    put(p + 22, 0x2022, 2, false);
    p += 24 + OPTIONAL_SIZE;
    memcpy(p, ".text", 5);
    p += 40;
    memcpy(p, GGML_PLUGIN_SECTION_PE, sizeof(GGML_PLUGIN_SECTION_PE) - 1);
    put(p + 8, sizeof(*note), 4, false);
    put(p + 16, 512, 4, false); // raw data is padded
    put(p + 20, NOTE_AT, 4, false);
    out_image->size = NOTE_AT + 512;
}

static void put_macho(unsigned char *p, bool big, uint32_t cpu,
                      const struct ggml_plugin_note *note) {
    put(p, 0xfeedfacf, 4, big);
    put(p + 4, cpu, 4, big);
    put(p + 12, 6, 4, big);
    put(p + 16, 2, 4, big);
    put(p + 20, 24 + 72 + 80, 4, big);
    p += 32;
    put(p, 0x2a, 4, big);
    put(p + 4, 24, 4, big);
    p += 24;
    put(p, 0x19, 4, big);
    put(p + 4, 72 + 80, 4, big);
    put(p + 64, 1, 4, big);
    p += 72;
    memcpy(p, GGML_PLUGIN_SECTION_MACHO, sizeof(GGML_PLUGIN_SECTION_MACHO) - 1);
    memcpy(p + 16, GGML_PLUGIN_SEGMENT_MACHO, sizeof(GGML_PLUGIN_SEGMENT_MACHO) - 1);
    put(p + 40, sizeof(*note), 8, big);
    put(p + 48, 512, 4, big);
}

void build_macho(struct built_image *out_image, bool big_endian, uint32_t cpu,
                 const struct ggml_plugin_note *note) {
    start(out_image, note);
    put_macho(out_image->bytes, big_endian, cpu, note);
    memcpy(out_image->bytes + 512, note, sizeof(*note));
    out_image->size = 512 + sizeof(*note);
}

void build_fat(struct built_image *out_image, bool is_wide, const struct ggml_plugin_note *note) {
    enum { FIRST_AT = 512, SECOND_AT = 1536, SLICE_SIZE = 1024 };
    unsigned char *p = out_image->bytes;
    const size_t width = is_wide ? 8 : 4;
    const uint32_t cpus[2] = {MACHO_OTHER, MACHO_HERE};
    const size_t places[2] = {FIRST_AT, SECOND_AT};
    start(out_image, note);
    put(p, is_wide ? 0xcafebabf : 0xcafebabe, 4, true);
    put(p + 4, 2, 4, true);
    for (size_t i = 0; i < 2; ++i) {
        unsigned char *entry = p + 8 + i * (is_wide ? 32 : 20);
        put(entry, cpus[i], 4, true);
        put(entry + 8, places[i], width, true);
        put(entry + 8 + width, SLICE_SIZE, width, true);
        put_macho(p + places[i], false, cpus[i], note);
        memcpy(p + places[i] + 512, note, sizeof(*note));
    }
    out_image->size = SECOND_AT + SLICE_SIZE;
}

const char *build_sample(size_t i, struct built_image *out_image) {
    const struct ggml_plugin_note note = valid_note();
    switch (i) {
    case 0: build_elf(out_image, true, false, ELF_X86_64, &note); return "elf64-x86-64";
    case 1: build_elf(out_image, true, false, ELF_AARCH64, &note); return "elf64-aarch64";
    case 2: build_elf(out_image, false, false, ELF_ARM, &note); return "elf32-arm";
    case 3: build_elf(out_image, true, true, ELF_S390, &note); return "elf64-s390x";
    case 4: build_elf(out_image, false, true, ELF_S390, &note); return "elf32-s390";
    case 5: build_elf_extended(out_image, &note); return "elf64-extended";
    case 6: build_pe(out_image, PE_X86_64, &note); return "pe-x86-64";
    case 7: build_pe(out_image, PE_X86, &note); return "pe-x86";
    case 8: build_macho(out_image, false, MACHO_X86_64, &note); return "macho-x86-64";
    case 9: build_macho(out_image, true, MACHO_AARCH64, &note); return "macho-big-endian";
    case 10: build_fat(out_image, false, &note); return "macho-fat";
    case 11: build_fat(out_image, true, &note); return "macho-fat64";
    default: return NULL;
    }
}

static enum ggml_host_status read_memory(void *context, uint64_t offset, void *out, size_t size) {
    memcpy(out, (const unsigned char *)context + offset, size);
    return GGML_HOST_OK;
}

struct image_source memory_source(const struct built_image *image) {
    return (struct image_source){read_memory, (void *)(uintptr_t)image->bytes, image->size,
                                 "image"};
}
