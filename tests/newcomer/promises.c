// SPDX-License-Identifier: MIT
// An application for README's table of what holds with and without probing: loads the plugins of a
// folder either way, says what became of each, and adds on a device.
#include <stdio.h>
#include <string.h>

#include <ggml-host.h>

// Only what worked in a process of its own is loaded.
static void load_probed(const char *folder) {
    struct ggml_probe_options options = {
        .size = sizeof(options), .dir = folder, .flags = GGML_PROBE_NO_CACHE, .deadline_ms = 1000};
    ggml_probe_report_t report = NULL;
    if (ggml_plugin_probe(&options, &report) == GGML_HOST_OK) {
        for (size_t i = 0; i < ggml_probe_report_count(report); ++i) {
            const struct ggml_plugin_record *plugin = ggml_probe_report_get(report, i)->plugin;
            printf("plugin %s: %s\n", plugin->path, ggml_host_status_text(plugin->status));
        }
        ggml_plugin_load_probed(report, NULL);
    }
    ggml_probe_report_free(report);
}

static void load_at_once(const char *folder) {
    ggml_backend_load_all_from_path(folder);
    ggml_plugin_report_t report = ggml_plugin_report_new();
    for (size_t i = 0; i < ggml_plugin_report_count(report); ++i) {
        const struct ggml_plugin_record *plugin = ggml_plugin_report_get(report, i);
        printf("plugin %s: %s\n", plugin->path, ggml_host_status_text(plugin->status));
    }
    ggml_plugin_report_free(report);
}

// 1 + 2, by the device itself or by a process of its own.
static bool add(ggml_backend_dev_t device, bool isolated) {
    const float one = 1, two = 2;
    float sum = 0;
    if (isolated && ggml_host_isolate(device, NULL, &device) != GGML_HOST_OK) return false;
    ggml_backend_t stream = ggml_backend_dev_init(device, NULL);
    struct ggml_init_params size = {4 * ggml_tensor_overhead() + ggml_graph_overhead(), NULL, true};
    struct ggml_context *ctx = ggml_init(size);
    struct ggml_tensor *a = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 1);
    struct ggml_tensor *b = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 1);
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, ggml_add(ctx, a, b));
    ggml_backend_buffer_t memory = ggml_backend_alloc_ctx_tensors(ctx, stream);
    ggml_backend_tensor_set(a, &one, 0, sizeof(one));
    ggml_backend_tensor_set(b, &two, 0, sizeof(two));
    const bool good = ggml_backend_graph_compute(stream, graph) == GGML_STATUS_SUCCESS;
    if (good) {
        ggml_backend_tensor_get(ggml_graph_node(graph, 0), &sum, 0, sizeof(sum));
        printf("%s computed %g\n", ggml_backend_dev_name(device), sum);
    } else {
        printf("%s: %s\n", ggml_backend_dev_name(device), ggml_last_error());
    }
    ggml_backend_buffer_free(memory);
    ggml_backend_free(stream);
    if (isolated) ggml_host_isolated_free(device);
    ggml_free(ctx);
    return good;
}

// Usage: promises load|probe FOLDER [DEVICE [isolated]]
int main(int argc, char **argv) {
    if (argc < 3) return 2;
    if (strcmp(argv[1], "probe") == 0)
        load_probed(argv[2]);
    else
        load_at_once(argv[2]);
    fflush(stdout);
    ggml_backend_dev_t device = ggml_backend_dev_by_name(argc > 3 ? argv[3] : "CPU");
    if (!device) return 3;
    if (!add(device, argc > 4)) add(ggml_backend_dev_by_name("CPU"), false);
    return 0;
}
