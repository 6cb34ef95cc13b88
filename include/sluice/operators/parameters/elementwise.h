// Parameters of what works value by value, pixel by pixel or over a window, without panels.
#pragma once

#include <cstdint>

#include "sluice/core/activation.h"
#include "sluice/core/window.h"
#include "sluice/operators/parameters/parameters.h"

namespace sluice::operators {

struct UnaryParameters {
  Activation function;
};

struct BinaryParameters {  // numpy broadcasting of the two input shapes
  BinaryFunction function = BinaryFunction::kAdd;
  Activation activation;
};

struct AffineParameters {
  Activation activation;
};

struct PoolParameters {
  Window window;
  PoolingKind kind = PoolingKind::kMax;
  bool count_include_pad = false;  // averages only: divide by the taps inside the padded image, else by those inside the image
  Activation activation;
};

struct SoftmaxParameters {
  bool log = false;
};

struct LrnParameters {
  std::int64_t size = 5;
  float alpha = 1e-4f, beta = 0.75f, bias = 1.0f;
};

/// A product of two activations follows from their views.
struct MatMulParameters {};

static_assert(kIsParameters<UnaryParameters> && kIsParameters<BinaryParameters> && kIsParameters<AffineParameters>);
static_assert(kIsParameters<PoolParameters> && kIsParameters<SoftmaxParameters> && kIsParameters<LrnParameters>);
static_assert(kIsParameters<MatMulParameters>);

}  // namespace sluice::operators
