# SPDX-License-Identifier: MIT
"""ggml-host for Python: plugins, devices and graphs, over the shared library's stable interface by ctypes. numpy's
arrays go in and come out where numpy is installed; without it buffers and lists do."""
from ._devices import DEVICE_TYPES, Device, Memory, Plugin, device, devices, load_plugins, plugins
from ._generated import BUILDERS, TYPES
from ._graph import Graph, Tensor
from ._library import Error, lib as _lib

__all__ = ["BUILDERS", "DEVICE_TYPES", "Device", "Error", "Graph", "Memory", "Plugin", "TYPES", "Tensor", "device",
           "devices", "load_plugins", "plugins", "version"]


def version():
    """The library's version."""
    return _lib.ggml_version().decode()
