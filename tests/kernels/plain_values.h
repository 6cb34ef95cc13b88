// Tensors of seeded values, and plain operators run on them.
#pragma once

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <random>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/kernels/kernel.h"
#include "sluice/kernels/plain.h"
#include "sluice/model/attributes.h"
#include "src/kernels/plain/elements.h"

namespace sluice::kernels::test {

using plain::set_integer;

inline constexpr std::int64_t kSizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 17, 67};
inline constexpr DType kTypes[] = {DType::kF32, DType::kU8, DType::kI16, DType::kI32, DType::kI64};

using Lists = std::vector<std::vector<std::int64_t>>;

struct Values {
  DType dtype = DType::kF32;
  Shape shape;
  std::vector<std::byte> bytes;

  template <class T>
  T at(std::int64_t i) const {
    T value;
    std::memcpy(&value, bytes.data() + i * std::int64_t{sizeof(T)}, sizeof(T));
    return value;
  }
  bool same(std::int64_t i, const Values& other, std::int64_t k) const {
    const std::size_t size = size_of(dtype);
    return std::memcmp(bytes.data() + static_cast<std::size_t>(i) * size, other.bytes.data() + static_cast<std::size_t>(k) * size, size) ==
           0;
  }
};

/// Small numbers with many equals; of floats also NaN, infinities and both zeros when `strange`.
inline Values random_values(DType dtype, const Shape& shape, unsigned seed, bool strange = false) {
  std::mt19937 random(seed);
  Values v{dtype, shape, std::vector<std::byte>(static_cast<std::size_t>(shape.element_count()) * size_of(dtype))};
  const PlainTensor tensor{dtype, shape, v.bytes.data()};
  constexpr float kStrange[] = {NAN, INFINITY, -INFINITY, 0.0f, -0.0f};
  for (std::int64_t i = 0; i < shape.element_count(); ++i) {
    const auto number = static_cast<std::int64_t>(random() % 21);
    if (dtype == DType::kF32)
      tensor.as<float>()[i] = strange && random() % 5 == 0 ? kStrange[random() % 5] : static_cast<float>(number - 10) * 0.37f;
    else if (dtype == DType::kBool)
      tensor.as<std::uint8_t>()[i] = random() % 2;
    else
      set_integer(tensor, i, number - (dtype == DType::kU8 ? 0 : 10));
  }
  return v;
}

/// Runs an operator on inputs, those without data left out; the result's bytes are `made`.
inline PlainTensor run_plain(std::string_view name, std::span<const PlainTensor> inputs, const Lists& arguments, int result,
                             std::vector<std::byte>& made) {
  model::PlainAttributes attributes;
  const PlainOperator& op = *find_plain(name);
  attributes.op = op.number;
  attributes.result = static_cast<std::uint8_t>(result);
  std::vector<PlainTensor> tensors;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].data == nullptr) continue;
    attributes.present |= 1u << i;
    tensors.push_back(inputs[i]);
  }
  for (const auto& list : arguments) {
    attributes.arguments.push_back(static_cast<std::int64_t>(list.size()));
    attributes.arguments.insert(attributes.arguments.end(), list.begin(), list.end());
  }
  const PlainNode node(op, form_of(attributes), tensors);
  PlainTensor out;
  REQUIRE(infer_plain(node, out) == nullptr);
  made.resize(static_cast<std::size_t>(out.count()) * size_of(out.dtype));
  const GenericKernel& kernel = generic_kernel(op);
  std::vector<std::byte> scratch(kernel.scratch == nullptr ? 0 : kernel.scratch(node));
  out.data = made.data();
  REQUIRE(kernel.run(node, out, scratch.data()) == nullptr);
  return out;
}

inline Values run_plain(std::string_view name, std::vector<Values> inputs, const Lists& arguments, int result = 0) {
  std::vector<PlainTensor> tensors;
  for (Values& input : inputs) tensors.push_back({input.dtype, input.shape, input.bytes.empty() ? nullptr : input.bytes.data()});
  std::vector<std::byte> made;
  const PlainTensor out = run_plain(name, tensors, arguments, result, made);
  return {out.dtype, out.shape, std::move(made)};
}

inline std::int64_t bits(double x) { return std::bit_cast<std::int64_t>(x); }

/// The places of element i of `shape`.
inline std::vector<std::int64_t> index_of(const Shape& shape, std::int64_t i) {
  std::vector<std::int64_t> index(static_cast<std::size_t>(shape.rank()));
  for (int axis = shape.rank() - 1; axis >= 0; i /= shape[axis--]) index[static_cast<std::size_t>(axis)] = i % shape[axis];
  return index;
}
inline std::int64_t offset_of(const Shape& shape, const std::vector<std::int64_t>& index) {
  std::int64_t offset = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) offset = offset * shape[axis] + index[static_cast<std::size_t>(axis)];
  return offset;
}

}  // namespace sluice::kernels::test
