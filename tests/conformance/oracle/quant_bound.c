// SPDX-License-Identifier: MIT
// A table of the step of each quantised format, and the error that half a step amounts to.
#include "quant_bound.h"

// Distance between neighbouring values when the largest magnitude is 1; for uneven ones the root of
// the mean square.
struct format_step {
    enum ggml_type type;
    double step;
};

static const struct format_step steps[] = {
    {GGML_TYPE_Q8_0, 1.0 / 127}, {GGML_TYPE_Q8_1, 1.0 / 127}, {GGML_TYPE_Q8_K, 1.0 / 127},
    {GGML_TYPE_Q4_0, 1.0 / 8},   {GGML_TYPE_Q4_1, 2.0 / 15},  {GGML_TYPE_Q5_0, 1.0 / 16},
    {GGML_TYPE_Q5_1, 2.0 / 31},  {GGML_TYPE_Q2_K, 2.0 / 3},   {GGML_TYPE_Q3_K, 2.0 / 7},
    {GGML_TYPE_Q4_K, 2.0 / 15},  {GGML_TYPE_Q5_K, 2.0 / 31},  {GGML_TYPE_Q6_K, 2.0 / 63},
    {GGML_TYPE_IQ4_NL, 0.15},    {GGML_TYPE_IQ4_XS, 0.15},    {GGML_TYPE_MXFP4, 1.0 / 3},
    {GGML_TYPE_NVFP4, 1.0 / 4},  {GGML_TYPE_TQ1_0, 1},        {GGML_TYPE_TQ2_0, 1},
    {GGML_TYPE_Q1_0, 1},         {GGML_TYPE_Q2_0, 1},
};

double conformance_quant_bound(enum ggml_type type) {
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); ++i) {
        if (steps[i].type == type) return 0.25 * steps[i].step * steps[i].step * 3;
    }
    return 0;
}
