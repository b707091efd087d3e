// SPDX-License-Identifier: MIT
// Geometry of a convolution over DIMS dimensions, as ops/conv/conv.c describes it. Positions count
// pixels; index 0 is the width.
#ifndef CONV_GLSL
#define CONV_GLSL

layout(constant_id = 5) const uint DIMS = 2;

uint conv_kernel(const uint d) { return number(d); }
uint conv_in(const uint d) { return number(3 + d); }
uint conv_out(const uint d) { return number(6 + d); }
uint conv_channels() { return number(9); }
uint conv_batch() { return number(10); }
uint conv_channels_out() { return number(11); }
uint conv_nb_channel() { return number(12); }
uint conv_nb_batch() { return number(13); }

const uint CONV_PARAMS = DIMS == 3 ? 3 : 2; // of each kind
int conv_stride(const uint d) { return d < DIMS ? op_param(d) : 1; }
int conv_padding(const uint d) { return d < DIMS ? op_param(CONV_PARAMS + d) : 0; }
int conv_dilation(const uint d) { return d < DIMS ? op_param(2 * CONV_PARAMS + d) : 1; }

// Where kernel element k of window o lies in the image along d; true if that is inside.
bool conv_position(const uint d, const uint o, const uint k, out uint at) {
    const int i = int(o) * conv_stride(d) - conv_padding(d) + int(k) * conv_dilation(d);
    at = uint(i);
    return i >= 0 && i < int(conv_in(d));
}

// The same backwards: the window whose element k lies on position i, if there is one.
bool conv_window(const uint d, const uint i, const uint k, out uint o) {
    const int at = int(i) + conv_padding(d) - int(k) * conv_dilation(d);
    o = uint(at / conv_stride(d));
    return at >= 0 && at % conv_stride(d) == 0 && o < conv_out(d);
}

#endif
