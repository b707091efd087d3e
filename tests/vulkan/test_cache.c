// SPDX-License-Identifier: MIT
// Compiled shaders on disk: what was written comes back, and nothing else does.
#define _DEFAULT_SOURCE
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pipeline/cache_file.h"
#include "support/vulkan_test.h"

static char directory[64];

static void ignore(enum ggml_log_level level, const char *text, void *user) {
    (void)level;
    (void)text;
    (void)user;
}

static int open_directory(void **state) {
    (void)state;
    ggml_log_set(ignore, NULL);
    snprintf(directory, sizeof(directory), "/tmp/ggml-vulkan-XXXXXX");
    if (!mkdtemp(directory)) return -1;
    strcat(directory, "/a/b"); // is made when it is needed
    setenv("GGML_VULKAN_CACHE", directory, 1);
    ggml_backend_dev_count();
    return 0;
}

// Path of the only file, false: there is none, or not just one.
static bool find_file(char *out_path, size_t size) {
    int n = 0;
    DIR *list = opendir(directory);
    for (struct dirent *entry = list ? readdir(list) : NULL; entry; entry = readdir(list)) {
        if (entry->d_name[0] == '.') continue;
        snprintf(out_path, size, "%s/%s", directory, entry->d_name);
        ++n;
    }
    if (list) closedir(list);
    return n == 1;
}

static int remove_directory(void **state) {
    char path[512];
    (void)state;
    if (find_file(path, sizeof(path))) unlink(path);
    for (int i = 0; i < 3; ++i) {
        rmdir(directory);
        *strrchr(directory, '/') = '\0';
    }
    return 0;
}

static struct gvk_probe probe_of(uint32_t driver_version) {
    struct gvk_probe probe;
    memset(&probe, 0, sizeof(probe));
    probe.properties.vendorID = 0x10de;
    probe.properties.deviceID = 0x2684;
    probe.properties.driverVersion = driver_version;
    memset(probe.properties.pipelineCacheUUID, 7, VK_UUID_SIZE);
    return probe;
}

// Bytes as a driver makes them: a header that names the device, then its own.
static void make_data(const struct gvk_probe *probe, unsigned char *data, size_t size) {
    const VkPipelineCacheHeaderVersionOne head = {.headerSize = sizeof(head),
                                                  .headerVersion =
                                                      VK_PIPELINE_CACHE_HEADER_VERSION_ONE,
                                                  .vendorID = probe->properties.vendorID,
                                                  .deviceID = probe->properties.deviceID};
    for (size_t i = 0; i < size; ++i)
        data[i] = (unsigned char)(i * 13);
    memcpy(data, &head, sizeof(head));
    memcpy(data + offsetof(VkPipelineCacheHeaderVersionOne, pipelineCacheUUID),
           probe->properties.pipelineCacheUUID, VK_UUID_SIZE);
}

static void expect_nothing(const struct gvk_probe *probe) {
    size_t size = 1;
    assert_null(gvk_cache_file_read(probe, &size));
    assert_int_equal(size, 0);
}

static void test_what_was_written_comes_back(void **state) {
    const struct gvk_probe probe = probe_of(1), updated = probe_of(2);
    unsigned char data[1000], *back;
    char path[512];
    struct stat about;
    size_t size;
    (void)state;
    assert_true(gvk_cache_file_wanted());
    expect_nothing(&probe);
    for (size_t n = 900; n <= 1000; n += 100) {
        make_data(&probe, data, n);
        gvk_cache_file_write(&probe, data, n);
        back = gvk_cache_file_read(&probe, &size);
        assert_non_null(back);
        assert_int_equal(size, n);
        assert_memory_equal(back, data, n);
        ggml_aligned_free(back, size);
    }
    expect_nothing(&updated);
    assert_true(find_file(path, sizeof(path)));
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
}

static void change_byte(const char *path, long offset) {
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    fseek(file, offset, SEEK_SET);
    const int byte = fgetc(file);
    fseek(file, offset, SEEK_SET);
    fputc(byte ^ 0x40, file);
    fclose(file);
}

static void test_a_damaged_file_is_not_used(void **state) {
    const struct gvk_probe probe = probe_of(1);
    unsigned char data[500];
    char path[512];
    (void)state;
    make_data(&probe, data, sizeof(data));
    for (long offset = 0; offset < 24 + 500; offset += 11) {
        gvk_cache_file_write(&probe, data, sizeof(data));
        assert_true(find_file(path, sizeof(path)));
        change_byte(path, offset);
        expect_nothing(&probe);
    }
    for (long length = 0; length < 24 + 500; length += 37) {
        gvk_cache_file_write(&probe, data, sizeof(data));
        assert_int_equal(truncate(path, length), 0);
        expect_nothing(&probe);
    }
}

static void test_a_file_that_others_may_write_is_not_used(void **state) {
    const struct gvk_probe probe = probe_of(1);
    unsigned char data[100];
    char path[512];
    (void)state;
    make_data(&probe, data, sizeof(data));
    gvk_cache_file_write(&probe, data, sizeof(data));
    assert_true(find_file(path, sizeof(path)));
    assert_int_equal(chmod(path, 0666), 0);
    expect_nothing(&probe);
}

// Bytes of another device inside a sound file.
static void test_bytes_of_another_device_are_not_used(void **state) {
    const struct gvk_probe probe = probe_of(1);
    struct gvk_probe other = probe;
    unsigned char data[100];
    char path[512], others_path[512];
    (void)state;
    make_data(&probe, data, sizeof(data));
    gvk_cache_file_write(&probe, data, sizeof(data));
    assert_true(find_file(path, sizeof(path)));
    assert_int_equal(unlink(path), 0);
    other.properties.deviceID ^= 1;
    make_data(&other, data, sizeof(data));
    gvk_cache_file_write(&other, data, sizeof(data));
    assert_true(find_file(others_path, sizeof(others_path)));
    assert_string_not_equal(path, others_path);
    assert_int_equal(rename(others_path, path), 0);
    expect_nothing(&probe);
    assert_int_equal(unlink(path), 0);
}

static void test_what_no_reader_takes_is_not_written(void **state) {
    const struct gvk_probe probe = probe_of(1);
    const size_t header = sizeof(VkPipelineCacheHeaderVersionOne);
    unsigned char data[100];
    char path[512];
    (void)state;
    make_data(&probe, data, sizeof(data));
    gvk_cache_file_write(&probe, data, header - 12);
    assert_false(find_file(path, sizeof(path)));
    data[offsetof(VkPipelineCacheHeaderVersionOne, vendorID)] ^= 1;
    gvk_cache_file_write(&probe, data, sizeof(data));
    assert_false(find_file(path, sizeof(path)));
}

// Users who may write to the folder could put one there.
static void test_a_pipe_is_not_waited_for(void **state) {
    const struct gvk_probe probe = probe_of(1);
    unsigned char data[100];
    char path[512];
    (void)state;
    make_data(&probe, data, sizeof(data));
    gvk_cache_file_write(&probe, data, sizeof(data));
    assert_true(find_file(path, sizeof(path)));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    alarm(20);
    expect_nothing(&probe);
    alarm(0);
}

// As where root has the environment of another user, who says by a folder or link of his where
// root writes, and whose folders root would make (finding F12 of a security review).
static void test_f12_nothing_is_kept_below_folders_and_links_of_others(void **state) {
    enum { STRANGER = 12345 };
    const struct gvk_probe probe = probe_of(1);
    unsigned char data[100];
    char parent[64], moved[72], path[512];
    (void)state;
    if (geteuid() != 0) {
        print_message("# left out: this is for root\n");
        return;
    }
    make_data(&probe, data, sizeof(data));
    snprintf(parent, sizeof(parent), "%s", directory);
    *strrchr(parent, '/') = '\0';
    snprintf(moved, sizeof(moved), "%s-moved", parent);
    assert_int_equal(mkdir(parent, 0755), 0);
    assert_int_equal(chown(parent, STRANGER, STRANGER), 0);
    gvk_cache_file_write(&probe, data, sizeof(data));
    assert_int_equal(access(directory, F_OK), -1);
    assert_int_equal(chown(parent, 0, 0), 0);
    assert_int_equal(rename(parent, moved), 0);
    assert_int_equal(symlink(moved, parent), 0);
    assert_int_equal(lchown(parent, STRANGER, STRANGER), 0);
    gvk_cache_file_write(&probe, data, sizeof(data));
    assert_int_equal(access(directory, F_OK), -1);
    assert_int_equal(lchown(parent, 0, 0), 0); // a link of one's own
    gvk_cache_file_write(&probe, data, sizeof(data));
    assert_true(find_file(path, sizeof(path)));
    assert_int_equal(lchown(parent, STRANGER, STRANGER), 0);
    expect_nothing(&probe);
    assert_int_equal(unlink(parent), 0);
    assert_int_equal(rename(moved, parent), 0);
}

static void test_no_place(void **state) {
    const struct gvk_probe probe = probe_of(1);
    unsigned char data[100];
    (void)state;
    make_data(&probe, data, sizeof(data));
    setenv("GGML_VULKAN_CACHE", "0", 1);
    assert_false(gvk_cache_file_wanted());
    gvk_cache_file_write(&probe, data, sizeof(data));
    expect_nothing(&probe);
    setenv("GGML_VULKAN_CACHE", "/proc/nowhere", 1);
    gvk_cache_file_write(&probe, data, sizeof(data));
    expect_nothing(&probe);
    setenv("GGML_VULKAN_CACHE", directory, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_directory, remove_directory)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_what_was_written_comes_back),
        TEST(test_a_damaged_file_is_not_used),
        TEST(test_a_file_that_others_may_write_is_not_used),
        TEST(test_bytes_of_another_device_are_not_used),
        TEST(test_what_no_reader_takes_is_not_written),
        TEST(test_a_pipe_is_not_waited_for),
        TEST(test_f12_nothing_is_kept_below_folders_and_links_of_others),
        TEST(test_no_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
