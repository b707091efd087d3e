// SPDX-License-Identifier: MIT
// Products with at most eight columns, also those with experts, a column at a time: what reading
// the weights costs. A block has 16 rows; its four warps share k, each multiplies a quarter of what
// is copied at a time on the tensor cores, and the sums are added at the end. Activations are read
// as they are and rounded to F16, or to BF16 for weights of BF16 and MXFP4. Two products of the
// same columns are made one after the other where a gated unit's function is applied to them. With
// numbers[FEW_EARLY] the first weights are on their way before the launches that make the columns
// have ended.
#include "fragments.h"
#include "glu.h"
#include "launch/products.h"

enum { FEW_ROWS = 16, FEW_COLUMNS = 8, FEW_WARPS = 4, FEW_THREADS = 128, FEW_PITCH = 20 };

// Elements of a row that are copied at a time: at least about 400 bytes, since a sector at either
// end may be read twice.
template <int ELEMENTS, int BYTES> struct few_depth {
    enum { DEPTH = ELEMENTS == 1 ? 512 : 1024 / ELEMENTS * BYTES < 400 ? 2048 : 1024 };
};

template <int TYPE, int ELEMENTS, int BYTES>
struct few_weights : weights<TYPE, ELEMENTS, BYTES, few_depth<ELEMENTS, BYTES>::DEPTH> {
    typedef weights<TYPE, ELEMENTS, BYTES, few_depth<ELEMENTS, BYTES>::DEPTH> W;
    enum {
        STAGE = FEW_ROWS * W::PITCH,
        STAGES = 44 * 1024 / STAGE < 6 ? 44 * 1024 / STAGE : 6,
        STAGES_AT_ONCE = 1, // where copies are done at once
        KEPT = GPU_COPIES_AT_ONCE ? STAGES_AT_ONCE : STAGES,
        SHARE = W::DEPTH / FEW_WARPS,               // of a warp
        GROUPS = SHARE / 16 < 16 ? SHARE / 16 : 16, // whose activations are in registers at a time
    };
};

#if GPU_HAS_TENSOR_CORES

// Where a block finds its operands, and where its shared memory.
struct few_operands {
    const u8 *rows, *columns, *bias; // bias 0: none
    u8 *results;
    i64 bias_pitch; // bytes between its columns
    u32 m_left, n;  // rows from here on, columns
    u8 *stages;
    float *parts;
    u32 *exponents; // of each column
};

// The activations of this warp's share of a stage; `largest` of them before they are scaled.
template <class F>
GPU_FN void load_columns(const gpu_args &p, const few_operands &o, u64 first, u32 lane, float scale,
                         u32 (&out)[F::GROUPS][2], float &largest) {
    const gpu_operand &b = p.operands[2];
    const u32 column = lane / 4, c = lane % 4;
    GPU_UNROLL
    for (u32 s = 0; s < F::GROUPS; ++s) {
        const u64 k = first + 16 * s + 4 * c;
        float x[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        if (column < o.n && k < (u64)b.ne[0])
            load_four(b.type, o.columns + (i64)column * b.nb[1], k, x);
        if (!F::AS_BF16) largest = larger_of_four(largest, x);
        pack_four<F>(x, scale, out[s]);
    }
}

// This warp's part of the sums, with all copies done. Where copies are done at once one stage is
// enough, and leaves room for more blocks, of which some copy while others compute.
template <class F>
GPU_FN void few_sums(gpu_thread g, const gpu_args &p, const few_operands &o, float scale,
                     float (&sums)[4], float &largest) {
    const gpu_operand &a = p.operands[1];
    const u32 t = gpu_tid(g), warp = t / 32, lane = t % 32, row = lane / 4, c = lane % 4;
    const u64 depth = (u64)a.ne[0];
    const u32 n_steps = (u32)((depth + F::DEPTH - 1) / F::DEPTH), last = o.m_left - 1;
    const i64 row_bytes = (i64)(depth / F::ELEMENTS * F::BYTES);
    const bool at_once = gpu_copies_at_once();
    const u32 stages = at_once ? (u32)F::STAGES_AT_ONCE : (u32)F::STAGES;
    for (u32 i = 0; i + 1 < stages; ++i) {
        if (i < n_steps)
            copy_rows<F>(g, o.stages + i * F::STAGE, o.rows, a.nb[1], FEW_ROWS, last,
                         (i64)i * F::USED, row_bytes);
        gpu_copy_group();
    }
    gpu_wait_for_launches();
    const u64 address = (u64)(o.rows + (i64)(row < last ? row : last) * a.nb[1]),
              address_8 = (u64)(o.rows + (i64)(row + 8 < last ? row + 8 : last) * a.nb[1]);
    for (u32 step = 0; step < n_steps; ++step) {
        const u64 first = (u64)step * F::DEPTH + warp * F::SHARE;
        u32 b[F::GROUPS][2];
        load_columns<F>(p, o, first, lane, scale, b, largest); // while copies are under way
        gpu_copy_wait<F::STAGES - 2>();
        gpu_sync(g); // also behind the reads of the stage that is copied to next
        const u32 next = step + stages - 1;
        if (next < n_steps)
            copy_rows<F>(g, o.stages + next % stages * F::STAGE, o.rows, a.nb[1], FEW_ROWS, last,
                         (i64)next * F::USED, row_bytes);
        gpu_copy_group();
        if (at_once) gpu_sync(g);
        const u8 *stage = o.stages + step % stages * F::STAGE;
        const u64 offset = (u64)step * F::USED;
        const u8 *r0 = stage + row * F::PITCH + (address + offset) % SECTOR;
        const u8 *r8 = stage + (row + 8) * F::PITCH + (address_8 + offset) % SECTOR;
        for (u32 part = 0; part < F::SHARE; part += 16 * F::GROUPS) {
            if (part > 0) load_columns<F>(p, o, first + part, lane, scale, b, largest);
            GPU_UNROLL
            for (u32 s = 0; s < F::GROUPS; ++s) {
                if (first + part + 16 * s >= depth) break; // the same for the warp
                u32 fragment[4];
                decode_fragment<F>(r0, r8, warp * F::SHARE + part + 16 * s, c, fragment);
                multiply_fragments<F>(sums, fragment, b[s]);
            }
        }
    }
    gpu_sync(g);
}

// Sets each column's exponent from the largest element that each lane has seen. Whether any is not
// NO_SCALE, for all threads alike.
GPU_FN bool needs_scales(gpu_thread g, const few_operands &o, float largest) {
    const u32 t = gpu_tid(g), warp = t / 32, lane = t % 32;
    largest = gpu_larger(largest, gpu_shfl_xor(largest, 1));
    largest = gpu_larger(largest, gpu_shfl_xor(largest, 2));
    if (lane % 4 == 0) o.parts[warp * FEW_COLUMNS + lane / 4] = largest;
    gpu_sync(g);
    if (t < FEW_COLUMNS) {
        float of_all = 0.0f;
        for (u32 w = 0; w < FEW_WARPS; ++w)
            of_all = gpu_larger(of_all, o.parts[w * FEW_COLUMNS + t]);
        o.exponents[t] = scale_exponent(of_all);
    }
    gpu_sync(g);
    bool needed = false;
    for (u32 j = 0; j < FEW_COLUMNS; ++j)
        needed = needed || o.exponents[j] != NO_SCALE;
    return needed;
}

// Of row t % 16 and column FEW_COLUMN(t).
#define FEW_COLUMN(t) ((t) / 16 % 2 * 4 + (t) / 32) // two columns in different banks
template <class F>
GPU_FN float few_product(gpu_thread g, const gpu_args &p, const few_operands &o) {
    const u32 t = gpu_tid(g), warp = t / 32, lane = t % 32, row = lane / 4, c = lane % 4;
    float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f}, largest = 0.0f, scale = 1.0f;
    bool again = false;
    do {
        for (u32 e = 0; e < 4; ++e)
            sums[e] = 0.0f;
        few_sums<F>(g, p, o, scale, sums, largest);
        again = !F::AS_BF16 && !again && needs_scales(g, o, largest);
        if (again) scale = power_of_exponent(o.exponents[row]);
    } while (again);
    gpu_sync(g); // the parts may still be read
    for (u32 e = 0; e < 4; ++e)
        o.parts[(warp * FEW_COLUMNS + 2 * c + e % 2) * FEW_PITCH + row + e / 2 * 8] = sums[e];
    gpu_sync(g);
    const u32 m = t % FEW_ROWS, n = FEW_COLUMN(t);
    float sum = 0.0f;
    for (u32 w = 0; w < FEW_WARPS; ++w)
        sum += o.parts[(w * FEW_COLUMNS + n) * FEW_PITCH + m];
    if (!F::AS_BF16) sum *= power_of_exponent(254u - o.exponents[n]);
    return sum;
}

// With numbers[FEW_GATED] the function of a gated unit, of this product and that of the weights of
// operand 4, which lie as those of operand 1; else operand 4 is added if there is one.
template <class F> GPU_FN void few_results(gpu_thread g, const gpu_args &p, few_operands &o) {
    const gpu_operand &y = p.operands[0];
    const u32 t = gpu_tid(g), m = t % FEW_ROWS, n = FEW_COLUMN(t);
    const bool gated = p.numbers[FEW_GATED] != 0;
    float value = 0.0f, x = 0.0f;
    for (u32 k = 0; k < (gated ? 2u : 1u); ++k) {
        if (k > 0) {
            x = value;
            o.rows = (const u8 *)p.operands[4].data + (o.rows - (const u8 *)p.operands[1].data);
            gpu_sync(g); // the parts have been read
        }
        value = few_product<F>(g, p, o);
    }
    if (m >= o.m_left || n >= o.n) return;
    if (gated) value = gpu_glu(p, x, value);
    if (o.bias) value += *(const float *)(o.bias + (i64)n * o.bias_pitch + 4 * m);
    *(float *)(o.results + (i64)n * y.nb[1] + (i64)m * y.nb[0]) = value;
}

GPU_FN void few_of_matrix(gpu_thread g, const gpu_args &p, u64 m0, few_operands &o) {
    const gpu_operand &y = p.operands[0], &a = p.operands[1], &b = p.operands[2];
    u64 z;
    const u64 w = gpu_divide(gpu_bid_y(g), (u64)y.ne[2], &z);
    o.rows = gpu_row(a, m0, z / (u64)(b.ne[2] / a.ne[2]), w / (u64)(b.ne[3] / a.ne[3]));
    o.columns = gpu_row(b, 0, z, w);
    o.results = gpu_row(y, 0, z, w) + (i64)m0 * y.nb[0];
    o.n = (u32)b.ne[1];
    o.bias = p.numbers[FEW_GATED] ? 0 : bias_at(p, m0, 0, z, w);
    o.bias_pitch = bias_pitch(p);
}

// A column with the matrix that its index says. n 0: there is no such matrix.
GPU_FN void few_of_expert(gpu_thread g, const gpu_args &p, u64 m0, few_operands &o) {
    const gpu_operand &y = p.operands[0], &a = p.operands[1], &b = p.operands[2],
                      &ids = p.operands[3];
    u64 u;
    const u64 t = gpu_divide(gpu_bid_y(g), (u64)y.ne[1], &u);
    const i32 id = *(const i32 *)(gpu_row(ids, t, 0, 0) + (i64)u * ids.nb[0]);
    const bool known = id >= 0 && id < a.ne[2];
    o.rows = gpu_row(a, m0, known ? (u64)id : 0, 0);
    o.columns = gpu_row(b, u % (u64)b.ne[1], t, 0);
    o.results = gpu_row(y, u, t, 0) + (i64)m0 * y.nb[0];
    o.n = known;
    o.bias = 0;
}
GPU_FN void no_expert(gpu_thread g, const gpu_args &p, const few_operands &o) {
    const u32 t = gpu_tid(g);
    if (t < FEW_ROWS && t < o.m_left)
        *(float *)(o.results + (i64)t * p.operands[0].nb[0]) = GPU_NAN;
}

// Blocks: 16 rows each; matrices, or columns with a matrix each if numbers[FEW_EXPERTS] is set.
#define FEW_BODY(name, elements, bytes)                                                            \
    GPU_THREAD_EARLY(g);                                                                           \
    if (!p.numbers[FEW_EARLY]) gpu_wait_for_launches();                                            \
    typedef few_weights<TYPE_##name, elements, bytes> F;                                           \
    GPU_SHARED(gpu_words4, stages, F::KEPT *F::STAGE / 16);                                        \
    GPU_SHARED(float, parts, FEW_WARPS *FEW_COLUMNS *FEW_PITCH);                                   \
    GPU_SHARED(u32, exponents, FEW_COLUMNS);                                                       \
    const u64 m0 = (u64)gpu_bid_x(g) * FEW_ROWS;                                                   \
    few_operands o;                                                                                \
    o.m_left = (u32)((u64)p.operands[1].ne[1] - m0);                                               \
    o.stages = (u8 *)stages;                                                                       \
    o.parts = parts;                                                                               \
    o.exponents = exponents;                                                                       \
    if (p.numbers[FEW_EXPERTS])                                                                    \
        few_of_expert(g, p, m0, o);                                                                \
    else                                                                                           \
        few_of_matrix(g, p, m0, o);                                                                \
    if (o.n == 0)                                                                                  \
        no_expert(g, p, o);                                                                        \
    else                                                                                           \
        few_results<F>(g, p, o);
#else
#define FEW_BODY(name, elements, bytes) (void)p;
#endif

// With one stage there is shared memory for more than four blocks, for which ptxas would keep
// registers in memory.
#if GPU_COPIES_AT_ONCE
#define FEW_KERNEL(name) GPU_KERNEL_FOR(name, FEW_THREADS, 4, gpu_args, p)
#else
#define FEW_KERNEL(name) GPU_KERNEL(name, FEW_THREADS, gpu_args, p)
#endif
#define TENSOR_TYPE(name, elements, bytes)                                                         \
    FEW_KERNEL(kernel_few_##name) {                                                                \
        FEW_BODY(name, elements, bytes)                                                            \
    }
#include "tensor_types.inl"
