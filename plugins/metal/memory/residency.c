// SPDX-License-Identifier: MIT
// One set per context; a change counts when it is committed.
#include "memory/residency.h"

void metal_residency_init(struct metal_context *context) {
    mtl_id error = NULL;
    const mtl_id descriptor = mtl_new(mtl_api.get_class("MTLResidencySetDescriptor"));
    if (!descriptor) return; // an older system
    context->residency = mtl_new_residency_set(context->device, descriptor, &error);
    mtl_release(descriptor);
}

void metal_residency_add(struct metal_context *context, mtl_id buffer) {
    if (!context->residency) return;
    pthread_mutex_lock(&context->mutex);
    mtl_add_allocation(context->residency, buffer);
    mtl_commit(context->residency);
    mtl_request_residency(context->residency);
    pthread_mutex_unlock(&context->mutex);
}

void metal_residency_remove(struct metal_context *context, mtl_id buffer) {
    if (!context->residency) return;
    pthread_mutex_lock(&context->mutex);
    mtl_remove_allocation(context->residency, buffer);
    mtl_commit(context->residency);
    pthread_mutex_unlock(&context->mutex);
}
