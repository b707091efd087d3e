// SPDX-License-Identifier: MIT
// Lists of measurements that grow by one element at a time, and what is found in them by name.
#include <stdlib.h>
#include <string.h>

#include "report/report.h"

// Room for one more element behind `n`, zeroed; NULL without memory, and the list stays.
static void *grow(void **list, size_t *n, size_t size) {
    char *bigger = realloc(*list, (*n + 1) * size);
    if (!bigger) return NULL;
    *list = bigger;
    memset(bigger + *n * size, 0, size);
    return bigger + (*n)++ * size;
}

struct report_device *report_add_device(struct report *report) {
    void *list = report->devices;
    struct report_device *device = grow(&list, &report->n_devices, sizeof(*device));
    report->devices = list;
    return device;
}

struct report_op *report_add_op(struct report_device *device) {
    void *list = device->ops;
    struct report_op *op = grow(&list, &device->n_ops, sizeof(*op));
    device->ops = list;
    return op;
}

struct report_model *report_add_model(struct report_device *device) {
    void *list = device->models;
    struct report_model *model = grow(&list, &device->n_models, sizeof(*model));
    device->models = list;
    return model;
}

void report_free(struct report *report) {
    for (size_t i = 0; i < report->n_devices; ++i) {
        free(report->devices[i].ops);
        free(report->devices[i].models);
    }
    free(report->devices);
    *report = (struct report){0};
}

const struct report_device *report_find_device(const struct report *report, const char *name) {
    for (size_t i = 0; i < report->n_devices; ++i) {
        if (strcmp(report->devices[i].name, name) == 0) return &report->devices[i];
    }
    return NULL;
}

const struct report_op *report_find_op(const struct report_device *device,
                                       const struct report_op *like) {
    for (size_t i = 0; device && i < device->n_ops; ++i) {
        const struct report_op *op = &device->ops[i];
        const bool same = strcmp(op->op, like->op) == 0 && strcmp(op->name, like->name) == 0;
        if (same && op->cold == like->cold) return op;
    }
    return NULL;
}

const struct report_model *report_find_model(const struct report_device *device,
                                             const struct report_model *like) {
    for (size_t i = 0; device && i < device->n_models; ++i) {
        const struct report_model *model = &device->models[i];
        const bool same = strcmp(model->size, like->size) == 0 &&
                          strcmp(model->type, like->type) == 0 && model->prompt == like->prompt &&
                          model->context == like->context;
        if (same) return model;
    }
    return NULL;
}
