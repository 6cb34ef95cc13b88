// Small ONNX graphs of bytes, in the styles of those who make them: QuantizeLinear -> DequantizeLinear round everything, weights of floats
// or of bytes, one scale or one a channel, unsigned and signed.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "tests/importer/onnx_builder.h"

namespace sluice::test {

/// One scale of bytes.
struct Linear {
  float scale = 0.02f;
  int zero = 128;
  bool is_signed = false;
};

class QdqBuilder : public OnnxBuilder {
 public:
  explicit QdqBuilder(int opset = 13) : OnnxBuilder(opset) {}

  /// `x` rounded to bytes: QuantizeLinear alone.
  std::string quantised(const std::string& x, const Linear& q) {
    const std::string name = x + "_q" + std::to_string(made_++);
    constants(name, q);
    node("QuantizeLinear", {x, name + "_scale", name + "_zero"}, {name});
    return name;
  }
  std::string dequantised(const std::string& bytes, const Linear& q) {
    const std::string name = bytes + "_real" + std::to_string(made_++);
    constants(name, q);
    node("DequantizeLinear", {bytes, name + "_scale", name + "_zero"}, {name});
    return name;
  }
  std::string pair(const std::string& x, const Linear& q = {}) { return dequantised(quantised(x, q), q); }

  /// A weight of bytes behind DequantizeLinear, with a scale for each place of `axis`, or one where it is -1.
  std::string byte_weight(const std::string& name, const Ints& dims, int axis, bool is_signed = true, int zero = 0) {
    const std::int64_t count = count_of(dims), scales = axis < 0 ? 1 : dims[static_cast<std::size_t>(axis)];
    std::string bytes, zeros(static_cast<std::size_t>(scales), static_cast<char>(zero));
    for (std::int64_t i = 0; i < count; ++i) bytes.push_back(static_cast<char>((i * 37) % 201 - (is_signed ? 100 : 0)));
    const int type = is_signed ? 3 : 2;
    initializer(raw_tensor(name + "_bytes", dims, type, bytes));
    const Ints shape = axis < 0 ? Ints{} : Ints{scales};
    initializer(tensor(name + "_scale", shape, scales_of(scales))).initializer(raw_tensor(name + "_zero", shape, type, zeros));
    node("DequantizeLinear", {name + "_bytes", name + "_scale", name + "_zero"}, {name},
         {attribute("axis", std::int64_t{std::max(axis, 0)})});
    return name;
  }
  /// A weight of floats behind QuantizeLinear and DequantizeLinear, with a scale for each of its first places.
  std::string float_weight(const std::string& name, const Ints& dims) {
    weight(name + "_floats", dims, 0.013f);
    const std::string zeros(static_cast<std::size_t>(dims[0]), '\0');
    initializer(tensor(name + "_scale", {dims[0]}, scales_of(dims[0]))).initializer(raw_tensor(name + "_zero", {dims[0]}, 3, zeros));
    const std::vector<std::string> axis{attribute("axis", std::int64_t{0})};
    node("QuantizeLinear", {name + "_floats", name + "_scale", name + "_zero"}, {name + "_bytes"}, axis);
    node("DequantizeLinear", {name + "_bytes", name + "_scale", name + "_zero"}, {name}, axis);
    return name;
  }
  /// A bias of i32 behind DequantizeLinear, with the scales that the products of `input` and byte_weight(.., axis 0) have.
  std::string whole_bias(const std::string& name, std::int64_t count, const Linear& input) {
    Floats scales = scales_of(count);
    for (float& scale : scales) scale *= input.scale;
    std::vector<std::int32_t> values, zeros(static_cast<std::size_t>(count), 0);
    for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<std::int32_t>((i * 311) % 4001 - 2000));
    initializer(raw_tensor(name + "_whole", {count}, 6, bytes_of(values))).initializer(tensor(name + "_scale", {count}, scales));
    initializer(raw_tensor(name + "_zero", {count}, 6, bytes_of(zeros)));
    node("DequantizeLinear", {name + "_whole", name + "_scale", name + "_zero"}, {name}, {attribute("axis", std::int64_t{0})});
    return name;
  }

  static std::int64_t count_of(const Ints& dims) {
    std::int64_t count = 1;
    for (const std::int64_t dim : dims) count *= dim;
    return count;
  }

  /// Scale and zero point as initialisers `name`_scale and `name`_zero.
  void constants(const std::string& name, const Linear& q) {
    initializer(tensor(name + "_scale", {}, Floats{q.scale}));
    initializer(raw_tensor(name + "_zero", {}, q.is_signed ? 3 : 2, std::string(1, static_cast<char>(q.zero))));
  }

 private:
  static Floats scales_of(std::int64_t count) {
    Floats scales;
    for (std::int64_t i = 0; i < count; ++i) scales.push_back(0.004f + 0.0005f * static_cast<float>(i % 5));
    return scales;
  }
  static std::string_view bytes_of(const std::vector<std::int32_t>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(std::int32_t)};
  }

  int made_ = 0;
};

}  // namespace sluice::test
