// SPDX-License-Identifier: MIT
// gpu_warpgroup.h for GPUs: one instruction each, by inline PTX.
#ifndef CUDA_KERNELS_GPU_WARPGROUP_NVIDIA_H
#define CUDA_KERNELS_GPU_WARPGROUP_NVIDIA_H

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define GPU_HAS_WARPGROUPS 1
#else
#define GPU_HAS_WARPGROUPS 0
#endif

#if GPU_HAS_WARPGROUPS

GPU_FN void gpu_barrier_init(u64 *b, u32 n) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(gpu_shared_address(b)), "r"(n)
                 : "memory");
}
// Copies by the engine, too, find the barrier begun.
GPU_FN void gpu_barrier_publish() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
GPU_FN void gpu_barrier_arrive(u64 *b) {
    asm volatile(
        "{ .reg .b64 s; mbarrier.arrive.shared::cta.b64 s, [%0]; }" ::"r"(gpu_shared_address(b))
        : "memory");
}
GPU_FN void gpu_barrier_expect(u64 *b, u32 bytes) {
    asm volatile("{ .reg .b64 s; mbarrier.arrive.expect_tx.shared::cta.b64 s, [%0], %1; }" ::"r"(
                     gpu_shared_address(b)),
                 "r"(bytes)
                 : "memory");
}
// try_wait suspends the thread for a time that the hardware bounds, and may come back in vain.
GPU_FN void gpu_barrier_wait(u64 *b, u32 parity) {
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "L_%=:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
                 "@!p bra L_%=;\n"
                 "}" ::"r"(gpu_shared_address(b)),
                 "r"(parity)
                 : "memory");
}
GPU_FN void gpu_copy_arrive(u64 *b) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(gpu_shared_address(b))
                 : "memory");
}
GPU_FN void gpu_bulk_copy(void *to, const void *from, u32 bytes, u64 *b) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
        "[%3];" ::"r"(gpu_shared_address(to)),
        "l"(from), "r"(bytes), "r"(gpu_shared_address(b))
        : "memory");
}

GPU_FN void gpu_fence_async() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Rows of 128 bytes, eight of them 1,024 bytes apart, swizzled by 128 bytes.
// Fields of the matrix descriptor (PTX ISA): address, leading and stride offset in units of 16
// bytes, from bits 0, 16 and 32 on; 1 in bits 62 and 63 is the swizzle. Of a turned tile the
// leading offset is that between panels.
GPU_FN u64 gpu_wgmma_operand(const void *tile) {
    return (u64)((gpu_shared_address(tile) & 0x3ffffu) >> 4) | (u64)1 << 16 |
           (u64)(1024 >> 4) << 32 | (u64)1 << 62;
}
GPU_FN u64 gpu_wgmma_operand_turned(const void *tile, u32 panel) {
    return (u64)((gpu_shared_address(tile) & 0x3ffffu) >> 4) | (u64)(panel >> 4) << 16 |
           (u64)(1024 >> 4) << 32 | (u64)1 << 62;
}
GPU_FN void gpu_wgmma_begin() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
GPU_FN void gpu_wgmma_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// The empty statements keep reads of sums behind the wait, which does not name them.
template <int N> GPU_FN void gpu_wgmma_finish(float (&d)[N]) {
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    GPU_UNROLL
    for (int i = 0; i < N; ++i)
        asm volatile("" : "+f"(d[i])::"memory");
}
GPU_FN void gpu_opaque(u32 &x) {
    asm volatile("" : "+r"(x));
}
template <int N> GPU_FN void gpu_registers_fewer() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}
template <int N> GPU_FN void gpu_registers_more() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}

// Of a product with n columns: the n / 2 sums of a thread as text and as operands, then the left
// operand and the tile.
#define GPU_SUMS(i)                                                                                \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]),    \
        "+f"(d[i + 6]), "+f"(d[i + 7])
#define GPU_SUMS_64(i)                                                                             \
    GPU_SUMS(i), GPU_SUMS(i + 8), GPU_SUMS(i + 16), GPU_SUMS(i + 24), GPU_SUMS(i + 32),            \
        GPU_SUMS(i + 40), GPU_SUMS(i + 48), GPU_SUMS(i + 56)
#define GPU_SUMS_OF_32 GPU_SUMS(0), GPU_SUMS(8)
#define GPU_SUMS_OF_48 GPU_SUMS(0), GPU_SUMS(8), GPU_SUMS(16)
#define GPU_SUMS_OF_64 GPU_SUMS(0), GPU_SUMS(8), GPU_SUMS(16), GPU_SUMS(24)
#define GPU_SUMS_OF_128 GPU_SUMS_64(0)
#define GPU_SUMS_OF_256 GPU_SUMS_64(0), GPU_SUMS_64(64)
#define GPU_NAMES_32                                                                               \
    "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"                                        \
    "}, {%16,%17,%18,%19}, %20"
#define GPU_NAMES_48                                                                               \
    "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"                                       \
    "%16,%17,%18,%19,%20,%21,%22,%23"                                                              \
    "}, {%24,%25,%26,%27}, %28"
#define GPU_NAMES_64                                                                               \
    "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"                                       \
    "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"                              \
    "}, {%32,%33,%34,%35}, %36"
#define GPU_NAMES_128                                                                              \
    "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"                                       \
    "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"                             \
    "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"                             \
    "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"                              \
    "}, {%64,%65,%66,%67}, %68"
#define GPU_NAMES_256                                                                              \
    "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"                                       \
    "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"                             \
    "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"                             \
    "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63,"                             \
    "%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,"                             \
    "%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95,"                             \
    "%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,"                 \
    "%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"              \
    "}, {%128,%129,%130,%131}, %132"

template <int N, bool BF16, int TURNED> struct gpu_wgmma_of;
template <int N, bool BF16> GPU_FN void gpu_wgmma(float (&d)[N / 2], const u32 *a, u64 operand) {
    gpu_wgmma_of<N, BF16, 0>::multiply(d, a, operand);
}
template <int N, bool BF16>
GPU_FN void gpu_wgmma_turned(float (&d)[N / 2], const u32 *a, u64 operand) {
    gpu_wgmma_of<N, BF16, 1>::multiply(d, a, operand);
}
// After the operands: d is added to, a and b are taken with their signs, b is transposed or not.
#define GPU_WGMMA(n, is_bf16, type, turned)                                                        \
    template <> struct gpu_wgmma_of<n, is_bf16, turned> {                                          \
        GPU_FN void multiply(float (&d)[n / 2], const u32 *a, u64 operand) {                       \
            asm volatile(                                                                          \
                "{ .reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned.m64n" #n        \
                "k16.f32." type "." type " {" GPU_NAMES_##n ", p, 1, 1, " #turned "; }"            \
                : GPU_SUMS_OF_##n                                                                  \
                : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(operand)                         \
                : "memory");                                                                       \
        }                                                                                          \
    };
GPU_WGMMA(32, false, "f16", 0)
GPU_WGMMA(48, false, "f16", 0)
GPU_WGMMA(48, true, "bf16", 0)
GPU_WGMMA(64, false, "f16", 0)
GPU_WGMMA(64, true, "bf16", 0)
GPU_WGMMA(128, false, "f16", 0)
GPU_WGMMA(128, true, "bf16", 0)
GPU_WGMMA(256, false, "f16", 0)
GPU_WGMMA(256, true, "bf16", 0)
GPU_WGMMA(128, false, "f16", 1)
GPU_WGMMA(128, true, "bf16", 1)
GPU_WGMMA(256, false, "f16", 1)
GPU_WGMMA(256, true, "bf16", 1)
#undef GPU_SUMS
#undef GPU_SUMS_64
#undef GPU_SUMS_OF_32
#undef GPU_SUMS_OF_48
#undef GPU_SUMS_OF_64
#undef GPU_SUMS_OF_128
#undef GPU_SUMS_OF_256
#undef GPU_NAMES_32
#undef GPU_NAMES_48
#undef GPU_NAMES_64
#undef GPU_NAMES_128
#undef GPU_NAMES_256
#undef GPU_WGMMA
#endif

#endif
