// SPDX-License-Identifier: MIT
// What a helper process gives up before it opens the plugin. Linux only: elsewhere everything is
// missing.
#ifndef GGML_PLUGIN_PROBE_PROBE_SANDBOX_H
#define GGML_PLUGIN_PROBE_PROBE_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>

// Takes from the calling thread, and from what it starts later, what a plugin does not need to list
// its devices: new privileges, writing to files other than those of probe_sandbox_list.inl, sockets
// other than AF_UNIX, signals to and looks into other processes, and system calls that change the
// machine. What is refused fails with an errno. out_missing is what the system can't refuse, ""
// if there is nothing. It can't be undone. [init]
void probe_sandbox_enter(char *out_missing, size_t size);

// Whether drivers would have to create their device files through a set-uid program: NVIDIA's does
// with nvidia-modprobe, which a sandbox would prevent. `root` is put before every path.
// [any-thread]
bool probe_sandbox_prevents_devices(const char *root);

#endif
