// SPDX-License-Identifier: MIT
// A process with one check, or with several that can share it.
#ifndef PLUGIN_CHECK_JOB_H
#define PLUGIN_CHECK_JOB_H

#include <sys/types.h>

#include "runner.h"

struct job {
    struct check_result *result; // of the check that it is at; NULL: none is running
    struct check_result *rest;   // behind it; stays when none is running
    int n_left;                  // number of those
    pid_t pid, parent;           // the check's process, and the one that started it
    int pid_fd; // readable when the process has ended; -1 where the system has no such thing
    int fd;     // of the pipe; -1: closed
    double started;
    struct check_progress *progress; // the same for all checks of this job, until job_free()
    unsigned n_steps;
    double alive; // when it made its last step
    unsigned char key[CHECK_KEY_SIZE];
    struct check_message message;
    size_t received;
};

// Starts the checks of `n` results in a fork of this process, which must have one thread only. The
// descriptors of the other jobs are closed there. False if there is no process to be had. [init]
bool job_start(struct job *job, const struct runner_options *options, struct check_result *results,
               int n, const struct job *others, int n_others);
void job_free(struct job *job);
// Returns when one of the jobs has something to say or to be ended, or some time passed. [init]
void job_wait(struct job *jobs, int n_jobs);
// Fills a result and returns true if the process has ended, or has made no step for longer than
// the deadline; what it left running is then ended too. Results behind a failed one stay as they
// were. [init]
bool job_finish(struct job *job, double deadline);

#endif
