// SPDX-License-Identifier: MIT
// What the dynamic linker would make of an image: looked at before it is given the file, because it
// checks little of it itself. docs/security.md says what is refused.
#ifndef GGML_PLUGIN_IMAGE_IMAGE_LOAD_H
#define GGML_PLUGIN_IMAGE_IMAGE_LOAD_H

#include "plugin/image/note_image.h"

struct image_needs {
    bool path;  // the linker has to know where the file lies: it says $ORIGIN, or is no ELF file
    bool stays; // marked so that it is never unmapped (DF_1_NODELETE)
};

// Of an ELF image: program headers, dynamic section, tables of symbols, relocations and hashes, and
// that no page of code is missing. DAMAGED_FILE if it can't be mapped safely; LINK_FAILED if it
// wants an executable stack, or libraries by paths that are relative to the working directory.
// Images of other formats are taken as they are. [any-thread]
enum ggml_host_status plugin_image_check(const struct image_source *source,
                                         struct image_needs *out_needs);

#endif
