// SPDX-License-Identifier: MIT
// Stands before MPI (LD_PRELOAD, MPI's profiling interface) in a program and in its nodes: counts
// messages, and notes which threads call MPI. At the end of the process it writes what it has seen
// into a file named after the rank, in the folder that WATCH_MPI names.
//
// WATCH_MPI_FUNNELED=1: MPI says that only the thread which started it may call it.
// WATCH_MPI_OTHER=1: MPI says that it is MPICH.
// WATCH_MPI_CUDA=1: MPI says that it takes device memory, and the driver is asked about what it is
// given.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { TAG_MESSAGE = 1, MOST_THREADS = 256 };

static atomic_uint_fast64_t n_sent, n_received, n_transfers, n_calls;
static atomic_int n_inside, most_inside; // threads that are inside of MPI at once
static _Atomic long starter;             // that called MPI_Init_thread()
static atomic_int level = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long threads[MOST_THREADS];
static int n_threads;

// For the program, which finds it by name.
__attribute__((visibility("default"))) void
watch_mpi_counts(uint64_t *out_sent, uint64_t *out_received, uint64_t *out_transfers);
void watch_mpi_counts(uint64_t *out_sent, uint64_t *out_received, uint64_t *out_transfers) {
    *out_sent = atomic_load(&n_sent);
    *out_received = atomic_load(&n_received);
    *out_transfers = atomic_load(&n_transfers);
}

// The next transfer fails as with Open MPI's ULFM when it finds out about two at once: its request
// is freed, and MPI_Testsome() returns an error without naming it.
static atomic_bool breaks, is_broken;
__attribute__((visibility("default"))) void watch_mpi_break(void);
void watch_mpi_break(void) {
    atomic_store(&breaks, true);
}

// Transfers that begin from now on end one every so many milliseconds, and until all have no
// message comes, as over one slow connection. 0: as fast as MPI is. By the thread that calls MPI,
// but for the number.
enum { MOST_SLOW = 64 };
static atomic_int slowness;
static MPI_Request slow[MOST_SLOW];
static int n_slow;
static double slow_since;

__attribute__((visibility("default"))) void watch_mpi_slow(int milliseconds);
void watch_mpi_slow(int milliseconds) {
    atomic_store(&slowness, milliseconds);
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void note_slow(int tag, MPI_Request request) {
    if (tag == TAG_MESSAGE || atomic_load(&slowness) == 0 || n_slow == MOST_SLOW) return;
    if (n_slow == 0) slow_since = seconds();
    slow[n_slow++] = request;
}

static void forget_slow(MPI_Request request) {
    for (int i = 0; i < n_slow; ++i)
        if (slow[i] == request) slow[i--] = slow[--n_slow];
}

// MPI_Testsome() of one request at most.
static int test_slowly(int n, MPI_Request requests[], int *out, int which[],
                       MPI_Status statuses[]) {
    int flag = 0, is_complete, i = MPI_UNDEFINED;
    *out = 0;
    for (int k = 0; k < n; ++k) // MPI moves bytes meanwhile
        if (requests[k] != MPI_REQUEST_NULL)
            PMPI_Request_get_status(requests[k], &is_complete, MPI_STATUS_IGNORE);
    if (seconds() - slow_since < 1e-3 * atomic_load(&slowness)) return MPI_SUCCESS;
    MPI_Request before[n];
    memcpy(before, requests, (size_t)n * sizeof(before[0]));
    const int status = PMPI_Testany(n, requests, &i, &flag, statuses);
    if (status != MPI_SUCCESS || !flag || i == MPI_UNDEFINED) return status;
    slow_since = seconds();
    forget_slow(before[i]);
    which[0] = i;
    *out = 1;
    return MPI_SUCCESS;
}

// The extension that tells whether MPI takes device memory.
__attribute__((visibility("default"))) int MPIX_Query_cuda_support(void);
int MPIX_Query_cuda_support(void) {
    return getenv("WATCH_MPI_CUDA") != NULL;
}

// Transfers from and to device memory; those by a thread whose context is not the memory's.
static atomic_uint_fast64_t n_device, n_without_context;

static void note_memory(const void *data) {
    int (*attributes)(unsigned n, int *which, void **values, uint64_t address) = NULL;
    int (*current)(void **out) = NULL;
    void *library =
        getenv("WATCH_MPI_CUDA") ? dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD) : NULL;
    if (!library) return;
    *(void **)&attributes = dlsym(library, "cuPointerGetAttributes");
    *(void **)&current = dlsym(library, "cuCtxGetCurrent");
    void *owner = NULL, *context = NULL;
    int which[] = {1}; // CU_POINTER_ATTRIBUTE_CONTEXT
    void *values[] = {&owner};
    if (attributes(1, which, values, (uintptr_t)data) != 0 || !owner) return;
    atomic_fetch_add(&n_device, 1);
    if (current(&context) != 0 || context != owner) atomic_fetch_add(&n_without_context, 1);
}

static void note_thread(long thread) {
    int i = 0;
    pthread_mutex_lock(&lock);
    while (i < n_threads && threads[i] != thread)
        ++i;
    if (i == n_threads && n_threads < MOST_THREADS) threads[n_threads++] = thread;
    pthread_mutex_unlock(&lock);
}

static void enter(void) {
    const int inside = atomic_fetch_add(&n_inside, 1) + 1;
    int most = atomic_load(&most_inside);
    while (inside > most && !atomic_compare_exchange_weak(&most_inside, &most, inside)) {
    }
    note_thread(syscall(SYS_gettid));
    atomic_fetch_add(&n_calls, 1);
}

static int leave(int status) {
    atomic_fetch_sub(&n_inside, 1);
    return status;
}

#define WATCHED(name, parameters, arguments)                                                       \
    int name parameters {                                                                          \
        enter();                                                                                   \
        return leave(P##name arguments);                                                           \
    }

WATCHED(MPI_Cancel, (MPI_Request * request), (request))
WATCHED(MPI_Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *out),
        (comm, group, tag, out))
WATCHED(MPI_Comm_dup, (MPI_Comm comm, MPI_Comm *out), (comm, out))
WATCHED(MPI_Comm_free, (MPI_Comm * comm), (comm))
WATCHED(MPI_Comm_group, (MPI_Comm comm, MPI_Group *out), (comm, out))
WATCHED(MPI_Comm_rank, (MPI_Comm comm, int *out), (comm, out))
WATCHED(MPI_Comm_set_errhandler, (MPI_Comm comm, MPI_Errhandler handler), (comm, handler))
WATCHED(MPI_Comm_size, (MPI_Comm comm, int *out), (comm, out))
WATCHED(MPI_Finalize, (void), ())
WATCHED(MPI_Get_count, (const MPI_Status *status, MPI_Datatype type, int *out), (status, type, out))
WATCHED(MPI_Group_free, (MPI_Group * group), (group))
WATCHED(MPI_Group_incl, (MPI_Group group, int n, const int ranks[], MPI_Group *out),
        (group, n, ranks, out))
WATCHED(MPI_Iprobe, (int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status),
        (source, tag, comm, flag, status))
WATCHED(MPI_Recv,
        (void *data, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
         MPI_Status *status),
        (data, count, type, source, tag, comm, status))
WATCHED(MPI_Request_free, (MPI_Request * request), (request))
WATCHED(MPI_Send,
        (const void *data, int count, MPI_Datatype type, int target, int tag, MPI_Comm comm),
        (data, count, type, target, tag, comm))

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    atomic_store(&starter, syscall(SYS_gettid));
    enter();
    const int status = leave(PMPI_Init_thread(argc, argv, required, provided));
    if (getenv("WATCH_MPI_FUNNELED")) *provided = MPI_THREAD_FUNNELED;
    atomic_store(&level, *provided);
    return status;
}

int MPI_Isend(const void *data, int count, MPI_Datatype type, int target, int tag, MPI_Comm comm,
              MPI_Request *request) {
    atomic_fetch_add(tag == TAG_MESSAGE ? &n_sent : &n_transfers, 1);
    note_memory(data);
    enter();
    if (tag != TAG_MESSAGE && atomic_exchange(&breaks, false)) {
        *request = MPI_REQUEST_NULL;
        atomic_store(&is_broken, true);
        return leave(MPI_SUCCESS);
    }
    const int status = PMPI_Isend(data, count, type, target, tag, comm, request);
    if (status == MPI_SUCCESS) note_slow(tag, *request);
    return leave(status);
}

int MPI_Improbe(int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message,
                MPI_Status *status) {
    enter();
    *flag = 0;
    return leave(n_slow > 0 ? MPI_SUCCESS : PMPI_Improbe(source, tag, comm, flag, message, status));
}

int MPI_Testsome(int n, MPI_Request requests[], int *out, int which[], MPI_Status statuses[]) {
    enter();
    if (n_slow > 0) return leave(test_slowly(n, requests, out, which, statuses));
    if (!atomic_exchange(&is_broken, false))
        return leave(PMPI_Testsome(n, requests, out, which, statuses));
    *out = 0;
    return leave(MPI_ERR_OTHER);
}

int MPI_Irecv(void *data, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
              MPI_Request *request) {
    atomic_fetch_add(&n_transfers, 1);
    note_memory(data);
    enter();
    const int status = PMPI_Irecv(data, count, type, source, tag, comm, request);
    if (status == MPI_SUCCESS) note_slow(tag, *request);
    return leave(status);
}

int MPI_Mrecv(void *data, int count, MPI_Datatype type, MPI_Message *message, MPI_Status *status) {
    atomic_fetch_add(&n_received, 1);
    enter();
    return leave(PMPI_Mrecv(data, count, type, message, status));
}

__attribute__((destructor)) static void tell(void) {
    const char *folder = getenv("WATCH_MPI"), *rank = getenv("OMPI_COMM_WORLD_RANK");
    char path[4096];
    int foreign = 0;
    if (!folder || !rank || atomic_load(&n_calls) == 0) return;
    for (int i = 0; i < n_threads; ++i)
        foreign += threads[i] != atomic_load(&starter);
    snprintf(path, sizeof(path), "%s/%s", folder, rank);
    FILE *file = fopen(path, "w");
    if (!file) return;
    fprintf(file,
            "{\"level\": %d, \"calls\": %llu, \"others\": %d, \"at_once\": %d, \"device\": %llu, "
            "\"without_context\": %llu}\n",
            atomic_load(&level), (unsigned long long)atomic_load(&n_calls), foreign,
            atomic_load(&most_inside), (unsigned long long)atomic_load(&n_device),
            (unsigned long long)atomic_load(&n_without_context));
    fclose(file);
}

int MPI_Get_library_version(char *version, int *length) {
    if (!getenv("WATCH_MPI_OTHER")) return PMPI_Get_library_version(version, length);
    strcpy(version, "MPICH Version:\t4.0.2");
    *length = (int)strlen(version);
    return MPI_SUCCESS;
}
