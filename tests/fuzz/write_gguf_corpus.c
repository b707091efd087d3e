// SPDX-License-Identifier: MIT
// usage: write-gguf-corpus DIRECTORY: writes seeds for fuzz-gguf.
#include <stdio.h>

#include "gguf.h"
#include "gguf/gguf_files.h"

static struct file_image file;

static int write_seed(const char *directory, const char *name) {
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    FILE *stream = fopen(path, "wb");
    if (!stream) return 1;
    const size_t n = fwrite(file.bytes, 1, file.size, stream);
    return fclose(stream) != 0 || n != file.size;
}

int main(int argc, char **argv) {
    const int64_t ne[] = {256, 2, 1, 1};
    if (argc != 2) return 2;
    build_good_file(&file);
    if (write_seed(argv[1], "full.gguf") != 0) return 1;
    put_header(&file, 2, 0, 0);
    if (write_seed(argv[1], "empty.gguf") != 0) return 1;
    put_header(&file, GGUF_VERSION, 1, 1);
    put_u32_pair(&file, "general.alignment", 8);
    put_tensor(&file, "blocks", 4, ne, GGML_TYPE_Q4_K, 0);
    put_zeros(&file, 8);
    return write_seed(argv[1], "blocks.gguf");
}
