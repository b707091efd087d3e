// SPDX-License-Identifier: MIT
// Every allocation of the core and, through the host table, of its plugins.
#ifndef GGML_BASE_MEM_H
#define GGML_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>

// size > 0 bytes; NULL on failure. Freed with ggml_mem_free. [any-thread]
void *ggml_mem_alloc(size_t size);
void *ggml_mem_calloc(size_t count, size_t size);
// As realloc: the old block stays valid on failure.
void *ggml_mem_realloc(void *memory, size_t size);
char *ggml_mem_strdup(const char *text);
// Aligned to a power of two. Freed with ggml_mem_aligned_free.
void *ggml_mem_aligned_alloc(size_t alignment, size_t size);
void ggml_mem_free(void *memory);
void ggml_mem_aligned_free(void *memory);

// For tests: asked before every allocation; false makes it fail. NULL turns it off. [init]
void ggml_mem_set_fault_hook(bool (*may_allocate)(void *context), void *context);

#endif
