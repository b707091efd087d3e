// SPDX-License-Identifier: MIT
// usage: test-replay PLUGIN...: feeds the note reader with damaged copies of a real plugin and of
// minimal images of every format, and what looks at images before the dynamic linker does with
// damaged copies of every plugin. GGML_TEST_SEED replays a run.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fuzz/inputs/image_input.h"
#include "fuzz/inputs/note_input.h"
#include "fuzz/replay.h"
#include "note/image_builder.h"

enum { N_FLIPS = 10000 };

static const char *plugin_path;
static char **layouts; // of a plugin, NULL at the end
static uint64_t seed = 20240607;

static enum ggml_host_status last_status;

static void run_note(const unsigned char *data, size_t size) {
    last_status = run_note_input(data, size);
}

static enum ggml_host_status run_exact(const unsigned char *data, size_t size) {
    replay_exact(run_note, data, size);
    return last_status;
}

static unsigned char *read_plugin(size_t *out_size) {
    FILE *file = fopen(plugin_path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *out_size = (size_t)ftell(file);
    rewind(file);
    unsigned char *data = malloc(*out_size);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, *out_size, file), *out_size);
    fclose(file);
    return data;
}

static void flip_bits(unsigned char *data, size_t size, size_t n_runs) {
    uint64_t random = seed;
    for (size_t run = 0; run < n_runs; ++run) {
        size_t places[3];
        for (size_t i = 0; i < 3; ++i) {
            places[i] = replay_random(&random) % (size * 8);
            data[places[i] / 8] ^= (unsigned char)(1u << places[i] % 8);
        }
        run_exact(data, size);
        for (size_t i = 0; i < 3; ++i)
            data[places[i] / 8] ^= (unsigned char)(1u << places[i] % 8);
    }
}

static void test_real_plugin_truncated_everywhere(void **state) {
    (void)state;
    size_t size;
    unsigned char *data = read_plugin(&size);
    assert_int_equal(run_exact(data, size), GGML_HOST_OK);
    for (size_t i = 0; i < size; ++i) {
        assert_int_not_equal(run_note_input(data, i), GGML_HOST_OK); // its tables are at the end
    }
    free(data);
}

static void test_real_plugin_with_flipped_bits(void **state) {
    (void)state;
    size_t size;
    unsigned char *data = read_plugin(&size);
    print_message("# GGML_TEST_SEED=%llu\n", (unsigned long long)seed);
    flip_bits(data, size, N_FLIPS);
    assert_int_equal(run_exact(data, size), GGML_HOST_OK);
    free(data);
}

static void test_every_format_damaged(void **state) {
    (void)state;
    struct built_image image;
    for (size_t i = 0; build_sample(i, &image); ++i) {
        for (size_t n = 0; n <= image.size; ++n)
            run_exact(image.bytes, n);
        flip_bits(image.bytes, image.size, N_FLIPS / 4);
        flip_bits(image.bytes, 512, N_FLIPS / 4); // headers
    }
}

static void test_every_byte_of_every_format_extreme(void **state) {
    (void)state;
    static const unsigned char values[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    struct built_image image;
    for (size_t i = 0; build_sample(i, &image); ++i) {
        for (size_t at = 0; at < image.size; ++at) {
            const unsigned char kept = image.bytes[at];
            for (size_t k = 0; k < sizeof(values); ++k) {
                image.bytes[at] = values[k];
                run_note_input(image.bytes, image.size);
            }
            image.bytes[at] = kept;
        }
    }
}

static void run_image(const unsigned char *data, size_t size) {
    last_status = run_image_input(data, size);
}

// Three bits of what the linker reads first, or of anywhere.
static size_t flip_image(unsigned char *data, size_t size, size_t first) {
    enum { N_BITS = 3 };
    size_t n_accepted = 0;
    uint64_t random = seed;
    for (size_t run = 0; run < N_FLIPS / 2; ++run) {
        size_t places[N_BITS];
        for (size_t i = 0; i < N_BITS; ++i) {
            places[i] = replay_random(&random) % (first * 8);
            data[places[i] / 8] ^= (unsigned char)(1u << places[i] % 8);
        }
        replay_exact(run_image, data, size);
        n_accepted += last_status == GGML_HOST_OK;
        for (size_t i = 0; i < N_BITS; ++i)
            data[places[i] / 8] ^= (unsigned char)(1u << places[i] % 8);
    }
    return n_accepted;
}

static void test_what_the_linker_would_read_damaged(void **state) {
    enum { HEADERS = 64 + 56 * 9 };
    (void)state;
    for (char **path = layouts; *path; ++path) {
        size_t size;
        plugin_path = *path;
        unsigned char *data = read_plugin(&size);
        replay_exact(run_image, data, size);
        assert_int_equal(last_status, GGML_HOST_OK);
        const bool is_elf = memcmp(data,
                                   "\x7f"
                                   "ELF",
                                   4) == 0;
        for (size_t n = 0; n < size; n += 7) {
            replay_exact(run_image, data, n);
            if (is_elf) assert_int_not_equal(last_status, GGML_HOST_OK);
        }
        const size_t n_accepted = flip_image(data, size, HEADERS);
        print_message("# %zu of %d with damaged headers are accepted\n", n_accepted, N_FLIPS / 2);
        if (is_elf) assert_true(n_accepted < N_FLIPS / 4); // many bits mean nothing
        flip_image(data, size, size);
        free(data);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_real_plugin_truncated_everywhere),
        cmocka_unit_test(test_real_plugin_with_flipped_bits),
        cmocka_unit_test(test_every_format_damaged),
        cmocka_unit_test(test_every_byte_of_every_format_extreme),
        cmocka_unit_test(test_what_the_linker_would_read_damaged),
    };
    if (argc < 2) return 2;
    plugin_path = argv[1];
    layouts = argv + 1;
    if (getenv("GGML_TEST_SEED")) seed = strtoull(getenv("GGML_TEST_SEED"), NULL, 10) | 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
