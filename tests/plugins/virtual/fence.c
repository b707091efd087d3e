// SPDX-License-Identifier: MIT
// A fence with counted owners, which a worker signals once and any number of threads wait for: a
// mutex and a condition variable.
#include <stdatomic.h>

#include "internal.h"

struct fence {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_done;
    _Atomic int n_owners;
};

struct fence *fence_new(void) {
    struct fence *fence = ggml_aligned_malloc(sizeof(*fence));
    if (!fence) return NULL;
    fence->is_done = false;
    pthread_mutex_init(&fence->mutex, NULL);
    pthread_cond_init(&fence->changed, NULL);
    atomic_init(&fence->n_owners, 1);
    return fence;
}

struct fence *fence_share(struct fence *fence) {
    if (fence) atomic_fetch_add(&fence->n_owners, 1);
    return fence;
}

void fence_signal(struct fence *fence) {
    pthread_mutex_lock(&fence->mutex);
    fence->is_done = true;
    pthread_cond_broadcast(&fence->changed);
    pthread_mutex_unlock(&fence->mutex);
}

void fence_wait(struct fence *fence) {
    pthread_mutex_lock(&fence->mutex);
    while (!fence->is_done)
        pthread_cond_wait(&fence->changed, &fence->mutex);
    pthread_mutex_unlock(&fence->mutex);
}

void fence_drop(struct fence *fence) {
    if (!fence || atomic_fetch_sub(&fence->n_owners, 1) > 1) return;
    pthread_cond_destroy(&fence->changed);
    pthread_mutex_destroy(&fence->mutex);
    ggml_aligned_free(fence, sizeof(*fence));
}
