// SPDX-License-Identifier: MIT
// A helper that was built without hwloc.
#include "plugin/probe/probe_machine.h"

void probe_machine_take(struct probe_result *out_result) {
    probe_result_fail(out_result, GGML_PLUGIN_STAGE_READY, GGML_HOST_UNSUPPORTED,
                      "the helper was built without hwloc");
}
