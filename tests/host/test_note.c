// SPDX-License-Identifier: MIT
// The plugin note in images of every format: it is found, checked field by field, and refused
// when truncated, duplicated or out of bounds.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/status.h"
#include "note/image_builder.h"
#include "plugin/image/note.h"
#include "support/temp_folder.h"

static enum ggml_host_status parse(const struct built_image *image,
                                   struct ggml_plugin_note *out_note) {
    const struct image_source source = memory_source(image);
    return plugin_note_parse(&source, out_note);
}

#define assert_refused(expected, status, word)                                                     \
    do {                                                                                           \
        assert_int_equal(status, expected);                                                        \
        if (!strstr(ggml_last_error(), word)) fail_msg("no '%s' in: %s", word, ggml_last_error()); \
    } while (0)

// --- formats

static void test_every_format_gives_up_its_note(void **state) {
    (void)state;
    struct built_image image;
    const char *name;
    for (size_t i = 0; (name = build_sample(i, &image)); ++i) {
        const struct image_source source = memory_source(&image);
        const struct ggml_plugin_note expected = valid_note();
        struct plugin_image found;
        print_message("# %s\n", name);
        assert_int_equal(plugin_image_identify(&source, &found), GGML_HOST_OK);
        assert_int_equal(plugin_image_find_note(&source, &found), GGML_HOST_OK);
        assert_int_equal(found.note_size, sizeof(expected));
        assert_memory_equal(image.bytes + found.base + found.note_offset, &expected,
                            sizeof(expected));
    }
}

static void test_foreign_machines_are_named(void **state) {
    (void)state;
    const struct ggml_plugin_note note = valid_note();
    struct built_image image;
    struct ggml_plugin_note read;
    build_elf(&image, true, true, ELF_S390, &note);
    assert_refused(GGML_HOST_WRONG_MACHINE, parse(&image, &read), "s390x");
    assert_int_equal(read.machine, GGML_MACHINE_S390X);
    build_elf(&image, false, false, ELF_ARM, &note);
    assert_refused(GGML_HOST_WRONG_MACHINE, parse(&image, &read), "ARM (32-bit)");
    build_elf(&image, false, false, ELF_X86_64, &note);
    assert_refused(GGML_HOST_WRONG_MACHINE, parse(&image, &read), "x32");
    build_elf(&image, true, true, ELF_X86_64, &note);
    assert_refused(GGML_HOST_WRONG_MACHINE, parse(&image, &read), "unknown processor");
    build_pe(&image, PE_X86, &note);
    assert_refused(GGML_HOST_WRONG_MACHINE, parse(&image, &read), "x86 (32-bit)");
    build_macho(&image, true, 0x01000012, &note);
    assert_refused(GGML_HOST_WRONG_MACHINE, parse(&image, &read), "PowerPC 64");
}

static void test_a_foreign_machine_needs_no_note_to_be_named(void **state) {
    (void)state;
    const struct ggml_plugin_note note = valid_note();
    struct built_image image;
    struct ggml_plugin_note read;
    build_elf(&image, false, true, ELF_S390, &note);
    image.size = 64;
    assert_refused(GGML_HOST_WRONG_MACHINE, parse(&image, &read), "s390");
}

static void test_what_is_no_library_is_no_plugin(void **state) {
    (void)state;
    static const char *const texts[] = {"hello\n", "#!/bin/sh\n", "\x7f", "M", "\177ELG12345678"};
    const struct ggml_plugin_note note = valid_note();
    struct ggml_plugin_note read;
    struct built_image image;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); ++i) {
        memset(&image, 0, sizeof(image));
        image.size = strlen(texts[i]);
        memcpy(image.bytes, texts[i], image.size);
        assert_refused(GGML_HOST_NOT_A_PLUGIN, parse(&image, &read), "not a shared library");
    }
    build_elf(&image, true, false, ELF_HERE, &note);
    image.bytes[16] = 2; // an executable
    assert_refused(GGML_HOST_NOT_A_PLUGIN, parse(&image, &read), "not a shared library");
    build_elf(&image, true, false, ELF_HERE, &note);
    image.bytes[768 + 18] = 'G'; // another section name
    assert_refused(GGML_HOST_NOT_A_PLUGIN, parse(&image, &read), "without a ggml plugin note");
    build_pe(&image, PE_HERE, &note);
    image.bytes[128 + 23] = 0; // a program
    assert_refused(GGML_HOST_NOT_A_PLUGIN, parse(&image, &read), "Windows program");
    memset(&image, 0, sizeof(image));
    memcpy(image.bytes, "\xca\xfe\xba\xbe\0\0\0\x41", 8); // a Java class
    image.size = 100;
    assert_refused(GGML_HOST_NOT_A_PLUGIN, parse(&image, &read), "fat Mach-O");
    image.size = 0;
    assert_refused(GGML_HOST_DAMAGED_FILE, parse(&image, &read), "empty");
}

// --- lies

static void test_every_truncation_is_refused(void **state) {
    (void)state;
    struct built_image image;
    struct ggml_plugin_note read;
    int n_formats = 0;
    for (size_t i = 0; build_sample(i, &image); ++i) {
        const bool is_padded = image.bytes[0] == 'M';
        const size_t whole = is_padded ? 2048 + sizeof(read) : image.size;
        if (parse(&image, &read) != GGML_HOST_OK) continue; // foreign
        for (image.size = 0; image.size < whole; ++image.size) {
            ggml_clear_error();
            assert_int_not_equal(parse(&image, &read), GGML_HOST_OK);
            assert_string_not_equal(ggml_last_error(), "");
            assert_string_equal(read.name, "");
        }
        ++n_formats;
    }
    assert_int_equal(n_formats, GGML_MACHINE_HERE == GGML_MACHINE_X86_64 ? 6 : n_formats);
}

static void test_offsets_that_overflow_are_refused(void **state) {
    (void)state;
    static const struct {
        size_t at;
        size_t size;
    } fields[] = {
        {40, 8},                 // section table
        {1024 + 64 + 24, 8},     // names: offset
        {1024 + 64 + 32, 8},     // names: size
        {1024 + 3 * 64 + 24, 8}, // note: offset
        {1024 + 3 * 64 + 32, 8}, // note: size
        {60, 2},                 // number of sections
        {62, 2},                 // index of the names
        {58, 2},                 // size of a section header
    };
    static const unsigned char fills[] = {0xff, 0x7f, 0x80, 0xfe};
    const struct ggml_plugin_note note = valid_note();
    struct ggml_plugin_note read;
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); ++i) {
        for (size_t k = 0; k < sizeof(fills); ++k) {
            struct built_image image;
            build_elf(&image, true, false, ELF_HERE, &note);
            memset(image.bytes + fields[i].at, fills[k], fields[i].size);
            assert_int_equal(parse(&image, &read), GGML_HOST_DAMAGED_FILE);
        }
    }
}

static void test_a_load_command_without_length_does_not_hang(void **state) {
    (void)state;
    const struct ggml_plugin_note note = valid_note();
    struct ggml_plugin_note read;
    struct built_image image;
    build_macho(&image, false, MACHO_HERE, &note);
    memset(image.bytes + 32 + 4, 0, 4);
    assert_refused(GGML_HOST_DAMAGED_FILE, parse(&image, &read), "load command");
}

// Copies the row of a section, `size` bytes, behind itself.
static void repeat(struct built_image *image, size_t at, size_t size) {
    memcpy(image->bytes + at + size, image->bytes + at, size);
}

static void test_a_second_note_is_refused(void **state) {
    (void)state;
    enum { PE_HEADER = 128, PE_NOTE_ROW = PE_HEADER + 24 + 240 + 40, MACHO_SEGMENT = 32 + 24 };
    const struct ggml_plugin_note note = valid_note();
    struct ggml_plugin_note read;
    struct built_image image;
    build_pe(&image, PE_HERE, &note);
    repeat(&image, PE_NOTE_ROW, 40);
    image.bytes[PE_HEADER + 6] = 3; // sections
    assert_refused(GGML_HOST_DAMAGED_FILE, parse(&image, &read), "not the only one");
    build_macho(&image, false, MACHO_HERE, &note);
    repeat(&image, MACHO_SEGMENT + 72, 80);
    image.bytes[20] = 0; // of the commands: 256 bytes
    image.bytes[21] = 1;
    image.bytes[MACHO_SEGMENT + 4] = 72 + 2 * 80;
    image.bytes[MACHO_SEGMENT + 64] = 2; // sections
    assert_refused(GGML_HOST_DAMAGED_FILE, parse(&image, &read), "not the only one");
}

// --- the note itself

static enum ggml_host_status parse_note(const struct ggml_plugin_note *note) {
    struct built_image image;
    struct ggml_plugin_note read;
    build_elf(&image, true, false, ELF_HERE, note);
    return parse(&image, &read);
}

static void test_fields_of_the_note_are_checked(void **state) {
    (void)state;
    struct ggml_plugin_note note = valid_note();
    assert_int_equal(parse_note(&note), GGML_HOST_OK);
    note.magic[0] = 'g';
    assert_refused(GGML_HOST_DAMAGED_FILE, parse_note(&note), "magic");
    note = valid_note();
    note.size -= 4;
    assert_refused(GGML_HOST_DAMAGED_FILE, parse_note(&note), "too small");
    note.size = sizeof(note) + 4;
    assert_refused(GGML_HOST_DAMAGED_FILE, parse_note(&note), "larger than its section");
    note.size = UINT32_MAX;
    assert_refused(GGML_HOST_DAMAGED_FILE, parse_note(&note), "too large");
    note = valid_note();
    memset(note.version, 'x', sizeof(note.version));
    assert_refused(GGML_HOST_DAMAGED_FILE, parse_note(&note), "NUL-terminated");
    note = valid_note();
    memset(note.name, 0, sizeof(note.name));
    assert_refused(GGML_HOST_DAMAGED_FILE, parse_note(&note), "no name");
}

static void test_strings_must_be_printable_utf8(void **state) {
    (void)state;
    static const char *const good[] = {"caf\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", ""};
    static const char *const bad[] = {
        "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x80",        "\xe2\x82", "\x1b[31m",
        "a\nb",     "\xff",         "\xf0\x80\x80\xaf", "\xe0\x80\xaf"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); ++i) {
        struct ggml_plugin_note note = valid_note();
        strcpy(note.variant, good[i]);
        assert_int_equal(parse_note(&note), GGML_HOST_OK);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
        struct ggml_plugin_note note = valid_note();
        strcpy(note.variant, bad[i]);
        assert_refused(GGML_HOST_DAMAGED_FILE, parse_note(&note), "UTF-8");
    }
}

static void test_a_note_of_a_newer_contract_may_be_larger(void **state) {
    (void)state;
    struct ggml_plugin_note note = valid_note();
    struct ggml_plugin_note read;
    struct built_image image;
    note.size = sizeof(note) + 64;
    build_elf(&image, true, false, ELF_HERE, &note);
    image.size += 64;
    image.bytes[1024 + 3 * 64 + 32] = (unsigned char)(sizeof(note) + 64);
    image.bytes[1024 + 3 * 64 + 33] = (unsigned char)((sizeof(note) + 64) >> 8);
    assert_int_equal(parse(&image, &read), GGML_HOST_OK);
    assert_int_equal(read.size, sizeof(note) + 64);
    assert_string_equal(read.name, "sample");
}

static void test_another_major_decides_over_what_can_not_be_read(void **state) {
    (void)state;
    struct ggml_plugin_note note = valid_note();
    note.contract_major = GGML_CONTRACT_MAJOR + 1;
    assert_int_equal(parse_note(&note), GGML_HOST_OK);
    note.size = 24;
    memset(note.name, 0xff, sizeof(note.name));
    assert_refused(GGML_HOST_WRONG_CONTRACT, parse_note(&note), "contract");
}

// --- files

static const char *path_of(const char *name) {
    static char path[256];
    snprintf(path, sizeof(path), "%s/%s", temp_folder, name);
    return path;
}

static void write_image(const char *path, const struct built_image *image) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(image->bytes, 1, image->size, file), image->size);
    fclose(file);
}

static void test_file_gives_note_and_identity(void **state) {
    (void)state;
    const struct ggml_plugin_note note = valid_note();
    struct ggml_plugin_note read;
    struct plugin_file_id id;
    struct plugin_file_id link_id;
    struct built_image image;
    char other[256];
    build_elf(&image, true, false, ELF_HERE, &note);
    strcpy(other, path_of("ggml-other.so"));
    write_image(path_of("ggml-sample.so"), &image);
    assert_int_equal(plugin_note_read(path_of("ggml-sample.so"), &read, &id), GGML_HOST_OK);
    assert_memory_equal(&read, &note, sizeof(note));
    assert_int_equal(id.size, image.size);
    assert_true(id.mtime_ns > 0);
    assert_int_equal(symlink("ggml-sample.so", other), 0);
    assert_int_equal(plugin_note_read(other, &read, &link_id), GGML_HOST_OK);
    assert_memory_equal(&id, &link_id, sizeof(id));
}

static void test_a_library_of_another_system_is_refused(void **state) {
    (void)state;
    const struct ggml_plugin_note note = valid_note();
    struct ggml_plugin_note read;
    struct built_image image;
    build_pe(&image, PE_HERE, &note);
    write_image(path_of("ggml-windows.dll"), &image);
    assert_refused(GGML_HOST_WRONG_MACHINE,
                   plugin_note_read(path_of("ggml-windows.dll"), &read, NULL), "Windows (PE)");
    assert_int_equal(read.machine, GGML_MACHINE_HERE);
}

static void test_what_is_no_file_never_blocks(void **state) {
    (void)state;
    struct ggml_plugin_note read;
    assert_int_equal(mkfifo(path_of("ggml-fifo.so"), 0600), 0);
    assert_refused(GGML_HOST_NOT_A_PLUGIN, plugin_note_read(path_of("ggml-fifo.so"), &read, NULL),
                   "named pipe");
    assert_int_equal(mkdir(path_of("ggml-folder.so"), 0700), 0);
    assert_refused(GGML_HOST_NOT_A_PLUGIN, plugin_note_read(path_of("ggml-folder.so"), &read, NULL),
                   "directory");
    assert_refused(GGML_HOST_NOT_A_PLUGIN, plugin_note_read("/dev/zero", &read, NULL), "device");

    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/ggml-s.so", temp_folder);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_refused(GGML_HOST_NOT_A_PLUGIN, plugin_note_read(address.sun_path, &read, NULL),
                   "socket");
    close(fd);
}

static void test_paths_that_can_not_be_opened(void **state) {
    (void)state;
    struct ggml_plugin_note read;
    char path[5001];
    assert_int_equal(plugin_note_read(NULL, &read, NULL), GGML_HOST_INVALID_ARGUMENT);
    assert_int_equal(plugin_note_read("", &read, NULL), GGML_HOST_INVALID_ARGUMENT);
    assert_int_equal(plugin_note_read(path_of("ggml-none.so"), &read, NULL), GGML_HOST_NOT_FOUND);
    memset(path, 'a', 5000);
    path[0] = '/';
    memcpy(path + 4990, "/ggml-x.so", 11);
    assert_refused(GGML_HOST_INVALID_ARGUMENT, plugin_note_read(path, &read, NULL), "/ggml-x.so");
    assert_int_equal(symlink("ggml-loop.so", path_of("ggml-loop.so")), 0);
    assert_int_equal(plugin_note_read(path_of("ggml-loop.so"), &read, NULL), GGML_HOST_IO_ERROR);
}

static bool never(void *context) {
    (void)context;
    return false;
}

static void test_running_out_of_memory_is_a_status(void **state) {
    (void)state;
    struct ggml_plugin_note note = valid_note();
    ggml_mem_set_fault_hook(never, NULL);
    const enum ggml_host_status status = parse_note(&note);
    ggml_mem_set_fault_hook(NULL, NULL);
    assert_int_equal(status, GGML_HOST_OUT_OF_MEMORY);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_format_gives_up_its_note),
        cmocka_unit_test(test_foreign_machines_are_named),
        cmocka_unit_test(test_a_foreign_machine_needs_no_note_to_be_named),
        cmocka_unit_test(test_what_is_no_library_is_no_plugin),
        cmocka_unit_test(test_every_truncation_is_refused),
        cmocka_unit_test(test_offsets_that_overflow_are_refused),
        cmocka_unit_test(test_a_load_command_without_length_does_not_hang),
        cmocka_unit_test(test_a_second_note_is_refused),
        cmocka_unit_test(test_fields_of_the_note_are_checked),
        cmocka_unit_test(test_strings_must_be_printable_utf8),
        cmocka_unit_test(test_a_note_of_a_newer_contract_may_be_larger),
        cmocka_unit_test(test_another_major_decides_over_what_can_not_be_read),
        cmocka_unit_test(test_file_gives_note_and_identity),
        cmocka_unit_test(test_a_library_of_another_system_is_refused),
        cmocka_unit_test(test_what_is_no_file_never_blocks),
        cmocka_unit_test(test_paths_that_can_not_be_opened),
        cmocka_unit_test(test_running_out_of_memory_is_a_status),
    };
    return cmocka_run_group_tests(tests, temp_folder_make, temp_folder_remove);
}
