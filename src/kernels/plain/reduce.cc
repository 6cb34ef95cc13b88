// Folds over axes: sums and their kin, places of extremes, running sums.
#include "sluice/operators/generic/reduce.h"

#include "src/kernels/generic/folds.h"
#include "src/kernels/plain/elements.h"
#include "src/kernels/plain/table.h"
#include "src/kernels/plain/vectors.h"

namespace sluice::kernels::plain {
using namespace operators::generic::reduce;
namespace {

/// The result with folded axes as 1.
Shape kept_shape(const Shape& in, std::uint32_t axes) noexcept {
  Shape kept = in;
  for (int axis = 0; axis < in.rank(); ++axis)
    if ((axes >> axis & 1u) != 0) kept[axis] = 1;
  return kept;
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

/// Folds of reals that are sums of terms.
constexpr bool has_terms(Fold fold) noexcept {
  return fold == Fold::kSum || fold == Fold::kMean || fold == Fold::kLogSum || fold == Fold::kL1 || fold == Fold::kL2 ||
         fold == Fold::kSumSquare;
}
constexpr Term term_of(Fold fold) noexcept {
  return fold == Fold::kL1 ? Term::kMagnitude : fold == Fold::kL2 || fold == Fold::kSumSquare ? Term::kSquare : Term::kValue;
}

/// Adds up what lies at the same place of the results, by lines along which either one result takes all values (in the order of vectors.h,
/// then line after line) or each takes its own, in the order of the values.
template <Fold fold>
void fold_terms(const PlainTensor& x, const Extents& strides, double* sums) noexcept {
  const VectorTable& vectors = vector_table(active_isa());
  walk_lines(x.shape, std::array<Extents, 1>{strides}, [&](std::int64_t i, std::int64_t count, const auto& at, const auto& steps) {
    const float* const from = x.as<const float>() + i;
    double* const to = sums + at[0];
    if (steps[0] == 0)
      *to += vectors.sum(term_of(fold), from, count);
    else if (steps[0] == 1)
      vectors.add(term_of(fold), from, to, count);
    else
      for (std::int64_t k = 0; k < count; ++k) accumulate(fold, static_cast<double>(from[k]), to[k * steps[0]]);
  });
}

/// The extremes of f32, kept where the results are: what is kept is one of the values.
void fold_extremes(bool largest, const PlainTensor& x, const Extents& strides, const PlainTensor& out) noexcept {
  const VectorTable& vectors = vector_table(active_isa());
  auto* const best = out.as<float>();
  std::fill(best, best + out.count(), largest ? -HUGE_VALF : HUGE_VALF);
  walk_lines(x.shape, std::array<Extents, 1>{strides}, [&](std::int64_t i, std::int64_t count, const auto& at, const auto& steps) {
    const float* const from = x.as<const float>() + i;
    float* const to = best + at[0];
    if (steps[0] == 1) return vectors.keep_extremes(largest, from, to, count);
    if (steps[0] == 0) {
      const float folded = vectors.extreme(largest, from, count);
      return vectors.keep_extremes(largest, &folded, to, 1);
    }
    for (std::int64_t k = 0; k < count; ++k) vectors.keep_extremes(largest, from + k, to + k * steps[0], 1);
  });
}

/// Their simple equivalent, for integers and whatever is no sum of terms: in the order of the values, whatever the lines are.
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
    if constexpr (std::is_same_v<T, double> && has_terms(kFolds[kFold]))
      fold_terms<kFolds[kFold]>(values, steps, results);
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
  if constexpr (std::is_same_v<T, double>)
    if (fold == Fold::kMax || fold == Fold::kMin) return fold_extremes(fold == Fold::kMax, x, strides[0], out);
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

/// The axes from `first` to the one before `end` become one place: they are neighbours, but for axes of one place.
struct Neighbours {
  int first = 0, end = 0;
};

bool neighbours_of(const PlainNode& node, Neighbours& found) noexcept {
  const Shape& in = node.in(0).shape;
  std::uint32_t axes = 0;
  folded_axes(node, axes);
  found = {in.rank(), 0};
  for (int axis = 0; axis < in.rank(); ++axis)
    if ((axes >> axis & 1u) != 0 && in[axis] != 1) found = {std::min(found.first, axis), axis + 1};
  for (int axis = found.first; axis < found.end; ++axis)
    if ((axes >> axis & 1u) == 0 && in[axis] != 1) return false;
  return found.first < found.end;
}

/// Means over neighbours are those of a pool, which they are where extents are known: of an image [N, C, H, W] row by row, else of one row.
void run_means(const PlainNode& node, const PlainTensor& out, const Neighbours& axes) noexcept {
  const Shape& in = node.in(0).shape;
  const bool image = in.rank() == 4 && axes.first == 2 && axes.end == 4;
  const std::int64_t run = in.count(axes.first, axes.end), row = image ? in[3] : run, inner = in.count(axes.end, in.rank());
  const auto* from = node.in(0).as<const float>();
  Glances glances;
  for (std::int64_t o = 0; o < in.count(0, axes.first); ++o, from += run * inner)
    for (std::int64_t i = 0; i < inner && !glances.over(run); ++i) {
      generic::Mean mean(image ? in[1] == 1 : inner == 1);
      for (std::int64_t k = 0; k < run; ++k) {
        mean.add(from[k * inner + i]);
        if (k % row == row - 1) mean.end_row();
      }
      out.as<float>()[o * inner + i] = mean.over(run);
    }
}

PlainRefusal run(const PlainNode& node, const PlainTensor& out, std::byte* scratch_bytes) noexcept {
  Neighbours axes;
  const bool real = is_f32(node.in(0).dtype);
  if (real && fold_of(node) == Fold::kMean && neighbours_of(node, axes))
    run_means(node, out, axes);
  else if (real)
    run_as<double>(node, out, scratch_bytes);
  else
    run_as<std::int64_t>(node, out, scratch_bytes);
  return nullptr;
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
  Glances glances;
  for (std::int64_t o = 0; o < view.outer && !glances.over(view.extent * view.inner); ++o) {
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
    Glances glances;
    for (std::int64_t o = 0; o < view.outer; ++o)
      for (std::int64_t first = 0; first < view.inner && !glances.over(view.extent * kPlacesTogether); first += kPlacesTogether)
        find_extremes(x.as<const T>() + o * view.extent * view.inner + first, view, std::min(kPlacesTogether, view.inner - first), largest,
                      last, out.as<std::int64_t>() + o * view.inner + first);
  });
  return nullptr;
}

PlainRefusal run_running(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const PlainTensor& x = node.in(0);
  const AxisView view = axis_view(x.shape, axis_of(node.integer(0), x.shape.rank()));
  const bool product = *static_cast<const bool*>(node.op().detail), exclusive = node.integer(1) != 0, reverse = node.integer(2) != 0;
  with_type(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    using Sum = std::conditional_t<std::is_same_v<T, float>, double, std::int64_t>;
    Glances glances;
    for (std::int64_t o = 0; o < view.outer; ++o)
      for (std::int64_t i = 0; i < view.inner && !glances.over(view.extent * kPlacesTogether); i += kPlacesTogether) {
        const std::int64_t first = o * view.extent * view.inner + i, places = std::min(kPlacesTogether, view.inner - i);
        std::array<Sum, kPlacesTogether> sums;
        sums.fill(product ? 1 : 0);
        for (std::int64_t k = 0; k < view.extent; ++k) {
          const std::int64_t at = first + (reverse ? view.extent - 1 - k : k) * view.inner;
          const T* const from = x.as<const T>() + at;
          T* const to = out.as<T>() + at;
          for (std::int64_t place = 0; place < places; ++place) {
            Sum& sum = sums[static_cast<std::size_t>(place)];
            const auto value = static_cast<Sum>(from[place]);
            const Sum next = product ? multiplied(sum, value) : added(sum, value);
            to[place] = static_cast<T>(exclusive ? sum : next);
            sum = next;
          }
        }
      }
  });
  return nullptr;
}

constexpr GenericKernel kKernels[] = {
    {"ReduceSum", run, scratch},       {"ReduceMean", run, scratch},      {"ReduceProd", run, scratch}, {"ReduceMax", run, scratch},
    {"ReduceMin", run, scratch},       {"ReduceL1", run, scratch},        {"ReduceL2", run, scratch},   {"ReduceLogSum", run, scratch},
    {"ReduceLogSumExp", run, scratch}, {"ReduceSumSquare", run, scratch}, {"ArgMax", run_arg},          {"ArgMin", run_arg},
    {"CumSum", run_running},           {"CumProd", run_running},
};

}  // namespace

std::span<const GenericKernel> reduce_kernels() noexcept { return kKernels; }

}  // namespace sluice::kernels::plain
