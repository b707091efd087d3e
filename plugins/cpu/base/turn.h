// SPDX-License-Identifier: MIT
// When the system takes the processor away from a thread. Where another program wants the same
// processor, both get it in turns, of a few milliseconds mostly and of about the same length. A
// thread that knows when its turn ends can be done with its work before, so that nobody waits for
// it meanwhile.
#ifndef CPU_TURN_H
#define CPU_TURN_H

#include <stdbool.h>
#include <stdint.h>

// Nanoseconds. Zero-initialised knows nothing.
struct cpu_turn {
    uint64_t seen;    // clock at the last look
    uint64_t ran;     // time that the thread had run until then
    uint64_t began;   // the same when its turn began
    uint64_t piece;   // longest lately between two looks
    uint64_t length;  // of turns, as far as it is known; 0: not yet
    uint64_t longest; // that was taken away after so long
};

// Looks, before a piece of work that takes about as long as those before. Whether the turn would
// end meanwhile. `ran` is the time that the thread itself has run.
bool cpu_turn_is_over(struct cpu_turn *turn, uint64_t now, uint64_t ran);
// The thread slept, since its turn was over: another one begins.
void cpu_turn_begin(struct cpu_turn *turn, uint64_t now, uint64_t ran);
// The thread waited, or slept for want of work: the turn goes on, or is another one.
void cpu_turn_resume(struct cpu_turn *turn, uint64_t now, uint64_t ran);

#endif
