// SPDX-License-Identifier: MIT
// Loading, listing and unloading from many threads at once; meant to run under a thread sanitizer
// as well.
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fault.h"
#include "base/status.h"
#include "ggml-alloc.h"
#include "ggml-backend-impl.h"
#include "support/plugin_dir.h"

enum { N_THREADS = 8, N_ROUNDS = 60 };

static struct plugin_dir dir;
static atomic_int n_errors;

static void fill(void) {
    static const char *const files[] = {"ggml-marker.so",     "ggml-gpu.so",    "ggml-other.so",
                                        "ggml-init_fails.so", "ggml-twin-a.so", "ggml-twin-b.so"};
    plugin_dir_open(&dir);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); ++i)
        plugin_dir_add_from(&dir, FIXTURES, files[i], files[i]);
}

static void expect(bool condition) {
    if (!condition) atomic_fetch_add(&n_errors, 1);
}

static void list(void) {
    const size_t count = ggml_backend_dev_count();
    for (size_t i = 0; i < count; ++i)
        ggml_backend_dev_get(i);
    ggml_backend_dev_by_name("GPU0");
    ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_GPU);
    ggml_plugin_report_t report = ggml_plugin_report_new();
    expect(report != NULL);
    for (size_t i = 0; i < ggml_plugin_report_count(report); ++i) {
        const struct ggml_plugin_record *record = ggml_plugin_report_get(report, i);
        expect((record->status == GGML_HOST_OK) == (record->reg != NULL));
    }
    ggml_plugin_report_free(report);
}

// The stream keeps the plugin from being unloaded, whatever the others try.
static void compute(const char *device_name) {
    ggml_backend_t backend = ggml_backend_init_by_name(device_name, NULL);
    if (!backend) return;
    expect(strcmp(ggml_backend_name(backend), device_name) == 0);
    ggml_backend_free(backend);
}

static void unload(const char *name) {
    ggml_backend_reg_t reg = ggml_backend_reg_by_name(name);
    if (!reg) return;
    const enum ggml_host_status status = ggml_plugin_unload(reg);
    expect(status == GGML_HOST_OK || status == GGML_HOST_BUSY || status == GGML_HOST_NOT_FOUND);
}

// A graph on the built-in CPU.
static void compute_graph(int thread) {
    enum { N = 300 };
    float data[N], result[N];
    ggml_backend_t cpu = ggml_backend_init_by_name("CPU", NULL);
    struct ggml_context *ctx = ggml_init((struct ggml_init_params){1 << 20, NULL, true});
    if (!cpu) goto fail; // not loaded yet
    struct ggml_tensor *x = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, N);
    struct ggml_tensor *y = ggml_add(ctx, ggml_sqr(ctx, x), x);
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, y);
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(ctx, cpu);
    expect(buffer != NULL);
    for (int i = 0; i < N; ++i)
        data[i] = (float)(i + thread);
    ggml_backend_tensor_set(x, data, 0, sizeof(data));
    expect(ggml_backend_graph_compute(cpu, graph) == GGML_STATUS_SUCCESS);
    ggml_backend_tensor_get(y, result, 0, sizeof(result));
    for (int i = 0; i < N; ++i)
        expect(result[i] == data[i] * data[i] + data[i]);
    ggml_backend_buffer_free(buffer);
fail:
    ggml_free(ctx);
    ggml_backend_free(cpu);
}

// A plugin of the thread's own comes and goes; everybody's scans may find it.
static void scan_again(int thread, int round) {
    char name[32], path[300];
    snprintf(name, sizeof(name), "ggml-own%d.so", thread);
    snprintf(path, sizeof(path), "%s/%s", dir.path, name);
    if (round % 2) {
        expect(symlink("ggml-marker.so", path) == 0 || errno == EEXIST);
    } else {
        expect(unlink(path) == 0 || errno == ENOENT);
    }
    expect(ggml_plugin_load_all(dir.path, NULL) == GGML_HOST_OK);
}

static void *work(void *argument) {
    const int thread = *(const int *)argument;
    for (int round = 0; round < N_ROUNDS; ++round) {
        switch ((thread + round) % 6) {
        case 4: compute_graph(thread); break;
        case 5: scan_again(thread, round); break;
        case 0: expect(ggml_plugin_load_all(dir.path, NULL) == GGML_HOST_OK); break;
        case 1: list(); break;
        case 2: compute(round % 2 ? "GPU0" : "OTHER1"); break;
        case 3: unload(round % 2 ? "gpu" : round % 3 ? "other" : "twin"); break;
        }
    }
    return NULL;
}

static void test_loading_listing_and_unloading_at_once(void **state) {
    (void)state;
    pthread_t threads[N_THREADS];
    int numbers[N_THREADS];
    fill();
    for (int i = 0; i < N_THREADS; ++i) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, work, &numbers[i]), 0);
    }
    for (int i = 0; i < N_THREADS; ++i)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&n_errors), 0);
    assert_int_equal(ggml_plugin_load_all(dir.path, NULL), GGML_HOST_OK);
    assert_non_null(ggml_backend_dev_by_name("GPU0"));
    unload_everything();
    assert_int_equal(ggml_backend_dev_count(), 0);
    plugin_dir_close(&dir);
}

// --- devices that come meanwhile -----------------------------------------------------------------

enum { N_SWARM = 40 };

struct fixture_extension {
    int32_t (*find_one_more)(void);
    int32_t (*find_two_more)(void);
};

static void *announce(void *argument) {
    const struct fixture_extension *swarm =
        ggml_backend_reg_get_extension(argument, "org.example.grow", 1);
    for (int i = 0; i < N_SWARM / 2; ++i)
        expect(swarm && swarm->find_one_more() == GGML_HOST_OK);
    return NULL;
}

static void *change_others(void *argument) {
    const char *path = argument;
    for (int i = 0; i < N_ROUNDS; ++i) {
        ggml_backend_reg_t reg = NULL;
        if (ggml_plugin_load(path, &reg) == GGML_HOST_OK)
            expect(ggml_plugin_unload(reg) == GGML_HOST_OK);
    }
    return NULL;
}

// Their number only grows, and what is listed can be used.
static void *watch(void *argument) {
    size_t seen = 0;
    while (seen < N_SWARM) {
        const size_t now = ggml_backend_reg_dev_count(argument);
        expect(now >= seen);
        for (size_t i = seen; i < now; ++i) {
            ggml_backend_t backend =
                ggml_backend_dev_init(ggml_backend_reg_dev_get(argument, i), NULL);
            expect(backend != NULL);
            ggml_backend_free(backend);
        }
        seen = now;
        sched_yield();
    }
    return NULL;
}

// Announced from two threads while others load, unload and look: none is lost.
static void test_devices_come_while_others_load(void **state) {
    (void)state;
    ggml_backend_reg_t reg = NULL;
    pthread_t threads[4];
    plugin_dir_open(&dir);
    plugin_dir_add_from(&dir, FIXTURES, "ggml-swarm.so", "ggml-swarm.so");
    plugin_dir_add_from(&dir, FIXTURES, "ggml-marker.so", "ggml-marker.so");
    char marker[PATH_MAX];
    snprintf(marker, sizeof(marker), "%s", plugin_dir_path(&dir, "ggml-marker.so"));
    assert_int_equal(ggml_plugin_load(plugin_dir_path(&dir, "ggml-swarm.so"), &reg), GGML_HOST_OK);
    assert_int_equal(pthread_create(&threads[0], NULL, announce, reg), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, announce, reg), 0);
    assert_int_equal(pthread_create(&threads[2], NULL, change_others, marker), 0);
    assert_int_equal(pthread_create(&threads[3], NULL, watch, reg), 0);
    for (size_t i = 0; i < sizeof(threads) / sizeof(threads[0]); ++i)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&n_errors), 0);
    assert_int_equal(ggml_backend_reg_dev_count(reg), N_SWARM);
    assert_int_equal(ggml_plugin_unload(reg), GGML_HOST_OK);
    plugin_dir_close(&dir);
}

static void *load_all(void *argument) {
    ggml_plugin_load_all(dir.path, argument);
    return NULL;
}

static void test_load_all_from_every_thread_loads_once(void **state) {
    (void)state;
    pthread_t threads[N_THREADS];
    size_t n_loaded[N_THREADS];
    size_t sum = 0;
    fill();
    for (int i = 0; i < N_THREADS; ++i) {
        assert_int_equal(pthread_create(&threads[i], NULL, load_all, &n_loaded[i]), 0);
    }
    for (int i = 0; i < N_THREADS; ++i) {
        pthread_join(threads[i], NULL);
        sum += n_loaded[i];
    }
    assert_int_equal(sum, ggml_backend_reg_count());
    unload_everything();
    plugin_dir_close(&dir);
}

// F16 of a security review: a disk that takes its time holds up who wants its file, and nobody
// else.
static pthread_t waits_for_disk;
static sem_t disk, disk_reached;
static int opens_before; // those that the disk answers at once

static bool slow_disk(enum ggml_fault_point point, void *context) {
    (void)context;
    if (point == GGML_FAULT_OPEN && pthread_equal(pthread_self(), waits_for_disk) &&
        opens_before-- == 0) {
        sem_post(&disk_reached);
        sem_wait(&disk);
        ggml_fault_set_hook(NULL, NULL);
    }
    return true;
}

static void *load_from_slow_disk(void *path) {
    waits_for_disk = pthread_self();
    ggml_fault_set_hook(slow_disk, NULL);
    expect(ggml_plugin_load(path, NULL) == GGML_HOST_OK);
    return NULL;
}

static void *load_meanwhile(void *path) {
    expect(ggml_plugin_load(path, NULL) == GGML_HOST_OK);
    return NULL;
}

// Starts what waits for the disk once it has opened `opens_before` files.
static void start_slow(pthread_t *out_thread, void *(*function)(void *argument), char *argument) {
    atomic_store(&n_errors, 0);
    sem_init(&disk, 0, 0);
    sem_init(&disk_reached, 0, 0);
    assert_int_equal(pthread_create(out_thread, NULL, function, argument), 0);
    sem_wait(&disk_reached);
}

// Another thread loads this file before the disk answers the one that waits for it.
static void expect_meanwhile(pthread_t waits, char *path) {
    pthread_t other;
    struct timespec limit;
    assert_int_equal(pthread_create(&other, NULL, load_meanwhile, path), 0);
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 5;
    const int late = pthread_timedjoin_np(other, NULL, &limit);
    sem_post(&disk);
    pthread_join(waits, NULL);
    if (late) pthread_join(other, NULL);
    assert_int_equal(late, 0);
    assert_int_equal(atomic_load(&n_errors), 0);
}

static void test_f16_a_slow_file_holds_up_nobody_else(void **state) {
    (void)state;
    char slow[600], other[600];
    pthread_t waits;
    fill();
    snprintf(slow, sizeof(slow), "%s", plugin_dir_path(&dir, "ggml-marker.so"));
    snprintf(other, sizeof(other), "%s", plugin_dir_path(&dir, "ggml-gpu.so"));
    opens_before = 0;
    start_slow(&waits, load_from_slow_disk, slow);
    expect_meanwhile(waits, other);
    unload_everything();
    plugin_dir_close(&dir);
}

static void *load_all_from_slow_disk(void *folder) {
    waits_for_disk = pthread_self();
    ggml_fault_set_hook(slow_disk, NULL);
    expect(ggml_plugin_load_all(folder, NULL) == GGML_HOST_OK);
    return NULL;
}

// Wherever the one that looks at all files waits, another loads a file that the first has not seen.
static void load_beside_all(int n_opens) {
    char late_path[600];
    pthread_t waits;
    fill();
    const enum ggml_host_status first = ggml_plugin_load_all(dir.path, NULL);
    assert_int_equal(first, GGML_HOST_OK);
    unload_everything();
    snprintf(late_path, sizeof(late_path), "%s", plugin_dir_path(&dir, "ggml-late.so"));
    opens_before = n_opens;
    start_slow(&waits, load_all_from_slow_disk, dir.path);
    assert_int_equal(rename(plugin_dir_path(&dir, "ggml-other.so"), late_path), 0);
    expect_meanwhile(waits, late_path);
    const struct ggml_plugin_record *record = plugin_dir_record(&dir, "ggml-late.so");
    assert_int_equal(record->status, GGML_HOST_OK);
    assert_non_null(record->reg);
    assert_string_equal(record->message, "");
    assert_non_null(ggml_backend_dev_by_name("OTHER0"));
    assert_non_null(ggml_backend_dev_by_name("GPU0"));
    unload_everything();
    plugin_dir_close(&dir);
}

static void test_f16_looking_at_all_files_holds_up_nobody(void **state) {
    (void)state;
    for (int n_opens = 0; n_opens < 4; ++n_opens)
        load_beside_all(n_opens);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_devices_come_while_others_load),
        cmocka_unit_test(test_load_all_from_every_thread_loads_once),
        cmocka_unit_test(test_loading_listing_and_unloading_at_once),
        cmocka_unit_test(test_f16_a_slow_file_holds_up_nobody_else),
        cmocka_unit_test(test_f16_looking_at_all_files_holds_up_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
