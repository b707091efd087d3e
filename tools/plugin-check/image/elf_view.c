// SPDX-License-Identifier: MIT
// Reads sections, symbols and the note from the plugin's file.
#define _GNU_SOURCE
#include "elf_view.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

// Fails the check for a file that can't be read as ELF.
void elf_view_open(const struct check_run *run, struct elf_view *out_view) {
    out_view->fd = open(run->path, O_RDONLY | O_CLOEXEC);
    elf_version(EV_CURRENT);
    out_view->elf = out_view->fd < 0 ? NULL : elf_begin(out_view->fd, ELF_C_READ, NULL);
    CHECK_THAT(run, out_view->elf, "can't be read: %s", elf_errmsg(-1));
    CHECK_THAT(run, elf_kind(out_view->elf) == ELF_K_ELF, "is not an ELF file");
    CHECK_THAT(run, gelf_getehdr(out_view->elf, &out_view->header), "has no ELF header");
}

void elf_view_close(struct elf_view *view) {
    elf_end(view->elf);
    close(view->fd);
}

bool elf_view_section(const struct elf_view *view, size_t index, GElf_Shdr *out_header,
                      Elf_Scn **out_section) {
    Elf_Scn *section = elf_getscn(view->elf, index);
    if (out_section) *out_section = section;
    return section && gelf_getshdr(section, out_header);
}

const char *elf_view_section_name(const struct elf_view *view, const GElf_Shdr *header) {
    size_t strings;
    const char *name = elf_getshdrstrndx(view->elf, &strings) == 0
                           ? elf_strptr(view->elf, strings, header->sh_name)
                           : NULL;
    return name ? name : "";
}

// A section by its name, or NULL.
Elf_Scn *elf_view_find(const struct elf_view *view, const char *name, GElf_Shdr *out_header) {
    Elf_Scn *section;
    for (size_t i = 1; elf_view_section(view, i, out_header, &section); ++i) {
        if (strcmp(elf_view_section_name(view, out_header), name) == 0) return section;
    }
    return NULL;
}

static Elf_Scn *find_type(const struct elf_view *view, GElf_Word type, GElf_Shdr *out_header) {
    Elf_Scn *section;
    for (size_t i = 1; elf_view_section(view, i, out_header, &section); ++i) {
        if (out_header->sh_type == type) return section;
    }
    return NULL;
}

// Dynamic symbol number `index`; false behind the last.
bool elf_view_symbol(const struct elf_view *view, size_t index, struct elf_symbol *out_symbol) {
    GElf_Shdr header;
    Elf_Scn *section = find_type(view, SHT_DYNSYM, &header);
    Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
    if (!data || !gelf_getsym(data, (int)index, &out_symbol->sym)) return false;
    const char *name = elf_strptr(view->elf, header.sh_link, out_symbol->sym.st_name);
    out_symbol->name = name ? name : "";
    return true;
}

// Entry n of the dynamic section, with its text where it is one; false behind the last.
bool elf_view_dynamic(const struct elf_view *view, size_t n, GElf_Dyn *out_entry,
                      const char **out_text) {
    GElf_Shdr header;
    Elf_Scn *section = find_type(view, SHT_DYNAMIC, &header);
    Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
    if (!data || !gelf_getdyn(data, (int)n, out_entry) || out_entry->d_tag == DT_NULL) return false;
    const bool text = out_entry->d_tag == DT_NEEDED || out_entry->d_tag == DT_RPATH ||
                      out_entry->d_tag == DT_RUNPATH || out_entry->d_tag == DT_AUXILIARY ||
                      out_entry->d_tag == DT_FILTER;
    const char *string = text ? elf_strptr(view->elf, header.sh_link, out_entry->d_un.d_val) : NULL;
    *out_text = string ? string : "";
    return true;
}

// Copies the note, or as much as there is of it, the rest 0; false without one.
bool elf_view_read_note(const struct check_run *run, struct ggml_plugin_note *out_note) {
    struct elf_view view;
    GElf_Shdr header;
    memset(out_note, 0, sizeof(*out_note));
    elf_view_open(run, &view);
    Elf_Scn *section = elf_view_find(&view, GGML_PLUGIN_SECTION_ELF, &header);
    Elf_Data *data = section ? elf_rawdata(section, NULL) : NULL;
    const bool found = data && data->d_buf && header.sh_type != SHT_NOBITS;
    if (found) {
        const size_t size = data->d_size < sizeof(*out_note) ? data->d_size : sizeof(*out_note);
        memcpy(out_note, data->d_buf, size);
    }
    elf_view_close(&view);
    return found;
}

void elf_view_note(const struct check_run *run, struct ggml_plugin_note *out_note) {
    CHECK_THAT(run, elf_view_read_note(run, out_note), "has no note in the file");
}

bool elf_view_is_newer(const struct check_run *run) {
    struct ggml_plugin_note note;
    return elf_view_read_note(run, &note) && note.contract_major == GGML_CONTRACT_MAJOR &&
           note.contract_minor > GGML_CONTRACT_MINOR;
}
