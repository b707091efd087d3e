// SPDX-License-Identifier: MIT
// A plugin's file as libelf shows it.
#ifndef PLUGIN_CHECK_ELF_VIEW_H
#define PLUGIN_CHECK_ELF_VIEW_H

#include <gelf.h>

#include "check.h"
#include "ggml-plugin.h"

struct elf_view {
    int fd;
    Elf *elf;
    GElf_Ehdr header;
};

// Opens run->path or fails the check. [init]
void elf_view_open(const struct check_run *run, struct elf_view *out_view);
// Needed only where the open file is in the way. [init]
void elf_view_close(struct elf_view *view);
// Section `index` counted from 1; false past the end.
bool elf_view_section(const struct elf_view *view, size_t index, GElf_Shdr *out_header,
                      Elf_Scn **out_section);
// The section of that name, or NULL.
Elf_Scn *elf_view_find(const struct elf_view *view, const char *name, GElf_Shdr *out_header);
const char *elf_view_section_name(const struct elf_view *view, const GElf_Shdr *header);

struct elf_symbol {
    GElf_Sym sym;
    const char *name;
};
// Dynamic symbol `index`; false past the end.
bool elf_view_symbol(const struct elf_view *view, size_t index, struct elf_symbol *out_symbol);
// The n-th entry of the dynamic section; false past the end.
bool elf_view_dynamic(const struct elf_view *view, size_t n, GElf_Dyn *out_entry,
                      const char **out_text);
// The note's bytes; false if the file has none. The file is closed again.
bool elf_view_read_note(const struct check_run *run, struct ggml_plugin_note *out_note);
// Whether the plugin was built for a later contract, so that it may use what this program takes for
// reserved.
bool elf_view_is_newer(const struct check_run *run);
// The same as elf_view_read_note(), or a failed check. Fields behind what the file has are zero.
void elf_view_note(const struct check_run *run, struct ggml_plugin_note *out_note);

#endif
