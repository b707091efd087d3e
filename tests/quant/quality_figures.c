// SPDX-License-Identifier: MIT
// Prints the rows of quality_list.inl for the encoders of another library:
//   quality-figures /usr/lib/x86_64-linux-gnu/libggml-base.so.0
// Figures are rounded up in their fifth digit. The hash is left to this library's bytes: where they
// differ from the other's it is 0.
#include <dlfcn.h>
#include <stdio.h>

#include "quant/quality.h"

static const struct {
    enum ggml_type type;
    const char *name;
} types[] = {
#define QUALITY_TYPE(name) {GGML_TYPE_##name, #name},
#include "quant/quality_types.inl"
};

static double round_up(double x) {
    const double unit = pow(10.0, floor(log10(x)) - 4.0);
    return x > 0.0 ? ceil(x / unit) * unit : 0.0;
}

int main(int argc, char **argv) {
    void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    quality_quantize quantize = NULL;
    void (*init)(enum ggml_type) = NULL; // where the other library would call this one's
    if (library) *(void **)&quantize = dlsym(library, "ggml_quantize_chunk");
    if (library) *(void **)&init = dlsym(library, "ggml_quantize_init");
    if (!quantize || !init) {
        fprintf(stderr, "usage: quality-figures LIBRARY (with ggml_quantize_chunk)\n");
        return 1;
    }
    static struct quality_data data;
    for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); ++t) {
        for (int d = 0; d < QUALITY_DISTRIBUTIONS; ++d) {
            uint64_t hash, own_hash, unused;
            quality_fill((enum quality_distribution)d, &data);
            const enum ggml_type type = types[t].type;
            init(type);
            const double plain = quality_error(quantize, type, &data, false, &hash);
            const double weighted = quality_error(quantize, type, &data, true, &unused);
            quality_error(ggml_quantize_chunk, type, &data, false, &own_hash);
            printf("QUALITY_ROW(%s, %s, %.4e, %.4e, 0x%016llX)\n", types[t].name, quality_names[d],
                   round_up(plain), round_up(weighted),
                   hash == own_hash ? (unsigned long long)hash : 0ULL);
        }
    }
    return 0;
}
