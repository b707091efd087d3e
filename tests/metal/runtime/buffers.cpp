// SPDX-License-Identifier: MIT
// Buffers, which the host and the device see at different addresses, and residency sets.
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "simt.h"
#include "state.h"

namespace fake {

bool buffer::map() {
    const int file = memfd_create("buffer", 0);
    void *there[2] = {MAP_FAILED, MAP_FAILED};
    if (file >= 0 && ftruncate(file, (off_t)mapped) == 0) {
        for (void *&at : there)
            at = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    }
    if (file >= 0) close(file);
    if (there[0] == MAP_FAILED || there[1] == MAP_FAILED) return false;
    contents = (char *)there[0];
    address = (char *)there[1];
    memset(contents, 0xff, mapped);
    owner->allocated += mapped;
    return true;
}

bool buffer::borrow(char *memory) {
    void *there = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (there == MAP_FAILED) return false;
    borrowed = true;
    contents = memory;
    address = (char *)there;
    return true;
}

void buffer::show() {
    if (borrowed) {
        memcpy(address, contents, length);
        before.assign(address, address + length);
    }
    simt_memory_show(address, length);
}

// Another buffer may show the same memory: what the kernel has not changed is left alone.
void buffer::fetch() {
    simt_memory_remove(address);
    for (size_t i = 0; borrowed && i < length; ++i) {
        if (address[i] != before[i]) contents[i] = address[i];
    }
}

void buffer::end() {
    for (const queue *q : queues()) {
        for (const commands *c : q->pending) {
            if (c->used.count(this)) fault("a buffer is gone that queued work uses");
        }
    }
    if (!contents) return;
    munmap(address, mapped);
    if (borrowed) return;
    munmap(contents, mapped);
    owner->allocated -= mapped;
}

static object *new_buffer(device *self, selector, unsigned long length, unsigned long how) {
    HOLD if (how != 0 && how != 32) fault("options %lu for a buffer", how);
    if (length > max_buffer_length()) {
        fault("a buffer of %lu bytes, more than the device's largest", length);
        return nullptr;
    }
    if (length == 0 || fails("newBufferWithLength")) return nullptr;
    // As macOS, which goes on beyond what it recommends.
    if (self->allocated + length > 4 * number("FAKE_METAL_MEMORY", (size_t)1 << 30)) return nullptr;
    buffer *b = new buffer(self, length);
    b->hidden = how == 32;
    if (b->map()) return b;
    release(b);
    return nullptr;
}

static object *new_buffer_with_bytes(device *self, selector name, const void *bytes,
                                     unsigned long length, unsigned long how) {
    HOLD buffer *b = (buffer *)new_buffer(self, name, length, how);
    if (b) memcpy(b->contents, bytes, length);
    return b;
}

static object *new_buffer_no_copy(device *self, selector, char *memory, unsigned long length,
                                  unsigned long how, object *deallocator) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    HOLD if (how != 0 || deallocator) fault("options %lu or a deallocator for a buffer", how);
    if ((uintptr_t)memory % page != 0 || length % page != 0)
        fault("memory of a program that is not whole pages");
    if (length == 0 || fails("newBufferWithBytesNoCopy")) return nullptr;
    if (length > max_buffer_length()) return nullptr;
    buffer *b = new buffer(self, length);
    if (b->borrow(memory)) return b;
    release(b);
    return nullptr;
}

// --- residency -----------------------------------------------------------------------------------

void residency::end() {
    if (changed) fault("a residency set is gone before its changes are committed");
    for (buffer *b : members)
        release(b);
}

static void add_residency() {
    const char *kind = "MTLResidencySet";
    add(
        "MTLDevice", "newResidencySetWithDescriptor:error:",
        +[](device *, selector, object *descriptor, object **) -> object * {
            HOLD if (!descriptor) fault("a residency set without a descriptor");
            return fails("newResidencySet") ? nullptr : new residency();
        });
    add(
        kind, "addAllocation:", +[](residency *self, selector, buffer *b) {
            HOLD if (self->members.insert(b).second) retain(b);
            self->changed = true;
        });
    add(
        kind, "removeAllocation:", +[](residency *self, selector, buffer *b) {
            HOLD if (self->members.erase(b) == 0) fault("a buffer leaves a set that it isn't in");
            else release(b);
            self->changed = true;
        });
    add(
        kind, "commit", +[](residency *self, selector) { HOLD self->changed = false; });
    add(
        kind, "requestResidency", +[](residency *self, selector) {
            HOLD if (self->changed) fault("residency before the set's changes are committed");
        });
    add(
        "MTLCommandQueue", "addResidencySet:", +[](queue *self, selector, residency *set) {
            HOLD self->resident = set;
        });
}

void add_buffers() {
    add("MTLDevice", "newBufferWithLength:options:", new_buffer);
    add("MTLDevice", "newBufferWithBytes:length:options:", new_buffer_with_bytes);
    add("MTLDevice", "newBufferWithBytesNoCopy:length:options:deallocator:", new_buffer_no_copy);
    add(
        "MTLBuffer", "contents",
        +[](buffer *self, selector) { return self->hidden ? nullptr : self->contents; });
    add(
        "MTLBuffer", "gpuAddress",
        +[](buffer *self, selector) { return (uint64_t)(uintptr_t)self->address; });
    add_residency();
}

} // namespace fake
