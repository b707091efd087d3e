// SPDX-License-Identifier: MIT
// The registry: order of devices, aliases of the same hardware, lookup by name, backends of the
// application, and unloading.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/data/text.h"
#include "base/env.h"
#include "base/status.h"
#include "device/check.h"
#include "ggml-backend-impl.h"
#include "plugin/discover/filter.h"
#include "plugin/load/candidate.h"
#include "plugin/offer/host_table.h"
#include "plugin/registry/builtin.h"
#include "plugin/registry/live.h"
#include "plugin/registry/plugin.h"
#include "support/plugin_dir.h"
#include "support/setenv.h"

static struct plugin_dir dir;

static int open_dir(void **state) {
    (void)state;
    plugin_dir_open(&dir);
    return 0;
}

static int close_dir(void **state) {
    (void)state;
    unload_everything();
    plugin_dir_close(&dir);
    return 0;
}

static void load(const char *file_name) {
    plugin_dir_add_from(&dir, FIXTURES, file_name, file_name);
    assert_int_equal(ggml_plugin_load(plugin_dir_path(&dir, file_name), NULL), GGML_HOST_OK);
}

static const char *name_at(size_t index) {
    ggml_backend_dev_t device = ggml_backend_dev_get(index);
    return device ? device->table->get_name(device) : "";
}

// --- order and aliases ---------------------------------------------------------------------------

static void test_devices_are_ordered_by_type_then_pci_address(void **state) {
    (void)state;
    static const char *const expected[] = {"GPU0",   "OTHER0", "GPU1",   "OTHER1",
                                           "SHARED", "SAME",   "marker0"};
    load("ggml-marker.so");
    load("ggml-gpu.so");
    load("ggml-other.so");
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); ++i) {
        assert_string_equal(name_at(i), expected[i]);
    }
    assert_string_equal(ggml_backend_reg_get(0)->table->get_name(ggml_backend_reg_get(0)), "gpu");
    assert_ptr_equal(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_GPU),
                     ggml_backend_dev_get(0));
    assert_null(ggml_backend_dev_get(ggml_backend_dev_count()));
    assert_int_equal(ggml_last_status(), GGML_HOST_OUT_OF_RANGE);
    assert_null(ggml_backend_reg_get(ggml_backend_reg_count()));
}

static ggml_backend_dev_t alias_of(const char *name) {
    struct ggml_device_info info = {.size = sizeof(info)};
    assert_int_equal(ggml_backend_dev_info(ggml_backend_dev_by_name(name), &info), GGML_HOST_OK);
    return info.alias_of;
}

static void test_the_same_hardware_through_two_plugins_is_an_alias(void **state) {
    (void)state;
    load("ggml-other.so");
    load("ggml-gpu.so");
    assert_ptr_equal(alias_of("GPU0"), ggml_backend_dev_by_name("OTHER0"));
    assert_null(alias_of("OTHER0"));
    assert_null(alias_of("GPU1"));
    assert_null(alias_of("SAME")); // as GPU1, but within one plugin
    assert_int_equal(ggml_plugin_unload(ggml_backend_reg_by_name("other")), GGML_HOST_OK);
    assert_null(alias_of("GPU0"));
}

static void test_names_are_found_whatever_their_case(void **state) {
    (void)state;
    load("ggml-gpu.so");
    assert_non_null(ggml_backend_dev_by_name("gpu1"));
    assert_non_null(ggml_backend_reg_by_name("GPU"));
    assert_null(ggml_backend_dev_by_name("GPU"));
    assert_null(ggml_backend_dev_by_name(NULL));
    assert_null(ggml_backend_reg_by_name(NULL));
    assert_null(ggml_backend_init_by_name("GPU9", NULL));
    assert_non_null(strstr(ggml_last_error(), "GPU9"));
    assert_null(ggml_backend_init_by_name(NULL, NULL));
    assert_null(ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_META, NULL));
}

static void test_info_checks_its_arguments(void **state) {
    (void)state;
    struct ggml_device_info info = {.size = sizeof(info)};
    load("ggml-gpu.so");
    ggml_backend_dev_t device = ggml_backend_dev_by_name("GPU0");
    assert_int_equal(ggml_backend_dev_info(NULL, &info), GGML_HOST_INVALID_ARGUMENT);
    assert_int_equal(ggml_backend_dev_info(device, NULL), GGML_HOST_INVALID_ARGUMENT);
    assert_int_equal(ggml_backend_dev_info(device, &info), GGML_HOST_OK);
    assert_int_equal(info.memory, GGML_MEMORY_KNOWN);
    info.size = 4;
    assert_int_equal(ggml_backend_dev_info(device, &info), GGML_HOST_INVALID_ARGUMENT);
}

// --- use -----------------------------------------------------------------------------------------

static void test_a_plugin_in_use_is_not_unloaded(void **state) {
    (void)state;
    load("ggml-gpu.so");
    ggml_backend_reg_t reg = ggml_backend_reg_by_name("gpu");
    ggml_backend_dev_t device = ggml_backend_dev_by_name("GPU0");
    const size_t n_devices = ggml_backend_dev_count();
    host_live_add(device);
    host_live_add(device);
    host_live_remove(device);
    assert_int_equal(ggml_plugin_unload(reg), GGML_HOST_BUSY);
    assert_int_equal(ggml_backend_dev_count(), n_devices);
    assert_true(is_mapped("ggml-gpu.so"));
    host_live_remove(device);
    assert_int_equal(ggml_plugin_unload(reg), GGML_HOST_OK);
    assert_false(is_mapped("ggml-gpu.so"));
    host_live_add(NULL);
    host_live_remove(NULL);
}

static void test_null_and_foreign_backends_are_answered(void **state) {
    (void)state;
    assert_null(ggml_backend_reg_name(NULL));
    assert_int_equal(ggml_backend_reg_dev_count(NULL), 0);
    assert_null(ggml_backend_reg_dev_get(NULL, 0));
    assert_null(ggml_backend_reg_get_proc_address(NULL, "x"));
    load("ggml-gpu.so");
    ggml_backend_reg_t reg = ggml_backend_reg_by_name("gpu");
    assert_string_equal(ggml_backend_reg_name(reg), "gpu");
    assert_int_equal(ggml_backend_reg_dev_count(reg), 4);
    assert_null(ggml_backend_reg_dev_get(reg, 4));
    assert_null(ggml_backend_reg_get_proc_address(reg, "x"));
    assert_null(ggml_backend_reg_get_proc_address(reg, NULL));
}

// --- registered by hand --------------------------------------------------------------------------

static struct ggml_backend_reg own_reg;
static struct ggml_backend_device own_device;

static const char *own_name(ggml_backend_dev_t device) {
    (void)device;
    return "OWN0";
}

static const char *own_reg_name(ggml_backend_reg_t reg) {
    (void)reg;
    return "OWN";
}

static size_t own_count(ggml_backend_reg_t reg) {
    (void)reg;
    return 1;
}

static ggml_backend_dev_t own_get(ggml_backend_reg_t reg, size_t index) {
    (void)reg;
    (void)index;
    return &own_device;
}

static void own_memory(ggml_backend_dev_t device, size_t *free, size_t *total) {
    (void)device;
    *free = *total = 0;
}

static enum ggml_backend_dev_type own_type(ggml_backend_dev_t device) {
    (void)device;
    return GGML_BACKEND_DEVICE_TYPE_GPU;
}

static void own_props(ggml_backend_dev_t device, struct ggml_backend_dev_props *props) {
    props->name = own_name(device);
}

static int32_t own_init(ggml_backend_dev_t device, const char *params, ggml_backend_t *out_stream) {
    (void)device;
    (void)params;
    (void)out_stream;
    return GGML_HOST_UNSUPPORTED;
}

static ggml_backend_buffer_type_t own_buffer_type(ggml_backend_dev_t device) {
    (void)device;
    return ggml_backend_cpu_buffer_type();
}

static bool own_supports_op(ggml_backend_dev_t device, const struct ggml_tensor *op) {
    (void)device;
    (void)op;
    return false;
}

static bool own_supports_buft(ggml_backend_dev_t device, ggml_backend_buffer_type_t buft) {
    (void)device;
    (void)buft;
    return false;
}

static const struct ggml_device_table own_device_table = {
    .size = sizeof(own_device_table),
    .get_name = own_name,
    .get_description = own_name,
    .get_memory = own_memory,
    .get_type = own_type,
    .get_props = own_props,
    .init_backend = own_init,
    .get_buffer_type = own_buffer_type,
    .supports_op = own_supports_op,
    .supports_buft = own_supports_buft,
};

static void test_backends_of_the_application_are_registered_once(void **state) {
    (void)state;
    const size_t n_devices = ggml_backend_dev_count();
    ggml_backend_register(NULL);
    ggml_backend_device_register(NULL);
    ggml_backend_register(&own_reg);
    assert_int_equal(ggml_last_status(), GGML_HOST_BAD_PLUGIN);
    assert_int_equal(ggml_backend_dev_count(), n_devices);

    static const struct ggml_backend_table own_table = {
        .size = sizeof(own_table),
        .get_name = own_reg_name,
        .get_device_count = own_count,
        .get_device = own_get,
    };
    own_reg.table = (const struct ggml_backend_table *)2; // as ggml's version of its interface
    ggml_backend_register(&own_reg);
    assert_int_equal(ggml_last_status(), GGML_HOST_BAD_PLUGIN);
    own_reg.table = &own_table;
    own_device.table = &own_device_table;
    own_device.reg = &own_reg;
    assert_string_equal(ggml_backend_reg_name(&own_reg), "OWN");
    assert_int_equal(ggml_backend_reg_dev_count(&own_reg), 1);
    for (int i = 0; i < 2; ++i) {
        ggml_backend_register(&own_reg);
        ggml_backend_device_register(&own_device);
        assert_int_equal(ggml_backend_dev_count(), n_devices + 1);
    }
    struct ggml_device_info info = {.size = sizeof(info)};
    assert_int_equal(ggml_backend_dev_info(ggml_backend_dev_by_name("own0"), &info), GGML_HOST_OK);
    assert_string_equal(info.plugin_path, "");
    ggml_backend_unload(&own_reg);
    assert_int_equal(ggml_backend_dev_count(), n_devices);
}

static void test_a_program_that_loads_nothing_has_the_built_in_devices(void **state) {
    (void)state;
    size_t n_builtins;
    size_t n_loaded;
    builtin_plugins(&n_builtins);
    assert_int_equal(ggml_backend_reg_count(), n_builtins);
    assert_int_equal(ggml_plugin_load_all(dir.path, &n_loaded), GGML_HOST_OK);
    assert_int_equal(n_loaded, 0);
    if (n_builtins > 0) assert_int_equal(find_record("(built-in)")->stage, GGML_PLUGIN_STAGE_READY);
}

// --- devices that come later ---------------------------------------------------------------------

struct fixture_extension {
    int32_t (*find_one_more)(void);
    int32_t (*find_two_more)(void);
};

static void test_devices_come_while_the_plugin_is_in_use(void **state) {
    (void)state;
    ggml_backend_reg_t reg = NULL;
    plugin_dir_add(&dir, FIXTURES "/ggml-grows.so", "ggml-grows.so");
    const char *path = plugin_dir_path(&dir, "ggml-grows.so");
    assert_int_equal(ggml_plugin_load(path, &reg), GGML_HOST_OK);
    assert_int_equal(ggml_backend_reg_dev_count(reg), 0);
    assert_null(ggml_backend_reg_get_extension(reg, "org.example.grow", 2));
    const struct fixture_extension *grow =
        ggml_backend_reg_get_extension(reg, "org.example.grow", 1);
    assert_non_null(grow);
    assert_int_equal(grow->find_one_more(), GGML_HOST_OK);
    assert_int_equal(ggml_backend_reg_dev_count(reg), 1);
    ggml_backend_dev_t first = ggml_backend_dev_by_name("FAR0");
    assert_non_null(first);
    ggml_backend_t stream = ggml_backend_dev_init(first, NULL);
    setenv("GGML_DEVICES", "-FAR1", 1);
    assert_int_equal(grow->find_one_more(), GGML_HOST_OK);
    unsetenv("GGML_DEVICES");
    assert_int_equal(ggml_backend_reg_dev_count(reg), 1);
    assert_null(ggml_backend_dev_by_name("FAR1"));
    assert_ptr_equal(ggml_backend_dev_by_name("FAR0"), first);
    ggml_clear_error();
    assert_int_equal(grow->find_one_more(), GGML_HOST_OK); // a second FAR0, which is left out
    assert_int_equal(ggml_backend_reg_dev_count(reg), 1);
    assert_int_equal(ggml_last_status(), GGML_HOST_OK);
    assert_int_equal(ggml_plugin_unload(reg), GGML_HOST_BUSY);
    ggml_backend_free(stream);
    assert_int_equal(ggml_plugin_unload(reg), GGML_HOST_OK);
    assert_null(ggml_backend_dev_by_name("FAR0"));
}

// As backends for servers do, which are asked for by an address: a reader that waited for all
// readers here would wait for itself.
static void test_a_device_may_come_while_a_backend_is_looked_for(void **state) {
    (void)state;
    ggml_backend_reg_t reg = NULL;
    plugin_dir_add(&dir, FIXTURES "/ggml-grows.so", "ggml-grows.so");
    assert_int_equal(ggml_plugin_load(plugin_dir_path(&dir, "ggml-grows.so"), &reg), GGML_HOST_OK);
    assert_null(ggml_backend_reg_by_name("elsewhere"));
    assert_int_equal(ggml_backend_reg_dev_count(reg), 0);
    assert_ptr_equal(ggml_backend_reg_by_name("remote"), reg);
    assert_int_equal(ggml_backend_reg_dev_count(reg), 1);
    assert_int_equal(ggml_plugin_unload(reg), GGML_HOST_OK);
}

// Whoever holds the registry looks once more when it gives it up.
static void test_a_device_that_comes_while_others_are_looked_at_is_shown(void **state) {
    (void)state;
    ggml_backend_reg_t reg = NULL;
    plugin_dir_add(&dir, FIXTURES "/ggml-swarm.so", "ggml-swarm.so");
    const char *path = plugin_dir_path(&dir, "ggml-swarm.so");
    assert_int_equal(ggml_plugin_load(path, &reg), GGML_HOST_OK);
    const struct fixture_extension *swarm =
        ggml_backend_reg_get_extension(reg, "org.example.grow", 1);
    assert_non_null(swarm);
    assert_int_equal(swarm->find_two_more(), GGML_HOST_OK);
    assert_int_equal(ggml_backend_reg_dev_count(reg), 2);
    assert_int_equal(ggml_plugin_unload(reg), GGML_HOST_OK);
}

static void test_a_plugin_without_the_flag_has_its_devices_at_once(void **state) {
    (void)state;
    ggml_backend_reg_t reg = NULL;
    plugin_dir_add(&dir, FIXTURES "/ggml-grows-unsaid.so", "ggml-grows-unsaid.so");
    const char *path = plugin_dir_path(&dir, "ggml-grows-unsaid.so");
    assert_int_equal(ggml_plugin_load(path, &reg), GGML_HOST_NO_DEVICE);
}

static void test_plugins_get_extensions_of_the_application(void **state) {
    (void)state;
    static const int table = 1;
    ggml_backend_reg_t reg = NULL;
    assert_int_equal(ggml_host_offer_extension("ggml.mine", 1, &table), GGML_HOST_INVALID_ARGUMENT);
    assert_int_equal(ggml_host_offer_extension("", 1, &table), GGML_HOST_INVALID_ARGUMENT);
    assert_int_equal(ggml_host_offer_extension("org.example.application", 2, NULL),
                     GGML_HOST_INVALID_ARGUMENT);
    plugin_dir_add(&dir, FIXTURES "/ggml-grows.so", "ggml-grows.so");
    const char *path = plugin_dir_path(&dir, "ggml-grows.so");
    assert_int_equal(ggml_plugin_load(path, &reg), GGML_HOST_OK);
    assert_null(ggml_backend_reg_get_extension(reg, "org.example.echo", 1));
    assert_int_equal(ggml_host_offer_extension("org.example.application", 2, &table), GGML_HOST_OK);
    assert_int_equal(ggml_host_offer_extension("org.example.application", 2, &table),
                     GGML_HOST_DUPLICATE);
    assert_ptr_equal(ggml_backend_reg_get_extension(reg, "org.example.echo", 2), &table);
    assert_null(ggml_backend_reg_get_extension(reg, "org.example.echo", 3));
    assert_null(ggml_backend_reg_get_extension(NULL, "org.example.echo", 1));
    assert_null(ggml_backend_reg_get_extension(reg, NULL, 1));
    assert_int_equal(ggml_plugin_unload(reg), GGML_HOST_OK);
    assert_null(ggml_backend_reg_get_extension(reg, "org.example.echo", 1));
}

// --- linked into the program ---------------------------------------------------------------------

extern const struct ggml_plugin_note ggml_builtin_note_skeleton;
int32_t ggml_builtin_init_skeleton(const struct ggml_host_table *host,
                                   const struct ggml_plugin_table **out_plugin);

static void test_a_plugin_can_be_linked_into_the_program(void **state) {
    (void)state;
    const struct ggml_plugin_note *note = &ggml_builtin_note_skeleton;
    struct ggml_plugin_note foreign = *note;
    ggml_backend_reg_t reg = NULL, again = NULL;
    foreign.machine = GGML_MACHINE_NONE;
    assert_int_equal(ggml_plugin_load_static(&foreign, ggml_builtin_init_skeleton, &reg),
                     GGML_HOST_WRONG_MACHINE);
    assert_null(reg);
    assert_int_equal(ggml_plugin_load_static(NULL, ggml_builtin_init_skeleton, &reg),
                     GGML_HOST_INVALID_ARGUMENT);
    for (int i = 0; i < 2; ++i) {
        assert_int_equal(ggml_plugin_load_static(note, ggml_builtin_init_skeleton, &reg),
                         GGML_HOST_OK);
        assert_string_equal(ggml_backend_reg_name(reg), "NULL");
        assert_non_null(ggml_backend_dev_by_name("NULL0"));
        assert_int_equal(ggml_plugin_load_static(note, ggml_builtin_init_skeleton, &again),
                         GGML_HOST_DUPLICATE);
        assert_ptr_equal(again, reg);
        ggml_backend_t stream = ggml_backend_init_by_name("NULL0", NULL);
        assert_int_equal(ggml_plugin_unload(reg), GGML_HOST_BUSY);
        ggml_backend_free(stream);
        assert_int_equal(ggml_plugin_unload(reg), GGML_HOST_OK);
        assert_null(ggml_backend_dev_by_name("NULL0"));
    }
}

// The plugin is mapped from a copy in memory, where it is sealed.
static void test_a_plugin_knows_where_its_file_lies(void **state) {
    (void)state;
    ggml_backend_reg_t reg = NULL;
    plugin_dir_add(&dir, FIXTURES "/ggml-grows.so", "ggml-grows.so");
    const char *path = plugin_dir_path(&dir, "ggml-grows.so");
    char file[4096];
    snprintf(file, sizeof(file), "%s", path);
    assert_int_equal(ggml_plugin_load(file, &reg), GGML_HOST_OK);
    const char *folder = ggml_backend_reg_get_extension(reg, "org.example.folder", 1);
    assert_string_equal(ggml_backend_reg_get_extension(reg, "org.example.file", 1), file);
    assert_non_null(folder);
    assert_true(strncmp(folder, file, strlen(folder)) == 0);
    assert_string_equal(file + strlen(folder) + 1, "ggml-grows.so");
    assert_int_equal(ggml_plugin_unload(reg), GGML_HOST_OK);
}

static void check_folder(const char *path, const char *folder) {
    struct host_plugin *plugin = plugin_new(path, "placed");
    const struct ggml_host_table *host = &plugin->host;
    host_table_init(&plugin->host);
    const struct ggml_extension_plugin_path *place =
        host->get_extension(host, GGML_EXTENSION_PLUGIN_PATH, 1);
    assert_true((place != NULL) == (folder != NULL));
    if (place) assert_string_equal(place->folder(host), folder);
    if (place) assert_string_equal(place->file(host), path);
    plugin_free(plugin);
}

static void test_only_plugins_from_files_have_a_folder(void **state) {
    (void)state;
    check_folder("(built-in)", NULL);
    check_folder("", NULL);
#ifdef _WIN32
    check_folder("C:\\ggml-x.dll", "C:\\");
    check_folder("C:\\a b\\ggml-x.dll", "C:\\a b");
#else
    check_folder("/ggml-x.so", "/");
    check_folder("/usr/lib//ggml-x.so", "/usr/lib");
#endif
}

static void test_details_of_a_device_are_the_plugins(void **state) {
    (void)state;
    ggml_backend_reg_t reg = NULL;
    struct ggml_backend_device stranger = {.context = NULL};
    plugin_dir_add(&dir, FIXTURES "/ggml-grows.so", "ggml-grows.so");
    assert_int_equal(ggml_plugin_load(plugin_dir_path(&dir, "ggml-grows.so"), &reg), GGML_HOST_OK);
    const struct fixture_extension *grow =
        ggml_backend_reg_get_extension(reg, "org.example.grow", 1);
    assert_int_equal(grow->find_one_more(), GGML_HOST_OK);
    assert_int_equal(grow->find_one_more(), GGML_HOST_OK);
    ggml_backend_dev_t device = ggml_backend_dev_by_name("FAR0");
    const struct ggml_backend_feature *details = ggml_backend_dev_details(device);
    assert_non_null(details);
    assert_string_equal(details[0].name, "driver");
    assert_string_equal(details[0].value, "fixture");
    assert_null(details[1].name);
    ggml_clear_error();
    assert_null(ggml_backend_dev_details(ggml_backend_dev_by_name("FAR1")));
    assert_int_equal(ggml_last_status(), GGML_HOST_OK);
    setenv("GGML_GROWS_DETAILS", "broken", 1);
    assert_null(ggml_backend_dev_details(device));
    assert_int_equal(ggml_last_status(), GGML_HOST_BAD_PLUGIN);
    unsetenv("GGML_GROWS_DETAILS");
    assert_null(ggml_backend_dev_details(&stranger));
    assert_int_equal(ggml_last_status(), GGML_HOST_INVALID_ARGUMENT);
    assert_null(ggml_backend_dev_details(NULL));
    assert_int_equal(ggml_plugin_unload(reg), GGML_HOST_OK);
}

// --- host table ----------------------------------------------------------------------------------

static void test_the_host_table_serves_and_refuses(void **state) {
    (void)state;
    struct host_plugin *plugin = plugin_new("", "sound-8");
    const struct ggml_host_table *host = &plugin->host;
    host_table_init(&plugin->host);
    assert_int_equal(host->size, sizeof(*host));
    assert_string_equal(host->host_version, ggml_version());
    void *memory = host->alloc(host, 100, 256);
    assert_non_null(memory);
    assert_int_equal((uintptr_t)memory % 256, 0);
    host->free(host, memory);
    host->free(host, NULL);
    assert_null(host->alloc(host, 0, 16));
    assert_null(host->alloc(host, 16, 24));
    assert_int_equal(ggml_last_status(), GGML_HOST_INVALID_ARGUMENT);
    const unsigned long told = ggml_fail_count();
    assert_null(host->alloc(host, SIZE_MAX - 8, 16)); // the plugin may have another way
    assert_int_equal(ggml_fail_count(), told);
    device_fail_default(told, GGML_HOST_FAILED, "it failed");
    assert_int_equal(ggml_last_status(), GGML_HOST_OUT_OF_MEMORY);
    device_fail_default(ggml_fail_count(), GGML_HOST_FAILED, "it failed");
    assert_int_equal(ggml_last_status(), GGML_HOST_FAILED);
    assert_null(host->get_extension(host, "ggml.unknown", 0));
    assert_null(host->get_extension(host, NULL, 0));
    assert_null(host->get_extension(host, GGML_EXTENSION_HOST_MEMORY, 99));
    const struct ggml_extension_host_memory *own =
        host->get_extension(host, GGML_EXTENSION_HOST_MEMORY, 1);
    assert_ptr_equal(own->buffer_type(host), ggml_backend_cpu_buffer_type());
    setenv("GGML_CPU_LEVEL", "scalar", 1);
    assert_string_equal(host->get_config(host, "GGML_CPU_LEVEL"), "scalar");
    unsetenv("GGML_CPU_LEVEL");
    assert_null(host->get_config(host, "HOME"));
    assert_null(host->get_config(host, NULL));
    setenv("GGML_SOUND_8_MODE", "loud", 1);
    setenv("GGML_SOUND", "no", 1);
    assert_string_equal(host->get_config(host, "GGML_SOUND_8_MODE"), "loud");
    assert_null(host->get_config(host, "GGML_SOUND"));
    assert_null(host->get_config(host, "GGML_SOUND_8_"));
    assert_null(host->get_config(host, "SOUND_8_MODE"));
    ggml_env_assume_privileged(true);
    assert_null(host->get_config(host, "GGML_SOUND_8_MODE"));
    ggml_env_assume_privileged(false);
    host->set_error(host, GGML_HOST_DEVICE_LOST, "100 % lost %s");
    assert_string_equal(ggml_last_error(), "100 % lost %s");
    assert_int_equal(ggml_last_status(), GGML_HOST_DEVICE_LOST);
    plugin_free(plugin);
}

// --- small parts ---------------------------------------------------------------------------------

static void test_parts_of_one_card_have_its_address(void **state) {
    (void)state;
    ggml_backend_reg_t parts, other;
    plugin_dir_add(&dir, FIXTURES "/ggml-parts.so", "ggml-parts.so");
    plugin_dir_add(&dir, FIXTURES "/ggml-other.so", "ggml-other.so");
    const char *path = plugin_dir_path(&dir, "ggml-parts.so");
    assert_int_equal(ggml_plugin_load(path, &parts), GGML_HOST_OK);
    assert_int_equal(ggml_plugin_load(plugin_dir_path(&dir, "ggml-other.so"), &other),
                     GGML_HOST_OK);
    assert_null(alias_of("PART0"));
    assert_null(alias_of("PART1")); // of the same card, and another device
    assert_ptr_equal(alias_of("OTHER0"), ggml_backend_dev_by_name("PART0"));
    assert_null(alias_of("OTHER1"));
    assert_int_equal(ggml_plugin_unload(other), GGML_HOST_OK);
    assert_int_equal(ggml_plugin_unload(parts), GGML_HOST_OK);
    static const struct {
        const char *value;
        size_t n_shown;
    } rows[] = {{"0000:01:00.0", 2}, {"0000:01:00.0#mig-1", 1}, {"-0000:01:00.0#mig-1", 1}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        setenv("GGML_DEVICES", rows[i].value, 1);
        path = plugin_dir_path(&dir, "ggml-parts.so");
        assert_int_equal(ggml_plugin_load(path, &parts), GGML_HOST_OK);
        assert_int_equal(ggml_backend_reg_dev_count(parts), rows[i].n_shown);
        assert_int_equal(ggml_plugin_unload(parts), GGML_HOST_OK);
    }
    unsetenv("GGML_DEVICES");
}

static bool allows(const char *value, const char *plugin) {
    static const char *known[] = {"cpu", "cuda", "vulkan"};
    struct arena arena = {0};
    struct device_filter filter;
    assert_true(filter_parse(&filter, value, &arena));
    filter.plugin_names = known;
    filter.n_plugin_names = 3;
    const bool allowed = filter_allows_plugin(&filter, plugin);
    arena_free(&arena);
    return allowed;
}

static void test_the_filter_decides_by_plugin_name_where_it_can(void **state) {
    (void)state;
    assert_true(allows(NULL, "cuda"));
    assert_true(allows("", "cuda"));
    assert_true(allows(" , -,", "cuda"));
    assert_true(allows("cpu,CUDA", "cuda"));
    assert_true(allows("CUDA1", "cuda"));
    assert_false(allows("CUDA1", "vulkan"));
    assert_false(allows("cpu", "cuda"));
    assert_false(allows("cpu,-cuda", "cuda"));
    assert_false(allows("- cuda", "cuda"));
    assert_true(allows("-cuda", "cpu"));
    assert_true(allows("-CUDA1", "cuda"));
    assert_true(allows("0000:01:00.0", "vulkan"));
    assert_true(allows("Metal", "vulkan"));
}

static void test_linker_messages_name_the_missing_library(void **state) {
    (void)state;
    char name[32];
    missing_library("libfoo.so.1: cannot open shared object file: No such file or directory",
                    "/p.so", name, sizeof(name));
    assert_string_equal(name, "libfoo.so.1");
    missing_library("/p.so: cannot open shared object file: No such file", "/p.so", name,
                    sizeof(name));
    assert_string_equal(name, "");
    missing_library("Error loading shared library libfoo.so: No such file (needed by /p.so)",
                    "/p.so", name, sizeof(name));
    assert_string_equal(name, "libfoo.so");
    missing_library(
        "dlopen(/p.so, 2): Library not loaded: @rpath/libfoo.dylib\n  Referenced from: /p", "/p.so",
        name, sizeof(name));
    assert_string_equal(name, "@rpath/libfoo.dylib");
    missing_library("/p.so: undefined symbol: cuInit", "/p.so", name, sizeof(name));
    assert_string_equal(name, "");
    missing_library("a-library-with-a-name-that-is-far-too-long.so: cannot open shared object file",
                    "/p.so", name, sizeof(name));
    assert_int_equal(strlen(name), sizeof(name) - 1);
}

static void test_utf8_is_checked_strictly(void **state) {
    (void)state;
    assert_true(utf8_valid("GPU \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"));
    assert_false(utf8_valid("\xc0\x80"));
    assert_false(utf8_valid("\xed\xa0\x80"));
    assert_false(utf8_valid("\xf4\x90\x80\x80"));
    assert_false(utf8_valid("\xe2\x82"));
    assert_false(utf8_valid("\xff"));
    assert_false(utf8_valid("line\n"));
}

#define HOST_TEST(name) cmocka_unit_test_setup_teardown(name, open_dir, close_dir)

int main(void) {
    const struct CMUnitTest tests[] = {
        HOST_TEST(test_a_program_that_loads_nothing_has_the_built_in_devices),
        HOST_TEST(test_devices_are_ordered_by_type_then_pci_address),
        HOST_TEST(test_the_same_hardware_through_two_plugins_is_an_alias),
        HOST_TEST(test_parts_of_one_card_have_its_address),
        HOST_TEST(test_names_are_found_whatever_their_case),
        HOST_TEST(test_info_checks_its_arguments),
        HOST_TEST(test_a_plugin_in_use_is_not_unloaded),
        HOST_TEST(test_null_and_foreign_backends_are_answered),
        HOST_TEST(test_backends_of_the_application_are_registered_once),
        HOST_TEST(test_devices_come_while_the_plugin_is_in_use),
        HOST_TEST(test_a_device_may_come_while_a_backend_is_looked_for),
        HOST_TEST(test_a_device_that_comes_while_others_are_looked_at_is_shown),
        HOST_TEST(test_a_plugin_without_the_flag_has_its_devices_at_once),
        HOST_TEST(test_plugins_get_extensions_of_the_application),
        HOST_TEST(test_a_plugin_knows_where_its_file_lies),
        HOST_TEST(test_only_plugins_from_files_have_a_folder),
        HOST_TEST(test_details_of_a_device_are_the_plugins),
        HOST_TEST(test_a_plugin_can_be_linked_into_the_program),
        cmocka_unit_test(test_the_host_table_serves_and_refuses),
        cmocka_unit_test(test_the_filter_decides_by_plugin_name_where_it_can),
        cmocka_unit_test(test_linker_messages_name_the_missing_library),
        cmocka_unit_test(test_utf8_is_checked_strictly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
