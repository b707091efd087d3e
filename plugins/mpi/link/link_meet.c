// SPDX-License-Identifier: MIT
// How the processes of a job find each other.
//
// A node says hello to rank 0, the client collects hellos and tells each node who the members are,
// and the members make a communicator: the program's other processes, if there are any, take no
// part (MPI_Comm_create_group).
#define _GNU_SOURCE
#include "link_meet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "wire/wire.h"

enum { TAG_HELLO = 26477, TAG_MEMBERS = 26478, TAG_GROUP = 26479 };
// In place of a version, to a node of a program that can use none.
enum { NO_THREADS = -1 };
enum { FIRST_PROBES = 100 };
// How long the end of such a program waits for the next node that asks.
static const double ASK_SECONDS = 2;

struct hello {
    uint32_t magic;
    uint32_t order; // 1: of this byte order
    uint32_t major, minor;
    uint32_t tensor_size;
};

static const struct hello own_hello = {WIRE_MAGIC, 1, WIRE_MAJOR, WIRE_MINOR,
                                       sizeof(struct wire_tensor)};

static int number_of(const char *name) {
    const char *value = secure_getenv(name);
    return value && value[0] != '\0' ? atoi(value) : -1;
}

// Whether this thread may call a started MPI: what is asked for that may be by any thread. Of
// MPI_THREAD_SERIALIZED nobody but the program knows whether another one calls it just now.
static bool may_call_mpi(void) {
    int level = MPI_THREAD_SINGLE, is_main = 0;
    MPI_Query_thread(&level);
    if (level < MPI_THREAD_SERIALIZED) MPI_Is_thread_main(&is_main);
    return level == MPI_THREAD_MULTIPLE || is_main;
}

static bool fail(char out_why[LINK_TEXT], const char *why) {
    snprintf(out_why, LINK_TEXT, "%s", why);
    return false;
}

// The first number that one of these environment variables has, or -1.
static int first_number(const char *const *names, size_t n) {
    int number = -1;
    for (size_t i = 0; i < n && number < 0; ++i)
        number = number_of(names[i]);
    return number;
}

static int size_by_launcher(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};
    return first_number(names, sizeof(names) / sizeof(names[0]));
}

// What the MPI that is called says of itself, up to the first comma or line's end.
static void describe_mpi(char out_text[LINK_TEXT / 2]) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING > 16384 ? MPI_MAX_LIBRARY_VERSION_STRING : 16384];
    int length = 0;
    version[0] = '\0';
    MPI_Get_library_version(version, &length);
    version[strcspn(version, ",\n")] = '\0';
    snprintf(out_text, LINK_TEXT / 2, "%.*s", LINK_TEXT / 2 - 1, version);
}

// A program that is linked with another MPI has its functions called in place of those that this
// was compiled for, whose handles are different things.
bool link_has_own_mpi(char out_why[LINK_TEXT]) {
#ifdef OPEN_MPI
    enum { IS_OPEN_MPI = 1 };
#else
    enum { IS_OPEN_MPI = 0 };
#endif
    char text[LINK_TEXT / 2];
    describe_mpi(text);
    if ((strncmp(text, "Open MPI", 8) == 0) == IS_OPEN_MPI) return true;
    snprintf(out_why, LINK_TEXT, "the program is linked with %s, ggml-host was built with %s", text,
             IS_OPEN_MPI ? "Open MPI" : "an MPI like MPICH");
    return false;
}

// Reads what launchers (Open MPI, MPICH, PMIx) put into the environment, so that a program that
// was started without one doesn't start MPI.
bool link_launched(int *out_rank, int *out_size, int *out_programs) {
    static const char *const ranks[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"};
    int started = 0, ended = 0;
    *out_programs = number_of("OMPI_NUM_APP_CTX");
    if (*out_programs < 0) *out_programs = 0;
    *out_rank = first_number(ranks, sizeof(ranks) / sizeof(ranks[0]));
    *out_size = size_by_launcher();
    MPI_Finalized(&ended);
    if (!ended) MPI_Initialized(&started);
    if (started && *out_rank < 0 && may_call_mpi()) MPI_Comm_rank(MPI_COMM_WORLD, out_rank);
    return !ended && (started || *out_rank >= 0);
}

// Starts MPI, or joins the program's, and notes whether threads may call it beside each other.
static bool start_mpi(struct link_meeting *meeting, char out_why[LINK_TEXT]) {
    int started = 0, level = 0;
    MPI_Initialized(&started);
    if (!started) {
        meeting->owns = true;
        if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level) != MPI_SUCCESS)
            return fail(out_why, "MPI can't be started");
        meeting->all_at_once = level == MPI_THREAD_MULTIPLE;
        return level >= MPI_THREAD_FUNNELED || fail(out_why, "MPI was built without threads");
    }
    meeting->all_at_once = true; // link_meet_may_run()
    return true;
}

// Waits for a message without keeping a core busy; false at the deadline, however late it is then
// after the first probes: MPI finds what has come long ago only after it was called a few times.
static bool await(int source, int tag, double deadline, MPI_Status *out_status) {
    int found = 0, n = 0;
    const struct timespec pause = {0, 200000};
    while (MPI_Iprobe(source, tag, MPI_COMM_WORLD, &found, out_status) == MPI_SUCCESS && !found) {
        if (++n >= FIRST_PROBES && link_now() >= deadline) return false;
        nanosleep(&pause, NULL);
    }
    return found;
}

// A hello of another size is none.
static void receive_hello(const MPI_Status *status, struct hello *out_hello) {
    int size = 0;
    memset(out_hello, 0, sizeof(*out_hello));
    MPI_Get_count(status, MPI_BYTE, &size);
    char *bytes = calloc(1, (size_t)(size > 0 ? size : 0) + sizeof(*out_hello));
    if (!bytes) return;
    MPI_Recv(bytes, size, MPI_BYTE, status->MPI_SOURCE, TAG_HELLO, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    if (size == (int)sizeof(*out_hello)) memcpy(out_hello, bytes, sizeof(*out_hello));
    free(bytes);
}

// --- a program whose MPI no other thread may call ------------------------------------------------

// Nodes that are refused when the program ends MPI.
static int n_to_refuse;

// By MPI_Finalize(), which begins with the attributes of MPI_COMM_SELF and waits for all processes:
// nodes that wait for this one are told that it uses none.
static int refuse_all(MPI_Comm comm, int key, void *value, void *extra) {
    MPI_Status status;
    struct hello hello;
    (void)comm;
    (void)key;
    (void)value;
    (void)extra;
    for (int n = 0; n < n_to_refuse; ++n) {
        if (!await(MPI_ANY_SOURCE, TAG_HELLO, link_now() + ASK_SECONDS, &status)) break;
        receive_hello(&status, &hello);
        const int why = NO_THREADS;
        MPI_Send(&why, 1, MPI_INT, status.MPI_SOURCE, TAG_MEMBERS, MPI_COMM_WORLD);
    }
    return MPI_SUCCESS;
}

bool link_meet_may_run(unsigned n_expected, char out_why[LINK_TEXT]) {
    int started = 0, level = MPI_THREAD_MULTIPLE, size = 1, key;
    MPI_Initialized(&started);
    if (started) MPI_Query_thread(&level);
    if (level == MPI_THREAD_MULTIPLE) return true;
    if (may_call_mpi()) {
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        n_to_refuse = n_expected > 0 ? (int)n_expected : size - 1;
        if (MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, refuse_all, &key, NULL) == MPI_SUCCESS)
            MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    }
    return fail(out_why, "the program started MPI without MPI_THREAD_MULTIPLE, which a thread "
                         "beside its own needs");
}

// --- client --------------------------------------------------------------------------------------

static bool is_ours(const struct hello *hello) {
    return hello->magic == WIRE_MAGIC && hello->order == 1 && hello->major == WIRE_MAJOR &&
           hello->tensor_size == own_hello.tensor_size;
}

static int by_number(const void *a, const void *b) {
    return *(const int *)a - *(const int *)b;
}

// Says in which way a process is no node for this one.
static void describe_refused(const struct hello *hello, int rank, char out_text[LINK_TEXT]) {
    if (hello->magic != WIRE_MAGIC) {
        snprintf(out_text, LINK_TEXT, "the process of rank %d is no ggml-node", rank);
    } else if (hello->order != 1 || hello->tensor_size != own_hello.tensor_size) {
        snprintf(out_text, LINK_TEXT, "the ggml-node of rank %d has another byte order or layout",
                 rank);
    } else {
        snprintf(out_text, LINK_TEXT,
                 "the ggml-node of rank %d speaks version %u.%u of the protocol, this program "
                 "%u.%u: install the same release on both hosts",
                 rank, hello->major, hello->minor, own_hello.major, own_hello.minor);
    }
}

// A node of another version is told that it isn't a member, and which version this one is. Hellos
// that have come are read, however late it is.
static int collect(struct link_meeting *meeting, int *members, int most, double deadline) {
    int n = 1;
    uint32_t *minors = meeting->minors; // by rank of the job here
    bool heard[LINK_MAX_PEERS] = {true};
    members[0] = 0;
    while (n < most) {
        MPI_Status status;
        struct hello hello;
        if (!await(MPI_ANY_SOURCE, TAG_HELLO, deadline, &status)) break;
        receive_hello(&status, &hello);
        if (status.MPI_SOURCE >= LINK_MAX_PEERS || heard[status.MPI_SOURCE]) continue;
        heard[status.MPI_SOURCE] = true;
        if (is_ours(&hello)) {
            minors[status.MPI_SOURCE] = hello.minor;
            members[n++] = status.MPI_SOURCE;
        } else {
            const int major = WIRE_MAJOR;
            MPI_Send(&major, 1, MPI_INT, status.MPI_SOURCE, TAG_MEMBERS, MPI_COMM_WORLD);
            if (meeting->refused[0] == '\0')
                describe_refused(&hello, status.MPI_SOURCE, meeting->refused);
            --most;
        }
    }
    qsort(members, (size_t)n, sizeof(*members), by_number);
    for (int i = 0; i < n; ++i) // ranks of the job rise, so none is overwritten before it is read
        minors[i] = minors[members[i]];
    return n;
}

// Makes a communicator of the members, in which errors are returned instead of ending the job.
static bool make_comm(struct link_meeting *meeting, const int *members, char out_why[LINK_TEXT]) {
    MPI_Group world, group;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, meeting->count, members, &group);
    const int status = MPI_Comm_create_group(MPI_COMM_WORLD, group, TAG_GROUP, &meeting->comm);
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    if (status != MPI_SUCCESS) return fail(out_why, "MPI makes no communicator");
    MPI_Comm_set_errhandler(meeting->comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(meeting->comm, &meeting->self);
    return true;
}

// A communicator of the client alone, to which nodes may join later, from any host.
static bool stay_alone(struct link_meeting *meeting, char out_why[LINK_TEXT]) {
    meeting->count = 1;
    return MPI_Comm_dup(MPI_COMM_SELF, &meeting->comm) == MPI_SUCCESS ||
           fail(out_why, "MPI makes no communicator");
}

// The client's side: collects hellos until the expected number or the deadline, then sends each
// node the list of members.
static bool meet_nodes(struct link_meeting *meeting, const struct link_options *options, int size,
                       char out_why[LINK_TEXT]) {
    int *members = malloc((size_t)size * sizeof(*members));
    if (!members) return fail(out_why, "no memory for the processes of the job");
    int most = options->n_expected > 0 ? (int)options->n_expected + 1 : size;
    if (most > size) most = size;
    if (most > LINK_MAX_PEERS) most = LINK_MAX_PEERS;
    meeting->count = collect(meeting, members, most, options->start_until);
    bool good = meeting->count > 1;
    for (int i = 1; i < meeting->count; ++i)
        MPI_Send(members, meeting->count, MPI_INT, members[i], TAG_MEMBERS, MPI_COMM_WORLD);
    if (!good && meeting->refused[0] != '\0') {
        fail(out_why, meeting->refused);
    } else if (!good) {
        fail(out_why, "no other process of the job is a ggml-node: start with mpirun -n 1 "
                      "PROGRAM : -n NODES ggml-node");
    }
    good = good && make_comm(meeting, members, out_why);
    free(members);
    return good;
}

// --- node ----------------------------------------------------------------------------------------

// Ranks of the job from the program's on, each once, with this process among them.
static bool is_list_sound(const int *members, int count) {
    int rank = 0, size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    bool has_rank = false;
    for (int i = 1; i < count; ++i) {
        if (members[i] <= members[i - 1]) return false;
        has_rank = has_rank || members[i] == rank;
    }
    return members[0] == 0 && members[count - 1] < size && has_rank;
}

// The node's side: says hello and waits for the list; a list of one member means that the
// versions don't agree.
static bool meet_client(struct link_meeting *meeting, const struct link_options *options,
                        char out_why[LINK_TEXT]) {
    MPI_Status status;
    int members[LINK_MAX_PEERS], count = 0;
    MPI_Send(&own_hello, (int)sizeof(own_hello), MPI_BYTE, 0, TAG_HELLO, MPI_COMM_WORLD);
    if (!await(0, TAG_MEMBERS, options->start_until, &status))
        return fail(out_why, "no program asked for nodes: is the first one of the job linked with "
                             "ggml-host, and does it load plugins?");
    MPI_Get_count(&status, MPI_INT, &count);
    if (count < 1 || count > LINK_MAX_PEERS) return fail(out_why, "damaged list of nodes");
    MPI_Recv(members, count, MPI_INT, 0, TAG_MEMBERS, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (count == 1 && members[0] == NO_THREADS)
        return fail(out_why, "the program uses no nodes: it started MPI without "
                             "MPI_THREAD_MULTIPLE");
    if (count == 1) {
        snprintf(out_why, LINK_TEXT,
                 "the program speaks version %d of the protocol, this node %d.%d: install the same "
                 "release on both hosts",
                 members[0], WIRE_MAJOR, WIRE_MINOR);
        return false;
    }
    if (!is_list_sound(members, count)) return fail(out_why, "damaged list of nodes");
    meeting->count = count;
    return make_comm(meeting, members, out_why);
}

// --- a node of another job -----------------------------------------------------------------------

// A communicator of two from one with each side in a group of its own: the client is 0.
static bool merge(MPI_Comm between, bool is_node, MPI_Comm *out_comm, char out_why[LINK_TEXT]) {
    MPI_Comm_set_errhandler(between, MPI_ERRORS_RETURN);
    if (MPI_Intercomm_merge(between, is_node, out_comm) != MPI_SUCCESS)
        return fail(out_why, "MPI makes no communicator with a process of another job");
    MPI_Comm_set_errhandler(*out_comm, MPI_ERRORS_RETURN);
    return true;
}

// Of this process alone; errors are returned, whatever the program has set for MPI_COMM_SELF.
static bool own_comm(MPI_Comm *out_comm) {
    if (MPI_Comm_dup(MPI_COMM_SELF, out_comm) != MPI_SUCCESS) return false;
    return MPI_Comm_set_errhandler(*out_comm, MPI_ERRORS_RETURN) == MPI_SUCCESS;
}

bool link_meet_joiner(const char *port, MPI_Comm *out_comm, unsigned *out_minor,
                      char out_why[LINK_TEXT]) {
    MPI_Comm self, between;
    struct hello hello;
    if (!own_comm(&self)) return fail(out_why, "MPI makes no communicator");
    const int status = MPI_Comm_connect(port, MPI_INFO_NULL, 0, self, &between);
    MPI_Comm_free(&self);
    if (status != MPI_SUCCESS)
        return fail(out_why, "MPI can't connect to the node: were both jobs started with the same "
                             "--ompi-server?");
    if (!merge(between, false, out_comm, out_why)) return false;
    MPI_Recv(&hello, (int)sizeof(hello), MPI_BYTE, 1, TAG_HELLO, *out_comm, MPI_STATUS_IGNORE);
    const int major = WIRE_MAJOR;
    MPI_Send(&major, 1, MPI_INT, 1, TAG_MEMBERS, *out_comm);
    *out_minor = hello.minor;
    if (is_ours(&hello)) return true;
    describe_refused(&hello, 1, out_why);
    MPI_Comm_free(out_comm);
    return false;
}

// The node's side: waits, however long, for a program that was told its port.
static bool await_client(struct link_meeting *meeting, const struct link_options *options,
                         char out_why[LINK_TEXT]) {
    char port[MPI_MAX_PORT_NAME];
    MPI_Comm self, between;
    int major = 0;
    if (!own_comm(&self) || MPI_Open_port(MPI_INFO_NULL, port) != MPI_SUCCESS)
        return fail(out_why, "MPI opens no port");
    if (!options->on_port(options->context, port))
        return fail(out_why, "the name of the port can't be given to a program");
    const int status = MPI_Comm_accept(port, MPI_INFO_NULL, 0, self, &between);
    MPI_Close_port(port);
    MPI_Comm_free(&self);
    if (status != MPI_SUCCESS)
        return fail(out_why, "MPI accepts no program of another job: Open MPI needs an ompi-server "
                             "that both jobs are started with");
    if (!merge(between, true, &meeting->comm, out_why)) return false;
    MPI_Send(&own_hello, (int)sizeof(own_hello), MPI_BYTE, 0, TAG_HELLO, meeting->comm);
    MPI_Recv(&major, 1, MPI_INT, 0, TAG_MEMBERS, meeting->comm, MPI_STATUS_IGNORE);
    meeting->count = 2;
    meeting->self = 1;
    if (major == WIRE_MAJOR) return true;
    snprintf(out_why, LINK_TEXT,
             "the program speaks version %d of the protocol, this node %d.%d: install the same "
             "release on both hosts",
             major, WIRE_MAJOR, WIRE_MINOR);
    return false;
}

// --- both ----------------------------------------------------------------------------------------

// A process that another MPI's launcher started is alone for MPI.
static void fail_of_launcher(char out_why[LINK_TEXT]) {
    char text[LINK_TEXT / 2];
    describe_mpi(text);
    snprintf(out_why, LINK_TEXT,
             "the launcher of this job is another MPI's: ggml-host was built with %s", text);
}

static bool meet(struct link_meeting *meeting, const struct link_options *options,
                 char out_why[LINK_TEXT]) {
    int rank = 0, size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    bool good = false;
    if (size == 1 && size_by_launcher() > 1) {
        fail_of_launcher(out_why);
    } else if (options->on_port) {
        good = await_client(meeting, options, out_why);
    } else if (options->is_node && rank == 0) {
        fail(out_why, "rank 0 has to be the program that uses the nodes: mpirun -n 1 PROGRAM : -n "
                      "NODES ggml-node");
    } else if (options->is_node) {
        good = meet_client(meeting, options, out_why);
    } else if (rank != 0) {
        fail(out_why, "only the process of rank 0 uses nodes");
    } else if (options->is_alone) {
        good = stay_alone(meeting, out_why);
    } else {
        good = meet_nodes(meeting, options, size, out_why);
    }
    return good;
}

// Meanwhile a process that dies is an error that is returned, unless MPI is the program's.
bool link_meet(struct link_meeting *meeting, const struct link_options *options,
               char out_why[LINK_TEXT]) {
    MPI_Errhandler usual;
    *meeting = (struct link_meeting){.comm = MPI_COMM_NULL};
    if (!start_mpi(meeting, out_why)) return false;
    if (!meeting->owns) return meet(meeting, options, out_why);
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &usual);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const bool good = meet(meeting, options, out_why);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, usual);
    MPI_Errhandler_free(&usual);
    return good;
}

// Frees the communicator and ends MPI if it was started here. Without `finalize` nothing is
// called that waits for other processes.
void link_part(struct link_meeting *meeting, bool finalize) {
    int started = 0, ended = 0;
    MPI_Initialized(&started);
    MPI_Finalized(&ended);
    if (!started || ended) return;
    if (finalize && meeting->comm != MPI_COMM_NULL) MPI_Comm_free(&meeting->comm);
    if (finalize && meeting->owns) MPI_Finalize();
}
