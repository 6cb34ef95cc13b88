// Small networks that nobody thought of: layers, extents, windows and joins at random, in floats or in bytes (QuantizeLinear ->
// DequantizeLinear). The same seed gives the same network.
//
//     inputs -> values --grow()--> a layer on one or two of them -> one value more ... -> what nobody read are the outputs
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/importer/qdq_builder.h"

namespace sluice::test {

class RandomNet {
 public:
  explicit RandomNet(std::uint32_t seed);

  const OnnxBuilder& onnx() const { return onnx_; }
  /// Its layers, one a line: what a failure shows.
  const std::string& text() const { return text_; }

 private:
  struct Value {
    std::string name;
    Ints shape;
    float spread = 0.5f;  // about the deviation of its elements
    Linear linear{};      // of bytes
    bool is_read = false;
  };
  using Layer = bool (RandomNet::*)(std::size_t value);

  std::int64_t between(std::int64_t low, std::int64_t high) { return std::uniform_int_distribution<std::int64_t>(low, high)(random_); }
  bool chance(int percent) { return between(1, 100) <= percent; }
  template <class T>
  T one_of(const std::vector<T>& choices) {
    return choices[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(choices.size()) - 1))];
  }
  std::string fresh(const std::string& stem) { return stem + std::to_string(names_++); }

  void add_inputs();
  void grow();
  void add_outputs();

  /// A node and its output as a value; in bytes the value is rounded, by the scale of `like` where it is given.
  std::string node(const std::string& op, const std::vector<std::size_t>& values, const std::vector<std::string>& constants,
                   const std::vector<std::string>& attributes);
  void made(const std::string& raw, const Ints& shape, float spread, const Linear* like = nullptr);
  std::string weight(const Ints& dims, std::int64_t depth, bool by_output);
  std::string ints(const Ints& values);
  std::string floats(const Ints& dims, float low, float high);

  // Each says whether it is possible on the value.
  bool convolution(std::size_t value);
  bool transposed(std::size_t value);
  bool pool(std::size_t value);
  bool whole_pool(std::size_t value);
  bool dense(std::size_t value);
  bool flat_dense(std::size_t value);
  bool function(std::size_t value);
  bool two_values(std::size_t value);
  bool with_constant(std::size_t value);
  bool gate(std::size_t value);
  bool concatenation(std::size_t value);
  bool resize(std::size_t value);
  bool borders(std::size_t value);
  bool slice(std::size_t value);
  bool transpose(std::size_t value);
  bool reshape(std::size_t value);
  bool softmax(std::size_t value);
  bool norm(std::size_t value);
  bool product(std::size_t value);

  std::mt19937 random_;
  bool bytes_ = false;
  QdqBuilder onnx_{17};
  std::vector<Value> values_;
  std::string text_;
  int names_ = 0;
};

}  // namespace sluice::test
