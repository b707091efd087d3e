// SPDX-License-Identifier: MIT
// The link's thread, which alone calls MPI.
#define _GNU_SOURCE
#include "link.h"

#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "link_doze.h"
#include "link_meet.h"
#include "link_memory.h"
#include "wire/wire.h"

enum {
    TAG_MESSAGE = 1,
    BURST = 64, // messages that are taken before transfers are looked at again
    TESTS = 16, // in a row while so many bytes are under way: one call of MPI moves few of them
    MANY_BYTES = 65536,
    MANY_BYTES_SENT = 1 << 20, // more than any MPI takes before the other side wants them
    PROBES = 2,                // MPI may take bytes in one call and tell of the message in the next
};
// For so long after the last message the thread looks without sleeping, then it sleeps longer and
// longer between two looks. MPI moves bytes only while it is called, so what is under way is looked
// at for longer, the more so the more bytes there are: pieces that travel side by side end late.
static const double SPIN_SECONDS = 0.0005, SPIN_MOVING = 0.005, SHORT_SLEEP = 20e-6,
                    LONG_SLEEP = 0.002;
static const double SLOWEST_MOVE = 1e9, MOST_SPIN = 0.25; // bytes per second; seconds
static const double TICK_SECONDS = 0.02, DEEP_SLEEP = 0.25;
// For so long who waits looks without sleeping, as to be woken takes as long as a small request.
static const double AWAIT_SPIN = 50e-6;
// How often who waits sees to it that the thread still comes back from MPI.
static const double WATCH_SECONDS = 0.25;
// A wait of these that takes longer was no wait: the process was stopped, its thread in MPI too.
static const double STOPPED_SECONDS = 1;
// A yield that takes longer has let other programs run. For so long after it all sleep instead of
// looking: one that wakes is given the processor sooner than one that has yielded.
static const double LONG_YIELD = 0.0012, BUSY_SECONDS = 0.02;
// Where sockets tell of messages the thread sleeps at once, and wakes for what they don't tell:
// room for bytes that are being sent.
static const double TOLD_SLEEP = 0.002, SENDING_SLEEP = 0.0001;

// For the end of MPI in a client that has no nodes, which waits for the job's other processes.
static const double REFUSED_SECONDS = 2;

static const double STUCK = -1.0;

struct active {
    struct link_op *op;
    size_t size;
};

struct link {
    struct link_options options;
    struct link_meeting meeting;
    MPI_Comm joined[LINK_MAX_JOINED]; // with a node of another job each
    atomic_int n_joined;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t done;
    _Atomic double busy_until; // see LONG_YIELD
    struct link_op *posted, **posted_end;
    _Atomic double inside_since; // when the thread called MPI; 0: it is outside; STUCK
    bool is_stuck;
    bool started, failed, stops, finalizes, woken;
    bool has_cuda;
    char why[LINK_TEXT];
    uint8_t dropped[LINK_MAX_PEERS]; // 1: its transfers fail
    bool drops;
    // Of the thread, or of who has found it stuck.
    struct link_op *starting; // taken from `posted`; the first one may have begun
    MPI_Request *requests;
    struct active *actives;
    int *finished;
    MPI_Status *statuses; // of what is finished
    size_t n_active, capacity, bytes_active;
    double next_tick, last_active;
    bool expects;
    struct doze doze;
};

double link_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// Makes a condition whose timed waits use the monotonic clock: a change of the wall clock
// doesn't end them early or late.
void link_cond_init(pthread_cond_t *cond) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attributes);
    pthread_condattr_destroy(&attributes);
}

// --- calls that may never return -----------------------------------------------------------------

// Around each call of MPI between which nothing of the link is touched.
static void enter_mpi(struct link *link) {
    if (link->options.on_enter) link->options.on_enter(link->options.context);
    atomic_store(&link->inside_since, link_now());
}

// Does not return once the thread was given up: others have gone on, and own what it worked on.
static void leave_mpi(struct link *link) {
    if (atomic_exchange(&link->inside_since, 0.0) != STUCK) return;
    for (;;)
        pause();
}

// --- transfers, by the thread --------------------------------------------------------------------

// Ends an operation: a message is freed here, a transfer with a callback calls it, and one
// without wakes those who wait in link_wait(). The caller holds no lock.
static void complete(struct link *link, struct link_op *op) {
    void (*on_done)(struct link_op *) = op->on_done;
    if (op->is_message) {
        free(op->data);
        free(op);
    } else if (on_done) {
        on_done(op);
    } else {
        pthread_mutex_lock(&link->lock);
        op->done = true;
        pthread_cond_broadcast(&link->done);
        pthread_mutex_unlock(&link->lock);
    }
}

// Makes room for more pieces under way. What was reallocated is kept if a later array fails: the
// arrays may differ in size, and `capacity` is the least of them.
static bool grow(struct link *link) {
    const size_t capacity = 2 * link->capacity + 64;
    MPI_Request *requests = realloc(link->requests, capacity * sizeof(*requests));
    if (requests) link->requests = requests;
    struct active *actives = realloc(link->actives, capacity * sizeof(*actives));
    if (actives) link->actives = actives;
    int *finished = realloc(link->finished, capacity * sizeof(*finished));
    if (finished) link->finished = finished;
    MPI_Status *statuses = realloc(link->statuses, capacity * sizeof(*statuses));
    if (statuses) link->statuses = statuses;
    if (!requests || !actives || !finished || !statuses) return false;
    link->capacity = capacity;
    return true;
}

// Whether a piece that has ended shows that the other side lives: MPI may take fewer bytes and
// messages without it.
static bool needs_peer(const struct link_op *op, size_t size) {
    return !op->is_message && (op->receives || size >= MANY_BYTES_SENT);
}

// Counts a piece as ended. A failure is reported once its operation is out of the way, and not
// about a peer that was dropped: that is expected.
static void end_piece(struct link *link, size_t i, bool failed) {
    struct link_op *op = link->actives[i].op;
    const int peer = op->peer;
    if (!failed && link->options.on_progress && needs_peer(op, link->actives[i].size))
        link->options.on_progress(link->options.context, peer);
    const bool tell = failed && link->dropped[peer] == 0 && !atomic_load(&op->is_cancelled);
    link->bytes_active -= link->actives[i].size;
    op->failed = op->failed || failed;
    if (--op->pending == 0) complete(link, op);
    if (tell) link->options.on_failure(link->options.context, peer, "MPI reports an error");
}

// Takes what is finished out of the lists.
static void compact(struct link *link) {
    size_t kept = 0;
    for (size_t i = 0; i < link->n_active; ++i) {
        if (!link->actives[i].op) continue;
        link->actives[kept] = link->actives[i];
        link->requests[kept++] = link->requests[i];
    }
    link->n_active = kept;
}

// By which communicator, and as which rank of it, a peer is reached.
static MPI_Comm comm_of(const struct link *link, int peer, int *out_rank) {
    const int beyond = peer - link->meeting.count;
    *out_rank = beyond < 0 ? peer : 1;
    return beyond < 0 ? link->meeting.comm : link->joined[beyond];
}

// A message is one piece, whatever its size: its bounds tell where it ends.
static size_t piece_of(const struct link_op *op) {
    return op->is_message ? WIRE_MAX_MESSAGE : LINK_PIECE;
}

// Starts one piece of an operation with a non-blocking call of MPI. Large transfers are cut into
// pieces as MPI counts bytes with an int.
static bool start_piece(struct link *link, struct link_op *op, size_t offset) {
    const size_t left = op->size - offset;
    const int count = (int)(left < piece_of(op) ? left : piece_of(op));
    const int tag = op->is_message ? TAG_MESSAGE : op->tag;
    char *data = (char *)op->data + offset;
    int rank;
    const MPI_Comm comm = comm_of(link, op->peer, &rank);
    if (link->n_active == link->capacity && !grow(link)) return false;
    MPI_Request *request = &link->requests[link->n_active];
    enter_mpi(link);
    const int status = op->receives ? MPI_Irecv(data, count, MPI_BYTE, rank, tag, comm, request)
                                    : MPI_Isend(data, count, MPI_BYTE, rank, tag, comm, request);
    leave_mpi(link);
    if (status != MPI_SUCCESS) return false;
    link->actives[link->n_active++] = (struct active){op, (size_t)count};
    link->bytes_active += (size_t)count;
    ++op->pending;
    return true;
}

// Starts all pieces of an operation. `pending` counts one more until it is done, so that a piece
// that ends at once doesn't complete it.
static void start(struct link *link, struct link_op *op) {
    const bool reachable = link->dropped[op->peer] == 0 && !atomic_load(&op->is_cancelled);
    op->pending = 1; // so that it doesn't end while it is started
    op->failed = !reachable;
    for (size_t offset = 0; offset < op->size && !op->failed; offset += piece_of(op))
        op->failed = !start_piece(link, op, offset);
    const bool failed = op->failed;
    const int peer = op->peer;
    if (--op->pending == 0) complete(link, op);
    if (failed && reachable)
        link->options.on_failure(link->options.context, peer, "MPI can't send to it");
}

// Takes the list of posted operations and starts them in order; returns whether there were any.
// `starting` lets give_up() find those that were not reached.
static bool start_posted(struct link *link) {
    pthread_mutex_lock(&link->lock);
    link->starting = link->posted;
    link->posted = NULL;
    link->posted_end = &link->posted;
    link->woken = false;
    pthread_mutex_unlock(&link->lock);
    const bool any = link->starting != NULL;
    while (link->starting) {
        struct link_op *next = link->starting->next;
        start(link, link->starting);
        link->starting = next;
    }
    return any;
}

// Open MPI with ULFM frees every request that has failed when it returns an error, also those that
// it does not name.
static void end_unnamed(struct link *link) {
    for (size_t i = 0; i < link->n_active; ++i) {
        if (!link->actives[i].op || link->requests[i] != MPI_REQUEST_NULL) continue;
        end_piece(link, i, true);
        link->actives[i].op = NULL;
    }
}

// Asks MPI which pieces have ended and completes their operations; returns whether there were
// any. O(pieces under way).
static bool test(struct link *link) {
    int n = 0;
    const size_t before = link->n_active;
    if (before == 0) return false;
    enter_mpi(link);
    int code = MPI_SUCCESS;
    const int tests = link->bytes_active < MANY_BYTES || doze_is_announced(&link->doze) ? 1 : TESTS;
    for (int i = 0; i < tests && code == MPI_SUCCESS && n == 0; ++i)
        code = MPI_Testsome((int)before, link->requests, &n, link->finished, link->statuses);
    leave_mpi(link);
    const bool any = n != MPI_UNDEFINED && n > 0;
    for (int k = 0; any && k < n; ++k) {
        const size_t i = (size_t)link->finished[k];
        struct link_op *op = link->actives[i].op;
        const int own = code == MPI_ERR_IN_STATUS ? link->statuses[k].MPI_ERROR : code;
        if (op) end_piece(link, i, own != MPI_SUCCESS);
        link->actives[i].op = NULL;
    }
    if (code != MPI_SUCCESS) end_unnamed(link);
    if (any || code != MPI_SUCCESS) compact(link);
    return any;
}

// Ends operations with dropped peers, and cancelled ones. A receive is cancelled; a send is left
// to MPI, which may still read its memory: the other side is gone or won't take it.
static void drop(struct link *link) {
    for (size_t i = 0; i < link->n_active; ++i) {
        struct link_op *op = link->actives[i].op;
        if (!op || (link->dropped[op->peer] == 0 && !atomic_load(&op->is_cancelled))) continue;
        enter_mpi(link);
        if (op->receives && link->requests[i] != MPI_REQUEST_NULL) MPI_Cancel(&link->requests[i]);
        if (link->requests[i] != MPI_REQUEST_NULL) MPI_Request_free(&link->requests[i]);
        leave_mpi(link);
        end_piece(link, i, true);
        link->actives[i].op = NULL;
    }
    compact(link);
}

// Runs drop() if anything was dropped since: the list is not searched otherwise.
static void drop_all(struct link *link) {
    pthread_mutex_lock(&link->lock);
    const bool drops = link->drops;
    link->drops = false;
    pthread_mutex_unlock(&link->lock);
    if (drops) drop(link);
}

// --- messages, by the thread ---------------------------------------------------------------------

// Receives one message, if there is one, and hands it to on_message(), which owns its bytes. A
// matched probe (MPI_Improbe), so that the message that was measured is the one that is
// received. `joined`: of that node of another job, -1: of one of this job.
static bool receive_one(struct link *link, int joined) {
    const MPI_Comm comm = joined < 0 ? link->meeting.comm : link->joined[joined];
    int found = 0, size = 0;
    MPI_Message message;
    MPI_Status status;
    int code = MPI_SUCCESS;
    enter_mpi(link);
    for (int i = 0; i < PROBES && code == MPI_SUCCESS && !found; ++i)
        code = MPI_Improbe(MPI_ANY_SOURCE, TAG_MESSAGE, comm, &found, &message, &status);
    leave_mpi(link);
    if (code != MPI_SUCCESS || !found) return false;
    const int peer = joined < 0 ? status.MPI_SOURCE : link->meeting.count + joined;
    MPI_Get_count(&status, MPI_BYTE, &size);
    void *bytes = size >= 0 ? malloc((size_t)size + 1) : NULL;
    if (!bytes) {
        link->options.on_failure(link->options.context, peer, "no memory for its message");
        return false;
    }
    enter_mpi(link);
    const int received = MPI_Mrecv(bytes, size, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    leave_mpi(link);
    if (received != MPI_SUCCESS) {
        free(bytes);
        return false;
    }
    link->options.on_message(link->options.context, peer, bytes, (size_t)size);
    return true;
}

// Receives up to BURST messages, so that transfers are not starved by a node that sends many.
static bool receive(struct link *link) {
    const int n_joined = atomic_load(&link->n_joined);
    int n = 0;
    for (int i = -1; i < n_joined; ++i)
        for (int k = 0; k < BURST && receive_one(link, i); ++k)
            ++n;
    return n > 0;
}

// --- looking -------------------------------------------------------------------------------------

// Does what there is to do. Returns whether there was anything.
static bool look(struct link *link) {
    bool busy = start_posted(link);
    drop_all(link);
    busy = test(link) || busy;
    const bool came = receive(link);
    busy = came || busy;
    doze_learn(&link->doze, came);
    const double now = link_now();
    if (busy) link->last_active = now;
    if (now >= link->next_tick || busy) {
        link->expects = link->options.on_tick(link->options.context, now);
        link->next_tick = now + TICK_SECONDS;
    }
    return busy;
}

// Monotonic time so many seconds from now.
static struct timespec time_in(double seconds) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    const double end = (double)until.tv_nsec * 1e-9 + seconds;
    until.tv_sec += (time_t)end;
    until.tv_nsec = (long)((end - (double)(time_t)end) * 1e9);
    return until;
}

// Fails one operation, of which pieces may be with MPI for ever.
static void fail_op(struct link *link, struct link_op *op) {
    op->failed = true;
    if (op->pending == 0 || --op->pending == 0) complete(link, op);
}

static void fail_list(struct link *link, struct link_op *op) {
    while (op) {
        struct link_op *next = op->next;
        fail_op(link, op);
        op = next;
    }
}

// What the thread worked on fails, and every peer is lost: it is never heard of again.
static void give_up(struct link *link) {
    for (size_t i = 0; i < link->n_active; ++i)
        if (link->actives[i].op) fail_op(link, link->actives[i].op);
    fail_list(link, link->starting);
    pthread_mutex_lock(&link->lock);
    link->is_stuck = true;
    pthread_mutex_unlock(&link->lock);
    for (int peer = 0; peer < link_count(link); ++peer) {
        if (peer == link->meeting.self) continue;
        link->options.on_failure(link->options.context, peer, "a call of MPI does not return");
    }
}

// Fails everything once the thread has been inside of MPI for too long. By who waits; the caller
// holds no lock.
static void look_after_thread(struct link *link) {
    double since = atomic_load(&link->inside_since);
    const double most = link->options.stuck_seconds;
    if (most > 0 && since > 0 && link_now() - since > most &&
        atomic_compare_exchange_strong(&link->inside_since, &since, STUCK))
        give_up(link);
    pthread_mutex_lock(&link->lock);
    struct link_op *posted = link->is_stuck ? link->posted : NULL;
    if (posted) {
        link->posted = NULL;
        link->posted_end = &link->posted;
    }
    pthread_mutex_unlock(&link->lock);
    fail_list(link, posted);
}

// Lets the time begin anew in which the thread has to come back from MPI, if it is there.
static void excuse_thread(struct link *link) {
    double since = atomic_load(&link->inside_since);
    if (since > 0) atomic_compare_exchange_strong(&link->inside_since, &since, link_now());
}

// Whether other programs want the processors.
static bool is_busy(struct link *link, double now) {
    return now < atomic_load(&link->busy_until);
}

// Lets other threads run, and learns from how long that takes whether they want to.
static void yield(struct link *link) {
    const double begin = link_now();
    sched_yield();
    const double end = link_now();
    if (end - begin > LONG_YIELD) atomic_store(&link->busy_until, end + BUSY_SECONDS);
}

void link_await(struct link *link, const struct link_waiting *waiting) {
    const double begin = link_now();
    while (!waiting->is_over(waiting->context)) {
        const double now = link_now();
        const struct timespec until = time_in(WATCH_SECONDS);
        const bool spins = now - begin < AWAIT_SPIN && !is_busy(link, now);
        if (!spins && pthread_cond_timedwait(waiting->cond, waiting->lock, &until) == 0) continue;
        pthread_mutex_unlock(waiting->lock);
        if (link_now() - now > STOPPED_SECONDS) excuse_thread(link);
        if (spins)
            yield(link);
        else
            look_after_thread(link);
        pthread_mutex_lock(waiting->lock);
    }
}

// --- the thread ----------------------------------------------------------------------------------

// Seconds to sleep after `idle` seconds without an event: 20 us and 5 % of them, so that the
// delay stays small beside the wait, and at most LONG_SLEEP.
static double pause_after(double idle) {
    const double wanted = SHORT_SLEEP + idle * 0.05;
    return wanted < LONG_SLEEP ? wanted : LONG_SLEEP;
}

// Whether a send is under way: no socket tells when there is room for more of it.
static bool is_sending(const struct link *link) {
    for (size_t i = 0; i < link->n_active; ++i)
        if (link->actives[i].op && !link->actives[i].op->receives) return true;
    return false;
}

// Seconds to sleep, unless a socket or another thread ends that.
static double sleep_time(struct link *link, double now) {
    const double idle = now - link->last_active;
    if (link->n_active == 0 && !link->expects) return DEEP_SLEEP;
    if (doze_is_announced(&link->doze)) return is_sending(link) ? SENDING_SLEEP : TOLD_SLEEP;
    const double moving = SPIN_MOVING + (double)link->bytes_active / SLOWEST_MOVE;
    const double longest = moving < MOST_SPIN ? moving : MOST_SPIN;
    const double spin = link->n_active > 0 ? longest : SPIN_SECONDS;
    return idle < spin && !is_busy(link, now) ? 0 : pause_after(idle);
}

// Sleeps less the more recently something happened. What is posted after doze_begin() ends it; what
// was before is seen here.
static void rest(struct link *link) {
    const double now = link_now();
    double seconds = sleep_time(link, now);
    doze_begin(&link->doze);
    pthread_mutex_lock(&link->lock);
    if (link->posted || link->woken || link->stops || link->drops) seconds = 0;
    pthread_mutex_unlock(&link->lock);
    doze_sleep(&link->doze, now, seconds);
    doze_finish(&link->doze);
    if (seconds == 0) yield(link);
}

// Whether the thread is to end; what is posted is started before.
static bool stopped(struct link *link) {
    pthread_mutex_lock(&link->lock);
    const bool stops = link->stops && !link->posted;
    pthread_mutex_unlock(&link->lock);
    return stops;
}

// What was sent last still arrives; what nobody takes is not waited for.
static void flush(struct link *link) {
    const double end = link_now() + 2;
    while (link->n_active > 0 && link_now() < end) {
        if (!test(link)) sched_yield();
    }
}

// The thread's loop: looks and rests until it is stopped, then lets what was sent arrive.
static void work(struct link *link) {
    link->last_active = link_now();
    while (!stopped(link)) {
        if (!look(link)) rest(link);
    }
    flush(link);
}

// MPI_Finalize() begins with the attributes of MPI_COMM_SELF.
static int note_finalize(MPI_Comm comm, int key, void *value, void *extra) {
    struct link *link = extra;
    (void)comm;
    (void)key;
    (void)value;
    link->options.on_finalize(link->options.context);
    return MPI_SUCCESS;
}

// Has on_finalize() called when the program itself calls MPI_Finalize(), if MPI is the
// program's.
static void watch_finalize(struct link *link) {
    int key;
    if (link->meeting.owns || !link->options.on_finalize) return;
    if (MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, note_finalize, &key, link) == MPI_SUCCESS)
        MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
}

// The link's thread. It starts MPI and meets the other processes, as with MPI_THREAD_FUNNELED
// only the thread that started MPI may call it.
static void *run(void *context) {
    struct link *link = context;
    pthread_setname_np(pthread_self(), "ggml-mpi");
    const bool met = link_meet(&link->meeting, &link->options, link->why);
    if (met) watch_finalize(link);
    link->has_cuda = met && link->options.is_node && link_memory_has_cuda();
    if (!met && link->options.on_refused)
        link->options.on_refused(link->options.context, link->why);
    pthread_mutex_lock(&link->lock);
    link->started = met;
    link->failed = !met;
    pthread_cond_broadcast(&link->done);
    pthread_mutex_unlock(&link->lock);
    if (met) work(link);
    pthread_mutex_lock(&link->lock);
    const bool finalizes = link->finalizes || !met;
    pthread_mutex_unlock(&link->lock);
    link_part(&link->meeting, finalizes);
    return NULL;
}

// --- any thread ----------------------------------------------------------------------------------

// Waits for the thread's end for at most so many seconds.
static bool ends_in(struct link *link, double seconds) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)seconds;
    return pthread_timedjoin_np(link->thread, NULL, &until) == 0;
}

// Frees a link that has not started. A node that was refused ends MPI with the others of the job,
// when the program does: a process that is gone before may end the whole job. A client goes on
// soon: its thread, as one that hangs inside of MPI, is left behind with its memory, as it can't be
// stopped.
static void discard(struct link *link, bool failed) {
    *link->options.out_link = NULL;
    const bool ended = failed && (link->options.is_node ? pthread_join(link->thread, NULL) == 0
                                                        : ends_in(link, REFUSED_SECONDS));
    if (!ended) {
        pthread_detach(link->thread);
        return;
    }
    doze_end(&link->doze);
    free(link);
}

// Waits for the thread to have met the other processes, at most a second longer than it tries to.
struct link *link_open(const struct link_options *options, char out_why[LINK_TEXT]) {
    if (!options->is_node && !link_meet_may_run(options->n_expected, out_why)) return NULL;
    struct link *link = calloc(1, sizeof(*link));
    snprintf(out_why, LINK_TEXT, "no memory, or no thread, for MPI");
    if (!link) return NULL;
    link->options = *options;
    link->options.start_until = link_now() + options->start_seconds;
    link->posted_end = &link->posted;
    link->expects = true;
    pthread_mutex_init(&link->lock, NULL);
    link_cond_init(&link->done);
    *options->out_link = link;
    if (!doze_init(&link->doze) || pthread_create(&link->thread, NULL, run, link) != 0) {
        *options->out_link = NULL;
        doze_end(&link->doze);
        free(link);
        return NULL;
    }
    const struct timespec until = time_in(options->start_seconds + 1);
    pthread_mutex_lock(&link->lock);
    int late = 0;
    while (!link->started && !link->failed && late == 0)
        late = pthread_cond_timedwait(&link->done, &link->lock, &until);
    const bool failed = link->failed, started = link->started;
    if (failed)
        snprintf(out_why, LINK_TEXT, "%s", options->on_refused ? "" : link->why);
    else
        snprintf(out_why, LINK_TEXT, "MPI did not start in %g s: %s", options->start_seconds,
                 options->is_node ? "is the first process of the job on ggml-host (ggml-exec runs "
                                    "programs that were built with ggml), and does it load the "
                                    "plugin mpi?"
                                  : "did every process of the job start it?");
    pthread_mutex_unlock(&link->lock);
    if (started) return link;
    discard(link, failed);
    return NULL;
}

// The thread learns of it at its next look.
bool link_join(struct link *link, const char *port, char out_why[LINK_TEXT]) {
    const int n = atomic_load(&link->n_joined), peer = link->meeting.count + n;
    unsigned minor;
    const bool is_full = n == LINK_MAX_JOINED || peer == LINK_MAX_PEERS;
    if (is_full || !link->meeting.all_at_once) {
        snprintf(out_why, LINK_TEXT, "%s",
                 is_full ? "too many nodes have joined already"
                         : "this MPI has no MPI_THREAD_MULTIPLE, which waiting for it needs");
        return false;
    }
    if (!link_meet_joiner(port, &link->joined[n], &minor, out_why)) return false;
    link->meeting.minors[peer] = minor;
    atomic_store(&link->n_joined, n + 1);
    link_wake(link);
    return true;
}

int link_count(const struct link *link) {
    return link->meeting.count + atomic_load(&link->n_joined);
}

int link_self(const struct link *link) {
    return link->meeting.self;
}

bool link_has_cuda(const struct link *link) {
    return link->has_cuda;
}

unsigned link_minor(const struct link *link, int peer) {
    return link->meeting.minors[peer];
}

const char *link_refused(const struct link *link) {
    return link->meeting.refused;
}

// Waits for the thread's end. It may be inside MPI for ever: then false, after the time in which
// a call counts as stuck and what is sent last is waited for.
static bool is_joined(struct link *link) {
    const double most = link->options.stuck_seconds;
    if (most <= 0) return pthread_join(link->thread, NULL) == 0;
    return ends_in(link, most + 3); // for what is flushed
}

// Ends the thread and frees what is its own; with a thread that is stuck all stays, as the thread
// may use it still. A client's link itself stays too: others of its threads may wait in it, or come
// to.
void link_close(struct link *link, bool finalize) {
    pthread_mutex_lock(&link->lock);
    link->stops = true;
    link->finalizes = finalize;
    doze_wake(&link->doze);
    const bool is_stuck = link->is_stuck;
    pthread_mutex_unlock(&link->lock);
    if (is_stuck || !is_joined(link)) {
        pthread_detach(link->thread);
        return;
    }
    doze_end(&link->doze);
    free(link->requests);
    free(link->actives);
    free(link->finished);
    free(link->statuses);
    if (!link->options.is_node) return;
    pthread_mutex_destroy(&link->lock);
    pthread_cond_destroy(&link->done);
    free(link);
}

void link_post(struct link *link, struct link_op *op) {
    const bool is_patient = op->is_patient; // it may be gone once it is posted
    op->next = NULL;
    op->pending = 0;
    op->failed = op->done = false;
    pthread_mutex_lock(&link->lock);
    *link->posted_end = op;
    link->posted_end = &op->next;
    pthread_mutex_unlock(&link->lock);
    if (!is_patient) doze_wake(&link->doze);
}

static bool is_done(void *context) {
    return ((const struct link_op *)context)->done;
}

bool link_wait(struct link *link, struct link_op *op) {
    const struct link_waiting waiting = {&link->lock, &link->done, is_done, op};
    pthread_mutex_lock(&link->lock);
    link_await(link, &waiting);
    const bool good = !op->failed;
    pthread_mutex_unlock(&link->lock);
    return good;
}

struct patience {
    struct link_op *op;
    bool (*gives_up)(void *context);
    void *context;
};

static bool is_done_or_over(void *context) {
    const struct patience *patience = context;
    return patience->op->done || patience->gives_up(patience->context);
}

// The caller holds the lock.
static void cancel(struct link *link, struct link_op *op) {
    atomic_store(&op->is_cancelled, true);
    link->drops = true;
    doze_wake(&link->doze);
}

void link_cancel(struct link *link, struct link_op *op) {
    pthread_mutex_lock(&link->lock);
    cancel(link, op);
    pthread_mutex_unlock(&link->lock);
}

// Waits like link_wait(), but asks `gives_up` too; then the operation is cancelled, and its end
// is waited for all the same, as MPI may use its memory until then.
bool link_wait_unless(struct link *link, struct link_op *op, bool (*gives_up)(void *context),
                      void *context) {
    struct patience patience = {op, gives_up, context};
    const struct link_waiting waiting = {&link->lock, &link->done, is_done_or_over, &patience};
    pthread_mutex_lock(&link->lock);
    link_await(link, &waiting);
    if (!op->done) cancel(link, op);
    pthread_mutex_unlock(&link->lock);
    return link_wait(link, op);
}

static bool send_message(struct link *link, int peer, void *bytes, size_t size, bool is_patient) {
    struct link_op *op = size <= WIRE_MAX_MESSAGE ? calloc(1, sizeof(*op)) : NULL;
    if (!op) {
        free(bytes);
        return false;
    }
    *op = (struct link_op){
        .peer = peer, .data = bytes, .size = size, .is_message = true, .is_patient = is_patient};
    link_post(link, op);
    return true;
}

bool link_send(struct link *link, int peer, void *bytes, size_t size) {
    return send_message(link, peer, bytes, size, false);
}

bool link_send_later(struct link *link, int peer, void *bytes, size_t size) {
    return send_message(link, peer, bytes, size, true);
}

static bool is_late(void *context) {
    const double *until = context;
    return link_now() > *until;
}

bool link_tell(struct link *link, int peer, void *bytes, size_t size, double seconds) {
    struct link_op op = {.peer = peer, .tag = TAG_MESSAGE, .data = bytes, .size = size};
    double until = link_now() + seconds;
    link_post(link, &op);
    return link_wait_unless(link, &op, is_late, &until);
}

void link_drop(struct link *link, int peer) {
    pthread_mutex_lock(&link->lock);
    if (link->dropped[peer] == 0) link->dropped[peer] = 1;
    link->drops = true;
    doze_wake(&link->doze);
    pthread_mutex_unlock(&link->lock);
}

void link_wake(struct link *link) {
    pthread_mutex_lock(&link->lock);
    link->woken = true;
    doze_wake(&link->doze);
    pthread_mutex_unlock(&link->lock);
}
