// One layer's weights with fewer values: some become zero, the others share a few.
//
//     columns in order:  w[., k] --becomes zero or a code times its output's scale--> error --taken by--> w[., k + 1 ...]
//
// What a column loses is made up for by those behind it, so that the outputs over the data change the least (optimal brain surgeon, one
// column at a time: the inverse of the inputs' products says how). Without data each weight is changed for itself.
#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/quantiser/gram.h"

namespace sluice::quantiser {

/// One line for each output.
using Lines = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

struct Shrinking {
  double prune = 0;         // so many of the weights become zero
  bool in_blocks = false;   // of 16 outputs and one input, which kernels skip; else one by one, which saves bytes alone
  std::size_t cluster = 0;  // so many codes, the zero among them; 0: the others stay reals
};

struct Shrunk {
  Lines weights;
  Eigen::Matrix<std::int8_t, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> codes;  // with `cluster`: weights = scales * codes
  std::vector<float> scales;                                                          // of outputs
  std::size_t values = 0;                                                             // different codes
  double zeros = 0;                                                                   // the share of weights that are zero
  double signal = 0, error = 0;                                                       // of the outputs over the data, without the bias
};

/// The most memory that compensation takes besides the weights: the products, twice as they are finished (Gram::take), once more in
/// doubles.
constexpr std::uint64_t bytes_of_compensation(std::int64_t length) noexcept {
  return static_cast<std::uint64_t>(length) * static_cast<std::uint64_t>(length) * (2 * sizeof(float) + sizeof(double));
}

/// A layer, to be shrunk in one way or another. Keeps references.
class Shrinker {
 public:
  /// `weights` are finite. Without products (Statistics) signal and error are those of the weights.
  Shrinker(const Lines& weights, const Statistics& inputs);

  Shrunk shrink(const Shrinking& how) const;

 private:
  const Lines& weights_;
  const Statistics& inputs_;
  const Eigen::MatrixXf factor_;  // of the inverse of the inputs' products
};

inline Shrunk shrink(const Lines& weights, const Statistics& inputs, const Shrinking& how) { return Shrinker(weights, inputs).shrink(how); }

/// `scales * codes`.
Lines weights_of(const Shrunk& shrunk);

}  // namespace sluice::quantiser
