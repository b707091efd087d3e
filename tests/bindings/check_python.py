#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The Python package on a library that was built: laid out as it is installed, then used.

Usage: check_python.py SOURCE LIBRARY GENERATED CONTRACT"""
import array
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading

SOURCE, LIBRARY, GENERATED, CONTRACT = sys.argv[1:5]
count = failures = 0


def check(passed, name, note=""):
    global count, failures
    count += 1
    failures += not passed
    print("%s %d - %s%s" % ("ok" if passed else "not ok", count, name, "" if passed else ": %s" % (note,)), flush=True)


def refusal(kind, call, *arguments, **named):
    """The message of an exception of this kind; '' if there was none."""
    try:
        call(*arguments, **named)
    except kind as error:
        return str(error)
    return ""


def lay_out(folder):
    """prefix/lib/python/ggml_host and prefix/lib/libggml, as _where.py says it."""
    package = os.path.join(folder, "lib", "python", "ggml_host")
    shutil.copytree(os.path.join(SOURCE, "bindings/python/ggml_host"), package,
                    ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(GENERATED, os.path.join(package, "_generated.py"))
    library = os.path.join(folder, "lib", os.path.basename(LIBRARY))
    shutil.copy(LIBRARY, library)
    subprocess.run([sys.executable, os.path.join(SOURCE, "bindings/python/gen_where.py"), package, library,
                    os.path.join(package, "_where.py")], check=True)
    moved = os.path.join(folder, "elsewhere")
    os.rename(os.path.join(folder, "lib"), moved)  # a prefix can be moved
    return os.path.join(moved, "python"), os.path.join(moved, os.path.basename(LIBRARY))


def check_layouts(library):
    """Structures as the contract has them."""
    with open(CONTRACT, encoding="utf-8") as stream:
        offsets = json.load(stream)["structs"]["ggml_tensor"]["members"]
    head = library.TensorHead
    check(all(getattr(head, name).offset == offsets[name] for name, _ in head._fields_),
          "the members of ggml_tensor are where the contract has them", offsets)


def check_devices(host):
    with tempfile.TemporaryDirectory(prefix="ggml-bindings-") as empty:
        loaded = [host.load_plugins(empty), host.load_plugins(empty)]
    check(loaded == [1, 0], "of an empty folder the built-in CPU alone, once", loaded)
    check(refusal(host.Error, host.load_plugins, "/nonexistent") != "", "a folder that is not there is an error")
    records = host.plugins()
    builtin = [one for one in records if one.path == "(built-in)"]
    check(len(builtin) == 1 and builtin[0].in_use and builtin[0].status == "OK" and builtin[0].contract[0] == 1,
          "the built-in CPU has a record", records)
    names = [one.name for one in host.devices()]
    cpu = host.device("CPU")
    check("CPU" in names and cpu.type == "CPU" and cpu.memory.total > 0 and cpu.plugin[1] == "(built-in)",
          "the CPU is a device", names)
    check(cpu == host.device("CPU") and len({cpu, host.device("CPU")}) == 1, "devices compare")
    check("CPU" in refusal(LookupError, host.device, "NOPE"), "an unknown device names those that there are")
    check(isinstance(cpu.details, dict) and isinstance(cpu.capabilities, list), "details and capabilities")


def check_graphs(host):
    with host.Graph(device="CPU") as graph:
        w, x = graph.input([[1, 0, -1, 2], [0.5, 0.5, 0.5, 0.5]], name="w"), graph.input([3, -1, 2, 4])
        y = graph.relu(graph.mul_mat(w, x))
        check((w.shape, w.type, w.name, y.shape) == ((2, 4), "F32", "w", (2,)), "shapes are numpy's", (w.shape, y.shape))
        check(graph.compute(y).tolist() == [9.0, 4.0], "a layer", y.get().tolist())
        x.set(array.array("f", [0, 0, 1, 0]))
        check(graph.compute(y).tolist() == [0.0, 0.5], "again with another input", y.get().tolist())
        z = graph.scale(y, s=2)
        both = graph.compute(z, y)
        check([one.tolist() for one in both] == [[0.0, 1.0], [0.0, 0.5]], "nodes added later, two outputs", both)
        check(graph.device.supports(z), "the device supports the node")
        rows = graph.get_rows(w, graph.input(array.array("i", [1, 0, 1])))
        check(graph.compute(rows).tolist() == [[0.5] * 4, [1, 0, -1, 2], [0.5] * 4], "rows by index, 32-bit integers")
    check("closed" in refusal(ValueError, y.get), "a tensor of a closed graph is refused")
    for kind in ("Q8_0", "F16"):
        with host.Graph(device="CPU") as graph:
            target = graph.tensor((2, 32), type=kind)
            values = [[float(i) for i in range(32)], [0.0] * 32]
            written = graph.cpy(graph.input(values), target)
            stored = graph.compute(written)
            if kind == "Q8_0":
                check(len(stored) == 68, "a coded type comes as bytes", len(stored))
            else:
                check(stored.tolist() == values, "halves", stored.tolist())
    with host.Graph(device="CPU") as graph:
        coded = graph.tensor((1, 32), type="Q8_0")
        coded.set(stored if isinstance(stored, bytes) else b"\x00\x3c" + bytes(range(32)))
        values = graph.compute(graph.get_rows(coded, graph.input(array.array("i", [0]))))
        check(values.tolist() in ([[float(i) for i in range(32)]], [float(i) for i in range(32)]),
              "coded bytes go in", values.tolist())


def attack(host):
    """Closes a graph while another thread computes it. The messages of what was refused."""
    refused, result = {}, []
    with host.Graph(device="CPU") as graph:
        x = graph.input([[1.0] * 256] * 256)
        y = x
        for _ in range(48):
            y = graph.scale(graph.mul_mat(x, y), 1 / 256)

        def compute():
            try:
                result.append(graph.compute(y).tolist()[0][0])
            except ValueError as error:
                result.append(str(error))
        thread = threading.Thread(target=compute)
        thread.start()
        while thread.is_alive() and not refused:  # until it computes
            refused["get"] = refusal(RuntimeError, lambda: y._head().buffer and y.get())
            refused = {name: text for name, text in refused.items() if text}
        for name, call in (("set", lambda: x.set(array.array("f", [0.0]))), ("tensor", lambda: graph.tensor(4)),
                           ("build", lambda: graph.neg(x)), ("close", graph.close)):
            try:
                call()
            except (RuntimeError, ValueError) as error:
                refused[name] = str(error)
        thread.join()
    return all("one at a time" in refused.get(name, "") for name in ("get", "set", "tensor", "build", "close")) and \
        result == [1.0], (refused, result)


def check_threads(host):
    """Where the machine is busy, a computation may be over before the next call: tried again then."""
    for _ in range(10):
        good, note = attack(host)
        if good:
            break
    check(good, "nothing is freed or written while another thread computes", note)


def check_refusals(host):
    with host.Graph(device="CPU") as graph, host.Graph(device="CPU") as other:
        a, b = graph.input([1.0, 2.0]), graph.input([1.0, 2.0, 3.0])
        check("ne0" in refusal(host.Error, graph.mul_mat, a, b), "operands that don't fit, in the library's words")
        check("no tensor of this graph" in refusal(TypeError, graph.add, a, other.input([1.0, 2.0])),
              "a tensor of another graph")
        check("called with 1" in refusal(TypeError, graph.add, a), "an argument too few")
        check("unknown: q" in refusal(TypeError, graph.scale, a, q=1), "an unknown argument")
        check(refusal(ValueError, a.set, [1.0, 2.0, 3.0]) != "", "too much data")
        check(refusal(TypeError, a.set, array.array("i", [1, 2])) != "", "data of another type")
        check(refusal(ValueError, graph.input, [[1.0], [1.0, 2.0]]) != "", "rows of different lengths")
        check(refusal(ValueError, a.get) != "", "reading before memory is there")
        check("F32" in refusal(ValueError, graph.tensor, 4, type="F33"), "an unknown type names those that there are")
        check(refusal(AttributeError, getattr, graph, "nope") != "", "an unknown builder")
        check("between" in refusal(ValueError, graph.tensor, 2**64 + 4) and
              "between" in refusal(ValueError, graph.reshape_1d, a, 2**64 + 2) and
              "between" in refusal(ValueError, graph.repeat_4d, a, 2, 1, 1, -2**63 - 1) and
              "between" in refusal(ValueError, graph.argsort, a, 2**32), "numbers that C would cut off")
        check(refusal(TypeError, graph.reshape_1d, a, 2.0) != "", "a fraction for a whole number")
        check(refusal(host.Error, graph.tensor, -4) != "", "a negative extent")
        check("character 0" in refusal(ValueError, graph.tensor, 4, name="a\0b") and
              "character 0" in refusal(ValueError, host.load_plugins, "/tmp\0/x"), "texts that C would cut off")
    for size in (0, -1, 2**31, 2**63):
        check("size" in refusal(ValueError, host.Graph, device="CPU", size=size), "a graph of %d tensors" % size)
    check_threads(host)
    with host.Graph(device="CPU", size=4) as graph:
        check(refusal(host.Error, lambda: [graph.input([1.0]) for _ in range(1000)]) != "", "a full graph")


def check_numpy(host):
    try:
        import numpy
    except ImportError:
        print("ok %d - numpy's arrays # SKIP no numpy" % (count + 1))
        return count + 1
    with host.Graph(device="CPU") as graph:
        values = numpy.arange(12, dtype=numpy.float32).reshape(3, 4)
        a, b = graph.input(values), graph.input(numpy.asfortranarray(values))
        result = graph.compute(graph.mul_mat(a, b))
        check(isinstance(result, numpy.ndarray) and numpy.array_equal(result, values @ values.T), "numpy's arrays", result)
        halves = numpy.asfortranarray(numpy.float16([[1, 2], [3, 4]]))
        check(numpy.array_equal(graph.compute(graph.cont(graph.input(halves))), halves), "halves in the order of columns")
    return count


def main():
    with tempfile.TemporaryDirectory(prefix="ggml-bindings-") as folder:
        place, library = lay_out(folder)
        sys.path.insert(0, place)
        import ggml_host
        from ggml_host import _library
        check(os.path.realpath(_library.lib._name) == os.path.realpath(library), "the library of its own prefix",
              _library.lib._name)
        check(ggml_host.version() != "" and len(ggml_host.BUILDERS) > 150, "version and builders", len(ggml_host.BUILDERS))
        check_layouts(_library)
        check_devices(ggml_host)
        check_graphs(ggml_host)
        check_refusals(ggml_host)
        example = shutil.copy(os.path.join(SOURCE, "bindings/python/example.py"), folder)
        run = subprocess.run([sys.executable, example, "CPU"],
                             env=dict(os.environ, PYTHONPATH=place), stdout=subprocess.PIPE, text=True, check=False)
        check(run.returncode == 0 and "CPU computed [9.0, 4.0]" in run.stdout, "the example", run.stdout)
        print("1..%d" % check_numpy(ggml_host))
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
