// SPDX-License-Identifier: MIT
// The sanitizers that a file is compiled with: 1 or 0 each, whichever compiler it is.
#ifndef GGML_BASE_SANITIZER_H
#define GGML_BASE_SANITIZER_H

// GCC defines macros; Clang has a question that GCC lacks.
#if defined(__SANITIZE_ADDRESS__)
#define GGML_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#define GGML_ADDRESS_SANITIZER __has_feature(address_sanitizer)
#else
#define GGML_ADDRESS_SANITIZER 0
#endif

#if defined(__SANITIZE_THREAD__)
#define GGML_THREAD_SANITIZER 1
#elif defined(__has_feature)
#define GGML_THREAD_SANITIZER __has_feature(thread_sanitizer)
#else
#define GGML_THREAD_SANITIZER 0
#endif

// Either has threads, handlers and much memory of its own in the process.
#define GGML_SANITIZED (GGML_ADDRESS_SANITIZER || GGML_THREAD_SANITIZER)

#endif
