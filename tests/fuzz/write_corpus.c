// SPDX-License-Identifier: MIT
// usage: write-corpus DIRECTORY: writes one seed per image format for fuzz-note.
#include <stdio.h>

#include "note/image_builder.h"

int main(int argc, char **argv) {
    struct built_image image;
    const char *name;
    if (argc != 2) return 2;
    for (size_t i = 0; (name = build_sample(i, &image)); ++i) {
        char path[4096];
        snprintf(path, sizeof(path), "%s/%s", argv[1], name);
        FILE *file = fopen(path, "wb");
        if (!file) return 1;
        const size_t n = fwrite(image.bytes, 1, image.size, file);
        if (fclose(file) != 0 || n != image.size) return 1;
    }
    return 0;
}
