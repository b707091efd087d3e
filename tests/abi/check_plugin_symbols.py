# SPDX-License-Identifier: MIT
"""A plugin exports its entry and nothing else, and needs nothing of the host library (GP-014, GP-015).

usage: check_plugin_symbols.py PLUGIN...
"""
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import Tap  # noqa: E402



def dynamic_symbols(path, option):
    run = subprocess.run(["nm", "-D", option, path], stdout=subprocess.PIPE, check=True,
                         universal_newlines=True)
    return sorted(m.group(1) for m in re.finditer(r"^.*\b\w (\w+)", run.stdout, re.M))


def main():
    tap = Tap()
    for path in sys.argv[1:]:
        name = os.path.basename(path)
        if not (shutil.which("nm") and os.path.exists(path)):
            tap.skip("symbols of " + name, "no nm, or it is not built")
            continue
        tap.same(dynamic_symbols(path, "--defined-only"), ["ggml_backend_init"], "exports of " + name)
        needed = [s for s in dynamic_symbols(path, "--undefined-only") if re.match(r"ggml_|gguf_", s)]
        tap.same(needed, [], "what %s needs of the host library" % name)
    tap.done()


if __name__ == "__main__":
    main()
