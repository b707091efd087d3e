// SPDX-License-Identifier: MIT
// Binaries built as ggml's are: both generations compute, what would end the process is refused.
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "ggml-backend-impl.h"
#include "ggml-by-name.h"
#include "ggml-host.h"
#include "ggml-impl.h"

enum { N = 100 };

static const struct ggml_plugin_record *load(const char *path) {
    static ggml_plugin_report_t report;
    const struct ggml_plugin_record *found = NULL;
    ggml_backend_reg_t loaded = ggml_backend_reg_by_name("foreign");
    if (loaded) assert_int_equal(ggml_plugin_unload(loaded), GGML_HOST_OK);
    if (path) setenv("GGML_FOREIGN_PATH", path, 1);
    if (!path) unsetenv("GGML_FOREIGN_PATH");
    ggml_backend_load(FOREIGN_PLUGIN);
    if (report) ggml_plugin_report_free(report);
    report = ggml_plugin_report_new();
    for (size_t i = 0; i < ggml_plugin_report_count(report); ++i) {
        const struct ggml_plugin_record *record = ggml_plugin_report_get(report, i);
        if (strcmp(record->path, FOREIGN_PLUGIN) == 0 && (!found || record->reg)) found = record;
    }
    assert_non_null(found);
    return found;
}

struct sums {
    struct ggml_context *ctx;
    struct ggml_tensor *a, *b, *first, *second;
    struct ggml_cgraph *graph;
    ggml_backend_buffer_t buffer;
};

static void sums_new(struct sums *s, ggml_backend_t stream) {
    s->ctx = ggml_init((struct ggml_init_params){.mem_size = 1 << 20, .no_alloc = true});
    s->a = ggml_new_tensor_1d(s->ctx, GGML_TYPE_F32, N);
    s->b = ggml_new_tensor_1d(s->ctx, GGML_TYPE_F32, N);
    s->first = ggml_add(s->ctx, s->a, s->b);
    s->second = ggml_add(s->ctx, s->first, s->b);
    s->graph = ggml_new_graph(s->ctx);
    ggml_build_forward_expand(s->graph, s->second);
    s->buffer = ggml_backend_alloc_ctx_tensors(s->ctx, stream);
    assert_non_null(s->buffer);
}

static void sums_free(struct sums *s) {
    ggml_backend_buffer_free(s->buffer);
    ggml_free(s->ctx);
}

static void sums_check(struct sums *s, ggml_backend_t stream, float scale) {
    float a[N], b[N], result[N];
    for (int i = 0; i < N; ++i) {
        a[i] = scale * (float)i;
        b[i] = 0.5f;
    }
    ggml_backend_tensor_set(s->a, a, 0, sizeof(a));
    ggml_backend_tensor_set(s->b, b, 0, sizeof(b));
    assert_int_equal(ggml_backend_graph_compute(stream, s->graph), GGML_STATUS_SUCCESS);
    ggml_backend_tensor_get(s->second, result, 0, sizeof(result));
    for (int i = 0; i < N; ++i)
        assert_true(result[i] == a[i] + 1.0f);
}

// A node that is not to be computed keeps what it has, also where the binary doesn't know the flag.
static void check_skipped(struct sums *s, ggml_backend_t stream) {
    float before[N], after[N], other[N] = {0};
    ggml_backend_tensor_get(s->second, before, 0, sizeof(before));
    ggml_backend_tensor_set(s->a, other, 0, sizeof(other));
    s->second->flags &= ~GGML_TENSOR_FLAG_COMPUTE;
    ggml_set_name(s->first, "used elsewhere");
    assert_int_equal(ggml_backend_graph_compute(stream, s->graph), GGML_STATUS_SUCCESS);
    ggml_set_name(s->first, "");
    ggml_backend_tensor_get(s->second, after, 0, sizeof(after));
    assert_memory_equal(before, after, sizeof(after));
    s->second->flags |= GGML_TENSOR_FLAG_COMPUTE;
}

// An alternative that was not chosen has no memory, and stands among the others.
static void check_nowhere(ggml_backend_t stream) {
    struct sums s;
    sums_new(&s, stream);
    struct ggml_tensor *nowhere = ggml_add(s.ctx, s.first, s.a);
    assert_null(nowhere->data);
    ggml_graph_add_node(s.graph, nowhere);
    assert_int_equal(s.graph->n_nodes, 3);
    s.graph->nodes[1] = nowhere;
    s.graph->nodes[2] = s.second;
    sums_check(&s, stream, 1);
    sums_check(&s, stream, 2);
    // Alone it is no work at all.
    struct ggml_cgraph part = ggml_graph_view(s.graph, 1, 2);
    assert_int_equal(ggml_backend_graph_compute(stream, &part), GGML_STATUS_SUCCESS);
    sums_free(&s);
}

static ggml_backend_reg_t open_file(const char *path) {
    union {
        void *address;
        ggml_backend_reg_t (*load)(const char *path);
    } function = {ggml_backend_reg_get_proc_address(ggml_backend_reg_by_name("foreign"),
                                                    "ggml_backend_foreign_load")};
    assert_non_null(function.address);
    return function.load(path);
}

static int known_graphs(void) {
    union {
        void *address;
        ggml_backend_get_features_t get;
    } function;
    // Registered by itself it tells its own features.
    ggml_backend_reg_t own = open_file(FOREIGN_FOLDER "/v3/libggml-tiny.so");
    assert_non_null(own);
    assert_string_equal(ggml_backend_reg_name(own), "Tiny");
    function.address = ggml_backend_reg_get_proc_address(own, "ggml_backend_get_features");
    assert_string_equal(function.get(own)->name, "known_graphs");
    return atoi(function.get(own)->value);
}

static void check_device(const char *path, const char *generation) {
    const struct ggml_plugin_record *record = load(path);
    assert_int_equal(record->status, GGML_HOST_OK);
    ggml_backend_dev_t device = ggml_backend_dev_by_name("foreign-Tiny0");
    assert_non_null(device);
    assert_non_null(strstr(ggml_backend_dev_description(device), path));
    assert_non_null(strstr(ggml_backend_dev_description(device), generation));
    // A CPU of others never comes before this host's own.
    assert_ptr_not_equal(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU), device);

    struct sums s, other;
    ggml_backend_t stream = ggml_backend_dev_init(device, NULL);
    assert_non_null(stream);
    assert_false(ggml_backend_buft_is_host(ggml_backend_dev_buffer_type(device)));
    assert_ptr_equal(ggml_backend_buft_get_device(ggml_backend_dev_buffer_type(device)), device);
    sums_new(&s, stream);
    // A parameter that an addition had not when the binary was made.
    struct ggml_tensor node = *s.first;
    assert_true(ggml_backend_dev_supports_op(device, &node));
    node.op_params[3] = 1;
    assert_false(ggml_backend_dev_supports_op(device, &node));
    sums_check(&s, stream, 1);
    sums_check(&s, stream, 2);
    check_skipped(&s, stream);
    check_nowhere(stream);
    assert_null(ggml_backend_alloc_buffer(stream, SIZE_MAX - 63));
    sums_new(&other, stream);
    sums_check(&other, stream, 3);
    sums_check(&s, stream, 4);
    // Memory that was freed and comes again is not taken for the old one.
    sums_free(&s);
    sums_new(&s, stream);
    sums_check(&s, stream, 5);
    // A part of a graph: what other parts compute is a tensor like any other to it.
    struct ggml_cgraph part = ggml_graph_view(s.graph, 1, 2);
    assert_int_equal(ggml_backend_graph_compute(stream, &part), GGML_STATUS_SUCCESS);
    sums_free(&other);
    sums_free(&s);
    ggml_backend_free(stream);
}

static void test_version_3(void **state) {
    (void)state;
    check_device(FOREIGN_FOLDER "/v3/libggml-tiny.so", "interface 3");
}

// Whether hosts tell the device's buffers of each tensor that is placed.
static bool is_told(ggml_backend_dev_t device) {
    ggml_backend_buffer_t buffer =
        ggml_backend_buft_alloc_buffer(ggml_backend_dev_buffer_type(device), 64);
    assert_non_null(buffer);
    const bool told = buffer->table->init_tensor != NULL;
    ggml_backend_buffer_free(buffer);
    return told;
}

// One that attaches nothing needs not be told, and works as others do.
static void test_only_buffers_that_attach_something_are_told(void **state) {
    (void)state;
    check_device(FOREIGN_FOLDER "/v3/more/libggml-plain.so", "interface 3");
    assert_false(is_told(ggml_backend_dev_by_name("foreign-Tiny0")));
    check_device(FOREIGN_FOLDER "/v3/libggml-tiny.so", "interface 3");
    assert_true(is_told(ggml_backend_dev_by_name("foreign-Tiny0")));
}

static void test_repeated_graph(void **state) {
    (void)state;
    ggml_backend_t stream = ggml_backend_dev_init(ggml_backend_dev_by_name("foreign-Tiny0"), NULL);
    struct sums s;
    // This backend counts from the number of threads that it was given.
    assert_int_equal(known_graphs(), ggml_host_default_threads());
    sums_new(&s, stream);
    sums_check(&s, stream, 1);
    const int before = known_graphs();
    sums_check(&s, stream, 2);
    sums_check(&s, stream, 3);
    assert_int_equal(known_graphs(), before + 2);
    // Changed parameters make it another one.
    s.second->op_params[3] = 7;
    sums_check(&s, stream, 3);
    assert_int_equal(known_graphs(), before + 2);
    sums_free(&s);
    ggml_backend_free(stream);
}

static void test_a_node_that_comes_twice(void **state) {
    (void)state;
    ggml_backend_t stream = ggml_backend_dev_init(ggml_backend_dev_by_name("foreign-Tiny0"), NULL);
    struct sums s;
    sums_new(&s, stream);
    ggml_graph_add_node(s.graph, s.second);
    assert_int_equal(ggml_graph_n_nodes(s.graph), 3);
    sums_check(&s, stream, 1);
    // It is known again, and what has changed in it is seen.
    const int before = known_graphs();
    sums_check(&s, stream, 2);
    assert_int_equal(known_graphs(), before + 1);
    s.second->op_params[3] = 7;
    sums_check(&s, stream, 3);
    assert_int_equal(known_graphs(), before + 1);
    check_skipped(&s, stream);
    sums_free(&s);
    ggml_backend_free(stream);
}

// Conversions that ggml's backends say they have, and end the process over.
static void test_claims(void **state) {
    (void)state;
    ggml_backend_dev_t device = ggml_backend_dev_by_name("foreign-Tiny0");
    struct ggml_context *ctx =
        ggml_init((struct ggml_init_params){.mem_size = 1 << 16, .no_alloc = true});
    struct ggml_tensor *a = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, N);
    struct ggml_tensor *half = ggml_new_tensor_1d(ctx, GGML_TYPE_F16, N);
    struct ggml_tensor *whole = ggml_new_tensor_1d(ctx, GGML_TYPE_I16, N);
    assert_true(ggml_backend_dev_supports_op(device, ggml_cpy(ctx, a, half)));
    assert_false(ggml_backend_dev_supports_op(device, ggml_cpy(ctx, a, whole)));
    ggml_free(ctx);
}

static void expect_refused(const char *path, const char *word) {
    const struct ggml_plugin_record *record = load(path);
    assert_int_equal(record->status, GGML_HOST_NO_DEVICE);
    if (!strstr(record->message, word)) fail_msg("%s lacks '%s'", record->message, word);
    assert_null(ggml_backend_dev_by_name("foreign-Tiny0"));
}

static void test_refusals(void **state) {
    (void)state;
    expect_refused(NULL, "GGML_FOREIGN_PATH");
    expect_refused(FOREIGN_FOLDER "/v3/libggml-abort.so", "signal 6");
    expect_refused(FOREIGN_FOLDER "/v3/libggml-unknown.so", "version 99");
    expect_refused(FOREIGN_FOLDER "/v3/hostile/libggml-first.so", "version 1");
    expect_refused(FOREIGN_FOLDER "/v3/hostile/libggml-unversioned.so", "before its version 1");
    expect_refused(FOREIGN_FOLDER "/v3/hostile/libggml-linked.so", "before 2025");
    expect_refused(FOREIGN_FOLDER "/none.so", "No such file");
    expect_refused("v3/libggml-tiny.so", "not an absolute path");
    expect_refused(FOREIGN_PLUGIN, "no libggml-base");
}

static void test_a_file_that_others_can_write_is_refused(void **state) {
    (void)state;
    const char *path = FOREIGN_FOLDER "/v3/libggml-tiny.so";
    const char *allowed = getenv("GGML_ALLOW_UNSAFE_PLUGINS");
    // The plugin itself may lie in a checkout of somebody else's.
    const struct ggml_plugin_policy lax = {.size = sizeof(lax), .allow_unsafe = true};
    assert_int_equal(ggml_plugin_set_policy(&lax), GGML_HOST_OK);
    unsetenv("GGML_ALLOW_UNSAFE_PLUGINS");
    assert_int_equal(chmod(path, 0777), 0);
    expect_refused(path, "can be changed by others");
    assert_int_equal(chmod(path, 0755), 0);
    if (allowed) setenv("GGML_ALLOW_UNSAFE_PLUGINS", "1", 1);
    assert_int_equal(ggml_plugin_set_policy(NULL), GGML_HOST_OK);
}

// From the file: a helper's process would show neither.
static void test_files_that_would_harm_are_not_mapped(void **state) {
    (void)state;
    expect_refused(FOREIGN_FOLDER "/v3/hostile/libggml-relative.so", "relative paths");
    expect_refused(FOREIGN_FOLDER "/v3/hostile/libggml-stack.so", "executable stack");
}

static bool is_gone(long process) {
    for (int i = 0; i < 300; ++i, usleep(10000)) {
        char path[64], text[256] = "";
        snprintf(path, sizeof(path), "/proc/%ld/stat", process);
        FILE *file = fopen(path, "r");
        if (!file) return true;
        const size_t n = fread(text, 1, sizeof(text) - 1, file);
        fclose(file);
        if (n > 0 && strstr(text, ") Z ")) return true; // nobody may collect it here
    }
    return false;
}

static void test_what_a_binary_started_ends_with_its_helper(void **state) {
    char path[] = "/tmp/ggml-foreign-XXXXXX";
    long process = 0;
    (void)state;
    close(mkstemp(path));
    unlink(path);
    setenv("TINY_LEFT", path, 1);
    expect_refused(FOREIGN_FOLDER "/v3/hostile/libggml-leaves.so", "signal 6");
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld", &process), 1);
    fclose(file);
    unlink(path);
    assert_true(process > 0 && is_gone(process));
}

// Its number once the line is whole; 0 if that doesn't happen.
static long read_number(const char *path) {
    for (int i = 0; i < 500; ++i, usleep(10000)) {
        char text[32] = "";
        FILE *file = fopen(path, "r");
        const bool whole = file && fgets(text, sizeof(text), file) && strchr(text, '\n');
        if (file) fclose(file);
        if (whole) return atol(text);
    }
    return 0;
}

// F21.
static void test_what_a_binary_started_ends_with_the_application(void **state) {
    char path[] = "/tmp/ggml-foreign-XXXXXX";
    (void)state;
    close(mkstemp(path));
    setenv("TINY_LEFT", path, 1);
    const pid_t application = fork();
    if (application == 0) {
        load(FOREIGN_FOLDER "/v3/hostile/libggml-stays.so");
        _exit(0);
    }
    const long process = read_number(path);
    unlink(path);
    assert_true(process > 0 && kill((pid_t)process, 0) == 0);
    assert_int_equal(kill(application, SIGKILL), 0);
    assert_int_equal(waitpid(application, NULL, 0), application);
    const bool gone = is_gone(process);
    if (!gone) kill((pid_t)process, SIGKILL);
    assert_true(gone);
}

static void test_a_helper_that_closed_its_end_is_not_waited_for(void **state) {
    (void)state;
    const int64_t start = ggml_time_us();
    expect_refused(FOREIGN_FOLDER "/v3/hostile/libggml-mute.so", "20 seconds");
    assert_true(ggml_time_us() - start < 25000000);
}

// The pipe to the helper may get the numbers of its standard files then.
static void test_a_process_without_standard_files(void **state) {
    (void)state;
    for (int closed = 1; closed < 8; ++closed) {
        int status = 0;
        const pid_t child = fork();
        if (child == 0) {
            for (int fd = 0; fd < 3; ++fd)
                if (closed & 1 << fd) close(fd);
            _exit(load(FOREIGN_FOLDER "/v2/libggml-tiny.so")->status == GGML_HOST_OK ? 0 : 1);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        if (status != 0) fail_msg("status %d without the files %d", status, closed);
    }
}

static void test_version_2(void **state) {
    (void)state;
    check_device(FOREIGN_FOLDER "/v2/libggml-tiny.so", "interface 2");
}

// Of each the helper says three times what it does, which is more than any message has room for.
static void test_many_devices(void **state) {
    (void)state;
    const struct ggml_plugin_record *record = load(FOREIGN_FOLDER "/v3/more/libggml-many.so");
    if (record->status != GGML_HOST_OK) fail_msg("%s", record->message);
    assert_int_equal(ggml_backend_reg_dev_count(record->reg), 40);
    assert_non_null(ggml_backend_dev_by_name("foreign-Tiny39"));
}

static void *open_twin(void *unused) {
    (void)unused;
    return open_file(FOREIGN_FOLDER "/v3/twin/libggml-twin.so");
}

static void test_threads_open_a_file_once(void **state) {
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    void *opened[THREADS];
    (void)state;
    load("none");
    for (int i = 0; i < THREADS; ++i)
        assert_int_equal(pthread_create(&threads[i], NULL, open_twin, NULL), 0);
    for (int i = 0; i < THREADS; ++i)
        assert_int_equal(pthread_join(threads[i], &opened[i]), 0);
    for (int i = 0; i < THREADS; ++i)
        assert_true(opened[i] && opened[i] == opened[0]);
}

// Of files that the application opened too, beside those of the environment.
static void test_names_of_devices_differ(void **state) {
    (void)state;
    load("none");
    const size_t count = ggml_backend_dev_count();
    ggml_backend_reg_t twin = open_twin(NULL);
    ggml_backend_reg_t same = open_file(FOREIGN_FOLDER "/v3/more/libggml-same.so");
    assert_true(twin && same);
    ggml_backend_register(twin);
    ggml_backend_register(same);
    load(FOREIGN_FOLDER "/v3/more/libggml-many.so");
    assert_int_equal(ggml_backend_dev_count(), count + 2 + 40);
    for (size_t i = 0; i < ggml_backend_dev_count(); ++i) {
        for (size_t j = 0; j < i; ++j)
            assert_string_not_equal(ggml_backend_dev_name(ggml_backend_dev_get(i)),
                                    ggml_backend_dev_name(ggml_backend_dev_get(j)));
    }
}

static ggml_backend_reg_t add_server(const char *endpoint) {
    union {
        void *address;
        ggml_backend_reg_t (*add)(const char *endpoint);
    } function = {ggml_backend_reg_get_proc_address(ggml_backend_reg_by_name("Tiny"),
                                                    "ggml_backend_rpc_add_server")};
    assert_non_null(function.address);
    return function.add(endpoint);
}

static void check_sums_on(const char *name) {
    struct sums s;
    ggml_backend_dev_t device = ggml_backend_dev_by_name(name);
    assert_non_null(device);
    ggml_backend_t stream = ggml_backend_dev_init(device, NULL);
    assert_non_null(stream);
    sums_new(&s, stream);
    sums_check(&s, stream, 1);
    sums_free(&s);
    ggml_backend_free(stream);
}

// "foreign" has the devices, and programs ask for the backend that they named.
static void check_is_of(const char *device, const char *backend, bool expected) {
    ggml_backend_t stream = ggml_backend_dev_init(ggml_backend_dev_by_name(device), NULL);
    assert_non_null(stream);
    if (ggml_by_name_is(backend, stream) != expected) fail_msg("%s: %s", device, backend);
    ggml_backend_free(stream);
}

static void test_streams_are_of_the_backend_that_programs_name(void **state) {
    (void)state;
    load(FOREIGN_FOLDER "/v3/libggml-tiny.so");
    assert_non_null(add_server("far:1"));
    check_is_of("foreign-Tiny0", "Tiny", true);
    check_is_of("foreign-Tiny0", "foreign", true);
    check_is_of("foreign-Tiny0", "CPU", false);
    check_is_of("foreign-Tiny0", "BLAS", false);
    check_is_of("foreign-Tiny1", "Tiny", true); // of a server
    check_is_of("foreign-Tiny1", "CPU", false);
    check_is_of("CPU", "CPU", true);
    check_is_of("CPU", "Tiny", false);
}

static void test_servers_are_added(void **state) {
    (void)state;
    load(FOREIGN_FOLDER "/v3/libggml-tiny.so");
    const size_t count = ggml_backend_dev_count();
    // A binary that the environment names is found under its own name too, with the same devices.
    ggml_backend_reg_t tiny = ggml_backend_reg_by_name("tiny");
    assert_non_null(tiny);
    assert_string_equal(ggml_backend_reg_name(tiny), "Tiny");
    assert_ptr_equal(ggml_backend_reg_dev_get(tiny, 0), ggml_backend_dev_by_name("foreign-Tiny0"));
    assert_null(ggml_backend_reg_by_name("Tinier"));

    assert_null(add_server("none"));
    assert_null(add_server("dead")); // which would end this process
    assert_non_null(strstr(ggml_last_error(), "signal 6"));
    assert_non_null(strstr(ggml_last_error(), "connecting to dead"));
    assert_int_equal(ggml_backend_dev_count(), count);

    ggml_backend_reg_t far = add_server("far:1");
    assert_non_null(far);
    assert_string_equal(ggml_backend_reg_name(far), "Tiny[far]");
    assert_int_equal(ggml_backend_dev_count(), count + 1);
    assert_ptr_equal(ggml_backend_reg_dev_get(far, 0), ggml_backend_dev_by_name("foreign-Tiny1"));
    // What programs written for ggml do then has nothing left to do.
    ggml_backend_register(far);
    assert_int_equal(ggml_backend_dev_count(), count + 1);
    assert_ptr_equal(add_server("far:1"), far);
    assert_int_equal(ggml_backend_dev_count(), count + 1);
    check_sums_on("foreign-Tiny1");
}

// A helper would find a server that serves this process and nobody else meanwhile.
static void test_a_server_that_is_added_again_is_not_tried_again(void **state) {
    char endpoint[] = "one:/tmp/ggml-foreign-XXXXXX";
    char *path = endpoint + strlen("one:");
    (void)state;
    close(mkstemp(path));
    load(FOREIGN_FOLDER "/v3/libggml-tiny.so");
    ggml_backend_reg_t one = add_server(endpoint);
    assert_non_null(one);
    assert_ptr_equal(add_server(endpoint), one);
    // Its devices are there again after the plugin was.
    load(FOREIGN_FOLDER "/v2/libggml-tiny.so");
    load(FOREIGN_FOLDER "/v3/libggml-tiny.so");
    assert_null(ggml_backend_dev_by_name("foreign-Tiny1"));
    assert_ptr_equal(add_server(endpoint), one);
    unlink(path);
    check_sums_on("foreign-Tiny1");
}

static void *add_slow_server(void *endpoint) {
    return add_server(endpoint);
}

// Another thread waits for a server that says nothing: its helper is still there when the server
// that is known has been found.
static void test_a_known_server_waits_for_no_other(void **state) {
    char folder[] = "/tmp/ggml-foreign-XXXXXX", endpoint[64];
    const char *path = endpoint + strlen("slow:");
    pthread_t thread;
    void *slow;
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(endpoint, sizeof(endpoint), "slow:%s/fifo", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    load(FOREIGN_FOLDER "/v3/libggml-tiny.so");
    ggml_backend_reg_t far = add_server("far:1");
    assert_non_null(far);
    assert_int_equal(pthread_create(&thread, NULL, add_slow_server, endpoint), 0);
    const int fd = open(path, O_WRONLY); // once the helper is there
    assert_true(fd >= 0);
    assert_ptr_equal(add_server("far:1"), far);
    void (*usual)(int) = signal(SIGPIPE, SIG_IGN);
    assert_int_equal(write(fd, "", 1), 1);
    signal(SIGPIPE, usual);
    assert_int_equal(pthread_join(thread, &slow), 0);
    assert_null(slow);
    close(fd);
    unlink(path);
    rmdir(folder);
}

static void test_servers_of_the_environment(void **state) {
    (void)state;
    setenv("GGML_FOREIGN_RPC", "dead,far:1", 1);
    load(FOREIGN_FOLDER "/v2/libggml-tiny.so");
    unsetenv("GGML_FOREIGN_RPC");
    check_sums_on("foreign-Tiny0");
    check_sums_on("foreign-Tiny1");
    union {
        void *address;
        ggml_backend_get_features_t get;
    } function = {ggml_backend_reg_get_proc_address(ggml_backend_reg_by_name("foreign"),
                                                    "ggml_backend_get_features")};
    const struct ggml_backend_feature *features = function.get(ggml_backend_reg_by_name("foreign"));
    assert_string_equal(features[1].name, "dead");
    assert_non_null(strstr(features[1].value, "signal 6"));
}

static void test_folder(void **state) {
    (void)state;
    const struct ggml_plugin_record *record = load(FOREIGN_FOLDER "/v3");
    union {
        void *address;
        ggml_backend_get_features_t get;
    } function;
    assert_int_equal(record->status, GGML_HOST_OK);
    assert_int_equal(ggml_backend_reg_dev_count(record->reg), 1);
    function.address = ggml_backend_reg_get_proc_address(record->reg, "ggml_backend_get_features");
    const struct ggml_backend_feature *features = function.get(record->reg);
    assert_non_null(strstr(features[0].name, "libggml-abort.so"));
    assert_non_null(strstr(features[0].value, "refused: "));
    assert_non_null(strstr(features[1].name, "libggml-tiny.so"));
    assert_string_equal(features[1].value, "ggml's backend interface 3, ggml 0.0-test");
    assert_non_null(strstr(features[2].name, "libggml-unknown.so"));
    assert_null(features[3].name);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_version_3),
        cmocka_unit_test(test_repeated_graph),
        cmocka_unit_test(test_a_node_that_comes_twice),
        cmocka_unit_test(test_claims),
        cmocka_unit_test(test_folder),
        cmocka_unit_test(test_a_file_that_others_can_write_is_refused),
        cmocka_unit_test(test_files_that_would_harm_are_not_mapped),
        cmocka_unit_test(test_what_a_binary_started_ends_with_its_helper),
        cmocka_unit_test(test_what_a_binary_started_ends_with_the_application),
        cmocka_unit_test(test_a_helper_that_closed_its_end_is_not_waited_for),
        cmocka_unit_test(test_a_process_without_standard_files),
        cmocka_unit_test(test_version_2),
        cmocka_unit_test(test_many_devices),
        cmocka_unit_test(test_only_buffers_that_attach_something_are_told),
        cmocka_unit_test(test_servers_are_added),
        cmocka_unit_test(test_a_server_that_is_added_again_is_not_tried_again),
        cmocka_unit_test(test_a_known_server_waits_for_no_other),
        cmocka_unit_test(test_streams_are_of_the_backend_that_programs_name),
        cmocka_unit_test(test_servers_of_the_environment),
        cmocka_unit_test(test_threads_open_a_file_once),
        cmocka_unit_test(test_names_of_devices_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
