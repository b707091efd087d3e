// SPDX-License-Identifier: MIT
// PE32 and PE32+: the libraries of Windows.
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "plugin/image/note_image.h"

enum {
    PE_OFFSET_FIELD = 0x3c, // in the DOS header: where the PE header lies
    PE_HEADER_SIZE = 24,    // signature and COFF header
    PE_SECTION_SIZE = 40,
    PE_SECTION_NAME_SIZE = 8,
    PE_FLAG_DLL = 0x2000,
};

// COFF machine numbers.
static const struct pe_machine {
    uint16_t number;
    bool is_64;
    enum ggml_machine machine;
    const char *name;
} machines[] = {
    {0x8664, true, GGML_MACHINE_X86_64, "x86-64"},
    {0xaa64, true, GGML_MACHINE_AARCH64, "AArch64"},
    {0xa641, true, GGML_MACHINE_NONE, "AArch64 (ARM64EC)"},
    {0x014c, false, GGML_MACHINE_X86, "x86 (32-bit)"},
    {0x01c4, false, GGML_MACHINE_ARM, "ARM (32-bit)"},
    {0x5064, true, GGML_MACHINE_RISCV64, "RISC-V 64"},
    {0x6264, true, GGML_MACHINE_LOONGARCH64, "LoongArch 64"},
};

// Reads the signature "PE\0\0" and the COFF header, whose offset the DOS header has.
static enum ggml_host_status read_header(const struct image_source *source,
                                         const struct plugin_image *image, uint64_t *out_offset,
                                         unsigned char *out_header) {
    unsigned char field[4] = {0};
    *out_offset = 0;
    enum ggml_host_status status = image_read(source, image, PE_OFFSET_FIELD, field, sizeof(field));
    if (status != GGML_HOST_OK) return status;
    *out_offset = image_u32(field, false);
    status = image_read(source, image, *out_offset, out_header, PE_HEADER_SIZE);
    if (status != GGML_HOST_OK) return status;
    if (memcmp(out_header, "PE\0\0", 4) != 0) {
        return ggml_fail(GGML_HOST_NOT_A_PLUGIN, "%s: a DOS program, not a library", source->label);
    }
    return GGML_HOST_OK;
}

// A DLL by its flag; programs are refused.
enum ggml_host_status image_identify_pe(const struct image_source *source,
                                        struct plugin_image *image) {
    unsigned char header[PE_HEADER_SIZE];
    uint64_t offset;
    const enum ggml_host_status status = read_header(source, image, &offset, header);
    if (status != GGML_HOST_OK) return status;
    image->machine_name = "an unknown processor";
    for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); ++i) {
        if (machines[i].number != image_u16(header + 4, false)) continue;
        image->machine = machines[i].machine;
        image->machine_name = machines[i].name;
        image->is_64 = machines[i].is_64;
        break;
    }
    if (!(image_u16(header + 22, false) & PE_FLAG_DLL)) {
        return ggml_fail(GGML_HOST_NOT_A_PLUGIN, "%s: a Windows program, not a library",
                         source->label);
    }
    return GGML_HOST_OK;
}

// Sets the note's range. Sections are padded to the file's alignment, so that the virtual size is
// the true one where it is smaller.
static enum ggml_host_status set_note(const struct image_source *source, struct plugin_image *image,
                                      const unsigned char *section) {
    const uint32_t virtual_size = image_u32(section + 8, false);
    const uint32_t raw_size = image_u32(section + 16, false);
    const bool padded = virtual_size != 0 && virtual_size < raw_size;
    return image_set_note(source, image, image_u32(section + 20, false),
                          padded ? virtual_size : raw_size);
}

// Finds the note by its section name, which has 8 bytes and no terminating zero if it fills them.
// The section table follows the optional header, whose size is in the COFF header.
enum ggml_host_status image_find_note_pe(const struct image_source *source,
                                         struct plugin_image *image) {
    static const char wanted[PE_SECTION_NAME_SIZE + 1] = GGML_PLUGIN_SECTION_PE;
    unsigned char header[PE_HEADER_SIZE];
    unsigned char *sections = NULL;
    uint64_t offset;
    enum ggml_host_status status = read_header(source, image, &offset, header);
    if (status != GGML_HOST_OK) return status;
    const uint16_t count = image_u16(header + 6, false);
    if (count == 0) return image_no_note(source);
    if (count > IMAGE_MAX_SECTIONS) {
        return ggml_fail(GGML_HOST_DAMAGED_FILE, "%s: damaged: %u sections", source->label, count);
    }
    const uint64_t table = offset + PE_HEADER_SIZE + image_u16(header + 20, false);
    status = image_read_table(source, image, table, (uint64_t)count * PE_SECTION_SIZE, &sections);
    if (status != GGML_HOST_OK) return status;

    const unsigned char *found = NULL;
    unsigned n_found = 0;
    for (unsigned i = 0; i < count; ++i) {
        const unsigned char *section = sections + (size_t)i * PE_SECTION_SIZE;
        if (memcmp(section, wanted, PE_SECTION_NAME_SIZE) != 0) continue;
        found = section;
        ++n_found;
    }
    status = n_found == 0   ? image_no_note(source)
             : n_found == 1 ? set_note(source, image, found)
                            : image_two_notes(source);
    ggml_mem_free(sections);
    return status;
}
