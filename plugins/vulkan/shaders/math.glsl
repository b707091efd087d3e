// SPDX-License-Identifier: MIT
// Elementary functions good to a few units in the last place on every driver: what GLSL promises
// for its own is far less. `precise` keeps compilers from simplifying away what rounds. The
// polynomials of exp, log, tanh, sine and cosine are those of S. Moshier's Cephes library.
#ifndef MATH_GLSL
#define MATH_GLSL

#define FLT_INFINITY uintBitsToFloat(0x7f800000u)
#define FLT_NAN uintBitsToFloat(0x7fc00000u)

bool is_nan(const float x) { return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u; }

// y times 2^n for -150 <= n <= 128, in two steps: for subnormal and for the largest results.
float scale_by_power(const float y, const int n) {
    const int low = n >> 1;
    return y * uintBitsToFloat(uint(low + 127) << 23) * uintBitsToFloat(uint(n - low + 127) << 23);
}

// e^x by 2^n e^r with |r| <= log(2) / 2. NaN stays NaN, and below -104 it is 0.
float exp_accurate(const float x) {
    const float limited = x < -104.0 ? -104.0 : x > 89.0 ? 89.0 : x;
    const float n = floor(limited * 1.44269504 + 0.5);
    const float r = (limited - n * 0.693359375) + n * 2.12194440e-4; // log 2 in two parts
    float p = 1.9875691500e-4;
    p = p * r + 1.3981999507e-3;
    p = p * r + 8.3334519073e-3;
    p = p * r + 4.1665795894e-2;
    p = p * r + 1.6666665459e-1;
    p = p * r + 5.0000001201e-1;
    const float y = scale_by_power((p * r) * r + r + 1.0, int(n));
    return is_nan(x) ? x : x < -104.0 ? 0.0 : y;
}

// e^x - 1 without cancellation.
float expm1_accurate(const float x) {
    if (abs(x) > 0.5) return exp_accurate(x) - 1.0;
    float p = 2.4801587e-5;
    p = p * x + 1.9841270e-4;
    p = p * x + 1.3888889e-3;
    p = p * x + 8.3333333e-3;
    p = p * x + 4.1666667e-2;
    p = p * x + 1.6666667e-1;
    p = p * x + 0.5;
    return p * x * x + x;
}

// Natural logarithm: exponent and mantissa by bits, the latter in [sqrt(1/2), sqrt(2)).
// -infinity for 0, NaN for negative numbers.
float log_accurate(const float x) {
    const uint bits = floatBitsToUint(x);
    if (bits == 0u || bits == 0x80000000u) return -FLT_INFINITY;
    if (bits > 0x80000000u) return FLT_NAN;
    if (bits >= 0x7f800000u) return x;
    const bool tiny = bits < 0x00800000u;
    const uint normal = tiny ? floatBitsToUint(float(bits)) : bits;
    // The mantissa from sqrt(1/2) on.
    const uint shifted = normal + (0x3f800000u - 0x3f3504f3u);
    const float e = float(int(shifted >> 23) - 127 - (tiny ? 149 : 0));
    const float z = uintBitsToFloat((shifted & 0x007fffffu) + 0x3f3504f3u) - 1.0;
    float p = 7.0376836292e-2;
    p = p * z - 1.1514610310e-1;
    p = p * z + 1.1676998740e-1;
    p = p * z - 1.2420140846e-1;
    p = p * z + 1.4249322787e-1;
    p = p * z - 1.6668057665e-1;
    p = p * z + 2.0000714765e-1;
    p = p * z - 2.4999993993e-1;
    p = p * z + 3.3333331174e-1;
    const float tail = p * z * z * z - 2.12194440e-4 * e - 0.5 * z * z;
    return z + tail + 0.693359375 * e;
}

// log(1 + x) for x > -1: what rounding 1 + x loses is made good by the quotient.
float log1p_accurate(const float x) {
    precise float u = 1.0 + x;
    precise float d = u - 1.0;
    if (d == 0.0) return x;
    return log_accurate(u) * (x / d);
}

// By a polynomial near 0, where 1 - 2 / (e^2x + 1) would cancel.
float tanh_accurate(const float x) {
    const float z = x * x;
    float p = -5.70498872745e-3;
    p = p * z + 2.06390887954e-2;
    p = p * z - 5.37397155531e-2;
    p = p * z + 1.33314422036e-1;
    p = p * z - 3.33332819422e-1;
    const float large = 1.0 - 2.0 / (exp_accurate(2.0 * abs(x)) + 1.0);
    return abs(x) < 0.625 ? p * z * x + x : x < 0.0 ? -large : large;
}

// 1 - erf(x), relative error below 2e-7 near 0 and as good as exp further away: Chebyshev's fit of
// Press et al., Numerical Recipes, chapter 6.2.
float erfc_accurate(const float x) {
    const float z = abs(x);
    const float t = 1.0 / (1.0 + 0.5 * z);
    float p = 0.17087277;
    p = p * t - 0.82215223;
    p = p * t + 1.48851587;
    p = p * t - 1.13520398;
    p = p * t + 0.27886807;
    p = p * t - 0.18628806;
    p = p * t + 0.09678418;
    p = p * t + 0.37409196;
    p = p * t + 1.00002368;
    p = p * t - 1.26551223;
    const float y = t * exp_accurate(p - z * z);
    return x < 0.0 ? 2.0 - y : y;
}

float sigmoid_accurate(const float x) { return 1.0 / (1.0 + exp_accurate(-x)); }
float silu_accurate(const float x) { return x / (1.0 + exp_accurate(-x)); }
// A factor that GELU multiplies by 0 where it is low: minus infinity would make a NaN of that.
float finite_below(const float x) { return x < -1e30 ? -1e30 : x; }
float gelu_accurate(const float x) {
    const float u = 0.79788456080286535588 * x * (1.0 + 0.044715 * x * x);
    return finite_below(x) / (1.0 + exp_accurate(-2.0 * u));
}
float gelu_quick_accurate(const float x) { return x / (1.0 + exp_accurate(-1.702 * x)); }
float gelu_erf_accurate(const float x) {
    return 0.5 * finite_below(x) * erfc_accurate(-0.70710678118654752440 * x);
}

// --- sine and cosine -----------------------------------------------------------------------------

// Cosine and sine of r + quarter * pi / 2, |r| <= pi / 4.
vec2 quarter_turns(const float r, const uint quarter) {
    const float z = r * r;
    const float s = ((-1.9515295891e-4 * z + 8.3321608736e-3) * z - 1.6666654611e-1) * z * r + r;
    const float c = ((2.443315711809948e-5 * z - 1.388731625493765e-3) * z + 4.166664568298827e-2) *
                        z * z - 0.5 * z + 1.0;
    const vec2 turned = (quarter & 1u) != 0u ? vec2(-s, c) : vec2(c, s);
    return (quarter & 2u) != 0u ? -turned : turned;
}

// Cosine and sine of a number of whole turns, from its fraction.
vec2 cos_sin_turns(const float turns) {
    const float q = floor(turns * 4.0 + 0.5);
    return quarter_turns((turns - q * 0.25) * 6.28318530717958647693, uint(int(q)));
}

// 32 bits of 2 / pi from `bit` behind the point on; bit >= -13.
uint two_over_pi(const int bit) {
    const uint words[8] = uint[8](0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u,
                                  0xdb629599u, 0x3c439041u, 0xfe5163abu);
    const uint at = uint(bit + 32);
    const uint word = at >> 5, shift = at & 31u;
    const uint low = word < 7u ? words[word + 1u] : 0u;
    return shift == 0u ? words[word] : (words[word] << shift) | (low >> (32u - shift));
}

// Quarters of a turn in x >= 4096 and the rest: exact products of the mantissa with those bits of
// 2 / pi that matter.
float reduce_large(const float x, out uint quarter) {
    const uint bits = floatBitsToUint(x);
    const uint mantissa = (bits & 0x007fffffu) | 0x00800000u;
    const int from = int(bits >> 23) - 150 - 2;
    uint high, mid, low, carry, unused;
    umulExtended(mantissa, two_over_pi(from + 64), low, unused);
    umulExtended(mantissa, two_over_pi(from + 32), carry, mid);
    mid = uaddCarry(mid, low, low);
    high = mantissa * two_over_pi(from) + carry + low;
    // The two highest bits count quarters; round to the nearest one.
    quarter = ((high >> 29) + 1u) >> 1;
    const int fraction = int(high << 2 | mid >> 30); // of a quarter, signed
    return float(fraction) * (1.57079632679489661923 / 4294967296.0);
}

// Cosine and sine of any float. Small arguments are reduced by pi/2 in three parts (Cody and
// Waite), large ones exactly (Payne and Hanek).
vec2 cos_sin(const float x) {
    const float a = abs(x);
    if (!(a < FLT_INFINITY)) return vec2(FLT_NAN);
    uint quarter;
    float r;
    if (a >= 4096.0) {
        r = reduce_large(a, quarter);
    } else {
        const float n = floor(a * 0.63661977236758134308 + 0.5);
        precise float rest = a - n * 1.5703125; // pi / 2 in three parts
        rest = rest - n * 4.837512969970703125e-4;
        rest = rest - n * 7.54978995489188216e-8;
        r = rest;
        quarter = uint(n);
    }
    const vec2 y = quarter_turns(r, quarter);
    return x < 0.0 ? vec2(y.x, -y.y) : y;
}

#endif
