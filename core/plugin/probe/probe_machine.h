// SPDX-License-Identifier: MIT
// The machine as hwloc describes it in a helper process, where it may crash, hang and map libraries
// that do.
#ifndef GGML_PLUGIN_PROBE_PROBE_MACHINE_H
#define GGML_PLUGIN_PROBE_PROBE_MACHINE_H

#include "machine/topology/topology_table.h"
#include "plugin/probe/message/probe_result.h"

// Linux; whom the topology asks first wherever this is linked. What a helper said is remembered as
// results of probes are; where nothing can be remembered, and in privileged processes, hwloc isn't
// asked. The calling thread's last error is kept. False: there is no answer, and the log says why
// if hwloc failed. [any-thread]
bool probe_machine_ask(struct topology_table *out_table);

// In the helper: asks hwloc. UNSUPPORTED, with a message: it isn't there, or can't tell. [init]
void probe_machine_take(struct probe_result *out_result);

#endif
