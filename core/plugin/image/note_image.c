// SPDX-License-Identifier: MIT
// Format-independent part of the image reader. All three readers go through image_read() and
// image_read_table(), which refuse ranges outside of the file and tables of implausible size.
#include "plugin/image/note_image.h"

#include <string.h>

#include "base/mem.h"
#include "base/status.h"

enum ggml_host_status image_read(const struct image_source *source,
                                 const struct plugin_image *image, uint64_t offset, void *out,
                                 size_t size) {
    if (offset > image->size || size > image->size - offset) {
        return ggml_fail(GGML_HOST_DAMAGED_FILE,
                         "%s: truncated or damaged: its tables point beyond its end; copy or build "
                         "it again",
                         source->label);
    }
    return source->read(source->context, image->base + offset, out, size);
}

// Tables are bounded before memory is taken for them.
enum ggml_host_status image_read_table(const struct image_source *source,
                                       const struct plugin_image *image, uint64_t offset,
                                       uint64_t size, unsigned char **out_table) {
    *out_table = NULL;
    if (size == 0 || size > IMAGE_MAX_TABLE) {
        return ggml_fail(GGML_HOST_DAMAGED_FILE,
                         "%s: damaged: a table of %llu bytes is not plausible", source->label,
                         (unsigned long long)size);
    }
    unsigned char *table = ggml_mem_alloc((size_t)size);
    if (!table) {
        return ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory to read its tables",
                         source->label);
    }
    const enum ggml_host_status status = image_read(source, image, offset, table, (size_t)size);
    if (status != GGML_HOST_OK) {
        ggml_mem_free(table);
        return status;
    }
    *out_table = table;
    return GGML_HOST_OK;
}

enum ggml_host_status image_set_note(const struct image_source *source, struct plugin_image *image,
                                     uint64_t offset, uint64_t size) {
    if (offset > image->size || size > image->size - offset) {
        return ggml_fail(GGML_HOST_DAMAGED_FILE,
                         "%s: truncated or damaged: its note lies beyond its end; copy or build it "
                         "again",
                         source->label);
    }
    image->note_offset = offset;
    image->note_size = size;
    return GGML_HOST_OK;
}

enum ggml_host_status image_two_notes(const struct image_source *source) {
    return ggml_fail(GGML_HOST_DAMAGED_FILE, "%s: damaged: its note is not the only one",
                     source->label);
}

enum ggml_host_status image_no_note(const struct image_source *source) {
    return ggml_fail(
        GGML_HOST_NOT_A_PLUGIN,
        "%s: a library without a ggml plugin note; build it with GGML_BACKEND_DL_IMPL or "
        "GGML_PLUGIN_NOTE, or remove it from the plugin directory",
        source->label);
}

// By the first four bytes; MZ also begins plain DOS programs, which the PE reader refuses.
static enum image_format recognise(const unsigned char magic[4]) {
    static const struct {
        unsigned char magic[4];
        size_t size;
        enum image_format format;
    } rows[] = {
        {{0x7f, 'E', 'L', 'F'}, 4, IMAGE_ELF},      {{'M', 'Z'}, 2, IMAGE_PE},
        {{0xcf, 0xfa, 0xed, 0xfe}, 4, IMAGE_MACHO}, // 64 bits, little-endian
        {{0xfe, 0xed, 0xfa, 0xcf}, 4, IMAGE_MACHO}, // 64 bits, big-endian
        {{0xce, 0xfa, 0xed, 0xfe}, 4, IMAGE_MACHO}, // 32 bits, little-endian
        {{0xfe, 0xed, 0xfa, 0xce}, 4, IMAGE_MACHO}, // 32 bits, big-endian
        {{0xca, 0xfe, 0xba, 0xbe}, 4, IMAGE_MACHO}, // fat
        {{0xca, 0xfe, 0xba, 0xbf}, 4, IMAGE_MACHO}, // fat with 64-bit offsets
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        if (memcmp(magic, rows[i].magic, rows[i].size) == 0) return rows[i].format;
    }
    return IMAGE_UNKNOWN;
}

// The readers set machine and slice; base and size of an unsliced image are those of the file.
enum ggml_host_status plugin_image_identify(const struct image_source *source,
                                            struct plugin_image *out_image) {
    memset(out_image, 0, sizeof(*out_image));
    out_image->size = source->size;
    out_image->machine_name = "unknown";
    if (source->size == 0) {
        return ggml_fail(GGML_HOST_DAMAGED_FILE, "%s: the file is empty; copy or build it again",
                         source->label);
    }
    unsigned char magic[4] = {0};
    const size_t available = source->size < sizeof(magic) ? (size_t)source->size : sizeof(magic);
    const enum ggml_host_status status = image_read(source, out_image, 0, magic, available);
    if (status != GGML_HOST_OK) return status;

    out_image->format = recognise(magic);
    switch (out_image->format) {
    case IMAGE_ELF: return image_identify_elf(source, out_image);
    case IMAGE_PE: return image_identify_pe(source, out_image);
    case IMAGE_MACHO: return image_identify_macho(source, out_image);
    case IMAGE_UNKNOWN: break;
    }
    return ggml_fail(GGML_HOST_NOT_A_PLUGIN,
                     "%s: not a shared library (neither ELF, PE nor Mach-O)", source->label);
}

enum ggml_host_status plugin_image_find_note(const struct image_source *source,
                                             struct plugin_image *image) {
    switch (image->format) {
    case IMAGE_ELF: return image_find_note_elf(source, image);
    case IMAGE_PE: return image_find_note_pe(source, image);
    case IMAGE_MACHO: return image_find_note_macho(source, image);
    case IMAGE_UNKNOWN: break;
    }
    return image_no_note(source);
}
