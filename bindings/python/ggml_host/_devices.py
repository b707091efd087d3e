# SPDX-License-Identifier: MIT
"""Plugins and devices."""
import ctypes
from collections import namedtuple

from ._library import DeviceInfo, DeviceProps, c_text, failed, lib, status_name, text

DEVICE_TYPES = ("CPU", "GPU", "IGPU", "ACCEL", "META")
MEMORY_QUALITIES = ("unknown", "estimated", "known")
CAPABILITIES = ("async", "host_buffer", "buffer_from_host_ptr", "events", "mmap_support")

Plugin = namedtuple("Plugin", "path name variant version contract stage status message missing in_use microseconds")
Plugin.__doc__ = "What became of a candidate: `status` is \"OK\" or why it stopped at `stage`, `message` says what to do."
Memory = namedtuple("Memory", "free total quality")
Memory.__doc__ = "Bytes of a device, and what they are worth: unknown, estimated or known."


def load_plugins(folder=None):
    """Loads every plugin in `folder`, or along the search path; returns how many became available. Those that are
    refused leave records (plugins())."""
    loaded = ctypes.c_size_t()
    if lib.ggml_plugin_load_all(None if folder is None else c_text(folder), ctypes.byref(loaded)) != 0:
        raise failed()
    return loaded.value


def _plugin(record):
    return Plugin(text(record.path), text(record.name), text(record.variant), text(record.version),
                  (record.contract_major, record.contract_minor) if record.contract_major >= 0 else None,
                  text(lib.ggml_plugin_stage_text(record.stage)), status_name(record.status), text(record.message),
                  text(record.missing), bool(record.reg), record.microseconds)


def plugins():
    """Every candidate that was looked at, in the order in which they were found."""
    report = lib.ggml_plugin_report_new()
    if not report:
        raise failed()
    try:
        return [_plugin(lib.ggml_plugin_report_get(report, i)[0]) for i in range(lib.ggml_plugin_report_count(report))]
    finally:
        lib.ggml_plugin_report_free(report)


class Device:
    """A device that is registered. Its plugin stays loaded as long as the process runs."""

    def __init__(self, handle):
        self._handle = handle

    def _props(self):
        props = DeviceProps()
        lib.ggml_backend_dev_get_props(self._handle, ctypes.byref(props))
        return props

    def _info(self):
        info = DeviceInfo(size=ctypes.sizeof(DeviceInfo))
        if lib.ggml_backend_dev_info(self._handle, ctypes.byref(info)) != 0:
            raise failed()
        return info

    @property
    def name(self):
        return text(self._props().name)

    @property
    def description(self):
        return text(self._props().description)

    @property
    def type(self):
        """One of DEVICE_TYPES."""
        number = self._props().type
        return DEVICE_TYPES[number] if 0 <= number < len(DEVICE_TYPES) else str(number)

    @property
    def device_id(self):
        """PCI address or UUID; None."""
        return text(self._props().device_id)

    @property
    def capabilities(self):
        return [name for name, has in zip(CAPABILITIES, self._props().caps) if has]

    @property
    def memory(self):
        """Memory at this moment."""
        props = self._props()
        return Memory(props.memory_free, props.memory_total, MEMORY_QUALITIES[self._info().memory])

    @property
    def plugin(self):
        """Name and path of the plugin that brought it."""
        info = self._info()
        return text(info.plugin_name), text(info.plugin_path)

    @property
    def details(self):
        """What the plugin says besides: driver, version, link."""
        features, found = lib.ggml_backend_dev_details(self._handle), {}
        for i in range(64) if features else ():
            if features[i].name is None:
                break
            found[text(features[i].name)] = text(features[i].value)
        return found

    def supports(self, tensor):
        """Whether the device computes this node of a graph."""
        return lib.ggml_backend_dev_supports_op(self._handle, tensor.handle)

    def __eq__(self, other):
        return isinstance(other, Device) and self._handle == other._handle

    def __hash__(self):
        return hash(self._handle)

    def __repr__(self):
        return "<ggml_host.Device %s: %s>" % (self.name, self.description)


def devices():
    """The devices of the plugins that are loaded, and of those that are built in."""
    return [Device(lib.ggml_backend_dev_get(i)) for i in range(lib.ggml_backend_dev_count())]


def device(name):
    """The device of that name (or PCI address or UUID); LookupError names those that there are."""
    found = devices()
    for one in found:
        if name in (one.name, one.device_id):
            return one
    raise LookupError("there is no device %r; there are: %s" % (name, ", ".join(one.name for one in found) or "none"))
