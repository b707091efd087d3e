# SPDX-License-Identifier: MIT
"""llama-server under load: equal answers, and memory that doesn't grow; and with a driver that crashes."""
import concurrent.futures
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import time

import models
from harness import OURS, SIDES, THEIRS, Failure, LeftOut, row
from rows_models import EXACT, OFFLOADED

N_REQUESTS, AT_ONCE = 200, 8
STREAMED, CANCELLED = 3, 10  # every how many
# What a process may grow in the second half of the requests: allocators keep pages, in steps of up to 64 kB per thread.
MAX_GROWTH = 4 << 20


class Server:
    """A server on a port of its own, on one side's library."""

    def __init__(self, context, side, argv, env=None):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.log = context.folder() / (side + ".log")
        self.side = side
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                context.command(side, argv + ["--host", "127.0.0.1", "--port", str(self.port)], env),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    def wait(self, seconds=60):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                status, _ = self.ask("GET", "/health")
                if status == 200:
                    return True
            except OSError:
                pass
            time.sleep(0.1)
        return False

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def stream(self, body, events=None):
        """The tokens of a streamed answer; after that many events the connection is closed in its middle."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        tokens, seen = [], 0
        try:
            connection.request("POST", "/completion", json.dumps(body), {"Content-Type": "application/json"})
            response = connection.getresponse()
            for line in response:
                if line.startswith(b"data: {"):
                    event = json.loads(line[6:])
                    if not event.get("stop"):
                        tokens += event.get("tokens", [])
                    seen += 1
                    if seen == events:
                        break
        finally:
            connection.close()
        return tokens

    def memory(self):
        """Bytes in use: the resident set, without files that are mapped."""
        with open("/proc/%d/status" % self.process.pid, encoding="ascii") as file:
            fields = dict(line.split(":", 1) for line in file)
        return int(fields["RssAnon"].split()[0]) << 10

    def stop(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
        return self.process.returncode

    def last_lines(self):
        return " / ".join(self.log.read_text(errors="replace").splitlines()[-3:])


def requests():
    rng = random.Random(11)
    for index in range(N_REQUESTS):
        prompt = " ".join(rng.choice(models.WORDS) for _ in range(rng.randint(2, 40)))
        yield index, {"prompt": prompt, "n_predict": rng.randint(4, 24), "temperature": 0, "cache_prompt": False,
                      "return_tokens": True, "stream": index % STREAMED == 0 or index % CANCELLED == 0}


def one_request(server, index, body):
    if index % CANCELLED == 0:
        return server.stream(body, events=2)
    if body["stream"]:
        return server.stream(body)
    status, answer = server.ask("POST", "/completion", body)
    if status != 200:
        raise Failure("request %d: status %d: %s" % (index, status, answer[:200]))
    return json.loads(answer)["tokens"]


def load(context, side, argv):
    """The answers to all requests, and how much memory was added in the second half of them."""
    server = Server(context, side, argv)
    try:
        if not server.wait():
            raise Failure("%s: it does not start: %s" % (side, server.last_lines()))
        answers = {}
        every = list(requests())
        halves = []
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            for part in (every[:N_REQUESTS // 2], every[N_REQUESTS // 2:]):
                running = {index: pool.submit(one_request, server, index, body) for index, body in part}
                answers.update((index, future.result()) for index, future in running.items())
                time.sleep(1)
                halves.append(server.memory())
    except (OSError, http.client.HTTPException) as error:
        server.process.poll()
        raise Failure("%s: %r, status %s: %s" % (side, error, server.process.returncode, server.last_lines())) from error
    finally:
        status = server.stop()
    if status not in (0, -signal.SIGTERM):
        raise Failure("%s: it ended with status %d: %s" % (side, status, server.last_lines()))
    return answers, halves[1] - halves[0]


@row("llama-server, %d requests, %d at a time" % (N_REQUESTS, AT_ONCE))
def server(context):
    argv = ["llama-server", "-m", models.model(context, "llama"), "-t", "1", "-np", "4", "-c", "4096", "--no-warmup",
            "--cache-ram", "0"] + EXACT
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        running = {side: pool.submit(load, context, side, argv) for side in SIDES}
        try:
            theirs = running[THEIRS].result()
        except Failure as failure:
            raise LeftOut(str(failure)) from failure
        ours = running[OURS].result()
    different = [i for i in theirs[0] if theirs[0][i] != ours[0][i]
                 and not (i % CANCELLED == 0 and theirs[0][i][:1] == ours[0][i][:1])]
    text = tuple("%d tokens, %+.1f MB after the first half" % (sum(map(len, side[0].values())), side[1] / 1e6)
                 for side in (theirs, ours))
    if different:
        raise Failure("%d answers differ: %s" % (len(different), different[:8]), *text)
    if ours[1] > max(MAX_GROWTH, theirs[1]):
        raise Failure("it grows", *text)
    return text


def parent(pid):
    with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as file:
        return int(file.read().rpartition(")")[2].split()[1])


def helpers_of(pid):
    """Processes that compute for isolated devices of this one."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % name, "rb") as file:
                words = file.read().split(b"\0")
            if b"--isolate" in words and words[0].endswith(b"ggml-probe") and parent(int(name)) == pid:
                found.append(int(name))
        except OSError:
            pass  # it has ended
    return found


@row("llama-server: its driver crashes")
def crash(context):
    """With GGML_ISOLATE a server that knows nothing of it answers with errors, and goes on."""
    argv = ["llama-server", "-m", models.model(context, "llama"), "-t", "1", "-ngl", "99", "--no-warmup", "--cache-ram", "0"]
    question = {"prompt": "The water of the day", "n_predict": 8, "temperature": 0, "return_tokens": True}
    server = Server(context, OURS, argv, dict(OFFLOADED, GGML_ISOLATE="Vulkan0"))
    try:
        if not server.wait():
            raise Failure("it does not start: %s" % server.last_lines())
        status, answer = server.ask("POST", "/completion", question)
        tokens = json.loads(answer).get("tokens", [])
        helpers = helpers_of(server.process.pid)
        if status != 200 or not tokens or len(helpers) != 1:
            raise Failure("status %d, %d tokens, %d processes: %s" % (status, len(tokens), len(helpers), server.last_lines()))
        os.kill(helpers[0], signal.SIGSEGV)
        statuses = [server.ask("POST", "/completion", question)[0] for _ in range(2)]
        healthy, _ = server.ask("GET", "/health")
    except (OSError, http.client.HTTPException) as error:
        server.process.poll()
        raise Failure("%r, status %s: %s" % (error, server.process.returncode, server.last_lines())) from error
    finally:
        ended = server.stop()
    text = "", "%d tokens, then %s; health %d" % (len(tokens), statuses, healthy)
    if min(statuses) < 500 or healthy != 200 or ended not in (0, -signal.SIGTERM):
        raise Failure("it ended with status %d" % ended, *text)
    if "Vulkan0 is lost: the process that computed for it ended by signal 11" not in server.log.read_text(errors="replace"):
        raise Failure("the log does not say why", *text)
    return text
