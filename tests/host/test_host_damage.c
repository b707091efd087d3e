// SPDX-License-Identifier: MIT
// Each clause of the check of ELF files by itself (finding F6 of a security review): in each file
// one thing is wrong, and whatever else could notice it was made to agree. Nothing is mapped, so
// that a clause that is missing shows as a file that is accepted.
#include "base/status.h"
#include "plugin/image/image_load.h"
#include "support/elf_craft.h"

enum { PAGE = 4096, UNKNOWN_TAG = 0x60000001 };
#define FAR ((size_t)1 << 50)

static enum ggml_host_status read_memory(void *context, uint64_t offset, void *out, size_t size) {
    memcpy(out, (const unsigned char *)context + offset, size);
    return GGML_HOST_OK;
}

static enum ggml_host_status check(const struct bytes *bytes) {
    const struct image_source source = {read_memory, bytes->data, bytes->size, "crafted"};
    struct image_needs needs;
    return plugin_image_check(&source, &needs);
}

// One read fails, as of a disk, after so many; those behind it succeed again.
struct tired {
    const unsigned char *data;
    size_t left;
};

static enum ggml_host_status read_tired(void *context, uint64_t offset, void *out, size_t size) {
    struct tired *tired = context;
    if (tired->left-- == 0) return ggml_fail(GGML_HOST_IO_ERROR, "the disk has a hole");
    return read_memory((void *)(uintptr_t)tired->data, offset, out, size);
}

// --- what files are made of ----------------------------------------------------------------------

static ElfW(Phdr) * last_load(const struct bytes *bytes) {
    size_t n = 0;
    while (segment_of(bytes, PT_LOAD, n + 1))
        ++n;
    return segment_of(bytes, PT_LOAD, n);
}

// Some linkers put data that is only read beside the code.
static ElfW(Phdr) * code_of(const struct bytes *bytes) {
    size_t n = 0;
    while (!(segment_of(bytes, PT_LOAD, n)->p_flags & PF_X))
        ++n;
    return segment_of(bytes, PT_LOAD, n);
}

static size_t end_of(const ElfW(Phdr) * segment) {
    return segment->p_vaddr + segment->p_memsz;
}

// The first note's header becomes one of another type, of the file's first bytes.
static ElfW(Phdr) * become(const struct bytes *bytes, uint32_t type) {
    ElfW(Phdr) *segment = segment_of(bytes, PT_NOTE, 0);
    *segment = (ElfW(Phdr)){.p_type = type, .p_flags = PF_R, .p_align = 1};
    segment->p_filesz = segment->p_memsz = 16;
    return segment;
}

// One more LOAD segment, behind the others: program headers of notes come after theirs.
static ElfW(Phdr) * add_load(const struct bytes *bytes) {
    const size_t end = end_of(last_load(bytes));
    ElfW(Phdr) *segment = become(bytes, PT_LOAD);
    segment->p_vaddr = (end / PAGE + 2) * PAGE;
    segment->p_align = PAGE;
    return segment;
}

// In the place of the first of the empty entries that linkers leave at the end.
static void add_entry(const struct bytes *bytes, int64_t tag, size_t value) {
    const ElfW(Phdr) *dynamic = segment_of(bytes, PT_DYNAMIC, 0);
    ElfW(Dyn) *entry = entry_of(bytes, DT_NULL);
    const size_t at = (size_t)((unsigned char *)entry - bytes->data) - dynamic->p_offset;
    assert_true(at + 2 * sizeof(*entry) <= dynamic->p_filesz);
    entry->d_tag = (__typeof__(entry->d_tag))tag;
    entry->d_un.d_val = value;
}

static void forget(const struct bytes *bytes, int64_t tag) {
    for (ElfW(Dyn) * entry; (entry = entry_of(bytes, tag)) != NULL;)
        entry->d_tag = UNKNOWN_TAG;
}

static void set_value(const struct bytes *bytes, int64_t tag, size_t value) {
    assert_non_null(entry_of(bytes, tag));
    entry_of(bytes, tag)->d_un.d_val = value;
}

// Sections of this type are of no type that is compared with the dynamic section.
static void hide(const struct bytes *bytes, uint32_t type) {
    ElfW(Shdr) *sections = (ElfW(Shdr) *)(void *)(bytes->data + header_of(bytes)->e_shoff);
    for (size_t i = 0; i < header_of(bytes)->e_shnum; ++i)
        if (sections[i].sh_type == type) sections[i].sh_type = SHT_PROGBITS;
}

// The bytes at an address.
static unsigned char *at(const struct bytes *bytes, size_t address) {
    for (size_t i = 0;; ++i) {
        const ElfW(Phdr) *load = segment_of(bytes, PT_LOAD, i);
        assert_non_null(load);
        if (address - load->p_vaddr < load->p_filesz)
            return bytes->data + load->p_offset + (address - load->p_vaddr);
    }
}

static uint32_t *words_of(const struct bytes *bytes, int64_t tag) {
    return (uint32_t *)(void *)at(bytes, entry_of(bytes, tag)->d_un.d_ptr);
}

static ElfW(Rela) * relocation_of(const struct bytes *bytes, int64_t tag) {
    return (ElfW(Rela) *)(void *)at(bytes, entry_of(bytes, tag)->d_un.d_ptr);
}

// Numbers that older headers lack.
enum { TAG_PACKED_SIZE = 35, TAG_PACKED = 36, TAG_PACKED_ENTRY = 37, SECTION_PACKED = 19 };

// A table of packed relocations (RELR) of two words, in the place of other data.
static void add_packed(const struct bytes *bytes, size_t first, size_t second) {
    const size_t where = section_of(bytes, ".rodata")->sh_addr;
    size_t *words = (size_t *)(void *)at(bytes, where);
    words[0] = first;
    words[1] = second;
    add_entry(bytes, TAG_PACKED, where);
    add_entry(bytes, TAG_PACKED_ENTRY, sizeof(words[0]));
    add_entry(bytes, TAG_PACKED_SIZE, 2 * sizeof(words[0]));
}

static size_t last_word(const struct bytes *bytes) {
    return (end_of(last_load(bytes)) / sizeof(size_t) - 1) * sizeof(size_t);
}

static void clear_section(const struct bytes *bytes, const char *name) {
    const ElfW(Shdr) *section = section_of(bytes, name);
    assert_non_null(section);
    memset(bytes->data + section->sh_offset, 0, section->sh_size);
}

// --- one clause each -----------------------------------------------------------------------------

// Without a fault, or with what no linker minds.
#define SOUND(name, statement)                                                                     \
    static void name(const struct bytes *bytes) {                                                  \
        statement;                                                                                 \
    }
#define WRONG SOUND

SOUND(nothing, (void)bytes)
SOUND(one_more_load, add_load(bytes))
SOUND(note_of_nothing, become(bytes, PT_NOTE)->p_memsz = 0;
      segment_of(bytes, PT_NOTE, 0)->p_vaddr = FAR)
SOUND(thread_memory, become(bytes, PT_TLS))
SOUND(no_libraries, forget(bytes, DT_NEEDED))
// Any text of the table is a name, with all of the table behind it.
SOUND(library_of_a_symbol_s_name, set_value(bytes, DT_NEEDED, 1))
SOUND(packed_relocations, add_packed(bytes, last_load(bytes)->p_vaddr, 7))
SOUND(packed_relocations_of_no_place, add_packed(bytes, last_word(bytes), 1))
SOUND(packed_relocations_behind_none, add_packed(bytes, 1, last_word(bytes)))
SOUND(packed_relocations_of_code, add_packed(bytes, code_of(bytes)->p_vaddr, 1);
      add_entry(bytes, DT_TEXTREL, 0))
SOUND(hidden_sections, hide(bytes, SHT_DYNSYM); hide(bytes, SHT_GNU_HASH); hide(bytes, SHT_RELA);
      hide(bytes, SHT_INIT_ARRAY); hide(bytes, SHT_FINI_ARRAY); hide(bytes, SHT_GNU_versym);
      hide(bytes, SHT_GNU_verneed))

// The table of program headers. Without any there is no dynamic section, which is found out there.
WRONG(program_headers_of_another_size, header_of(bytes)->e_phentsize += 1)
WRONG(more_program_headers_than_fit, header_of(bytes)->e_phnum = 200)
// LOAD segments: within the file and the addresses.
WRONG(load_ends_beyond_the_file, ElfW(Phdr) *load = add_load(bytes);
      load->p_offset = bytes->size / PAGE * PAGE; load->p_filesz = load->p_memsz = 2 * PAGE)
WRONG(load_begins_beyond_the_file, add_load(bytes)->p_offset = (bytes->size / PAGE + 2) * PAGE)
WRONG(load_of_more_file_than_memory, add_load(bytes)->p_memsz = 8)
WRONG(load_far_away, add_load(bytes)->p_vaddr = FAR)
WRONG(load_that_wraps, add_load(bytes)->p_vaddr = (size_t)-PAGE)
WRONG(load_of_huge_memory, add_load(bytes)->p_memsz = FAR)
WRONG(load_of_odd_alignment, add_load(bytes)->p_align = 3)
WRONG(load_of_another_place_in_the_page, add_load(bytes)->p_offset = 8)
// And in order.
WRONG(load_over_another, ElfW(Phdr) *last = last_load(bytes); *add_load(bytes) = *last)
WRONG(load_in_the_page_of_another, const size_t end = end_of(last_load(bytes));
      ElfW(Phdr) *load = add_load(bytes); load->p_vaddr = (end + 15) / 16 * 16;
      load->p_offset = load->p_vaddr % PAGE; load->p_filesz = load->p_memsz = 1)

// Other segments: mapped by the LOAD segments as they say.
WRONG(dynamic_at_another_place_of_the_file, segment_of(bytes, PT_DYNAMIC, 0)->p_offset += 16)
WRONG(dynamic_of_no_memory, segment_of(bytes, PT_DYNAMIC, 0)->p_memsz = 0)
WRONG(dynamic_twice, *segment_of(bytes, PT_NOTE, 0) = *segment_of(bytes, PT_DYNAMIC, 0))
WRONG(dynamic_without_an_end, ElfW(Phdr) *dynamic = segment_of(bytes, PT_DYNAMIC, 0);
      dynamic->p_filesz = (size_t)((unsigned char *)entry_of(bytes, DT_NULL) - bytes->data) -
                          dynamic->p_offset)
WRONG(note_elsewhere, become(bytes, PT_NOTE)->p_vaddr = FAR)
WRONG(property_elsewhere, become(bytes, PT_GNU_PROPERTY)->p_vaddr = FAR)
WRONG(headers_elsewhere, become(bytes, PT_PHDR)->p_vaddr = FAR)
WRONG(thread_memory_elsewhere, become(bytes, PT_TLS)->p_vaddr = FAR)
WRONG(thread_memory_of_more_file, become(bytes, PT_TLS)->p_memsz = 8)
WRONG(thread_memory_is_huge, become(bytes, PT_TLS)->p_memsz = FAR)
WRONG(thread_memory_of_odd_alignment, become(bytes, PT_TLS)->p_align = 3)
WRONG(thread_memory_of_huge_alignment, become(bytes, PT_TLS)->p_align = FAR)

static ElfW(Phdr) * relro_of(const struct bytes *bytes) {
    return segment_of(bytes, PT_GNU_RELRO, 0);
}

WRONG(relro_elsewhere, relro_of(bytes)->p_vaddr = FAR)
WRONG(relro_of_code, const ElfW(Phdr) *code = code_of(bytes);
      relro_of(bytes)->p_vaddr = code->p_vaddr; relro_of(bytes)->p_offset = code->p_offset;
      relro_of(bytes)->p_filesz = relro_of(bytes)->p_memsz = 16)
WRONG(relro_at_another_place_of_the_file, relro_of(bytes)->p_offset += 16)
WRONG(relro_of_another_size, relro_of(bytes)->p_filesz -= 16)
WRONG(relro_beyond_its_memory, relro_of(bytes)->p_memsz += 16 * 65536;
      relro_of(bytes)->p_filesz = relro_of(bytes)->p_memsz)
WRONG(relro_that_wraps, relro_of(bytes)->p_memsz = relro_of(bytes)->p_filesz = (size_t)-PAGE)

// What the dynamic section names.
WRONG(no_strings, forget(bytes, DT_STRTAB); forget(bytes, DT_NEEDED))
WRONG(strings_elsewhere, set_value(bytes, DT_STRTAB, FAR); forget(bytes, DT_NEEDED))
WRONG(no_symbols, forget(bytes, DT_SYMTAB); hide(bytes, SHT_DYNSYM))
WRONG(symbols_elsewhere, set_value(bytes, DT_SYMTAB, FAR); hide(bytes, SHT_DYNSYM))
WRONG(symbols_of_another_size, set_value(bytes, DT_SYMENT, 8))
WRONG(relocations_elsewhere, set_value(bytes, DT_RELA, FAR); hide(bytes, SHT_RELA))
WRONG(relocations_of_no_size, set_value(bytes, DT_RELAENT, 0))
WRONG(relocations_and_a_half, entry_of(bytes, DT_RELASZ)->d_un.d_val -= 8)
WRONG(more_relative_relocations, set_value(bytes, DT_RELACOUNT, FAR))
WRONG(short_relocations_elsewhere, add_entry(bytes, DT_REL, FAR); add_entry(bytes, DT_RELENT, 16);
      add_entry(bytes, DT_RELSZ, 16))
WRONG(short_relocations_of_no_size, add_entry(bytes, DT_RELSZ, 16))
WRONG(calls_of_no_kind, set_value(bytes, DT_PLTREL, 99); hide(bytes, SHT_RELA);
      set_value(bytes, DT_JMPREL, section_of(bytes, ".dynsym")->sh_addr);
      set_value(bytes, DT_PLTRELSZ, 16))
WRONG(calls_elsewhere, set_value(bytes, DT_JMPREL, FAR); hide(bytes, SHT_RELA))
WRONG(constructors_elsewhere, set_value(bytes, DT_INIT_ARRAY, FAR); hide(bytes, SHT_INIT_ARRAY))
WRONG(destructors_elsewhere, set_value(bytes, DT_FINI_ARRAY, FAR); hide(bytes, SHT_FINI_ARRAY))
WRONG(versions_elsewhere, set_value(bytes, DT_VERSYM, FAR); hide(bytes, SHT_GNU_versym))
WRONG(needed_versions_elsewhere, set_value(bytes, DT_VERNEED, FAR); hide(bytes, SHT_GNU_verneed))
WRONG(first_function_elsewhere, set_value(bytes, DT_INIT, FAR))
WRONG(first_function_is_no_code, set_value(bytes, DT_INIT, section_of(bytes, ".dynamic")->sh_addr))
WRONG(last_function_elsewhere, set_value(bytes, DT_FINI, FAR))
WRONG(name_before_the_strings, set_value(bytes, DT_NEEDED, (size_t)-8))
WRONG(name_without_an_end, const size_t size = entry_of(bytes, DT_STRSZ)->d_un.d_val;
      at(bytes, entry_of(bytes, DT_STRTAB)->d_un.d_ptr)[size - 1] = 'x';
      set_value(bytes, DT_NEEDED, size - 1))

// Tables of symbols.
WRONG(hashes_elsewhere, set_value(bytes, DT_GNU_HASH, FAR); hide(bytes, SHT_GNU_HASH))
WRONG(hashes_without_buckets, words_of(bytes, DT_GNU_HASH)[0] = 0)
WRONG(hashes_with_too_many_buckets, words_of(bytes, DT_GNU_HASH)[0] = UINT32_MAX)
WRONG(hashes_without_filter, words_of(bytes, DT_GNU_HASH)[2] = 0)
WRONG(hashes_with_odd_filter, words_of(bytes, DT_GNU_HASH)[2] = 3)
// Some linkers write both tables.
WRONG(no_hashes, forget(bytes, DT_GNU_HASH); hide(bytes, SHT_GNU_HASH); forget(bytes, DT_HASH);
      hide(bytes, SHT_HASH))
WRONG(old_hashes_elsewhere, add_entry(bytes, DT_HASH, FAR))
// The first symbol is zeros, the file's first bytes are large numbers.
WRONG(old_hashes_without_buckets, add_entry(bytes, DT_HASH, section_of(bytes, ".dynsym")->sh_addr))
WRONG(old_hashes_with_too_many_buckets,
      add_entry(bytes, DT_HASH, segment_of(bytes, PT_LOAD, 0)->p_vaddr + 16))

// Relocations.
WRONG(relocation_of_elsewhere, relocation_of(bytes, DT_RELA)->r_offset = FAR)
WRONG(call_of_elsewhere, relocation_of(bytes, DT_JMPREL)->r_offset = FAR)
WRONG(short_relocation_of_elsewhere, const size_t where = section_of(bytes, ".rodata")->sh_addr;
      ElfW(Rel) *rel = (ElfW(Rel) *)(void *)at(bytes, where); rel->r_offset = FAR; rel->r_info = 1;
      add_entry(bytes, DT_RELENT, sizeof(*rel)); add_entry(bytes, DT_RELSZ, sizeof(*rel));
      add_entry(bytes, DT_REL, where))

// An even word is a place, an odd one has a bit for each of those behind it.
WRONG(packed_elsewhere, add_packed(bytes, last_word(bytes), 1); set_value(bytes, TAG_PACKED, FAR))
WRONG(packed_of_no_size, add_packed(bytes, last_word(bytes), 1);
      set_value(bytes, TAG_PACKED_ENTRY, 0))
WRONG(packed_and_a_half, add_packed(bytes, last_word(bytes), 1);
      set_value(bytes, TAG_PACKED_SIZE, sizeof(size_t) + 4))
WRONG(packed_relocation_behind_none, add_packed(bytes, 3, last_word(bytes)))
WRONG(packed_relocation_of_elsewhere, add_packed(bytes, FAR, 1))
WRONG(packed_relocation_of_code, add_packed(bytes, code_of(bytes)->p_vaddr, 1))
WRONG(packed_relocation_beyond, add_packed(bytes, last_word(bytes), 3))
WRONG(packed_relocation_far_beyond,
      add_packed(bytes, last_word(bytes), (size_t)1 << (8 * sizeof(size_t) - 1) | 1))
WRONG(packed_relocations_without_a_place, add_packed(bytes, 3, 3))

// Sections, which have to agree with all that.
WRONG(section_elsewhere, section_of(bytes, ".rodata")->sh_addr = FAR)
WRONG(section_beyond_the_file_s_part, section_of(bytes, ".bss")->sh_type = SHT_PROGBITS)
WRONG(section_that_can_not_be_read, segment_of(bytes, PT_LOAD, 1)->p_flags = PF_X)
WRONG(code_that_can_not_be_run, section_of(bytes, ".data")->sh_flags |= SHF_EXECINSTR)
WRONG(data_that_can_not_be_written, section_of(bytes, ".rodata")->sh_flags |= SHF_WRITE)
WRONG(section_at_another_place_of_the_file, section_of(bytes, ".rodata")->sh_offset += 16)
WRONG(other_symbols, section_of(bytes, ".rodata")->sh_type = SHT_DYNSYM)
WRONG(other_old_hashes, section_of(bytes, ".rodata")->sh_type = SHT_HASH)
WRONG(other_hashes, section_of(bytes, ".rodata")->sh_type = SHT_GNU_HASH)
WRONG(other_versions, section_of(bytes, ".rodata")->sh_type = SHT_GNU_versym)
WRONG(other_needed_versions, section_of(bytes, ".rodata")->sh_type = SHT_GNU_verneed)
WRONG(other_constructors, section_of(bytes, ".rodata")->sh_type = SHT_INIT_ARRAY)
WRONG(other_destructors, section_of(bytes, ".rodata")->sh_type = SHT_FINI_ARRAY)
WRONG(other_relocations, section_of(bytes, ".rodata")->sh_type = SHT_RELA)
WRONG(other_short_relocations, section_of(bytes, ".rodata")->sh_type = SHT_REL)
WRONG(other_packed_relocations, section_of(bytes, ".rodata")->sh_type = SECTION_PACKED)
WRONG(constructors_of_another_table,
      set_value(bytes, DT_INIT_ARRAY, section_of(bytes, ".dynamic")->sh_addr))
WRONG(destructors_of_another_table,
      set_value(bytes, DT_FINI_ARRAY, section_of(bytes, ".dynamic")->sh_addr))
WRONG(more_constructors, entry_of(bytes, DT_INIT_ARRAYSZ)->d_un.d_val += sizeof(void *))
WRONG(more_destructors, entry_of(bytes, DT_FINI_ARRAYSZ)->d_un.d_val += sizeof(void *))
WRONG(bytes_of_a_section_of_zeros, section_of(bytes, ".dynamic")->sh_type = SHT_NOBITS)
WRONG(bytes_in_place_of_zeros, last_load(bytes)->p_filesz = last_load(bytes)->p_memsz)

// What a page that was lost leaves.
WRONG(no_code, clear_section(bytes, ".text"))
WRONG(no_list_of_symbols, clear_section(bytes, ".dynsym"))
WRONG(no_list_of_relocations, clear_section(bytes, ".rela.dyn"))
WRONG(no_list_of_calls, clear_section(bytes, ".rela.plt"))
WRONG(no_list_of_strings, clear_section(bytes, ".dynstr"); forget(bytes, DT_NEEDED))

struct file_case {
    const char *name;
    void (*craft)(const struct bytes *bytes);
};
#define CASE(name)                                                                                 \
    { #name, name }

static void check_cases(const char *path, const struct file_case *cases, size_t n,
                        enum ggml_host_status wanted) {
    for (size_t i = 0; i < n; ++i) {
        struct bytes bytes = read_whole(path);
        cases[i].craft(&bytes);
        const enum ggml_host_status status = check(&bytes);
        if (status != wanted)
            fail_msg("%s: status %d: %s", cases[i].name, (int)status, ggml_last_error());
        ggml_clear_error();
        free(bytes.data);
    }
}
#define CHECK(path, cases, wanted)                                                                 \
    check_cases(path, cases, sizeof(cases) / sizeof((cases)[0]), wanted)

static void test_f6_what_is_sound_is_accepted(void **state) {
    (void)state;
    static const struct file_case cases[] = {CASE(nothing),
                                             CASE(one_more_load),
                                             CASE(note_of_nothing),
                                             CASE(thread_memory),
                                             CASE(no_libraries),
                                             CASE(packed_relocations),
                                             CASE(packed_relocations_of_no_place),
                                             CASE(packed_relocations_behind_none),
                                             CASE(packed_relocations_of_code),
                                             CASE(hidden_sections),
                                             CASE(library_of_a_symbol_s_name)};
    CHECK(FIXTURES "/ggml-marker.so", cases, GGML_HOST_OK);
    CHECK(SHARED_CORE, cases, GGML_HOST_OK);
}

static void test_f6_each_clause_of_segments(void **state) {
    (void)state;
    static const struct file_case cases[] = {
        CASE(program_headers_of_another_size),
        CASE(more_program_headers_than_fit),
        CASE(load_ends_beyond_the_file),
        CASE(load_begins_beyond_the_file),
        CASE(load_of_more_file_than_memory),
        CASE(load_far_away),
        CASE(load_that_wraps),
        CASE(load_of_huge_memory),
        CASE(load_of_odd_alignment),
        CASE(load_of_another_place_in_the_page),
        CASE(load_over_another),
        CASE(load_in_the_page_of_another),
        CASE(dynamic_at_another_place_of_the_file),
        CASE(dynamic_of_no_memory),
        CASE(dynamic_twice),
        CASE(dynamic_without_an_end),
        CASE(note_elsewhere),
        CASE(property_elsewhere),
        CASE(headers_elsewhere),
        CASE(thread_memory_elsewhere),
        CASE(thread_memory_of_more_file),
        CASE(thread_memory_is_huge),
        CASE(thread_memory_of_odd_alignment),
        CASE(thread_memory_of_huge_alignment),
        CASE(relro_elsewhere),
        CASE(relro_of_code),
        CASE(relro_at_another_place_of_the_file),
        CASE(relro_of_another_size),
        CASE(relro_beyond_its_memory),
        CASE(relro_that_wraps),
    };
    CHECK(FIXTURES "/ggml-marker.so", cases, GGML_HOST_DAMAGED_FILE);
}

static void test_f6_each_clause_of_tables(void **state) {
    (void)state;
    static const struct file_case cases[] = {
        CASE(no_strings),
        CASE(strings_elsewhere),
        CASE(no_symbols),
        CASE(symbols_elsewhere),
        CASE(symbols_of_another_size),
        CASE(relocations_elsewhere),
        CASE(relocations_of_no_size),
        CASE(relocations_and_a_half),
        CASE(more_relative_relocations),
        CASE(short_relocations_elsewhere),
        CASE(short_relocations_of_no_size),
        CASE(calls_of_no_kind),
        CASE(calls_elsewhere),
        CASE(constructors_elsewhere),
        CASE(destructors_elsewhere),
        CASE(versions_elsewhere),
        CASE(needed_versions_elsewhere),
        CASE(first_function_elsewhere),
        CASE(first_function_is_no_code),
        CASE(last_function_elsewhere),
        CASE(name_before_the_strings),
        CASE(name_without_an_end),
        CASE(hashes_elsewhere),
        CASE(hashes_without_buckets),
        CASE(hashes_with_too_many_buckets),
        CASE(hashes_without_filter),
        CASE(hashes_with_odd_filter),
        CASE(no_hashes),
        CASE(old_hashes_elsewhere),
        CASE(old_hashes_without_buckets),
        CASE(old_hashes_with_too_many_buckets),
        CASE(relocation_of_elsewhere),
        CASE(call_of_elsewhere),
        CASE(short_relocation_of_elsewhere),
        CASE(packed_elsewhere),
        CASE(packed_of_no_size),
        CASE(packed_and_a_half),
        CASE(packed_relocation_behind_none),
        CASE(packed_relocation_of_elsewhere),
        CASE(packed_relocation_of_code),
        CASE(packed_relocation_beyond),
        CASE(packed_relocation_far_beyond),
        CASE(packed_relocations_without_a_place),
    };
    CHECK(SHARED_CORE, cases, GGML_HOST_DAMAGED_FILE);
}

static void test_f6_each_clause_of_sections(void **state) {
    (void)state;
    static const struct file_case cases[] = {
        CASE(section_elsewhere),
        CASE(constructors_of_another_table),
        CASE(destructors_of_another_table),
        CASE(bytes_of_a_section_of_zeros),
        CASE(section_beyond_the_file_s_part),
        CASE(section_that_can_not_be_read),
        CASE(code_that_can_not_be_run),
        CASE(data_that_can_not_be_written),
        CASE(section_at_another_place_of_the_file),
        CASE(other_symbols),
        CASE(other_old_hashes),
        CASE(other_hashes),
        CASE(other_versions),
        CASE(other_needed_versions),
        CASE(other_constructors),
        CASE(other_destructors),
        CASE(other_relocations),
        CASE(other_short_relocations),
        CASE(other_packed_relocations),
        CASE(more_constructors),
        CASE(more_destructors),
        CASE(bytes_in_place_of_zeros),
        CASE(no_code),
        CASE(no_list_of_symbols),
        CASE(no_list_of_relocations),
        CASE(no_list_of_calls),
        CASE(no_list_of_strings),
    };
    CHECK(SHARED_CORE, cases, GGML_HOST_DAMAGED_FILE);
}

// Each read may fail, and what it should have brought is not looked at.
static void test_f6_reads_that_fail(void **state) {
    (void)state;
    static const char *const paths[] = {FIXTURES "/ggml-marker.so", SHARED_CORE};
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); ++i) {
        struct bytes bytes = read_whole(paths[i]);
        enum ggml_host_status status = GGML_HOST_IO_ERROR;
        for (size_t n = 0; status != GGML_HOST_OK; ++n) {
            struct tired tired = {bytes.data, n};
            struct image_needs needs;
            const struct image_source source = {read_tired, &tired, bytes.size, "tired"};
            status = plugin_image_check(&source, &needs);
            if (status != GGML_HOST_OK && status != GGML_HOST_IO_ERROR)
                fail_msg("read %zu: status %d: %s", n, (int)status, ggml_last_error());
            if (status == GGML_HOST_OK) assert_int_equal(tired.left, 0); // none has failed
        }
        ggml_clear_error();
        free(bytes.data);
    }
}

// In names of libraries only glibc replaces words.
#if defined(__linux__) && !defined(__GLIBC__)
#define IN_NAMES false
#else
#define IN_NAMES true
#endif

// Words that the linker replaces: the file's own folder is one place, whatever the working
// directory is; a longer word is none, and others lead to relative paths.
static void test_f5_words_that_the_linker_replaces(void **state) {
    static const struct {
        int64_t tag;
        const char *text;
        bool is_good;
    } cases[] = {
        {DT_NEEDED, "x.so", true},
        {DT_NEEDED, "/x/y.so", true},
        {DT_NEEDED, "x/y.so", false},
        {DT_NEEDED, "$ORIGIN/x", IN_NAMES},
        {DT_NEEDED, "${ORIGIN}/x", IN_NAMES},
        {DT_NEEDED, "${ORIGIN}s/x", IN_NAMES},
        {DT_NEEDED, "$ORIGIN-libs/x", IN_NAMES},
        {DT_NEEDED, "$ORIGIN.d/x", IN_NAMES},
        {DT_NEEDED, "$ORIGIN", true},
        {DT_NEEDED, "$LIB", !IN_NAMES},
        {DT_NEEDED, "x${LIB}", !IN_NAMES},
        {DT_NEEDED, "$ORIGINAL", !IN_NAMES},
        {DT_NEEDED, "$ORIGINS/x", false},
        {DT_NEEDED, "$ORIGIN_/x", false},
        {DT_NEEDED, "$ORIGIN2/x", false},
        {DT_NEEDED, "${ORIGINS}/x", false},
        {DT_AUXILIARY, "$LIB", !IN_NAMES},
        {DT_FILTER, "$PLATFORM", !IN_NAMES},
        {DT_RUNPATH, "$ORIGIN", true},
        {DT_RUNPATH, "$ORIGIN:/x", true},
        {DT_RUNPATH, "$ORIGIN-libs", true},
        {DT_RPATH, "${ORIGIN}:/x", true},
        {DT_RPATH, "${ORIGIN}s", true},
        {DT_RPATH, "/x:$ORIGIN/y", true},
        {DT_RUNPATH, "$ORIGINAL", false},
        {DT_RUNPATH, "/x:$ORIGINS", false},
        {DT_RUNPATH, "$LIB", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        struct bytes bytes = read_whole(FIXTURES "/ggml-marker.so");
        const size_t place = entry_of(&bytes, DT_NEEDED)->d_un.d_val;
        char *strings = (char *)at(&bytes, entry_of(&bytes, DT_STRTAB)->d_un.d_ptr);
        memcpy(strings + place, cases[i].text, strlen(cases[i].text) + 1);
        forget(&bytes, DT_NEEDED);
        add_entry(&bytes, cases[i].tag, place);
        const enum ggml_host_status wanted =
            cases[i].is_good ? GGML_HOST_OK : GGML_HOST_LINK_FAILED;
        if (check(&bytes) != wanted) fail_msg("'%s': %s", cases[i].text, ggml_last_error());
        ggml_clear_error();
        free(bytes.data);
    }
}

// What the loader is told of a sound file: whether it stays mapped.
static void test_f29_a_file_says_that_it_stays(void **state) {
    (void)state;
    for (int stays = 0; stays < 2; ++stays) {
        struct bytes bytes = read_whole(FIXTURES "/ggml-marker.so");
        struct image_needs needs;
        const struct image_source source = {read_memory, bytes.data, bytes.size, "crafted"};
        if (stays) add_entry(&bytes, DT_FLAGS_1, DF_1_NODELETE);
        assert_int_equal(plugin_image_check(&source, &needs), GGML_HOST_OK);
        assert_int_equal(needs.stays, stays);
        free(bytes.data);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f6_what_is_sound_is_accepted),
        cmocka_unit_test(test_f6_each_clause_of_segments),
        cmocka_unit_test(test_f6_each_clause_of_tables),
        cmocka_unit_test(test_f6_each_clause_of_sections),
        cmocka_unit_test(test_f6_reads_that_fail),
        cmocka_unit_test(test_f5_words_that_the_linker_replaces),
        cmocka_unit_test(test_f29_a_file_says_that_it_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
