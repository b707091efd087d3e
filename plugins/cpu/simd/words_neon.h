// SPDX-License-Identifier: MIT
// Vectors of words for AArch64: the part of words.h, which includes this.
#ifndef CPU_WORDS_NEON_H
#define CPU_WORDS_NEON_H

typedef int32x4_t wi;

// Four bytes in each lane.
CPU_INLINE wi spread_word(const void *x) {
    int32_t word;
    memcpy(&word, x, sizeof(word));
    return vdupq_n_s32(word);
}

// The first two words of a and b in turn, and the last two.
CPU_INLINE ww first_words(ww a, ww b) {
    return (ww)vzip1q_u32((uint32x4_t)a, (uint32x4_t)b);
}

CPU_INLINE ww last_words(ww a, ww b) {
    return (ww)vzip2q_u32((uint32x4_t)a, (uint32x4_t)b);
}

// Entries of a table of 16.
CPU_INLINE wb words_lookup(v16b table, wb index) {
    return (wb)vqtbl1q_u8((uint8x16_t)table, (uint8x16_t)index);
}

// Byte i of each word four times.
CPU_INLINE wb words_spread(ww v, const int i) {
    const wb first = {0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12};
    return (wb)vqtbl1q_u8((uint8x16_t)v, (uint8x16_t)(first + (uint8_t)i));
}

// The lower halves of words as floats.
CPU_INLINE vf words_floats(ww v) {
    return (vf)vcvt_f32_f16(vreinterpret_f16_u16(vmovn_u32((uint32x4_t)v)));
}

// The first four.
CPU_INLINE vf halves_floats(v8h low, v8h high) {
    (void)high;
    return (vf)vcvt_f32_f16(vreinterpret_f16_u16(vget_low_u16((uint16x8_t)low)));
}

// a * b + c, rounded once.
CPU_INLINE vf fused(vf a, vf b, vf c) {
    return (vf)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}

#if defined(__ARM_FEATURE_DOTPROD)
// Adds the products of four bytes of each row with bytes 4 * i and up of x to its lane; all have a
// sign.
CPU_INLINE wi dot_lane(wi sum, wb rows, const int8_t *x, const int i) {
    const int8x16_t w = (int8x16_t)rows, columns = vld1q_s8(x);
    switch (i) {
    case 0: return vdotq_laneq_s32(sum, w, columns, 0);
    case 1: return vdotq_laneq_s32(sum, w, columns, 1);
    case 2: return vdotq_laneq_s32(sum, w, columns, 2);
    default: return vdotq_laneq_s32(sum, w, columns, 3);
    }
}
#endif

#endif
