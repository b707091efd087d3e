// SPDX-License-Identifier: MIT
// map_custom1, 2, 3 and custom: functions of the application, called by at most n_tasks threads.
#include "ops/training/custom.h"

#include "base/kernel.h"

// Calls the function in this thread; it can't report a failure.
enum ggml_status CPU_FN(cpu_custom)(const struct cpu_task *task) {
    struct ggml_tensor *dst = task->dst;
    const struct custom_params p = custom_params(dst);
    const int nth = p.n_tasks == GGML_N_TASKS_MAX ? task->nth : MIN(p.n_tasks, task->nth);
    const int ith = task->ith;
    struct ggml_tensor *const *src = dst->src;
    if (ith >= nth) return GGML_STATUS_SUCCESS;
    switch (dst->op) {
    case GGML_OP_MAP_CUSTOM1: ((ggml_custom1_op_t)p.fun)(dst, src[0], ith, nth, p.userdata); break;
    case GGML_OP_MAP_CUSTOM2:
        ((ggml_custom2_op_t)p.fun)(dst, src[0], src[1], ith, nth, p.userdata);
        break;
    case GGML_OP_MAP_CUSTOM3:
        ((ggml_custom3_op_t)p.fun)(dst, src[0], src[1], src[2], ith, nth, p.userdata);
        break;
    default: ((ggml_custom_op_t)p.fun)(dst, ith, nth, p.userdata); break;
    }
    return GGML_STATUS_SUCCESS;
}
