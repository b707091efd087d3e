// SPDX-License-Identifier: MIT
// Windows of pooling, DIMS 1 or 2; parameters as the node has them.
#ifndef POOL_GLSL
#define POOL_GLSL

layout(constant_id = 4) const uint DIMS = 2;
const float LOWEST = -3.4028234663852886e38;

bool pool_takes_largest() { return op_param(0) == 0; }
int pool_size(const uint d) { return op_param(1 + d); }
int pool_stride(const uint d) { return op_param(1 + DIMS + d); }
int pool_padding(const uint d) { return op_param(1 + 2 * DIMS + d); }

// The positions [begin, end) of n that window o covers.
void pool_span(const uint d, const uint o, const uint n, out int begin, out int end) {
    const int first = int(o) * pool_stride(d) - pool_padding(d);
    begin = max(first, 0);
    end = min(first + pool_size(d), int(n));
}

#endif
