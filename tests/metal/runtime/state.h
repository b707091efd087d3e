// SPDX-License-Identifier: MIT
// What the files of the fake Metal runtime share: objects with reference counts, the methods that
// each kind of them has, what goes wrong, and what one file needs of another's objects.
#ifndef FAKE_METAL_STATE_H
#define FAKE_METAL_STATE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "fake_metal.h"

#define API extern "C" __attribute__((visibility("default")))

namespace fake {

typedef const char *selector;

std::recursive_mutex &lock(); // of everything here; held while kernels run
#define HOLD std::lock_guard<std::recursive_mutex> hold(lock());

// --- what goes wrong: faults.cpp -----------------------------------------------------------------

// Something that a program does wrong: ends it, or is counted.
void fault(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Whether the call that a test wants to fail is this one; and all after it where the device is
// lost.
bool fails(const char *what);
bool is_lost();
// The code that queued work fails with.
int code_of_failures();
// Counts the message. Whether a test wants it to be dropped.
bool drops(selector name);
// A setting of the environment.
size_t number(const char *name, size_t otherwise);

// --- objects: objects.cpp ------------------------------------------------------------------------

// Those that are gone keep their memory, so that messages to them are noticed.
struct object {
    const char *kind;
    long references = 1;
    explicit object(const char *name);
    virtual ~object() {
    }
    virtual void end() {
    }
};

object *retain(object *o);
void release(object *o); // NULL does nothing

// Released when the pool of this thread ends.
void add_to_pool(object *o);
template <class T> T *autorelease(T *o) {
    if (o) add_to_pool(o);
    return o;
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

typedef void (*method)(void);
// By "kind selector".
std::map<std::string, method> &methods();
template <class F> void add(const char *kind, const char *name, F *function) {
    methods()[std::string(kind) + " " + name] = (method)function;
}

// Of each file its own.
void add_devices();
void add_buffers();
void add_events();
void add_queues();
void add_encoders();
void add_archives();

// --- devices and what is made of kernels: devices.cpp, archives.cpp ------------------------------

struct device : object {
    unsigned index;
    size_t allocated = 0;
    explicit device(unsigned i) : object("MTLDevice"), index(i) {
    }
};
struct function : object {
    std::string name;
    std::map<unsigned long, int> values; // of the constants that it is specialised by
    explicit function(const std::string &text) : object("MTLFunction"), name(text) {
    }
};
struct pipeline : object {
    std::string name;
    std::map<unsigned long, int> values;
    explicit pipeline(const std::string &text) : object("MTLComputePipelineState"), name(text) {
    }
};

size_t max_buffer_length();
object *new_pipeline(device *, selector, function *f, object **out_error);
// Of an archive or of a pipeline.
object *new_descriptor(const char *kind);

// --- buffers and residency: buffers.cpp ----------------------------------------------------------

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
    void show();  // to kernels
    void fetch(); // what they wrote
    // The side that copies of the device go by.
    char *bytes() {
        return borrowed ? contents : address;
    }
    void end() override;
};

enum { READ = 1, WRITE = 2 };
typedef std::map<buffer *, unsigned long> usage; // READ, WRITE or both

struct residency : object {
    std::set<buffer *> members;
    bool changed = false;
    residency() : object("MTLResidencySet") {
    }
    void end() override;
};

// --- queues and command buffers: queues.cpp; encoders: encoders.cpp ------------------------------

// One step of a command buffer: false, and what went wrong.
typedef std::function<bool(std::string *)> step;

// What Metal orders as a whole: an encoder, by what was said of its buffers, or a wait for an
// event, which all before and after it is in order with.
struct unit {
    std::vector<step> steps;
    usage used;
    bool fence;
};

struct commands;
struct event;
struct job {
    commands *owner;
    unit *what;
};

struct queue : object {
    device *owner;
    std::deque<commands *> pending; // committed, with a reference
    std::vector<job> jobs;          // of these, and not done
    size_t n_open = 0;              // command buffers that have not ended, committed or not
    bool running = false;
    residency *resident = nullptr; // the context's, which lives as long
    explicit queue(device *d);
    void end() override;
};
std::set<queue *> &queues(); // all that there are

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
    explicit commands(queue *q);
    void keep(object *o) {
        kept.push_back(retain(o));
    }
    // Whether an encoder, a signal or a wait may follow: a fault if not.
    bool is_between(const char *what) const;
    void end() override;
};

// Does what is queued until `last` has ended.
void run_until(queue *q, const commands *last);

// --- events: events.cpp --------------------------------------------------------------------------

struct event : object {
    uint64_t value = 0;
    event() : object("MTLSharedEvent") {
    }
};

} // namespace fake

#endif
