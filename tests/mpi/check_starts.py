#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Jobs as users start them, also wrongly: each says what is wrong, ends, and leaves no process behind. Speaks TAP.

Usage: check_starts.py GGML-DEVICES GGML-NODE MPI-APP MPI-STRANGER NODE-OF-A-LATER-MAJOR-VERSION PLUGIN-THAT-EXITS WATCH-MPI.SO MPI-LATE"""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import check, finish  # noqa: E402

DEVICES, NODE, APP, STRANGER, MAJOR, EXITS, WATCH, LATE = sys.argv[1:9]
MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none", "--mca", "btl_vader_single_copy_mechanism", "none"]
RECOVERY = ["--mca", "orte_enable_recovery", "1", "--mca", "orte_abort_on_non_zero_status", "0", "--timeout", "40"]
MARK = f"GGML_TEST_MARK={os.getpid()}"
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "GGML_MPI_DEADLINE": "20",
               "GGML_TEST_MARK": str(os.getpid())}
SOON = 20  # seconds, less than what anybody waits for by itself


def left_over():
    """Processes of this test's jobs, by their environment."""
    found = []
    for pid in os.listdir("/proc"):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if pid.isdigit() and int(pid) != os.getpid() and MARK.encode() in file.read().split(b"\0"):
                    found.append(pid)
        except OSError:
            pass
    return found


def await_nothing_left():
    end = time.monotonic() + 10
    while left_over() and time.monotonic() < end:
        time.sleep(0.05)
    return left_over()


class Job:
    """Run to its end, with its text, status and seconds."""

    def __init__(self, *parts, launcher=MPIRUN, **changes):
        command = list(launcher)
        for i, part in enumerate(parts):
            command += [":"] * (i > 0) + [str(word) for word in part]
        begin = time.monotonic()
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100, check=False,
                              env={**ENVIRONMENT, **changes})
        self.seconds, self.text, self.status = time.monotonic() - begin, done.stdout, done.returncode

    def says(self, *texts):
        return all(text in self.text for text in texts)

    def __str__(self):
        return f"{self.text}\nstatus {self.status} after {self.seconds:.1f} s"


def levels():
    for level in ("single", "funneled"):
        job = Job(("-n", 1, APP, level), ("-n", 2, NODE))
        check(f"{level}: program and nodes say why no node is used, and end at once", job.seconds < SOON and
              job.says("no node of the job is used: the program started MPI without MPI_THREAD_MULTIPLE", "rank 0 ended MPI") and
              job.text.count("the program uses no nodes: it started MPI without MPI_THREAD_MULTIPLE") == 2 and "device MPI" not in job.text, job)
    job = Job(("-n", 1, APP, "serialized"), ("-n", 1, NODE, "--timeout", 3))
    check("serialized: nobody but the program may call MPI, the node gives up", job.seconds < SOON and
          job.says("without MPI_THREAD_MULTIPLE", "no program asked for nodes", "rank 0 ended MPI"), job)
    job = Job(("-n", 2, APP, "multiple", 2), ("-n", 1, NODE), GGML_MPI_NODES="1")
    check("multiple: the program's own sums and the node's memory do not disturb each other", job.status == 0 and job.seconds < SOON and job.says(
        "device MPI1:CPU", "rank 0: level multiple, own sums 1, node 1", "rank 1: level multiple, own sums 1", "rank 0 ended MPI", "rank 1 ended MPI"),
        job)


def places():
    job = Job(("-n", 2, NODE))
    check("a job of nodes alone", job.status != 0 and job.seconds < SOON and job.says("rank 0 has to be the program"), job)
    job = Job(("-n", 1, NODE), ("-n", 1, DEVICES, "--in-process"))
    check("a node as the first process", job.status != 0 and job.seconds < SOON and job.says("rank 0 has to be the program") and
          "more than once" not in job.text, job)
    job = Job(("-n", 1, APP, "multiple"), ("-n", 1, NODE, "--plugin-path", "/nowhere"))
    check("a folder of plugins that isn't there", job.status == 2 and job.seconds < SOON and job.says("ggml-node: no directory: /nowhere"), job)
    job = Job(("-n", 1, "sleep", 60), ("-n", 1, NODE, "--timeout", 2))
    check("a program without MPI", job.status == 4 and job.seconds < SOON and job.says("MPI did not start in 2 s: is the first process of the job on"),
          job)
    job = Job(("-n", 1, APP, "multiple", 1, 2), ("-n", 1, MAJOR), ("-n", 1, NODE))
    check("a node of another major version says so and waits for the program's end", job.says(
        "this node 77.0", "rank 0: level multiple, own sums 1, node 1", "rank 0 ended MPI") and job.status == 0 and
        job.text.index("this node 77.0") < job.text.index("rank 0 ended MPI") and 2 < job.seconds < SOON, job)


def strangers():
    job = Job(("-n", 1, APP, "multiple"), ("-n", 1, STRANGER, "hello"), ("-n", 1, NODE))
    check("what is no hello of a node is refused, and the node is used", job.status == 0 and job.seconds < SOON and
          job.says("the process of rank 1 is no ggml-node", "the stranger was answered", "node 1"), job)
    job = Job(("-n", 1, STRANGER, "list"), ("-n", 4, NODE))
    check("nodes refuse damaged lists of nodes", job.status == 0 and job.seconds < SOON and job.text.count("damaged list of nodes") == 4, job)


def other_mpi():
    with tempfile.TemporaryDirectory() as folder:
        job = Job(("env", f"LD_PRELOAD={WATCH}", "WATCH_MPI_OTHER=1", f"WATCH_MPI={folder}", DEVICES, "--in-process", "--color", "never"), launcher=())
    check("a program that is linked with another MPI is told so", job.says(
        "the program is linked with MPICH Version:", "ggml-host was built with Open MPI"), job)
    job = Job((APP, "multiple"), launcher=(), PMI_RANK="0", PMI_SIZE="3")
    check("a program under another MPI's launcher is told so", job.status == 0 and job.seconds < SOON and job.says(
        "the launcher of this job is another MPI's: ggml-host was built with Open MPI", "node 0"), job)
    job = Job((NODE,), launcher=(), PMI_RANK="1", PMI_SIZE="3")
    check("a node too", job.seconds < SOON and job.says("the launcher of this job is another MPI's: ggml-host was built with Open MPI"), job)


def settings():
    wrong = {"GGML_MPI_DEADLINE": "0", "GGML_MPI_START_SECONDS": "soon", "GGML_MPI_NODES": "-1", "GGML_MPI_DEVICE_MEMORY": "maybe"}
    job = Job(("-n", 1, APP, "multiple"), ("-n", 1, NODE), **wrong)
    check("settings that make no sense are named, and the node is used", job.status == 0 and job.says(
        "GGML_MPI_DEADLINE=0 is no number of seconds, 30 are taken", "GGML_MPI_START_SECONDS=soon is no number of seconds, 30 are taken",
        "GGML_MPI_NODES=-1 is no number of nodes", "GGML_MPI_DEVICE_MEMORY=maybe is neither auto nor off, auto is taken", "node 1"), job)


def plugins():
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(EXITS, folder)
        path = ":".join((folder, os.environ["GGML_PLUGIN_PATH"]))
        job = Job(("-n", 1, APP, "multiple"), ("-n", 1, "env", f"GGML_PLUGIN_PATH={path}", NODE), GGML_PROBE_CACHE="off")
    check("a node does without a plugin that would end it, and names it", job.status == 0 and job.seconds < SOON and
          job.says("ggml-node: without", os.path.basename(EXITS), "node 1"), job)


def silent():
    """MPI starts late, and then one process says nothing: it is waited for until the time is over that began before."""
    slow = ("-n", 1, "sh", "-c", f"sleep 2.5; exec {os.path.abspath(STRANGER)} silent")
    job = Job(("-n", 1, LATE, "exit"), ("-n", 1, NODE), slow, GGML_MPI_START_SECONDS="5")
    check("a process that says nothing is not waited for too long", job.status == 0 and job.seconds < SOON and job.says("late: all is freed"), job)


def late():
    for way in ("exit", "finalize"):
        job = Job(("-n", 1, LATE, way), ("-n", 1, NODE), launcher=(*MPIRUN, "--timeout", "60"))
        check(f"{way}: what is used after the goodbye is lost, and is freed", job.status == 0 and job.seconds < SOON and job.says(
            "late: all is freed") and job.text.count("MPI has ended") == 4, job)


def busy():
    job = Job(("-n", 1, LATE, "busy"), ("-n", 1, NODE), GGML_MPI_DEADLINE="1")
    check("a program that ends while a node computes waits for it", job.status == 0 and job.says("late: busy for") and
          "MPI has ended" not in job.text, job)


def hung():
    job = Job(("-n", 1, LATE, "hung"), ("-n", 1, NODE), launcher=(*MPIRUN, "--timeout", "40"), GGML_MPI_DEADLINE="1")
    check("a program does not wait for ever for a node that gets nothing done, nor does the node stay", job.seconds < SOON and job.says(
        "late: busy for", "not waited for"), job)


def killed():
    job = Job(("-n", 1, LATE, "killed"), ("-n", 2, NODE), launcher=(*MPIRUN, *RECOVERY))
    check("nodes leave when their program is killed", job.seconds < SOON and job.text.count("ggml-node: the program is gone") == 2, job)


def stopped():
    command = [*MPIRUN, "-n", "1", LATE, "stopped", ":", "-n", "1", NODE]
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**ENVIRONMENT, "GGML_MPI_DEADLINE": "1"}) as job:
        text = ""
        for line in job.stdout:
            text += line
            if line.startswith("late: process "):
                time.sleep(5)
                os.kill(int(line.split()[2]), signal.SIGCONT)
                break
        text += job.communicate(timeout=60)[0]
    check("a program that is stopped for a while keeps its node", job.returncode == 0 and "late: goes on" in text, text)


def threads():
    job = Job(("-n", 1, LATE, "threads"), ("-n", 2, NODE), launcher=(*MPIRUN, "--timeout", "60"))
    check("a program ends while threads go on to use its nodes", job.status == 0 and job.seconds < SOON and job.says("late: threads go on"), job)


def messages():
    """At each of the allocations for a message: whatever half of it was sent, nobody waits for the other."""
    jobs = [Job(("-n", 1, LATE, "message", i), ("-n", 2, NODE), launcher=(*MPIRUN, "--timeout", "30")) for i in range(1, 13)]
    wrong = [str(job) for job in jobs if job.status != 0 or not job.says("late: a message is under way")]
    check("a program ends while a thread sends messages from node to node", not wrong, "\n".join(wrong))


def signals():
    for number in (signal.SIGTERM, signal.SIGINT):
        with subprocess.Popen([*MPIRUN, "-n", "1", APP, "multiple", "1", "60", ":", "-n", "2", NODE], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, env=ENVIRONMENT) as job:
            text = job.stdout.readline()
            while text and "rank 0" not in text.splitlines()[-1]:
                line = job.stdout.readline()
                text = text + line if line else ""
            begin = time.monotonic()
            job.send_signal(number)
            rest = job.communicate(timeout=60)[0]
        left = await_nothing_left()
        check(f"{number.name} of the launcher ends program and nodes", job.returncode != 0 and time.monotonic() - begin < SOON and not left,
              f"{text}{rest}status {job.returncode}, left {left}")


def main():
    levels()
    places()
    strangers()
    other_mpi()
    settings()
    plugins()
    silent()
    late()
    busy()
    hung()
    killed()
    stopped()
    threads()
    messages()
    signals()
    left = await_nothing_left()
    check("no process is left", not left, left)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
