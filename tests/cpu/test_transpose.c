// SPDX-License-Identifier: MIT
// Copies between layouts whose adjacent elements lie along different dimensions.
#include "cpu_test.h"

// A tensor of these extents, gapped, whose elements are adjacent along dimension `dim`.
static struct ggml_tensor *adjacent_along(struct ggml_context *ctx, enum ggml_type type,
                                          struct extents e, int dim, uint32_t seed) {
    struct extents turned = e;
    int axes[] = {0, 1, 2, 3};
    turned.ne[0] = e.ne[dim];
    turned.ne[dim] = e.ne[0];
    axes[0] = dim;
    axes[dim] = 0;
    struct ggml_tensor *t = test_gapped(ctx, type, turned, seed, -1, 1);
    return ggml_permute(ctx, t, axes[0], axes[1], axes[2], axes[3]);
}

static double copied(const struct ggml_tensor *y, const int64_t *i, const void *src) {
    (void)y;
    return test_get(src, i[0], i[1], i[2], i[3]);
}

// No extent is a multiple of a tile's; one is smaller than half of it, one is less than a quad more
// than whole tiles.
static void test_transposed_copies(void **state) {
    (void)state;
    static const enum ggml_type types[] = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16};
    static const struct extents sizes = {{37, 21, 5, 34}};
    for (int n = 0; n < 16 * 3; ++n) {
        struct ggml_context *ctx = test_context(16);
        const enum ggml_type type = types[n / 16];
        struct ggml_tensor *from = adjacent_along(ctx, type, sizes, n % 4, 1);
        struct ggml_tensor *to = adjacent_along(ctx, type, sizes, n / 4 % 4, 2);
        char what[64];
        snprintf(what, sizeof(what), "from dimension %d to %d", n % 4, n / 4 % 4);
        test_against(ctx, ggml_cpy(ctx, from, to), copied, from, what);
        test_against(ctx, ggml_cont(ctx, from), copied, from, what);
        ggml_free(ctx);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transposed_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
