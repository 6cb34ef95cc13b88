// Changes of type, and copies that only repeat.
#include "src/kernels/plain/elements.h"
#include "src/kernels/plain/move.h"
#include "src/kernels/plain/table.h"

namespace sluice::kernels::plain {
namespace {

/// TensorProto.DataType; all reals run as f32.
bool type_of(std::int64_t onnx, DType& dtype) noexcept {
  constexpr DType kTypes[] = {DType::kF32, DType::kF32, DType::kU8,   DType::kI8,  DType::kU16, DType::kI16, DType::kI32,
                              DType::kI64, DType::kF32, DType::kBool, DType::kF32, DType::kF32, DType::kU32, DType::kU64};
  if (onnx < 1 || onnx > 13 || onnx == 8) return false;
  dtype = kTypes[onnx];
  return true;
}

PlainRefusal infer_cast(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  if (!type_of(node.integer(0), out.dtype)) return "the type it casts to is not supported";
  out.shape = node.in(0).shape;
  return nullptr;
}

/// Reals beyond what the integer holds become its ends; the conversion itself would be undefined.
template <class To, class From>
To converted(From value) noexcept {
  if constexpr (std::is_same_v<To, float> || !std::is_same_v<From, float>) {
    return static_cast<To>(value);
  } else {
    if (std::isnan(value)) return 0;
    if (value <= static_cast<float>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    if (value >= static_cast<float>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
    return static_cast<To>(value);
  }
}

PlainRefusal run_cast(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const PlainTensor& x = node.in(0);
  const std::int64_t count = x.count();
  with_type(x.dtype, [&](auto from_zero) {
    using From = decltype(from_zero);
    const auto* from = x.as<const From>();
    if (out.dtype == DType::kBool) {
      for (std::int64_t i = 0; i < count; ++i) out.as<std::uint8_t>()[i] = from[i] != From{};
      return;
    }
    with_type(out.dtype, [&](auto to_zero) {
      using To = decltype(to_zero);
      for (std::int64_t i = 0; i < count; ++i) out.as<To>()[i] = converted<To>(from[i]);
    });
  });
  return nullptr;
}

PlainRefusal infer_bit_cast(const PlainNode& node, PlainTensor& out) noexcept {
  if (PlainRefusal refusal = infer_cast(node, out)) return refusal;
  if (node.integer(0) == 10 || node.integer(0) == 11) return "supported are types of the run time: f32, integers and bool";
  return size_of(out.dtype) == size_of(node.in(0).dtype) ? nullptr : "the two types differ in size";
}

PlainRefusal run_bit_cast(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  copy_elements(out.data, node.in(0).data, out.count(), out.dtype);
  return nullptr;
}

// ---- Expand, Tile

/// Numpy's rule between the input's shape and the wanted one.
PlainRefusal infer_expand(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  Shape wanted;
  if (!make_shape(node.list(0), wanted) || !broadcast_to(node.in(0).shape, wanted, out.shape)) return kWrongShape;
  out.dtype = node.in(0).dtype;
  return nullptr;
}

PlainRefusal run_expand(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  move_strided(node, node.in(0), out, broadcast_strides(node.in(0).shape, out.shape));
  return nullptr;
}

PlainRefusal infer_tile(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  const Shape& in = node.in(0).shape;
  const auto repeats = node.list(0);
  if (static_cast<int>(repeats.size()) != in.rank()) return "there must be one repeat for each axis";
  Dims dims;
  for (int axis = 0; axis < in.rank(); ++axis) {
    std::int64_t extent = 0;
    const std::int64_t times = repeats[static_cast<std::size_t>(axis)];
    if (times < 0 || __builtin_mul_overflow(in[axis], times, &extent)) return kWrongArgument;
    dims.add(extent);
  }
  out.dtype = node.in(0).dtype;
  return make_shape(dims.span(), out.shape) ? nullptr : kWrongShape;
}

PlainRefusal run_tile(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const PlainTensor& x = node.in(0);
  const Extents from = strides_of(x.shape), to = strides_of(out.shape);
  movement::StridedCopy copy = copy_between(x, out);
  for (int axis = 0; axis < out.shape.rank(); ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    copy.add(node.list(0)[a], 0, x.shape[axis] * to[a] * copy.element);  // the same values again and again
    copy.add(x.shape[axis], from[a] * copy.element, to[a] * copy.element);
  }
  move(node, copy);
  return nullptr;
}

constexpr PlainOperator kOperators[] = {
    {150, "Cast", "to:i", infer_cast},
    {151, "BitCast", "to:i", infer_bit_cast},
    {152, "Expand", "shape:I@1", infer_expand, nullptr, 1, bound_stated},
    {153, "Tile", "repeats:I@1", infer_tile, nullptr, 1, bound_stated},
};

constexpr GenericKernel kKernels[] = {
    {"Cast", run_cast},
    {"BitCast", run_bit_cast},
    {"Expand", run_expand},
    {"Tile", run_tile},
};

}  // namespace

std::span<const PlainOperator> cast_operators() noexcept { return kOperators; }
std::span<const GenericKernel> cast_kernels() noexcept { return kKernels; }

}  // namespace sluice::kernels::plain
