// SPDX-License-Identifier: MIT
// Parses the input as a plugin's image: the note of an accepted one has a name and terminated
// strings, a refusal has a message and leaves the note empty.
#include "fuzz/inputs/note_input.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "plugin/image/note.h"
#include "plugin/load/negotiate.h"

static enum ggml_host_status read_memory(void *context, uint64_t offset, void *out, size_t size) {
    memcpy(out, (const unsigned char *)context + offset, size);
    return GGML_HOST_OK;
}

static void require(bool holds) {
    if (!holds) abort();
}

// The format's own reader, also for machines that plugin_note_parse refuses at once.
static void find_note(const struct image_source *source) {
    struct plugin_image image;
    if (plugin_image_identify(source, &image) != GGML_HOST_OK) return;
    require(image.machine_name != NULL && image.base <= source->size);
    require(image.size <= source->size - image.base);
    char name[64];
    for (unsigned i = 0; image_import_pe(source, i, name, sizeof(name)); ++i)
        require(name[0] != '\0' && memchr(name, 0, sizeof(name)) != NULL);
    if (plugin_image_find_note(source, &image) != GGML_HOST_OK) return;
    require(image.note_offset <= image.size);
    require(image.note_size <= image.size - image.note_offset);
}

enum ggml_host_status run_note_input(const unsigned char *data, size_t size) {
    const struct image_source source = {read_memory, (void *)(uintptr_t)data, size, "input"};
    struct ggml_plugin_note note;
    ggml_clear_error();
    find_note(&source);
    ggml_clear_error();
    const enum ggml_host_status status = plugin_note_parse(&source, &note);
    if (status != GGML_HOST_OK) {
        require(ggml_last_status() == status && ggml_last_error()[0] != '\0');
        require(note.name[0] == '\0');
        return status;
    }
    require(note.size >= sizeof(note) && note.name[0] != '\0');
    require(memchr(note.name, 0, sizeof(note.name)) != NULL);
    require(memchr(note.variant, 0, sizeof(note.variant)) != NULL);
    plugin_negotiate(&note, 0);
    return status;
}
