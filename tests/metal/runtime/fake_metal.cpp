// SPDX-License-Identifier: MIT
// Objective-C's runtime and Metal without a Mac: objects with reference counts, autorelease pools,
// devices, queues. Work of a queue is done as late as Metal may: when somebody waits for it, so
// that whoever forgets to wait gets poison. The host and the device see a buffer at different
// addresses; kernels may use what their encoder was told of. Dispatches of a concurrent encoder
// between two barriers are run last one first, so that whoever forgets a barrier gets poison, and
// so are encoders of a queue that share no buffer which one of them is said to write.
// FAKE_METAL_DEVICES: how many devices there are (1); FAKE_METAL_MEMORY: bytes of each (1 GiB);
// FAKE_METAL_FAMILY: whether they are of Metal 3 (1); FAKE_METAL_WIDTH: lanes of a SIMD group (32);
// FAKE_METAL_APPLE: family of Apple's GPUs (7, the first with matrices), 0: none of Apple's;
// FAKE_METAL_SYSTEM: macOS, of which 15 has residency sets (15).
// FAKE_METAL_MAX_BUFFER: bytes of the largest buffer (as much as there is); FAKE_METAL_UNIFIED:
// whether host and device share memory (1); FAKE_METAL_AVAILABLE: bytes that the system leaves to
// the process (0: it doesn't say).
#include "fake_metal.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "args.h"
#include "simt.h"

#define API extern "C" __attribute__((visibility("default")))

typedef const char *selector;

static std::recursive_mutex lock; // of everything here; held while kernels run
#define HOLD std::lock_guard<std::recursive_mutex> hold(lock);

// --- what goes wrong -----------------------------------------------------------------------------

static long n_faults, n_live, fail_after = -1;
static int fail_code;
static bool lost;
static const char *failed;

__attribute__((format(printf, 1, 2))) static void fault(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("fake Metal: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    ++n_faults;
    if (!getenv("FAKE_METAL_TOLERANT")) abort();
}

API void fake_metal_fail(long n, int code) {
    HOLD fail_after = n;
    fail_code = code;
    failed = nullptr;
    lost = false;
}
API const char *fake_metal_failed(void) {
    return failed;
}
API long fake_metal_live(void) {
    return n_live;
}
API long fake_metal_faults(void) {
    return n_faults;
}

// By selector.
static std::map<std::string, long> *calls = new std::map<std::string, long>();
static std::set<std::thread::id> *encoding_threads = new std::set<std::thread::id>();
static long drop_after = -1;
static bool dropped;

API long fake_metal_calls(const char *name) {
    HOLD return (*calls)[name];
}
API long fake_metal_threads(void) {
    HOLD return (long)encoding_threads->size();
}
API void fake_metal_drop_barrier(long n) {
    HOLD drop_after = n;
    dropped = false;
}
API bool fake_metal_dropped(void) {
    HOLD return dropped;
}

static bool fails(const char *what) {
    if (lost) return true;
    if (fail_after < 0 || fail_after-- > 0) return false;
    failed = what;
    lost = fail_code == FAKE_METAL_DEVICE_REMOVED;
    return true;
}

static size_t number(const char *name, size_t otherwise) {
    const char *text = getenv(name);
    return text ? strtoull(text, nullptr, 10) : otherwise;
}

// --- objects -------------------------------------------------------------------------------------

// Those that are gone keep their memory, so that messages to them are noticed.
struct object {
    const char *kind;
    long references = 1;
    explicit object(const char *name) : kind(name) {
        if (strcmp(kind, "class") != 0) ++n_live;
    }
    virtual ~object() {
    }
    virtual void end() {
    }
};

static std::vector<object *> *gone = new std::vector<object *>();

static object *retain(object *o) {
    if (o) ++o->references;
    return o;
}
static void release(object *o) {
    if (!o) return;
    if (--o->references > 0) return;
    o->end();
    gone->push_back(o);
    --n_live;
}

static thread_local std::vector<object *> *pool; // NULL in it: a pool begins

template <class T> static T *autorelease(T *o) {
    if (!o) return o;
    if (!pool || pool->empty())
        fault("a %s is given to an autorelease pool, and there is none", o->kind);
    else
        pool->push_back(o);
    return o;
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

struct klass : object {
    std::string name;
    explicit klass(const char *text) : object("class"), name(text) {
    }
};
struct string : object {
    std::string text;
    explicit string(const std::string &t) : object("NSString"), text(t) {
    }
};
struct error : object {
    long code;
    std::string text;
    error(long c, const std::string &t) : object("NSError"), code(c), text(t) {
    }
};
struct array : object {
    std::vector<object *> items;
    array() : object("NSArray") {
    }
    void end() override {
        for (object *o : items)
            release(o);
    }
};

// --- selectors and messages ----------------------------------------------------------------------

static std::set<std::string> *names = new std::set<std::string>();

API selector sel_registerName(const char *name) {
    HOLD return names->insert(name).first->c_str();
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

typedef void (*method)(void);
// By "kind selector".
static std::map<std::string, method> &methods() {
    static std::map<std::string, method> *all = new std::map<std::string, method>();
    return *all;
}

template <class F> static void add(const char *kind, const char *name, F *function) {
    methods()[std::string(kind) + " " + name] = (method)function;
}

static intptr_t nothing(object *, selector) {
    return 0;
}

extern "C" __attribute__((visibility("hidden"))) method fake_metal_find(object *self,
                                                                        selector name) {
    HOLD if (!self) return (method)nothing;
    ++(*calls)[name];
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

// --- Metal's objects -----------------------------------------------------------------------------

struct size3 {
    unsigned long width, height, depth;
};

struct device : object {
    unsigned index;
    size_t allocated = 0;
    explicit device(unsigned i) : object("MTLDevice"), index(i) {
    }
};

struct queue;
struct commands;
struct unit;
static std::set<queue *> *queues = new std::set<queue *>();

// Of memory that is the program's own the device has a copy, which is brought up to date around
// each kernel: programs that give it the host's address are found out.
struct buffer : object {
    device *owner;
    size_t length, mapped;
    bool borrowed = false, hidden = false; // hidden: private, the host doesn't see it
    char *contents = nullptr, *address = nullptr;
    std::vector<char> before; // what the device was shown last of borrowed memory
    buffer(device *d, size_t n)
        : object("MTLBuffer"), owner(d), length(n), mapped((n + 4095) / 4096 * 4096) {
    }
    bool map();
    bool borrow(char *memory);
    void show();
    void fetch();
    void end() override;
};

struct event : object {
    uint64_t value = 0;
    event() : object("MTLSharedEvent") {
    }
};
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
struct function : object {
    std::string name;
    std::map<unsigned long, int> values;
    explicit function(const std::string &text) : object("MTLFunction"), name(text) {
    }
};
struct pipeline : object {
    std::string name;
    std::map<unsigned long, int> values;
    explicit pipeline(const std::string &text) : object("MTLComputePipelineState"), name(text) {
    }
};

struct job {
    commands *owner;
    unit *what;
};

struct queue : object {
    device *owner;
    std::deque<commands *> pending; // committed, with a reference
    std::vector<job> jobs;          // of these, and not done
    bool running = false;
    struct residency *resident = nullptr; // the context's, which lives as long
    explicit queue(device *d) : object("MTLCommandQueue"), owner(d) {
        queues->insert(this);
    }
    void end() override;
};

// One step of a command buffer: false, and what went wrong.
typedef std::function<bool(std::string *)> step;
enum { READ = 1, WRITE = 2 };
typedef std::map<buffer *, unsigned long> usage; // READ, WRITE or both

// What Metal orders as a whole: an encoder, by what was said of its buffers, or a wait for an
// event, which all before and after it is in order with.
struct unit {
    std::vector<step> steps;
    usage used;
    bool fence;
};

struct commands : object {
    enum { NOT_ENQUEUED = 0, COMMITTED = 2, COMPLETED = 4, FAILED = 5 };
    queue *owner;
    unsigned long status = NOT_ENQUEUED;
    error *failure = nullptr;
    bool encoding = false;
    std::deque<unit> units; // the last one is that of an encoder which is open
    bool begun = false;     // some of it is done, or was to be
    long code = 0;          // of what went wrong, and why
    std::string why;
    std::vector<std::pair<event *, uint64_t>> signals;
    std::vector<object *> kept;
    std::set<buffer *> used;
    explicit commands(queue *q) : object("MTLCommandBuffer"), owner(q) {
        retain(q);
    }
    void keep(object *o) {
        kept.push_back(retain(o));
    }
    void end() override {
        if (encoding) fault("a command buffer is gone before its encoder has ended");
        for (object *o : kept)
            release(o);
        release(failure);
        release(owner);
    }
};

struct encoder : object {
    commands *owner;
    bool concurrent, ended = false;
    std::vector<step> open; // dispatches since the last barrier
    pipeline *current = nullptr;
    std::vector<char> bytes;
    usage used;
    encoder(commands *c, bool at_once)
        : object("MTLComputeCommandEncoder"), owner(c), concurrent(at_once) {
        retain(c);
        c->units.push_back({{}, {}, false});
    }
    void barrier() {
        std::vector<step> &steps = owner->units.back().steps;
        if (concurrent) std::reverse(open.begin(), open.end());
        steps.insert(steps.end(), open.begin(), open.end());
        open.clear();
    }
    void end() override {
        if (!ended) fault("an encoder is gone before it has ended");
        release(owner);
    }
};

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
    for (const queue *q : *queues) {
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

// --- running -------------------------------------------------------------------------------------

// A test may want a command buffer to fail.
static void begin(commands *c) {
    if (c->begun) return;
    c->begun = true;
    if (lost)
        c->code = FAKE_METAL_DEVICE_REMOVED, c->why = "the device was removed";
    else if (fails("what was queued"))
        c->code = fail_code, c->why = "as the test wants it";
}

// Ends the first command buffer of a queue. Whoever waits for what it was to signal goes on.
static void end_first(queue *q) {
    commands *c = q->pending.front();
    begin(c);
    for (auto &s : c->signals) {
        if (s.first->value < s.second) s.first->value = s.second;
    }
    c->status = c->code ? (unsigned long)commands::FAILED : (unsigned long)commands::COMPLETED;
    if (c->code) c->failure = new error(c->code, c->why);
    q->pending.pop_front();
    release(c);
}

static bool is_ordered(const unit &a, const unit &b) {
    if (a.fence || b.fence) return true;
    for (auto &x : a.used) {
        auto y = b.used.find(x.first);
        if (y != b.used.end() && ((x.second | y->second) & WRITE)) return true;
    }
    return false;
}

// The last one that Metal knows no reason to keep after an earlier one.
static size_t choose(const std::vector<job> &jobs) {
    for (size_t i = jobs.size() - 1; i > 0; --i) {
        size_t k = 0;
        while (k < i && !is_ordered(*jobs[k].what, *jobs[i].what))
            ++k;
        if (k == i) return i;
    }
    return 0;
}

static void run(const job &j) {
    begin(j.owner);
    for (size_t i = 0; i < j.what->steps.size() && j.owner->code == 0; ++i) {
        if (!j.what->steps[i](&j.owner->why)) j.owner->code = 3; // a page fault
    }
}

static bool has_work(const queue *q, const commands *c) {
    for (const job &j : q->jobs) {
        if (j.owner == c) return true;
    }
    return false;
}

// Command buffers end in their order; what comes after `last` may be done before it.
static void run_until(queue *q, const commands *last) {
    q->running = true;
    while (last->status == commands::COMMITTED) {
        if (!has_work(q, q->pending.front())) {
            end_first(q);
            continue;
        }
        const size_t i = choose(q->jobs);
        const job next = q->jobs[i];
        q->jobs.erase(q->jobs.begin() + (long)i);
        run(next);
    }
    q->running = false;
}

void queue::end() {
    if (!pending.empty()) run_until(this, pending.back());
    queues->erase(this);
}

// Runs other queues until the event has the value.
static bool reach(event *e, uint64_t value, std::string *why) {
    while (e->value < value) {
        commands *next = nullptr;
        for (queue *q : *queues) {
            if (q->running) continue;
            for (commands *c : q->pending) {
                for (auto &s : c->signals) {
                    if (s.first == e && s.second >= value && !next) next = c;
                }
            }
        }
        if (!next) {
            *why = "nothing that is queued signals an event that is waited for";
            return false;
        }
        run_until(next->owner, next);
    }
    return true;
}

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

// --- methods -------------------------------------------------------------------------------------

static bool is_open(encoder *self, const char *what) {
    if (self->ended) fault("%s after the encoder has ended", what);
    return !self->ended;
}

static void dispatch(encoder *self, selector, size3 groups, size3 threads) {
    HOLD if (!is_open(self, "a dispatch")) return;
    if (!self->current || self->bytes.empty())
        return fault("a dispatch without a pipeline or arguments");
    const std::string name = self->current->name;
    const unsigned n = (unsigned)(threads.width * threads.height * threads.depth);
    if (self->bytes.size() != simt_args_size(name.c_str()))
        return fault("%zu bytes of arguments for %s", self->bytes.size(), name.c_str());
    if (n == 0 || n > simt_max_threads(name.c_str()) ||
        groups.width * groups.height * groups.depth == 0)
        return fault("%u threads for %s", n, name.c_str());
    // The emulated kernels read what they are specialised for from the arguments.
    const gpu_args *args = (const gpu_args *)(const void *)self->bytes.data();
    for (auto &value : self->current->values) {
        if (value.second != (int)args->numbers[4 + value.first])
            return fault("%s is specialised for something else", name.c_str());
    }
    const std::vector<char> bytes = self->bytes;
    const usage used = self->used;
    for (auto &u : used) {
        self->owner->used.insert(u.first);
        self->owner->units.back().used[u.first] |= u.second;
    }
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

// --- copies --------------------------------------------------------------------------------------

struct blit : object {
    commands *owner;
    bool ended = false;
    explicit blit(commands *c) : object("MTLBlitCommandEncoder"), owner(c) {
        retain(c);
        c->units.push_back({{}, {}, false});
    }
    void add(const step &what) {
        owner->units.back().steps.push_back(what);
    }
    void end() override {
        if (!ended) fault("an encoder for copies is gone before it has ended");
        release(owner);
    }
    // Work on bytes of a buffer, which lives until it is done.
    bool takes(buffer *b, unsigned long offset, unsigned long size, unsigned long how) {
        if (ended) return fault("a copy after the encoder has ended"), false;
        if (offset % 4 || size % 4 || size == 0)
            return fault("a copy of %lu bytes at %lu: not by fours", size, offset), false;
        if (offset > b->length || size > b->length - offset)
            return fault("a copy beyond the end of a buffer"), false;
        owner->keep(b);
        owner->used.insert(b);
        owner->units.back().used[b] |= how;
        return true;
    }
};

// The device's own side of memory.
static void copy_bytes(blit *self, selector, buffer *from, unsigned long from_offset, buffer *to,
                       unsigned long to_offset, unsigned long size) {
    HOLD if (!self->takes(from, from_offset, size, READ) ||
             !self->takes(to, to_offset, size, WRITE)) return;
    if (from == to && from_offset < to_offset + size && to_offset < from_offset + size)
        return fault("a copy to where it comes from");
    self->add([=](std::string *) {
        memcpy((to->borrowed ? to->contents : to->address) + to_offset,
               (from->borrowed ? from->contents : from->address) + from_offset, size);
        return true;
    });
}

struct range {
    unsigned long location, length;
};
static void fill_bytes(blit *self, selector, buffer *b, range where, unsigned char value) {
    HOLD if (!self->takes(b, where.location, where.length, WRITE)) return;
    self->add([=](std::string *) {
        memset((b->borrowed ? b->contents : b->address) + where.location, value, where.length);
        return true;
    });
}

static void add_copies() {
    const char *kind = "MTLBlitCommandEncoder";
    add(
        "MTLCommandBuffer", "blitCommandEncoder", +[](commands *self, selector) -> object * {
            HOLD if (fails("blitCommandEncoder")) return nullptr;
            if (self->encoding || self->status) fault("a second encoder");
            self->encoding = true;
            return autorelease(new blit(self));
        });
    add(kind, "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:", copy_bytes);
    add(kind, "fillBuffer:range:value:", fill_bytes);
    add(
        kind, "endEncoding", +[](blit *self, selector) {
            HOLD if (self->ended) fault("a second end");
            self->ended = true;
            self->owner->encoding = false;
        });
}

// --- residency -----------------------------------------------------------------------------------

struct residency : object {
    std::set<buffer *> members;
    bool changed = false;
    residency() : object("MTLResidencySet") {
    }
    void end() override {
        for (buffer *b : members)
            release(b);
    }
};

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

// --- archives of pipelines -----------------------------------------------------------------------

// What a pipeline is made of, as a line of an archive's file.
static std::string line_of(const function *f) {
    std::string line = f->name;
    for (auto &value : f->values)
        line += " " + std::to_string(value.second);
    return line;
}

static const char *const archive_mark = "fake archive";
static long n_compiled;
API long fake_metal_compiled(void) {
    return n_compiled;
}

struct archive : object {
    std::set<std::string> lines;
    archive() : object("MTLBinaryArchive") {
    }
};
struct descriptor : object { // of an archive or a pipeline
    string *url = nullptr;
    function *what = nullptr;
    archive *from = nullptr;
    explicit descriptor(const char *name) : object(name) {
    }
    void end() override {
        release(url);
        release(what);
        release(from);
    }
};

static object *new_descriptor(const char *kind) {
    return new descriptor(kind);
}

static object *new_archive(device *, selector, descriptor *d, object **out_error) {
    HOLD archive *a = new archive();
    std::ifstream file(d->url ? d->url->text : "/dev/null");
    std::string line;
    bool good = !fails("newBinaryArchive");
    if (d->url) good = good && std::getline(file, line) && line == archive_mark;
    while (std::getline(file, line))
        a->lines.insert(line);
    if (good) return a;
    release(a);
    *out_error = autorelease(new error(1, "no archive"));
    return nullptr;
}

static object *new_pipeline(device *, selector, function *f, object **out_error);
static object *new_pipeline_of(device *self, selector name, descriptor *d, unsigned long how,
                               object **, object **out_error) {
    HOLD if (how != 0 && how != 4) fault("options %lu of a pipeline", how);
    const bool there = d->from && d->from->lines.count(line_of(d->what)) > 0;
    if (there || how == 0) return new_pipeline(self, name, d->what, out_error);
    *out_error = autorelease(new error(2, "not in the archive"));
    return nullptr;
}

static void add_archives() {
    const char *kind = "MTLComputePipelineDescriptor";
    add(
        "class", "fileURLWithPath:", +[](object *, selector, string *path) -> object * {
            HOLD return path && !fails("fileURLWithPath") ? autorelease(new string(path->text))
                                                          : nullptr;
        });
    add(
        "class", "arrayWithObject:", +[](object *, selector, object *o) -> object * {
            HOLD if (fails("arrayWithObject")) return nullptr;
            array *a = new array();
            a->items.push_back(retain(o));
            return autorelease(a);
        });
    add("MTLDevice", "newBinaryArchiveWithDescriptor:error:", new_archive);
    add("MTLDevice",
        "newComputePipelineStateWithDescriptor:options:reflection:error:", new_pipeline_of);
    add(
        "MTLBinaryArchiveDescriptor", "setUrl:", +[](descriptor *self, selector, string *url) {
            HOLD self->url = (string *)retain(url);
        });
    add(
        kind, "setComputeFunction:", +[](descriptor *self, selector, function *f) {
            HOLD self->what = (function *)retain(f);
        });
    add(
        kind, "setBinaryArchives:", +[](descriptor *self, selector, array *a) {
            HOLD self->from = (archive *)retain(a->items.at(0));
        });
    add(
        "MTLBinaryArchive", "addComputePipelineFunctionsWithDescriptor:error:",
        +[](archive *self, selector, descriptor *d, object **) {
            HOLD if (fails("addComputePipelineFunctions")) return false;
            ++n_compiled;
            self->lines.insert(line_of(d->what));
            return true;
        });
    add(
        "MTLBinaryArchive",
        "serializeToURL:error:", +[](archive *self, selector, string *url, object **) {
            HOLD std::ofstream file(url->text);
            file << archive_mark << "\n";
            if (fails("serializeToURL")) return false; // half written
            for (const std::string &line : self->lines)
                file << line << "\n";
            return file.good();
        });
}

static void wait_for(commands *self) {
    if (self->status == commands::NOT_ENQUEUED)
        return fault("a wait for a command buffer that isn't committed");
    if (self->status == commands::COMMITTED) run_until(self->owner, self);
}

static object *new_library(device *, selector, string *text, options *how, object **out_error) {
    HOLD if (fails("newLibraryWithSource") || !text) {
        *out_error = autorelease(new error(3, "as the test wants it"));
        return nullptr;
    }
    if (!how || how->fast_math) fault("kernels compiled with fast mathematics");
    return new library(text->text);
}

static object *new_pipeline(device *, selector, function *f, object **out_error) {
    HOLD if (!fails("newComputePipelineState")) {
        pipeline *p = new pipeline(f->name);
        p->values = f->values;
        return p;
    }
    *out_error = autorelease(new error(3, "as the test wants it"));
    return nullptr;
}

static object *new_buffer(device *self, selector, unsigned long length, unsigned long how) {
    HOLD if (how != 0 && how != 32) fault("options %lu for a buffer", how);
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
    if (length > number("FAKE_METAL_MAX_BUFFER", (size_t)1 << 30)) return nullptr;
    buffer *b = new buffer(self, length);
    if (b->borrow(memory)) return b;
    release(b);
    return nullptr;
}

static object *new_function(library *self, selector, string *name) {
    HOLD if (!name || fails("newFunctionWithName")) return nullptr;
    const bool there = self->source.find("GPU_KERNEL(" + name->text + ",") != std::string::npos &&
                       simt_args_size(name->text.c_str()) > 0;
    return there ? new function(name->text) : nullptr;
}

static object *new_descriptor(const char *kind);

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

static void add_foundation() {
    add(
        "any", "retain", +[](object *self, selector) { HOLD return retain(self); });
    add(
        "any", "release", +[](object *self, selector) { HOLD release(self); });
    add(
        "class", "stringWithUTF8String:", +[](object *, selector, const char *text) -> object * {
            HOLD return fails("stringWithUTF8String") ? nullptr : autorelease(new string(text));
        });
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

static void add_device() {
    add(
        "MTLDevice", "name", +[](device *self, selector) {
            HOLD return autorelease(new string("Emulated GPU " + std::to_string(self->index)));
        });
    add(
        "MTLDevice", "registryID",
        +[](device *self, selector) { return (uint64_t)(0x100000123 + self->index); });
    add(
        "MTLDevice", "recommendedMaxWorkingSetSize",
        +[](device *, selector) { return (uint64_t)number("FAKE_METAL_MEMORY", (size_t)1 << 30); });
    add(
        "MTLDevice", "currentAllocatedSize",
        +[](device *self, selector) { return (unsigned long)self->allocated; });
    add(
        "MTLDevice", "maxBufferLength", +[](device *, selector) {
            return (unsigned long)number("FAKE_METAL_MAX_BUFFER",
                                         number("FAKE_METAL_MEMORY", (size_t)1 << 30));
        });
    add(
        "MTLDevice", "hasUnifiedMemory",
        +[](device *, selector) { return number("FAKE_METAL_UNIFIED", 1) != 0; });
    add(
        "MTLDevice", "supportsFamily:", +[](device *, selector, long family) {
            return (family > 1000 && family <= 1000 + (long)number("FAKE_METAL_APPLE", 7)) ||
                   (family == 5001 && number("FAKE_METAL_FAMILY", 1) != 0);
        });
    add(
        "MTLDevice", "newCommandQueue", +[](device *self, selector) -> object * {
            HOLD return fails("newCommandQueue") ? nullptr : new queue(self);
        });
    add(
        "MTLDevice", "newSharedEvent", +[](device *, selector) -> object * {
            HOLD return fails("newSharedEvent") ? nullptr : new event();
        });
    add("MTLDevice", "newBufferWithLength:options:", new_buffer);
    add("MTLDevice", "newBufferWithBytes:length:options:", new_buffer_with_bytes);
    add("MTLDevice", "newBufferWithBytesNoCopy:length:options:deallocator:", new_buffer_no_copy);
    add("MTLDevice", "newLibraryWithSource:options:error:", new_library);
    add("MTLDevice", "newComputePipelineStateWithFunction:error:", new_pipeline);
    add(
        "MTLBuffer", "contents",
        +[](buffer *self, selector) { return self->hidden ? nullptr : self->contents; });
    add(
        "MTLBuffer", "gpuAddress",
        +[](buffer *self, selector) { return (uint64_t)(uintptr_t)self->address; });
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

static void add_commands() {
    add(
        "MTLCommandQueue", "commandBuffer", +[](queue *self, selector) -> object * {
            HOLD return fails("commandBuffer") ? nullptr : autorelease(new commands(self));
        });
    add(
        "MTLCommandBuffer", "computeCommandEncoderWithDispatchType:",
        +[](commands *self, selector, unsigned long type) -> object * {
            HOLD if (fails("computeCommandEncoder")) return nullptr;
            if (self->encoding || self->status || type > 1) fault("a second encoder");
            encoding_threads->insert(std::this_thread::get_id());
            self->encoding = true;
            return autorelease(new encoder(self, type == 1));
        });
    add(
        "MTLCommandBuffer",
        "encodeSignalEvent:value:", +[](commands *self, selector, event *e, uint64_t value) {
            HOLD if (self->encoding || self->status)
                fault("a signal within an encoder, or after commit");
            self->keep(e);
            self->signals.push_back({e, value});
        });
    add(
        "MTLCommandBuffer",
        "encodeWaitForEvent:value:", +[](commands *self, selector, event *e, uint64_t value) {
            HOLD if (self->encoding || self->status)
                fault("a wait within an encoder, or after commit");
            self->keep(e);
            const step wait = [=](std::string *why) { return reach(e, value, why); };
            self->units.push_back({{wait}, {}, true});
        });
    add(
        "MTLCommandBuffer", "commit", +[](commands *self, selector) {
            HOLD if (self->encoding || self->status) fault("commit within an encoder, or twice");
            if (self->owner->resident && self->owner->resident->changed)
                fault("work while a residency set's changes are not committed");
            self->status = commands::COMMITTED;
            retain(self);
            self->owner->pending.push_back(self);
            for (unit &u : self->units)
                self->owner->jobs.push_back({self, &u});
        });
    add(
        "MTLCommandBuffer", "waitUntilCompleted",
        +[](commands *self, selector) { HOLD wait_for(self); });
    add(
        "MTLCommandBuffer", "status", +[](commands *self, selector) { return self->status; });
    add(
        "MTLCommandBuffer", "error",
        +[](commands *self, selector) { return (object *)self->failure; });
}

static void add_encoder() {
    const char *kind = "MTLComputeCommandEncoder";
    add(
        kind, "setComputePipelineState:", +[](encoder *self, selector, pipeline *p) {
            HOLD if (!is_open(self, "a pipeline")) return;
            self->current = p;
            self->owner->keep(p);
        });
    add(
        kind, "setBytes:length:atIndex:",
        +[](encoder *self, selector, const void *bytes, unsigned long n, unsigned long i) {
            HOLD if (i != 0 || n > 4096) fault("%lu bytes at index %lu", n, i);
            if (is_open(self, "arguments"))
                self->bytes.assign((const char *)bytes, (const char *)bytes + n);
        });
    add(
        kind, "useResource:usage:", +[](encoder *self, selector, buffer *b, unsigned long how) {
            HOLD if ((how & ~3ul) || how == 0) fault("usage %lu of a resource", how);
            if (is_open(self, "a resource")) self->used[b] |= how;
        });
    add(kind, "dispatchThreadgroups:threadsPerThreadgroup:", dispatch);
    add(
        kind, "memoryBarrierWithScope:", +[](encoder *self, selector, unsigned long scope) {
            HOLD if (scope != 1) fault("a barrier of scope %lu", scope);
            if (!is_open(self, "a barrier")) return;
            if (drop_after >= 0 && drop_after-- == 0)
                dropped = true;
            else
                self->barrier();
        });
    add(
        kind, "endEncoding", +[](encoder *self, selector) {
            HOLD if (!is_open(self, "a second end")) return;
            self->barrier();
            self->ended = true;
            self->owner->encoding = false;
        });
}

__attribute__((constructor)) static void add_methods() {
    simt_limit_shared(32 << 10); // threadgroup memory of all families
    add_foundation();
    add_device();
    add_commands();
    add_encoder();
    add_archives();
    add_copies();
    add_residency();
}

// --- devices -------------------------------------------------------------------------------------

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
