// SPDX-License-Identifier: MIT
// How the processes of a job find each other: by hellos over MPI_COMM_WORLD with a tag of their
// own, after which there is a communicator of the client and its nodes alone.
#ifndef GGML_MPI_LINK_MEET_H
#define GGML_MPI_LINK_MEET_H

#include <mpi.h>

#include "link.h"

struct link_meeting {
    MPI_Comm comm;
    int self;
    int count;
    bool owns;               // started MPI
    bool any_thread;         // may call MPI, one at a time
    char refused[LINK_TEXT]; // about the first process that is no node of this version, "": none
};

// Starts MPI if nobody has, and meets. Unless any_thread, the thread that called this is the one to
// call MPI from now on. false with the reason.
bool link_meet(struct link_meeting *meeting, const struct link_options *options,
               char out_why[LINK_TEXT]);
// Gives up the communicator, and MPI if it was started here. `finalize`: every other process does
// the same.
void link_part(struct link_meeting *meeting, bool finalize);

#endif
