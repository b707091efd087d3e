// SPDX-License-Identifier: MIT
// Queues and command buffers. Work is done as late as Metal may, when somebody waits for it, so
// that whoever forgets to wait gets poison; encoders of a queue that share no buffer which one of
// them is said to write are done last one first.
#include "state.h"

namespace fake {

enum { MOST_COMMANDS = 64 }; // of a queue at a time, if nobody asks for more

std::set<queue *> &queues() {
    static std::set<queue *> *all = new std::set<queue *>();
    return *all;
}

queue::queue(device *d) : object("MTLCommandQueue"), owner(d) {
    queues().insert(this);
}

void queue::end() {
    if (!pending.empty()) run_until(this, pending.back());
    queues().erase(this);
}

commands::commands(queue *q) : object("MTLCommandBuffer"), owner(q) {
    retain(q);
    ++q->n_open;
}

bool commands::is_between(const char *what) const {
    if (!encoding && !status) return true;
    fault("%s within an encoder, or after commit", what);
    return false;
}

void commands::end() {
    if (encoding) fault("a command buffer is gone before its encoder has ended");
    if (status == NOT_ENQUEUED) --owner->n_open;
    for (object *o : kept)
        release(o);
    release(failure);
    release(owner);
}

// --- running -------------------------------------------------------------------------------------

// A test may want a command buffer to fail.
static void begin(commands *c) {
    if (c->begun) return;
    c->begun = true;
    if (is_lost())
        c->code = FAKE_METAL_DEVICE_REMOVED, c->why = "the device was removed";
    else if (fails("what was queued"))
        c->code = code_of_failures(), c->why = "as the test wants it";
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
    --q->n_open;
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
void run_until(queue *q, const commands *last) {
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

// --- methods -------------------------------------------------------------------------------------

// Metal lets the caller wait until there is room, which never comes where none is committed.
static object *new_commands(queue *self, selector) {
    HOLD if (fails("commandBuffer")) return nullptr;
    if (self->n_open >= MOST_COMMANDS) {
        if (self->pending.empty())
            fault("%d command buffers of a queue are open and none is committed: the next one is "
                  "waited for without end",
                  (int)MOST_COMMANDS);
        else
            run_until(self, self->pending.front());
    }
    return autorelease(new commands(self));
}

static void commit(commands *self, selector) {
    HOLD self->is_between("commit");
    if (self->status) return;
    if (self->owner->resident && self->owner->resident->changed)
        fault("work while a residency set's changes are not committed");
    self->status = commands::COMMITTED;
    retain(self);
    self->owner->pending.push_back(self);
    for (unit &u : self->units)
        self->owner->jobs.push_back({self, &u});
}

static void wait_for(commands *self, selector) {
    HOLD if (self->status == commands::NOT_ENQUEUED) return fault(
        "a wait for a command buffer that isn't committed");
    if (self->status == commands::COMMITTED) run_until(self->owner, self);
}

void add_queues() {
    add(
        "MTLDevice", "newCommandQueue", +[](device *self, selector) -> object * {
            HOLD return fails("newCommandQueue") ? nullptr : new queue(self);
        });
    add("MTLCommandQueue", "commandBuffer", new_commands);
    add("MTLCommandBuffer", "commit", commit);
    add("MTLCommandBuffer", "waitUntilCompleted", wait_for);
    add(
        "MTLCommandBuffer", "status", +[](commands *self, selector) { return self->status; });
    add(
        "MTLCommandBuffer", "error",
        +[](commands *self, selector) { return (object *)self->failure; });
}

} // namespace fake
