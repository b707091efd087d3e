# SPDX-License-Identifier: MIT
"""The shared library, and what it declares, for ctypes. Only calls of the stable interface."""
import ctypes
import operator
import os
from ctypes import POINTER, c_bool, c_char_p, c_double, c_float, c_int, c_int64, c_size_t, c_uint32, c_void_p

from ._generated import BUILDERS, STATUSES

try:
    from ._where import LIBRARY  # relative to this folder: the prefix may be moved
except ImportError:
    LIBRARY = ""

KINDS = {"t": c_void_p, "i": c_int, "l": c_int64, "u": c_uint32, "z": c_size_t, "f": c_float, "b": c_bool}


class Error(RuntimeError):
    """A call of the library failed: the message says with what and why; `status` is its name ("OUT_OF_MEMORY")."""

    def __init__(self, message, status):
        super().__init__(message)
        self.status = status


class InitParams(ctypes.Structure):
    _fields_ = [("mem_size", c_size_t), ("mem_buffer", c_void_p), ("no_alloc", c_bool)]


class TensorHead(ctypes.Structure):
    """The first members of ggml_tensor."""
    _fields_ = [("type", c_int), ("buffer", c_void_p), ("ne", c_int64 * 4), ("nb", c_size_t * 4)]


class DeviceProps(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("description", c_char_p), ("memory_free", c_size_t), ("memory_total", c_size_t),
                ("type", c_int), ("device_id", c_char_p), ("caps", c_bool * 5)]


class DeviceInfo(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("plugin_path", c_char_p), ("plugin_name", c_char_p), ("alias_of", c_void_p),
                ("memory", c_int)]


class Feature(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("value", c_char_p)]


class PluginRecord(ctypes.Structure):
    _fields_ = [("path", c_char_p), ("name", c_char_p), ("variant", c_char_p), ("version", c_char_p),
                ("contract_major", c_int), ("contract_minor", c_int), ("machine", c_int), ("stage", c_int),
                ("status", c_int), ("message", c_char_p), ("missing", c_char_p), ("reg", c_void_p),
                ("microseconds", c_double)]


CALLS = {
    "ggml_version": (c_char_p,),
    "ggml_last_error": (c_char_p,),
    "ggml_last_status": (c_int,),
    "ggml_clear_error": (None,),
    "ggml_plugin_load_all": (c_int, c_char_p, POINTER(c_size_t)),
    "ggml_plugin_report_new": (c_void_p,),
    "ggml_plugin_report_free": (None, c_void_p),
    "ggml_plugin_report_count": (c_size_t, c_void_p),
    "ggml_plugin_report_get": (POINTER(PluginRecord), c_void_p, c_size_t),
    "ggml_plugin_stage_text": (c_char_p, c_int),
    "ggml_backend_dev_count": (c_size_t,),
    "ggml_backend_dev_get": (c_void_p, c_size_t),
    "ggml_backend_dev_get_props": (None, c_void_p, POINTER(DeviceProps)),
    "ggml_backend_dev_info": (c_int, c_void_p, POINTER(DeviceInfo)),
    "ggml_backend_dev_details": (POINTER(Feature), c_void_p),
    "ggml_backend_dev_supports_op": (c_bool, c_void_p, c_void_p),
    "ggml_backend_dev_init": (c_void_p, c_void_p, c_char_p),
    "ggml_backend_init_best": (c_void_p,),
    "ggml_backend_get_device": (c_void_p, c_void_p),
    "ggml_backend_free": (None, c_void_p),
    "ggml_backend_graph_compute": (c_int, c_void_p, c_void_p),
    "ggml_backend_alloc_ctx_tensors": (c_void_p, c_void_p, c_void_p),
    "ggml_backend_buffer_free": (None, c_void_p),
    "ggml_backend_tensor_set": (None, c_void_p, c_void_p, c_size_t, c_size_t),
    "ggml_backend_tensor_get": (None, c_void_p, c_void_p, c_size_t, c_size_t),
    "ggml_init": (c_void_p, InitParams),
    "ggml_free": (None, c_void_p),
    "ggml_tensor_overhead": (c_size_t,),
    "ggml_graph_overhead_custom": (c_size_t, c_size_t, c_bool),
    "ggml_new_graph_custom": (c_void_p, c_void_p, c_size_t, c_bool),
    "ggml_build_forward_expand": (None, c_void_p, c_void_p),
    "ggml_graph_error": (c_char_p, c_void_p),
    "ggml_new_tensor": (c_void_p, c_void_p, c_int, c_int, POINTER(c_int64)),
    "ggml_set_name": (c_void_p, c_void_p, c_char_p),
    "ggml_get_name": (c_char_p, c_void_p),
    "ggml_nbytes": (c_size_t, c_void_p),
    "ggml_is_contiguous": (c_bool, c_void_p),
    "ggml_tensor_is_error": (c_bool, c_void_p),
    "ggml_tensor_error": (c_char_p, c_void_p),
}


def _open():
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), LIBRARY)
    name = os.path.normpath(here) if LIBRARY and os.path.exists(here) else "libggml.so.1"
    library = ctypes.CDLL(name)
    for call, (result, *parameters) in CALLS.items():
        function = getattr(library, call)
        function.restype, function.argtypes = result, parameters
    for builder, (letters, _) in BUILDERS.items():
        function = getattr(library, "ggml_" + builder)
        function.restype, function.argtypes = c_void_p, [c_void_p] + [KINDS[letter] for letter in letters]
    return library


lib = _open()
_STATUS_NAMES = {number: name for name, number in STATUSES.items()}


def text(value):
    """A C string as Python's; None stays."""
    return None if value is None else value.decode("utf-8", "replace")


def c_text(value):
    """Bytes for a C string, of a text or a path; one that C would cut off is refused."""
    raw = os.fsencode(value)
    if b"\0" in raw:
        raise ValueError("%r has a character 0 in it" % (value,))
    return raw


def integer(value, letter, what):
    """A whole number that a parameter of this letter can have: ctypes cuts larger ones off without a word."""
    number, kind = operator.index(value), KINDS[letter]
    bits = 8 * ctypes.sizeof(kind)
    low, high = (0, 2**bits - 1) if kind(-1).value > 0 else (-2**(bits - 1), 2**(bits - 1) - 1)
    if not low <= number <= high:
        raise ValueError("%s is %d, which is not between %d and %d" % (what, number, low, high))
    return number


def status_name(number):
    return _STATUS_NAMES.get(number, str(number))


def failed(fallback="the call failed"):
    """The exception for the call of this thread that failed last."""
    return Error(text(lib.ggml_last_error()) or fallback, status_name(lib.ggml_last_status()))
