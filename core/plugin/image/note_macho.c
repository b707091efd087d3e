// SPDX-License-Identifier: MIT
// Mach-O of 64 bits, alone or as a slice of a fat file: the libraries of macOS.
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "plugin/image/note_image.h"

enum {
    MACHO_HEADER_SIZE = 32,
    MACHO_NAME_SIZE = 16,
    MACHO_TYPE_DYLIB = 6,
    MACHO_TYPE_BUNDLE = 8,
    MACHO_COMMAND_SEGMENT_64 = 0x19,
    MACHO_SEGMENT_SIZE = 72,
    MACHO_SECTION_SIZE = 80,
    MACHO_CPU_64 = 0x01000000,
    FAT_HEADER_SIZE = 8,
    FAT_SLICE_SIZE = 20,
    FAT_SLICE_64_SIZE = 32,
};

// cputype numbers.
static const struct macho_machine {
    uint32_t number;
    enum ggml_machine machine;
    const char *name;
} machines[] = {
    {MACHO_CPU_64 | 7, GGML_MACHINE_X86_64, "x86-64"},
    {MACHO_CPU_64 | 12, GGML_MACHINE_AARCH64, "AArch64"},
    {7, GGML_MACHINE_X86, "x86 (32-bit)"},
    {12, GGML_MACHINE_ARM, "ARM (32-bit)"},
    {18, GGML_MACHINE_NONE, "PowerPC 32"},
    {MACHO_CPU_64 | 18, GGML_MACHINE_NONE, "PowerPC 64 big-endian"},
};

// Never NULL: an unknown processor has a row too.
static const struct macho_machine *machine_of(uint32_t number) {
    static const struct macho_machine unknown = {0, GGML_MACHINE_NONE, "an unknown processor"};
    for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); ++i) {
        if (machines[i].number == number) return &machines[i];
    }
    return &unknown;
}

// One architecture of a fat file.
struct fat_slice {
    uint32_t cpu;
    uint64_t offset;
    uint64_t size;
};

// Fat headers are big-endian on every machine.
static struct fat_slice slice_at(const unsigned char *entry, bool is_wide) {
    return (struct fat_slice){
        .cpu = image_u32(entry, true),
        .offset = is_wide ? image_u64(entry + 8, true) : image_u32(entry + 8, true),
        .size = is_wide ? image_u64(entry + 16, true) : image_u32(entry + 12, true),
    };
}

// Narrows the image to the slice for this machine, or to the first slice if there is none, so that
// the message names what the file was built for.
static enum ggml_host_status choose_slice(const struct image_source *source,
                                          struct plugin_image *image, const unsigned char *header) {
    // 0xcafebabe has entries of 32 bits, 0xcafebabf of 64. Java's class files begin with 0xcafebabe
    // too: as a count of slices their version is above the limit.
    const bool is_wide = header[3] == 0xbf;
    const size_t entry_size = is_wide ? FAT_SLICE_64_SIZE : FAT_SLICE_SIZE;
    const uint32_t count = image_u32(header + 4, true);
    unsigned char entries[IMAGE_MAX_FAT_SLICES * FAT_SLICE_64_SIZE];
    if (count == 0 || count > IMAGE_MAX_FAT_SLICES) {
        return ggml_fail(GGML_HOST_NOT_A_PLUGIN, "%s: neither a library nor a fat Mach-O file",
                         source->label);
    }
    const enum ggml_host_status status =
        image_read(source, image, FAT_HEADER_SIZE, entries, count * entry_size);
    if (status != GGML_HOST_OK) return status;

    struct fat_slice chosen = slice_at(entries, is_wide);
    for (uint32_t i = 1; i < count; ++i) {
        const struct fat_slice slice = slice_at(entries + i * entry_size, is_wide);
        if (machine_of(chosen.cpu)->machine == GGML_MACHINE_HERE) break;
        if (machine_of(slice.cpu)->machine == GGML_MACHINE_HERE) chosen = slice;
    }
    if (chosen.offset > image->size || chosen.size > image->size - chosen.offset) {
        return ggml_fail(GGML_HOST_DAMAGED_FILE,
                         "%s: truncated or damaged: a slice lies beyond its end", source->label);
    }
    image->base = chosen.offset;
    image->size = chosen.size;
    return GGML_HOST_OK;
}

// Identifies a Mach-O image. Once a slice is chosen, all reads are relative to it, so that a fat
// file is handled as its slice from then on.
enum ggml_host_status image_identify_macho(const struct image_source *source,
                                           struct plugin_image *image) {
    unsigned char header[16];
    enum ggml_host_status status = image_read(source, image, 0, header, FAT_HEADER_SIZE);
    if (status != GGML_HOST_OK) return status;
    if (header[0] == 0xca) {
        status = choose_slice(source, image, header);
        if (status != GGML_HOST_OK) return status;
    }
    status = image_read(source, image, 0, header, sizeof(header));
    if (status != GGML_HOST_OK) return status;
    image->big_endian = header[0] == 0xfe;
    const uint32_t magic = image_u32(header, image->big_endian);
    if (magic != 0xfeedfacf && magic != 0xfeedface) {
        return ggml_fail(GGML_HOST_DAMAGED_FILE, "%s: damaged: a slice is no Mach-O image",
                         source->label);
    }
    image->is_64 = magic == 0xfeedfacf;
    const struct macho_machine *machine = machine_of(image_u32(header + 4, image->big_endian));
    image->machine = machine->machine;
    image->machine_name = machine->name;
    const uint32_t type = image_u32(header + 12, image->big_endian);
    if (type != MACHO_TYPE_DYLIB && type != MACHO_TYPE_BUNDLE) {
        return ggml_fail(GGML_HOST_NOT_A_PLUGIN, "%s: a Mach-O file, but not a library",
                         source->label);
    }
    return GGML_HOST_OK;
}

// Whether section and segment name are the note's. Names fill 16 bytes or are padded with zeros, so
// that all bytes are compared.
static bool names_match(const unsigned char *section) {
    static const char section_name[MACHO_NAME_SIZE + 1] = GGML_PLUGIN_SECTION_MACHO;
    static const char segment_name[MACHO_NAME_SIZE + 1] = GGML_PLUGIN_SEGMENT_MACHO;
    return memcmp(section, section_name, MACHO_NAME_SIZE) == 0 &&
           memcmp(section + MACHO_NAME_SIZE, segment_name, MACHO_NAME_SIZE) == 0;
}

// Looks for the note's section within one segment command; counts matches in *n_found.
static void find_section(const struct plugin_image *image, const unsigned char *command,
                         uint32_t size, const unsigned char **found, unsigned *n_found) {
    if (image_u32(command, image->big_endian) != MACHO_COMMAND_SEGMENT_64) return;
    if (size < MACHO_SEGMENT_SIZE) return;
    const uint32_t n_fitting = (size - MACHO_SEGMENT_SIZE) / MACHO_SECTION_SIZE;
    const uint32_t n_sections = image_u32(command + 64, image->big_endian);
    for (uint32_t i = 0; i < n_sections && i < n_fitting; ++i) {
        const unsigned char *section =
            command + MACHO_SEGMENT_SIZE + (size_t)i * MACHO_SECTION_SIZE;
        if (!names_match(section)) continue;
        *found = section;
        ++*n_found;
    }
}

// Visits all load commands. Each gives its length; one shorter than its header would make the walk
// endless and is damage.
static enum ggml_host_status walk_commands(const struct image_source *source,
                                           struct plugin_image *image,
                                           const unsigned char *commands, uint32_t size) {
    const unsigned char *found = NULL;
    unsigned n_found = 0;
    uint32_t offset = 0;
    while (size - offset >= 8) {
        const unsigned char *command = commands + offset;
        const uint32_t length = image_u32(command + 4, image->big_endian);
        if (length < 8 || length > size - offset) {
            return ggml_fail(GGML_HOST_DAMAGED_FILE, "%s: damaged: a load command of %u bytes",
                             source->label, (unsigned)length);
        }
        find_section(image, command, length, &found, &n_found);
        offset += length;
    }
    if (n_found == 0) return image_no_note(source);
    if (n_found > 1) return image_two_notes(source);
    return image_set_note(source, image, image_u32(found + 48, image->big_endian),
                          image_u64(found + 40, image->big_endian));
}

// Only 64-bit images can have a note: no plugin is built for 32-bit macOS.
enum ggml_host_status image_find_note_macho(const struct image_source *source,
                                            struct plugin_image *image) {
    unsigned char header[MACHO_HEADER_SIZE];
    unsigned char *commands = NULL;
    if (!image->is_64) return image_no_note(source);
    enum ggml_host_status status = image_read(source, image, 0, header, sizeof(header));
    if (status != GGML_HOST_OK) return status;
    const uint32_t size = image_u32(header + 20, image->big_endian);
    if (size == 0) return image_no_note(source);
    status = image_read_table(source, image, sizeof(header), size, &commands);
    if (status != GGML_HOST_OK) return status;
    status = walk_commands(source, image, commands, size);
    ggml_mem_free(commands);
    return status;
}
