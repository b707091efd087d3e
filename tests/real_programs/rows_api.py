# SPDX-License-Identifier: MIT
"""What programs were compiled and linked with: layouts, constants, signatures and symbols."""
import pathlib
import subprocess
import sys

from harness import Failure, row


def checked(context, script, arguments):
    """The number of checks of a script that speaks TAP."""
    done = subprocess.run([sys.executable, str(context.sources / script)] + [str(a) for a in arguments],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    (context.folder() / "checks.log").write_text(done.stdout)
    lines = done.stdout.splitlines()
    passed = sum(line.startswith("ok ") for line in lines)
    wrong = [line for line in lines if line.startswith("not ok ")]
    if done.returncode != 0 or wrong or not passed:
        raise Failure("; ".join(wrong[:3]) or done.stdout[-300:], ours="%d of %d" % (passed, passed + len(wrong)))
    return passed


@row("libggml-dev's headers: constants, layouts, signatures")
def layouts(context):
    ours = pathlib.Path(__file__).resolve().parents[2] / "abi"
    count = checked(context, "check_layouts.py", [context.outside("/usr/include"), ours, "cc"])
    return "%d questions" % count, "same answers"


@row("symbols of installed programs")
def symbols(context):
    home = context.outside(context.home)
    libraries = [next(home.glob("**/" + name)) for name in ("libggml.so.1", "libggml.so.0", "libggml-base.so.0")]
    count = checked(context, "check_symbols.py", [context.root] + libraries)
    return "%d programs and libraries" % (count - 3), "nothing missing"
