// SPDX-License-Identifier: MIT
// Groups of streams: the extension "ggml.comm".
#include <stdatomic.h>
#include <string.h>

#include "ggml-impl.h"
#include "subject.h"

enum { N_RANKS = 3, N_ELEMENTS = 100, MAX_MEMORY = 64, N_TURNS = 8 };

struct ranks {
    const struct check_run *run;
    const struct ggml_extension_comm *comm;
    const char *name;
    ggml_backend_t streams[N_RANKS];
    uint32_t n;
    ggml_comm_group_t group;
    struct ggml_context *contexts[MAX_MEMORY];
    ggml_backend_buffer_t buffers[MAX_MEMORY];
    int n_tensors;
};

// --- groups and their tensors --------------------------------------------------------------------

// The plugin's extension; skips the check for a plugin without it.
static const struct ggml_extension_comm *comm_of(const struct check_run *run,
                                                 const struct devices *devices) {
    const struct ggml_plugin_table *table = devices->subject.table;
    if (!table->get_extension) check_skip(run, "it has no extensions");
    const struct ggml_extension_comm *comm =
        table->get_extension(table, GGML_EXTENSION_COMM, GGML_EXTENSION_COMM_REVISION);
    if (!comm) check_skip(run, "it does not offer " GGML_EXTENSION_COMM);
    return comm;
}

// Makes a group of the first n streams; the status of group_new().
static int32_t make_group(struct ranks *ranks, uint32_t n) {
    const struct ggml_comm_ranks held = {
        .size = sizeof(held), .n_ranks = n, .n_streams = n, .streams = ranks->streams};
    ranks->n = n;
    return ranks->comm->group_new(&held, &ranks->group);
}

// A group of streams of devices[i % n_devices]; false if the plugin makes none of them.
static bool ranks_new(struct ranks *ranks, const ggml_backend_dev_t *devices, int n_devices) {
    ranks->name = label(devices[0]);
    ranks->n_tensors = 0;
    ranks->group = NULL;
    for (int i = 0; i < N_RANKS; ++i) {
        ranks->streams[i] = make_stream(devices[i % n_devices], NULL);
        if (!ranks->streams[i]) check_skip(ranks->run, "%s: no stream", ranks->name);
    }
    const long errors = atomic_load(&host_counters.n_errors);
    const int32_t status = make_group(ranks, N_RANKS);
    CHECK_THAT(ranks->run, (status == GGML_HOST_OK) == (ranks->group != NULL),
               "%s: making a group returns status %d (%s) and %s group", ranks->name, (int)status,
               status_text(status), ranks->group ? "a" : "no");
    CHECK_THAT(ranks->run,
               status == GGML_HOST_OK || status == GGML_HOST_UNSUPPORTED ||
                   atomic_load(&host_counters.n_errors) > errors,
               "%s: a group is not made, and it isn't said why", ranks->name);
    return ranks->group != NULL;
}

// Waits for all streams before the group and its tensors go.
static void ranks_free(struct ranks *ranks) {
    for (uint32_t i = 0; i < N_RANKS; ++i)
        ggml_backend_synchronize(ranks->streams[i]);
    ranks->comm->group_free(ranks->group);
    for (uint32_t i = 0; i < N_RANKS; ++i)
        ggml_backend_free(ranks->streams[i]);
    for (int i = 0; i < ranks->n_tensors; ++i) {
        ggml_backend_buffer_free(ranks->buffers[i]);
        ggml_free(ranks->contexts[i]);
    }
}

// A tensor of n elements in memory of the rank's device; freed with the ranks.
static struct ggml_tensor *new_tensor(struct ranks *ranks, uint32_t rank, enum ggml_type type,
                                      int64_t n) {
    const ggml_backend_dev_t device = ranks->streams[rank]->device;
    struct ggml_context *ctx = ggml_init(
        (struct ggml_init_params){.mem_size = 2 * ggml_tensor_overhead(), .no_alloc = true});
    const int i = ranks->n_tensors++;
    CHECK_THAT(ranks->run, ctx && i < MAX_MEMORY, "no memory");
    struct ggml_tensor *tensor = ggml_new_tensor_1d(ctx, type, n);
    ranks->contexts[i] = ctx;
    ranks->buffers[i] =
        ggml_backend_alloc_ctx_tensors_from_buft(ctx, device->table->get_buffer_type(device));
    if (!ranks->buffers[i]) check_skip(ranks->run, "%s: no buffer", ranks->name);
    return tensor;
}

// Small integers, exact in every type: any order of additions gives the same.
static float number(uint32_t rank, int64_t i) {
    return (float)((i * 7 + 3 * rank) % 11) - 5.0f + (float)(rank == 1);
}

// Stores element i, rounded to the type.
static void write_number(enum ggml_type type, void *data, int64_t i, float value) {
    if (type == GGML_TYPE_F16)
        ((ggml_fp16_t *)data)[i] = ggml_compute_fp32_to_fp16(value);
    else if (type == GGML_TYPE_BF16)
        ((ggml_bf16_t *)data)[i] = ggml_compute_fp32_to_bf16(value);
    else
        ((float *)data)[i] = value;
}

// Fills a tensor with number(rank, i).
static void set_numbers(struct ggml_tensor *tensor, uint32_t rank) {
    char data[N_RANKS * N_ELEMENTS * sizeof(float)];
    for (int64_t i = 0; i < ggml_nelements(tensor); ++i)
        write_number(tensor->type, data, i, number(rank, i));
    ggml_backend_tensor_set(tensor, data, 0, ggml_nbytes(tensor));
}

static struct ggml_tensor *new_numbers(struct ranks *ranks, uint32_t rank, enum ggml_type type,
                                       uint32_t of_rank) {
    struct ggml_tensor *tensor = new_tensor(ranks, rank, type, N_ELEMENTS);
    set_numbers(tensor, of_rank);
    return tensor;
}

// Compares bytes, not numbers: values are chosen so that sums are exact in each type.
static void expect(const struct ranks *ranks, uint32_t rank, const struct ggml_tensor *tensor,
                   const float *expected, int64_t n, const char *what) {
    char data[N_RANKS * N_ELEMENTS * sizeof(float)], wanted[sizeof(data)];
    const size_t size = ggml_type_size(tensor->type);
    ggml_backend_synchronize(ranks->streams[rank]);
    ggml_backend_tensor_get(tensor, data, 0, ggml_nbytes(tensor));
    for (int64_t i = 0; i < n; ++i) {
        write_number(tensor->type, wanted, i, expected[i]);
        CHECK_THAT(ranks->run,
                   memcmp(wanted + (size_t)i * size, data + (size_t)i * size, size) == 0,
                   "%s: %s: number %d of rank %u is wrong (%s)", ranks->name, what, (int)i, rank,
                   ggml_type_name(tensor->type));
    }
}

static void must_be_ok(const struct ranks *ranks, int32_t status, const char *what) {
    CHECK_THAT(ranks->run, status == GGML_HOST_OK, "%s: %s returns status %d (%s): %s", ranks->name,
               what, (int)status, status_text(status), host_counters.last_error);
}

// For groups on one device, on each, and for one of several devices.
static void for_each_group(struct check_run *run, void (*body)(struct ranks *ranks)) {
    struct devices devices;
    static struct ranks ranks;
    bool any = false;
    devices_open(run, &devices);
    ranks.run = run;
    ranks.comm = comm_of(run, &devices);
    for (int i = 0; i < devices.n + (devices.n > 1); ++i) {
        const bool is_made = i < devices.n ? ranks_new(&ranks, &devices.items[i], 1)
                                           : ranks_new(&ranks, devices.items, devices.n);
        if (is_made) body(&ranks);
        any = any || is_made;
        ranks_free(&ranks);
    }
    if (!any) check_skip(run, "it makes no group of %d streams", N_RANKS);
}

// Size, revision and every entry, before any is called.
void comm_table(struct check_run *run) {
    struct devices devices;
    devices_open(run, &devices);
    const struct ggml_extension_comm *comm = comm_of(run, &devices);
    CHECK_THAT(run, comm->size >= sizeof(*comm) && comm->revision >= GGML_EXTENSION_COMM_REVISION,
               "the table is %u bytes long, of revision %u", comm->size, comm->revision);
    CHECK_THAT(run,
               comm->group_new && comm->group_free && comm->all_reduce && comm->broadcast &&
                   comm->all_gather && comm->send && comm->receive,
               "an entry is missing");
}

// --- results -------------------------------------------------------------------------------------

// An all-reduce to try; `counts`: which ranks' parts count.
struct combination {
    enum ggml_comm_reduction reduction;
    enum ggml_type type;
    const uint8_t *counts; // NULL: all
};

// The result of an all-reduce, added in the order of ranks; 0 where no part counts.
static void expected_of(const struct combination *c, float *out_expected) {
    for (int64_t i = 0; i < N_ELEMENTS; ++i) {
        bool any = false;
        out_expected[i] = 0.0f;
        for (uint32_t k = 0; k < N_RANKS; ++k) {
            const float value = number(k, i);
            if (c->counts && !c->counts[k]) continue;
            if (c->reduction == GGML_COMM_SUM)
                out_expected[i] += value;
            else if (!any || value > out_expected[i])
                out_expected[i] = value;
            any = true;
        }
    }
}

// Makes parts, reduces them and compares at every rank. Sums of F32 must be supported, the rest
// may be refused with UNSUPPORTED.
static void reduce(struct ranks *ranks, const struct combination *c) {
    struct ggml_tensor *parts[N_RANKS];
    float expected[N_ELEMENTS];
    const bool must = c->type == GGML_TYPE_F32 && c->reduction == GGML_COMM_SUM;
    for (uint32_t i = 0; i < N_RANKS; ++i)
        parts[i] = new_numbers(ranks, i, c->type, i);
    const int32_t status = ranks->comm->all_reduce(ranks->group, c->reduction, parts, c->counts);
    if (status == GGML_HOST_UNSUPPORTED && !must) return;
    must_be_ok(ranks, status, "an all-reduce");
    expected_of(c, expected);
    for (uint32_t i = 0; i < N_RANKS; ++i)
        expect(ranks, i, parts[i], expected, N_ELEMENTS, "an all-reduce");
}

// Sums and maxima, with all ranks counting (NULL), some, and none.
static void body_all_reduce(struct ranks *ranks) {
    static const uint8_t second_only[N_RANKS] = {0, 1, 0}, none[N_RANKS] = {0},
                         ends[N_RANKS] = {1, 0, 1};
    const struct combination combinations[] = {
        {GGML_COMM_SUM, GGML_TYPE_F32, NULL},  {GGML_COMM_SUM, GGML_TYPE_F32, second_only},
        {GGML_COMM_SUM, GGML_TYPE_F32, none},  {GGML_COMM_SUM, GGML_TYPE_F32, ends},
        {GGML_COMM_SUM, GGML_TYPE_F16, NULL},  {GGML_COMM_SUM, GGML_TYPE_BF16, ends},
        {GGML_COMM_MAX, GGML_TYPE_F32, NULL},  {GGML_COMM_MAX, GGML_TYPE_F16, second_only},
        {GGML_COMM_MAX, GGML_TYPE_BF16, ends},
    };
    for (size_t i = 0; i < sizeof(combinations) / sizeof(combinations[0]); ++i)
        reduce(ranks, &combinations[i]);
}

void comm_all_reduce(struct check_run *run) {
    for_each_group(run, body_all_reduce);
}

// Each rank is the root once, and the last rank first; numbers differ by root, so that a
// broadcast that did nothing is seen.
static void body_broadcast(struct ranks *ranks) {
    struct ggml_tensor *tensors[N_RANKS];
    float expected[N_ELEMENTS];
    for (uint32_t i = 0; i < N_RANKS; ++i)
        tensors[i] = new_tensor(ranks, i, GGML_TYPE_F32, N_ELEMENTS);
    for (uint32_t root = N_RANKS; root-- > 0;) {
        for (uint32_t i = 0; i < N_RANKS; ++i)
            set_numbers(tensors[i], i + root);
        must_be_ok(ranks, ranks->comm->broadcast(ranks->group, root, tensors), "a broadcast");
        for (int64_t i = 0; i < N_ELEMENTS; ++i)
            expected[i] = number(2 * root, i);
        for (uint32_t i = 0; i < N_RANKS; ++i)
            expect(ranks, i, tensors[i], expected, N_ELEMENTS, "a broadcast");
    }
}

void comm_broadcast(struct check_run *run) {
    for_each_group(run, body_broadcast);
}

// The results hold the parts in the order of ranks.
static void body_all_gather(struct ranks *ranks) {
    static const enum ggml_type types[] = {GGML_TYPE_F32, GGML_TYPE_F16};
    const struct ggml_tensor *parts[N_RANKS];
    struct ggml_tensor *results[N_RANKS];
    float expected[N_RANKS * N_ELEMENTS];
    for (size_t t = 0; t < 2; ++t) {
        for (uint32_t i = 0; i < N_RANKS; ++i) {
            parts[i] = new_numbers(ranks, i, types[t], i);
            results[i] = new_tensor(ranks, i, types[t], N_RANKS * N_ELEMENTS);
            for (int64_t k = 0; k < N_ELEMENTS; ++k)
                expected[i * N_ELEMENTS + k] = number(i, k);
        }
        must_be_ok(ranks, ranks->comm->all_gather(ranks->group, parts, results), "an all-gather");
        for (uint32_t i = 0; i < N_RANKS; ++i)
            expect(ranks, i, results[i], expected, N_RANKS * N_ELEMENTS, "an all-gather");
    }
}

void comm_all_gather(struct check_run *run) {
    for_each_group(run, body_all_gather);
}

// Two from rank 0 and one from rank 1 to rank 2, which asks for that of rank 1 first.
static void body_messages(struct ranks *ranks) {
    const struct ggml_extension_comm *comm = ranks->comm;
    static const uint32_t from[3] = {1, 0, 0};
    struct ggml_tensor *received[3];
    float expected[N_ELEMENTS];
    for (uint32_t i = 3; i-- > 0;) {
        // Numbers of ranks 5, 4 and 3: what is sent last is received first.
        must_be_ok(
            ranks,
            comm->send(ranks->group, from[i], 2, new_numbers(ranks, from[i], GGML_TYPE_F32, 3 + i)),
            "a send");
    }
    static const uint32_t order[3] = {0, 2, 1};
    for (uint32_t k = 0; k < 3; ++k) {
        const uint32_t i = order[k];
        received[i] = new_tensor(ranks, 2, GGML_TYPE_F32, N_ELEMENTS);
        must_be_ok(ranks, comm->receive(ranks->group, 2, from[i], received[i]), "a receive");
    }
    for (uint32_t i = 0; i < 3; ++i) {
        for (int64_t k = 0; k < N_ELEMENTS; ++k)
            expected[k] = number(3 + i, k);
        expect(ranks, 2, received[i], expected, N_ELEMENTS, "a message");
    }
}

void comm_messages(struct check_run *run) {
    for_each_group(run, body_messages);
}

// --- order ---------------------------------------------------------------------------------------

// Each stream sets its part, the group adds, each stream reads its sum and sets the part again.
static void body_order(struct ranks *ranks) {
    static float set[N_TURNS][N_RANKS][N_ELEMENTS], got[N_TURNS][N_RANKS][N_ELEMENTS];
    struct ggml_tensor *parts[N_RANKS];
    for (uint32_t i = 0; i < N_RANKS; ++i)
        parts[i] = new_numbers(ranks, i, GGML_TYPE_F32, i);
    for (int turn = 0; turn < N_TURNS; ++turn) {
        for (uint32_t i = 0; i < N_RANKS; ++i) {
            for (int k = 0; k < N_ELEMENTS; ++k)
                set[turn][i][k] = number(i, k + turn);
            ggml_backend_tensor_set_async(ranks->streams[i], parts[i], set[turn][i], 0,
                                          sizeof(set[turn][i]));
        }
        must_be_ok(ranks, ranks->comm->all_reduce(ranks->group, GGML_COMM_SUM, parts, NULL),
                   "an all-reduce");
        for (uint32_t i = 0; i < N_RANKS; ++i) {
            ggml_backend_tensor_get_async(ranks->streams[i], parts[i], got[turn][i], 0,
                                          sizeof(got[turn][i]));
        }
    }
    for (uint32_t i = 0; i < N_RANKS; ++i)
        ggml_backend_synchronize(ranks->streams[i]);
    for (int turn = 0; turn < N_TURNS; ++turn) {
        for (int k = 0; k < N_ELEMENTS * N_RANKS; ++k) {
            const float sum = set[turn][0][k % N_ELEMENTS] + set[turn][1][k % N_ELEMENTS] +
                              set[turn][2][k % N_ELEMENTS];
            CHECK_THAT(ranks->run, got[turn][k / N_ELEMENTS][k % N_ELEMENTS] == sum,
                       "%s: the sum of turn %d is not made between what each stream queued before "
                       "and what it queued later",
                       ranks->name, turn);
        }
    }
}

void comm_order(struct check_run *run) {
    for_each_group(run, body_order);
}

// --- what is refused -----------------------------------------------------------------------------

// Wrong arguments are INVALID_ARGUMENT: a status that a caller can tell from a failing device.
static void must_refuse(const struct ranks *ranks, int32_t status, const char *what) {
    CHECK_THAT(ranks->run, status == GGML_HOST_INVALID_ARGUMENT,
               "%s: %s gets status %d (%s) instead of INVALID_ARGUMENT", ranks->name, what,
               (int)status, status_text(status));
}

// Collective calls in which one rank's tensor is unlike the others.
static void refuse_calls(struct ranks *ranks, struct ggml_tensor **parts,
                         struct ggml_tensor *other) {
    const struct ggml_extension_comm *comm = ranks->comm;
    ggml_comm_group_t group = ranks->group;
    struct ggml_tensor *unlike[N_RANKS] = {parts[0], parts[1], other};
    const struct ggml_tensor *in[N_RANKS] = {parts[0], parts[1], parts[2]};
    const char *what = ggml_nelements(other) == N_ELEMENTS ? "another type" : "another size";
    must_refuse(ranks, comm->all_reduce(group, GGML_COMM_SUM, unlike, NULL), what);
    must_refuse(ranks, comm->broadcast(group, 0, unlike), what);
    must_refuse(ranks, comm->all_gather(group, (const struct ggml_tensor *const *)unlike, parts),
                what);
    must_refuse(ranks, comm->all_gather(group, in, unlike), "a result that is too small");
}

// Each call is wrong in one way. Status and numbers are looked at: a refusal must have no
// effect.
static void body_refused(struct ranks *ranks) {
    const struct ggml_extension_comm *comm = ranks->comm;
    ggml_comm_group_t group = ranks->group;
    struct ggml_tensor *parts[N_RANKS];
    float expected[N_ELEMENTS];
    for (uint32_t i = 0; i < N_RANKS; ++i)
        parts[i] = new_numbers(ranks, i, GGML_TYPE_F32, i);
    struct ggml_tensor *shorter = new_tensor(ranks, 2, GGML_TYPE_F32, N_ELEMENTS - 1);
    refuse_calls(ranks, parts, shorter);
    refuse_calls(ranks, parts, new_tensor(ranks, 2, GGML_TYPE_I32, N_ELEMENTS));
    must_refuse(ranks, comm->broadcast(group, N_RANKS, parts), "a root that is no rank");
    must_refuse(ranks, comm->send(group, 0, N_RANKS, parts[0]), "a send to no rank");
    must_refuse(ranks, comm->send(group, N_RANKS, 0, parts[0]), "a send by no rank");
    must_refuse(ranks, comm->send(group, 1, 1, parts[1]), "a send to the rank itself");
    must_refuse(ranks, comm->receive(group, 1, 0, parts[1]), "a receive without a send");
    must_be_ok(ranks, comm->send(group, 0, 2, parts[0]), "a send");
    must_refuse(ranks, comm->receive(group, 2, 0, shorter), "a receive of another size");
    must_be_ok(ranks, comm->receive(group, 2, 0, parts[2]), "a receive of a size that fits");
    // Nothing of it had an effect.
    for (uint32_t i = 0; i < N_RANKS; ++i) {
        for (int64_t k = 0; k < N_ELEMENTS; ++k)
            expected[k] = number(i == 2 ? 0 : i, k);
        expect(ranks, i, parts[i], expected, N_ELEMENTS, "after refused calls");
    }
}

void comm_refused(struct check_run *run) {
    for_each_group(run, body_refused);
}

static void refuse_group(struct ranks *ranks, struct ggml_comm_ranks held, const char *what) {
    ggml_comm_group_t group = NULL;
    held.size = sizeof(held);
    const int32_t status = ranks->comm->group_new(&held, &group);
    CHECK_THAT(ranks->run, !group, "%s: a group is made of %s", ranks->name, what);
    must_refuse(ranks, status, what);
}

// group_free(NULL) must do nothing.
static void body_group_refused(struct ranks *ranks) {
    static const struct ggml_stream_table strange_table = {.size = sizeof(strange_table)};
    struct ggml_backend_device strange_device = {.table = NULL};
    struct ggml_backend stranger = {.table = &strange_table, .device = &strange_device};
    const ggml_backend_t twice[] = {ranks->streams[0], ranks->streams[0]};
    const ggml_backend_t strange[] = {ranks->streams[0], &stranger};
    refuse_group(ranks, (struct ggml_comm_ranks){0, 2, 0, 2, twice, NULL}, "one stream twice");
    refuse_group(ranks, (struct ggml_comm_ranks){0, 2, 0, 2, strange, NULL}, "a strange stream");
    refuse_group(ranks, (struct ggml_comm_ranks){0, 0, 0, 0, ranks->streams, NULL}, "no streams");
    refuse_group(ranks, (struct ggml_comm_ranks){0, 3, 2, 3, ranks->streams, NULL},
                 "more ranks than it has");
    ranks->comm->group_free(NULL);
}

void comm_group_refused(struct check_run *run) {
    for_each_group(run, body_group_refused);
}

// --- memory --------------------------------------------------------------------------------------

// A message that is never received goes with its group.
static void use_group(struct ranks *ranks, struct ggml_tensor *const *parts) {
    ggml_comm_group_t first = ranks->group;
    must_be_ok(ranks, make_group(ranks, N_RANKS), "another group of the same streams");
    must_be_ok(ranks, ranks->comm->all_reduce(ranks->group, GGML_COMM_SUM, parts, NULL),
               "an all-reduce");
    must_be_ok(ranks, ranks->comm->send(ranks->group, 0, 1, parts[0]), "a send");
    for (uint32_t i = 0; i < N_RANKS; ++i)
        ggml_backend_synchronize(ranks->streams[i]);
    ranks->comm->group_free(ranks->group);
    ranks->group = first;
}

// The first group may allocate what stays (kernels, tables), so blocks are counted after it.
static void body_group_free(struct ranks *ranks) {
    struct ggml_tensor *parts[N_RANKS];
    for (uint32_t i = 0; i < N_RANKS; ++i)
        parts[i] = new_numbers(ranks, i, GGML_TYPE_F32, i);
    use_group(ranks, parts);
    const long before = atomic_load(&host_counters.live_blocks);
    for (int i = 0; i < N_TURNS; ++i)
        use_group(ranks, parts);
    const long left = atomic_load(&host_counters.live_blocks) - before;
    CHECK_THAT(ranks->run, left <= 0, "%s: %ld blocks are left of %d groups", ranks->name, left,
               N_TURNS);
}

void comm_group_free(struct check_run *run) {
    for_each_group(run, body_group_free);
}
