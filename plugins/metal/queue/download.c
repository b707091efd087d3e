// SPDX-License-Identifier: MIT
// Downloads are listed by context: whoever waits for one stream may so have waited for another,
// which it follows.
#include "queue/stream.h"

void metal_download_add(struct metal_context *context, struct metal_download *download) {
    pthread_mutex_lock(&context->mutex);
    download->number = ++context->n_downloads;
    download->next = context->downloads;
    context->downloads = download;
    pthread_mutex_unlock(&context->mutex);
}

uint64_t metal_download_last(struct metal_context *context) {
    pthread_mutex_lock(&context->mutex);
    const uint64_t number = context->n_downloads;
    pthread_mutex_unlock(&context->mutex);
    return number;
}

// After a failure the host's memory stays as it is; the failure is the stream's to tell.
static void hand_out(struct metal_download *d) {
    if (mtl_status(d->commands) == MTL_STATUS_COMPLETED) {
        const char *from = mtl_contents(d->staging);
        for (size_t i = 0; i < d->n; ++i)
            memcpy(d->host + i * d->stride, from + i * d->pitch, d->size);
    }
    mtl_release(d->commands);
    mtl_release(d->staging);
    ggml_aligned_free(d, sizeof(*d));
}

// Memory that two transfers write has the last one's bytes: so the list, whose newest is first, is
// reversed before.
static struct metal_download *take_ended(struct metal_context *context,
                                         const struct metal_stream *stream, uint64_t number) {
    struct metal_download *ended = NULL;
    for (struct metal_download **at = &context->downloads; *at;) {
        struct metal_download *d = *at;
        if (d->stream == stream && d->number <= number) mtl_wait_until_completed(d->commands);
        if (mtl_status(d->commands) < MTL_STATUS_COMPLETED) {
            at = &d->next;
            continue;
        }
        *at = d->next;
        d->next = ended;
        ended = d;
    }
    return ended;
}

void metal_downloads_finish(struct metal_context *context, const struct metal_stream *stream,
                            uint64_t number) {
    pthread_mutex_lock(&context->mutex);
    struct metal_download *d = take_ended(context, stream, number);
    while (d) {
        struct metal_download *next = d->next;
        hand_out(d);
        d = next;
    }
    pthread_mutex_unlock(&context->mutex);
}
