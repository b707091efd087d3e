// SPDX-License-Identifier: MIT
// The libraries that a PE image needs.
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "plugin/image/note_image.h"

enum {
    COFF_SIZE = 24, // with the signature
    SECTION_SIZE = 40,
    IMPORT_SIZE = 20,
    OPTIONAL_MAGIC_64 = 0x20b,
    IMPORT_DIRECTORY_32 = 104, // within the optional header
    IMPORT_DIRECTORY_64 = 120,
    MAX_IMPORTS = 1024,
};

// What is needed to follow addresses of a PE image.
struct pe_view {
    const struct image_source *source;
    struct plugin_image image;
    unsigned char *sections;
    unsigned n_sections;
    uint32_t imports; // address within the mapped image
};

// False without a status: failing to read imports only costs a better message.
static bool read_at(const struct pe_view *view, uint64_t offset, void *out, size_t size) {
    return image_read(view->source, &view->image, offset, out, size) == GGML_HOST_OK;
}

// Section table and import directory; false where the image has no imports or can't be read.
static bool open_view(struct pe_view *view) {
    unsigned char header[COFF_SIZE], field[4], magic[2];
    if (!read_at(view, 0x3c, field, sizeof(field))) return false;
    const uint64_t coff = image_u32(field, false);
    if (!read_at(view, coff, header, sizeof(header))) return false;
    const uint64_t optional = coff + COFF_SIZE;
    const uint64_t table = optional + image_u16(header + 20, false);
    if (!read_at(view, optional, magic, sizeof(magic))) return false;
    const bool is_64 = image_u16(magic, false) == OPTIONAL_MAGIC_64;
    if (!read_at(view, optional + (is_64 ? IMPORT_DIRECTORY_64 : IMPORT_DIRECTORY_32), field,
                 sizeof(field))) {
        return false;
    }
    view->imports = image_u32(field, false);
    view->n_sections = image_u16(header + 6, false);
    return view->imports != 0 && view->n_sections <= IMAGE_MAX_SECTIONS &&
           image_read_table(view->source, &view->image, table,
                            (uint64_t)view->n_sections * SECTION_SIZE,
                            &view->sections) == GGML_HOST_OK;
}

// File offset of an address in the mapped image, by the section that holds it; false if none does.
static bool find_offset(const struct pe_view *view, uint64_t address, uint64_t *out_offset) {
    for (unsigned i = 0; i < view->n_sections; ++i) {
        const unsigned char *section = view->sections + (size_t)i * SECTION_SIZE;
        const uint64_t start = image_u32(section + 12, false);
        if (address < start || address - start >= image_u32(section + 16, false)) continue;
        *out_offset = image_u32(section + 20, false) + (address - start);
        return true;
    }
    return false;
}

// A zero-terminated name, byte by byte: its length is unknown.
static bool read_name(const struct pe_view *view, uint64_t address, char *out_name, size_t size) {
    uint64_t offset;
    if (address == 0 || !find_offset(view, address, &offset)) return false;
    for (size_t i = 0; i < size; ++i) {
        if (!read_at(view, offset + i, out_name + i, 1)) return false;
        if (out_name[i] == '\0') return i > 0;
    }
    return false;
}

// Entry `index` of the import directory; its name is at offset 12. The list ends with an entry of
// zeros.
bool image_import_pe(const struct image_source *source, unsigned index, char *out_name,
                     size_t size) {
    unsigned char import[IMPORT_SIZE];
    struct pe_view view = {.source = source, .image = {.size = source->size}};
    uint64_t offset;
    const bool found =
        index < MAX_IMPORTS && open_view(&view) &&
        find_offset(&view, (uint64_t)view.imports + (uint64_t)index * IMPORT_SIZE, &offset) &&
        read_at(&view, offset, import, sizeof(import)) &&
        read_name(&view, image_u32(import + 12, false), out_name, size);
    ggml_mem_free(view.sections);
    if (!found && size > 0) out_name[0] = '\0';
    return found;
}
