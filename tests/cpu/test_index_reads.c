// SPDX-License-Identifier: MIT
// Indices that another process changes between two reads of the processor. The page that they lie
// on can't be read: each instruction that does is let through by itself (the trap flag of x86), and
// sees what the test puts there. So each read in turn is the first, or the only one, that finds an
// index which names nothing. Whatever it is used for, nothing outside of the tensors is reached.
#define _GNU_SOURCE
#include "cpu_test.h"

#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

enum { N = 16, ROWS = 4, IDS = 4, GUARD = 1024, ARENA = 1 << 14, TRAP_FLAG = 0x100 };
enum { PATTERN = 0x7f }; // of bytes that are nobody's: as floats 3.4e38

// --- the page ------------------------------------------------------------------------------------

static struct {
    char *bytes;
    size_t size;
    enum ggml_type type; // of the indices
    long n_reads;        // since watch()
    long first, last;    // of these reads see the wrong index
    int64_t wrong;
} page;

static void fill_page(bool wrongly) {
    for (int64_t i = 0; i < IDS; ++i) {
        const int64_t wide = wrongly ? page.wrong : i % ROWS;
        const int32_t narrow = (int32_t)wide;
        if (page.type == GGML_TYPE_I64)
            memcpy(page.bytes + i * (int64_t)sizeof(wide), &wide, sizeof(wide));
        else
            memcpy(page.bytes + i * (int64_t)sizeof(narrow), &narrow, sizeof(narrow));
    }
}

// An access to the page goes on, with the trap flag; any other one is what this test is about.
static void on_fault(int number, siginfo_t *info, void *context) {
    static const char text[] = "# an index led outside of all memory\n";
    ucontext_t *thread = context;
    const uintptr_t at = (uintptr_t)info->si_addr - (uintptr_t)page.bytes;
    if (at >= page.size) {
        if (write(STDOUT_FILENO, text, sizeof(text) - 1) > 0) signal(number, SIG_DFL);
        return;
    }
    mprotect(page.bytes, page.size, PROT_READ | PROT_WRITE);
    fill_page(page.n_reads >= page.first && page.n_reads <= page.last);
    ++page.n_reads;
    thread->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
}

// The instruction has read.
static void on_trap(int number, siginfo_t *info, void *context) {
    ucontext_t *thread = context;
    (void)number;
    (void)info;
    mprotect(page.bytes, page.size, PROT_NONE);
    thread->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
}

static void watch(long first, long last, int64_t wrong) {
    page.n_reads = 0;
    page.first = first;
    page.last = last;
    page.wrong = wrong;
    mprotect(page.bytes, page.size, PROT_NONE);
}

// --- graphs --------------------------------------------------------------------------------------

static struct ggml_tensor *rows_got(struct ggml_context *ctx, enum ggml_type type) {
    return ggml_get_rows(ctx, ggml_new_tensor_2d(ctx, GGML_TYPE_F32, N, ROWS),
                         ggml_new_tensor_1d(ctx, type, IDS));
}

static struct ggml_tensor *rows_unpacked(struct ggml_context *ctx, enum ggml_type type) {
    return ggml_get_rows(ctx, ggml_new_tensor_2d(ctx, GGML_TYPE_F16, N, ROWS),
                         ggml_new_tensor_1d(ctx, type, IDS));
}

static struct ggml_tensor *rows_set(struct ggml_context *ctx, enum ggml_type type) {
    return ggml_set_rows(ctx, ggml_new_tensor_2d(ctx, GGML_TYPE_F32, N, ROWS),
                         ggml_new_tensor_2d(ctx, GGML_TYPE_F32, N, IDS),
                         ggml_new_tensor_1d(ctx, type, IDS));
}

static struct ggml_tensor *experts(struct ggml_context *ctx, enum ggml_type type) {
    return ggml_mul_mat_id(ctx, ggml_new_tensor_3d(ctx, GGML_TYPE_F32, N, 4, ROWS),
                           ggml_new_tensor_3d(ctx, GGML_TYPE_F32, N, 1, IDS / 2),
                           ggml_new_tensor_2d(ctx, type, 2, IDS / 2));
}

static struct ggml_tensor *biases(struct ggml_context *ctx, enum ggml_type type) {
    return ggml_add_id(ctx, ggml_new_tensor_3d(ctx, GGML_TYPE_F32, N, 2, IDS / 2),
                       ggml_new_tensor_2d(ctx, GGML_TYPE_F32, N, ROWS),
                       ggml_new_tensor_2d(ctx, type, 2, IDS / 2));
}

static struct ggml_tensor *rows_got_back(struct ggml_context *ctx, enum ggml_type type) {
    return ggml_get_rows_back(ctx, ggml_new_tensor_2d(ctx, GGML_TYPE_F32, N, IDS),
                              ggml_new_tensor_1d(ctx, type, IDS),
                              ggml_new_tensor_2d(ctx, GGML_TYPE_F32, N, ROWS));
}

static struct ggml_tensor *states(struct ggml_context *ctx, enum ggml_type type) {
    return test_states(ctx, ggml_new_tensor_1d(ctx, type, IDS), ROWS);
}

struct kind {
    struct ggml_tensor *(*make)(struct ggml_context *ctx, enum ggml_type type);
    enum ggml_type type;
};

static const struct kind kinds[] = {
    {rows_got, GGML_TYPE_I32},      {rows_unpacked, GGML_TYPE_I32}, {rows_set, GGML_TYPE_I32},
    {rows_set, GGML_TYPE_I64},      {experts, GGML_TYPE_I32},       {biases, GGML_TYPE_I32},
    {rows_got_back, GGML_TYPE_I32}, {states, GGML_TYPE_I32},
};

// --- memory --------------------------------------------------------------------------------------

static _Alignas(64) unsigned char arena[ARENA];
static unsigned char owned[ARENA];

// Each tensor has bytes of nobody's around it.
static void place(struct ggml_tensor *tensor, size_t *at) {
    if (tensor->view_src) {
        tensor->data = (char *)tensor->view_src->data + tensor->view_offs;
        return;
    }
    if (tensor->type == page.type) {
        tensor->data = page.bytes;
        return;
    }
    const size_t begin = *at + GUARD, size = ggml_nbytes(tensor);
    *at = (begin + size + 63) / 64 * 64;
    assert_true(*at + GUARD <= ARENA);
    tensor->data = arena + begin;
    memset(owned + begin, 1, size);
}

// What a graph reads and writes before it is computed.
static void reset_arena(const struct ggml_context *ctx) {
    memset(arena, PATTERN, sizeof(arena));
    for (struct ggml_tensor *t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t))
        if (t->type != page.type) memset(t->data, 0, ggml_nbytes(t));
}

static void expect_inside(const struct ggml_tensor *node, enum ggml_status status) {
    for (size_t i = 0; i < ARENA; ++i)
        if (!owned[i] && arena[i] != PATTERN) fail_msg("byte %zu was written to", i);
    const float *values = node->data;
    for (int64_t i = 0; i < ggml_nelements(node) && status == GGML_STATUS_SUCCESS; ++i)
        if (!(fabsf(values[i]) < 1e6f)) fail_msg("%lld: of nobody's memory", (long long)i);
}

// --- each read -----------------------------------------------------------------------------------

static void try_reads(ggml_backend_t stream, struct ggml_context *ctx, struct ggml_tensor *node) {
    static const int64_t wrong[] = {INT32_MAX - 5, ROWS, -1};
    struct ggml_cgraph *graph = test_graph(ctx, node);
    reset_arena(ctx);
    watch(-1, -1, 0);
    assert_int_equal(ggml_backend_graph_compute(stream, graph), GGML_STATUS_SUCCESS);
    expect_inside(node, GGML_STATUS_SUCCESS);
    const long n_reads = page.n_reads;
    assert_true(n_reads > 0);
    for (long read = 0; read < n_reads; ++read) {
        for (size_t i = 0; i < 2 * sizeof(wrong) / sizeof(wrong[0]); ++i) {
            reset_arena(ctx);
            watch(read, i % 2 ? read : LONG_MAX, wrong[i / 2]);
            const enum ggml_status status = ggml_backend_graph_compute(stream, graph);
            expect_inside(node, status);
            if (read == 0 && i % 2 == 0) assert_int_equal(status, GGML_STATUS_FAILED);
        }
    }
}

static void try_kind(const struct kind *kind, ggml_backend_t stream) {
    const struct ggml_init_params params = {1 << 18, NULL, true};
    struct ggml_context *ctx = ggml_init(params);
    size_t at = 0;
    page.type = kind->type;
    memset(owned, 0, sizeof(owned));
    struct ggml_tensor *node = kind->make(ctx, kind->type);
    for (struct ggml_tensor *t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t))
        place(t, &at);
    try_reads(stream, ctx, node);
    ggml_free(ctx);
}

static void test_an_index_may_change_between_any_two_reads(void **state) {
    struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    struct sigaction trap = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    (void)state;
    assert_int_equal(sigaction(SIGSEGV, &fault, NULL), 0); // in place of cmocka's
    assert_int_equal(sigaction(SIGTRAP, &trap, NULL), 0);
    for (int level = 0; level < test_level_count(); ++level) {
        print_message("# %s\n", test_use_level(level));
        ggml_backend_t stream = ggml_backend_cpu_init();
        ggml_backend_cpu_set_n_threads(stream, 1);
        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); ++i)
            try_kind(&kinds[i], stream);
        ggml_backend_free(stream);
    }
    test_use_best_level();
    signal(SIGSEGV, SIG_DFL);
    signal(SIGTRAP, SIG_DFL);
}

static int begin(void **state) {
    (void)state;
    page.size = (size_t)sysconf(_SC_PAGESIZE);
    page.bytes = mmap(NULL, page.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return page.bytes == MAP_FAILED;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_index_may_change_between_any_two_reads),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
