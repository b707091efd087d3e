// SPDX-License-Identifier: MIT
// Shared events: a value that command buffers set when they end, and that others wait for. Who
// waits lets other queues do what they have.
#include "state.h"

namespace fake {

// The command buffer that is queued and will set the value, of a queue that isn't waiting itself.
static commands *signaller_of(const event *e, uint64_t value) {
    for (queue *q : queues()) {
        if (q->running) continue;
        for (commands *c : q->pending) {
            for (auto &s : c->signals) {
                if (s.first == e && s.second >= value) return c;
            }
        }
    }
    return nullptr;
}

static bool reach(event *e, uint64_t value, std::string *why) {
    while (e->value < value) {
        const commands *next = signaller_of(e, value);
        if (!next) {
            *why = "nothing that is queued signals an event that is waited for";
            return false;
        }
        run_until(next->owner, next);
    }
    return true;
}

void add_events() {
    add(
        "MTLDevice", "newSharedEvent", +[](device *, selector) -> object * {
            HOLD return fails("newSharedEvent") ? nullptr : new event();
        });
    add(
        "MTLCommandBuffer",
        "encodeSignalEvent:value:", +[](commands *self, selector, event *e, uint64_t value) {
            HOLD if (!self->is_between("a signal")) return;
            self->keep(e);
            self->signals.push_back({e, value});
        });
    add(
        "MTLCommandBuffer",
        "encodeWaitForEvent:value:", +[](commands *self, selector, event *e, uint64_t value) {
            HOLD if (!self->is_between("a wait")) return;
            self->keep(e);
            const step wait = [=](std::string *why) { return reach(e, value, why); };
            self->units.push_back({{wait}, {}, true});
        });
}

} // namespace fake
