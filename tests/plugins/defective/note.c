// SPDX-License-Identifier: MIT
// What differs between the files: the note, the entry, and how they are linked.
#include "defective.h"

const struct defect_choice defect_choice = {"which defect", PASTE_DEFECT};

#ifndef NOTE_SECTION
#define NOTE_SECTION GGML_PLUGIN_SECTION_ELF
#endif
#ifndef NOTE_NAME
#define NOTE_NAME "defect"
#endif
#ifndef NOTE_VERSION
#define NOTE_VERSION "1.0"
#endif
// Of extensions that the note does not name: AVX-512 and AVX, or dot products and SVE.
#if defined(__x86_64__)
#define FOREIGN_INSTRUCTION __asm__ volatile("vpaddd %zmm1, %zmm2, %zmm3")
#define FOREIGN_START __asm__ volatile("vaddps %ymm1, %ymm2, %ymm3")
#elif defined(__aarch64__)
#define FOREIGN_INSTRUCTION __asm__ volatile(".inst 0x4e829420") // sdot v0.4s, v1.16b, v2.16b
#define FOREIGN_START __asm__ volatile(".inst 0x2518e3e0")       // ptrue p0.b
#else
#define FOREIGN_INSTRUCTION (void)0
#endif
#define NOTE_HAS(name) (PASTE_DEFECT == DEFECT_##name)

#if defined(NOTE_EMPTY)
// In assembler, since C has no word for a section that takes no room in the file.
__asm__(".pushsection .ggml.note,\"aw\",@nobits\n.zero 512\n.popsection\n");
#elif defined(NOTE_POINTER)
// A pointer behind the value makes the section need a relocation.
struct note_and_pointer {
    struct ggml_plugin_note note;
    const void *pointer;
};
__attribute__((section(NOTE_SECTION),
               used GGML_PLUGIN_RETAIN)) static struct note_and_pointer note = {
    .note = {{'G', 'G', 'M', 'L', 'P', 'L', 'G', '\x1a'},
             sizeof(struct ggml_plugin_note),
             GGML_CONTRACT_MAJOR,
             GGML_CONTRACT_MINOR,
             0,
             GGML_MACHINE_HERE,
             .layout_hash = GGML_PLUGIN_LAYOUT_HASH,
             .name = NOTE_NAME,
             .variant = NOTE_VARIANT,
             .version = NOTE_VERSION},
    .pointer = &note};
#else
__attribute__((section(NOTE_SECTION),
               used GGML_PLUGIN_RETAIN)) static const struct ggml_plugin_note note = {
    .magic = {NOTE_HAS(note_magic) ? 'X' : 'G', 'G', 'M', 'L', 'P', 'L', 'G', '\x1a'},
    .size = NOTE_HAS(note_size_zero)     ? 0
            : NOTE_HAS(note_size_beyond) ? 4096
                                         : sizeof(struct ggml_plugin_note),
    .contract_major = GGML_CONTRACT_MAJOR + NOTE_HAS(note_major),
    .contract_minor = GGML_CONTRACT_MINOR + NOTE_HAS(newer),
    .contract_min_minor = NOTE_HAS(note_min_minor) ? GGML_CONTRACT_MINOR + 1 : 0,
    .machine = NOTE_HAS(note_machine) ? GGML_MACHINE_NONE : GGML_MACHINE_HERE,
    .flags = NOTE_HAS(note_flags) || NOTE_HAS(newer) ? 0x80
             : NOTE_HAS(registry_kept)               ? GGML_PLUGIN_FLAG_NO_UNLOAD
                                                     : 0,
    .cpu_features = {NOTE_HAS(note_cpu_unknown) ? UINT64_C(1) << 63 : 0, 0},
    .layout_hash = GGML_PLUGIN_LAYOUT_HASH ^ (NOTE_HAS(note_layout) ? 1 : 0),
    .name = NOTE_NAME,
    .variant = NOTE_VARIANT,
    .version = NOTE_VERSION,
    .reserved = {0, NOTE_HAS(note_reserved)},
};
#endif

#ifdef ENTRY_DATA
GGML_PLUGIN_EXPORT extern const int ggml_backend_init;
GGML_PLUGIN_EXPORT const int ggml_backend_init = 1;
#else
GGML_PLUGIN_EXPORT int32_t ENTRY(const struct ggml_host_table *host,
                                 const struct ggml_plugin_table **out_plugin);
GGML_PLUGIN_EXPORT int32_t ENTRY(const struct ggml_host_table *host,
                                 const struct ggml_plugin_table **out_plugin) {
    // Never executed, which nobody can see from outside.
    if (NOTE_HAS(instruction_unnamed) && !out_plugin) FOREIGN_INSTRUCTION;
    return defective_init(host, out_plugin);
}
#endif

#ifdef INITIALISER
static volatile int never;
__attribute__((constructor)) static void initialise(void) {
    if (never) FOREIGN_START;
}
#endif

#ifdef FOREIGN_CALL
// Defined by the host library, or by a library that is not there.
const char *FOREIGN_CALL(void);
static const char *(*const volatile foreign_call)(void) = FOREIGN_CALL;
__attribute__((constructor)) static void call_foreign(void) {
    if (foreign_call) foreign_call();
}
#endif

#ifdef EXPORT_EXTRA
GGML_PLUGIN_EXPORT int defective_extra(void);
GGML_PLUGIN_EXPORT int defective_extra(void) {
    return 1;
}
#endif

#ifdef INTERPRETER
__attribute__((section(".interp"), used)) static const char interpreter[] = "/lib/ld.so";
#endif

#ifdef TEXT_RELOCATION
__asm__(".text\n.balign 8\n.quad defective_init\n");
#endif
