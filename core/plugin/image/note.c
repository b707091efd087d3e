// SPDX-License-Identifier: MIT
// Reads and checks a note. Of an unknown major version only the part that every version keeps is
// looked at. Texts must be printable UTF-8, since they end up on terminals and in JSON.
#include "plugin/image/note.h"

#include <string.h>

#include "base/status.h"

#if defined(_WIN32)
#define NATIVE_FORMAT IMAGE_PE
#elif defined(__APPLE__)
#define NATIVE_FORMAT IMAGE_MACHO
#else
#define NATIVE_FORMAT IMAGE_ELF
#endif

// The part of the note that every major version keeps.
enum { FOREVER_SIZE = offsetof(struct ggml_plugin_note, flags) };

static const char *format_text(enum image_format format) {
    switch (format) {
    case IMAGE_ELF: return "ELF";
    case IMAGE_PE: return "Windows (PE)";
    case IMAGE_MACHO: return "macOS (Mach-O)";
    case IMAGE_UNKNOWN: break;
    }
    return "unknown";
}

// Bytes of a character by its first one; 0 for one that can't begin a character (overlong forms,
// beyond U+10FFFF).
static size_t utf8_length(unsigned char lead) {
    if (lead >= 0xc2 && lead <= 0xdf) return 2;
    if (lead >= 0xe0 && lead <= 0xef) return 3;
    if (lead >= 0xf0 && lead <= 0xf4) return 4;
    return lead < 0x80 ? 1 : 0;
}

// Whether the second byte may follow the lead byte: it decides about overlong forms, surrogates and
// numbers above U+10FFFF.
static bool utf8_second_is_valid(unsigned char lead, unsigned char second) {
    switch (lead) {
    case 0xe0: return second >= 0xa0;
    case 0xed: return second < 0xa0;
    case 0xf0: return second >= 0x90;
    case 0xf4: return second < 0x90;
    default: return true;
    }
}

// Printable UTF-8 of fewer than GGML_PLUGIN_STRING_SIZE bytes: it ends up in logs and terminals.
static bool is_text(const char *string) {
    const unsigned char *p = (const unsigned char *)string;
    const unsigned char *end = memchr(p, 0, GGML_PLUGIN_STRING_SIZE);
    if (!end) return false;
    while (p < end) {
        const size_t length = utf8_length(*p);
        if (length == 0 || length > (size_t)(end - p) || *p < 0x20 || *p == 0x7f) return false;
        for (size_t i = 1; i < length; ++i) {
            if ((p[i] & 0xc0) != 0x80) return false;
        }
        if (length > 1 && !utf8_second_is_valid(p[0], p[1])) return false;
        p += length;
    }
    return true;
}

// The first defect of a note of this major version, NULL if there is none. `available`: bytes of
// its section.
static const char *fault_of(const struct ggml_plugin_note *note, uint64_t available) {
    if (memcmp(note->magic, GGML_PLUGIN_MAGIC, GGML_PLUGIN_MAGIC_SIZE) != 0) {
        return "its note does not begin with the magic bytes";
    }
    if (note->size < sizeof(*note)) return "its note is too small";
    if (note->size > IMAGE_MAX_NOTE) return "its note is too large";
    if (note->size > available) return "its note is larger than its section";
    if (!is_text(note->name) || !is_text(note->variant) || !is_text(note->version)) {
        return "a string of its note is not NUL-terminated printable UTF-8";
    }
    if (note->name[0] == '\0') return "its note has no name";
    return NULL;
}

// Reads the note at its place in the image. If it has a defect and another major version, that
// version is reported instead: its layout is unknown here.
static enum ggml_host_status read_note(const struct image_source *source,
                                       const struct plugin_image *image,
                                       struct ggml_plugin_note *out_note) {
    struct ggml_plugin_note note;
    const size_t size = image->note_size < sizeof(note) ? (size_t)image->note_size : sizeof(note);
    memset(&note, 0, sizeof(note));
    const enum ggml_host_status status = image_read(source, image, image->note_offset, &note, size);
    if (status != GGML_HOST_OK) return status;
    const char *fault = fault_of(&note, image->note_size);
    if (!fault) {
        *out_note = note;
        return GGML_HOST_OK;
    }
    const bool has_magic = memcmp(note.magic, GGML_PLUGIN_MAGIC, GGML_PLUGIN_MAGIC_SIZE) == 0;
    if (has_magic && size >= FOREVER_SIZE && note.contract_major != GGML_CONTRACT_MAJOR) {
        return ggml_fail(GGML_HOST_WRONG_CONTRACT,
                         "%s: built for plugin contract %u.%u, this host has %u.%u", source->label,
                         note.contract_major, note.contract_minor, GGML_CONTRACT_MAJOR,
                         GGML_CONTRACT_MINOR);
    }
    return ggml_fail(GGML_HOST_DAMAGED_FILE, "%s: damaged: %s; build it again", source->label,
                     fault);
}

// Machine and file format are compared first: a library for another system has a note that can't be
// used anyway.
static enum ggml_host_status parse(const struct image_source *source, bool any_format,
                                   struct ggml_plugin_note *out_note) {
    struct plugin_image image;
    memset(out_note, 0, sizeof(*out_note));
    enum ggml_host_status status = plugin_image_identify(source, &image);
    if (status != GGML_HOST_OK) return status;
    if (image.machine != GGML_MACHINE_HERE || image.machine == GGML_MACHINE_NONE) {
        out_note->machine = (uint16_t)image.machine;
        return ggml_fail(GGML_HOST_WRONG_MACHINE,
                         "%s: built for %s; get the build for this machine", source->label,
                         image.machine_name);
    }
    if (!any_format && image.format != NATIVE_FORMAT) {
        out_note->machine = (uint16_t)image.machine;
        return ggml_fail(GGML_HOST_WRONG_MACHINE,
                         "%s: a library for %s in the format %s, this system loads %s",
                         source->label, image.machine_name, format_text(image.format),
                         format_text(NATIVE_FORMAT));
    }
    status = plugin_image_find_note(source, &image);
    if (status != GGML_HOST_OK) return status;
    return read_note(source, &image, out_note);
}

enum ggml_host_status plugin_note_check(const struct ggml_plugin_note *note, const char *label) {
    const char *fault = fault_of(note, UINT64_MAX);
    if (!fault) return GGML_HOST_OK;
    return ggml_fail(GGML_HOST_DAMAGED_FILE, "%s: %s", label, fault);
}

enum ggml_host_status plugin_note_parse(const struct image_source *source,
                                        struct ggml_plugin_note *out_note) {
    return parse(source, true, out_note);
}

// From an open file, so that the file that is checked is the one that is mapped later.
enum ggml_host_status plugin_note_read_file(const struct plugin_file *file, const char *path,
                                            struct ggml_plugin_note *out_note) {
    const struct image_source source = plugin_file_source(file, path);
    return parse(&source, false, out_note);
}

enum ggml_host_status plugin_note_read(const char *path, struct ggml_plugin_note *out_note,
                                       struct plugin_file_id *out_id) {
    struct plugin_file file;
    memset(out_note, 0, sizeof(*out_note));
    if (out_id) memset(out_id, 0, sizeof(*out_id));
    if (!path || path[0] == '\0') {
        return ggml_fail(GGML_HOST_INVALID_ARGUMENT, "plugin_note_read: no path given");
    }
    enum ggml_host_status status = plugin_file_open(path, &file);
    if (out_id) *out_id = file.id;
    if (status == GGML_HOST_OK) status = plugin_note_read_file(&file, path, out_note);
    plugin_file_close(&file);
    return status;
}
