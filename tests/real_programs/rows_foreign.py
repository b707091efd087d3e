# SPDX-License-Identifier: MIT
"""Binaries of ggml's own backends as devices of this host: docs/plugins/foreign.md."""
import os
import re
import signal
import socket
import subprocess
import time

import models
from harness import LIBRARIES, OURS, SIDES, THEIRS, Failure, LeftOut, row
from rows_models import COMMON, EXACT, PROMPT

BACKENDS = LIBRARIES + "/ggml/backends0/libggml-%s.so"
SERVER = "/usr/libexec/x86_64-linux-gnu/llama/bin/ggml-rpc-server"
LAVAPIPE = {"GGML_VK_VISIBLE_DEVICES": "0", "VK_LOADER_DRIVERS_SELECT": "*lvp*"}
# Operations of which ggml's own kernels fail cases by value (docs/plugins/foreign.md has the numbers). What is not here must pass.
CPU_INEXACT = {"CONV_2D", "CONV_3D", "CONV_TRANSPOSE_1D", "CONV_TRANSPOSE_2D", "FLASH_ATTN_EXT", "GATED_LINEAR_ATTN", "GEGLU",
               "GEGLU_QUICK", "GELU", "GELU_QUICK", "GLU", "IM2COL", "RWKV_WKV6", "RWKV_WKV7", "SOFTPLUS", "UNARY", "UPSCALE"}
SECONDS = 300


def conform(context, backend, device, env=None, arguments=(), inexact=frozenset(), name=""):
    """ggml-conformance on a device of a binary: all that it claims must pass, but for operations known as inexact."""
    program = os.path.dirname(context.tool) + "/ggml-conformance"
    plugins = "/" + str(next(context.outside(context.home).glob("**/ggml-plugins")).relative_to(context.root))
    variables = dict(env or {}, GGML_DEVICES=None, GGML_FOREIGN_PATH=BACKENDS % backend)
    ran = context.run(THEIRS, [program, "--plugin-path", plugins, "--device", device] + list(arguments), SECONDS, name=name, env=variables)
    if "this machine can't run it" in ran.text:
        raise LeftOut(ran.last_lines())
    found = re.search(r"(\d+) cases: (\d+) passed, (\d+) failed", ran.text)
    if not found:
        raise Failure("it did not finish: %s: %s" % (ran.how(), ran.last_lines()))
    failed = set(re.findall(r"^not ok \d+ - (\w+) ", ran.text, re.M)) - inexact
    failed = {operation for operation in failed if not operation.isdigit()}
    passed, n_failed = int(found.group(2)), int(found.group(3))
    text = "", "%d cases passed%s" % (passed, ", %d of operations known as inexact failed" % n_failed if n_failed else "")
    if failed or not passed:
        raise Failure("failed: %s" % sorted(failed), *text)
    return text


class RpcServer:
    """ggml-rpc-server on a port of its own, computing on their CPU backend."""

    def __init__(self, context):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.endpoint = "127.0.0.1:%d" % self.port
        with open(context.folder() / "server.log", "wb") as log:
            self.process = subprocess.Popen(
                context.command(THEIRS, [SERVER, "-t", "2", "-d", "CPU", "-p", str(self.port)]), stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, start_new_session=True)

    def __enter__(self):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self.process.poll() is None:
            with socket.socket() as connection:
                if connection.connect_ex(("127.0.0.1", self.port)) == 0:
                    return self
            time.sleep(0.1)
        self.__exit__()
        raise LeftOut("ggml-rpc-server does not start")

    def __exit__(self, *_):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def must_be_alive(self, *text):
        if self.process.poll() is not None:
            raise Failure("the server has ended", *text)


@row("foreign: libggml-blas.so")
def blas(context):
    return conform(context, "blas", "foreign-BLAS")


@row("foreign: libggml-cpu-haswell.so, a sample")
def haswell(context):
    return conform(context, "cpu-haswell", "foreign-CPU", arguments=["--every", "17"], inexact=CPU_INEXACT)


@row("foreign: libggml-cpu-haswell.so", only_all=True)
def haswell_all(context):
    return conform(context, "cpu-haswell", "foreign-CPU", inexact=CPU_INEXACT)


@row("foreign: libggml-cpu-haswell.so, rotations")
def rotations(context):
    """With no channel to rotate, theirs never ends."""
    return conform(context, "cpu-haswell", "foreign-CPU", arguments=["--op", "ROPE"])


@row("foreign: libggml-hip.so", only_all=True)
def hip(context):
    """On a machine without such a GPU it is tried, opened, and shown with the reason why it has no devices."""
    if not context.outside(BACKENDS % "hip").exists():
        raise LeftOut("libggml0-backend-hip is not installed (6 GB with what it needs)")
    program = os.path.dirname(context.tool) + "/ggml-devices"
    plugins = "/" + str(next(context.outside(context.home).glob("**/ggml-plugins")).relative_to(context.root))
    ran = context.run(THEIRS, [program, "--plugin-path", plugins, "--no-cache"], SECONDS,
                      env={"GGML_DEVICES": None, "GGML_FOREIGN_PATH": BACKENDS % "hip"})
    shown = re.search(r"foreign-ROCm\d|libggml-hip\.so finds no devices here", " ".join(ran.text.split()))
    if not ran.ok or not shown:
        raise Failure("it is not shown: %s: %s" % (ran.how(), ran.last_lines()))
    return "", shown.group(0)


def over_rpc(context, arguments):
    with RpcServer(context) as server:
        text = conform(context, "rpc", "foreign-RPC0", {"GGML_FOREIGN_RPC": server.endpoint}, arguments, CPU_INEXACT)
        server.must_be_alive(*text)
        return text


@row("foreign: libggml-rpc.so with a server, a sample")
def rpc(context):
    return over_rpc(context, ["--every", "17"])


@row("foreign: libggml-rpc.so with a server", only_all=True)
def rpc_all(context):
    return over_rpc(context, [])


@row("foreign: llama-completion --rpc")
def completion_over_rpc(context):
    """The server is added while the program runs; every layer is given to it on both sides."""
    with RpcServer(context) as server:
        argv = ["llama-completion", "-m", models.model(context, "llama"), "-p", PROMPT, "-n", "32", "--temp", "0", "-no-cnv",
                "-lv", "4", "-ngl", "99", "--rpc", server.endpoint] + COMMON + EXACT
        sides = {}
        for _ in range(8):  # a run may lose its last words
            for side in SIDES:  # a server has one client at a time
                env = {"GGML_DEVICES": None, "GGML_FOREIGN_PATH": BACKENDS % "rpc"} if side == OURS else None
                ran = context.run(side, argv, SECONDS, env=env)
                if side == THEIRS and not ran.ok:
                    raise LeftOut("their own library: %s: %s" % (ran.how(), ran.last_lines()))
                ran.must_end_well()
                buffers = re.findall(r"(\w+)\[[\d.:]+\] model buffer size", ran.text)
                found = ran.stdout, ran.find(r"offloaded (\d+/\d+) layers"), buffers
                sides[side] = max(sides.get(side, found), found, key=lambda one: len(one[0]))
            if sides[THEIRS] == sides[OURS]:
                break
    text = tuple("%d bytes of text, %s layers on the server" % (len(sides[side][0]), sides[side][1]) for side in (THEIRS, OURS))
    if sides[THEIRS] != sides[OURS] or sides[OURS][2] != ["RPC0"]:
        raise Failure("another text or other layers", *text)
    return text
