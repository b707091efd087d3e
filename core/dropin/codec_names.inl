// SPDX-License-Identifier: MIT
// The codecs that ggml's library exports by name. Types without an encoder of single rows need an
// importance matrix or large tables.
//
// DROPIN_DECODER(name, NAME)  dequantize_row_<name>
// DROPIN_ENCODER(name, NAME)  quantize_row_<name>_ref
// DROPIN_CHUNK(name, NAME)    quantize_<name>
#define DROPIN_CODEC(name, NAME)                                                                   \
    DROPIN_DECODER(name, NAME)                                                                     \
    DROPIN_ENCODER(name, NAME)                                                                     \
    DROPIN_CHUNK(name, NAME)
#define DROPIN_CODEC_WITHOUT_ROWS(name, NAME)                                                      \
    DROPIN_DECODER(name, NAME)                                                                     \
    DROPIN_CHUNK(name, NAME)
DROPIN_CODEC(q1_0, Q1_0)
DROPIN_CODEC(q2_0, Q2_0)
DROPIN_CODEC(q4_0, Q4_0)
DROPIN_CODEC(q4_1, Q4_1)
DROPIN_CODEC(q5_0, Q5_0)
DROPIN_CODEC(q5_1, Q5_1)
DROPIN_CODEC(q8_0, Q8_0)
DROPIN_CODEC(mxfp4, MXFP4)
DROPIN_CODEC(nvfp4, NVFP4)
DROPIN_CODEC(tq1_0, TQ1_0)
DROPIN_CODEC(tq2_0, TQ2_0)
DROPIN_CODEC(q2_K, Q2_K)
DROPIN_CODEC(q3_K, Q3_K)
DROPIN_CODEC(q4_K, Q4_K)
DROPIN_CODEC(q5_K, Q5_K)
DROPIN_CODEC(q6_K, Q6_K)
DROPIN_CODEC(iq4_nl, IQ4_NL)
DROPIN_CODEC(iq4_xs, IQ4_XS)
DROPIN_CODEC(iq2_s, IQ2_S)
DROPIN_CODEC(iq3_xxs, IQ3_XXS)
DROPIN_CODEC(iq3_s, IQ3_S)
DROPIN_CODEC_WITHOUT_ROWS(iq1_s, IQ1_S)
DROPIN_CODEC_WITHOUT_ROWS(iq1_m, IQ1_M)
DROPIN_CODEC_WITHOUT_ROWS(iq2_xxs, IQ2_XXS)
DROPIN_CODEC_WITHOUT_ROWS(iq2_xs, IQ2_XS)
DROPIN_ENCODER(q8_1, Q8_1)
#undef DROPIN_CODEC
#undef DROPIN_CODEC_WITHOUT_ROWS
#undef DROPIN_DECODER
#undef DROPIN_ENCODER
#undef DROPIN_CHUNK
