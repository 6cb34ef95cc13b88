#include "src/importer/fold_arithmetic.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "src/importer/allowance.h"

namespace sluice::importer {
namespace {

using RealUnary = double (*)(double);
using RealBinary = double (*)(double, double);
using IntegerBinary = std::int64_t (*)(std::int64_t, std::int64_t);

struct FoldedUnary {
  std::string_view op_type;
  RealUnary real;
};
constexpr FoldedUnary kFoldedUnary[] = {
    {"Abs", [](double x) { return std::fabs(x); }},
    {"Ceil", [](double x) { return std::ceil(x); }},
    {"Erf", [](double x) { return std::erf(x); }},
    {"Exp", [](double x) { return std::exp(x); }},
    {"Floor", [](double x) { return std::floor(x); }},
    {"Log", [](double x) { return std::log(x); }},
    {"Neg", [](double x) { return -x; }},
    {"Not", [](double x) { return x == 0 ? 1.0 : 0.0; }},
    {"Reciprocal", [](double x) { return 1 / x; }},
    {"Relu", [](double x) { return x > 0 ? x : 0; }},
    {"Round", [](double x) { return std::nearbyint(x); }},
    {"Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
    {"Sign", [](double x) { return x > 0   ? 1.0
                                   : x < 0 ? -1.0
                                           : 0.0; }},
    {"Sqrt", [](double x) { return std::sqrt(x); }},
    {"Tanh", [](double x) { return std::tanh(x); }},
};

// Integers wrap like the two's complement of any machine; a zero divisor and INT64_MIN / -1 have a result here, too.
std::int64_t wrap(std::uint64_t bits) noexcept { return static_cast<std::int64_t>(bits); }
std::int64_t divide(std::int64_t a, std::int64_t b) noexcept { return b == 0 || (b == -1 && a == INT64_MIN) ? 0 : a / b; }
std::int64_t power(std::int64_t a, std::int64_t b) noexcept {
  return static_cast<std::int64_t>(std::clamp(std::pow(static_cast<double>(a), static_cast<double>(b)), -9.2e18, 9.2e18));
}
std::int64_t modulo(std::int64_t a, std::int64_t b) noexcept {
  if (b == 0 || b == -1) return 0;
  const std::int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

struct FoldedBinary {
  std::string_view op_type;
  RealBinary real;
  IntegerBinary integer;
  bool to_bool = false;
};
constexpr FoldedBinary kFoldedBinary[] = {
    {"Add", [](double a, double b) { return a + b; },
     [](std::int64_t a, std::int64_t b) { return wrap(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b)); }},
    {"Sub", [](double a, double b) { return a - b; },
     [](std::int64_t a, std::int64_t b) { return wrap(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b)); }},
    {"Mul", [](double a, double b) { return a * b; },
     [](std::int64_t a, std::int64_t b) { return wrap(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b)); }},
    {"Div", [](double a, double b) { return a / b; }, divide},
    {"Mod", [](double a, double b) { return std::fmod(a, b); }, modulo},
    {"Pow", [](double a, double b) { return std::pow(a, b); }, power},
    {"Max", [](double a, double b) { return a > b ? a : b; }, [](std::int64_t a, std::int64_t b) { return std::max(a, b); }},
    {"Min", [](double a, double b) { return a < b ? a : b; }, [](std::int64_t a, std::int64_t b) { return std::min(a, b); }},
    {"Sum", [](double a, double b) { return a + b; },
     [](std::int64_t a, std::int64_t b) { return wrap(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b)); }},
    {"Equal", [](double a, double b) { return a == b ? 1.0 : 0.0; }, [](std::int64_t a, std::int64_t b) { return std::int64_t{a == b}; },
     true},
    {"Less", [](double a, double b) { return a < b ? 1.0 : 0.0; }, [](std::int64_t a, std::int64_t b) { return std::int64_t{a < b}; },
     true},
    {"LessOrEqual", [](double a, double b) { return a <= b ? 1.0 : 0.0; },
     [](std::int64_t a, std::int64_t b) { return std::int64_t{a <= b}; }, true},
    {"Greater", [](double a, double b) { return a > b ? 1.0 : 0.0; }, [](std::int64_t a, std::int64_t b) { return std::int64_t{a > b}; },
     true},
    {"GreaterOrEqual", [](double a, double b) { return a >= b ? 1.0 : 0.0; },
     [](std::int64_t a, std::int64_t b) { return std::int64_t{a >= b}; }, true},
    {"And", [](double a, double b) { return a != 0 && b != 0 ? 1.0 : 0.0; },
     [](std::int64_t a, std::int64_t b) { return std::int64_t{a != 0 && b != 0}; }, true},
    {"Or", [](double a, double b) { return a != 0 || b != 0 ? 1.0 : 0.0; },
     [](std::int64_t a, std::int64_t b) { return std::int64_t{a != 0 || b != 0}; }, true},
};

template <class Entries>
auto find(const Entries& entries, std::string_view op_type) -> decltype(&entries[0]) {
  for (const auto& entry : entries)
    if (entry.op_type == op_type) return &entry;
  return nullptr;
}

bool is_reduction(std::string_view op) noexcept {
  return op == "ReduceProd" || op == "ReduceSum" || op == "ReduceMax" || op == "ReduceMin" || op == "ReduceMean";
}

/// A view operator on constants: Reshape and its like need no arithmetic, but may need a copy.
bool is_identity(std::string_view op) noexcept { return op == "Identity" || op == "Dropout"; }

/// The function of two u64, given and returned as bits.
std::int64_t of_naturals(const FoldedBinary& entry, std::int64_t left, std::int64_t right) noexcept {
  const auto a = static_cast<std::uint64_t>(left), b = static_cast<std::uint64_t>(right);
  const std::string_view op = entry.op_type;
  if (op == "Div") return wrap(b == 0 ? 0 : a / b);
  if (op == "Mod") return wrap(b == 0 ? 0 : a % b);
  if (op == "Max") return wrap(std::max(a, b));
  if (op == "Min") return wrap(std::min(a, b));
  if (op == "Less") return std::int64_t{a < b};
  if (op == "LessOrEqual") return std::int64_t{a <= b};
  if (op == "Greater") return std::int64_t{a > b};
  if (op == "GreaterOrEqual") return std::int64_t{a >= b};
  return entry.integer(left, right);
}

Constant binary(const NodeContext& c, const FoldedBinary& entry, const Constant& left, const Constant& right) {
  const Shape shape = broadcast_shape(left.shape, right.shape);
  const Constant a = broadcast(left, shape), b = broadcast(right, shape);
  count_made(static_cast<std::uint64_t>(shape.element_count()), sizeof(double));
  if (is_float(a.dtype) != is_float(b.dtype) && entry.op_type != "Pow") c.malformed("operands of different types");
  const DType result = entry.to_bool ? DType::kBool : a.dtype;
  if (is_float(a.dtype)) {
    const std::vector<double> x = reals(a), y = reals(b);
    std::vector<double> out(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) out[i] = entry.real(x[i], y[i]);
    return from_reals(out, shape, result);
  }
  const std::vector<std::int64_t> x = integers(a), y = integers(b);
  std::vector<std::int64_t> out(x.size());
  const bool naturals = a.dtype == DType::kU64;
  for (std::size_t i = 0; i < x.size(); ++i) out[i] = naturals ? of_naturals(entry, x[i], y[i]) : entry.integer(x[i], y[i]);
  return make_constant(shape, out, result);
}

Constant where(const NodeContext& c) {
  const Constant condition = c.require_constant(0, "the condition"), x = c.require_constant(1, "x"), y = c.require_constant(2, "y");
  const Shape shape = broadcast_shape(broadcast_shape(condition.shape, x.shape), y.shape);
  const std::vector<std::int64_t> holds = integers(broadcast(condition, shape));
  const std::vector<double> a = reals(broadcast(x, shape)), b = reals(broadcast(y, shape));
  count_made(holds.size(), sizeof(double));
  std::vector<double> out(holds.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = holds[i] != 0 ? a[i] : b[i];
  return from_reals(out, shape, x.dtype);
}

Constant non_zero(const Constant& x) {
  const std::vector<double> values = reals(x);
  const int rank = x.shape.rank();
  count_made(values.size(), 3 * sizeof(std::int64_t) * static_cast<std::uint64_t>(rank));  // lists that grow, and all of them once more
  std::vector<std::vector<std::int64_t>> places(static_cast<std::size_t>(rank));
  const auto strides = dense_strides(x.shape);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] == 0) continue;
    for (int axis = 0; axis < rank; ++axis)
      places[static_cast<std::size_t>(axis)].push_back(static_cast<std::int64_t>(i) / strides[static_cast<std::size_t>(axis)] %
                                                       x.shape[axis]);
  }
  std::vector<std::int64_t> all;
  for (const auto& axis : places) all.insert(all.end(), axis.begin(), axis.end());
  const auto count = rank == 0 ? 0 : static_cast<std::int64_t>(places[0].size());
  return make_constant(Shape{rank, count}, all);
}

Constant reduce(const NodeContext& c) {
  const Constant x = c.require_constant(0, "the input");
  const std::string_view op = c.node().op_type;
  std::vector<std::int64_t> listed = c.has_input(1) ? c.constant_integers(1, "the list of axes") : c.integers("axes");
  std::array<bool, Shape::kMaxRank> reduced{};
  for (const std::int64_t axis : listed) reduced[static_cast<std::size_t>(c.axis(axis, x.shape.rank()))] = true;
  if (listed.empty() && c.integer("noop_with_empty_axes", 0) != 0) return x;
  if (listed.empty()) reduced.fill(true);
  Shape kept = x.shape;
  std::vector<std::int64_t> squeezed;
  for (int axis = 0; axis < x.shape.rank(); ++axis) {
    if (reduced[static_cast<std::size_t>(axis)])
      kept[axis] = 1;
    else
      squeezed.push_back(x.shape[axis]);
  }
  auto to = dense_strides(kept);
  for (int axis = 0; axis < x.shape.rank(); ++axis)
    if (reduced[static_cast<std::size_t>(axis)]) to[static_cast<std::size_t>(axis)] = 0;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double start = op == "ReduceProd" ? 1 : op == "ReduceMax" ? -kInfinity : op == "ReduceMin" ? kInfinity : 0;
  count_made(static_cast<std::uint64_t>(kept.element_count()), sizeof(double));
  std::vector<double> out(static_cast<std::size_t>(kept.element_count()), start);
  const std::vector<double> values = reals(x);
  std::size_t i = 0;
  for_each_offset(x.shape, to, [&](std::int64_t offset) {
    double& sum = out[static_cast<std::size_t>(offset)];
    const double value = values[i++];
    sum = op == "ReduceProd"  ? sum * value
          : op == "ReduceMax" ? std::max(sum, value)
          : op == "ReduceMin" ? std::min(sum, value)
                              : sum + value;
  });
  if (op == "ReduceMean")
    for (double& sum : out) sum /= static_cast<double>(x.elements()) / static_cast<double>(out.size());
  return from_reals(out, c.integer("keepdims", 1) != 0 ? kept : *Shape::make(squeezed), x.dtype);
}

}  // namespace

Constant from_reals(std::span<const double> values, const Shape& shape, DType dtype) {
  count_made(values.size(), is_float(dtype) ? sizeof(float) : sizeof(std::int64_t));
  if (is_float(dtype)) {
    std::vector<float> narrowed;
    narrowed.reserve(values.size());
    for (const double value : values) narrowed.push_back(static_cast<float>(value));
    return make_constant(shape, narrowed);
  }
  std::vector<std::int64_t> whole;
  whole.reserve(values.size());
  for (const double value : values) {
    const bool fits = value > -9.2e18 && value < 9.2e18;
    whole.push_back(dtype == DType::kBool ? value != 0 : fits ? static_cast<std::int64_t>(value) : value < 0 ? INT64_MIN : INT64_MAX);
  }
  return make_constant(shape, whole, dtype);
}

Constant cast(const Constant& constant, DType to) {
  if (!is_float(constant.dtype) && !is_float(to) && to != DType::kBool) return make_constant(constant.shape, integers(constant), to);
  return from_reals(reals(constant), constant.shape, to);
}

Constant concatenated(std::span<const Constant> parts, int axis, const Shape& shape) {
  // A cast between reals is nothing here, so that parts may be reals of several types.
  const bool mixed = std::any_of(parts.begin(), parts.end(), [&](const Constant& part) { return part.dtype != parts[0].dtype; });
  const DType dtype = parts.empty() || mixed ? DType::kF32 : parts[0].dtype;
  const auto size = static_cast<std::int64_t>(size_of(dtype));
  count_made(static_cast<std::uint64_t>(shape.element_count()), static_cast<std::uint64_t>(size) + sizeof(std::int64_t));
  auto bytes = std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(shape.element_count() * size));
  const auto strides = dense_strides(shape);
  std::int64_t start = 0;
  for (const Constant& given : parts) {
    const Constant part = mixed ? cast(given, dtype) : given;
    // Walk the part and its place in the whole together, both row-major over the part's shape.
    std::vector<std::int64_t> from;
    from.reserve(static_cast<std::size_t>(part.elements()));
    for_each_offset(part.shape, part.strides, [&](std::int64_t offset) { from.push_back(offset); });
    std::size_t i = 0;
    for_each_offset(part.shape, strides, [&](std::int64_t offset) {
      std::memcpy(bytes->data() + (start + offset) * size, part.data + from[i++] * size, static_cast<std::size_t>(size));
    });
    start += part.shape[axis] * strides[static_cast<std::size_t>(axis)];
  }
  return make_view(dtype, shape, bytes->data(), bytes);
}

std::optional<std::int64_t> arithmetic_elements(const NodeContext& c) {
  const std::string_view op = c.node().op_type;
  const bool known = find(kFoldedUnary, op) != nullptr || find(kFoldedBinary, op) != nullptr || is_reduction(op) || is_identity(op) ||
                     op == "Where" || op == "Clip" || op == "NonZero";
  if (!known) return std::nullopt;
  if (is_identity(op)) return 0;
  Shape shape = c.input_shape(0);
  if (find(kFoldedBinary, op) != nullptr || op == "Where")
    for (std::size_t i = 1; i < c.input_count(); ++i) shape = broadcast_shape(shape, c.input_shape(i));
  std::int64_t elements = shape.element_count();
  for (std::size_t i = 0; i < c.input_count(); ++i)
    if (c.has_input(i)) elements = std::max(elements, c.input_shape(i).element_count());
  return elements;
}

Constant fold_arithmetic(const NodeContext& c) {
  const std::string_view op = c.node().op_type;
  const Constant x = c.require_constant(0, "the input");
  if (is_identity(op)) return x;
  if (is_reduction(op)) return reduce(c);
  if (op == "Where") return where(c);
  if (op == "NonZero") return non_zero(x);
  if (op == "Clip") {
    const bool inputs = c.opset() >= 11;
    const auto bound = [&](std::size_t i, std::string_view attribute, double otherwise) -> double {
      if (!inputs) return c.has(attribute) ? c.real(attribute, 0.0f) : otherwise;
      if (!c.has_input(i)) return otherwise;
      return uniform_value(c.require_constant(i, "a bound")).value_or(otherwise);
    };
    const double low = bound(1, "min", -std::numeric_limits<double>::infinity()),
                 high = bound(2, "max", std::numeric_limits<double>::infinity());
    std::vector<double> values = reals(x);
    for (double& value : values) value = std::min(std::max(value, low), high);
    return from_reals(values, x.shape, x.dtype);
  }
  if (const FoldedUnary* entry = find(kFoldedUnary, op)) {
    std::vector<double> values = reals(x);
    for (double& value : values) value = entry->real(value);
    return from_reals(values, x.shape, x.dtype);
  }
  const FoldedBinary* entry = find(kFoldedBinary, op);
  Constant result = x;
  for (std::size_t i = 1; i < c.input_count(); ++i) result = binary(c, *entry, result, c.require_constant(i, "every input"));
  return result;
}

}  // namespace sluice::importer
