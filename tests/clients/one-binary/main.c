// SPDX-License-Identifier: MIT
// A client of the library, built by CMake or Meson: reports on the plugins that lie beside it,
// and computes a small graph on the best device.
#include <stdio.h>

#include <ggml-host.h> // ggml's headers, and the records of plugins

int main(void) {
    const float weights[] = {1, 0, -1, 2, 0.5f, 0.5f, 0.5f, 0.5f}, input[] = {3, -1, 2, 4};
    float result[2];
    ggml_backend_load_all(); // plugins beside this program, if there are any
    ggml_plugin_report_t report = ggml_plugin_report_new();
    for (size_t i = 0; i < ggml_plugin_report_count(report); ++i) {
        const struct ggml_plugin_record *plugin = ggml_plugin_report_get(report, i);
        printf("plugin %s: %s\n", plugin->path, plugin->reg ? "in use" : plugin->message);
    }
    ggml_plugin_report_free(report);

    struct ggml_init_params size = {8 * ggml_tensor_overhead() + ggml_graph_overhead(), NULL, true};
    struct ggml_context *ctx = ggml_init(size);
    struct ggml_tensor *w = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 4, 2);
    struct ggml_tensor *x = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4);
    struct ggml_tensor *y = ggml_relu(ctx, ggml_mul_mat(ctx, w, x));
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, y);

    ggml_backend_t stream = ggml_backend_init_best(); // a GPU if a plugin brought one, else the CPU
    ggml_backend_buffer_t memory = ggml_backend_alloc_ctx_tensors(ctx, stream);
    ggml_backend_tensor_set(w, weights, 0, sizeof(weights));
    ggml_backend_tensor_set(x, input, 0, sizeof(input));
    if (ggml_backend_graph_compute(stream, graph) != GGML_STATUS_SUCCESS) // any failure shows here
        return fprintf(stderr, "not computed: %s\n", ggml_last_error()), 1;
    ggml_backend_tensor_get(y, result, 0, sizeof(result));
    printf("%s computed [%g, %g]\n", ggml_backend_name(stream), result[0], result[1]);
    ggml_backend_buffer_free(memory);
    ggml_backend_free(stream);
    ggml_free(ctx);
    return 0;
}
