// SPDX-License-Identifier: MIT
// The length is that of a turn which was cut short, and grows slowly from there: one cut in some
// tens of turns shows whether turns are longer now.
#include "base/turn.h"

#include "base/util.h"

enum {
    AWAY = 300000, // that a thread did not run for: more than interrupts take, less than a turn
    GROWTH = 32,   // part of a piece that turns are thought longer by after each that was not cut
};

// Since the last look, by the clock and by what the thread has run of that.
static bool was_away(const struct cpu_turn *turn, uint64_t now, uint64_t ran) {
    return now - turn->seen > ran - turn->ran + AWAY;
}

bool cpu_turn_is_over(struct cpu_turn *turn, uint64_t now, uint64_t ran) {
    if (was_away(turn, now, ran)) {
        // Somewhere in the piece: what ran of it may belong to either turn.
        turn->length = turn->ran - turn->began;
        turn->longest = MAX(turn->longest - turn->longest / 16, turn->length);
        turn->began = turn->ran;
    }
    turn->piece = MAX(turn->piece - turn->piece / 16, ran - turn->ran);
    turn->seen = now;
    turn->ran = ran;
    return turn->longest > 0 && ran - turn->began + turn->piece > turn->length;
}

// An interruption by something short may have come soon after a turn began: what is below the
// longest grows towards it.
void cpu_turn_begin(struct cpu_turn *turn, uint64_t now, uint64_t ran) {
    const uint64_t missing = turn->longest - MIN(turn->longest, turn->length);
    turn->length += MAX(missing / 8, turn->piece / GROWTH);
    turn->seen = now;
    turn->ran = turn->began = ran;
}

void cpu_turn_resume(struct cpu_turn *turn, uint64_t now, uint64_t ran) {
    if (was_away(turn, now, ran)) turn->began = ran;
    turn->seen = now;
    turn->ran = ran;
}
