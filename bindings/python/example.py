#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Lists what there is and computes a layer on the best device: python3 example.py [DEVICE]"""
import sys

import ggml_host

ggml_host.load_plugins()
for plugin in ggml_host.plugins():
    print("plugin %s: %s" % (plugin.path, "in use" if plugin.in_use else plugin.message))
for device in ggml_host.devices():
    print("device %s: %s, %.1f GiB" % (device.name, device.description, device.memory.total / 2**30))

weights = [[1, 0, -1, 2], [0.5, 0.5, 0.5, 0.5]]
with ggml_host.Graph(device=sys.argv[1] if len(sys.argv) > 1 else None) as graph:
    w, x = graph.input(weights), graph.input([3, -1, 2, 4])
    y = graph.relu(graph.mul_mat(w, x))
    print("%s computed %s" % (graph.device.name, graph.compute(y).tolist()))
