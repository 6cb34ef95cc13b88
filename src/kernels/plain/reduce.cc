// Folds over axes: sums and their kin, places of extremes, running sums.
#include "src/kernels/plain/elements.h"
#include "src/kernels/plain/table.h"
#include "src/kernels/plain/vectors.h"

namespace sluice::kernels::plain {
namespace {

enum class Fold : std::uint8_t { kSum, kMean, kProd, kMax, kMin, kL1, kL2, kLogSum, kLogSumExp, kSumSquare };
constexpr Fold kFolds[] = {Fold::kSum, Fold::kMean, Fold::kProd,   Fold::kMax,       Fold::kMin,
                           Fold::kL1,  Fold::kL2,   Fold::kLogSum, Fold::kLogSumExp, Fold::kSumSquare};

Fold fold_of(const PlainNode& node) noexcept { return *static_cast<const Fold*>(node.op().detail); }

/// Bit `axis`: it is folded. Nothing listed: all, or none with noop_with_empty_axes.
bool folded_axes(const PlainNode& node, std::uint32_t& axes) noexcept {
  const int rank = node.in(0).shape.rank();
  axes = 0;
  if (node.list(0).empty()) {
    axes = node.integer(2) != 0 ? 0 : (1u << rank) - 1u;
    return true;
  }
  for (const std::int64_t listed : node.list(0)) {
    const int axis = axis_of(listed, rank);
    if (axis < 0) return false;
    axes |= 1u << axis;
  }
  return true;
}

/// The result with folded axes as 1.
Shape kept_shape(const Shape& in, std::uint32_t axes) noexcept {
  Shape kept = in;
  for (int axis = 0; axis < in.rank(); ++axis)
    if ((axes >> axis & 1u) != 0) kept[axis] = 1;
  return kept;
}

PlainRefusal infer(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  const PlainTensor& x = node.in(0);
  const bool order = fold_of(node) == Fold::kMax || fold_of(node) == Fold::kMin;
  if (!is_number(x.dtype) && !(order && x.dtype == DType::kBool)) return kWrongType;
  std::uint32_t axes = 0;
  if (!folded_axes(node, axes)) return kWrongAxis;
  Dims dims;
  for (int axis = 0; axis < x.shape.rank(); ++axis) {
    if ((axes >> axis & 1u) == 0)
      dims.add(x.shape[axis]);
    else if (node.integer(1) != 0)
      dims.add(1);
  }
  out.dtype = x.dtype;
  return make_shape(dims.span(), out.shape) ? nullptr : kWrongShape;
}

/// Axes that come at run time: each may be folded or not, but how many are listed is known.
PlainRefusal bound(const PlainNode& node, PlainTensor& out, std::uint8_t& axes) noexcept {
  if (!node.has(0)) return kMissingInput;
  const Shape& in = node.in(0).shape;
  out = {node.in(0).dtype, in};
  axes = static_cast<std::uint8_t>((1u << in.rank()) - 1u);
  if (node.integer(1) != 0) return nullptr;
  const auto listed = static_cast<int>(std::min<std::int64_t>(node.in(1).count(), in.rank()));
  Dims dims;
  for (int axis = 0; axis + listed < in.rank(); ++axis) {
    std::int64_t most = 0;
    for (int from = axis; from <= axis + listed; ++from) most = std::max(most, in[from]);
    dims.add(most);
  }
  axes = static_cast<std::uint8_t>((1u << dims.count) - 1u);
  return make_shape(dims.span(), out.shape) ? nullptr : kWrongShape;
}

/// Two doubles (or integers) for each result: the fold, and the maximum where one is subtracted first.
std::uint64_t scratch(const PlainNode& node) noexcept {
  if (node.has(0) && node.has(1) && !node.given(0))  // axes that come at run time
    return 2 * sizeof(double) * static_cast<std::uint64_t>(std::max<std::int64_t>(node.in(0).count(), 1));
  PlainTensor out;
  if (infer(node, out) != nullptr) return 0;
  return 2 * sizeof(double) * static_cast<std::uint64_t>(std::max<std::int64_t>(out.count(), 1));
}

template <class T>
T start_of(Fold fold, DType dtype) noexcept {
  constexpr bool real = std::is_same_v<T, double>;
  if (fold == Fold::kProd) return 1;
  const auto end = [&](bool low) -> T {
    if (real) return low ? -static_cast<T>(HUGE_VAL) : static_cast<T>(HUGE_VAL);
    if (dtype == DType::kBool) return low ? 0 : 1;
    return with_type(dtype, [&](auto zero) {
      using E = decltype(zero);
      return static_cast<T>(low ? std::numeric_limits<E>::lowest() : std::numeric_limits<E>::max());
    });
  };
  if (fold == Fold::kMax) return end(true);
  if (fold == Fold::kMin) return end(false);
  return 0;
}

template <class T>
T added(T a, T b) noexcept {
  if constexpr (std::is_same_v<T, double>)
    return a + b;
  else
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
template <class T>
T multiplied(T a, T b) noexcept {
  if constexpr (std::is_same_v<T, double>)
    return a * b;
  else
    return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

template <class T>
void accumulate(Fold fold, T value, T& sum) noexcept {
  switch (fold) {
    case Fold::kProd:
      sum = multiplied(sum, value);
      break;
    case Fold::kMax:
      sum = value > sum || value != value ? value : sum;
      break;
    case Fold::kMin:
      sum = value < sum || value != value ? value : sum;
      break;
    case Fold::kL1:
      sum = added(sum, value < 0 ? multiplied(value, T(-1)) : value);
      break;
    case Fold::kL2:
    case Fold::kSumSquare:
      sum = added(sum, multiplied(value, value));
      break;
    default:
      sum = added(sum, value);
  }
}

/// What is left to do with a sum of `terms` values; `highest` was subtracted before the exponentials.
double finished(Fold fold, double sum, double terms, double highest) noexcept {
  switch (fold) {
    case Fold::kMean:
      return sum / terms;
    case Fold::kL2:
      return std::sqrt(sum);
    case Fold::kLogSum:
      return std::log(sum);
    case Fold::kLogSumExp:
      return std::log(sum) + highest;
    default:
      return sum;
  }
}

/// Loads element i in the type that sums have.
template <class T>
T value_at(const PlainTensor& x, std::int64_t i) noexcept {
  if constexpr (std::is_same_v<T, double>)
    return x.as<const float>()[i];
  else
    return integer_at(x, i);
}

/// Rows whose values are folded at the same time: a sum waits for the one before, sums of several rows do not wait for each other.
constexpr std::int64_t kRowsTogether = 8;

/// Each row of `count` values into its sum.
template <Fold fold, class T, class E>
void fold_rows(const E* from, std::int64_t rows, std::int64_t count, T* sums) noexcept {
  for (; rows >= kRowsTogether; rows -= kRowsTogether, from += kRowsTogether * count, sums += kRowsTogether) {
    std::array<T, kRowsTogether> together;
    std::copy_n(sums, kRowsTogether, together.begin());
    for (std::int64_t i = 0; i < count; ++i)
      for (std::size_t r = 0; r < together.size(); ++r)
        accumulate(fold, static_cast<T>(from[static_cast<std::int64_t>(r) * count + i]), together[r]);
    std::copy_n(together.begin(), kRowsTogether, sums);
  }
  for (; rows > 0; --rows, from += count, ++sums) {
    T sum = *sums;
    for (std::int64_t i = 0; i < count; ++i) accumulate(fold, static_cast<T>(from[i]), sum);
    *sums = sum;
  }
}

/// Folds of reals that vectors.h has.
constexpr bool has_vectors(Fold fold) noexcept { return fold != Fold::kProd && fold != Fold::kLogSumExp; }

/// The fold of one line of values.
template <Fold fold>
double fold_line(const VectorTable& vectors, const float* x, std::int64_t n) noexcept {
  if constexpr (fold == Fold::kMax || fold == Fold::kMin) return vectors.extreme(fold == Fold::kMax, x, n);
  if constexpr (fold == Fold::kL1) return vectors.sum(Term::kMagnitude, x, n);
  if constexpr (fold == Fold::kL2 || fold == Fold::kSumSquare) return vectors.sum(Term::kSquare, x, n);
  return vectors.sum(Term::kValue, x, n);
}

/// Adds up what lies at the same place of the results, by lines along which either one result takes all values (sums: in the order of
/// vectors.h, then line after line) or each takes its own, in the order of the values.
template <Fold fold>
void fold_vectors(const PlainTensor& x, const Extents& strides, double* sums) noexcept {
  const VectorTable& vectors = vector_table(active_isa());
  constexpr bool kPlainSum = fold == Fold::kSum || fold == Fold::kMean || fold == Fold::kLogSum;
  walk_lines(x.shape, std::array<Extents, 1>{strides}, [&](std::int64_t i, std::int64_t count, const auto& at, const auto& steps) {
    const float* const from = x.as<const float>() + i;
    double* const to = sums + at[0];
    if (steps[0] == 0) {
      const double folded = fold_line<fold>(vectors, from, count);
      fold == Fold::kMax || fold == Fold::kMin ? accumulate(fold, folded, *to) : void(*to += folded);
    } else if (kPlainSum && steps[0] == 1) {
      vectors.add(from, to, count);
    } else {
      for (std::int64_t k = 0; k < count; ++k) accumulate(fold, static_cast<double>(from[k]), to[k * steps[0]]);
    }
  });
}

/// Its simple equivalent, for integers and whatever vectors.h does not have: in the order of the values, whatever the lines are.
template <Fold fold, class T, class E>
void fold_lines(const PlainTensor& x, const Extents& strides, T* sums) noexcept {
  const E* const from = x.as<const E>();
  std::int64_t line_rows = 0, line_count = 0;  // lines of one result that follow each other
  const auto flush = [&](std::int64_t end, std::int64_t result) {
    if (line_rows > 0) fold_rows<fold>(from + end - line_rows * line_count, line_rows, line_count, sums + result - line_rows);
    line_rows = 0;
  };
  std::int64_t last_result = -1, last_end = 0;
  walk_lines(x.shape, std::array<Extents, 1>{strides}, [&](std::int64_t i, std::int64_t count, const auto& at, const auto& steps) {
    if (steps[0] != 0) {
      for (std::int64_t k = 0; k < count; ++k) accumulate(fold, static_cast<T>(from[i + k]), sums[at[0] + k * steps[0]]);
      return;
    }
    if (at[0] != last_result + 1) flush(last_end, last_result + 1);
    line_count = count;
    ++line_rows;
    last_result = at[0];
    last_end = i + count;
    if (line_rows == kRowsTogether) flush(last_end, last_result + 1);
  });
  flush(last_end, last_result + 1);
}

template <class T, class E, std::size_t... kFold>
void fold_as(Fold fold, const PlainTensor& x, const Extents& strides, T* sums, std::index_sequence<kFold...>) noexcept {
  using Function = void (*)(const PlainTensor&, const Extents&, T*) noexcept;
  static constexpr Function kFunctions[] = {[](const PlainTensor& values, const Extents& steps, T* results) noexcept {
    if constexpr (std::is_same_v<T, double> && has_vectors(kFolds[kFold]))
      fold_vectors<kFolds[kFold]>(values, steps, results);
    else
      fold_lines<kFolds[kFold], T, E>(values, steps, results);
  }...};
  kFunctions[static_cast<std::size_t>(fold)](x, strides, sums);
}

template <class T>
void fold_all(Fold fold, const PlainTensor& x, const Extents& strides, T* sums) noexcept {
  with_type(x.dtype, [&](auto zero) {
    using E = decltype(zero);
    if constexpr (std::is_same_v<E, float> == std::is_same_v<T, double>)
      fold_as<T, E>(fold, x, strides, sums, std::make_index_sequence<std::size(kFolds)>());
  });
}

template <class T>
void run_as(const PlainNode& node, const PlainTensor& out, std::byte* scratch_bytes) noexcept {
  const PlainTensor& x = node.in(0);
  const Fold fold = fold_of(node);
  std::uint32_t axes = 0;
  folded_axes(node, axes);
  const Shape kept = kept_shape(x.shape, axes);
  const std::array<Extents, 1> strides{broadcast_strides(kept, x.shape)};
  const std::int64_t results = kept.element_count();
  T* sums = reinterpret_cast<T*>(scratch_bytes);
  T* highest = sums + std::max<std::int64_t>(results, 1);
  std::fill(sums, sums + results, start_of<T>(fold, x.dtype));
  std::fill(highest, highest + results, T(0));
  if (fold == Fold::kLogSumExp && std::is_same_v<T, double> && x.count() > 0) {
    std::fill(highest, highest + results, start_of<T>(Fold::kMax, x.dtype));
    walk(x.shape, strides, [&](std::int64_t i, const auto& at) { accumulate(Fold::kMax, value_at<T>(x, i), highest[at[0]]); });
    for (std::int64_t r = 0; r < results; ++r)
      if (!std::isfinite(static_cast<double>(highest[r]))) highest[r] = 0;
  }
  if (fold == Fold::kLogSumExp) {
    walk(x.shape, strides, [&](std::int64_t i, const auto& at) {
      const double shifted = static_cast<double>(value_at<T>(x, i)) - static_cast<double>(highest[at[0]]);
      accumulate(fold, static_cast<T>(std::exp(shifted)), sums[at[0]]);
    });
  } else {
    fold_all(fold, x, strides[0], sums);
  }
  const double terms = results == 0 ? 1.0 : static_cast<double>(x.count()) / static_cast<double>(results);
  for (std::int64_t r = 0; r < results; ++r) {
    if constexpr (std::is_same_v<T, double>) {
      out.as<float>()[r] = static_cast<float>(finished(fold, sums[r], terms, highest[r]));
    } else {
      const bool rounds = fold == Fold::kMean || fold == Fold::kL2 || fold == Fold::kLogSum || fold == Fold::kLogSumExp;
      set_integer(out, r, rounds ? whole(finished(fold, static_cast<double>(sums[r]), terms, 0)) : sums[r]);
    }
  }
}

PlainRefusal run(const PlainNode& node, const PlainTensor& out, std::byte* scratch_bytes) noexcept {
  if (is_f32(node.in(0).dtype))
    run_as<double>(node, out, scratch_bytes);
  else
    run_as<std::int64_t>(node, out, scratch_bytes);
  return nullptr;
}

constexpr PlainOperator line(std::uint16_t number, std::string_view name, Fold fold) noexcept {
  return {number,
          name,
          "axes:I@1 keepdims:i=1 noop_with_empty_axes:i=0",
          infer,
          run,
          scratch,
          &kFolds[static_cast<std::size_t>(fold)],
          1,
          bound,
          nullptr,
          true};
}

// ---- ArgMax, ArgMin

constexpr bool kLargest = true, kSmallest = false;

PlainRefusal infer_arg(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  const PlainTensor& x = node.in(0);
  if (!is_number(x.dtype)) return kWrongType;
  const int axis = axis_of(node.integer(0), x.shape.rank());
  if (axis < 0) return kWrongAxis;
  if (x.shape[axis] == 0) return "an input is empty";
  Dims dims;
  dims.add(x.shape, 0, axis);
  if (node.integer(1) != 0) dims.add(1);
  dims.add(x.shape, axis + 1, x.shape.rank());
  out.dtype = DType::kI64;
  return make_shape(dims.span(), out.shape) ? nullptr : kWrongShape;
}

/// Places whose extremes are looked for at the same time, so that values are read in the order in which they lie.
constexpr std::int64_t kPlacesTogether = 64;

/// Of each of `places` neighbours the number of the extreme along the axis: the first of equals, or the last. NaN is never better.
template <class T>
void find_extremes(const T* from, const AxisView& view, std::int64_t places, bool largest, bool last, std::int64_t* best) noexcept {
  const auto better_than = [&](T value, T champion) {
    return (largest ? value > champion : value < champion) || (last && value == champion);
  };
  if (places == 1) {  // one place needs no table
    T champion = *from;
    *best = 0;
    for (std::int64_t k = 1; k < view.extent; ++k) {
      const T value = from[k * view.inner];
      if (!better_than(value, champion)) continue;
      *best = k;
      champion = value;
    }
    return;
  }
  std::array<T, kPlacesTogether> champions;
  std::copy_n(from, places, champions.begin());
  std::fill_n(best, places, 0);
  for (std::int64_t k = 1; k < view.extent; ++k)
    for (std::int64_t i = 0; i < places; ++i) {
      T& champion = champions[static_cast<std::size_t>(i)];
      const T value = from[k * view.inner + i];
      const bool better = better_than(value, champion);
      best[i] = better ? k : best[i];
      champion = better ? value : champion;
    }
}

/// Of f32, in vectors. Places fit 32 bits.
void find_f32_extremes(const PlainTensor& x, const AxisView& view, const Extreme& which, std::int64_t* best) noexcept {
  const VectorTable& vectors = vector_table(active_isa());
  for (std::int64_t o = 0; o < view.outer; ++o) {
    const float* const from = x.as<const float>() + o * view.extent * view.inner;
    if (view.inner == 1)
      best[o] = vectors.extreme_place(which, from, view.extent);
    else
      vectors.extreme_places(which, {from, view.inner, view.extent}, view.inner, best + o * view.inner);
  }
}

PlainRefusal run_arg(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const PlainTensor& x = node.in(0);
  const AxisView view = axis_view(x.shape, axis_of(node.integer(0), x.shape.rank()));
  const bool largest = *static_cast<const bool*>(node.op().detail), last = node.integer(2) != 0;
  if (is_f32(x.dtype) && view.extent <= INT32_MAX) {
    find_f32_extremes(x, view, {largest, last}, out.as<std::int64_t>());
    return nullptr;
  }
  with_type(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t o = 0; o < view.outer; ++o)
      for (std::int64_t first = 0; first < view.inner; first += kPlacesTogether)
        find_extremes(x.as<const T>() + o * view.extent * view.inner + first, view, std::min(kPlacesTogether, view.inner - first), largest,
                      last, out.as<std::int64_t>() + o * view.inner + first);
  });
  return nullptr;
}

// ---- CumSum, CumProd

constexpr bool kProduct = true, kSum = false;

PlainRefusal infer_running(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  if (!is_number(node.in(0).dtype)) return kWrongType;
  if (!node.given(0) || axis_of(node.integer(0), node.in(0).shape.rank()) < 0) return kWrongAxis;
  out = {node.in(0).dtype, node.in(0).shape};
  return nullptr;
}

PlainRefusal run_running(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const PlainTensor& x = node.in(0);
  const AxisView view = axis_view(x.shape, axis_of(node.integer(0), x.shape.rank()));
  const bool product = *static_cast<const bool*>(node.op().detail), exclusive = node.integer(1) != 0, reverse = node.integer(2) != 0;
  with_type(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    using Sum = std::conditional_t<std::is_same_v<T, float>, double, std::int64_t>;
    for (std::int64_t o = 0; o < view.outer; ++o)
      for (std::int64_t i = 0; i < view.inner; ++i) {
        const std::int64_t first = o * view.extent * view.inner + i;
        Sum sum = product ? 1 : 0;
        for (std::int64_t k = 0; k < view.extent; ++k) {
          const std::int64_t at = first + (reverse ? view.extent - 1 - k : k) * view.inner;
          const auto value = static_cast<Sum>(x.as<const T>()[at]);
          const Sum next = product ? multiplied(sum, value) : added(sum, value);
          out.as<T>()[at] = static_cast<T>(exclusive ? sum : next);
          sum = next;
        }
      }
  });
  return nullptr;
}

constexpr PlainOperator kOperators[] = {
    line(170, "ReduceSum", Fold::kSum),
    line(171, "ReduceMean", Fold::kMean),
    line(172, "ReduceProd", Fold::kProd),
    line(173, "ReduceMax", Fold::kMax),
    line(174, "ReduceMin", Fold::kMin),
    line(175, "ReduceL1", Fold::kL1),
    line(176, "ReduceL2", Fold::kL2),
    line(177, "ReduceLogSum", Fold::kLogSum),
    line(178, "ReduceLogSumExp", Fold::kLogSumExp),
    line(179, "ReduceSumSquare", Fold::kSumSquare),
    {180, "ArgMax", "axis:i=0 keepdims:i=1 select_last_index:i=0", infer_arg, run_arg, nullptr, &kLargest},
    {181, "ArgMin", "axis:i=0 keepdims:i=1 select_last_index:i=0", infer_arg, run_arg, nullptr, &kSmallest},
    {182, "CumSum", "axis:i@1 exclusive:i=0 reverse:i=0", infer_running, run_running, nullptr, &kSum, 1, bound_as_input},
    {183, "CumProd", "axis:i@1 exclusive:i=0 reverse:i=0", infer_running, run_running, nullptr, &kProduct, 1, bound_as_input},
};

}  // namespace

std::span<const PlainOperator> reduce_operators() noexcept { return kOperators; }

}  // namespace sluice::kernels::plain
