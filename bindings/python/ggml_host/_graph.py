# SPDX-License-Identifier: MIT
"""Graphs and tensors: shapes as numpy has them, the last extent that of neighbours in memory."""
import array
import ctypes
import functools
import threading

from ._devices import Device, device as find_device
from ._generated import BUILDERS, TYPES
from ._library import InitParams, TensorHead, c_text, failed, integer, lib, text

try:
    import numpy
except ImportError:
    numpy = None

# Format of struct and memoryview for each type whose elements Python has.
FORMATS = {"F32": "f", "F16": "e", "F64": "d", "I8": "b", "I16": "h", "I32": "i", "I64": "q"}
_TYPE_OF_FORMAT = {form: name for name, form in FORMATS.items()}
_TYPE_NAMES = {number: name for name, number in TYPES.items()}


def _type_of_format(form, itemsize):
    if form in ("l", "q") and itemsize == 8:
        return "I64"
    if form == "l":
        return "I32"
    if form not in _TYPE_OF_FORMAT:
        raise TypeError("no type of tensor holds elements of format %r" % form)
    return _TYPE_OF_FORMAT[form]


def _shape_of_list(values):
    shape = []
    while isinstance(values, (list, tuple)):
        shape.append(len(values))
        values = values[0] if values else 0.0
    return shape


def _flatten(values, shape, out):
    if not shape:
        out.append(values)
        return
    if not isinstance(values, (list, tuple)) or len(values) != shape[0]:
        raise ValueError("rows of different lengths")
    for value in values:
        _flatten(value, shape[1:], out)


def _view_of(data):
    """A packed memoryview of an array, a buffer, or nested lists of numbers (float32)."""
    if isinstance(data, (list, tuple)):
        shape, flat = _shape_of_list(data), array.array("f")
        _flatten(data, shape, flat)
        return memoryview(flat) if len(flat) == 0 else memoryview(flat).cast("B").cast("f", shape)
    view = memoryview(data)
    if view.c_contiguous:
        return view
    if numpy:  # also of halves, which memoryview can't be cast to
        return memoryview(numpy.ascontiguousarray(view))
    packed = bytearray(view.tobytes())  # in the order of rows
    return memoryview(packed).cast(view.format, list(view.shape))


def _alone(method):
    """Refuses a call while another thread is in one: the library would work with memory that is freed meanwhile."""
    @functools.wraps(method)
    def call(self, *arguments, **named):
        lock = (self if isinstance(self, Graph) else self.graph)._lock
        if not lock.acquire(blocking=False):
            raise RuntimeError("another thread uses this graph: one at a time")
        try:
            return method(self, *arguments, **named)
        finally:
            lock.release()
    return call


class Tensor:
    """A tensor of a graph, valid as long as that."""

    def __init__(self, graph, handle):
        self.graph = graph
        self._handle = handle

    @property
    def handle(self):
        """Address of the ggml_tensor."""
        if self.graph.is_closed:
            raise ValueError("the graph of this tensor is closed")
        return self._handle

    def _head(self):
        return ctypes.cast(self.handle, ctypes.POINTER(TensorHead))[0]

    @property
    def type(self):
        """Name of its type: "F32", "Q4_0"."""
        return _TYPE_NAMES[self._head().type]

    @property
    def shape(self):
        """Extents, the last that of neighbours in memory; leading ones are left out."""
        extents = list(self._head().ne)
        while len(extents) > 1 and extents[-1] == 1:
            extents.pop()
        return tuple(reversed(extents))

    @property
    def name(self):
        return text(lib.ggml_get_name(self.handle))

    @_alone
    def set(self, data):
        """Writes all of it: an array, a buffer or nested lists of numbers; bytes for types that Python has none of.
        Before memory is there the data is kept until compute()."""
        view = _view_of(data)
        raw = view.format == "B" and self.type not in FORMATS
        size = lib.ggml_nbytes(self.handle)
        if not raw and _type_of_format(view.format, view.itemsize) != self.type:
            raise TypeError("elements of format %r for a tensor of type %s" % (view.format, self.type))
        if view.nbytes != size or not (raw or self._has_shape(view.shape)):
            raise ValueError("shape %s, %d bytes, for a tensor of shape %s, %d bytes" %
                             (tuple(view.shape), view.nbytes, self.shape, size))
        if not lib.ggml_is_contiguous(self.handle):
            raise ValueError("the tensor is a view with gaps: write the one it looks at")
        self.graph._write(self, view.tobytes())

    def _has_shape(self, shape):
        return [n for n in shape if n != 1] == [n for n in self.shape if n != 1]

    @_alone
    def get(self):
        """Reads all of it: a numpy array where numpy is there, else a memoryview (tolist() gives lists); bytes for
        types that Python has none of."""
        if not lib.ggml_is_contiguous(self.handle):
            raise ValueError("the tensor is a view with gaps: read a cont() of it")
        data = self.graph._read(self)
        form = FORMATS.get(self.type)
        if not form:
            return bytes(data)
        if numpy:
            return numpy.frombuffer(data, dtype=form).reshape(self.shape)
        if form == "e":  # memoryview has no such cast
            return memoryview(array.array("f", [numbers[0] for numbers in _halves(data)])).cast("B").cast(
                "f", list(self.shape))
        return memoryview(data) if 0 in self.shape else memoryview(data).cast(form, list(self.shape))

    def __repr__(self):
        return "<ggml_host.Tensor %s %s%s>" % (self.name or "-", self.type, list(self.shape))


def _halves(data):
    import struct
    return struct.iter_unpack("<e", bytes(data))


class Graph:
    """Tensors and what is computed of them, on one device: a Device, the name of one, or None for the best there is.
    Every builder of ggml is a method without its prefix and context: graph.mul_mat(w, x), graph.scale(x, s=0.5).
    One thread at a time. Ends with close(), or with the `with` that made it."""

    def __init__(self, device=None, size=2048):
        """`size`: how many tensors there may be."""
        self._lock = threading.RLock()
        self._context = self._stream = None
        if not 1 <= integer(size, "i", "size"):
            raise ValueError("size is %d: a graph has one tensor at least" % size)
        if device is not None and not isinstance(device, Device):
            device = find_device(device)
        self._buffers, self._pending, self._fresh = [], {}, False
        self._size = size
        self._graphs = 16  # compute() with other outputs makes another graph
        self._stream = lib.ggml_backend_dev_init(device._handle, None) if device else lib.ggml_backend_init_best()
        if not self._stream:
            raise failed("there is no device")
        overhead = size * lib.ggml_tensor_overhead() + self._graphs * lib.ggml_graph_overhead_custom(size, False)
        self._made = {}
        self._context = lib.ggml_init(InitParams(overhead, None, True))
        if not self._context:
            error = failed()
            self.close()
            raise error

    @property
    def is_closed(self):
        return not self._context

    @property
    def device(self):
        self._check_open()
        return Device(lib.ggml_backend_get_device(self._stream))

    @_alone
    def close(self):
        """Frees everything; tensors become invalid."""
        for buffer in self._buffers:
            lib.ggml_backend_buffer_free(buffer)
        lib.ggml_free(self._context)
        lib.ggml_backend_free(self._stream)
        self._context = self._stream = None
        self._buffers, self._pending, self._made = [], {}, {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "_stream", None):
            self.close()

    def _check_open(self):
        if self.is_closed:
            raise ValueError("the graph is closed")

    def _tensor(self, handle):
        if not handle:
            raise failed()
        if lib.ggml_tensor_is_error(handle):
            raise failed(text(lib.ggml_tensor_error(handle)))
        self._fresh = True
        return Tensor(self, handle)

    @_alone
    def tensor(self, shape, type="F32", name=None):
        """A tensor to be written with set(); `shape` as numpy has it."""
        self._check_open()
        extents = list(reversed(shape)) if isinstance(shape, (list, tuple)) else [shape]
        if type not in TYPES:
            raise ValueError("there is no type %r; there are: %s" % (type, ", ".join(TYPES)))
        if not 1 <= len(extents) <= 4:
            raise ValueError("tensors have one to four dimensions, not %d" % len(extents))
        values = (ctypes.c_int64 * len(extents))(*(integer(extent, "l", "an extent") for extent in extents))
        raw_name = None if name is None else c_text(name)
        made = self._tensor(lib.ggml_new_tensor(self._context, TYPES[type], len(extents), values))
        if raw_name is not None:
            lib.ggml_set_name(made.handle, raw_name)
        return made

    def input(self, data, name=None):
        """A tensor of the shape and type of `data`, with that in it."""
        view = _view_of(data)
        made = self.tensor(view.shape or (1,), _type_of_format(view.format, view.itemsize), name)
        made.set(view)
        return made

    def _write(self, tensor, data):
        if not tensor._head().buffer:
            self._pending[tensor.handle] = data
            return
        lib.ggml_clear_error()
        lib.ggml_backend_tensor_set(tensor.handle, data, 0, len(data))
        if lib.ggml_last_status() != 0:
            raise failed()

    def _read(self, tensor):
        data = bytearray(lib.ggml_nbytes(tensor.handle))
        if not tensor._head().buffer:
            raise ValueError("the tensor has no memory yet: compute() gives it some")
        lib.ggml_clear_error()
        if data:
            target = (ctypes.c_char * len(data)).from_buffer(data)
            lib.ggml_backend_tensor_get(tensor.handle, target, 0, len(data))
        if lib.ggml_last_status() != 0:
            raise failed()
        return data

    def _allocate(self):
        if self._fresh:
            buffer = lib.ggml_backend_alloc_ctx_tensors(self._context, self._stream)
            if not buffer:
                raise failed()
            self._buffers.append(buffer)
            self._fresh = False
        for handle, data in self._pending.items():
            self._write(Tensor(self, handle), data)
        self._pending = {}

    def _graph_of(self, outputs):
        key = tuple(tensor.handle for tensor in outputs)
        if key not in self._made:
            graph = lib.ggml_new_graph_custom(self._context, self._size, False)
            if not graph:
                raise failed()
            for handle in key:
                lib.ggml_build_forward_expand(graph, handle)
            if lib.ggml_graph_error(graph):
                raise failed(text(lib.ggml_graph_error(graph)))
            self._made[key] = graph
        return self._made[key]

    @_alone
    def compute(self, *outputs):
        """Computes these tensors and returns their values: one, or a tuple of several. Blocks until they are there.
        Again with the same ones it computes anew, with what set() wrote since."""
        self._check_open()
        if not outputs or any(tensor.graph is not self for tensor in outputs):
            raise ValueError("compute() takes tensors of this graph")
        graph = self._graph_of(outputs)
        self._allocate()
        if lib.ggml_backend_graph_compute(self._stream, graph) != 0:
            raise failed()
        values = tuple(tensor.get() for tensor in outputs)
        return values[0] if len(values) == 1 else values

    @_alone
    def _build(self, builder, *arguments, **named):
        self._check_open()
        letters, names = BUILDERS[builder]
        unknown = [name for name in named if name not in names[len(arguments):]]
        values = list(arguments) + [named[name] for name in names[len(arguments):] if name in named]
        if unknown or len(values) != len(names):
            raise TypeError("%s(%s) called with %d arguments%s" % (builder, ", ".join(names), len(values) + len(unknown),
                                                                  ", unknown: " + ", ".join(unknown) if unknown else ""))
        for at, (letter, value) in enumerate(zip(letters, values)):
            if letter in "iluz":
                values[at] = integer(value, letter, "%s: %s" % (builder, names[at]))
            if letter != "t" or value is None:
                continue
            if not isinstance(value, Tensor) or value.graph is not self:
                raise TypeError("%s: %s is no tensor of this graph" % (builder, names[at]))
            values[at] = value.handle
        return self._tensor(getattr(lib, "ggml_" + builder)(self._context, *values))

    def __getattr__(self, name):
        if name not in BUILDERS:
            raise AttributeError("Graph has no %r, nor has ggml a builder of that name" % name)
        return functools.partial(self._build, name)

    def __dir__(self):
        return sorted(set(super().__dir__()) | set(BUILDERS))
