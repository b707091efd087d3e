// SPDX-License-Identifier: MIT
// Objective-C's runtime and Metal from C: [x commit] is mtl_commit(x). Declared here and found when
// the program runs, so that neither Apple's headers nor a compiler for Objective-C are needed. A
// message to NULL does nothing and returns 0.
#ifndef METAL_BASE_OBJC_H
#define METAL_BASE_OBJC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void *mtl_id;
typedef void *mtl_selector;
typedef unsigned long mtl_word; // NSUInteger
typedef long mtl_number;        // NSInteger
struct mtl_size {
    mtl_word width, height, depth;
};
struct mtl_range {
    mtl_word location, length;
};

enum {
    MTL_FAMILY_APPLE_1 = 1001,
    MTL_FAMILY_APPLE_7 = 1007, // matrices of SIMD groups
    MTL_FAMILY_APPLE_9 = 1009,
    MTL_FAMILY_MAC_2 = 2002,
    MTL_FAMILY_METAL_3 = 5001
};
enum { MTL_STORAGE_SHARED = 0, MTL_STORAGE_PRIVATE = 32 }; // MTLResourceOptions
enum { MTL_USAGE_READ = 1, MTL_USAGE_WRITE = 2 };
enum { MTL_DISPATCH_SERIAL = 0, MTL_DISPATCH_CONCURRENT = 1 };
enum { MTL_SCOPE_BUFFERS = 1 };
enum { MTL_TYPE_INT = 29 };             // MTLDataType
enum { MTL_PIPELINE_FROM_ARCHIVE = 4 }; // MTLPipelineOptionFailOnBinaryArchiveMiss
enum { MTL_STATUS_COMPLETED = 4, MTL_STATUS_ERROR = 5 };
// Codes of MTLCommandBufferErrorDomain.
enum { MTL_ERROR_ACCESS_REVOKED = 4, MTL_ERROR_OUT_OF_MEMORY = 8, MTL_ERROR_DEVICE_REMOVED = 11 };

// What was found in the libraries.
struct mtl_api {
    void (*send)(void); // objc_msgSend, called as what each message is
    mtl_selector (*register_name)(const char *name);
    mtl_id (*get_class)(const char *name);
    void *(*pool_push)(void); // what @autoreleasepool does
    void (*pool_pop)(void *pool);
    mtl_id (*default_device)(void);
    mtl_id (*all_devices)(void);      // NULL where there is but one device
    size_t (*available_memory)(void); // of the process; NULL: the system has no limit for one
};

enum mtl_message {
#define MTL_GET(result, name, selector) MTL_MESSAGE_##name,
#define MTL_ASK(result, name, selector, parameters, arguments) MTL_MESSAGE_##name,
#define MTL_DO(name, selector) MTL_MESSAGE_##name,
#define MTL_TELL(name, selector, parameters, arguments) MTL_MESSAGE_##name,
#include "base/messages.inl"
    MTL_MESSAGE_COUNT
};

extern struct mtl_api mtl_api;
extern mtl_selector mtl_selectors[MTL_MESSAGE_COUNT];

#define MTL_LIST(...) __VA_ARGS__
#define MTL_SELECTOR(name) mtl_selectors[MTL_MESSAGE_##name]
#define MTL_GET(result, name, selector)                                                            \
    static inline result mtl_##name(mtl_id self) {                                                 \
        return ((result(*)(mtl_id, mtl_selector))mtl_api.send)(self, MTL_SELECTOR(name));          \
    }
#define MTL_ASK(result, name, selector, parameters, arguments)                                     \
    static inline result mtl_##name(mtl_id self, MTL_LIST parameters) {                            \
        return ((result(*)(mtl_id, mtl_selector, MTL_LIST parameters))mtl_api.send)(               \
            self, MTL_SELECTOR(name), MTL_LIST arguments);                                         \
    }
#define MTL_DO(name, selector)                                                                     \
    static inline void mtl_##name(mtl_id self) {                                                   \
        ((void (*)(mtl_id, mtl_selector))mtl_api.send)(self, MTL_SELECTOR(name));                  \
    }
#define MTL_TELL(name, selector, parameters, arguments)                                            \
    static inline void mtl_##name(mtl_id self, MTL_LIST parameters) {                              \
        ((void (*)(mtl_id, mtl_selector, MTL_LIST parameters))mtl_api.send)(                       \
            self, MTL_SELECTOR(name), MTL_LIST arguments);                                         \
    }
#include "base/messages.inl"
#undef MTL_SELECTOR

// Opens the libraries and finds everything. False after set_error: NO_DEVICE. [init]
bool mtl_start(void);

#endif
