// SPDX-License-Identifier: MIT
// ELF only: 32 and 64 bits, both byte orders. Accidents are what this is for (half-copied files,
// bits that flipped): who can write a plugin can run code anyway.
#include "plugin/image/image_load.h"

#include <string.h>

#include "base/mem.h"
#include "base/status.h"

// Numbers of the ELF specification (System V gABI and its GNU additions).
enum {
    SEGMENT_LOAD = 1,
    SEGMENT_DYNAMIC = 2,
    SEGMENT_NOTE = 4,
    SEGMENT_HEADERS = 6,
    SEGMENT_TLS = 7,
    SEGMENT_STACK = 0x6474e551,
    SEGMENT_RELRO = 0x6474e552,
    SEGMENT_PROPERTY = 0x6474e553,
};
enum { FLAG_EXECUTE = 1, FLAG_WRITE = 2, FLAG_READ = 4 };
enum {
    SECTION_RELA = 4,
    SECTION_HASH = 5,
    SECTION_NO_BYTES = 8,
    SECTION_REL = 9,
    SECTION_SYMBOLS = 11,
    SECTION_INIT_ARRAY = 14,
    SECTION_FINI_ARRAY = 15,
    SECTION_PACKED = 19,
    SECTION_GNU_HASH = 0x6ffffff6,
    SECTION_VERSIONS_NEEDED = 0x6ffffffe,
    SECTION_VERSION_SYMBOLS = 0x6fffffff,
};
enum { SECTION_WRITABLE = 1, SECTION_ALLOCATED = 2, SECTION_CODE = 4, SECTION_THREAD = 0x400 };
// bounds that no real library comes near
enum { MAX_SEGMENTS = 128, MAX_STRING = 4096 };
// pages that are looked at one by one; bytes that are read at once
enum { BLOCK = 4096, CHUNK = 1 << 16 };
// Further than any plugin reaches, and more than any thread-local part has.
#define MAX_ADDRESS (UINT64_C(1) << 40)
#define MAX_TLS (UINT64_C(1) << 30)

enum tag { // entries of the dynamic section; those that are not here are ignored
    TAG_END = 0,
    TAG_NEEDED = 1,
    TAG_PLT_SIZE = 2,
    TAG_HASH = 4,
    TAG_STRINGS = 5,
    TAG_SYMBOLS = 6,
    TAG_RELA = 7,
    TAG_RELA_SIZE = 8,
    TAG_RELA_ENTRY = 9,
    TAG_STRINGS_SIZE = 10,
    TAG_SYMBOL_ENTRY = 11,
    TAG_INIT = 12,
    TAG_FINI = 13,
    TAG_RPATH = 15,
    TAG_REL = 17,
    TAG_REL_SIZE = 18,
    TAG_REL_ENTRY = 19,
    TAG_PLT_KIND = 20,
    TAG_TEXT_RELOCATIONS = 22,
    TAG_PLT = 23,
    TAG_INIT_ARRAY = 25,
    TAG_FINI_ARRAY = 26,
    TAG_INIT_ARRAY_SIZE = 27,
    TAG_FINI_ARRAY_SIZE = 28,
    TAG_RUNPATH = 29,
    TAG_FLAGS = 30,
    TAG_PACKED_SIZE = 35, // relative relocations as addresses and bits (RELR)
    TAG_PACKED = 36,
    TAG_PACKED_ENTRY = 37,
    N_SMALL_TAGS = 64,
    TAG_GNU_HASH = 0x6ffffef5,
    TAG_VERSION_SYMBOLS = 0x6ffffff0,
    TAG_RELA_COUNT = 0x6ffffff9,
    TAG_FLAGS_1 = 0x6ffffffb,
    TAG_VERSIONS_NEEDED = 0x6ffffffe,
    TAG_AUXILIARY = 0x7ffffffd,
    TAG_FILTER = 0x7fffffff,
};
enum { FLAG_TEXT_RELOCATIONS = 4, FLAG_1_NODELETE = 8 };

struct segment { // program header, with its fields widened to 64 bits
    uint32_t type, flags;
    uint64_t offset, address, file_size, memory_size, alignment;
};

// One file while it is looked at.
struct elf {
    const struct image_source *source;
    struct plugin_image image;
    size_t width; // of an address
    struct segment segments[MAX_SEGMENTS];
    size_t n_segments;
    unsigned char *dynamic;
    size_t n_dynamic;
    uint64_t small[N_SMALL_TAGS]; // values of the tags below, 0 if absent
    uint64_t gnu_hash, version_symbols, versions_needed, rela_count, flags_1;
    bool relocates_text; // the linker makes all of it writable for so long
};

// Always with the advice to replace the file; returns DAMAGED_FILE.
static enum ggml_host_status damaged(const struct elf *elf, const char *what) {
    return ggml_fail(GGML_HOST_DAMAGED_FILE, "%s: damaged: %s; copy or build it again",
                     elf->source->label, what);
}

// An address or size: 4 bytes in 32-bit files, 8 in 64-bit ones.
static uint64_t wide(const struct elf *elf, const unsigned char *p) {
    const bool big = elf->image.big_endian;
    return elf->image.is_64 ? image_u64(p, big) : image_u32(p, big);
}

// Linkers of x86 treat a missing stack header as a request for an executable stack.
static bool is_x86(const struct elf *elf) {
    return elf->image.machine == GGML_MACHINE_X86_64 || elf->image.machine == GGML_MACHINE_X86;
}

// 32-bit field in the file's byte order.
static uint32_t word(const struct elf *elf, const unsigned char *p) {
    return image_u32(p, elf->image.big_endian);
}

// Bounded by the size of the file.
static enum ggml_host_status read_at(const struct elf *elf, uint64_t offset, void *out,
                                     size_t size) {
    return image_read(elf->source, &elf->image, offset, out, size);
}

// --- segments ------------------------------------------------------------------------------------

// Parses a program header. 64-bit files have the flags behind the type, 32-bit ones near the end.
static struct segment parse_segment(const struct elf *elf, const unsigned char *p) {
    struct segment segment = {.type = word(elf, p)};
    const size_t w = elf->width;
    const unsigned char *rest = p + w; // behind the type, and on 64 bits the flags
    segment.flags = word(elf, elf->image.is_64 ? p + 4 : p + 24);
    segment.offset = wide(elf, rest);
    segment.address = wide(elf, rest + w);
    segment.file_size = wide(elf, rest + 3 * w);
    segment.memory_size = wide(elf, rest + 4 * w);
    segment.alignment = wide(elf, elf->image.is_64 ? rest + 5 * w : p + 28);
    return segment;
}

// At most MAX_SEGMENTS, which fit on the stack: real libraries have about a dozen.
static enum ggml_host_status read_segments(struct elf *elf) {
    unsigned char header[64], table[MAX_SEGMENTS * 56];
    const bool is_64 = elf->image.is_64, big = elf->image.big_endian;
    const size_t size = is_64 ? 56 : 32;
    enum ggml_host_status status = read_at(elf, 0, header, is_64 ? 64 : 52);
    if (status != GGML_HOST_OK) return status;
    const uint64_t offset = wide(elf, header + (is_64 ? 32 : 28));
    const unsigned entry = image_u16(header + (is_64 ? 54 : 42), big);
    const unsigned count = image_u16(header + (is_64 ? 56 : 44), big);
    if (count == 0 || count > MAX_SEGMENTS || entry != size) {
        return damaged(elf, "its program headers can't be right");
    }
    status = read_at(elf, offset, table, count * size);
    if (status != GGML_HOST_OK) return status;
    for (unsigned i = 0; i < count; ++i)
        elf->segments[elf->n_segments++] = parse_segment(elf, table + i * size);
    return GGML_HOST_OK;
}

static bool is_power_of_two(uint64_t n) {
    return (n & (n - 1)) == 0; // 0 as well, which means the same as 1
}

// Whether a LOAD segment lies within the file and within plausible addresses. Address and offset
// must be equal modulo the page, since the linker maps whole pages of the file. MAX_ADDRESS keeps
// all sums below from overflowing.
static bool load_is_sound(const struct elf *elf, const struct segment *segment) {
    const uint64_t page = BLOCK;
    const bool in_file =
        segment->file_size == 0 || (segment->offset <= elf->image.size &&
                                    segment->file_size <= elf->image.size - segment->offset);
    return in_file && segment->file_size <= segment->memory_size &&
           segment->address < MAX_ADDRESS && segment->memory_size < MAX_ADDRESS &&
           is_power_of_two(segment->alignment) && (segment->address - segment->offset) % page == 0;
}

// Whether the LOAD segments are in rising order without overlap, save for a page of the file that
// two may share. Where there is none, no dynamic section is mapped.
static bool loads_are_sound(const struct elf *elf) {
    const struct segment *last = NULL;
    for (size_t i = 0; i < elf->n_segments; ++i) {
        const struct segment *segment = &elf->segments[i];
        if (segment->type != SEGMENT_LOAD) continue;
        if (!load_is_sound(elf, segment)) return false;
        if (last) {
            const uint64_t end = last->address + last->memory_size;
            const bool same_page_of_file =
                last->address - last->offset == segment->address - segment->offset;
            const uint64_t page_end = (end + BLOCK - 1) / BLOCK * BLOCK;
            if (segment->address < end) return false;
            if (!same_page_of_file && segment->address / BLOCK * BLOCK < page_end) return false;
        }
        last = segment;
    }
    return true;
}

// The segment that maps all of this memory; with `from_file` from the file. NULL if none does.
static const struct segment *find_load(const struct elf *elf, uint64_t address, uint64_t size,
                                       bool from_file) {
    for (size_t i = 0; i < elf->n_segments; ++i) {
        const struct segment *segment = &elf->segments[i];
        const uint64_t length = from_file ? segment->file_size : segment->memory_size;
        if (segment->type != SEGMENT_LOAD || address < segment->address) continue;
        if (address - segment->address <= length && size <= length - (address - segment->address))
            return segment;
    }
    return NULL;
}

// Offset in the file of what is mapped there; false if it is not.
static bool find_offset(const struct elf *elf, uint64_t address, uint64_t size,
                        uint64_t *out_offset) {
    const struct segment *segment = find_load(elf, address, size, true);
    *out_offset = segment ? segment->offset + (address - segment->address) : 0;
    return segment != NULL;
}

// Whether a LOAD segment maps the same bytes of the file to where this header says.
static bool is_mapped_as_said(const struct elf *elf, const struct segment *segment) {
    uint64_t offset;
    return find_offset(elf, segment->address, segment->file_size, &offset) &&
           offset == segment->offset && segment->file_size <= segment->memory_size;
}

// Checks GNU_RELRO, memory that the linker makes read-only after relocation: it lies in a writable
// segment, at the same distance from its start in file and memory, and reaches beyond the file only
// where that segment does. Its end may be rounded up to a page.
static bool relro_is_sound(const struct elf *elf, const struct segment *segment) {
    const struct segment *load = find_load(elf, segment->address, 0, false);
    if (!load || !(load->flags & FLAG_WRITE) || segment->memory_size > MAX_ADDRESS) return false;
    if (segment->offset - load->offset != segment->address - load->address) return false;
    const uint64_t file_end = segment->offset + segment->file_size;
    if (segment->file_size != segment->memory_size && file_end != load->offset + load->file_size)
        return false;
    const uint64_t end = load->address + load->memory_size;
    const uint64_t largest_page = is_x86(elf) ? BLOCK : UINT64_C(1) << 16;
    return segment->address + segment->memory_size <=
           (end + largest_page - 1) / largest_page * largest_page;
}

// Checks one program header by its type; the linker ignores the types that are not listed.
static bool segment_is_sound(const struct elf *elf, const struct segment *segment) {
    switch (segment->type) {
    case SEGMENT_DYNAMIC:
    case SEGMENT_HEADERS: return is_mapped_as_said(elf, segment);
    case SEGMENT_NOTE:
    case SEGMENT_PROPERTY: return segment->memory_size == 0 || is_mapped_as_said(elf, segment);
    case SEGMENT_RELRO: return relro_is_sound(elf, segment);
    case SEGMENT_TLS:
        return is_power_of_two(segment->alignment) && segment->alignment <= MAX_TLS &&
               segment->memory_size <= MAX_TLS &&
               (segment->file_size == 0 || is_mapped_as_said(elf, segment));
    default: return true;
    }
}

// Checks what the linker does from the program headers alone, before it reads anything else:
// segments, exactly one dynamic section, no executable stack.
static enum ggml_host_status check_segments(const struct elf *elf) {
    size_t n_dynamic = 0;
    const struct segment *stack = NULL;
    if (!loads_are_sound(elf)) {
        return damaged(elf, "its segments lie beyond its end, or over each other");
    }
    for (size_t i = 0; i < elf->n_segments; ++i) {
        const struct segment *segment = &elf->segments[i];
        if (segment->type == SEGMENT_STACK) stack = segment;
        n_dynamic += segment->type == SEGMENT_DYNAMIC;
        if (!segment_is_sound(elf, segment)) {
            return damaged(elf, "a program header names memory that it does not map");
        }
    }
    if (n_dynamic != 1) return damaged(elf, "it does not have one dynamic section");
    // Without a word on it, an executable stack is what the linker of x86 makes.
    if (stack ? (stack->flags & FLAG_EXECUTE) == 0 : !is_x86(elf)) return GGML_HOST_OK;
    return ggml_fail(GGML_HOST_LINK_FAILED,
                     "%s: it wants an executable stack, which would make that of the whole process "
                     "executable: link it with -z noexecstack",
                     elf->source->label);
}

// --- dynamic section -----------------------------------------------------------------------------

// Keeps a value of the dynamic section that a later check needs.
static void keep_value(struct elf *elf, uint64_t tag, uint64_t value) {
    if (tag < N_SMALL_TAGS) elf->small[tag] = value;
    if (tag == TAG_GNU_HASH) elf->gnu_hash = value;
    if (tag == TAG_VERSION_SYMBOLS) elf->version_symbols = value;
    if (tag == TAG_RELA_COUNT) elf->rela_count = value;
    if (tag == TAG_VERSIONS_NEEDED) elf->versions_needed = value;
    if (tag == TAG_FLAGS_1) elf->flags_1 = value;
    if (tag == TAG_TEXT_RELOCATIONS || (tag == TAG_FLAGS && value & FLAG_TEXT_RELOCATIONS))
        elf->relocates_text = true;
}

// Tag number i of the dynamic section, and its value.
static uint64_t tag_at(const struct elf *elf, size_t i) {
    return wide(elf, elf->dynamic + 2 * i * elf->width);
}

static uint64_t value_at(const struct elf *elf, size_t i) {
    return wide(elf, elf->dynamic + (2 * i + 1) * elf->width);
}

// Reads the dynamic section up to its end tag. There is exactly one such segment. Of a tag that
// occurs twice the last value counts, as for the linker.
static enum ggml_host_status read_dynamic(struct elf *elf) {
    const struct segment *segment = elf->segments;
    while (segment->type != SEGMENT_DYNAMIC)
        ++segment;
    const enum ggml_host_status status = image_read_table(elf->source, &elf->image, segment->offset,
                                                          segment->file_size, &elf->dynamic);
    if (status != GGML_HOST_OK) return status;
    const size_t count = (size_t)(segment->file_size / (2 * elf->width));
    while (elf->n_dynamic < count && tag_at(elf, elf->n_dynamic) != TAG_END) {
        keep_value(elf, tag_at(elf, elf->n_dynamic), value_at(elf, elf->n_dynamic));
        ++elf->n_dynamic;
    }
    return elf->n_dynamic < count ? GGML_HOST_OK : damaged(elf, "its dynamic section has no end");
}

// Whether a table is mapped from the file, has entries of the expected size, and a whole number of
// them. A table of no bytes may have any address.
static bool table_is_mapped(const struct elf *elf, uint64_t address, uint64_t size, uint64_t entry,
                            uint64_t wanted_entry) {
    if (size == 0) return true;
    return entry == wanted_entry && size % wanted_entry == 0 &&
           find_load(elf, address, size, true) != NULL;
}

// Whether a function's address is mapped as code; 0 means that there is no such function.
static bool function_is_mapped(const struct elf *elf, uint64_t address) {
    const struct segment *segment = address ? find_load(elf, address, 1, true) : NULL;
    return address == 0 || (segment && segment->flags & FLAG_EXECUTE);
}

// Checks that everything the linker reads by addresses of the dynamic section is mapped from the
// file and has the entry sizes that the linker assumes. DAMAGED_FILE otherwise.
static enum ggml_host_status check_tables(const struct elf *elf) {
    const uint64_t *v = elf->small;
    const uint64_t w = elf->width;
    const uint64_t rel = 2 * w, rela = 3 * w, symbol = elf->image.is_64 ? 24 : 16;
    const uint64_t plt_entry = v[TAG_PLT_KIND] == TAG_RELA ? rela : rel;
    const bool plt_kind_known = v[TAG_PLT_KIND] == TAG_RELA || v[TAG_PLT_KIND] == TAG_REL;
    const bool sound =
        v[TAG_STRINGS] && v[TAG_SYMBOLS] && v[TAG_SYMBOL_ENTRY] == symbol &&
        find_load(elf, v[TAG_STRINGS], v[TAG_STRINGS_SIZE], true) &&
        find_load(elf, v[TAG_SYMBOLS], symbol, true) &&
        table_is_mapped(elf, v[TAG_RELA], v[TAG_RELA_SIZE], v[TAG_RELA_ENTRY], rela) &&
        table_is_mapped(elf, v[TAG_REL], v[TAG_REL_SIZE], v[TAG_REL_ENTRY], rel) &&
        table_is_mapped(elf, v[TAG_PACKED], v[TAG_PACKED_SIZE], v[TAG_PACKED_ENTRY], w) &&
        (v[TAG_PLT_SIZE] == 0 || plt_kind_known) &&
        table_is_mapped(elf, v[TAG_PLT], v[TAG_PLT_SIZE], plt_entry, plt_entry) &&
        table_is_mapped(elf, v[TAG_INIT_ARRAY], v[TAG_INIT_ARRAY_SIZE], w, w) &&
        table_is_mapped(elf, v[TAG_FINI_ARRAY], v[TAG_FINI_ARRAY_SIZE], w, w) &&
        (!elf->version_symbols || find_load(elf, elf->version_symbols, 2, true)) &&
        (!elf->versions_needed || find_load(elf, elf->versions_needed, 16, true)) &&
        elf->rela_count <= v[TAG_RELA_SIZE] / rela && function_is_mapped(elf, v[TAG_INIT]) &&
        function_is_mapped(elf, v[TAG_FINI]);
    return sound ? GGML_HOST_OK
                 : damaged(elf, "its dynamic section names memory that is not mapped");
}

// --- libraries that it needs ---------------------------------------------------------------------

// The string at an offset in the table of strings, cut off at MAX_STRING.
static enum ggml_host_status read_string(const struct elf *elf, uint64_t at,
                                         char out_text[MAX_STRING]) {
    uint64_t offset;
    const uint64_t size = elf->small[TAG_STRINGS_SIZE];
    out_text[0] = '\0';
    if (at >= size || !find_offset(elf, elf->small[TAG_STRINGS] + at, size - at, &offset)) {
        return damaged(elf, "the name of a library lies outside its strings");
    }
    const size_t length = size - at < MAX_STRING ? (size_t)(size - at) : MAX_STRING;
    const enum ggml_host_status status = read_at(elf, offset, out_text, length);
    if (status != GGML_HOST_OK) return status;
    return memchr(out_text, '\0', length) ? GGML_HOST_OK
                                          : damaged(elf, "the name of a library has no end");
}

// Whether the linker replaces words in names of libraries, as glibc does. Others (musl) open such a
// path as it stands, and replace words of search paths alone.
#if defined(__linux__) && !defined(__GLIBC__)
enum { REPLACES_IN_NAMES = false };
#else
enum { REPLACES_IN_NAMES = true };
#endif

// Whether a path is independent of the working directory: absolute, or beginning with the path of
// the file's own folder ($ORIGIN). Letters, digits and _ make another word of one without braces,
// which the linker leaves as it is.
static bool starts_fixed(const char *text) {
    static const char bare[] = "$ORIGIN", braced[] = "${ORIGIN}";
    static const char of_words[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
    if (strncmp(text, braced, sizeof(braced) - 1) == 0) return true;
    if (strncmp(text, bare, sizeof(bare) - 1) == 0)
        return strspn(text + sizeof(bare) - 1, of_words) == 0;
    return text[0] == '/';
}

// Whether all elements of a colon-separated list are. An empty element means the working directory;
// an empty list has no elements.
static bool list_is_fixed(const char *list) {
    if (list[0] == '\0') return true;
    for (;; ++list) {
        if (!starts_fixed(list)) return false;
        list += strcspn(list, ":");
        if (*list == '\0') return true;
    }
}

// Whether a name is looked up in the system's folders, or is a fixed path. Words that the linker
// replaces ($LIB, $PLATFORM) may make a path of it.
static bool name_is_fixed(const char *name) {
    if (!REPLACES_IN_NAMES) return name[0] == '/' || !strchr(name, '/');
    return !strpbrk(name, "/$") || starts_fixed(name);
}

// Checks the libraries and search paths that the image asks for: relative paths would depend on the
// working directory and are refused. Sets needs->path where $ORIGIN is used.
static enum ggml_host_status check_libraries(const struct elf *elf, struct image_needs *needs) {
    char text[MAX_STRING];
    for (size_t i = 0; i < elf->n_dynamic; ++i) {
        const uint64_t tag = tag_at(elf, i);
        const bool is_list = tag == TAG_RPATH || tag == TAG_RUNPATH;
        const bool is_name = tag == TAG_NEEDED || tag == TAG_AUXILIARY || tag == TAG_FILTER;
        if (!is_list && !is_name) continue;
        const enum ggml_host_status status = read_string(elf, value_at(elf, i), text);
        if (status != GGML_HOST_OK) return status;
        needs->path |= strstr(text, "$ORIGIN") || strstr(text, "${ORIGIN}");
        if (is_list ? list_is_fixed(text) : name_is_fixed(text)) continue;
        return ggml_fail(GGML_HOST_LINK_FAILED,
                         "%s: it wants libraries by '%.200s', relative to the working directory, "
                         "which may be anybody's: use $ORIGIN or an absolute path",
                         elf->source->label, text);
    }
    return GGML_HOST_OK;
}

// --- contents ------------------------------------------------------------------------------------

// Whether all bytes are zero, by comparing each with the next.
static bool is_zero(const unsigned char *bytes, size_t size) {
    return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

// Finds a block of zeros in [offset, offset + size), of which at least `least` bytes belong to the
// range: what a file has where copying was cut short or a disk lost a page. Reads the range once.
static enum ggml_host_status find_zero_block(const struct elf *elf, uint64_t offset, uint64_t size,
                                             size_t least, unsigned char *chunk, bool *out_found) {
    const uint64_t end = offset + size;
    *out_found = false;
    while (offset < end) {
        const uint64_t limit = (offset / CHUNK + 1) * CHUNK;
        const size_t length = (size_t)((limit < end ? limit : end) - offset);
        const enum ggml_host_status status = read_at(elf, offset, chunk, length);
        if (status != GGML_HOST_OK) return status;
        for (size_t at = 0; at < length;) {
            const size_t left = BLOCK - (size_t)((offset + at) % BLOCK);
            const size_t part = left < length - at ? left : length - at;
            if (part >= least && is_zero(chunk + at, part)) *out_found = true;
            at += part;
        }
        offset += length;
    }
    return GGML_HOST_OK;
}

// As find_zero_block() for a range of addresses; a block of zeros is damage.
static enum ggml_host_status check_zero_blocks(const struct elf *elf, uint64_t address,
                                               uint64_t size, size_t least, unsigned char *chunk) {
    uint64_t offset;
    bool found;
    if (size == 0 || !find_offset(elf, address, size, &offset)) return GGML_HOST_OK;
    const enum ggml_host_status status = find_zero_block(elf, offset, size, least, chunk, &found);
    if (status != GGML_HOST_OK) return status;
    return found ? damaged(elf, "a page of it is missing") : GGML_HOST_OK;
}

// Checks both symbol hash tables: the linker divides by their numbers of buckets, and indexes the
// Bloom filter with a mask.
static enum ggml_host_status check_hashes(const struct elf *elf) {
    unsigned char header[16];
    uint64_t offset;
    enum ggml_host_status status;
    // Its numbers are twice as wide on s390x.
    if (elf->small[TAG_HASH] && elf->image.machine != GGML_MACHINE_S390X) {
        if (!find_offset(elf, elf->small[TAG_HASH], 8, &offset)) goto damaged;
        status = read_at(elf, offset, header, 8);
        if (status != GGML_HOST_OK) return status;
        const uint64_t size =
            4 * (2 + (uint64_t)word(elf, header) + (uint64_t)word(elf, header + 4));
        if (word(elf, header) == 0 || !find_load(elf, elf->small[TAG_HASH], size, true))
            goto damaged;
    }
    if (elf->gnu_hash) {
        if (!find_offset(elf, elf->gnu_hash, 16, &offset)) goto damaged;
        status = read_at(elf, offset, header, 16);
        if (status != GGML_HOST_OK) return status;
        const uint64_t n_buckets = word(elf, header), n_bloom = word(elf, header + 8);
        const uint64_t size = 16 + n_bloom * elf->width + 4 * n_buckets;
        if (n_buckets == 0 || n_bloom == 0 || !is_power_of_two(n_bloom) ||
            !find_load(elf, elf->gnu_hash, size, true)) {
            goto damaged;
        }
    }
    if (elf->gnu_hash || elf->small[TAG_HASH]) return GGML_HOST_OK;
damaged:
    return damaged(elf, "its table of symbols can't be right");
}

// Checks that every relocation's target is mapped: the linker writes there without checking.
static enum ggml_host_status check_relocations(const struct elf *elf, uint64_t address,
                                               uint64_t size, size_t entry, unsigned char *chunk) {
    uint64_t offset;
    const size_t step = CHUNK / entry * entry;
    if (size == 0 || !find_offset(elf, address, size, &offset)) return GGML_HOST_OK;
    for (uint64_t at = 0; at < size; at += step) {
        const size_t length = size - at < step ? (size_t)(size - at) : step;
        const enum ggml_host_status status = read_at(elf, offset + at, chunk, length);
        if (status != GGML_HOST_OK) return status;
        for (size_t i = 0; i < length; i += entry) {
            const unsigned char *p = chunk + i;
            if (wide(elf, p + elf->width) == 0) continue; // nothing to do
            if (find_load(elf, wide(elf, p), elf->width, false)) continue;
            return damaged(elf, "a relocation is of memory that is not mapped");
        }
    }
    return GGML_HOST_OK;
}

// Whether the linker can write a word there.
static bool can_be_relocated(const struct elf *elf, uint64_t address) {
    const struct segment *load = find_load(elf, address, elf->width, false);
    return load && (load->flags & FLAG_WRITE || elf->relocates_text);
}

// One word of packed relocations. An even one is a place, and what follows begins behind it; each
// bit of an odd one but the lowest stands for one of the words that follow.
static bool packed_word_is_sound(const struct elf *elf, uint64_t bits, uint64_t *next) {
    if ((bits & 1) == 0) {
        *next = bits + elf->width;
        return can_be_relocated(elf, bits);
    }
    if (*next == 0) return bits == 1; // behind no place: for no word
    uint64_t place = *next;
    *next += (8 * elf->width - 1) * elf->width;
    for (; (bits >>= 1) != 0; place += elf->width)
        if (bits & 1 && !can_be_relocated(elf, place)) return false;
    return true;
}

// As check_relocations() for the packed ones.
static enum ggml_host_status check_packed(const struct elf *elf, unsigned char *chunk) {
    uint64_t offset, next = 0;
    const uint64_t size = elf->small[TAG_PACKED_SIZE];
    if (size == 0 || !find_offset(elf, elf->small[TAG_PACKED], size, &offset)) return GGML_HOST_OK;
    for (uint64_t at = 0; at < size; at += CHUNK) {
        const size_t length = size - at < CHUNK ? (size_t)(size - at) : CHUNK;
        const enum ggml_host_status status = read_at(elf, offset + at, chunk, length);
        if (status != GGML_HOST_OK) return status;
        for (size_t i = 0; i < length; i += elf->width) {
            if (!packed_word_is_sound(elf, wide(elf, chunk + i), &next))
                return damaged(elf, "a packed relocation is of memory that can't be written to");
        }
    }
    return GGML_HOST_OK;
}

// Whether a section that describes a table has the address and size that the dynamic section gives
// for it.
static bool table_agrees(const struct elf *elf, const struct image_section *section) {
    const uint64_t *v = elf->small;
    const uint64_t address = section->address;
    switch (section->type) {
    case SECTION_SYMBOLS: return address == v[TAG_SYMBOLS];
    case SECTION_HASH: return address == v[TAG_HASH];
    case SECTION_GNU_HASH: return address == elf->gnu_hash;
    case SECTION_VERSION_SYMBOLS: return address == elf->version_symbols;
    case SECTION_VERSIONS_NEEDED: return address == elf->versions_needed;
    case SECTION_INIT_ARRAY:
        return address == v[TAG_INIT_ARRAY] && section->size == v[TAG_INIT_ARRAY_SIZE];
    case SECTION_FINI_ARRAY:
        return address == v[TAG_FINI_ARRAY] && section->size == v[TAG_FINI_ARRAY_SIZE];
    case SECTION_PACKED: return address == v[TAG_PACKED] && section->size == v[TAG_PACKED_SIZE];
    case SECTION_RELA:
    case SECTION_REL: {
        const bool is_rela = section->type == SECTION_RELA;
        const uint64_t table = v[is_rela ? TAG_RELA : TAG_REL];
        const uint64_t size = v[is_rela ? TAG_RELA_SIZE : TAG_REL_SIZE];
        return (address >= table && address - table < size) ||
               (address >= v[TAG_PLT] && address - v[TAG_PLT] < v[TAG_PLT_SIZE]);
    }
    default: return true;
    }
}

// Whether the program headers map the section where it says, with the access that it needs.
static bool section_agrees(const struct elf *elf, const struct image_section *section) {
    if (!(section->flags & SECTION_ALLOCATED) || section->size == 0) return true;
    const bool has_bytes = section->type != SECTION_NO_BYTES;
    if (!has_bytes && section->flags & SECTION_THREAD) return true; // of no memory of its own
    const struct segment *load = find_load(elf, section->address, section->size, has_bytes);
    if (!load || !(load->flags & FLAG_READ)) return false;
    if (section->flags & SECTION_CODE && !(load->flags & FLAG_EXECUTE)) return false;
    if (section->flags & SECTION_WRITABLE && !(load->flags & FLAG_WRITE)) return false;
    if (has_bytes && section->offset - load->offset != section->address - load->address)
        return false;
    return table_agrees(elf, section);
}

// Checks that the bytes which the file has in the place of a zero-initialised section (.bss) are
// zeros: the linker maps the page with them.
static enum ggml_host_status check_zeros(const struct elf *elf, const struct image_section *section,
                                         unsigned char *chunk) {
    const struct segment *load = find_load(elf, section->address, section->size, false);
    const uint64_t file_end = load->address + load->file_size;
    const uint64_t section_end = section->address + section->size;
    const uint64_t end = section_end < file_end ? section_end : file_end;
    for (uint64_t at = section->address; at < end;) {
        const size_t size = end - at < CHUNK ? (size_t)(end - at) : CHUNK;
        const enum ggml_host_status status =
            read_at(elf, load->offset + (at - load->address), chunk, size);
        if (status != GGML_HOST_OK) return status;
        for (size_t i = 0; i < size; ++i)
            if (chunk[i] != 0) return damaged(elf, "what has to be zero is not");
        at += size;
    }
    return GGML_HOST_OK;
}

// Compares the sections, which the linker never reads, with the program headers, which it maps by:
// a contradiction means that one of both is damaged. Code and symbols must have no missing page.
static enum ggml_host_status check_sections(const struct elf *elf, unsigned char *chunk) {
    struct image_section *sections = NULL;
    size_t count = 0;
    // Between functions x86 has instructions that do nothing, others have zeros: up to the largest
    // alignment of a function, with room.
    const size_t least = is_x86(elf) ? 128 : 512;
    enum ggml_host_status status =
        image_read_sections_elf(elf->source, &elf->image, &sections, &count);
    for (size_t i = 0; i < count && status == GGML_HOST_OK; ++i) {
        const struct image_section *section = &sections[i];
        if (!section_agrees(elf, section)) {
            status = damaged(elf, "its sections contradict its program headers");
        } else if (!(section->flags & SECTION_ALLOCATED) || section->size == 0) {
            continue;
        } else if (section->type == SECTION_NO_BYTES) {
            if (!(section->flags & SECTION_THREAD)) status = check_zeros(elf, section, chunk);
        } else if (section->type == SECTION_SYMBOLS || section->flags & SECTION_CODE) {
            status = check_zero_blocks(elf, section->address, section->size, least, chunk);
        }
    }
    ggml_mem_free(sections);
    return status;
}

// Checks the parts that need reading most of the file, once and piece by piece: hash tables,
// relocations, strings, sections.
static enum ggml_host_status check_contents(const struct elf *elf) {
    const uint64_t *v = elf->small;
    const size_t rel = 2 * elf->width, rela = 3 * elf->width;
    const bool plt_is_rela = v[TAG_PLT_KIND] == TAG_RELA;
    unsigned char *chunk = ggml_mem_alloc(CHUNK);
    if (!chunk) {
        return ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory to look at it",
                         elf->source->label);
    }
    enum ggml_host_status status = check_hashes(elf);
    if (status == GGML_HOST_OK)
        status = check_relocations(elf, v[TAG_RELA], v[TAG_RELA_SIZE], rela, chunk);
    if (status == GGML_HOST_OK)
        status = check_relocations(elf, v[TAG_REL], v[TAG_REL_SIZE], rel, chunk);
    if (status == GGML_HOST_OK)
        status =
            check_relocations(elf, v[TAG_PLT], v[TAG_PLT_SIZE], plt_is_rela ? rela : rel, chunk);
    if (status == GGML_HOST_OK) status = check_packed(elf, chunk);
    // Linkers leave some relocations empty and some zeros behind the strings, but not as many.
    if (status == GGML_HOST_OK)
        status = check_zero_blocks(elf, v[TAG_RELA], v[TAG_RELA_SIZE], BLOCK / 4, chunk);
    if (status == GGML_HOST_OK)
        status = check_zero_blocks(elf, v[TAG_PLT], v[TAG_PLT_SIZE], 96, chunk);
    if (status == GGML_HOST_OK)
        status = check_zero_blocks(elf, v[TAG_STRINGS], v[TAG_STRINGS_SIZE], BLOCK / 2, chunk);
    if (status == GGML_HOST_OK) status = check_sections(elf, chunk);
    ggml_mem_free(chunk);
    return status;
}

// Runs the checks in the order in which each relies on those before. *out_needs says what the
// loader has to know; other formats are accepted unchecked.
enum ggml_host_status plugin_image_check(const struct image_source *source,
                                         struct image_needs *out_needs) {
    memset(out_needs, 0, sizeof(*out_needs));
    struct elf *elf = ggml_mem_calloc(1, sizeof(*elf));
    if (!elf)
        return ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory to look at it", source->label);
    elf->source = source;
    enum ggml_host_status status = plugin_image_identify(source, &elf->image);
    // Other formats are for other linkers, which open files by path.
    if (status == GGML_HOST_OK && elf->image.format != IMAGE_ELF) {
        out_needs->path = true;
        goto done;
    }
    elf->width = elf->image.is_64 ? 8 : 4;
    if (status == GGML_HOST_OK) status = read_segments(elf);
    if (status == GGML_HOST_OK) status = check_segments(elf);
    if (status == GGML_HOST_OK) status = read_dynamic(elf);
    if (status == GGML_HOST_OK) status = check_tables(elf);
    if (status == GGML_HOST_OK) status = check_libraries(elf, out_needs);
    if (status == GGML_HOST_OK) status = check_contents(elf);
    out_needs->stays = (elf->flags_1 & FLAG_1_NODELETE) != 0;
done:
    ggml_mem_free(elf->dynamic);
    ggml_mem_free(elf);
    return status;
}
