// SPDX-License-Identifier: MIT
// Encoders: of kernels, whose dispatches between two barriers are run last one first where the
// encoder is concurrent, so that whoever forgets a barrier gets poison; and of copies.
#include <stdio.h>

#include <algorithm>
#include <thread>

#include "args.h"
#include "simt.h"
#include "state.h"

namespace fake {

struct size3 {
    unsigned long width, height, depth;
};
struct range {
    unsigned long location, length;
};

static std::set<std::thread::id> &threads() { // that encoded something
    static std::set<std::thread::id> *all = new std::set<std::thread::id>();
    return *all;
}

struct encoder : object {
    commands *owner;
    bool ended = false;
    encoder(const char *name, commands *c) : object(name), owner(c) {
        retain(c);
        c->encoding = true;
        c->units.push_back({{}, {}, false});
    }
    std::vector<step> &steps() {
        return owner->units.back().steps;
    }
    void uses(buffer *b, unsigned long how) {
        owner->used.insert(b);
        owner->units.back().used[b] |= how;
    }
    bool is_open(const char *what) const {
        if (ended) fault("%s after the encoder has ended", what);
        return !ended;
    }
    void end() override {
        if (!ended) fault("an encoder is gone before it has ended");
        release(owner);
    }
};

struct compute : encoder {
    bool concurrent;
    std::vector<step> open; // dispatches since the last barrier
    pipeline *current = nullptr;
    std::vector<char> bytes;
    usage used;
    compute(commands *c, bool at_once)
        : encoder("MTLComputeCommandEncoder", c), concurrent(at_once) {
    }
    void barrier() {
        if (concurrent) std::reverse(open.begin(), open.end());
        steps().insert(steps().end(), open.begin(), open.end());
        open.clear();
    }
};

struct blit : encoder {
    explicit blit(commands *c) : encoder("MTLBlitCommandEncoder", c) {
    }
    // Work on bytes of a buffer, which lives until it is done.
    bool takes(buffer *b, unsigned long offset, unsigned long size, unsigned long how) {
        if (!is_open("a copy")) return false;
        if (offset % 4 || size % 4 || size == 0)
            return fault("a copy of %lu bytes at %lu: not by fours", size, offset), false;
        if (offset > b->length || size > b->length - offset)
            return fault("a copy beyond the end of a buffer"), false;
        owner->keep(b);
        uses(b, how);
        return true;
    }
};

// --- kernels -------------------------------------------------------------------------------------

static bool run_kernel(const simt_launch &launch, const usage &used, std::string *why) {
    char message[256];
    std::map<buffer *, std::vector<char>> read; // what is said to be read alone
    for (auto &u : used) {
        u.first->show();
        if (u.second == READ)
            read[u.first].assign(u.first->address, u.first->address + u.first->length);
    }
    const bool good = simt_run(&launch, message, sizeof(message));
    for (auto &u : read) {
        if (memcmp(u.first->address, u.second.data(), u.first->length) != 0)
            fault("%s writes to a buffer that is said to be read", launch.kernel);
    }
    for (auto &u : used)
        u.first->fetch();
    if (good) return true;
    fprintf(stderr, "fake Metal: %s\n", message);
    *why = message;
    return false;
}

// The emulated kernels read what they are specialised for from the arguments.
static bool is_special_for(const pipeline *p, const std::vector<char> &bytes) {
    const gpu_args *args = (const gpu_args *)(const void *)bytes.data();
    for (auto &value : p->values) {
        if (value.second != (int)args->numbers[4 + value.first]) return false;
    }
    return true;
}

static void dispatch(compute *self, selector, size3 groups, size3 size) {
    HOLD if (!self->is_open("a dispatch")) return;
    if (!self->current || self->bytes.empty())
        return fault("a dispatch without a pipeline or arguments");
    const std::string name = self->current->name;
    const unsigned n = (unsigned)(size.width * size.height * size.depth);
    if (self->bytes.size() != simt_args_size(name.c_str()))
        return fault("%zu bytes of arguments for %s", self->bytes.size(), name.c_str());
    if (n == 0 || n > simt_max_threads(name.c_str()) ||
        groups.width * groups.height * groups.depth == 0)
        return fault("%u threads for %s", n, name.c_str());
    if (!is_special_for(self->current, self->bytes))
        return fault("%s is specialised for something else", name.c_str());
    const std::vector<char> bytes = self->bytes;
    const usage used = self->used;
    for (auto &u : used)
        self->uses(u.first, u.second);
    self->open.push_back([=](std::string *why) {
        const simt_launch launch = {
            name.c_str(),
            {(unsigned)groups.width, (unsigned)groups.height, (unsigned)groups.depth},
            n,
            bytes.data(),
            0};
        return run_kernel(launch, used, why);
    });
}

static void add_compute() {
    const char *kind = "MTLComputeCommandEncoder";
    add(
        "MTLCommandBuffer", "computeCommandEncoderWithDispatchType:",
        +[](commands *self, selector, unsigned long type) -> object * {
            HOLD if (fails("computeCommandEncoder")) return nullptr;
            if (!self->is_between("a second encoder") || type > 1) return nullptr;
            threads().insert(std::this_thread::get_id());
            return autorelease(new compute(self, type == 1));
        });
    add(
        kind, "setComputePipelineState:", +[](compute *self, selector, pipeline *p) {
            HOLD if (!self->is_open("a pipeline")) return;
            self->current = p;
            self->owner->keep(p);
        });
    add(
        kind, "setBytes:length:atIndex:",
        +[](compute *self, selector, const void *bytes, unsigned long n, unsigned long i) {
            HOLD if (i != 0 || n > 4096) fault("%lu bytes at index %lu", n, i);
            if (self->is_open("arguments"))
                self->bytes.assign((const char *)bytes, (const char *)bytes + n);
        });
    add(
        kind, "useResource:usage:", +[](compute *self, selector, buffer *b, unsigned long how) {
            HOLD if ((how & ~3ul) || how == 0) fault("usage %lu of a resource", how);
            if (self->is_open("a resource")) self->used[b] |= how;
        });
    add(kind, "dispatchThreadgroups:threadsPerThreadgroup:", dispatch);
    add(
        kind, "memoryBarrierWithScope:", +[](compute *self, selector, unsigned long scope) {
            HOLD if (scope != 1) fault("a barrier of scope %lu", scope);
            if (self->is_open("a barrier")) self->barrier();
        });
    add(
        kind, "endEncoding", +[](compute *self, selector) {
            HOLD if (!self->is_open("a second end")) return;
            self->barrier();
            self->ended = true;
            self->owner->encoding = false;
        });
}

// --- copies --------------------------------------------------------------------------------------

static void copy_bytes(blit *self, selector, buffer *from, unsigned long from_offset, buffer *to,
                       unsigned long to_offset, unsigned long size) {
    HOLD if (!self->takes(from, from_offset, size, READ) ||
             !self->takes(to, to_offset, size, WRITE)) return;
    if (from == to && from_offset < to_offset + size && to_offset < from_offset + size)
        return fault("a copy to where it comes from");
    self->steps().push_back([=](std::string *) {
        memcpy(to->bytes() + to_offset, from->bytes() + from_offset, size);
        return true;
    });
}

static void fill_bytes(blit *self, selector, buffer *b, range where, unsigned char value) {
    HOLD if (!self->takes(b, where.location, where.length, WRITE)) return;
    self->steps().push_back([=](std::string *) {
        memset(b->bytes() + where.location, value, where.length);
        return true;
    });
}

static void add_blit() {
    const char *kind = "MTLBlitCommandEncoder";
    add(
        "MTLCommandBuffer", "blitCommandEncoder", +[](commands *self, selector) -> object * {
            HOLD if (fails("blitCommandEncoder")) return nullptr;
            return self->is_between("a second encoder") ? autorelease(new blit(self)) : nullptr;
        });
    add(kind, "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:", copy_bytes);
    add(kind, "fillBuffer:range:value:", fill_bytes);
    add(
        kind, "endEncoding", +[](blit *self, selector) {
            HOLD if (!self->is_open("a second end")) return;
            self->ended = true;
            self->owner->encoding = false;
        });
}

void add_encoders() {
    add_compute();
    add_blit();
}

} // namespace fake

using namespace fake;

API long fake_metal_threads(void) {
    HOLD return (long)threads().size();
}
