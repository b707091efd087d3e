// SPDX-License-Identifier: MIT
// ELF: 32 and 64 bits, both byte orders.
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "plugin/image/note_image.h"

enum {
    ELF_IDENT_SIZE = 16,
    ELF_CLASS_32 = 1,
    ELF_CLASS_64 = 2,
    ELF_ORDER_LITTLE = 1,
    ELF_ORDER_BIG = 2,
    ELF_TYPE_SHARED = 3,
    ELF_SECTION_NOBITS = 8,
    ELF_FLAG_COMPRESSED = 0x800,
    ELF_INDEX_ELSEWHERE = 0xffff, // too large for the header: kept in section 0
};

// Offsets of header and section fields, which differ between the two classes.
struct elf_layout {
    size_t header_size;
    size_t shoff, shentsize, shnum, shstrndx;
    size_t section_size;
    size_t sh_offset, sh_size, sh_link;
};

static const struct elf_layout layout_32 = {52, 32, 46, 48, 50, 40, 16, 20, 24};
static const struct elf_layout layout_64 = {64, 40, 58, 60, 62, 64, 24, 32, 40};

// Both classes have the same fields, at other offsets and widths.
static const struct elf_layout *layout_of(const struct plugin_image *image) {
    return image->is_64 ? &layout_64 : &layout_32;
}

// e_machine numbers with class and byte order, which together tell the machine.
static const struct elf_machine {
    uint16_t number;
    bool is_64;
    bool big_endian;
    enum ggml_machine machine;
    const char *name;
} machines[] = {
    {62, true, false, GGML_MACHINE_X86_64, "x86-64"},
    {62, false, false, GGML_MACHINE_NONE, "x86-64 with 32-bit pointers (x32)"},
    {183, true, false, GGML_MACHINE_AARCH64, "AArch64"},
    {183, true, true, GGML_MACHINE_NONE, "big-endian AArch64"},
    {183, false, false, GGML_MACHINE_NONE, "AArch64 with 32-bit pointers (ILP32)"},
    {3, false, false, GGML_MACHINE_X86, "x86 (32-bit)"},
    {40, false, false, GGML_MACHINE_ARM, "ARM (32-bit)"},
    {40, false, true, GGML_MACHINE_NONE, "big-endian ARM (32-bit)"},
    {243, true, false, GGML_MACHINE_RISCV64, "RISC-V 64"},
    {243, false, false, GGML_MACHINE_NONE, "RISC-V 32"},
    {21, true, false, GGML_MACHINE_PPC64LE, "PowerPC 64 little-endian"},
    {21, true, true, GGML_MACHINE_NONE, "PowerPC 64 big-endian"},
    {20, false, true, GGML_MACHINE_NONE, "PowerPC 32"},
    {22, true, true, GGML_MACHINE_S390X, "s390x"},
    {22, false, true, GGML_MACHINE_NONE, "s390"},
    {258, true, false, GGML_MACHINE_LOONGARCH64, "LoongArch 64"},
    {8, true, false, GGML_MACHINE_NONE, "MIPS 64 little-endian"},
    {8, true, true, GGML_MACHINE_NONE, "MIPS 64 big-endian"},
    {8, false, false, GGML_MACHINE_NONE, "MIPS 32 little-endian"},
    {8, false, true, GGML_MACHINE_NONE, "MIPS 32 big-endian"},
    {43, true, true, GGML_MACHINE_NONE, "SPARC 64"},
    {50, true, false, GGML_MACHINE_NONE, "Itanium"},
};

// Sets machine and name from the header. The number alone is not enough: x32 and x86-64, or the two
// byte orders of a processor, share one.
static void set_machine(struct plugin_image *image, uint16_t number) {
    image->machine_name = "an unknown processor";
    for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); ++i) {
        const struct elf_machine *row = &machines[i];
        if (row->number != number || row->is_64 != image->is_64) continue;
        if (row->big_endian != image->big_endian) continue;
        image->machine = row->machine;
        image->machine_name = row->name;
        return;
    }
}

// Reads 20 bytes: class, byte order, type and machine. Programs at fixed addresses have another
// type than libraries.
enum ggml_host_status image_identify_elf(const struct image_source *source,
                                         struct plugin_image *image) {
    unsigned char header[ELF_IDENT_SIZE + 4];
    const enum ggml_host_status status = image_read(source, image, 0, header, sizeof(header));
    if (status != GGML_HOST_OK) return status;
    const unsigned char class = header[4];
    const unsigned char order = header[5];
    if ((class != ELF_CLASS_32 && class != ELF_CLASS_64) ||
        (order != ELF_ORDER_LITTLE && order != ELF_ORDER_BIG)) {
        return ggml_fail(GGML_HOST_DAMAGED_FILE, "%s: damaged: ELF class %u, byte order %u",
                         source->label, class, order);
    }
    image->is_64 = class == ELF_CLASS_64;
    image->big_endian = order == ELF_ORDER_BIG;
    set_machine(image, image_u16(header + ELF_IDENT_SIZE + 2, image->big_endian));
    if (image_u16(header + ELF_IDENT_SIZE, image->big_endian) != ELF_TYPE_SHARED) {
        return ggml_fail(GGML_HOST_NOT_A_PLUGIN, "%s: an ELF file, but not a shared library",
                         source->label);
    }
    return GGML_HOST_OK;
}

// A field of pointer width.
static uint64_t wide(const struct plugin_image *image, const unsigned char *p) {
    return image->is_64 ? image_u64(p, image->big_endian) : image_u32(p, image->big_endian);
}

struct section_table {
    uint64_t offset;
    uint64_t count;
    uint64_t names; // index of the section that holds the names
};

// Files with 0xff00 sections or more keep their number and the index of the names in section 0
// (gABI, "ELF Header").
static enum ggml_host_status read_extended_counts(const struct image_source *source,
                                                  const struct plugin_image *image,
                                                  struct section_table *table) {
    const struct elf_layout *layout = layout_of(image);
    unsigned char first[64];
    const enum ggml_host_status status =
        image_read(source, image, table->offset, first, layout->section_size);
    if (status != GGML_HOST_OK) return status;
    if (table->count == 0) table->count = wide(image, first + layout->sh_size);
    if (table->names == ELF_INDEX_ELSEWHERE) {
        table->names = image_u32(first + layout->sh_link, image->big_endian);
    }
    return GGML_HOST_OK;
}

// Reads where the section headers are, and how many. Every number is bounded before it is used: a
// hostile file must not make the host read or allocate much.
static enum ggml_host_status read_section_table(const struct image_source *source,
                                                const struct plugin_image *image,
                                                struct section_table *out_table) {
    const struct elf_layout *layout = layout_of(image);
    unsigned char header[64];
    memset(out_table, 0, sizeof(*out_table));
    enum ggml_host_status status = image_read(source, image, 0, header, layout->header_size);
    if (status != GGML_HOST_OK) return status;
    out_table->offset = wide(image, header + layout->shoff);
    out_table->count = image_u16(header + layout->shnum, image->big_endian);
    out_table->names = image_u16(header + layout->shstrndx, image->big_endian);
    if (out_table->offset == 0) return image_no_note(source);
    if (image_u16(header + layout->shentsize, image->big_endian) != layout->section_size) {
        return ggml_fail(GGML_HOST_DAMAGED_FILE, "%s: damaged: wrong size of a section header",
                         source->label);
    }
    if (out_table->count == 0 || out_table->names == ELF_INDEX_ELSEWHERE) {
        status = read_extended_counts(source, image, out_table);
    }
    if (status != GGML_HOST_OK) return status;
    if (out_table->count > IMAGE_MAX_SECTIONS || out_table->names >= out_table->count) {
        return ggml_fail(GGML_HOST_DAMAGED_FILE,
                         "%s: damaged: %llu sections, their names in section %llu", source->label,
                         (unsigned long long)out_table->count,
                         (unsigned long long)out_table->names);
    }
    return GGML_HOST_OK;
}

// The section headers as bytes, which the caller frees.
static enum ggml_host_status read_sections(const struct image_source *source,
                                           const struct plugin_image *image,
                                           struct section_table *out_table,
                                           unsigned char **out_sections) {
    *out_sections = NULL;
    const enum ggml_host_status status = read_section_table(source, image, out_table);
    if (status != GGML_HOST_OK) return status;
    const uint64_t size = out_table->count * layout_of(image)->section_size;
    return image_read_table(source, image, out_table->offset, size, out_sections);
}

// Whether the name at an offset is the note's, terminating zero included, so that no longer name
// matches.
static bool has_name(const unsigned char *names, uint64_t size, uint32_t offset) {
    static const char wanted[] = GGML_PLUGIN_SECTION_ELF;
    return offset < size && size - offset >= sizeof(wanted) &&
           memcmp(names + offset, wanted, sizeof(wanted)) == 0;
}

// Index of the first section with the note's name, or `count`; *out_found is how many have it.
static uint64_t find_section(const struct plugin_image *image, const struct section_table *table,
                             const unsigned char *sections, const unsigned char *names,
                             uint64_t names_size, uint64_t *out_found) {
    const struct elf_layout *layout = layout_of(image);
    uint64_t index = table->count;
    *out_found = 0;
    for (uint64_t i = 0; i < table->count; ++i) {
        const unsigned char *section = sections + i * layout->section_size;
        if (!has_name(names, names_size, image_u32(section, image->big_endian))) continue;
        if (image_u32(section + 4, image->big_endian) == ELF_SECTION_NOBITS) continue;
        if (index == table->count) index = i;
        ++*out_found;
    }
    return index;
}

// Finds the note by its section name. Several such sections are refused, as nothing tells which of
// them counts.
enum ggml_host_status image_find_note_elf(const struct image_source *source,
                                          struct plugin_image *image) {
    const struct elf_layout *layout = layout_of(image);
    struct section_table table;
    unsigned char *sections = NULL;
    unsigned char *names = NULL;
    enum ggml_host_status status = read_sections(source, image, &table, &sections);
    if (status != GGML_HOST_OK) return status;

    const unsigned char *holder = sections + table.names * layout->section_size;
    const uint64_t names_size = wide(image, holder + layout->sh_size);
    status = image_read_table(source, image, wide(image, holder + layout->sh_offset), names_size,
                              &names);
    if (status != GGML_HOST_OK) goto fail;
    uint64_t n_found;
    const uint64_t index = find_section(image, &table, sections, names, names_size, &n_found);
    if (index == table.count) {
        status = image_no_note(source);
        goto fail;
    }
    const unsigned char *section = sections + index * layout->section_size;
    if (n_found > 1) {
        status = image_two_notes(source);
        goto fail;
    }
    if (wide(image, section + 8) & ELF_FLAG_COMPRESSED) {
        status =
            ggml_fail(GGML_HOST_DAMAGED_FILE, "%s: damaged: its note is compressed", source->label);
        goto fail;
    }
    status = image_set_note(source, image, wide(image, section + layout->sh_offset),
                            wide(image, section + layout->sh_size));
fail:
    ggml_mem_free(names);
    ggml_mem_free(sections);
    return status;
}

// Section headers for image_load.c, which compares them with the program headers.
enum ggml_host_status image_read_sections_elf(const struct image_source *source,
                                              const struct plugin_image *image,
                                              struct image_section **out_sections,
                                              size_t *out_count) {
    const struct elf_layout *layout = layout_of(image);
    struct section_table table;
    unsigned char *bytes = NULL;
    *out_sections = NULL;
    *out_count = 0;
    const enum ggml_host_status status = read_sections(source, image, &table, &bytes);
    if (status != GGML_HOST_OK) return status;
    struct image_section *sections = ggml_mem_calloc((size_t)table.count, sizeof(*sections));
    for (uint64_t i = 0; sections && i < table.count; ++i) {
        const unsigned char *p = bytes + i * layout->section_size;
        sections[i] = (struct image_section){
            .type = image_u32(p + 4, image->big_endian),
            .flags = wide(image, p + 8),
            .address = wide(image, p + (image->is_64 ? 16 : 12)),
            .offset = wide(image, p + layout->sh_offset),
            .size = wide(image, p + layout->sh_size),
        };
    }
    ggml_mem_free(bytes);
    if (!sections)
        return ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory to look at it", source->label);
    *out_sections = sections;
    *out_count = (size_t)table.count;
    return GGML_HOST_OK;
}
