// SPDX-License-Identifier: MIT
// The skeleton of a plugin in C++, to be cloned: classes behind the entries, memory by new, an
// exception that stays inside. Its device adds; null.c says at each "replace" what else to put.
#include <cstring>
#include <new>
#include <stdexcept>

#include "ggml-impl.h"
#include "ggml-plugin.h"
#include "ggml-shape.h"

namespace {

class Stream {
  public:
    // F32 additions of equal, contiguous shapes.
    static bool computes(const ggml_tensor *node) {
        const ggml_tensor *a = node->src[0];
        const ggml_tensor *b = node->src[1];
        return node->op == GGML_OP_ADD && is_plain(node) && is_plain(a) && is_plain(b) &&
               ggml_are_same_shape(node, a) && ggml_are_same_shape(a, b);
    }

    void compute(const ggml_graph *graph) {
        for (int i = 0; i < graph->n_nodes; ++i) {
            const ggml_tensor *node = graph->nodes[i];
            if (ggml_op_is_empty(node->op) || !(node->flags & GGML_TENSOR_FLAG_COMPUTE)) continue;
            if (!computes(node)) throw std::runtime_error("a node that supports_op declines");
            add(node);
        }
    }

  private:
    static bool is_plain(const ggml_tensor *tensor) {
        return tensor && tensor->type == GGML_TYPE_F32 && ggml_is_contiguous(tensor);
    }

    static void add(const ggml_tensor *node) {
        const auto *a = static_cast<const float *>(node->src[0]->data);
        const auto *b = static_cast<const float *>(node->src[1]->data);
        auto *sum = static_cast<float *>(node->data);
        for (int64_t i = 0; i < ggml_nelements(node); ++i)
            sum[i] = a[i] + b[i];
    }
};

void fail(ggml_host_status status, const char *text) {
    ggml_sdk_fail(status, "%s", text);
}

// --- stream --------------------------------------------------------------------------------------

const char *stream_name(ggml_backend_t) {
    return "C++";
}

void stream_free(ggml_backend_t backend) {
    delete static_cast<Stream *>(backend->context);
    delete backend;
}

int32_t stream_compute(ggml_backend_t backend, const ggml_graph *graph) {
    try {
        static_cast<Stream *>(backend->context)->compute(graph);
        return GGML_HOST_OK;
    } catch (const std::exception &reason) {
        fail(GGML_HOST_FAILED, reason.what());
        return GGML_HOST_FAILED;
    }
}

ggml_stream_table make_stream_table() {
    ggml_stream_table table = {};
    table.size = sizeof(table);
    memcpy(table.guid, "ggml-host/c++", 13);
    table.get_name = stream_name;
    table.free = stream_free;
    table.graph_compute = stream_compute;
    return table;
}

const ggml_stream_table stream_table = make_stream_table();

// --- device --------------------------------------------------------------------------------------

const char *device_name(ggml_backend_dev_t) {
    return "CXX0";
}

void device_memory(ggml_backend_dev_t, size_t *free, size_t *total) {
    *free = *total = 0;
}

enum ggml_backend_dev_type device_type(ggml_backend_dev_t) {
    return GGML_BACKEND_DEVICE_TYPE_ACCEL;
}

void device_props(ggml_backend_dev_t device, ggml_backend_dev_props *props) {
    props->name = props->description = device_name(device);
    props->type = device_type(device);
}

int32_t device_init(ggml_backend_dev_t device, const char *, ggml_backend_t *out_stream) {
    auto *backend = new (std::nothrow) ggml_backend();
    auto *stream = new (std::nothrow) Stream();
    if (!backend || !stream) {
        delete backend;
        delete stream;
        fail(GGML_HOST_OUT_OF_MEMORY, "no memory for a stream");
        return GGML_HOST_OUT_OF_MEMORY;
    }
    backend->table = &stream_table;
    backend->device = device;
    backend->context = stream;
    *out_stream = backend;
    return GGML_HOST_OK;
}

ggml_backend_buffer_type_t device_buffer_type(ggml_backend_dev_t) {
    return ggml_backend_cpu_buffer_type();
}

bool device_supports_op(ggml_backend_dev_t, const ggml_tensor *node) {
    return ggml_node_is_known(node) && (ggml_op_is_empty(node->op) || Stream::computes(node));
}

bool device_supports_buft(ggml_backend_dev_t device, ggml_backend_buffer_type_t buft) {
    return buft == device_buffer_type(device);
}

// --- backend -------------------------------------------------------------------------------------

ggml_backend_device device;

const char *reg_name(ggml_backend_reg_t) {
    return "CXX";
}

size_t reg_count(ggml_backend_reg_t) {
    return 1;
}

ggml_backend_dev_t reg_device(ggml_backend_reg_t, size_t) {
    return &device;
}

ggml_backend_table make_backend_table() {
    ggml_backend_table table = {};
    table.size = sizeof(table);
    table.get_name = reg_name;
    table.get_device_count = reg_count;
    table.get_device = reg_device;
    return table;
}

ggml_device_table make_device_table() {
    ggml_device_table table = {};
    table.size = sizeof(table);
    table.get_name = device_name;
    table.get_description = device_name;
    table.get_memory = device_memory;
    table.get_type = device_type;
    table.get_props = device_props;
    table.init_backend = device_init;
    table.get_buffer_type = device_buffer_type;
    table.supports_op = device_supports_op;
    table.supports_buft = device_supports_buft;
    return table;
}

ggml_backend_reg_t start() {
    static const ggml_backend_table backend_table = make_backend_table();
    static const ggml_device_table device_table = make_device_table();
    static ggml_backend_reg reg;
    // Once: a second host starts it while the first one reads these.
    static const bool is_set = [] {
        reg.table = &backend_table;
        device.table = &device_table;
        device.reg = &reg;
        return true;
    }();
    return is_set ? &reg : nullptr;
}

} // namespace

GGML_PLUGIN_NOTE("cxx", "", "1.0", 0, 0, 0)
GGML_PLUGIN_ENTRY(start, nullptr, nullptr, nullptr)
