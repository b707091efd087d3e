// SPDX-License-Identifier: MIT
// The instructions that run before a plugin can have asked what the CPU has: those that its entry
// and its initialisers reach by direct jumps and calls. Pointers are not followed, which is how
// code for other CPUs is to be called.
#define _GNU_SOURCE
#include <capstone/capstone.h>
#include <stdlib.h>
#include <string.h>

#include "elf_view.h"

struct addresses {
    uint64_t *items;
    size_t n;
    size_t max;
};

struct code {
    const struct check_run *run;
    struct elf_view view;
    csh decoder;
    cs_insn *insn;
    struct addresses todo;
    struct addresses starts; // of functions, ascending, where the file tells
    uint64_t end;            // behind the last instruction
    uint8_t *seen;           // one bit per address
    uint64_t features;       // that may be used
};

static void push(const struct check_run *run, struct addresses *list, uint64_t address) {
    if (list->n == list->max) {
        list->max = list->max * 2 + 256;
        list->items = reallocarray(list->items, list->max, sizeof(*list->items));
        CHECK_THAT(run, list->items, "no memory");
    }
    list->items[list->n++] = address;
}

// --- features ------------------------------------------------------------------------------------

#define BIT(name) GGML_CPU_BIT(GGML_CPU_X86_64_##name)

// What a CPU with the feature has too.
static const struct {
    uint64_t feature;
    uint64_t others;
} implied[] = {
    {BIT(AMX_INT8) | BIT(AMX_BF16), BIT(AMX_TILE)},
    {BIT(AVX512CD) | BIT(AVX512BW) | BIT(AVX512DQ) | BIT(AVX512VL) | BIT(AVX512_VBMI) |
         BIT(AVX512_VNNI) | BIT(AVX512_BF16) | BIT(AVX512_FP16),
     BIT(AVX512F)},
    {BIT(AVX512F), BIT(AVX2) | BIT(FMA) | BIT(F16C)},
    {BIT(AVX_VNNI), BIT(AVX2)},
    {BIT(AVX2) | BIT(FMA) | BIT(F16C), BIT(AVX)},
    {BIT(AVX), BIT(SSE42)},
    {BIT(SSE42), BIT(SSE41) | BIT(POPCNT)},
    {BIT(SSE41), BIT(SSSE3)},
    {BIT(SSSE3), BIT(SSE3)},
};

static uint64_t with_implied(uint64_t features) {
    for (size_t i = 0; i < sizeof(implied) / sizeof(implied[0]); ++i) {
        if (features & implied[i].feature) features |= implied[i].others;
    }
    return features;
}

static const struct {
    uint8_t group;
    uint64_t feature;
} groups[] = {
    {X86_GRP_AVX512, BIT(AVX512F)}, {X86_GRP_CDI, BIT(AVX512CD)}, {X86_GRP_BWI, BIT(AVX512BW)},
    {X86_GRP_DQI, BIT(AVX512DQ)},   {X86_GRP_VLX, BIT(AVX512VL)}, {X86_GRP_AVX2, BIT(AVX2)},
    {X86_GRP_FMA, BIT(FMA)},        {X86_GRP_F16C, BIT(F16C)},    {X86_GRP_AVX, BIT(AVX)},
    {X86_GRP_SSE42, BIT(SSE42)},    {X86_GRP_SSE41, BIT(SSE41)},  {X86_GRP_SSSE3, BIT(SSSE3)},
    {X86_GRP_SSE3, BIT(SSE3)},      {X86_GRP_BMI2, BIT(BMI2)},    {X86_GRP_BMI, BIT(BMI1)},
};

static uint64_t needed_by(const cs_insn *insn) {
    switch (insn->id) {
    case X86_INS_TZCNT: return 0; // older CPUs take it for BSF, as compilers mean it
    case X86_INS_LZCNT: return BIT(LZCNT);
    case X86_INS_POPCNT: return BIT(POPCNT);
    case X86_INS_MOVBE: return BIT(MOVBE);
    default: break;
    }
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); ++i) {
        for (int j = 0; j < insn->detail->groups_count; ++j) {
            if (insn->detail->groups[j] == groups[i].group) return groups[i].feature;
        }
    }
    return 0;
}

// What the decoder does not know: the prefix tells the least that it needs.
static uint64_t needed_by_prefix(uint8_t first) {
    return first == 0x62 ? BIT(AVX512F) : first == 0xc4 || first == 0xc5 ? BIT(AVX) : 0;
}

static const char *feature_name(uint64_t feature) {
#define GGML_CPU_FEATURE_ROW(machine, bit, name, text)                                             \
    if (GGML_MACHINE_##machine == GGML_MACHINE_X86_64 && feature == GGML_CPU_BIT(bit)) return text;
#include "cpu_feature_list.inl"
    return "";
}

static void require(const struct code *code, uint64_t feature, uint64_t at, const char *name) {
    CHECK_THAT(code->run, (feature & ~code->features) == 0,
               "%s at %#llx, reached without a pointer from the entry or an initialiser, needs %s, "
               "which the note does not require",
               name, (unsigned long long)at, feature_name(feature));
}

// --- where code begins ---------------------------------------------------------------------------

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
            if (rela.r_offset == address && GELF_R_TYPE(rela.r_info) == R_X86_64_RELATIVE)
                return (uint64_t)rela.r_addend;
        }
    }
    const uint8_t *bytes = bytes_at(code, address, 0, &size);
    if (bytes && size >= sizeof(value)) memcpy(&value, bytes, sizeof(value));
    return value;
}

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

static bool in_group(const cs_insn *insn, uint8_t group) {
    for (int i = 0; i < insn->detail->groups_count; ++i) {
        if (insn->detail->groups[i] == group) return true;
    }
    return false;
}

// Whether the next instruction may follow.
static bool take(struct code *code) {
    const cs_insn *insn = code->insn;
    const cs_x86 *x86 = &insn->detail->x86;
    const bool leads = in_group(insn, X86_GRP_JUMP) || in_group(insn, X86_GRP_CALL);
    require(code, needed_by(insn), insn->address, insn->mnemonic);
    if (leads && x86->op_count == 1 && x86->operands[0].type == X86_OP_IMM)
        push(code->run, &code->todo, (uint64_t)x86->operands[0].imm);
    return insn->id != X86_INS_JMP && insn->id != X86_INS_UD2 && insn->id != X86_INS_HLT &&
           !in_group(insn, X86_GRP_RET);
}

// A call that does not return may be the last thing of a function: the next one does not follow.
static void follow(struct code *code, uint64_t address) {
    size_t size;
    const uint8_t *bytes = bytes_at(code, address, SHF_EXECINSTR, &size);
    bool first = true;
    while (bytes && size > 0 && (first || !is_start(code, address)) && see(code, address)) {
        const uint8_t prefix = *bytes;
        const uint64_t at = address;
        first = false;
        if (!cs_disasm_iter(code->decoder, &bytes, &size, &address, code->insn)) {
            require(code, needed_by_prefix(prefix), at, "an instruction");
            return;
        }
        if (!take(code)) return;
    }
}

static void open_code(struct check_run *run, struct code *code) {
    struct ggml_plugin_note note;
    GElf_Shdr header;
    *code = (struct code){.run = run};
    elf_view_note(run, &note);
    elf_view_open(run, &code->view);
    if (code->view.header.e_machine != EM_X86_64) check_skip(run, "only told of x86-64");
    code->features = with_implied(note.cpu_features[0]);
    for (size_t i = 1; elf_view_section(&code->view, i, &header, NULL); ++i) {
        const uint64_t end = header.sh_addr + header.sh_size;
        if (header.sh_flags & SHF_EXECINSTR && end > code->end) code->end = end;
    }
    CHECK_THAT(run, code->end < UINT64_C(1) << 34, "its code ends at an absurd address");
    code->seen = calloc(1, (size_t)(code->end / 8 + 1));
    const bool opened = cs_open(CS_ARCH_X86, CS_MODE_64, &code->decoder) == CS_ERR_OK &&
                        cs_option(code->decoder, CS_OPT_DETAIL, CS_OPT_ON) == CS_ERR_OK;
    code->insn = opened ? cs_malloc(code->decoder) : NULL;
    CHECK_THAT(run, code->seen && code->insn, "no memory");
}

void file_instructions(struct check_run *run) {
    struct code code;
    open_code(run, &code);
    find_starts(&code);
    push_initialisers(&code);
    push_entry(&code);
    while (code.todo.n > 0)
        follow(&code, code.todo.items[--code.todo.n]);
}
