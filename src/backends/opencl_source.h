// The kernels of the OpenCL backend, as text that the driver compiles. Tensors have channels last, as elsewhere in Sluice; weights are the
// same panels, 16 outputs side by side. One work-item makes 16 outputs of a pixel (convolutions, dense layers), one output (depthwise,
// pools, elementwise) or one row (softmax). OpenCL C 1.2; sums run over taps and then channels, one chain an output.
#pragma once

namespace sluice::backends {

inline constexpr const char* kOpenClSource = R"CL(
/* The numbers of core/activation.h's Function. */
float activate(float x, int function, float a, float b) {
  switch (function) {
    case 1: return fmax(x, 0.0f);
    case 2: return fmin(fmax(x, a), b);
    case 3: return x < 0.0f ? a * x : x;
    case 4: return 1.0f / (1.0f + exp(-x));
    case 5: return fmax(0.0f, fmin(1.0f, a * x + b));
    case 6: return x * fmax(0.0f, fmin(1.0f, x / 6.0f + 0.5f));
    case 7: return x / (1.0f + exp(-x));
    case 8: return tanh(x);
    case 9: return exp(x);
    case 10: return sqrt(x);
    case 11: return erf(x);
    case 12: return x * 0.5f * (1.0f + erf(x * 0.70710678f));
    case 13: return -x;
    case 14: return fabs(x);
    case 15: return log(x);
    case 16: return 1.0f / x;
    case 17: return x < 0.0f ? a * expm1(x) : x;
    case 18: return fmax(x, 0.0f) + log1p(exp(-fabs(x)));
    case 19: return floor(x);
    case 20: return ceil(x);
    case 21: return 0.5f * x * (1.0f + tanh(0.79788456f * (x + 0.044715f * x * x * x)));
    default: return x;
  }
}

/* extents: in_h in_w in_c out_h out_w out_c kernel_h kernel_w; steps: stride_h stride_w dilation_h dilation_w pad_top pad_left - - */
__kernel void convolution(__global const float* x, __global const float* weights, __global const float* bias,
                          __global const float* residual, __global float* y, int8 extents, int8 steps, int4 epilogue, float2 bounds) {
  const int panel = get_global_id(0), ox = get_global_id(1), row = get_global_id(2);
  const int in_h = extents.s0, in_w = extents.s1, in_c = extents.s2, out_h = extents.s3, out_w = extents.s4, out_c = extents.s5;
  const int image = row / out_h, oy = row % out_h;
  __global const float* w = weights + (size_t)panel * extents.s6 * extents.s7 * in_c * 16;
  float16 sum = (float16)(0.0f);
  for (int ky = 0; ky < extents.s6; ++ky) {
    const int iy = oy * steps.s0 - steps.s4 + ky * steps.s2;
    for (int kx = 0; kx < extents.s7; ++kx, w += (size_t)in_c * 16) {
      const int ix = ox * steps.s1 - steps.s5 + kx * steps.s3;
      if (iy < 0 || iy >= in_h || ix < 0 || ix >= in_w) continue;
      __global const float* pixel = x + (((size_t)image * in_h + iy) * in_w + ix) * in_c;
      for (int c = 0; c < in_c; ++c) sum = fma((float16)(pixel[c]), vload16(c, w), sum);
    }
  }
  float lanes[16];
  vstore16(sum, 0, lanes);
  const size_t at = ((size_t)row * out_w + ox) * out_c;
  for (int lane = 0; lane < 16; ++lane) {
    const int n = panel * 16 + lane;
    if (n >= out_c) break;
    float value = lanes[lane];
    if (epilogue.s0) value += bias[n];
    if (epilogue.s1) value += residual[at + n];
    y[at + n] = activate(value, epilogue.s2, bounds.s0, bounds.s1);
  }
}

__kernel void depthwise(__global const float* x, __global const float* weights, __global const float* bias,
                        __global const float* residual, __global float* y, int8 extents, int8 steps, int4 epilogue, float2 bounds) {
  const int n = get_global_id(0), ox = get_global_id(1), row = get_global_id(2);
  const int in_h = extents.s0, in_w = extents.s1, in_c = extents.s2, out_h = extents.s3, out_w = extents.s4;
  const int image = row / out_h, oy = row % out_h, taps = extents.s6 * extents.s7;
  __global const float* w = weights + (size_t)(n / 16) * taps * 16 + n % 16;
  float sum = 0.0f;
  for (int ky = 0; ky < extents.s6; ++ky) {
    const int iy = oy * steps.s0 - steps.s4 + ky * steps.s2;
    for (int kx = 0; kx < extents.s7; ++kx, w += 16) {
      const int ix = ox * steps.s1 - steps.s5 + kx * steps.s3;
      if (iy < 0 || iy >= in_h || ix < 0 || ix >= in_w) continue;
      sum = fma(x[(((size_t)image * in_h + iy) * in_w + ix) * in_c + n], *w, sum);
    }
  }
  const size_t at = ((size_t)row * out_w + ox) * in_c + n;
  if (epilogue.s0) sum += bias[n];
  if (epilogue.s1) sum += residual[at];
  y[at] = activate(sum, epilogue.s2, bounds.s0, bounds.s1);
}

/* epilogue: - - function kind (0 maximum, 1 mean of the taps inside the image, 2 mean of those inside the padded one);
   steps.s6, steps.s7: padding below and to the right */
__kernel void pool(__global const float* x, __global float* y, int8 extents, int8 steps, int4 epilogue, float2 bounds) {
  const int n = get_global_id(0), ox = get_global_id(1), row = get_global_id(2);
  const int in_h = extents.s0, in_w = extents.s1, in_c = extents.s2, out_h = extents.s3, out_w = extents.s4;
  const int image = row / out_h, oy = row % out_h;
  float best = -INFINITY, sum = 0.0f;
  int inside = 0, padded = 0;
  for (int ky = 0; ky < extents.s6; ++ky) {
    const int iy = oy * steps.s0 - steps.s4 + ky * steps.s2;
    for (int kx = 0; kx < extents.s7; ++kx) {
      const int ix = ox * steps.s1 - steps.s5 + kx * steps.s3;
      if (iy < in_h + steps.s6 && ix < in_w + steps.s7) ++padded;
      if (iy < 0 || iy >= in_h || ix < 0 || ix >= in_w) continue;
      const float value = x[(((size_t)image * in_h + iy) * in_w + ix) * in_c + n];
      best = value > best || isnan(value) ? value : best;
      sum += value;
      ++inside;
    }
  }
  const int divisor = epilogue.s3 == 2 ? padded : inside;
  const float value = epilogue.s3 == 0 ? best : sum / (float)max(divisor, 1);
  y[((size_t)row * out_w + ox) * in_c + n] = activate(value, epilogue.s2, bounds.s0, bounds.s1);
}

__kernel void unary(__global const float* x, __global float* y, int4 epilogue, float2 bounds) {
  const size_t i = get_global_id(0);
  y[i] = activate(x[i], epilogue.s2, bounds.s0, bounds.s1);
}

/* The numbers of core/activation.h's BinaryFunction. Strides are 0 along an axis that is repeated. */
__kernel void binary(__global const float* a, __global const float* b, __global float* y, int8 extents, int8 strides_a, int8 strides_b,
                     int4 epilogue, float2 bounds) {
  const size_t i = get_global_id(0);
  int extent[8], sa[8], sb[8];
  vstore8(extents, 0, extent);
  vstore8(strides_a, 0, sa);
  vstore8(strides_b, 0, sb);
  size_t rest = i, at_a = 0, at_b = 0;
  for (int axis = 7; axis >= 0; --axis) {
    const size_t index = rest % extent[axis];
    rest /= extent[axis];
    at_a += index * sa[axis];
    at_b += index * sb[axis];
  }
  const float p = a[at_a], q = b[at_b];
  float value;
  switch (epilogue.s3) {
    case 0: value = p + q; break;
    case 1: value = p - q; break;
    case 2: value = p * q; break;
    case 3: value = p / q; break;
    case 4: value = p < 0.0f ? p * q : p; break;
    case 5: value = p > q || isnan(p) ? p : q; break;
    case 6: value = p < q || isnan(p) ? p : q; break;
    default: value = pow(p, q); break;
  }
  y[i] = activate(value, epilogue.s2, bounds.s0, bounds.s1);
}

/* epilogue.s3: the logarithm of it */
__kernel void softmax(__global const float* x, __global float* y, int length, int4 epilogue) {
  __global const float* from = x + get_global_id(0) * (size_t)length;
  __global float* to = y + get_global_id(0) * (size_t)length;
  float most = from[0], sum = 0.0f;
  for (int i = 1; i < length; ++i) most = fmax(most, from[i]);
  for (int i = 0; i < length; ++i) sum += exp(from[i] - most);
  for (int i = 0; i < length; ++i) to[i] = epilogue.s3 ? from[i] - most - log(sum) : exp(from[i] - most) / sum;
}
)CL";

}  // namespace sluice::backends
