// SPDX-License-Identifier: MIT
// How far the tensors of two quantised files are from those of the file that they were made of.
//
// usage: compare_gguf ORIGINAL FIRST SECOND [IMPORTANCE]
//
// Prints a line for each type: its name, the number of its tensors, and the sums over them of both
// files' squared errors relative to the tensor's squares, both weighted with the importance of each
// column if that is given. Everything is decoded by the library that this is linked with. Fails
// where names, shapes or types differ.
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggml.h"
#include "gguf.h"

struct model {
    struct gguf_context *file;
    struct ggml_context *tensors;
};

static struct model open_model(const char *path) {
    struct model model = {0};
    const struct gguf_init_params params = {false, &model.tensors};
    model.file = gguf_init_from_file(path, params);
    if (model.file != NULL) return model;
    fprintf(stderr, "compare_gguf: %s can't be read\n", path);
    exit(1);
}

static void read_row(const struct ggml_tensor *t, int64_t row, float *out) {
    const char *data = (const char *)t->data + (size_t)row * ggml_row_size(t->type, t->ne[0]);
    if (t->type == GGML_TYPE_F32)
        memcpy(out, data, (size_t)t->ne[0] * sizeof(float));
    else
        ggml_get_type_traits(t->type)->to_float(data, out, t->ne[0]);
}

// The mean square of what each column of a tensor was multiplied by, one row per expert; NULL: it
// was not measured.
static float *importance_of(const struct model *m, const struct ggml_tensor *t) {
    char name[2 * GGML_MAX_NAME];
    if (m->file == NULL) return NULL;
    snprintf(name, sizeof(name), "%s.in_sum2", t->name);
    const struct ggml_tensor *sums = ggml_get_tensor(m->tensors, name);
    snprintf(name, sizeof(name), "%s.counts", t->name);
    const struct ggml_tensor *counts = ggml_get_tensor(m->tensors, name);
    if (sums == NULL || counts == NULL) return NULL;
    const int64_t n = t->ne[0] * t->ne[2];
    if (ggml_nelements(sums) != n) return NULL;
    float *importance = malloc((size_t)n * sizeof(float));
    for (int64_t i = 0; i < n; ++i) {
        const float count = ((const float *)counts->data)[i / t->ne[0]];
        importance[i] = count > 0 ? ((const float *)sums->data)[i] / count : 1;
    }
    return importance;
}

// Adds the relative squared error of a tensor of both files.
static void errors_of(const struct ggml_tensor *original, const struct ggml_tensor *const both[2],
                      const float *importance, double out_errors[2]) {
    const int64_t n = original->ne[0];
    double sums[2] = {0}, power = 0;
    float *exact = malloc((size_t)n * sizeof(float)), *decoded = malloc((size_t)n * sizeof(float));
    for (int64_t r = 0; r < ggml_nrows(original); ++r) {
        const int64_t expert = r / original->ne[1];
        read_row(original, r, exact);
        for (int s = 0; s < 2; ++s) {
            read_row(both[s], r, decoded);
            for (int64_t i = 0; i < n; ++i) {
                const double weight = importance != NULL ? (double)importance[expert * n + i] : 1;
                const double error = (double)decoded[i] - (double)exact[i];
                sums[s] += weight * error * error;
                power += s == 0 ? weight * (double)exact[i] * (double)exact[i] : 0;
            }
        }
    }
    for (int s = 0; s < 2; ++s)
        out_errors[s] += power > 0 ? sums[s] / power : 0;
    free(exact);
    free(decoded);
}

int main(int argc, char **argv) {
    static double errors[GGML_TYPE_COUNT][2];
    static int counts[GGML_TYPE_COUNT];
    if (argc != 4 && argc != 5) {
        fprintf(stderr, "usage: compare_gguf ORIGINAL FIRST SECOND [IMPORTANCE]\n");
        return 2;
    }
    const struct model original = open_model(argv[1]);
    const struct model files[2] = {open_model(argv[2]), open_model(argv[3])};
    const struct model importance = argc == 5 ? open_model(argv[4]) : (struct model){0};
    if (gguf_get_n_tensors(files[0].file) != gguf_get_n_tensors(files[1].file)) {
        fprintf(stderr, "compare_gguf: other numbers of tensors\n");
        return 1;
    }
    for (int64_t i = 0; i < gguf_get_n_tensors(files[0].file); ++i) {
        const char *name = gguf_get_tensor_name(files[0].file, i);
        const struct ggml_tensor *exact = ggml_get_tensor(original.tensors, name);
        const struct ggml_tensor *const both[2] = {ggml_get_tensor(files[0].tensors, name),
                                                   ggml_get_tensor(files[1].tensors, name)};
        if (exact == NULL || both[1] == NULL || both[0]->type != both[1]->type ||
            !ggml_are_same_shape(exact, both[0]) || !ggml_are_same_shape(exact, both[1])) {
            fprintf(stderr, "compare_gguf: %s is not the same\n", name);
            return 1;
        }
        if (both[0]->type == GGML_TYPE_F32) continue;
        float *weights = importance_of(&importance, exact);
        errors_of(exact, both, weights, errors[both[0]->type]);
        free(weights);
        ++counts[both[0]->type];
    }
    for (int type = 0; type < GGML_TYPE_COUNT; ++type) {
        if (counts[type] > 0) {
            printf("%s %d %.9g %.9g\n", ggml_type_name((enum ggml_type)type), counts[type],
                   errors[type][0], errors[type][1]);
        }
    }
    return 0;
}
