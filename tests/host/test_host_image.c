// SPDX-License-Identifier: MIT
// What is mapped: that it is sound, asks for nothing from the working directory, is the file that
// was checked, and leaves the process as it was. The findings' numbers are those of a security
// review. What could crash is loaded in children.
#define _GNU_SOURCE
#include <fcntl.h>
#include <fenv.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/data/sha256.h"
#include "base/fault.h"
#include "base/status.h"
#include "ggml-backend-impl.h"
#include "support/elf_craft.h"
#include "support/fault_sweep.h"
#include "support/plugin_dir.h"

enum { PAGE = 4096 };

static struct plugin_dir dir;

static int open_dir(void **state) {
    (void)state;
    plugin_dir_open(&dir);
    return 0;
}

static int close_dir(void **state) {
    (void)state;
    ggml_fault_set_hook(NULL, NULL);
    ggml_plugin_set_policy(NULL);
    ggml_log_set(NULL, NULL);
    unload_everything();
    plugin_dir_close(&dir);
    return 0;
}

static void add_as(const char *fixture, const char *file_name) {
    plugin_dir_add_from(&dir, FIXTURES, fixture, file_name);
}

static void expect(const char *file_name, enum ggml_host_status status, const char *word) {
    plugin_dir_expect(&dir, file_name, status, word);
}

// --- F6: damaged files

static const char *write_whole(const struct bytes *bytes) {
    const char *path = plugin_dir_path(&dir, "ggml-crafted.so");
    unlink(path);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes->data, 1, bytes->size, file), bytes->size);
    fclose(file);
    return path;
}

// Status of loading in a child, or -1 if that ended otherwise.
static int load_in_child(const struct bytes *bytes) {
    int status = 0;
    const char *path = write_whole(bytes);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        // Those that cmocka handles: its handler would run the other tests here.
        static const int crashes[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGSYS};
        for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); ++i)
            signal(crashes[i], SIG_DFL);
        const int null = open("/dev/null", O_WRONLY);
        if (null >= 0) dup2(null, 2); // the linker's last words
        _exit((int)ggml_plugin_load(path, NULL));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) < 100 ? WEXITSTATUS(status) : -1;
}

// There are two at least: code and data.
#define LOAD(n) segment_of(bytes, PT_LOAD, n)
#define CRAFT(name, statement)                                                                     \
    static void name(const struct bytes *bytes) {                                                  \
        statement;                                                                                 \
    }
CRAFT(load_beyond_the_end, LOAD(1)->p_filesz = LOAD(1)->p_memsz = (size_t)1 << 30)
CRAFT(load_elsewhere, LOAD(1)->p_offset += (size_t)1 << 30)
CRAFT(memory_wraps, LOAD(1)->p_memsz = (size_t)-1)
CRAFT(one_over_another, LOAD(1)->p_vaddr %= PAGE)
CRAFT(out_of_order, ElfW(Phdr) first = *LOAD(0); *LOAD(0) = *LOAD(1); *LOAD(1) = first)
CRAFT(dynamic_elsewhere, segment_of(bytes, PT_DYNAMIC, 0)->p_vaddr += (size_t)1 << 40)
CRAFT(no_dynamic, segment_of(bytes, PT_DYNAMIC, 0)->p_type = PT_NULL)
CRAFT(relro_is_huge, segment_of(bytes, PT_GNU_RELRO, 0)->p_memsz = (size_t)1 << 40)
CRAFT(no_headers, header_of(bytes)->e_phnum = 0)
CRAFT(not_readable, LOAD(0)->p_flags = 0)
CRAFT(strings_elsewhere, entry_of(bytes, DT_STRTAB)->d_un.d_ptr += (size_t)1 << 40)
CRAFT(symbols_elsewhere, entry_of(bytes, DT_SYMTAB)->d_un.d_ptr += (size_t)1 << 40)
CRAFT(hashes_elsewhere, entry_of(bytes, DT_GNU_HASH)->d_un.d_ptr += (size_t)1 << 40)
CRAFT(relocations_elsewhere, entry_of(bytes, DT_RELA)->d_un.d_ptr += (size_t)1 << 40)
CRAFT(relocations_of_no_size, entry_of(bytes, DT_RELAENT)->d_un.d_val = 0)
CRAFT(constructors_elsewhere, entry_of(bytes, DT_INIT_ARRAY)->d_un.d_ptr += (size_t)1 << 40)
CRAFT(thread_memory_is_huge, segment_of(bytes, PT_NOTE, 0)->p_type = PT_TLS;
      segment_of(bytes, PT_TLS, 0)->p_memsz = (size_t)1 << 40) // F25

// A note becomes another segment: of the thread's memory, or one more dynamic section.
static ElfW(Phdr) * become_thread_memory(const struct bytes *bytes) {
    ElfW(Phdr) *segment = segment_of(bytes, PT_NOTE, 0);
    segment->p_type = PT_TLS;
    return segment;
}

CRAFT(thread_memory_elsewhere, become_thread_memory(bytes)->p_vaddr += (size_t)1 << 30)
CRAFT(thread_memory_of_odd_alignment, become_thread_memory(bytes)->p_align = 3)
CRAFT(notes_elsewhere, segment_of(bytes, PT_NOTE, 0)->p_vaddr += (size_t)1 << 30)
CRAFT(load_of_odd_alignment, LOAD(1)->p_align = 3)
CRAFT(relocation_of_elsewhere,
      ((ElfW(Rela) *)(void *)(bytes->data + entry_of(bytes, DT_RELA)->d_un.d_ptr))->r_offset =
          (size_t)1 << 40)
CRAFT(hashes_without_buckets,
      memset(bytes->data + entry_of(bytes, DT_GNU_HASH)->d_un.d_ptr, 0, sizeof(uint32_t)))
CRAFT(library_without_name, entry_of(bytes, DT_NEEDED)->d_un.d_val = (size_t)1 << 40)
CRAFT(two_dynamics, *segment_of(bytes, PT_NOTE, 0) = *segment_of(bytes, PT_DYNAMIC, 0))

static void test_f6_crafted_files_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *name;
        void (*craft)(const struct bytes *bytes);
    } cases[] = {
#define CASE(name) {#name, name}
        CASE(load_beyond_the_end),
        CASE(load_elsewhere),
        CASE(memory_wraps),
        CASE(one_over_another),
        CASE(dynamic_elsewhere),
        CASE(no_dynamic),
        CASE(relro_is_huge),
        CASE(no_headers),
        CASE(not_readable),
        CASE(strings_elsewhere),
        CASE(symbols_elsewhere),
        CASE(hashes_elsewhere),
        CASE(relocations_elsewhere),
        CASE(relocations_of_no_size),
        CASE(constructors_elsewhere),
        CASE(thread_memory_is_huge),
        CASE(out_of_order),
        CASE(thread_memory_elsewhere),
        CASE(load_of_odd_alignment),
        CASE(thread_memory_of_odd_alignment),
        CASE(notes_elsewhere),
        CASE(two_dynamics),
        CASE(relocation_of_elsewhere),
        CASE(hashes_without_buckets),
        CASE(library_without_name),
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        struct bytes bytes = read_whole(FIXTURES "/ggml-marker.so");
        cases[i].craft(&bytes);
        const int status = load_in_child(&bytes);
        if (status != GGML_HOST_DAMAGED_FILE) print_message("%s: %d\n", cases[i].name, status);
        assert_int_equal(status, GGML_HOST_DAMAGED_FILE);
        free(bytes.data);
    }
}

// As when copying was cut short, or a disk lost a page.
static void test_f6_a_missing_page_crashes_nothing(void **state) {
    (void)state;
    struct bytes whole = read_whole(NULL_PLUGIN);
    struct bytes bytes = {malloc(whole.size), whole.size};
    for (size_t page = 0; page < whole.size; page += PAGE) {
        memcpy(bytes.data, whole.data, whole.size);
        memset(bytes.data + page, 0, whole.size - page < PAGE ? whole.size - page : PAGE);
        if (load_in_child(&bytes) < 0) fail_msg("page %zu: it crashed", page / PAGE);
    }
    free(bytes.data);
    free(whole.data);
}

static void test_f6_flipped_bits_of_program_headers_crash_nothing(void **state) {
    (void)state;
    struct bytes bytes = read_whole(FIXTURES "/ggml-marker.so");
    size_t count;
    unsigned char *first = (unsigned char *)segments_of(&bytes, &count);
    for (size_t bit = 0; bit < count * sizeof(ElfW(Phdr)) * 8; bit += FLIP_STEP) {
        first[bit / 8] ^= (unsigned char)(1u << bit % 8);
        if (load_in_child(&bytes) < 0) fail_msg("bit %zu: it crashed", bit);
        first[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    free(bytes.data);
}

// --- F25: one note

static void test_f25_a_second_note_is_refused(void **state) {
    (void)state;
    struct bytes bytes = read_whole(FIXTURES "/ggml-marker.so");
    ElfW(Shdr) *note = section_of(&bytes, GGML_PLUGIN_SECTION_ELF);
    ElfW(Shdr) *comment = section_of(&bytes, ".comment");
    assert_true(note && comment);
    assert_int_equal(load_in_child(&bytes), GGML_HOST_OK);
    comment->sh_name = note->sh_name;
    assert_int_equal(load_in_child(&bytes), GGML_HOST_DAMAGED_FILE);
    comment->sh_name = 0;
    note->sh_flags |= SHF_COMPRESSED;
    assert_int_equal(load_in_child(&bytes), GGML_HOST_DAMAGED_FILE);
    free(bytes.data);
}

// --- F5: libraries by relative paths

static void test_f5_libraries_come_from_no_working_directory(void **state) {
    (void)state;
    static const char *const names[] = {"run_path_relative", "run_path_empty", "needed_relative",
                                        "auxiliary_relative"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
        char fixture[100];
        snprintf(fixture, sizeof(fixture), "defective/ggml-defect-%s.so", names[i]);
        add_as(fixture, "ggml-defect.so");
        expect("ggml-defect.so", GGML_HOST_LINK_FAILED, "working directory");
    }
    // The same by tags that today's linkers don't write.
    static const struct {
        const char *fixture;
        int64_t tag, other;
    } tags[] = {{"run_path_relative", DT_RUNPATH, DT_RPATH},
                {"auxiliary_relative", DT_AUXILIARY, DT_FILTER}};
    for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); ++i) {
        char fixture[300];
        snprintf(fixture, sizeof(fixture), FIXTURES "/defective/ggml-defect-%s.so",
                 tags[i].fixture);
        struct bytes bytes = read_whole(fixture);
        assert_non_null(entry_of(&bytes, tags[i].tag));
        entry_of(&bytes, tags[i].tag)->d_tag = tags[i].other;
        assert_int_equal(load_in_child(&bytes), GGML_HOST_LINK_FAILED);
        free(bytes.data);
    }
}

// --- F7: what a refused plugin leaves

static void test_f7_an_executable_stack_is_refused_from_the_file(void **state) {
    (void)state;
    add_as("defective/ggml-defect-stack_executable.so", "ggml-defect.so");
    expect("ggml-defect.so", GGML_HOST_LINK_FAILED, "executable stack");
#ifdef __x86_64__
    // What says nothing of the stack gets such a one here.
    struct bytes bytes = read_whole(FIXTURES "/ggml-marker.so");
    segment_of(&bytes, PT_GNU_STACK, 0)->p_type = PT_NULL;
    assert_int_equal(load_in_child(&bytes), GGML_HOST_LINK_FAILED);
    free(bytes.data);
#endif
    char line[600];
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    while (fgets(line, sizeof(line), maps))
        if (strstr(line, "[stack]")) assert_null(strstr(line, "rwxp"));
    fclose(maps);
}

static char logged[8192];

static void keep_log(enum ggml_log_level level, const char *text, void *context) {
    (void)context;
    if (level == GGML_LOG_LEVEL_WARN && strlen(logged) + strlen(text) < sizeof(logged))
        strcat(logged, text);
}

static void expect_state_is_kept(const char *fixture, enum ggml_host_status status) {
    static const char *const words[] = {"floating-point", "signal mask", "umask",
                                        "working directory", "resource limits"};
    char before[600], after[600];
    sigset_t set;
    struct rlimit limit_before, limit_after;
    add_as(fixture, "ggml-meddles.so");
    logged[0] = '\0';
    ggml_log_set(keep_log, NULL);
    assert_non_null(getcwd(before, sizeof(before)));
    assert_int_equal(getrlimit(RLIMIT_CORE, &limit_before), 0);
    umask(022);
    expect("ggml-meddles.so", status, "strike"); // and unloads it
    assert_int_equal(fegetround(), FE_TONEAREST);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &set), 0);
    assert_int_equal(sigismember(&set, SIGUSR1), 0);
    assert_int_equal(umask(022), 022);
    assert_non_null(getcwd(after, sizeof(after)));
    assert_string_equal(before, after);
    assert_int_equal(getrlimit(RLIMIT_CORE, &limit_after), 0);
    assert_int_equal(limit_before.rlim_cur, limit_after.rlim_cur);
    assert_non_null(strstr(logged, "'meddles'"));
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); ++i)
        if (!strstr(logged, words[i])) fail_msg("no '%s' in: %s", words[i], logged);
    if (!strstr(logged, "while it was shut down")) fail_msg("no word of shutting down: %s", logged);
}

static void test_f7_the_process_is_left_as_it_was(void **state) {
    (void)state;
    if (chdir("/tmp") != 0) fail();
    expect_state_is_kept("ggml-meddles.so", GGML_HOST_OK);
    expect_state_is_kept("ggml-meddles-fails.so", GGML_HOST_INIT_FAILED);
}

// --- F8: words that the linker replaces

static void test_f8_a_path_that_the_linker_would_change_is_refused(void **state) {
    (void)state;
    char folder[600];
    static const char *const folders[] = {"$LIB", "lib", "lib/x86_64-linux-gnu", "lib64"};
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); ++i) {
        snprintf(folder, sizeof(folder), "%s", plugin_dir_path(&dir, folders[i]));
        assert_int_equal(mkdir(folder, 0755), 0);
        if (i == 0) continue;
        char file_name[100];
        snprintf(file_name, sizeof(file_name), "%s/ggml-needy.so", folders[i]);
        add_as("ggml-marker.so", file_name);
    }
    add_as("ggml-needy.so", "$LIB/ggml-needy.so"); // its run path is $ORIGIN
    expect("$LIB/ggml-needy.so", GGML_HOST_LINK_FAILED, "'$'");
    assert_false(plugin_dir_was_mapped(&dir, "marker"));
    add_as("ggml-other.so", "$LIB/ggml-other.so"); // by its descriptor
    expect("$LIB/ggml-other.so", GGML_HOST_OK, "");
}

// --- F27: a file that is written to through a mapping

static unsigned char *mapping;
static size_t mapping_size;

static bool write_through_mapping(enum ggml_fault_point point, void *context) {
    static const char name[] = "marker0"; // the device's
    if (point != GGML_FAULT_LINK) return true;
    for (size_t i = 0; i + sizeof(name) <= mapping_size; ++i) {
        if (memcmp(mapping + i, name, sizeof(name)) != 0) continue;
        mapping[i] = 'X';
        *(bool *)context = true;
    }
    return true;
}

// Maps the file as its owner may, and touches all of it: its times move now, not later.
static void map_to_write(const char *path, const struct bytes *bytes) {
    const int fd = open(path, O_RDWR);
    mapping_size = bytes->size;
    mapping = mmap(NULL, mapping_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(mapping, MAP_FAILED);
    for (size_t i = 0; i < mapping_size; i += PAGE)
        ((volatile unsigned char *)mapping)[i] = bytes->data[i];
    close(fd);
}

enum { SUM_TEXT = 2 * GGML_SHA256_SIZE + 1 };

static void sum_up(const struct bytes *bytes, char out_text[SUM_TEXT]) {
    uint8_t digest[GGML_SHA256_SIZE];
    struct ggml_sha256 sum;
    ggml_sha256_init(&sum);
    ggml_sha256_update(&sum, bytes->data, bytes->size);
    ggml_sha256_final(&sum, digest);
    for (size_t i = 0; i < sizeof(digest); ++i)
        snprintf(out_text + 2 * i, 3, "%02x", digest[i]);
}

static void allow_only(const char *const *sums, size_t count) {
    const struct ggml_plugin_policy policy = {
        .size = sizeof(policy), .sha256 = sums, .n_sha256 = count};
    assert_int_equal(ggml_plugin_set_policy(&policy), GGML_HOST_OK);
}

static void test_f27_listed_files_are_mapped_from_a_copy(void **state) {
    (void)state;
    bool written = false;
    char text[SUM_TEXT];
    const char *const sums[] = {text};
    struct bytes bytes = read_whole(FIXTURES "/ggml-marker.so");
    sum_up(&bytes, text);
    const char *path = write_whole(&bytes);
    map_to_write(path, &bytes);
    free(bytes.data);
    allow_only(sums, 1);
    ggml_fault_set_hook(write_through_mapping, &written);
    assert_int_equal(ggml_plugin_load(plugin_dir_path(&dir, "ggml-crafted.so"), NULL),
                     GGML_HOST_OK);
    ggml_fault_set_hook(NULL, NULL);
    assert_true(written);
    assert_non_null(ggml_backend_dev_by_name("marker0"));
    munmap(mapping, mapping_size);
}

// A copy is no use of the file, whose inode another file may get when it is gone: that one isn't
// the first.
static void test_f27_a_file_after_a_listed_one_is_another(void **state) {
    (void)state;
    char texts[2][SUM_TEXT];
    const char *const sums[] = {texts[0], texts[1]};
    static const char *const files[] = {"ggml-marker.so", "ggml-gpu.so"};
    struct stat first, second;
    ggml_backend_reg_t reg, other;
    for (int i = 0; i < 2; ++i) {
        char path[600];
        snprintf(path, sizeof(path), "%s/%s", FIXTURES, files[i]);
        struct bytes bytes = read_whole(path);
        sum_up(&bytes, texts[i]);
        free(bytes.data);
    }
    add_as(files[0], files[0]);
    allow_only(sums, 2);
    const size_t n_files = count_open_files();
    assert_int_equal(ggml_plugin_load(plugin_dir_path(&dir, files[0]), &reg), GGML_HOST_OK);
    assert_int_equal(count_open_files(), n_files); // one that the program could close
    assert_int_equal(stat(dir.joined, &first), 0);
    assert_int_equal(unlink(dir.joined), 0);
    add_as(files[1], files[1]);
    assert_int_equal(stat(plugin_dir_path(&dir, files[1]), &second), 0);
    assert_false(first.st_dev == second.st_dev && first.st_ino == second.st_ino);
    assert_int_equal(ggml_plugin_load(dir.joined, &other), GGML_HOST_OK);
    assert_ptr_not_equal(reg, other);
    unload_everything();
    assert_int_equal(count_open_files(), n_files);
}

static bool change_note(enum ggml_fault_point point, void *context) {
    const size_t at = offsetof(struct ggml_plugin_note, priority);
    if (point != GGML_FAULT_LINK) return true;
    for (size_t i = 0; i + sizeof(struct ggml_plugin_note) <= mapping_size; ++i) {
        if (memcmp(mapping + i, GGML_PLUGIN_MAGIC, GGML_PLUGIN_MAGIC_SIZE) != 0) continue;
        mapping[i + at] ^= 1;
        *(bool *)context = true;
    }
    return true;
}

// Without a list such a write leaves no trace in the times, but the note is compared again.
static void test_f27_a_note_that_changed_is_noticed(void **state) {
    (void)state;
    bool written = false;
    struct bytes bytes = read_whole(FIXTURES "/ggml-marker.so");
    map_to_write(write_whole(&bytes), &bytes);
    free(bytes.data);
    ggml_fault_set_hook(change_note, &written);
    assert_int_equal(ggml_plugin_load(plugin_dir_path(&dir, "ggml-crafted.so"), NULL),
                     GGML_HOST_DAMAGED_FILE);
    ggml_fault_set_hook(NULL, NULL);
    assert_true(written);
    munmap(mapping, mapping_size);
}

// --- F16: a file that is large on paper

static void test_f16_a_file_that_is_too_large_is_not_read(void **state) {
    (void)state;
    add_as("ggml-marker.so", "ggml-marker.so");
    if (truncate(plugin_dir_path(&dir, "ggml-marker.so"), (off_t)40 << 30) != 0) return;
    expect("ggml-marker.so", GGML_HOST_NOT_A_PLUGIN, "larger than any plugin");
}

// --- F29: a plugin that is never unmapped

static void test_f29_loading_it_again_costs_nothing(void **state) {
    (void)state;
    struct resources before = {0, 0};
    add_as("ggml-stays.so", "ggml-stays.so");
    for (int round = 0; round < 40; ++round) {
        expect("ggml-stays.so", GGML_HOST_OK, "");
        if (round == 19) before = resources_in_use();
    }
    assert_int_equal(resources_in_use().n_bytes, before.n_bytes);
    assert_int_equal(resources_in_use().n_files, before.n_files);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_dir, close_dir)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_f6_crafted_files_are_refused),
        TEST(test_f6_a_missing_page_crashes_nothing),
        TEST(test_f6_flipped_bits_of_program_headers_crash_nothing),
        TEST(test_f25_a_second_note_is_refused),
        TEST(test_f5_libraries_come_from_no_working_directory),
        TEST(test_f7_an_executable_stack_is_refused_from_the_file),
        TEST(test_f7_the_process_is_left_as_it_was),
        TEST(test_f8_a_path_that_the_linker_would_change_is_refused),
        TEST(test_f27_listed_files_are_mapped_from_a_copy),
        TEST(test_f27_a_file_after_a_listed_one_is_another),
        TEST(test_f27_a_note_that_changed_is_noticed),
        TEST(test_f16_a_file_that_is_too_large_is_not_read),
        TEST(test_f29_loading_it_again_costs_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
