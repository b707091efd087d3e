// SPDX-License-Identifier: MIT
// The instructions that run before a plugin can have asked what the CPU has: those that its entry
// and its initialisers reach by direct jumps and calls. Pointers are not followed, which is how
// code for other CPUs is to be called.
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "code.h"
#include "elf_view.h"

struct addresses {
    uint64_t *items;
    size_t n;
    size_t max;
};

struct code {
    const struct check_run *run;
    const struct code_machine *machine;
    struct elf_view view;
    struct addresses todo;
    struct addresses starts; // of functions, ascending, where the file tells
    uint64_t end;            // behind the last instruction
    uint8_t *seen;           // one bit per address
    uint64_t features;       // that may be used
};

// Appends an address that is still to be followed.
static void push(const struct check_run *run, struct addresses *list, uint64_t address) {
    if (list->n == list->max) {
        list->max = list->max * 2 + 256;
        list->items = reallocarray(list->items, list->max, sizeof(*list->items));
        CHECK_THAT(run, list->items, "no memory");
    }
    list->items[list->n++] = address;
}

static const char *feature_name(uint32_t machine, uint64_t feature) {
#define GGML_CPU_FEATURE_ROW(family, bit, name, text)                                              \
    if (GGML_MACHINE_##family == machine && feature == GGML_CPU_BIT(bit)) return text;
#include "cpu_feature_list.inl"
    return "";
}

// Fails the check for an instruction of a set that the note doesn't require.
static void require(const struct code *code, const struct code_step *step, uint64_t at) {
    CHECK_THAT(code->run, (step->feature & ~code->features) == 0,
               "%s at %#llx, reached without a pointer from the entry or an initialiser, needs %s, "
               "which the note does not require",
               step->name, (unsigned long long)at,
               feature_name(code->machine->machine, step->feature));
}

// --- where code begins ---------------------------------------------------------------------------

// The section in the file that holds an address, or NULL.
static Elf_Scn *section_at(const struct code *code, uint64_t address, GElf_Shdr *out_header) {
    Elf_Scn *section;
    for (size_t i = 1; elf_view_section(&code->view, i, out_header, &section); ++i) {
        const bool mapped = out_header->sh_flags & SHF_ALLOC && out_header->sh_type != SHT_NOBITS;
        if (mapped && address >= out_header->sh_addr &&
            address - out_header->sh_addr < out_header->sh_size)
            return section;
    }
    return NULL;
}

// The bytes from the address to the end of its section; NULL if there are none in the file.
static const uint8_t *bytes_at(const struct code *code, uint64_t address, GElf_Xword flags,
                               size_t *out_size) {
    GElf_Shdr header;
    Elf_Scn *section = section_at(code, address, &header);
    Elf_Data *data = section ? elf_rawdata(section, NULL) : NULL;
    *out_size = 0;
    if (!data || !data->d_buf || (header.sh_flags & flags) != flags) return NULL;
    const size_t offset = (size_t)(address - header.sh_addr);
    if (offset >= data->d_size) return NULL;
    *out_size = data->d_size - offset;
    return (const uint8_t *)data->d_buf + offset;
}

// What the loader makes of the pointer at the address.
static uint64_t pointer_at(const struct code *code, uint64_t address) {
    GElf_Shdr header;
    Elf_Scn *section;
    GElf_Rela rela;
    uint64_t value = 0;
    size_t size;
    for (size_t i = 1; elf_view_section(&code->view, i, &header, &section); ++i) {
        if (header.sh_type != SHT_RELA) continue;
        Elf_Data *data = elf_getdata(section, NULL);
        for (int j = 0; data && gelf_getrela(data, j, &rela); ++j) {
            if (rela.r_offset == address && GELF_R_TYPE(rela.r_info) == code->machine->elf_relative)
                return (uint64_t)rela.r_addend;
        }
    }
    const uint8_t *bytes = bytes_at(code, address, 0, &size);
    if (bytes && size >= sizeof(value)) memcpy(&value, bytes, sizeof(value));
    return value;
}

// DT_INIT and DT_INIT_ARRAY, which the loader calls before the entry.
static void push_initialisers(struct code *code) {
    GElf_Dyn entry;
    const char *text;
    uint64_t array = 0, size = 0;
    for (size_t i = 0; elf_view_dynamic(&code->view, i, &entry, &text); ++i) {
        if (entry.d_tag == DT_INIT) push(code->run, &code->todo, entry.d_un.d_ptr);
        if (entry.d_tag == DT_INIT_ARRAY) array = entry.d_un.d_ptr;
        if (entry.d_tag == DT_INIT_ARRAYSZ) size = entry.d_un.d_val;
    }
    for (uint64_t i = 0; array && i + 8 <= size; i += 8)
        push(code->run, &code->todo, pointer_at(code, array + i));
}

static void push_entry(struct code *code) {
    struct elf_symbol symbol;
    for (size_t i = 1; elf_view_symbol(&code->view, i, &symbol); ++i) {
        if (symbol.sym.st_shndx != SHN_UNDEF && strcmp(symbol.name, GGML_PLUGIN_ENTRY_SYMBOL) == 0)
            push(code->run, &code->todo, symbol.sym.st_value);
    }
}

// From the table for unwinding, if it has the usual form: pairs of offsets, ascending.
static void find_starts(struct code *code) {
    static const uint8_t form[] = {1, 0x1b, 0x03, 0x3b};
    GElf_Shdr header;
    Elf_Scn *section = elf_view_find(&code->view, ".eh_frame_hdr", &header);
    Elf_Data *data = section ? elf_rawdata(section, NULL) : NULL;
    uint32_t n;
    if (!data || data->d_size < 12 || memcmp(data->d_buf, form, sizeof(form)) != 0) return;
    const uint8_t *bytes = data->d_buf;
    memcpy(&n, bytes + 8, sizeof(n));
    for (uint32_t i = 0; i < n && 12 + 8 * ((size_t)i + 1) <= data->d_size; ++i) {
        int32_t offset;
        memcpy(&offset, bytes + 12 + 8 * (size_t)i, sizeof(offset));
        push(code->run, &code->starts, header.sh_addr + (uint64_t)(int64_t)offset);
    }
}

// Whether a function begins at the address. Binary search in the sorted list.
static bool is_start(const struct code *code, uint64_t address) {
    size_t low = 0, high = code->starts.n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (code->starts.items[middle] == address) return true;
        if (code->starts.items[middle] < address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return false;
}

// --- following it --------------------------------------------------------------------------------

static bool see(struct code *code, uint64_t address) {
    if (address >= code->end || code->seen[address / 8] & 1u << address % 8) return false;
    code->seen[address / 8] |= (uint8_t)(1u << address % 8);
    return true;
}

// A call that does not return may be the last thing of a function: the next one does not follow.
static void follow(struct code *code, uint64_t address) {
    struct code_step step;
    size_t size;
    const uint8_t *bytes = bytes_at(code, address, SHF_EXECINSTR, &size);
    bool first = true;
    while (bytes && size > 0 && (first || !is_start(code, address)) && see(code, address)) {
        first = false;
        code->machine->decode(bytes, size, address, &step);
        require(code, &step, address);
        if (step.target) push(code->run, &code->todo, step.target);
        if (step.size == 0 || step.ends) return;
        bytes += step.size;
        size -= step.size;
        address += step.size;
    }
}

static const struct code_machine *machine_of(const struct elf_view *view) {
    return view->header.e_machine == code_x86_64.elf_machine    ? &code_x86_64
           : view->header.e_machine == code_aarch64.elf_machine ? &code_aarch64
                                                                : NULL;
}

// Prepares the walk; skips the check on machines without a decoder here.
static void open_code(struct check_run *run, struct code *code) {
    struct ggml_plugin_note note;
    GElf_Shdr header;
    *code = (struct code){.run = run};
    elf_view_note(run, &note);
    elf_view_open(run, &code->view);
    code->machine = machine_of(&code->view);
    if (!code->machine) check_skip(run, "only told of x86-64 and AArch64");
    if (code->machine->no_decoder) check_skip(run, "%s", code->machine->no_decoder);
    code->features = code->machine->with_implied(note.cpu_features[0]);
    for (size_t i = 1; elf_view_section(&code->view, i, &header, NULL); ++i) {
        const uint64_t end = header.sh_addr + header.sh_size;
        if (header.sh_flags & SHF_EXECINSTR && end > code->end) code->end = end;
    }
    CHECK_THAT(run, code->end < UINT64_C(1) << 34, "its code ends at an absurd address");
    code->seen = calloc(1, (size_t)(code->end / 8 + 1));
    CHECK_THAT(run, code->seen && code->machine->open(), "no memory");
}

// Follows the code depth first; each instruction once, by a bit per address.
void file_instructions(struct check_run *run) {
    struct code code;
    open_code(run, &code);
    find_starts(&code);
    push_initialisers(&code);
    push_entry(&code);
    while (code.todo.n > 0)
        follow(&code, code.todo.items[--code.todo.n]);
}
