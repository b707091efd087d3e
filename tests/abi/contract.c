// SPDX-License-Identifier: MIT
// Everything that crosses the plugin boundary, in one object whose description is the ABI dump.
#include "ggml-impl.h"
#include "ggml-plugin.h"

struct contract {
    struct ggml_plugin_note note;
    struct ggml_host_topology topology;
    struct ggml_host_table host_table;
    struct ggml_plugin_table plugin_table;
    struct ggml_extension_host_memory host_memory;
    struct ggml_extension_cpu_features cpu_features;
    struct ggml_extension_device_figures device_figures;
    struct ggml_device_figures figures;
    struct ggml_device_link link;
    struct ggml_extension_plugin_path plugin_path;
    struct ggml_extension_trial trial;
    struct ggml_extension_device_info device_info;
    struct ggml_extension_external_memory external_memory;
    struct ggml_external_memory memory_handle;
    struct ggml_extension_comm comm;
    struct ggml_comm_ranks comm_ranks;
    struct ggml_profile_slice profile_slice;
    struct ggml_extension_profile profile;
    struct ggml_backend_buffer_type buffer_type;
    struct ggml_backend_buffer buffer;
    struct ggml_backend stream;
    struct ggml_backend_event event;
    struct ggml_backend_device device;
    struct ggml_backend_reg reg;
    struct ggml_backend_feature feature;
    struct ggml_tensor tensor;
    struct ggml_graph graph;
    ggml_plugin_init_t entry;
    enum ggml_host_status status;
    enum ggml_machine machine;
    enum ggml_cpu_feature cpu_feature;
    enum ggml_plugin_flag plugin_flag;
    enum ggml_thread_bound thread_bound;
    enum ggml_tensor_flag tensor_flag;
    enum ggml_unary_op unary_op;
    enum ggml_glu_op glu_op;
    enum ggml_prec prec;
    enum ggml_log_level log_level;
};

extern GGML_PLUGIN_EXPORT struct contract ggml_contract;
struct contract ggml_contract;
