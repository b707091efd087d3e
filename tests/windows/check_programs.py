#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs for Windows with the plugins that they find, or must refuse. Speaks TAP.

Usage: check_programs.py STATIC_EXE SHARED_EXE DEVICES_EXE LIBRARY PLUGIN_CPU PLUGIN_NULL PLUGIN_VULKAN [WRAPPER]
(PLUGIN_NULL again where there is no PLUGIN_VULKAN)"""
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import check, finish  # noqa: E402

STATIC, SHARED, DEVICES, LIBRARY, CPU, NULL, VULKAN = (os.path.abspath(path) for path in sys.argv[1:8])
WRAPPER = sys.argv[8:]
ODD = "Größe 文件 имя"  # in no single code page
EXPECTED = "CPU computed [9, 4]"


def run(program, *arguments, cwd=None, **variables):
    """What it wrote; its exit status follows in a line of its own."""
    environment = dict(os.environ, LC_ALL="C.UTF-8", **variables)
    done = subprocess.run(WRAPPER + [program, *arguments], env=environment, cwd=cwd, timeout=100,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.stdout.decode("utf-8", "replace").replace("\r", "") + f"\nstatus {done.returncode}\n"


def native(path):
    """The path as the program sees it."""
    return ("Z:" + path).replace("/", "\\") if WRAPPER else path


def put(source, *parts, change=lambda image: image):
    path = os.path.join(*parts)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(source, "rb") as stream:
        image = stream.read()
    with open(path, "wb") as stream:
        stream.write(change(image))
    return path


def other_contract(image):
    at = image.index(b"GGMLPLG\x1a") + 12
    return image[:at] + b"\x63" + image[at + 1:]


def check_sample(folder):
    program = put(STATIC, folder, "static", "one-binary.exe")
    text = run(program)
    check("static, alone", EXPECTED in text and "status 0" in text, text)

    beside = put(CPU, folder, "static", "ggml-plugins", "ggml-cpu.dll")
    text = run(program, cwd="/")
    check("static, plugin beside it", f"plugin {native(beside)}: in use" in text and EXPECTED in text, text)

    odd = put(STATIC, folder, ODD, "one-binary.exe")
    beside = put(CPU, folder, ODD, "ggml-plugins", "libggml-cpu.dll")
    text = run(odd)
    check("static, in a folder of any name", f"plugin {native(beside)}: in use" in text and EXPECTED in text, text)

    put(LIBRARY, folder, "shared", os.path.basename(LIBRARY))
    program = put(SHARED, folder, "shared", "one-binary.exe")
    null = put(NULL, folder, "listed " + ODD, "ggml-null.dll")
    cpu = put(CPU, folder, "listed too", "ggml-cpu-any.dll")
    path = ";".join(native(os.path.dirname(file)) for file in (null, cpu))
    text = run(program, GGML_PLUGIN_PATH=path)
    check("shared, directories of GGML_PLUGIN_PATH",
          f"plugin {native(cpu)}: in use" in text and f"plugin {native(null)}: " in text and EXPECTED in text, text)


def check_vulkan(folder):
    """Wine has a driver only where it has a display."""
    if VULKAN == NULL:
        return
    program = put(STATIC, folder, "vulkan", "one-binary.exe")
    plugin = put(VULKAN, folder, "vulkan", "ggml-plugins", "ggml-vulkan.dll")
    text = run(program)
    used = f"plugin {native(plugin)}: in use" in text and "Vulkan0 computed [9, 4]" in text
    refused = f"plugin {native(plugin)}: plugin 'vulkan' could not start" in text and EXPECTED in text
    check("static, Vulkan plugin beside it", used or refused, text)


def check_refused(folder):
    with open(CPU, "rb") as stream:
        size = len(stream.read())
    put(CPU, folder, "ggml-contract.dll", change=other_contract)
    put(CPU, folder, "ggml-short.dll", change=lambda image: image[:size // 2])
    put(CPU, folder, "ggml-empty.dll", change=lambda image: b"")
    put(CPU, folder, "ggml-needy.dll", change=lambda image: image.replace(b"KERNEL32.dll", b"NOT_HERE.dll"))
    put(sys.executable, folder, "ggml-elf.dll")
    put(STATIC, folder, "ggml-program.dll")
    text = run(DEVICES, "--in-process", "--plugin-path", os.path.basename(folder), cwd=os.path.dirname(folder),
               WINEPATH=native(os.path.dirname(LIBRARY)))
    for name, reason in (("contract", "built for plugin contract 99."), ("short", "damaged"), ("empty", "empty"),
                         ("needy", "needs NOT_HERE.dll, which is not installed"), ("elf", "ELF"),
                         ("program", "a Windows program, not a library")):
        about = text.partition(f"ggml-{name}.dll\n")[2].split("\n  refused ")[0]
        check(f"refused: {name}", reason in about, text)


def check_devices(folder):
    text = run(DEVICES, "--test", WINEPATH=native(os.path.dirname(LIBRARY)))
    check("self-test of ggml-devices", text.count("passed ") == 5 and "status 0" in text, text)
    drawing = os.path.join(folder, ODD + ".svg")
    text = run(DEVICES, "--svg", native(drawing), WINEPATH=native(os.path.dirname(LIBRARY)))
    check("a drawing in a file of any name", os.path.exists(drawing) and "status 0" in text, text)


def main():
    with tempfile.TemporaryDirectory(prefix="ggml-windows-") as folder:
        check_sample(folder)
        check_vulkan(folder)
        check_refused(os.path.join(folder, "refused " + ODD))
        check_devices(folder)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
