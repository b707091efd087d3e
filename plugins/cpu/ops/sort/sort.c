// SPDX-License-Identifier: MIT
// argsort and top_k. Numbers become integer keys whose order is theirs; NaN comes last in either
// order, and equal numbers stay in the order of their indices.
#include "ops/sort/sort.h"

#include "ggml-shape.h"
#include "simd/convert.h"

enum { DIGIT_BITS = 8, DIGITS = 4, DIGIT_VALUES = 1 << DIGIT_BITS, SMALL = 48 };
enum {
    AT_ONCE = 32, // numbers that are compared before any of them becomes a key
    SPARE = 256,  // items beyond twice as many as are wanted, before these are chosen
};

// Digit 0 is the lowest byte.
static uint32_t digit_of(uint32_t key, int digit) {
    return key >> (digit * DIGIT_BITS) & (DIGIT_VALUES - 1);
}

// Smaller keys come first.
static uint32_t key_of(float x, bool descending) {
    if (x != x) return UINT32_MAX;
    const uint32_t bits = cpu_float_bits(x + 0.0f); // of zeros only the positive one
    const uint32_t ascending = bits >> 31 ? ~bits : bits | 0x80000000u;
    return descending ? ~ascending : ascending;
}

// The number that a key of descending order was made of; not of NaN's.
static float number_of(uint32_t key) {
    const uint32_t ascending = ~key;
    return cpu_bits_float(ascending >> 31 ? ascending & 0x7FFFFFFF : ~ascending);
}

// Keys and indices of a row.
static void load_items(struct sort_item *items, const struct ggml_tensor *src, struct ggml_row at,
                       bool descending) {
    const char *x = ggml_row_data(src, at);
    for (int64_t i = 0; i < src->ne[0]; ++i) {
        float value;
        memcpy(&value, x + (size_t)i * src->nb[0], sizeof(value));
        items[i] = (struct sort_item){key_of(value, descending), (int32_t)i};
    }
}

// For short runs. Stable: equal keys keep their order.
static void insertion_sort(struct sort_item *items, int64_t n) {
    for (int64_t i = 1; i < n; ++i) {
        const struct sort_item item = items[i];
        int64_t j = i;
        for (; j > 0 && items[j - 1].key > item.key; --j)
            items[j] = items[j - 1];
        items[j] = item;
    }
}

// One pass of the radix sort: counts the digits, then moves the items in order. Stable.
static void distribute(const struct sort_item *from, struct sort_item *to, int64_t n, int digit) {
    int64_t starts[DIGIT_VALUES + 1] = {0};
    for (int64_t i = 0; i < n; ++i)
        ++starts[digit_of(from[i].key, digit) + 1];
    for (int value = 1; value < DIGIT_VALUES; ++value)
        starts[value] += starts[value - 1];
    for (int64_t i = 0; i < n; ++i)
        to[starts[digit_of(from[i].key, digit)]++] = from[i];
}

// LSD radix sort, O(n) in four passes; stable. `other` has room for n items, too.
static void sort_items(struct sort_item *items, struct sort_item *other, int64_t n) {
    if (n <= SMALL) {
        insertion_sort(items, n);
        return;
    }
    for (int digit = 0; digit < DIGITS; digit += 2) {
        distribute(items, other, n, digit);
        distribute(other, items, n, digit + 1);
    }
}

// Moves the k first in order to the front, in their former order: digit by digit, from the highest,
// it finds the last key that is among them, and returns it.
static uint32_t select_items(struct sort_item *items, int64_t n, int64_t k) {
    uint32_t last = 0;
    int64_t ties = k; // of the keys that begin like `last`, how many are among the first
    for (int digit = DIGITS - 1; digit >= 0; --digit) {
        int64_t counts[DIGIT_VALUES] = {0};
        const uint32_t known = digit == DIGITS - 1 ? 0 : UINT32_MAX << ((digit + 1) * DIGIT_BITS);
        for (int64_t i = 0; i < n; ++i) {
            if ((items[i].key & known) == last) ++counts[digit_of(items[i].key, digit)];
        }
        uint32_t value = 0;
        for (; counts[value] < ties; ++value)
            ties -= counts[value];
        last |= value << (digit * DIGIT_BITS);
    }
    int64_t kept = 0;
    for (int64_t i = 0; i < n && kept < k; ++i) {
        const uint32_t key = items[i].key;
        if (key < last || (key == last && ties-- > 0)) items[kept++] = items[i];
    }
    return last;
}

// Whether any of n numbers, at most AT_ONCE, is larger. Vectors compare them.
static bool any_larger(const char *x, int64_t n, float limit) {
    float numbers[AT_ONCE];
    int larger = 0;
    memcpy(numbers, x, (size_t)n * sizeof(float));
    for (int64_t i = 0; i < n; ++i)
        larger |= numbers[i] > limit;
    return larger != 0;
}

// Inserts an item behind those that come before it or are equal; of more than `most` the last one
// goes. Returns how many there are.
static int64_t insert_item(struct sort_item *items, int64_t n, int64_t most,
                           struct sort_item item) {
    int64_t j = n < most ? n : most - 1;
    for (; j > 0 && items[j - 1].key > item.key; --j)
        items[j] = items[j - 1];
    items[j] = item;
    return MIN(n + 1, most);
}

// Loads what may be among the k largest of a row and moves these to the front, as equal ones lie
// there: few are kept in order; of many the first are chosen now and then. Later only what comes
// before the last of them is loaded.
static void load_largest(struct sort_item *items, const struct ggml_tensor *src, struct ggml_row at,
                         int64_t k) {
    const char *x = ggml_row_data(src, at);
    const int64_t n = src->ne[0], room = k < (n - SPARE) / 2 ? 2 * k + SPARE : n;
    const bool is_dense = src->nb[0] == sizeof(float);
    uint64_t limit = (uint64_t)UINT32_MAX + 1; // keys below it are loaded
    int64_t loaded = 0;
    for (int64_t i = 0; i < n && k > 0;) {
        const int64_t end = MIN(i + AT_ONCE, n);
        if (is_dense && limit < UINT32_MAX &&
            !any_larger(x + (size_t)i * sizeof(float), end - i, number_of((uint32_t)limit))) {
            i = end;
            continue;
        }
        for (; i < end; ++i) {
            float value;
            memcpy(&value, x + (size_t)i * src->nb[0], sizeof(value));
            const struct sort_item item = {key_of(value, true), (int32_t)i};
            if (item.key >= limit) continue;
            if (k <= SMALL) {
                loaded = insert_item(items, loaded, k, item);
                if (loaded == k) limit = items[k - 1].key;
                continue;
            }
            if (loaded == room) {
                limit = select_items(items, loaded, k);
                loaded = k;
            }
            if (item.key < limit) items[loaded++] = item;
        }
    }
    if (loaded > k) select_items(items, loaded, k);
}

// Only the order is wanted: the values were sorted along with their indices.
static void store_indices(const struct ggml_tensor *dst, struct ggml_row at,
                          const struct sort_item *items) {
    int32_t *y = (int32_t *)(void *)ggml_row_data(dst, at);
    for (int64_t i = 0; i < dst->ne[0]; ++i)
        y[i] = items[i].index;
}

// A thread's part of the work memory.
static struct sort_item *thread_items(const struct cpu_task *task, int64_t n) {
    return (struct sort_item *)task->work + 2 * n * task->ith;
}

// Threads share rows.
enum ggml_status CPU_FN(cpu_argsort)(const struct cpu_task *task) {
    const struct ggml_tensor *dst = task->dst;
    const bool descending = ggml_get_op_params_i32(dst, 0) == GGML_SORT_ORDER_DESC;
    const int64_t n = dst->ne[0];
    struct sort_item *items = thread_items(task, n);
    int64_t begin, end;
    cpu_task_range(task, ggml_nrows(dst), &begin, &end);
    for (int64_t r = begin; r < end; ++r) {
        const struct ggml_row at = ggml_row_at(dst, r);
        load_items(items, dst->src[0], at, descending);
        sort_items(items, items + n, n);
        store_indices(dst, at, items);
    }
    return GGML_STATUS_SUCCESS;
}

// The largest first, though callers may not count on an order.
enum ggml_status CPU_FN(cpu_top_k)(const struct cpu_task *task) {
    const struct ggml_tensor *dst = task->dst;
    const int64_t n = dst->src[0]->ne[0];
    struct sort_item *items = thread_items(task, n);
    int64_t begin, end;
    cpu_task_range(task, ggml_nrows(dst), &begin, &end);
    for (int64_t r = begin; r < end; ++r) {
        const struct ggml_row at = ggml_row_at(dst, r);
        if (n <= SMALL)
            load_items(items, dst->src[0], at, true);
        else
            load_largest(items, dst->src[0], at, dst->ne[0]);
        sort_items(items, items + n, n <= SMALL ? n : dst->ne[0]);
        store_indices(dst, at, items);
    }
    return GGML_STATUS_SUCCESS;
}
