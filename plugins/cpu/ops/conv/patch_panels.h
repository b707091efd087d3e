// SPDX-License-Identifier: MIT
// Patches of neighbouring pixels side by side, as cpu_gemm_panels() wants them: what a kernel
// element meets of them are neighbours in a line of the image, too.
#ifndef CPU_PATCH_PANELS_H
#define CPU_PATCH_PANELS_H

#include "gemm/gemm.h"
#include "ops/conv/patches.h"

// Pixels of a panel whose windows begin in the same lines of the image.
struct conv_run {
    int64_t first[CONV_DIMS]; // where the window of the first one begins
    int lane, n;              // its place in the panel, and how many there are
};

// y[i] = what kernel column kx of the run's window i meets in a line of the image; NULL: outside.
static inline void conv_lanes(const struct conv *c, const struct conv_run *run, const char *line,
                              int64_t kx, float *y) {
    const int64_t first = run->first[0] + kx * c->dilation[0], stride = c->stride[0];
    const size_t step = c->nb[0] * (size_t)stride;
    int64_t begin = 0, end = line ? run->n : 0;
    if (first < 0) begin = MIN(conv_ceil_div(-first, stride), end);
    if (first + (end - 1) * stride >= c->in[0])
        end = MAX(conv_ceil_div(c->in[0] - first, stride), begin);
    for (int64_t i = 0; i < begin; ++i)
        y[i] = 0.0f;
    for (int64_t i = end; i < run->n; ++i)
        y[i] = 0.0f;
    if (begin == end) return;
    const char *x = line + (size_t)(first + begin * stride) * c->nb[0];
    if (c->image->type != GGML_TYPE_F32) {
        cpu_gather_floats(y + begin, x, step, c->image->type, end - begin);
        return;
    }
    for (; step == sizeof(float) && begin + LANES <= end; begin += LANES, x += LANES * step)
        vf_store(y + begin, vf_load((const float *)(const void *)x));
    for (; begin < end; ++begin, x += step)
        memcpy(&y[begin], x, sizeof(float));
}

// All elements of the patches of a run: kernel columns fastest and channels slowest.
static inline void conv_run_patches(const struct conv *c, const struct conv_run *run,
                                    const char *image, float *panel) {
    float *y = panel + run->lane;
    for (int64_t channel = 0; channel < c->channels; ++channel) {
        for (int64_t kz = 0; kz < c->kernel[2]; ++kz) {
            const int64_t iz = run->first[2] + kz * c->dilation[2];
            for (int64_t ky = 0; ky < c->kernel[1]; ++ky) {
                const int64_t iy = run->first[1] + ky * c->dilation[1];
                const bool inside = iy >= 0 && iy < c->in[1] && iz >= 0 && iz < c->in[2];
                const char *line = inside ? image + (size_t)channel * c->nb_channel +
                                                (size_t)iy * c->nb[1] + (size_t)iz * c->nb[2]
                                          : NULL;
                for (int64_t kx = 0; kx < c->kernel[0]; ++kx, y += GEMM_PANEL)
                    conv_lanes(c, run, line, kx, y);
            }
        }
    }
}

// The panel of n <= GEMM_PANEL output pixels from `pixel` on; what is missing is 0.
static inline void conv_panel(const struct conv *c, const char *image, int64_t pixel, int n,
                              float *panel) {
    if (n < GEMM_PANEL) memset(panel, 0, (size_t)(conv_patch(c) * GEMM_PANEL) * sizeof(float));
    for (struct conv_run run = {.lane = 0}; run.lane < n; run.lane += run.n) {
        const int64_t at = pixel + run.lane, line = at / c->out[0], x = at % c->out[0];
        run.n = (int)MIN(n - run.lane, c->out[0] - x);
        run.first[0] = conv_first(c, 0, x);
        run.first[1] = conv_first(c, 1, line % c->out[1]);
        run.first[2] = conv_first(c, 2, line / c->out[1]);
        conv_run_patches(c, &run, image, panel);
    }
}

#endif
