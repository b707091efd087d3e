// SPDX-License-Identifier: MIT
// The file, before any of its code runs.
#define _GNU_SOURCE
#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "elf_view.h"
#include "ggml-host.h"
#include "subject.h"

// --- name and header -----------------------------------------------------------------------------

// The file's name without "lib" and extension, or a failed check.
static void stem_of(const struct check_run *run, char *out, size_t size) {
    const char *slash = strrchr(run->path, '/');
    const char *name = slash ? slash + 1 : run->path;
    if (strncmp(name, "lib", 3) == 0) name += 3;
    const size_t length = strlen(name);
    CHECK_THAT(run, strncmp(name, "ggml-", 5) == 0 && length > 8 && length < size,
               "is not called [lib]ggml-NAME.so");
    CHECK_THAT(run, strcmp(name + length - 3, ".so") == 0, "does not end in .so");
    snprintf(out, size, "%.*s", (int)(length - 8), name + 5);
}

void file_name(struct check_run *run) {
    char stem[256];
    stem_of(run, stem, sizeof(stem));
}

// The file is named after the note, so that a user finds the plugin that a report names.
void file_name_of_note(struct check_run *run) {
    char stem[256], wanted[2 * GGML_PLUGIN_STRING_SIZE + 2];
    struct ggml_plugin_note note;
    stem_of(run, stem, sizeof(stem));
    elf_view_note(run, &note);
    snprintf(wanted, sizeof(wanted), "%.31s%s%.31s", note.name, note.variant[0] ? "-" : "",
             note.variant);
    CHECK_THAT(run, strcmp(stem, wanted) == 0, "the file is named %s, its note %s", stem, wanted);
}

void file_shared(struct check_run *run) {
    struct elf_view view;
    elf_view_open(run, &view);
    CHECK_THAT(run, view.header.e_type == ET_DYN, "is not a shared library");
}

// A program that is linked as position-independent is a shared object too; its interpreter
// tells.
void file_interpreter(struct check_run *run) {
    struct elf_view view;
    GElf_Phdr segment;
    elf_view_open(run, &view);
    for (int i = 0; gelf_getphdr(view.elf, i, &segment); ++i)
        CHECK_THAT(run, segment.p_type != PT_INTERP, "is a program, not a library");
}

// The contract's number of an ELF machine; NONE for those that it doesn't list.
static enum ggml_machine machine_of(unsigned elf_machine) {
    switch (elf_machine) {
    case EM_X86_64: return GGML_MACHINE_X86_64;
    case EM_AARCH64: return GGML_MACHINE_AARCH64;
    case EM_386: return GGML_MACHINE_X86;
    case EM_ARM: return GGML_MACHINE_ARM;
    case EM_RISCV: return GGML_MACHINE_RISCV64;
    case EM_PPC64: return GGML_MACHINE_PPC64LE;
    case EM_S390: return GGML_MACHINE_S390X;
#ifdef EM_LOONGARCH
    case EM_LOONGARCH: return GGML_MACHINE_LOONGARCH64;
#endif
    default: return GGML_MACHINE_NONE;
    }
}

void file_machine(struct check_run *run) {
    struct elf_view view;
    elf_view_open(run, &view);
    CHECK_THAT(run, machine_of(view.header.e_machine) == GGML_MACHINE_HERE,
               "is for ELF machine %u, which this one is not", view.header.e_machine);
}

// --- note ----------------------------------------------------------------------------------------

// Exactly one: with several the host could judge another one than the entry uses.
void file_note_present(struct check_run *run) {
    struct elf_view view;
    GElf_Shdr header;
    int n = 0;
    elf_view_open(run, &view);
    for (size_t i = 1; elf_view_section(&view, i, &header, NULL); ++i)
        n += strcmp(elf_view_section_name(&view, &header), GGML_PLUGIN_SECTION_ELF) == 0;
    CHECK_THAT(run, n == 1, "has %d sections " GGML_PLUGIN_SECTION_ELF " instead of one", n);
}

// The host reads the note from the file without mapping it, so its bytes have to be there;
// SHT_NOBITS has none.
void file_note_bytes(struct check_run *run) {
    struct elf_view view;
    GElf_Shdr header;
    elf_view_open(run, &view);
    CHECK_THAT(run, elf_view_find(&view, GGML_PLUGIN_SECTION_ELF, &header), "has no note");
    CHECK_THAT(run, header.sh_type == SHT_PROGBITS, "the note's section has no bytes in the file");
    CHECK_THAT(run, header.sh_flags & SHF_ALLOC, "the note's section is not mapped");
}

// Fails the check if a relocation of this table writes into the note: its bytes in the file
// would then not be those of the mapped one.
static void fail_if_within(const struct check_run *run, Elf_Data *data,
                           const GElf_Shdr *relocations, const GElf_Shdr *note) {
    GElf_Rela rela;
    GElf_Rel rel;
    for (int i = 0; data; ++i) {
        GElf_Addr at;
        if (relocations->sh_type == SHT_RELA) {
            if (!gelf_getrela(data, i, &rela)) return;
            at = rela.r_offset;
        } else {
            if (!gelf_getrel(data, i, &rel)) return;
            at = rel.r_offset;
        }
        CHECK_THAT(run, at < note->sh_addr || at >= note->sh_addr + note->sh_size,
                   "the note needs a relocation at its byte %llu",
                   (unsigned long long)(at - note->sh_addr));
    }
}

void file_note_relocation(struct check_run *run) {
    struct elf_view view;
    GElf_Shdr note, header;
    Elf_Scn *section;
    elf_view_open(run, &view);
    CHECK_THAT(run, elf_view_find(&view, GGML_PLUGIN_SECTION_ELF, &note), "has no note");
    for (size_t i = 1; elf_view_section(&view, i, &header, &section); ++i) {
        if (header.sh_type != SHT_RELA && header.sh_type != SHT_REL) continue;
        fail_if_within(run, elf_getdata(section, NULL), &header, &note);
    }
}

void file_note_magic(struct check_run *run) {
    struct ggml_plugin_note note;
    elf_view_note(run, &note);
    CHECK_THAT(run, memcmp(note.magic, GGML_PLUGIN_MAGIC, GGML_PLUGIN_MAGIC_SIZE) == 0,
               "the note does not begin with the magic");
}

void file_note_size(struct check_run *run) {
    struct elf_view view;
    struct ggml_plugin_note note;
    GElf_Shdr header;
    elf_view_note(run, &note);
    elf_view_open(run, &view);
    elf_view_find(&view, GGML_PLUGIN_SECTION_ELF, &header);
    CHECK_THAT(run, note.size >= sizeof(note), "the note says that it has %u bytes", note.size);
    CHECK_THAT(run, note.size <= header.sh_size, "the note says %u bytes, its section has %llu",
               note.size, (unsigned long long)header.sh_size);
}

// The three texts share their rules: terminated, UTF-8 without control characters, zeros behind
// the end; only the name may not be empty. argument: 0 name, 1 variant, 2 version.
void file_note_text(struct check_run *run) {
    struct ggml_plugin_note note;
    elf_view_note(run, &note);
    const char *const texts[] = {note.name, note.variant, note.version};
    const char *text = texts[run->check->argument];
    const char *end = memchr(text, '\0', GGML_PLUGIN_STRING_SIZE);
    CHECK_THAT(run, end, "is not terminated");
    CHECK_THAT(run, run->check->argument != 0 || end > text, "is empty");
    CHECK_THAT(run, valid_utf8(text), "is not valid UTF-8");
    for (const char *at = text; at < end; ++at)
        CHECK_THAT(run, !iscntrl((unsigned char)*at), "has a control character");
    for (const char *at = end; at < text + GGML_PLUGIN_STRING_SIZE; ++at)
        CHECK_THAT(run, *at == '\0', "is not padded with zeros");
}

void file_note_contract(struct check_run *run) {
    struct ggml_plugin_note note;
    elf_view_note(run, &note);
    CHECK_THAT(run, note.contract_major == GGML_CONTRACT_MAJOR, "contract %u.%u, not %d.x",
               note.contract_major, note.contract_minor, GGML_CONTRACT_MAJOR);
}

void file_note_min_minor(struct check_run *run) {
    struct ggml_plugin_note note;
    elf_view_note(run, &note);
    CHECK_THAT(run, note.contract_min_minor <= note.contract_minor,
               "wants a host of minor %u but was built for %u", note.contract_min_minor,
               note.contract_minor);
}

// Note and ELF header are made by different tools (compiler and linker), so they can disagree.
void file_note_machine(struct check_run *run) {
    struct elf_view view;
    struct ggml_plugin_note note;
    elf_view_note(run, &note);
    elf_view_open(run, &view);
    CHECK_THAT(run, note.machine == machine_of(view.header.e_machine),
               "the note says machine %u, the file is for %d", note.machine,
               machine_of(view.header.e_machine));
}

// The hash covers sizes and offsets of the contract's structs as this plugin's compiler saw
// them.
void file_note_layout(struct check_run *run) {
    struct ggml_plugin_note note;
    elf_view_note(run, &note);
    CHECK_THAT(run, note.layout_hash == GGML_PLUGIN_LAYOUT_HASH,
               "was compiled with other structs than those of this contract");
}

void file_note_flags(struct check_run *run) {
    const uint32_t known = GGML_PLUGIN_FLAG_NO_UNLOAD | GGML_PLUGIN_FLAG_DYNAMIC_DEVICES;
    struct ggml_plugin_note note;
    if (elf_view_is_newer(run)) check_skip(run, "the plugin may know more than this program");
    elf_view_note(run, &note);
    CHECK_THAT(run, (note.flags & ~known) == 0, "unknown flags %#x", note.flags);
}

void file_note_reserved(struct check_run *run) {
    static const uint32_t zeros[16];
    struct ggml_plugin_note note;
    if (elf_view_is_newer(run)) check_skip(run, "the plugin may know more than this program");
    elf_view_note(run, &note);
    CHECK_THAT(run,
               note.reserved0 == 0 && note.cpu_features[1] == 0 &&
                   memcmp(note.reserved, zeros, sizeof(zeros)) == 0,
               "reserved words are not zero");
}

void file_note_cpu_known(struct check_run *run) {
    struct ggml_plugin_note note;
    if (elf_view_is_newer(run)) check_skip(run, "the plugin may know more than this program");
    elf_view_note(run, &note);
    for (unsigned bit = 0; bit < 64; ++bit) {
        if ((note.cpu_features[0] >> bit & 1) == 0) continue;
        CHECK_THAT(run, ggml_host_cpu_feature_name(bit), "unknown CPU feature bit %u", bit);
    }
}

// --- what it may execute: the compiler's own note ------------------------------------------------

enum { PROPERTY_NOTE_TYPE = 5, X86_ISA_NEEDED = (int)0xc0008002 };

// x86-64 levels as bits of the property: 1 baseline, 2 v2, 4 v3, 8 v4.
static uint32_t isa_needed(const unsigned char *at, size_t size) {
    uint32_t type, length, bits;
    while (size >= 12) {
        memcpy(&type, at, 4);
        memcpy(&length, at + 4, 4);
        if (type == (uint32_t)X86_ISA_NEEDED && length == 4) {
            memcpy(&bits, at + 8, 4);
            return bits;
        }
        const size_t step = 8 + (((size_t)length + 7) & ~(size_t)7);
        if (step > size) break;
        at += step;
        size -= step;
    }
    return 0;
}

// Compares what the compiler noted in .note.gnu.property (x86-64 psABI levels) with the features
// that the plugin's note requires. Without a requirement the host would run code that the CPU
// doesn't have.
void file_isa_needed(struct check_run *run) {
    struct elf_view view;
    struct ggml_plugin_note note;
    GElf_Shdr header;
    elf_view_note(run, &note);
    elf_view_open(run, &view);
    Elf_Scn *section = elf_view_find(&view, ".note.gnu.property", &header);
    Elf_Data *data = section ? elf_rawdata(section, NULL) : NULL;
    uint32_t needed = 0;
    // Header of the note: 12 bytes and "GNU\0".
    if (data && data->d_size > 16 && view.header.e_machine == EM_X86_64)
        needed = isa_needed((const unsigned char *)data->d_buf + 16, data->d_size - 16);
    if (needed == 0) check_skip(run, "the file does not say what its code needs");
    const uint64_t features = note.cpu_features[0];
    CHECK_THAT(run, !(needed & 2) || features & GGML_CPU_BIT(GGML_CPU_X86_64_SSE42),
               "is compiled for x86-64-v2 but does not require SSE4.2");
    CHECK_THAT(run, !(needed & 4) || features & GGML_CPU_BIT(GGML_CPU_X86_64_AVX2),
               "is compiled for x86-64-v3 but does not require AVX2");
    CHECK_THAT(run, !(needed & 8) || features & GGML_CPU_BIT(GGML_CPU_X86_64_AVX512F),
               "is compiled for x86-64-v4 but does not require AVX512F");
}

// --- symbols -------------------------------------------------------------------------------------

// Whether other libraries can bind to the symbol.
static bool is_defined(const struct elf_symbol *symbol) {
    return symbol->sym.st_shndx != SHN_UNDEF && symbol->sym.st_shndx != SHN_ABS &&
           GELF_ST_BIND(symbol->sym.st_info) != STB_LOCAL;
}

// Looks the entry up among the dynamic symbols. O(symbols).
static bool find_entry(const struct elf_view *view, struct elf_symbol *out_symbol) {
    for (size_t i = 1; elf_view_symbol(view, i, out_symbol); ++i) {
        if (is_defined(out_symbol) && strcmp(out_symbol->name, GGML_PLUGIN_ENTRY_SYMBOL) == 0)
            return true;
    }
    return false;
}

void file_entry(struct check_run *run) {
    struct elf_view view;
    struct elf_symbol symbol;
    elf_view_open(run, &view);
    CHECK_THAT(run, find_entry(&view, &symbol), "does not export " GGML_PLUGIN_ENTRY_SYMBOL);
}

void file_entry_function(struct check_run *run) {
    struct elf_view view;
    struct elf_symbol symbol;
    elf_view_open(run, &view);
    CHECK_THAT(run, find_entry(&view, &symbol), "does not export " GGML_PLUGIN_ENTRY_SYMBOL);
    CHECK_THAT(run, GELF_ST_TYPE(symbol.sym.st_info) == STT_FUNC,
               GGML_PLUGIN_ENTRY_SYMBOL " is not a function");
}

// Any other exported symbol may collide with one of the program, or of another plugin.
void file_exports(struct check_run *run) {
    struct elf_view view;
    struct elf_symbol symbol;
    elf_view_open(run, &view);
    for (size_t i = 1; elf_view_symbol(&view, i, &symbol); ++i) {
        CHECK_THAT(run, !is_defined(&symbol) || strcmp(symbol.name, GGML_PLUGIN_ENTRY_SYMBOL) == 0,
                   "also exports %s", symbol.name);
    }
}

static bool is_undefined(const struct elf_symbol *symbol) {
    return symbol->sym.st_shndx == SHN_UNDEF && symbol->name[0] != '\0';
}

// A plugin gets the host's functions through its table: one that is linked with the host library
// would bind to whichever version the program has.
void file_undefined_host(struct check_run *run) {
    struct elf_view view;
    struct elf_symbol symbol;
    elf_view_open(run, &view);
    for (size_t i = 1; elf_view_symbol(&view, i, &symbol); ++i) {
        const bool host =
            strncmp(symbol.name, "ggml_", 5) == 0 || strncmp(symbol.name, "gguf_", 5) == 0;
        CHECK_THAT(run, !is_undefined(&symbol) || !host, "needs %s of the host library",
                   symbol.name);
    }
}

void file_depends_host(struct check_run *run) {
    struct elf_view view;
    GElf_Dyn entry;
    const char *text;
    elf_view_open(run, &view);
    for (size_t i = 0; elf_view_dynamic(&view, i, &entry, &text); ++i) {
        const bool host = entry.d_tag == DT_NEEDED && strncmp(text, "libggml", 7) == 0;
        CHECK_THAT(run, !host, "depends on %s", text);
    }
}

// --- what the loader makes of it -----------------------------------------------------------------

enum { PATH_SIZE = 4096 };

// Whether a directory of the list has the library, and where. $ORIGIN is the plugin's own one.
static bool found_along(const struct check_run *run, const char *list, const char *library,
                        char out_path[PATH_SIZE]) {
    const char *slash = strrchr(run->path, '/');
    while (*list) {
        const int length = (int)strcspn(list, ":");
        const int origin = strncmp(list, "$ORIGIN", 7) == 0     ? 7
                           : strncmp(list, "${ORIGIN}", 9) == 0 ? 9
                                                                : 0;
        snprintf(out_path, PATH_SIZE, "%.*s%.*s/%s", origin ? (int)(slash - run->path) : 0,
                 run->path, length - origin, list + origin, library);
        if (access(out_path, R_OK) == 0) return true;
        list += length;
        list += *list == ':';
    }
    return false;
}

// NULL if it is not found. Its constructors run.
static void *open_library(const struct check_run *run, const struct elf_view *view,
                          const char *library) {
    char path[PATH_SIZE];
    GElf_Dyn entry;
    const char *text;
    for (size_t i = 0; elf_view_dynamic(view, i, &entry, &text); ++i) {
        const bool list = entry.d_tag == DT_RPATH || entry.d_tag == DT_RUNPATH;
        if (list && found_along(run, text, library, path))
            return dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    }
    return dlopen(library, RTLD_LAZY | RTLD_LOCAL);
}

// An absolute path, or one that begins with that of the plugin's own directory: of a word without
// braces letters, digits and _ make another one.
static bool starts_fixed(const char *text) {
    if (strncmp(text, "${ORIGIN}", 9) == 0) return true;
    if (strncmp(text, "$ORIGIN", 7) == 0) return !isalnum((unsigned char)text[7]) && text[7] != '_';
    return text[0] == '/';
}

// A name with a slash is a path, and one with words that the loader replaces may become one.
static bool name_is_fixed(const char *name) {
    return !strpbrk(name, "/$") || starts_fixed(name);
}

// Opens each needed library as the loader would find it: along the plugin's own run path, then
// the system's.
void file_dependencies(struct check_run *run) {
    struct elf_view view;
    GElf_Dyn entry;
    const char *text;
    elf_view_open(run, &view);
    for (size_t i = 0; elf_view_dynamic(&view, i, &entry, &text); ++i) {
        if (entry.d_tag != DT_NEEDED || !name_is_fixed(text)) continue; // see file_run_path
        CHECK_THAT(run, open_library(run, &view, text), "needs %s, which is not found", text);
    }
}

// A sanitizer's functions are in the program.
static bool is_of_a_sanitizer(const char *name) {
    static const char *const prefixes[] = {"__asan_",      "__hwasan_", "__lsan_", "__msan_",
                                           "__sanitizer_", "__tsan_",   "__ubsan_"};
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); ++i)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0) return true;
    return false;
}

// Whether one of the libraries defines the symbol.
static bool any_has(void *const *libraries, size_t count, const char *name) {
    for (size_t i = 0; i < count; ++i)
        if (dlsym(libraries[i], name)) return true;
    return false;
}

// What another library of the process happens to have, this program's mathematical one, say, is not
// there in every application.
void file_symbols(struct check_run *run) {
    enum { MAX_LIBRARIES = 64 };
    void *libraries[MAX_LIBRARIES];
    size_t n = 0;
    struct elf_view view;
    struct elf_symbol symbol;
    GElf_Dyn entry;
    const char *text;
    elf_view_open(run, &view);
    for (size_t i = 0; elf_view_dynamic(&view, i, &entry, &text) && n < MAX_LIBRARIES; ++i) {
        if (entry.d_tag != DT_NEEDED || !name_is_fixed(text)) continue;
        void *library = open_library(run, &view, text);
        if (library) libraries[n++] = library;
    }
    for (size_t i = 1; elf_view_symbol(&view, i, &symbol); ++i) {
        if (!is_undefined(&symbol) || GELF_ST_BIND(symbol.sym.st_info) == STB_WEAK) continue;
        CHECK_THAT(run, is_of_a_sanitizer(symbol.name) || any_has(libraries, n, symbol.name),
                   "needs %s, which none of its libraries has (-lm, -lstdc++?): link with "
                   "-Wl,--no-undefined",
                   symbol.name);
    }
}

// As the host, which refuses such files: an empty element is the working directory, an empty list
// is none.
void file_run_path(struct check_run *run) {
    struct elf_view view;
    GElf_Dyn entry;
    const char *text;
    elf_view_open(run, &view);
    for (size_t i = 0; elf_view_dynamic(&view, i, &entry, &text); ++i) {
        const bool list = entry.d_tag == DT_RPATH || entry.d_tag == DT_RUNPATH;
        const bool name =
            entry.d_tag == DT_NEEDED || entry.d_tag == DT_AUXILIARY || entry.d_tag == DT_FILTER;
        CHECK_THAT(run, !name || name_is_fixed(text),
                   "the loader takes '%s', relative to the working directory", text);
        if (!list || *text == '\0') continue;
        for (const char *at = text;; ++at) {
            CHECK_THAT(run, starts_fixed(at),
                       "the loader looks in '%s', relative to the working directory", at);
            at += strcspn(at, ":");
            if (*at == '\0') break;
        }
    }
}

// Relocations in code make its pages writable for a time and private to the process.
void file_text_relocations(struct check_run *run) {
    struct elf_view view;
    GElf_Dyn entry;
    const char *text;
    elf_view_open(run, &view);
    for (size_t i = 0; elf_view_dynamic(&view, i, &entry, &text); ++i) {
        const bool found =
            entry.d_tag == DT_TEXTREL || (entry.d_tag == DT_FLAGS && entry.d_un.d_val & DF_TEXTREL);
        CHECK_THAT(run, !found, "its code needs relocations");
    }
}

// A missing PT_GNU_STACK means an executable stack on some machines.
void file_stack(struct check_run *run) {
    struct elf_view view;
    GElf_Phdr segment;
    bool told = false;
    elf_view_open(run, &view);
    for (int i = 0; gelf_getphdr(view.elf, i, &segment); ++i) {
        if (segment.p_type != PT_GNU_STACK) continue;
        told = true;
        CHECK_THAT(run, !(segment.p_flags & PF_X), "wants an executable stack");
    }
    CHECK_THAT(run, told, "does not say that its stack needs not be executable");
}

void file_writable_code(struct check_run *run) {
    struct elf_view view;
    GElf_Phdr segment;
    elf_view_open(run, &view);
    for (int i = 0; gelf_getphdr(view.elf, i, &segment); ++i) {
        CHECK_THAT(run,
                   segment.p_type != PT_LOAD || (segment.p_flags & (PF_W | PF_X)) != (PF_W | PF_X),
                   "a segment is writable and executable");
    }
}
