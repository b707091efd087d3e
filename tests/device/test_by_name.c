// SPDX-License-Identifier: MIT
// The headers for backends that a program names in its source: what they return with the plugin
// (the CPU stands for all) and without it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_device.h"
#include "ggml-blas.h"
#include "ggml-cuda.h"
#include "ggml-metal.h"
#include "ggml-rpc.h"
#include "ggml-vulkan.h"

static void test_a_backend_that_is_there(void **state) {
    char text[64] = "";
    size_t free = 0, total = 0;
    ggml_backend_set_n_threads_t set_n_threads = NULL;
    (void)state;
    assert_int_equal(ggml_by_name_device_count("CPU"), 1);
    assert_non_null(ggml_by_name_device("CPU", 0));
    assert_null(ggml_by_name_device("CPU", 1));
    ggml_backend_t stream = ggml_by_name_init("CPU", 0);
    assert_non_null(stream);
    assert_true(ggml_by_name_is("CPU", stream));
    assert_false(ggml_by_name_is("CUDA", stream));
    assert_false(ggml_by_name_is("CPU", NULL));
    assert_true(ggml_by_name_procedure("CPU", "ggml_backend_set_n_threads", &set_n_threads));
    set_n_threads(stream, 1);
    assert_false(ggml_by_name_procedure("CPU", "no_such_procedure", &set_n_threads));
    assert_true(set_n_threads == NULL);
    ggml_backend_free(stream);
    assert_non_null(ggml_by_name_buffer_type("CPU", 0));
    ggml_by_name_description("CPU", 0, text, sizeof(text));
    assert_true(text[0] != '\0');
    ggml_by_name_description("CPU", 0, text, 3);
    assert_int_equal(strlen(text), 2);
    ggml_by_name_description("CPU", -1, text, sizeof(text));
    assert_string_equal(text, "");
    ggml_by_name_memory("CPU", 0, &free, &total);
    assert_true(total > 0 && free <= total);
}

static void test_backends_that_are_missing(void **state) {
    char text[8] = "before";
    size_t free = 1, total = 1;
    (void)state;
    assert_null(ggml_backend_cuda_init(0));
    assert_null(ggml_backend_cuda_reg());
    assert_false(ggml_backend_is_cuda(NULL));
    assert_int_equal(ggml_backend_cuda_get_device_count(), 0);
    ggml_backend_cuda_get_device_description(0, text, sizeof(text));
    assert_string_equal(text, "");
    ggml_backend_cuda_get_device_memory(0, &free, &total);
    assert_true(free == 0 && total == 0);
    assert_null(ggml_backend_cuda_buffer_type(0));
    assert_null(ggml_backend_cuda_host_buffer_type());
    assert_false(ggml_backend_cuda_register_host_buffer(text, sizeof(text)));
    ggml_backend_cuda_unregister_host_buffer(text);
    assert_false(ggml_backend_cuda_allreduce_tensor(NULL, NULL, 0));
    assert_null(ggml_backend_vk_init(0));
    assert_null(ggml_backend_vk_reg());
    assert_int_equal(ggml_backend_vk_get_device_count(), 0);
    assert_null(ggml_backend_vk_buffer_type(0));
    assert_null(ggml_backend_vk_host_buffer_type());
    assert_null(ggml_backend_metal_init());
    assert_false(ggml_backend_is_metal(NULL));
    assert_false(ggml_backend_metal_supports_family(NULL, 7));
    ggml_backend_metal_capture_next_compute(NULL);
    ggml_backend_metal_set_abort_callback(NULL, NULL, NULL);
    assert_null(ggml_backend_blas_init());
    ggml_backend_blas_set_n_threads(NULL, 1);
    assert_null(ggml_backend_blas_reg());
    free = total = 1;
    assert_null(ggml_backend_rpc_init("localhost:1", 0));
    assert_null(ggml_backend_rpc_buffer_type("localhost:1", 0));
    ggml_backend_rpc_get_device_memory("localhost:1", 0, &free, &total);
    assert_true(free == 0 && total == 0);
    assert_null(ggml_backend_rpc_add_server("localhost:1"));
    ggml_backend_rpc_start_server("localhost:1", NULL, 1, 0, NULL);
    assert_null(ggml_backend_rpc_reg());
}

static const char *fake_name;

static const char *get_fake_name(ggml_backend_reg_t reg) {
    (void)reg;
    return fake_name;
}

// ggml names the backend of a server by its endpoint.
static void test_streams_of_servers(void **state) {
    struct fake_device fake;
    (void)state;
    fake_device_init(&fake, "RPC0");
    fake.reg_table.get_name = get_fake_name;
    ggml_backend_t stream = ggml_backend_dev_init(&fake.device, NULL);
    assert_non_null(stream);
    fake_name = "RPC[localhost:1]";
    assert_true(ggml_backend_is_rpc(stream));
    assert_false(ggml_backend_is_blas(stream));
    fake_name = "RPCs";
    assert_false(ggml_backend_is_rpc(stream));
    assert_false(ggml_backend_is_rpc(NULL));
    ggml_backend_free(stream);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_backend_that_is_there),
        cmocka_unit_test(test_backends_that_are_missing),
        cmocka_unit_test(test_streams_of_servers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
