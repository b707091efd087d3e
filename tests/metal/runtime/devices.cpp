// SPDX-License-Identifier: MIT
// Devices with limits as real ones have them, and what is made of the kernels' source: libraries,
// functions, pipelines. A kernel that the source has is the emulated one of the same name.
#include "simt.h"
#include "state.h"

namespace fake {

struct options : object {
    bool fast_math = true;
    options() : object("MTLCompileOptions") {
    }
};
struct library : object {
    std::string source;
    explicit library(const std::string &text) : object("MTLLibrary"), source(text) {
    }
};
// Values of the constants that functions are specialised by.
struct constants : object {
    std::map<unsigned long, int> values;
    constants() : object("MTLFunctionConstantValues") {
    }
};

static size_t memory_size() {
    return number("FAKE_METAL_MEMORY", (size_t)1 << 30);
}

size_t max_buffer_length() {
    return number("FAKE_METAL_MAX_BUFFER", memory_size());
}

// --- kernels -------------------------------------------------------------------------------------

static object *new_library(device *, selector, string *text, options *how, object **out_error) {
    HOLD if (fails("newLibraryWithSource") || !text) {
        *out_error = autorelease(new error(3, "as the test wants it"));
        return nullptr;
    }
    if (!how || how->fast_math) fault("kernels compiled with fast mathematics");
    return new library(text->text);
}

object *new_pipeline(device *, selector, function *f, object **out_error) {
    HOLD if (!fails("newComputePipelineState")) {
        pipeline *p = new pipeline(f->name);
        p->values = f->values;
        return p;
    }
    *out_error = autorelease(new error(3, "as the test wants it"));
    return nullptr;
}

static object *new_function(library *self, selector, string *name) {
    HOLD if (!name || fails("newFunctionWithName")) return nullptr;
    const bool there = self->source.find("GPU_KERNEL(" + name->text + ",") != std::string::npos &&
                       simt_args_size(name->text.c_str()) > 0;
    return there ? new function(name->text) : nullptr;
}

// Those that ask for values of constants.
static bool is_special(const std::string &name) {
    static const std::set<std::string> special = {
#define METAL_KERNEL(name) "kernel_" #name,
#include "metal_kernel_list.inl"
    };
    return special.count(name) > 0;
}

static object *new_special_function(library *self, selector name, string *kernel, constants *values,
                                    object **out_error) {
    HOLD function *f = (function *)new_function(self, name, kernel);
    if (f && is_special(f->name) && values->values.size() != 4)
        fault("%s without values of its constants", f->name.c_str());
    if (f) f->values = values->values;
    if (!f) *out_error = autorelease(new error(3, "as the test wants it"));
    return f;
}

static void add_kernels() {
    add(
        "class", "new", +[](klass *self, selector) -> object * {
            HOLD if (fails("new")) return nullptr;
            if (self->name == "MTLBinaryArchiveDescriptor" ||
                self->name == "MTLComputePipelineDescriptor")
                return new_descriptor(self->name.c_str());
            if (self->name == "MTLFunctionConstantValues") return new constants();
            if (self->name == "MTLResidencySetDescriptor") return new object("descriptor");
            if (self->name != "MTLCompileOptions") fault("new of %s", self->name.c_str());
            return new options();
        });
    add("MTLDevice", "newLibraryWithSource:options:error:", new_library);
    add("MTLDevice", "newComputePipelineStateWithFunction:error:", new_pipeline);
    add(
        "MTLCompileOptions", "setFastMathEnabled:", +[](options *self, selector, bool value) {
            self->fast_math = value;
        });
    add(
        "MTLLibrary", "newFunctionWithName:", +[](library *self, selector s, string *name) {
            HOLD if (name && is_special(name->text)) fault("constants without values");
            return new_function(self, s, name);
        });
    add("MTLLibrary", "newFunctionWithName:constantValues:error:", new_special_function);
    add(
        "MTLFunctionConstantValues", "setConstantValue:type:atIndex:",
        +[](constants *self, selector, const int *value, unsigned long type, unsigned long i) {
            HOLD if (type != 29) fault("a constant of type %lu", type);
            self->values[i] = *value;
        });
    add(
        "MTLComputePipelineState", "maxTotalThreadsPerThreadgroup", +[](pipeline *self, selector) {
            return (unsigned long)simt_max_threads(self->name.c_str());
        });
    add(
        "MTLComputePipelineState", "threadExecutionWidth",
        +[](pipeline *, selector) { return (unsigned long)number("FAKE_METAL_WIDTH", 32); });
}

// --- devices -------------------------------------------------------------------------------------

static bool supports(long family) {
    return (family > 1000 && family <= 1000 + (long)number("FAKE_METAL_APPLE", 7)) ||
           (family == 5001 && number("FAKE_METAL_FAMILY", 1) != 0);
}

void add_devices() {
    simt_limit_shared(32 << 10); // threadgroup memory of all families
    simt_use_metal_rules(true);
    add_kernels();
    add(
        "MTLDevice", "name", +[](device *self, selector) {
            HOLD return autorelease(new string("Emulated GPU " + std::to_string(self->index)));
        });
    add(
        "MTLDevice", "registryID",
        +[](device *self, selector) { return (uint64_t)(0x100000123 + self->index); });
    add(
        "MTLDevice", "recommendedMaxWorkingSetSize",
        +[](device *, selector) { return (uint64_t)memory_size(); });
    add(
        "MTLDevice", "currentAllocatedSize",
        +[](device *self, selector) { return (unsigned long)self->allocated; });
    add(
        "MTLDevice", "maxBufferLength",
        +[](device *, selector) { return (unsigned long)max_buffer_length(); });
    add(
        "MTLDevice", "hasUnifiedMemory",
        +[](device *, selector) { return number("FAKE_METAL_UNIFIED", 1) != 0; });
    add(
        "MTLDevice",
        "supportsFamily:", +[](device *, selector, long family) { return supports(family); });
}

} // namespace fake

using namespace fake;

API object *MTLCreateSystemDefaultDevice(void) {
    HOLD return fails("MTLCreateSystemDefaultDevice") || number("FAKE_METAL_DEVICES", 1) == 0
        ? nullptr
        : new device(0);
}
API size_t os_proc_available_memory(void) {
    return number("FAKE_METAL_AVAILABLE", 0);
}
API object *MTLCopyAllDevices(void) {
    HOLD if (fails("MTLCopyAllDevices")) return nullptr;
    array *all = new array();
    for (unsigned i = 0; i < number("FAKE_METAL_DEVICES", 1); ++i)
        all->items.push_back(new device(i));
    return all;
}
