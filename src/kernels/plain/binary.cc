// Two or three values in, one out, with numpy's broadcasting: arithmetic, comparisons, logic, choice.
#include <functional>

#include "src/kernels/elementwise/runs.h"
#include "src/kernels/generic/arithmetic.h"
#include "src/kernels/movement/broadcast.h"
#include "src/kernels/plain/elements.h"
#include "src/kernels/plain/table.h"

namespace sluice::kernels::plain {
namespace {

using RealFunction = float (*)(float x, float y);
// Of u64 these are the bits.
using IntegerFunction = std::int64_t (*)(std::int64_t x, std::int64_t y);
/// Runs of all operands' values (movement/broadcast.h): body(first element, count, values).
template <std::size_t N, class Body>
void each_run(const PlainNode& node, const PlainTensor& out, const Body& body) noexcept {
  std::array<movement::BroadcastOperand, N> operands;
  for (std::size_t n = 0; n < N; ++n) {
    const PlainTensor& x = node.in(static_cast<int>(n));
    operands[n] = {.data = x.data, .element = static_cast<std::int64_t>(size_of(x.dtype))};
    const Extents strides = broadcast_strides(x.shape, out.shape);
    std::copy(strides.begin(), strides.end(), operands[n].strides.begin());
  }
  Glances glances;
  movement::BroadcastRuns(out.shape, operands, active_isa())
      .run(0, out.count(), [&](std::int64_t first, std::int64_t count, const auto& values) {
        body(first, count, values);
        return !glances.over(count);
      });
}

/// The same function along a line: of elements that lie so many places apart.
template <class T>
struct Line {
  const T *x, *y;
  std::int64_t x_step, y_step;
  std::int64_t count;
};
template <class T>
using TruthsOf = void (*)(const Line<T>&, std::uint8_t* out);

/// Of each type that has one: then it is taken, a call a line and not an element.
struct Truths {
  TruthsOf<float> real = nullptr;
  TruthsOf<std::int64_t> wide = nullptr;
  TruthsOf<std::uint64_t> natural = nullptr;
  TruthsOf<std::int32_t> whole = nullptr;
  TruthsOf<std::uint8_t> byte = nullptr;  // of bool too
};

struct Functions {
  RealFunction real = nullptr;
  IntegerFunction integer = nullptr;
  IntegerFunction natural = nullptr;  // of u64, where it gives other bits than `integer`
  Truths truths = {};
};

template <class T>
PlainRefusal run_truths(TruthsOf<T> truths, const PlainNode& node, const PlainTensor& out) noexcept {
  each_run<2>(node, out, [&](std::int64_t first, std::int64_t count, const auto& values) {
    truths({values[0].template as<T>(), values[1].template as<T>(), values[0].step, values[1].step, count}, out.as<std::uint8_t>() + first);
  });
  return nullptr;
}

PlainRefusal run_functions(const Functions& f, const PlainNode& node, const PlainTensor& out) noexcept {
  const bool to_bool = out.dtype == DType::kBool;
  const PlainTensor &x = node.in(0), &y = node.in(1);
  const std::array<Extents, 2> strides{broadcast_strides(x.shape, out.shape), broadcast_strides(y.shape, out.shape)};
  const bool bytes = x.dtype == DType::kU8 || x.dtype == DType::kBool;
  if (f.truths.real != nullptr && is_f32(x.dtype)) return run_truths(f.truths.real, node, out);
  if (f.truths.wide != nullptr && x.dtype == DType::kI64) return run_truths(f.truths.wide, node, out);
  if (f.truths.natural != nullptr && x.dtype == DType::kU64) return run_truths(f.truths.natural, node, out);
  if (f.truths.whole != nullptr && x.dtype == DType::kI32) return run_truths(f.truths.whole, node, out);
  if (f.truths.byte != nullptr && bytes) return run_truths(f.truths.byte, node, out);
  if (is_f32(x.dtype)) {
    walk(out.shape, strides, [&](std::int64_t i, const auto& at) {
      const float z = f.real(x.as<const float>()[at[0]], y.as<const float>()[at[1]]);
      if (to_bool)
        out.as<std::uint8_t>()[i] = z != 0.0f;
      else
        out.as<float>()[i] = z;
    });
    return nullptr;
  }
  const IntegerFunction function = x.dtype == DType::kU64 && f.natural != nullptr ? f.natural : f.integer;
  with_type(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    walk(out.shape, strides, [&](std::int64_t i, const auto& at) {
      const std::int64_t z = function(static_cast<std::int64_t>(x.as<const T>()[at[0]]), static_cast<std::int64_t>(y.as<const T>()[at[1]]));
      if (to_bool)
        out.as<std::uint8_t>()[i] = z != 0;
      else
        out.as<T>()[i] = static_cast<T>(z);
    });
  });
  return nullptr;
}

/// A function of generic/arithmetic.h, in the type of the elements; along lines of floats that are long enough by vectors, with the same
/// bits.
template <class Function, BinaryFunction kind>
PlainRefusal run_arithmetic(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  constexpr std::int64_t kWorthVectors = 16;
  const elementwise::RunTable& runs = elementwise::run_table(active_isa());
  const auto along = [&](auto zero) {
    using T = decltype(zero);
    each_run<2>(node, out, [&](std::int64_t first, std::int64_t count, const auto& values) {
      if constexpr (std::is_same_v<T, float>) {
        if (count >= kWorthVectors)
          return runs.binary(kind, {values[0].template as<float>(), static_cast<int>(values[0].step)},
                             {values[1].template as<float>(), static_cast<int>(values[1].step)}, {}, out.as<float>() + first, count);
      }
      const T *a = values[0].template as<T>(), *b = values[1].template as<T>();
      for (std::int64_t i = 0; i < count; ++i) out.as<T>()[first + i] = Function()(a[i * values[0].step], b[i * values[1].step]);
    });
  };
  if (out.dtype == DType::kU64)
    along(std::uint64_t{});
  else
    with_type(out.dtype, along);
  return nullptr;
}

constexpr std::int64_t wrapped(std::uint64_t bits) noexcept { return static_cast<std::int64_t>(bits); }
constexpr std::uint64_t u(std::int64_t x) noexcept { return static_cast<std::uint64_t>(x); }

std::int64_t remainder_c(std::int64_t x, std::int64_t y) noexcept { return y == 0 || y == -1 ? 0 : x % y; }
std::int64_t remainder_python(std::int64_t x, std::int64_t y) noexcept {
  const std::int64_t rest = remainder_c(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

std::int64_t remainder_natural(std::int64_t x, std::int64_t y) noexcept { return y == 0 ? 0 : wrapped(u(x) % u(y)); }

/// std::fmod of a run. Where quotients are below 2^24, quotient, product and rest of doubles are exact: a loop without branches.
void remainders(const float* x, std::int64_t x_step, const float* y, std::int64_t y_step, float* out, std::int64_t n) noexcept {
  constexpr std::int64_t kTogether = 64;
  constexpr double kMostQuotient = 0x1p24;
  for (std::int64_t first = 0; first < n; first += kTogether, x += kTogether * x_step, y += kTogether * y_step) {
    const std::int64_t count = std::min(kTogether, n - first);
    int small = 1;
    for (std::int64_t i = 0; i < count; ++i) {
      const double a = x[i * x_step], b = y[i * y_step];
      const double quotient = a / b,
                   whole = static_cast<double>(static_cast<std::int32_t>(std::fabs(quotient) < kMostQuotient ? quotient : 0.0));
      small &= static_cast<int>(std::fabs(quotient) < kMostQuotient);
      out[first + i] = std::copysign(static_cast<float>(std::fabs(a - whole * b)), x[i * x_step]);
    }
    for (std::int64_t i = 0; small == 0 && i < count; ++i) out[first + i] = std::fmod(x[i * x_step], y[i * y_step]);
  }
}

constexpr Functions kModPython{nullptr, remainder_python, remainder_natural};
constexpr Functions kModC{nullptr, remainder_c, remainder_natural};

PlainRefusal run_mod_c(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  if (!is_f32(out.dtype)) return run_functions(kModC, node, out);
  each_run<2>(node, out, [&](std::int64_t first, std::int64_t count, const auto& values) {
    remainders(values[0].template as<float>(), values[0].step, values[1].template as<float>(), values[1].step, out.as<float>() + first,
               count);
  });
  return nullptr;
}

struct BitAnd {
  std::int64_t operator()(std::int64_t x, std::int64_t y) const noexcept { return x & y; }
};
struct BitOr {
  std::int64_t operator()(std::int64_t x, std::int64_t y) const noexcept { return x | y; }
};
struct BitXor {
  std::int64_t operator()(std::int64_t x, std::int64_t y) const noexcept { return x ^ y; }
};
struct ShiftLeft {
  std::int64_t operator()(std::int64_t x, std::int64_t y) const noexcept { return y < 0 || y > 63 ? 0 : wrapped(u(x) << y); }
};
struct ShiftRight {
  std::int64_t operator()(std::int64_t x, std::int64_t y) const noexcept { return y < 0 || y > 63 ? 0 : wrapped(u(x) >> y); }
};

/// A function of bits along lines. One value for a whole line is a loop of its own, so that what depends on it alone is decided once.
template <class Function>
PlainRefusal run_bits(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  with_type(out.dtype, [&](auto zero) {
    using T = decltype(zero);
    each_run<2>(node, out, [&](std::int64_t first, std::int64_t count, const auto& values) {
      const T *x = values[0].template as<T>(), *y = values[1].template as<T>();
      T* to = out.as<T>() + first;
      const auto one = [](T a, T b) { return static_cast<T>(Function{}(static_cast<std::int64_t>(a), static_cast<std::int64_t>(b))); };
      const auto along = [=](std::int64_t x_step, std::int64_t y_step) {
        for (std::int64_t i = 0; i < count; ++i) to[i] = one(x[i * x_step], y[i * y_step]);
      };
      const auto beside = [=](T second) {
        for (std::int64_t i = 0; i < count; ++i) to[i] = one(x[i], second);
      };
      if (values[0].step == 1 && values[1].step == 1) return along(1, 1);
      if (values[0].step == 1 && values[1].step == 0) return beside(*y);
      along(values[0].step, values[1].step);
    });
  });
  return nullptr;
}

/// The steps that are usual are constants, so that the loops become vectors. By value, because a byte that is written may be anybody's.
template <class Compare, class T>
void truths_of(const Line<T>& line, std::uint8_t* out) {
  const auto along = [line = line, out](std::int64_t x_step, std::int64_t y_step) {
    for (std::int64_t i = 0; i < line.count; ++i) out[i] = Compare{}(line.x[i * x_step], line.y[i * y_step]);
  };
  const auto beside = [x = line.x, count = line.count, out](T y) {
    for (std::int64_t i = 0; i < count; ++i) out[i] = Compare{}(x[i], y);
  };
  if (line.x_step == 1 && line.y_step == 1) return along(1, 1);
  if (line.x_step == 1 && line.y_step == 0) return beside(*line.y);
  along(line.x_step, line.y_step);
}

struct Both {
  bool operator()(std::uint8_t x, std::uint8_t y) const noexcept { return (x != 0) & (y != 0); }
};
struct Either {
  bool operator()(std::uint8_t x, std::uint8_t y) const noexcept { return (x | y) != 0; }
};
struct OneOnly {
  bool operator()(std::uint8_t x, std::uint8_t y) const noexcept { return (x != 0) != (y != 0); }
};
template <class Combine>
constexpr Functions logic() noexcept {
  return {nullptr, [](std::int64_t x, std::int64_t y) { return std::int64_t{Combine{}(x != 0, y != 0)}; }, nullptr,
          Truths{.byte = truths_of<Combine, std::uint8_t>}};
}

constexpr Functions kAnd = logic<Both>();
constexpr Functions kOr = logic<Either>();
constexpr Functions kXor = logic<OneOnly>();

template <class Compare>
constexpr Functions comparison() noexcept {
  return {[](float x, float y) { return Compare{}(x, y) ? 1.0f : 0.0f; },
          [](std::int64_t x, std::int64_t y) { return std::int64_t{Compare{}(x, y)}; },
          nullptr,
          {truths_of<Compare, float>, truths_of<Compare, std::int64_t>, truths_of<Compare, std::uint64_t>, truths_of<Compare, std::int32_t>,
           truths_of<Compare, std::uint8_t>}};
}

constexpr Functions kEqual = comparison<std::equal_to<>>();
constexpr Functions kLess = comparison<std::less<>>();
constexpr Functions kLessOrEqual = comparison<std::less_equal<>>();
constexpr Functions kGreater = comparison<std::greater<>>();
constexpr Functions kGreaterOrEqual = comparison<std::greater_equal<>>();

template <const Functions& functions>
PlainRefusal run(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  return run_functions(functions, node, out);
}

/// Elements of one size along lines; the first input is the condition.
template <class T>
void choose(const PlainNode& node, const PlainTensor& out) noexcept {
  each_run<3>(node, out, [&](std::int64_t first, std::int64_t count, const auto& values) {
    const auto* holds = values[0].template as<std::uint8_t>();
    const T *yes = values[1].template as<T>(), *no = values[2].template as<T>();
    const std::array steps{values[0].step, values[1].step, values[2].step};
    T* to = out.as<T>() + first;
    // Both are loaded, so that nothing is jumped over.
    const auto choose_by = [&](std::int64_t c_step, std::int64_t x_step, std::int64_t y_step) {
      for (std::int64_t i = 0; i < count; ++i) {
        const T a = yes[i * x_step], b = no[i * y_step];
        to[i] = holds[i * c_step] != 0 ? a : b;
      }
    };
    if (steps[0] == 1 && steps[1] == 1 && steps[2] == 1) return choose_by(1, 1, 1);
    if (steps[0] == 1 && steps[1] == 1 && steps[2] == 0) return choose_by(1, 1, 0);
    if (steps[0] == 1 && steps[1] == 0 && steps[2] == 1) return choose_by(1, 0, 1);
    choose_by(steps[0], steps[1], steps[2]);
  });
}

PlainRefusal run_where(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  switch (size_of(out.dtype)) {
    case 1:
      choose<std::uint8_t>(node, out);
      break;
    case 2:
      choose<std::uint16_t>(node, out);
      break;
    case 4:
      choose<std::uint32_t>(node, out);
      break;
    default:
      choose<std::uint64_t>(node, out);
  }
  return nullptr;
}

PlainRefusal run_clip(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  with_type(out.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* from = node.in(0).as<const T>();
    const T low = node.has(1) ? *node.in(1).as<const T>() : std::numeric_limits<T>::lowest();
    const T high = node.has(2) ? *node.in(2).as<const T>() : std::numeric_limits<T>::max();
    const std::int64_t count = out.count();
    for (std::int64_t i = 0; i < count; ++i) {
      // The upper bound has the last word when the two cross; infinities stay where there is no bound.
      T value = from[i];
      if (node.has(1)) value = generic::Max()(value, low);
      if (node.has(2)) value = generic::Min()(value, high);
      out.as<T>()[i] = value;
    }
  });
  return nullptr;
}

PlainRefusal run_pow(const PlainNode& node, const PlainTensor& out, std::byte* scratch) noexcept {
  const PlainTensor &x = node.in(0), &y = node.in(1);
  if (is_f32(x.dtype) && is_f32(y.dtype)) return run_arithmetic<generic::Pow, BinaryFunction::kPow>(node, out, scratch);
  walk(out.shape, std::array<Extents, 2>{broadcast_strides(x.shape, out.shape), broadcast_strides(y.shape, out.shape)},
       [&](std::int64_t i, const auto& at) {
         if (is_f32(out.dtype)) {
           out.as<float>()[i] = static_cast<float>(std::pow(real_at(x, at[0]), real_at(y, at[1])));
         } else if (is_f32(y.dtype)) {
           const double value = std::pow(real_at(x, at[0]), real_at(y, at[1]));
           set_integer(out, i, value > -9.2e18 && value < 9.2e18 ? static_cast<std::int64_t>(value) : 0);
         } else {
           set_integer(out, i, generic::Pow()(integer_at(x, at[0]), integer_at(y, at[1])));
         }
       });
  return nullptr;
}

constexpr GenericKernel kBinaryKernels[] = {
    {"Add", run_arithmetic<generic::Add, BinaryFunction::kAdd>},
    {"Sub", run_arithmetic<generic::Sub, BinaryFunction::kSub>},
    {"Mul", run_arithmetic<generic::Mul, BinaryFunction::kMul>},
    {"Div", run_arithmetic<generic::Div, BinaryFunction::kDiv>},
    {"Max2", run_arithmetic<generic::Max, BinaryFunction::kMax>},
    {"Min2", run_arithmetic<generic::Min, BinaryFunction::kMin>},
    {"ModPython", run<kModPython>},
    {"ModC", run_mod_c},
    {"PRelu", run_arithmetic<generic::Prelu, BinaryFunction::kPrelu>},
    {"BitwiseAnd", run_bits<BitAnd>},
    {"BitwiseOr", run_bits<BitOr>},
    {"BitwiseXor", run_bits<BitXor>},
    {"ShiftLeft", run_bits<ShiftLeft>},
    {"ShiftRight", run_bits<ShiftRight>},
    {"And", run<kAnd>},
    {"Or", run<kOr>},
    {"Xor", run<kXor>},
    {"Equal", run<kEqual>},
    {"Less", run<kLess>},
    {"LessOrEqual", run<kLessOrEqual>},
    {"Greater", run<kGreater>},
    {"GreaterOrEqual", run<kGreaterOrEqual>},
    {"Where", run_where},
    {"Clip", run_clip},
    {"Pow", run_pow},
};

}  // namespace

std::span<const GenericKernel> binary_kernels() noexcept { return kBinaryKernels; }

}  // namespace sluice::kernels::plain
