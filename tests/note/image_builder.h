// SPDX-License-Identifier: MIT
// Minimal library images of every format, for tests and as seeds of the fuzzer.
#ifndef GGML_TESTS_IMAGE_BUILDER_H
#define GGML_TESTS_IMAGE_BUILDER_H

#include "plugin/image/note_image.h"

struct built_image {
    unsigned char bytes[4096];
    size_t size;
};

enum elf_number { ELF_X86_64 = 62, ELF_AARCH64 = 183, ELF_ARM = 40, ELF_X86 = 3, ELF_S390 = 22 };
enum pe_number { PE_X86_64 = 0x8664, PE_X86 = 0x14c, PE_AARCH64 = 0xaa64 };
enum macho_number { MACHO_X86_64 = 0x01000007, MACHO_AARCH64 = 0x0100000c };
#if defined(__aarch64__)
enum { ELF_HERE = ELF_AARCH64, PE_HERE = PE_AARCH64 };
enum { MACHO_HERE = MACHO_AARCH64, MACHO_OTHER = MACHO_X86_64 };
#else
enum { ELF_HERE = ELF_X86_64, PE_HERE = PE_X86_64 };
enum { MACHO_HERE = MACHO_X86_64, MACHO_OTHER = MACHO_AARCH64 };
#endif

// A note that this host accepts.
struct ggml_plugin_note valid_note(void);

void build_elf(struct built_image *out_image, bool is_64, bool big_endian, uint16_t machine,
               const struct ggml_plugin_note *note);
// The counts of its sections stand in section 0, as in a file with very many sections.
void build_elf_extended(struct built_image *out_image, const struct ggml_plugin_note *note);
void build_pe(struct built_image *out_image, uint16_t machine, const struct ggml_plugin_note *note);
void build_macho(struct built_image *out_image, bool big_endian, uint32_t cpu,
                 const struct ggml_plugin_note *note);
// Two slices, the second of which is for this machine.
void build_fat(struct built_image *out_image, bool is_wide, const struct ggml_plugin_note *note);

// Every format above with a valid note: fills the i-th image and returns its name, NULL past the
// end.
const char *build_sample(size_t i, struct built_image *out_image);

struct image_source memory_source(const struct built_image *image);

#endif
