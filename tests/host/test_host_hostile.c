// SPDX-License-Identifier: MIT
// Plugins that are linked in (ggml_plugin_load_static) and whose devices come and go
// (ggml.registry) with notes, entries and tables that are wrong in every way that is no wild
// pointer: a status each.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"
#include "ggml-backend-impl.h"
#include "ggml-host.h"
#include "ggml-plugin.h"
#include "support/fault_sweep.h"
#include "support/plugin_dir.h"

enum { MAX_SHOWN = 1024, N_OWN = 1100, N_THREADS = 4 };

// --- a plugin in the test ------------------------------------------------------------------------

static const struct ggml_host_table *host_of_plugin;
static struct ggml_backend_device devices[N_OWN];
static struct ggml_backend_reg reg;
static atomic_size_t n_devices = 1;
static atomic_size_t first_device;
static atomic_bool announces_when_asked, answers_null;
static atomic_uint n_asked, n_started, n_shut_down;
static int32_t init_answer;
static const struct ggml_plugin_table *table_answer;

static int32_t announce(void) {
    const struct ggml_extension_registry *registry =
        host_of_plugin->get_extension(host_of_plugin, GGML_EXTENSION_REGISTRY, 1);
    return registry->devices_changed(host_of_plugin);
}

static const char *reg_name(ggml_backend_reg_t self) {
    (void)self;
    return "hostile";
}

static size_t reg_count(ggml_backend_reg_t self) {
    (void)self;
    atomic_fetch_add(&n_asked, 1);
    if (atomic_load(&announces_when_asked)) announce();
    return atomic_load(&n_devices);
}

static ggml_backend_dev_t reg_device(ggml_backend_reg_t self, size_t index) {
    (void)self;
    if (atomic_load(&answers_null)) return NULL;
    return &devices[(atomic_load(&first_device) + index) % N_OWN];
}

static const struct ggml_backend_table reg_table = {.size = sizeof(reg_table),
                                                    .get_name = reg_name,
                                                    .get_device_count = reg_count,
                                                    .get_device = reg_device};

static const char *device_name(ggml_backend_dev_t device) {
    static char names[N_OWN][16];
    const size_t i = (size_t)(device - devices);
    snprintf(names[i], sizeof(names[i]), "DEV%zu", i);
    return names[i];
}

static const char *no_name(ggml_backend_dev_t device) {
    (void)device;
    return NULL;
}

static void device_memory(ggml_backend_dev_t device, size_t *free, size_t *total) {
    (void)device;
    *free = SIZE_MAX;
    *total = 1;
}

static enum ggml_backend_dev_type device_type(ggml_backend_dev_t device) {
    (void)device;
    return (enum ggml_backend_dev_type)77;
}

static void device_props(ggml_backend_dev_t device, struct ggml_backend_dev_props *props) {
    (void)device;
    props->device_id = "\xff";
}

static int32_t device_init(ggml_backend_dev_t device, const char *params,
                           ggml_backend_t *out_stream) {
    (void)device;
    (void)params;
    *out_stream = NULL;
    return 12345;
}

static ggml_backend_buffer_type_t device_buffer_type(ggml_backend_dev_t device) {
    (void)device;
    return NULL;
}

static bool device_supports_op(ggml_backend_dev_t device, const struct ggml_tensor *op) {
    (void)device;
    (void)op;
    return true;
}

static bool device_supports_buft(ggml_backend_dev_t device, ggml_backend_buffer_type_t buft) {
    (void)device;
    (void)buft;
    return true;
}

#define DEVICE_TABLE(name)                                                                         \
    {                                                                                              \
        .size = sizeof(struct ggml_device_table), .get_name = (name), .get_description = (name),   \
        .get_memory = device_memory, .get_type = device_type, .get_props = device_props,           \
        .init_backend = device_init, .get_buffer_type = device_buffer_type,                        \
        .supports_op = device_supports_op, .supports_buft = device_supports_buft                   \
    }
static const struct ggml_device_table device_table = DEVICE_TABLE(device_name);
static const struct ggml_device_table nameless_table = DEVICE_TABLE(no_name);
static const struct ggml_device_table small_table = {.size = 8};

static void shut_down(const struct ggml_plugin_table *self, const struct ggml_host_table *host) {
    (void)self;
    (void)host;
    atomic_fetch_add(&n_shut_down, 1);
}

static struct ggml_plugin_table plugin_table;

static int32_t start(const struct ggml_host_table *host,
                     const struct ggml_plugin_table **out_plugin) {
    atomic_fetch_add(&n_started, 1);
    host_of_plugin = host;
    *out_plugin = table_answer;
    return init_answer;
}

static int32_t start_other(const struct ggml_host_table *host,
                           const struct ggml_plugin_table **out_plugin) {
    return start(host, out_plugin);
}

static struct ggml_plugin_note sound_note(const char *name) {
    struct ggml_plugin_note note = {.magic = GGML_PLUGIN_MAGIC,
                                    .size = sizeof(note),
                                    .contract_major = GGML_CONTRACT_MAJOR,
                                    .contract_minor = GGML_CONTRACT_MINOR,
                                    .machine = GGML_MACHINE_HERE,
                                    .flags = GGML_PLUGIN_FLAG_DYNAMIC_DEVICES,
                                    .layout_hash = GGML_PLUGIN_LAYOUT_HASH};
    snprintf(note.name, sizeof(note.name), "%s", name);
    return note;
}

static int make_sound(void **state) {
    (void)state;
    reg.table = &reg_table;
    for (size_t i = 0; i < N_OWN; ++i)
        devices[i] = (struct ggml_backend_device){.table = &device_table, .reg = &reg};
    plugin_table = (struct ggml_plugin_table){.size = sizeof(plugin_table),
                                              .contract_major = GGML_CONTRACT_MAJOR,
                                              .contract_minor = GGML_CONTRACT_MINOR,
                                              .reg = &reg,
                                              .shutdown = shut_down};
    table_answer = &plugin_table;
    init_answer = GGML_HOST_OK;
    atomic_store(&n_devices, 1);
    atomic_store(&first_device, 0);
    atomic_store(&announces_when_asked, false);
    atomic_store(&answers_null, false);
    atomic_store(&n_started, 0);
    atomic_store(&n_shut_down, 0);
    return 0;
}

static int end(void **state) {
    (void)state;
    unload_everything();
    return 0;
}

static enum ggml_host_status load(const char *name, ggml_backend_reg_t *out_reg) {
    const struct ggml_plugin_note note = sound_note(name);
    return ggml_plugin_load_static(&note, start, out_reg);
}

// --- notes and tables ----------------------------------------------------------------------------

static void test_a_note_that_contradicts_itself_runs_nothing(void **state) {
    (void)state;
    ggml_backend_reg_t loaded = &reg;
    const struct ggml_plugin_note sound = sound_note("hostile");
    struct ggml_plugin_note notes[8];
    for (int i = 0; i < 8; ++i)
        notes[i] = sound;
    memset(notes[0].name, 'x', sizeof(notes[0].name));
    memset(notes[1].variant, 'x', sizeof(notes[1].variant));
    memset(notes[2].version, 'x', sizeof(notes[2].version));
    notes[3].name[1] = '\x1b';
    notes[4].name[0] = '\0';
    notes[5].size = 8;
    notes[6].size = UINT32_MAX;
    notes[7].magic[0] ^= 1;
    for (int i = 0; i < 8; ++i) {
        assert_int_equal(ggml_plugin_load_static(&notes[i], start, &loaded),
                         GGML_HOST_DAMAGED_FILE);
        assert_null(loaded);
    }
    assert_int_equal(atomic_load(&n_started), 0);
    assert_int_equal(load("hostile", &loaded), GGML_HOST_OK);
    assert_ptr_equal(loaded, &reg);
}

static void expect_refusal(enum ggml_host_status status) {
    ggml_backend_reg_t loaded = &reg;
    const size_t n_shown = ggml_backend_dev_count();
    const enum ggml_host_status answer = load("hostile", &loaded);
    if (answer != status) fail_msg("%d instead of %d: %s", answer, status, ggml_last_error());
    assert_null(loaded);
    assert_int_equal(ggml_backend_dev_count(), n_shown);
    make_sound(NULL);
}

static void test_tables_that_are_none_cost_a_status(void **state) {
    (void)state;
    static const int32_t answers[] = {-1, 12345, INT32_MIN};
    for (int i = 0; i < 3; ++i) {
        init_answer = answers[i];
        expect_refusal(GGML_HOST_INIT_FAILED);
    }
    table_answer = NULL;
    expect_refusal(GGML_HOST_BAD_PLUGIN);
    table_answer = (const struct ggml_plugin_table *)2;
    expect_refusal(GGML_HOST_BAD_PLUGIN);
    plugin_table.size = 8;
    expect_refusal(GGML_HOST_BAD_PLUGIN);
    plugin_table.size = UINT32_MAX;
    expect_refusal(GGML_HOST_BAD_PLUGIN);
    plugin_table.contract_major = GGML_CONTRACT_MAJOR + 1;
    expect_refusal(GGML_HOST_BAD_PLUGIN);
    plugin_table.reg = NULL;
    expect_refusal(GGML_HOST_BAD_PLUGIN);
    reg.table = (const struct ggml_backend_table *)2;
    expect_refusal(GGML_HOST_BAD_PLUGIN);
    devices[0].table = (const struct ggml_device_table *)2;
    expect_refusal(GGML_HOST_BAD_PLUGIN);
    devices[0].table = &small_table;
    expect_refusal(GGML_HOST_BAD_PLUGIN);
    devices[0].table = &nameless_table;
    expect_refusal(GGML_HOST_BAD_PLUGIN);
    devices[0].reg = NULL;
    expect_refusal(GGML_HOST_BAD_PLUGIN);
    atomic_store(&n_devices, SIZE_MAX);
    expect_refusal(GGML_HOST_BAD_PLUGIN);
    atomic_store(&answers_null, true);
    expect_refusal(GGML_HOST_BAD_PLUGIN);
    assert_int_equal(load("hostile", NULL), GGML_HOST_OK);
}

// --- twice ---------------------------------------------------------------------------------------

static void test_one_entry_runs_once(void **state) {
    (void)state;
    ggml_backend_reg_t first = NULL, second = NULL;
    assert_int_equal(load("hostile", &first), GGML_HOST_OK);
    assert_int_equal(load("hostile", &second), GGML_HOST_DUPLICATE);
    assert_ptr_equal(second, first);
    assert_int_equal(load("another-name", &second), GGML_HOST_DUPLICATE);
    assert_ptr_equal(second, first);
    assert_int_equal(atomic_load(&n_started), 1);
    assert_int_equal(ggml_plugin_unload(first), GGML_HOST_OK);
    assert_int_equal(atomic_load(&n_shut_down), 1);
}

static void test_nobody_answers_the_backend_of_another(void **state) {
    (void)state;
    ggml_backend_reg_t first = NULL, second = NULL;
    const struct ggml_plugin_note other = sound_note("other");
    static struct ggml_plugin_table own;
    assert_int_equal(load("hostile", &first), GGML_HOST_OK);
    assert_int_equal(ggml_plugin_load_static(&other, start_other, &second), GGML_HOST_BAD_PLUGIN);
    assert_null(second);
    assert_int_equal(atomic_load(&n_shut_down), 0); // it is the running one's table
    own = plugin_table;
    table_answer = &own;
    assert_int_equal(ggml_plugin_load_static(&other, start_other, &second), GGML_HOST_BAD_PLUGIN);
    assert_int_equal(atomic_load(&n_shut_down), 1);
    assert_non_null(ggml_backend_dev_by_name("DEV0"));
    assert_int_equal(ggml_plugin_unload(first), GGML_HOST_OK);
    assert_int_equal(ggml_backend_reg_dev_count(first), 1); // the application's own now
    assert_null(ggml_backend_dev_by_name("DEV0"));
}

static atomic_uint n_wrong;

static void *load_and_unload(void *argument) {
    for (int i = 0; i < 200; ++i) {
        ggml_backend_reg_t loaded = NULL;
        const enum ggml_host_status status = load(argument, &loaded);
        const bool known = status == GGML_HOST_OK || status == GGML_HOST_DUPLICATE;
        if (!known || loaded != &reg) atomic_fetch_add(&n_wrong, 1);
        if (status == GGML_HOST_OK && ggml_plugin_unload(loaded) != GGML_HOST_OK)
            atomic_fetch_add(&n_wrong, 1);
    }
    return NULL;
}

static void test_threads_start_it_once_at_a_time(void **state) {
    (void)state;
    static char names[2][8] = {"one", "two"};
    pthread_t threads[N_THREADS];
    atomic_store(&n_wrong, 0);
    for (int i = 0; i < N_THREADS; ++i)
        assert_int_equal(pthread_create(&threads[i], NULL, load_and_unload, names[i % 2]), 0);
    for (int i = 0; i < N_THREADS; ++i)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&n_wrong), 0);
    assert_int_equal(atomic_load(&n_started), atomic_load(&n_shut_down));
    assert_null(ggml_backend_dev_by_name("DEV0"));
}

// --- devices that come and go --------------------------------------------------------------------

static void test_nobody_is_asked_for_ever(void **state) {
    (void)state;
    ggml_backend_reg_t loaded = NULL;
    assert_int_equal(load("hostile", &loaded), GGML_HOST_OK);
    atomic_store(&announces_when_asked, true);
    atomic_store(&n_asked, 0);
    assert_int_equal(announce(), GGML_HOST_OK);
    assert_in_range(atomic_load(&n_asked), 1, 1000);
    assert_int_equal(ggml_plugin_load_all(NULL, NULL), GGML_HOST_OK);
    assert_int_equal(ggml_plugin_unload(loaded), GGML_HOST_OK);
}

static void test_devices_are_bounded_however_many_come(void **state) {
    (void)state;
    ggml_backend_reg_t loaded = NULL;
    assert_int_equal(load("hostile", &loaded), GGML_HOST_OK);
    for (size_t i = 0; i < N_OWN; ++i) {
        atomic_store(&first_device, i);
        assert_int_equal(announce(), GGML_HOST_OK);
    }
    assert_int_equal(ggml_backend_reg_dev_count(loaded), MAX_SHOWN);
    atomic_store(&n_devices, SIZE_MAX);
    assert_int_equal(announce(), GGML_HOST_OK);
    assert_int_equal(ggml_backend_reg_dev_count(loaded), MAX_SHOWN);
}

// Those that went stay listed, and fail when they are used.
static void test_devices_that_go_cost_a_status(void **state) {
    (void)state;
    ggml_backend_reg_t loaded = NULL;
    atomic_store(&n_devices, 3);
    assert_int_equal(load("hostile", &loaded), GGML_HOST_OK);
    atomic_store(&n_devices, 0);
    assert_int_equal(announce(), GGML_HOST_OK);
    atomic_store(&n_devices, 5);
    atomic_store(&answers_null, true);
    assert_int_equal(announce(), GGML_HOST_OK);
    assert_int_equal(ggml_backend_reg_dev_count(loaded), 3);
    ggml_backend_dev_t device = ggml_backend_dev_by_name("DEV2");
    assert_non_null(device);
    assert_null(ggml_backend_dev_init(device, NULL));
    assert_null(ggml_backend_dev_buffer_type(device));
}

static void test_what_is_announced_in_vain_costs_no_memory(void **state) {
    (void)state;
    ggml_backend_reg_t loaded = NULL;
    atomic_store(&n_devices, 1000);
    assert_int_equal(load("hostile", &loaded), GGML_HOST_OK);
    devices[1000].table = &nameless_table; // refused each time
    atomic_store(&n_devices, 1001);
    announce();
    const struct resources before = resources_in_use();
    for (int i = 0; i < 50; ++i)
        announce();
    const struct resources after = resources_in_use();
    assert_in_range(after.n_bytes, 0, before.n_bytes + 4096);
}

static atomic_bool done;

static void *announce_always(void *argument) {
    (void)argument;
    while (!atomic_load(&done))
        announce();
    return NULL;
}

static void *come_and_go(void *argument) {
    (void)argument;
    for (size_t i = 0; !atomic_load(&done); ++i) {
        atomic_store(&n_devices, i % 7);
        atomic_store(&first_device, i % 50);
    }
    return NULL;
}

// Others load, unload and look meanwhile, and nobody waits for ever.
static void test_devices_come_and_go_from_every_thread(void **state) {
    (void)state;
    ggml_backend_reg_t loaded = NULL, other = NULL;
    pthread_t threads[3];
    struct plugin_dir dir;
    plugin_dir_open(&dir);
    plugin_dir_add_from(&dir, FIXTURES, "ggml-marker.so", "ggml-marker.so");
    assert_int_equal(load("hostile", &loaded), GGML_HOST_OK);
    atomic_store(&announces_when_asked, true);
    atomic_store(&done, false);
    assert_int_equal(pthread_create(&threads[0], NULL, announce_always, NULL), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, announce_always, NULL), 0);
    assert_int_equal(pthread_create(&threads[2], NULL, come_and_go, NULL), 0);
    for (int i = 0; i < 30; ++i) {
        const char *path = plugin_dir_path(&dir, "ggml-marker.so");
        assert_int_equal(ggml_plugin_load(path, &other), GGML_HOST_OK);
        for (size_t j = 0; j < ggml_backend_reg_dev_count(loaded); ++j)
            assert_null(ggml_backend_dev_init(ggml_backend_reg_dev_get(loaded, j), NULL));
        assert_int_equal(ggml_plugin_unload(other), GGML_HOST_OK);
    }
    atomic_store(&done, true);
    for (int i = 0; i < 3; ++i)
        pthread_join(threads[i], NULL);
    assert_in_range(ggml_backend_reg_dev_count(loaded), 1, 57);
    assert_int_equal(ggml_plugin_unload(loaded), GGML_HOST_OK);
    plugin_dir_close(&dir);
}

// --- memory that others use too ------------------------------------------------------------------

static struct ggml_backend_buffer lent;
static struct ggml_buffer_type_table lent_type_table;
static struct ggml_backend_buffer_type lent_type;
static struct ggml_external_memory named;
static bool lends_nothing;
static int32_t lend_answer;
static size_t n_lent;

static void lent_free(ggml_backend_buffer_t buffer) {
    (void)buffer;
}

static void *lent_base(ggml_backend_buffer_t buffer) {
    (void)buffer;
    return NULL;
}

static struct ggml_buffer_table lent_table;

static int32_t lend(ggml_backend_dev_t device, size_t bytes, ggml_backend_buffer_t *out_buffer) {
    (void)device;
    (void)bytes;
    ++n_lent;
    *out_buffer = lends_nothing ? NULL : &lent;
    return lend_answer;
}

static int32_t name_lent(ggml_backend_buffer_t buffer, uint32_t type,
                         struct ggml_external_memory *out_memory) {
    (void)buffer;
    (void)type;
    *out_memory = named;
    return lend_answer;
}

static int32_t take(ggml_backend_dev_t device, const struct ggml_external_memory *memory,
                    ggml_backend_buffer_t *out_buffer) {
    return lend(device, (size_t)memory->bytes, out_buffer);
}

static struct ggml_extension_external_memory external;

static const void *lending(const struct ggml_plugin_table *self, const char *id,
                           uint32_t min_revision) {
    (void)self;
    (void)min_revision;
    return strcmp(id, GGML_EXTENSION_EXTERNAL_MEMORY) == 0 ? &external : NULL;
}

enum { LENT_BYTES = 4096 };

static void make_lent(void) {
    external = (struct ggml_extension_external_memory){.size = sizeof(external),
                                                       .revision = 1,
                                                       .buffer_new = lend,
                                                       .buffer_export = name_lent,
                                                       .buffer_import = take};
    lent_table = (struct ggml_buffer_table){
        .size = sizeof(lent_table), .free = lent_free, .get_base = lent_base};
    lent_type_table = (struct ggml_buffer_type_table){.size = sizeof(lent_type_table)};
    lent_type = (struct ggml_backend_buffer_type){.table = &lent_type_table, .device = &devices[0]};
    lent =
        (struct ggml_backend_buffer){.table = &lent_table, .buft = &lent_type, .size = LENT_BYTES};
    named = (struct ggml_external_memory){.size = sizeof(named),
                                          .type = GGML_EXTERNAL_OPAQUE_FD,
                                          .fd = 5,
                                          .bytes = LENT_BYTES,
                                          .allocation_bytes = LENT_BYTES};
    lends_nothing = false;
    lend_answer = GGML_HOST_OK;
}

static void expect_no_loan(enum ggml_host_status status) {
    const struct ggml_external_memory memory = {.size = sizeof(memory), .bytes = LENT_BYTES};
    ggml_clear_error();
    assert_null(ggml_backend_dev_alloc_external(&devices[0], LENT_BYTES));
    assert_int_equal(ggml_last_status(), status);
    ggml_clear_error();
    assert_null(ggml_backend_dev_import_external(&devices[0], &memory));
    assert_int_equal(ggml_last_status(), status);
    make_lent();
}

static void test_memory_that_is_none_is_not_lent(void **state) {
    (void)state;
    plugin_table.get_extension = lending;
    make_lent();
    assert_int_equal(load("hostile", NULL), GGML_HOST_OK);
    external.size = 8;
    expect_no_loan(GGML_HOST_UNSUPPORTED);
    external.buffer_new = NULL;
    expect_no_loan(GGML_HOST_UNSUPPORTED);
    lends_nothing = true;
    expect_no_loan(GGML_HOST_BAD_PLUGIN);
    lend_answer = 12345;
    expect_no_loan(GGML_HOST_BAD_PLUGIN);
    lent.table = NULL;
    expect_no_loan(GGML_HOST_BAD_PLUGIN);
    lent_table.get_base = NULL;
    expect_no_loan(GGML_HOST_BAD_PLUGIN);
    lent.buft = NULL;
    expect_no_loan(GGML_HOST_BAD_PLUGIN);
    lent.size = LENT_BYTES - 1;
    expect_no_loan(GGML_HOST_BAD_PLUGIN);
    const size_t before = n_lent;
    assert_null(ggml_backend_dev_alloc_external(&devices[0], 0));
    assert_int_equal(ggml_last_status(), GGML_HOST_INVALID_ARGUMENT);
    assert_int_equal(n_lent, before);
}

static void test_what_is_exported_names_memory(void **state) {
    (void)state;
    struct ggml_external_memory memory = {.size = sizeof(memory)};
    plugin_table.get_extension = lending;
    make_lent();
    assert_int_equal(load("hostile", NULL), GGML_HOST_OK);
    ggml_backend_buffer_t buffer = ggml_backend_dev_alloc_external(&devices[0], LENT_BYTES);
    assert_non_null(buffer);
    for (int way = 0; way < 5; ++way) {
        make_lent();
        lent.host = &devices[0];
        if (way == 0) named.fd = -7;
        if (way == 1) named.type = 99;
        if (way == 2) named.bytes = 0;
        if (way == 3) named.bytes = UINT64_MAX;
        if (way == 4) lend_answer = -3;
        named.size = 1 << 30;
        assert_int_not_equal(ggml_backend_buffer_export(buffer, GGML_EXTERNAL_OPAQUE_FD, &memory),
                             GGML_HOST_OK);
        assert_string_not_equal(ggml_last_error(), "");
        assert_int_equal(memory.fd, -1);
        assert_int_equal(memory.size, sizeof(memory));
    }
    lend_answer = GGML_HOST_OK;
    ggml_backend_buffer_free(buffer);
}

static void test_no_host_is_announced_to(void **state) {
    (void)state;
    assert_int_equal(load("hostile", NULL), GGML_HOST_OK);
    const struct ggml_extension_registry *registry =
        host_of_plugin->get_extension(host_of_plugin, GGML_EXTENSION_REGISTRY, 1);
    assert_int_equal(registry->devices_changed(NULL), GGML_HOST_INVALID_ARGUMENT);
    assert_null(host_of_plugin->get_config(NULL, "GGML_HOSTILE_X"));
}

#define HOSTILE_TEST(name) cmocka_unit_test_setup_teardown(name, make_sound, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        HOSTILE_TEST(test_a_note_that_contradicts_itself_runs_nothing),
        HOSTILE_TEST(test_tables_that_are_none_cost_a_status),
        HOSTILE_TEST(test_one_entry_runs_once),
        HOSTILE_TEST(test_nobody_answers_the_backend_of_another),
        HOSTILE_TEST(test_threads_start_it_once_at_a_time),
        HOSTILE_TEST(test_nobody_is_asked_for_ever),
        HOSTILE_TEST(test_devices_are_bounded_however_many_come),
        HOSTILE_TEST(test_devices_that_go_cost_a_status),
        HOSTILE_TEST(test_what_is_announced_in_vain_costs_no_memory),
        HOSTILE_TEST(test_devices_come_and_go_from_every_thread),
        HOSTILE_TEST(test_memory_that_is_none_is_not_lent),
        HOSTILE_TEST(test_what_is_exported_names_memory),
        HOSTILE_TEST(test_no_host_is_announced_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
