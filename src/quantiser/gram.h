// What a layer's inputs have in common: for each output, products of the values that it sums, two by two, added up over the data.
//
//     rows x of the input (windows of a convolution, lines of a dense layer)  -->  products = mean of x xT, means = mean of x
//
// The squared error of changed weights d over that data is then d products dT, which is all that shrink.h asks. Of each tensor a few
// hundred rows are taken, evenly spread: what counts is that there are many more of them than values in a row.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <span>
#include <vector>

#include "sluice/core/shape.h"
#include "src/quantiser/units.h"

namespace sluice::quantiser {

/// Means over all rows that were seen.
struct Statistics {
  Eigen::MatrixXf products;  // in the order in which the weight of an output lies, [channels][taps]; empty: nothing was seen
  Eigen::VectorXf means;
};

class Gram {
 public:
  /// Takes a layer of one group; `weight` is its shape.
  Gram(const Editor& editor, const Unit& unit, const Shape& weight);

  /// Values that an output sums.
  std::int64_t length() const noexcept { return channels_ * taps(); }
  void show(const Shape& input);
  /// Tensors come whole, in order, piece by piece.
  void add(std::int64_t first, std::span<const float> values);
  Statistics take();

 private:
  struct Axis {
    std::int64_t kernel = 1, stride = 1, pad = 0, dilation = 1, in = 1, out = 1;
  };

  std::int64_t taps() const noexcept { return axes_[0].kernel * axes_[1].kernel; }
  void add_tensor();
  void fill_window(std::int64_t image, std::int64_t pixel, Eigen::Ref<Eigen::VectorXf> row) const;

  bool dense_ = false;
  std::int64_t channels_ = 1;
  Axis axes_[2];  // rows and columns of an image
  std::vector<float> tensor_;
  Eigen::MatrixXf products_;
  Eigen::VectorXd sums_;
  std::int64_t rows_ = 0;
};

}  // namespace sluice::quantiser
