// SPDX-License-Identifier: MIT
// Finds the note section in ELF, PE and Mach-O images. Every offset and count in an image is
// checked before it is used; memory is bounded by the limits below.
#ifndef GGML_PLUGIN_IMAGE_NOTE_IMAGE_H
#define GGML_PLUGIN_IMAGE_NOTE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ggml-plugin.h"

enum image_limit {
    IMAGE_MAX_SECTIONS = 4096,
    IMAGE_MAX_TABLE = 1 << 20, // bytes of one table that is read whole
    IMAGE_MAX_FAT_SLICES = 32, // a Java class file has the same magic and a larger number here
    IMAGE_MAX_NOTE = 1 << 16,
};

// Source of an image's bytes: a file, or memory in tests.
struct image_source {
    // Reads exactly `size` bytes; the range was checked against the source's size.
    enum ggml_host_status (*read)(void *context, uint64_t offset, void *out, size_t size);
    void *context;
    uint64_t size;
    const char *label; // names the image in messages
};

enum image_format {
    IMAGE_UNKNOWN,
    IMAGE_ELF,
    IMAGE_PE,
    IMAGE_MACHO,
};

struct plugin_image {
    enum image_format format;
    bool is_64;
    bool big_endian;
    enum ggml_machine machine; // GGML_MACHINE_NONE: one that has no number here
    const char *machine_name;
    uint64_t base; // of the chosen slice of a fat Mach-O, else 0
    uint64_t size; // of the slice or image
    uint64_t note_offset;
    uint64_t note_size;
};

// Reads the header: format, byte order, machine. NOT_A_PLUGIN if it is no shared library.
// [any-thread]
enum ggml_host_status plugin_image_identify(const struct image_source *source,
                                            struct plugin_image *out_image);
// Finds the note of an identified image. [any-thread]
enum ggml_host_status plugin_image_find_note(const struct image_source *source,
                                             struct plugin_image *image);

// The name of library number `index`, from 0, that a PE image needs; false if there are fewer, or
// it does not fit. [any-thread]
bool image_import_pe(const struct image_source *source, unsigned index, char *out_name,
                     size_t size);

// --- between the files of the reader

enum ggml_host_status image_identify_elf(const struct image_source *source,
                                         struct plugin_image *image);
enum ggml_host_status image_identify_pe(const struct image_source *source,
                                        struct plugin_image *image);
enum ggml_host_status image_identify_macho(const struct image_source *source,
                                           struct plugin_image *image);
enum ggml_host_status image_find_note_elf(const struct image_source *source,
                                          struct plugin_image *image);
// Its section headers, freed by the caller with ggml_mem_free.
struct image_section { // the fields that are compared with the program headers
    uint32_t type;
    uint64_t flags, address, offset, size;
};
enum ggml_host_status image_read_sections_elf(const struct image_source *source,
                                              const struct plugin_image *image,
                                              struct image_section **out_sections,
                                              size_t *out_count);
enum ggml_host_status image_find_note_pe(const struct image_source *source,
                                         struct plugin_image *image);
enum ggml_host_status image_find_note_macho(const struct image_source *source,
                                            struct plugin_image *image);

// Reads `size` bytes at an offset within the image; DAMAGED_FILE when they are not all there.
enum ggml_host_status image_read(const struct image_source *source,
                                 const struct plugin_image *image, uint64_t offset, void *out,
                                 size_t size);
// The same into new memory of at most IMAGE_MAX_TABLE bytes, freed by the caller with
// ggml_mem_free.
enum ggml_host_status image_read_table(const struct image_source *source,
                                       const struct plugin_image *image, uint64_t offset,
                                       uint64_t size, unsigned char **out_table);
// Sets the place of the note after checking that it lies within the image.
enum ggml_host_status image_set_note(const struct image_source *source, struct plugin_image *image,
                                     uint64_t offset, uint64_t size);
enum ggml_host_status image_no_note(const struct image_source *source);
// Refuses an image with two notes: which of them counts would be up to the linker.
enum ggml_host_status image_two_notes(const struct image_source *source);

// Unaligned reads in the image's byte order.
static inline uint16_t image_u16(const unsigned char *p, bool big) {
    return big ? (uint16_t)(p[0] << 8 | p[1]) : (uint16_t)(p[1] << 8 | p[0]);
}

static inline uint32_t image_u32(const unsigned char *p, bool big) {
    const uint32_t low = image_u16(p + (big ? 2 : 0), big);
    return (uint32_t)image_u16(p + (big ? 0 : 2), big) << 16 | low;
}

static inline uint64_t image_u64(const unsigned char *p, bool big) {
    const uint64_t low = image_u32(p + (big ? 4 : 0), big);
    return (uint64_t)image_u32(p + (big ? 0 : 4), big) << 32 | low;
}

#endif
