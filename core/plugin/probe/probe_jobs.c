// SPDX-License-Identifier: MIT
// An event loop over the helpers that run: starts the next when one is done, reads what they
// send, and ends those that are late. What a helper was doing when it died is told by the last
// stage that it reported.
#include "plugin/probe/probe_jobs.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "plugin/probe/process/probe_process.h"

// A process may be gone while something that it left holds the pipe: look at least this often.
enum { TICK_MS = 20, TEXT_SIZE = 512 };

// A place for one running helper.
struct slot {
    struct probe_job *job; // NULL: free
    struct probe_process process;
    struct probe_receiver receiver;
    int64_t started;
    enum ggml_host_status heard; // of what came over the pipe
};

struct work {
    const struct probe_jobs_options *options;
    struct probe_job *jobs;
    size_t count;
    size_t next; // job that has not been started
    struct slot *slots;
    unsigned n_running;
    bool proven;   // one helper answered
    bool unusable; // no helper can be had
    char why[TEXT_SIZE];
};

// --- words ---------------------------------------------------------------------------------------

// What the helper was doing at the last stage that was reported, as a phrase of the message.
static const char *doing(const struct slot *slot) {
    if (strcmp(slot->job->path, PROBE_MACHINE) == 0) return "while hwloc read the machine";
    switch (slot->receiver.stage) {
    case GGML_PLUGIN_STAGE_SELECT: return "while it was being mapped";
    case GGML_PLUGIN_STAGE_MAP: return "in its ggml_backend_init";
    case GGML_PLUGIN_STAGE_INIT:
    case GGML_PLUGIN_STAGE_VERIFY: return "while its devices were being listed";
    case GGML_PLUGIN_STAGE_READY: return "in its shutdown";
    default: return "before it was mapped";
    }
}

// --- one job -------------------------------------------------------------------------------------

// A failure with what the plugin was doing at that moment.
static void set_failure(struct slot *slot, enum ggml_host_status status, const char *text) {
    probe_result_fail(&slot->job->result, slot->receiver.stage, status, "%s %s", text, doing(slot));
}

// The message has signal or exit status; the process may have been collected by the application.
static void set_crash(struct slot *slot, const struct probe_exit *left) {
    char text[TEXT_SIZE];
    if (!left->known) {
        snprintf(text, sizeof(text), "the process ended");
    } else if (left->code == PROBE_EXIT_NO_ANSWER) {
        snprintf(text, sizeof(text),
                 "the process could not answer: a descriptor was closed that "
                 "is not the plugin's own, or memory ran out,");
    } else if (left->signal != 0) {
        snprintf(text, sizeof(text), "the process ended by signal %d (%s)", left->signal,
                 probe_signal_name(left->signal));
    } else {
        snprintf(text, sizeof(text), "the process ended with exit status %d", left->code);
    }
    set_failure(slot, GGML_HOST_CRASHED, text);
}

// A missing answer counts as a failure of its own kind, so that it isn't mistaken for a crash.
static void set_late(struct slot *slot, unsigned deadline_ms) {
    char text[TEXT_SIZE];
    snprintf(text, sizeof(text), "no answer within %g s: its process was ended",
             (double)deadline_ms / 1000.0);
    set_failure(slot, GGML_HOST_TIMED_OUT, text);
}

// Gives up on helpers: the program at hand is no helper, or one of another build.
static void give_up(struct work *work, const char *why) {
    work->unusable = true;
    snprintf(work->why, sizeof(work->why), "%s", why);
}

// A failure to read or understand what came over the pipe. Only nonsense from a helper that has
// greeted is the plugin's doing, and lasting.
static void set_unheard(struct slot *slot) {
    switch (slot->heard) {
    case GGML_HOST_OUT_OF_MEMORY: set_failure(slot, slot->heard, "no memory for its answer"); break;
    case GGML_HOST_IO_ERROR: set_failure(slot, slot->heard, "its answer could not be read"); break;
    default:
        slot->job->lasting = slot->receiver.greeted;
        set_failure(slot, GGML_HOST_BAD_PLUGIN,
                    "what came over its pipe is no answer: it wrote to descriptors that "
                    "are not its own, or ran over the helper's memory");
    }
}

// Whether helpers work at all. One that ends before its greeting can't be used, unless another one
// has answered before.
static bool is_usable(struct work *work, const struct slot *slot, bool late) {
    if (slot->receiver.foreign) {
        give_up(work, "the helper program is of another build of the library");
        return false;
    }
    if (slot->receiver.greeted) work->proven = true;
    if (work->proven || late || slot->heard != GGML_HOST_OK) return true;
    give_up(work, "the helper program does not work");
    return false;
}

// Decides what the end of a helper means, from the strongest evidence to the weakest: what it said,
// lateness, its exit status.
static void conclude(struct work *work, struct slot *slot, const struct probe_exit *left,
                     bool late) {
    struct probe_receiver *receiver = &slot->receiver;
    struct probe_job *job = slot->job;
    if (!is_usable(work, slot, late)) return;
    job->isolated = true;
    memcpy(job->not_confined, receiver->not_confined, sizeof(job->not_confined));
    job->lasting = receiver->greeted && slot->heard == GGML_HOST_OK;
    const bool failed = receiver->answered && receiver->result.status != GGML_HOST_OK;
    if (slot->heard != GGML_HOST_OK) {
        set_unheard(slot);
    } else if (failed || receiver->ended) {
        job->result = receiver->result;
        memset(&receiver->result, 0, sizeof(receiver->result));
    } else if (late) {
        set_late(slot, work->options->deadline_ms);
    } else {
        set_crash(slot, left);
    }
}

// Bounded, so that a plugin that floods the pipe does not keep the loop from its other helpers.
static void hear(struct slot *slot) {
    enum { MOST_READS = 64 };
    unsigned char bytes[16384];
    for (int i = 0; i < MOST_READS && slot->heard == GGML_HOST_OK; ++i) {
        size_t n;
        slot->heard = probe_process_read(&slot->process, bytes, sizeof(bytes), &n);
        if (n == 0) return;
        slot->heard = probe_receiver_take(&slot->receiver, bytes, n);
    }
}

// Ends the job if its process is gone, late, or has said something wrong.
static void finish(struct work *work, struct slot *slot) {
    const int64_t limit = slot->started + (int64_t)work->options->deadline_ms * 1000;
    struct probe_exit left;
    const bool gone = probe_process_gone(&slot->process);
    const bool late = !gone && ggml_time_us() >= limit;
    hear(slot); // after the look at the process, so that its last words are heard
    if (!gone && !late && slot->heard == GGML_HOST_OK && !slot->receiver.foreign) return;
    probe_process_end(&slot->process, &left);
    conclude(work, slot, &left, late);
    if (slot->job->isolated)
        slot->job->result.microseconds = (double)(ggml_time_us() - slot->started);
    if (slot->job->isolated && work->options->progress) {
        work->options->progress(work->options->context, slot->job);
    }
    probe_receiver_free(&slot->receiver);
    slot->job = NULL;
    --work->n_running;
}

// CPU time is limited too, by deadline times processors, in case that the application dies and the
// helper spins.
static struct probe_request new_request(const struct probe_jobs_options *options) {
    struct probe_request request = {.memory_limit = options->memory_limit,
                                    .sandbox = options->sandbox};
    request.cpu_seconds = (options->deadline_ms / 1000 + 1) * probe_machine_cpus();
    return request;
}

// The key is new for each helper: what one plugin learns is useless for others.
static enum ggml_host_status start(struct work *work, struct slot *slot, struct probe_job *job) {
    struct probe_request request = new_request(work->options);
    enum ggml_host_status status = probe_key_new(request.key);
    memset(slot, 0, sizeof(*slot));
    request.file = job->file;
    slot->started = ggml_time_us();
    if (status == GGML_HOST_OK) {
        status = probe_process_start(work->options->helper, job->path, &request, &slot->process);
    }
    if (status != GGML_HOST_OK) return status;
    memcpy(slot->receiver.key, request.key, sizeof(request.key));
    slot->job = job;
    ++work->n_running;
    return GGML_HOST_OK;
}

// --- all of them ---------------------------------------------------------------------------------

// Counts as isolated, as the failure is this helper's and says nothing of others.
static void fail_unstarted(struct work *work, struct probe_job *job, enum ggml_host_status status) {
    job->isolated = true;
    probe_result_fail(&job->result, GGML_PLUGIN_STAGE_NEGOTIATE, status, "%s", ggml_last_error());
    if (work->options->progress) work->options->progress(work->options->context, job);
}

// Starts the next job. If that is not possible now, it is tried again when a running one has ended.
static void start_next(struct work *work, struct slot *slot) {
    struct probe_job *job = &work->jobs[work->next];
    const enum ggml_host_status status = start(work, slot, job);
    if (status == GGML_HOST_UNSUPPORTED) {
        give_up(work, ggml_last_error());
        return;
    }
    if (status != GGML_HOST_OK && work->n_running > 0) return;
    ++work->next;
    if (status != GGML_HOST_OK) fail_unstarted(work, job, status);
}

// Waits for output of any helper. One that closed its pipe ends in a moment and has no descriptor
// to wait for.
static void wait_for_news(struct work *work) {
    const struct probe_process *running[PROBE_JOBS_MAX];
    size_t n = 0;
    bool closed = false; // one that has nothing more to say will have ended in a moment
    for (unsigned i = 0; i < work->options->n_parallel; ++i) {
        if (!work->slots[i].job) continue;
        running[n++] = &work->slots[i].process;
        closed |= work->slots[i].process.fd < 0;
    }
    probe_process_wait(running, n, closed ? 1 : TICK_MS);
}

// A loop over slots; O(jobs) processes, n_parallel at a time.
enum ggml_host_status probe_jobs_run(const struct probe_jobs_options *options,
                                     struct probe_job *jobs, size_t count) {
    struct work work = {.options = options, .jobs = jobs, .count = count};
    work.slots = ggml_mem_calloc(options->n_parallel, sizeof(*work.slots));
    if (!work.slots) return ggml_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for the probes");
    probe_process_collect();
    while (work.n_running > 0 || (work.next < count && !work.unusable)) {
        for (unsigned i = 0; i < options->n_parallel; ++i) {
            if (work.slots[i].job || work.unusable || work.next >= count) continue;
            start_next(&work, &work.slots[i]);
        }
        if (work.n_running > 0) wait_for_news(&work);
        for (unsigned i = 0; i < options->n_parallel; ++i) {
            if (work.slots[i].job) finish(&work, &work.slots[i]);
        }
    }
    probe_process_collect();
    ggml_mem_free(work.slots);
    if (work.unusable) return ggml_fail(GGML_HOST_UNSUPPORTED, "%s", work.why);
    return GGML_HOST_OK;
}
