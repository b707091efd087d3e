// SPDX-License-Identifier: MIT
// Objective-C's runtime and Foundation: objects with reference counts, autorelease pools, classes,
// and messages, which go to the method that the object's kind has for the selector.
#include "state.h"

namespace fake {

static long n_live;

// --- references ----------------------------------------------------------------------------------

object::object(const char *name) : kind(name) {
    if (strcmp(kind, "class") != 0) ++n_live;
}

object *retain(object *o) {
    if (o) ++o->references;
    return o;
}

void release(object *o) {
    static std::vector<object *> *gone = new std::vector<object *>(); // so that they are no leak
    if (!o) return;
    if (--o->references > 0) return;
    o->end();
    gone->push_back(o);
    --n_live;
}

static thread_local std::vector<object *> *pool; // NULL in it: a pool begins

void add_to_pool(object *o) {
    if (!pool || pool->empty())
        fault("a %s is given to an autorelease pool, and there is none", o->kind);
    else
        pool->push_back(o);
}

// --- messages ------------------------------------------------------------------------------------

std::map<std::string, method> &methods() {
    static std::map<std::string, method> *all = new std::map<std::string, method>();
    return *all;
}

static intptr_t nothing(object *, selector) {
    return 0;
}
static object *same(object *self, selector) {
    return self;
}

// --- Foundation ----------------------------------------------------------------------------------

static void add_objects() {
    add(
        "any", "retain", +[](object *self, selector) { HOLD return retain(self); });
    add(
        "any", "release", +[](object *self, selector) { HOLD release(self); });
    add(
        "class", "stringWithUTF8String:", +[](object *, selector, const char *text) -> object * {
            HOLD return fails("stringWithUTF8String") ? nullptr : autorelease(new string(text));
        });
    add(
        "NSString", "UTF8String", +[](string *self, selector) { return self->text.c_str(); });
    add(
        "NSArray", "count",
        +[](array *self, selector) { return (unsigned long)self->items.size(); });
    add(
        "NSArray", "objectAtIndex:", +[](array *self, selector, unsigned long i) {
            return self->items.at(i);
        });
    add(
        "NSError", "code", +[](error *self, selector) { return self->code; });
    add(
        "NSError", "localizedDescription",
        +[](error *self, selector) { HOLD return autorelease(new string(self->text)); });
}

__attribute__((constructor)) static void add_all() {
    add_objects();
    add_devices();
    add_buffers();
    add_events();
    add_queues();
    add_encoders();
    add_archives();
}

} // namespace fake

using namespace fake;

API long fake_metal_live(void) {
    return n_live;
}

API void *objc_autoreleasePoolPush(void) {
    if (!pool) pool = new std::vector<object *>();
    pool->push_back(nullptr);
    return (void *)(uintptr_t)pool->size();
}
API void objc_autoreleasePoolPop(void *token) {
    HOLD while (pool && pool->size() >= (uintptr_t)token) {
        release(pool->back());
        pool->pop_back();
    }
    if (pool && pool->empty()) {
        delete pool;
        pool = nullptr;
    }
}

API selector sel_registerName(const char *name) {
    HOLD static std::set<std::string> *names = new std::set<std::string>();
    return names->insert(name).first->c_str();
}
// Classes that a system lacks are no objects.
API object *objc_getClass(const char *name) {
    if (strcmp(name, "MTLResidencySetDescriptor") == 0 && number("FAKE_METAL_SYSTEM", 15) < 15)
        return nullptr;
    HOLD static std::map<std::string, klass *> *classes = new std::map<std::string, klass *>();
    klass *&found = (*classes)[name];
    if (!found) found = new klass(name);
    return found;
}

extern "C" __attribute__((visibility("hidden"))) method fake_metal_find(object *self,
                                                                        selector name) {
    HOLD if (!self) return (method)nothing;
    if (drops(name)) return strcmp(name, "retain") == 0 ? (method)same : (method)nothing;
    if (self->references <= 0) {
        fault("%s is sent to a %s that is gone", name, self->kind);
        return (method)nothing;
    }
    auto found = methods().find(std::string(self->kind) + " " + name);
    if (found == methods().end()) found = methods().find(std::string("any ") + name);
    if (found != methods().end()) return found->second;
    fault("a %s does not understand %s", self->kind, name);
    return (method)nothing;
}

// Goes on where fake_metal_find says, with the arguments as they came.
#if defined(__x86_64__)
asm(".text\n.globl objc_msgSend\n.type objc_msgSend,@function\nobjc_msgSend:\n"
    "push %rbp; mov %rsp,%rbp\n"
    "push %rdi; push %rsi; push %rdx; push %rcx; push %r8; push %r9\n"
    "sub $64,%rsp\n"
    "movsd %xmm0,(%rsp); movsd %xmm1,8(%rsp); movsd %xmm2,16(%rsp); movsd %xmm3,24(%rsp)\n"
    "call fake_metal_find\n"
    "movsd (%rsp),%xmm0; movsd 8(%rsp),%xmm1; movsd 16(%rsp),%xmm2; movsd 24(%rsp),%xmm3\n"
    "add $64,%rsp\n"
    "pop %r9; pop %r8; pop %rcx; pop %rdx; pop %rsi; pop %rdi\n"
    "pop %rbp; jmp *%rax\n.size objc_msgSend,.-objc_msgSend\n");
#elif defined(__aarch64__)
asm(".text\n.globl objc_msgSend\n.type objc_msgSend,%function\nobjc_msgSend:\n"
    "stp x29,x30,[sp,#-112]!\n"
    "stp x0,x1,[sp,#16]\nstp x2,x3,[sp,#32]\nstp x4,x5,[sp,#48]\nstp x6,x7,[sp,#64]\n"
    "stp d0,d1,[sp,#80]\nstp d2,d3,[sp,#96]\n"
    "bl fake_metal_find\nmov x16,x0\n"
    "ldp x0,x1,[sp,#16]\nldp x2,x3,[sp,#32]\nldp x4,x5,[sp,#48]\nldp x6,x7,[sp,#64]\n"
    "ldp d0,d1,[sp,#80]\nldp d2,d3,[sp,#96]\n"
    "ldp x29,x30,[sp],#112\nbr x16\n.size objc_msgSend,.-objc_msgSend\n");
#endif
