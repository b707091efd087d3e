// SPDX-License-Identifier: MIT
// Bump allocation for objects that are freed together.
#ifndef GGML_BASE_ARENA_H
#define GGML_BASE_ARENA_H

#include <stddef.h>

struct arena_block;

// Zero-initialised is empty and ready. [stream]
struct arena {
    struct arena_block *blocks;
};

// Zeroed memory aligned for any object; NULL on failure.
void *arena_alloc(struct arena *arena, size_t size);
char *arena_strdup(struct arena *arena, const char *text);
// Moves all that `from` holds to `to`; `from` is empty then.
void arena_take(struct arena *to, struct arena *from);
// Frees everything; the arena is empty and ready again.
void arena_free(struct arena *arena);

#endif
