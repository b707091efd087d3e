// SPDX-License-Identifier: MIT
// How the processes of a job find each other: by hellos over MPI_COMM_WORLD with a tag of their
// own, after which there is a communicator of the client and its nodes alone. A node of another job
// has a port, to which the client connects.
#ifndef GGML_MPI_LINK_MEET_H
#define GGML_MPI_LINK_MEET_H

#include <mpi.h>

#include "link.h"

struct link_meeting {
    MPI_Comm comm;
    int self;
    int count;
    bool owns;                       // started MPI
    bool all_at_once;                // threads may call MPI beside each other
    uint32_t minors[LINK_MAX_PEERS]; // the client's: that nodes said
    char refused[LINK_TEXT]; // about the first process that is no node of this version, "": none
};

// Whether a thread of the link's may call MPI, by the client's thread that starts the link. If the
// program started MPI without that, its nodes, so many or all other processes, are told when it
// ends MPI, unless it is MPI_THREAD_SERIALIZED; false with the reason.
bool link_meet_may_run(unsigned n_expected, char out_why[LINK_TEXT]);
// Starts MPI if nobody has, and meets. The thread that called this is the one to call MPI from now
// on. false with the reason: link_part() is due.
bool link_meet(struct link_meeting *meeting, const struct link_options *options,
               char out_why[LINK_TEXT]);
// Connects to a node at its port, which then has rank 1 in *out_comm; its version is in
// *out_minor. Beside the thread of the link's, if all_at_once. Blocks, for good if nobody is there.
bool link_meet_joiner(const char *port, MPI_Comm *out_comm, unsigned *out_minor,
                      char out_why[LINK_TEXT]);
// Gives up the communicator, and MPI if it was started here. `finalize`: every other process does
// the same.
void link_part(struct link_meeting *meeting, bool finalize);

#endif
