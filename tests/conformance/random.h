// SPDX-License-Identifier: MIT
// Reproducible random numbers for tests.
#ifndef TEST_RANDOM_H
#define TEST_RANDOM_H

#include <math.h>
#include <stdint.h>

struct test_random {
    uint64_t state;
};

static inline uint32_t random_u32(struct test_random *r) {
    r->state = r->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(r->state >> 32);
}

// Below n.
static inline int64_t random_below(struct test_random *r, int64_t n) {
    return (int64_t)(random_u32(r) % (uint64_t)n);
}

// In [low, high).
static inline float random_uniform(struct test_random *r, float low, float high) {
    return low + (high - low) * (float)(random_u32(r) >> 8) * 0x1p-24f;
}

static inline float random_normal(struct test_random *r) {
    const float u = random_uniform(r, 0x1p-24f, 1.0f);
    return sqrtf(-2.0f * logf(u)) * cosf(6.2831853f * random_uniform(r, 0.0f, 1.0f));
}

#endif
