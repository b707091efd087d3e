// SPDX-License-Identifier: MIT
// A process of the job that is neither the program nor a node, and says what no such one says.
//
// usage: mpi-stranger hello | list
// hello: a node whose hello is too long, and then too short. list: a program whose list of nodes is
// damaged.
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { TAG_HELLO = 26477, TAG_MEMBERS = 26478, LONG = 100000 };

static int say_hello(void) {
    static char hello[LONG];
    int answer = 0;
    memset(hello, 'x', sizeof(hello));
    MPI_Send(hello, LONG, MPI_BYTE, 0, TAG_HELLO, MPI_COMM_WORLD);
    MPI_Send(hello, 1, MPI_BYTE, 0, TAG_HELLO, MPI_COMM_WORLD); // nobody need take it
    MPI_Recv(&answer, 1, MPI_INT, 0, TAG_MEMBERS, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("the stranger was answered\n");
    return 0;
}

static int give_list(void) {
    static const int lists[][3] = {{0, 5000, 5001}, {0, 2, 1}, {0, -1, 1}, {1, 2, 3}};
    int size;
    char hello[LONG];
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 1; i < size; ++i) {
        MPI_Recv(hello, LONG, MPI_BYTE, i, TAG_HELLO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(lists[(i - 1) % 4], 3, MPI_INT, i, TAG_MEMBERS, MPI_COMM_WORLD);
    }
    return 0;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    MPI_Init(&argc, &argv);
    const int status = strcmp(what, "hello") == 0    ? say_hello()
                       : strcmp(what, "list") == 0   ? give_list()
                       : strcmp(what, "silent") == 0 ? 0
                                                     : 2;
    MPI_Finalize();
    return status;
}
