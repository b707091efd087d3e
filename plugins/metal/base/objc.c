// SPDX-License-Identifier: MIT
// Opens Apple's libraries with dlopen() and registers the selectors of messages.inl, once for the
// process.
#include "base/objc.h"

#include <dlfcn.h>
#include <string.h>

#include "ggml-plugin.h"

// The tests have a library of their own in place of both.
#if !defined(METAL_LIBRARY)
#define METAL_OBJC_LIBRARY "/usr/lib/libobjc.A.dylib"
#define METAL_LIBRARY "/System/Library/Frameworks/Metal.framework/Metal"
#endif

struct mtl_api mtl_api;
mtl_selector mtl_selectors[MTL_MESSAGE_COUNT];

// By memcpy(): ISO C has no conversion between data and function pointers.
static bool find(void *library, const char *name, void *out_function) {
    void *found = dlsym(library, name);
    memcpy(out_function, &found, sizeof(found));
    return found != NULL;
}

// Opens Objective-C's runtime and Metal, so that the plugin links neither and loads on a Mac
// without Metal. The selectors of all messages are registered once. false with NO_DEVICE.
bool mtl_start(void) {
    static const char *const names[] = {
#define MTL_GET(result, name, selector) selector,
#define MTL_ASK(result, name, selector, parameters, arguments) selector,
#define MTL_DO(name, selector) selector,
#define MTL_TELL(name, selector, parameters, arguments) selector,
#include "base/messages.inl"
    };
    void *objc = dlopen(METAL_OBJC_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    void *metal = objc ? dlopen(METAL_LIBRARY, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!metal) {
        ggml_sdk_fail(GGML_HOST_NO_DEVICE, "no Metal on this system: %s", dlerror());
        return false;
    }
    if (!find(objc, "objc_msgSend", &mtl_api.send) ||
        !find(objc, "sel_registerName", &mtl_api.register_name) ||
        !find(objc, "objc_getClass", &mtl_api.get_class) ||
        !find(objc, "objc_autoreleasePoolPush", &mtl_api.pool_push) ||
        !find(objc, "objc_autoreleasePoolPop", &mtl_api.pool_pop) ||
        !find(metal, "MTLCreateSystemDefaultDevice", &mtl_api.default_device)) {
        ggml_sdk_fail(GGML_HOST_NO_DEVICE, "no Metal on this system: %s", dlerror());
        return false;
    }
    find(metal, "MTLCopyAllDevices", &mtl_api.all_devices);
    find(objc, "os_proc_available_memory", &mtl_api.available_memory); // of iOS
    for (int i = 0; i < MTL_MESSAGE_COUNT; ++i)
        mtl_selectors[i] = mtl_api.register_name(names[i]);
    return true;
}
