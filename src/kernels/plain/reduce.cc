// Folds over axes: sums and their kin, places of extremes, running sums.
#include "sluice/operators/generic/reduce.h"

#include "src/kernels/elementwise/runs.h"
#include "src/kernels/generic/folds.h"
#include "src/kernels/plain/elements.h"
#include "src/kernels/plain/result_rows.h"
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

/// A double (or integer) for each result.
std::uint64_t scratch(const PlainNode& node) noexcept {
  if (node.has(0) && node.has(1) && !node.given(0))  // axes that come at run time
    return sizeof(double) * static_cast<std::uint64_t>(std::max<std::int64_t>(node.in(0).count(), 1));
  PlainTensor out;
  if (infer(node, out) != nullptr) return 0;
  return sizeof(double) * static_cast<std::uint64_t>(std::max<std::int64_t>(out.count(), 1));
}

/// Running sums and products.
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

std::int64_t start_of(Fold fold, DType dtype) noexcept {
  if (fold == Fold::kProd) return 1;
  if (fold != Fold::kMax && fold != Fold::kMin) return 0;
  const bool low = fold == Fold::kMax;
  if (dtype == DType::kBool) return low ? 0 : 1;
  return with_type(dtype, [&](auto zero) {
    using E = decltype(zero);
    return static_cast<std::int64_t>(low ? std::numeric_limits<E>::lowest() : std::numeric_limits<E>::max());
  });
}

void accumulate(Fold fold, std::int64_t value, std::int64_t& sum) noexcept {
  switch (fold) {
    case Fold::kProd:
      sum = multiplied(sum, value);
      break;
    case Fold::kMax:
      sum = std::max(sum, value);
      break;
    case Fold::kMin:
      sum = std::min(sum, value);
      break;
    case Fold::kL1:
      sum = added(sum, value < 0 ? multiplied(value, std::int64_t{-1}) : value);
      break;
    case Fold::kL2:
    case Fold::kSumSquare:
      sum = added(sum, multiplied(value, value));
      break;
    default:
      sum = added(sum, value);
  }
}

/// What is left to do with a sum of `terms` values.
double finished(Fold fold, double sum, double terms) noexcept {
  switch (fold) {
    case Fold::kMean:
      return sum / terms;
    case Fold::kL2:
      return std::sqrt(sum);
    case Fold::kLogSum:
      return std::log(sum);
    default:
      return sum;
  }
}

/// Rows whose values are folded at the same time: a sum waits for the one before, sums of several rows do not wait for each other.
constexpr std::int64_t kRowsTogether = 8;

/// Each row of `count` values into its sum.
template <Fold fold, class E>
void fold_rows(const E* from, std::int64_t rows, std::int64_t count, std::int64_t* sums) noexcept {
  for (; rows >= kRowsTogether; rows -= kRowsTogether, from += kRowsTogether * count, sums += kRowsTogether) {
    std::array<std::int64_t, kRowsTogether> together;
    std::copy_n(sums, kRowsTogether, together.begin());
    for (std::int64_t i = 0; i < count; ++i)
      for (std::size_t r = 0; r < together.size(); ++r)
        accumulate(fold, static_cast<std::int64_t>(from[static_cast<std::int64_t>(r) * count + i]), together[r]);
    std::copy_n(together.begin(), kRowsTogether, sums);
  }
  for (; rows > 0; --rows, from += count, ++sums) {
    std::int64_t sum = *sums;
    for (std::int64_t i = 0; i < count; ++i) accumulate(fold, static_cast<std::int64_t>(from[i]), sum);
    *sums = sum;
  }
}

constexpr Term term_of(Fold fold) noexcept {
  return fold == Fold::kL1 ? Term::kMagnitude : fold == Fold::kL2 || fold == Fold::kSumSquare ? Term::kSquare : Term::kValue;
}

/// Adds up what lies at the same place of the results, by lines along which either one result takes all values (in the order of vectors.h,
/// then line after line) or each takes its own, in the order of the values.
void fold_terms(Term term, const PlainTensor& x, const Extents& strides, double* sums) noexcept {
  const VectorTable& vectors = vector_table(active_isa());
  if (const ResultRows rows = result_rows(x.shape, strides); rows.rows > 0)
    return for_rows(rows, [&](std::int64_t first, std::int64_t count) {
      vectors.sum_rows(term, x.as<const float>() + first * rows.count, count, rows.count, sums + first);
    });
  walk_lines(x.shape, std::array<Extents, 1>{strides}, [&](std::int64_t i, std::int64_t count, const auto& at, const auto& steps) {
    const float* const from = x.as<const float>() + i;
    double* const to = sums + at[0];
    if (steps[0] == 0)
      *to += vectors.sum(term, from, count);
    else if (steps[0] == 1)
      vectors.add(term, from, to, count);
    else
      for (std::int64_t k = 0; k < count; ++k) vectors.add(term, from + k, to + k * steps[0], 1);
  });
}

/// The same of products.
void fold_product(const PlainTensor& x, const Extents& strides, double* products) noexcept {
  const VectorTable& vectors = vector_table(active_isa());
  if (const ResultRows rows = result_rows(x.shape, strides); rows.rows > 0 && rows.count <= kFewValues)
    return for_rows(rows, [&](std::int64_t first, std::int64_t count) {
      multiply_few(x.as<const float>() + first * rows.count, count, rows.count, products + first);
    });
  walk_lines(x.shape, std::array<Extents, 1>{strides}, [&](std::int64_t i, std::int64_t count, const auto& at, const auto& steps) {
    const float* const from = x.as<const float>() + i;
    double* const to = products + at[0];
    if (steps[0] == 0) {
      *to *= vectors.product(from, count);
      return;
    }
    for (std::int64_t k = 0; k < count; ++k) to[k * steps[0]] *= static_cast<double>(from[k]);
  });
}

/// The extremes of f32, kept where the results are: what is kept is one of the values.
void fold_extremes(bool largest, const PlainTensor& x, const Extents& strides, std::int64_t results, float* best) noexcept {
  const VectorTable& vectors = vector_table(active_isa());
  if (const ResultRows rows = result_rows(x.shape, strides); rows.rows > 0)
    return for_rows(rows, [&](std::int64_t first, std::int64_t count) {
      const float* const from = x.as<const float>() + first * rows.count;
      if (rows.count <= kFewValues)
        return (largest ? keep_few_extremes<true> : keep_few_extremes<false>)(from, count, rows.count, best + first);
      vectors.extremes(largest, from, count, rows.count, best + first);
    });
  std::fill(best, best + results, largest ? -HUGE_VALF : HUGE_VALF);
  walk_lines(x.shape, std::array<Extents, 1>{strides}, [&](std::int64_t i, std::int64_t count, const auto& at, const auto& steps) {
    const float* const from = x.as<const float>() + i;
    float* const to = best + at[0];
    if (steps[0] == 1) return vectors.keep_extremes(largest, from, to, count);
    if (steps[0] == 0) {
      float folded;
      vectors.extremes(largest, from, 1, count, &folded);
      return vectors.keep_extremes(largest, &folded, to, 1);
    }
    for (std::int64_t k = 0; k < count; ++k) vectors.keep_extremes(largest, from + k, to + k * steps[0], 1);
  });
}

/// log(sum(exp(x))), with f32 exponentials of what is left without the largest value; `largest` has room for one for each result.
void fold_exponentials(const PlainTensor& x, const Extents& strides, std::int64_t results, float* largest, double* sums) noexcept {
  constexpr std::int64_t kPart = 512;
  std::array<float, kPart> part;
  const VectorTable& vectors = vector_table(active_isa());
  const elementwise::RunTable& runs = elementwise::run_table(active_isa());
  fold_extremes(true, x, strides, results, largest);
  for (std::int64_t r = 0; r < results; ++r)
    if (!std::isfinite(largest[r])) largest[r] = 0;
  if (const ResultRows rows = result_rows(x.shape, strides); rows.rows > 0 && rows.count <= kPart / 2) {
    const std::int64_t together = kPart / rows.count;
    Glances glances;
    for (std::int64_t first = 0; first < rows.rows && !glances.over(together * rows.count); first += together) {
      const std::int64_t some = std::min(together, rows.rows - first);
      const float* from = x.as<const float>() + first * rows.count;
      for (auto [r, to] = std::pair(first, part.data()); r < first + some; ++r)
        for (std::int64_t k = 0; k < rows.count; ++k) *to++ = *from++ - largest[r];
      runs.unary({.function = Function::kExp}, part.data(), part.data(), some * rows.count);
      vectors.sum_rows(Term::kValue, part.data(), some, rows.count, sums + first);
    }
  } else {
    walk_lines(x.shape, std::array<Extents, 1>{strides}, [&](std::int64_t i, std::int64_t line, const auto& at, const auto& steps) {
      for (std::int64_t first = 0; first < line; first += kPart) {
        const std::int64_t count = std::min(kPart, line - first), result = at[0] + first * steps[0];
        const float* const from = x.as<const float>() + i + first;
        if (steps[0] <= 1)
          runs.binary(BinaryFunction::kSub, {.values = from}, {.values = largest + result, .step = static_cast<int>(steps[0])}, {},
                      part.data(), count);
        else
          for (std::int64_t k = 0; k < count; ++k) part[static_cast<std::size_t>(k)] = from[k] - largest[result + k * steps[0]];
        runs.unary({.function = Function::kExp}, part.data(), part.data(), count);
        if (steps[0] == 0)
          sums[result] += vectors.sum(Term::kValue, part.data(), count);
        else if (steps[0] == 1)
          vectors.add(Term::kValue, part.data(), sums + result, count);
        else
          for (std::int64_t k = 0; k < count; ++k) sums[result + k * steps[0]] += static_cast<double>(part[static_cast<std::size_t>(k)]);
      }
    });
  }
  for (std::int64_t r = 0; r < results; ++r) sums[r] = std::log(sums[r]) + static_cast<double>(largest[r]);
}

/// Integers, in the order of the values, whatever the lines are.
template <Fold fold, class E>
void fold_lines(const PlainTensor& x, const Extents& strides, std::int64_t* sums) noexcept {
  const E* const from = x.as<const E>();
  std::int64_t line_rows = 0, line_count = 0;  // lines of one result that follow each other
  const auto flush = [&](std::int64_t end, std::int64_t result) {
    if (line_rows > 0) fold_rows<fold>(from + end - line_rows * line_count, line_rows, line_count, sums + result - line_rows);
    line_rows = 0;
  };
  std::int64_t last_result = -1, last_end = 0;
  walk_lines(x.shape, std::array<Extents, 1>{strides}, [&](std::int64_t i, std::int64_t count, const auto& at, const auto& steps) {
    if (steps[0] != 0) {
      for (std::int64_t k = 0; k < count; ++k) accumulate(fold, static_cast<std::int64_t>(from[i + k]), sums[at[0] + k * steps[0]]);
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

template <class E, std::size_t... kFold>
void fold_as(Fold fold, const PlainTensor& x, const Extents& strides, std::int64_t* sums, std::index_sequence<kFold...>) noexcept {
  using Function = void (*)(const PlainTensor&, const Extents&, std::int64_t*) noexcept;
  static constexpr Function kFunctions[] = {fold_lines<kFolds[kFold], E>...};
  kFunctions[static_cast<std::size_t>(fold)](x, strides, sums);
}

/// What is folded into what: strides of the results along the axes of the values.
struct Results {
  Fold fold;
  Extents strides;
  std::int64_t count;
  double terms;  // values of each
};
Results results_of(const PlainNode& node) noexcept {
  const Shape& in = node.in(0).shape;
  std::uint32_t axes = 0;
  folded_axes(node, axes);
  const Shape kept = kept_shape(in, axes);
  const std::int64_t count = kept.element_count();
  return {fold_of(node), broadcast_strides(kept, in), count,
          count == 0 ? 1.0 : static_cast<double>(in.element_count()) / static_cast<double>(count)};
}

void run_reals(const PlainNode& node, const PlainTensor& out, std::byte* scratch_bytes) noexcept {
  const PlainTensor& x = node.in(0);
  const Results to = results_of(node);
  auto* const folded = out.as<float>();
  if (to.fold == Fold::kMax || to.fold == Fold::kMin) return fold_extremes(to.fold == Fold::kMax, x, to.strides, to.count, folded);
  auto* const sums = reinterpret_cast<double*>(scratch_bytes);
  std::fill(sums, sums + to.count, to.fold == Fold::kProd ? 1.0 : 0.0);
  if (to.fold == Fold::kProd)
    fold_product(x, to.strides, sums);
  else if (to.fold == Fold::kLogSumExp)
    fold_exponentials(x, to.strides, to.count, folded, sums);
  else
    fold_terms(term_of(to.fold), x, to.strides, sums);
  for (std::int64_t r = 0; r < to.count; ++r) folded[r] = static_cast<float>(finished(to.fold, sums[r], to.terms));
}

void run_integers(const PlainNode& node, const PlainTensor& out, std::byte* scratch_bytes) noexcept {
  const PlainTensor& x = node.in(0);
  const Results to = results_of(node);
  auto* const sums = reinterpret_cast<std::int64_t*>(scratch_bytes);
  std::fill(sums, sums + to.count, start_of(to.fold, x.dtype));
  if (to.fold == Fold::kLogSumExp)
    walk(x.shape, std::array<Extents, 1>{to.strides}, [&](std::int64_t i, const auto& at) {
      accumulate(to.fold, static_cast<std::int64_t>(std::exp(static_cast<double>(integer_at(x, i)))), sums[at[0]]);
    });
  else
    with_type(x.dtype, [&](auto zero) {
      using E = decltype(zero);
      if constexpr (!std::is_same_v<E, float>) fold_as<E>(to.fold, x, to.strides, sums, std::make_index_sequence<std::size(kFolds)>());
    });
  const bool rounds = to.fold == Fold::kMean || to.fold == Fold::kL2 || to.fold == Fold::kLogSum || to.fold == Fold::kLogSumExp;
  for (std::int64_t r = 0; r < to.count; ++r)
    set_integer(out, r,
                rounds ? whole(to.fold == Fold::kLogSumExp ? std::log(static_cast<double>(sums[r]))
                                                           : finished(to.fold, static_cast<double>(sums[r]), to.terms))
                       : sums[r]);
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
    run_reals(node, out, scratch_bytes);
  else
    run_integers(node, out, scratch_bytes);
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

/// Running sums of lines that follow each other.
template <class T, class Sum>
void add_lines(const PlainTensor& x, const PlainTensor& out, const AxisView& view, bool exclusive, bool reverse) noexcept {
  const T* from = x.as<const T>();
  T* to = out.as<T>();
  const std::int64_t first = reverse ? view.extent - 1 : 0, step = reverse ? -1 : 1;
  Glances glances;
  for (std::int64_t o = 0; o < view.outer && !glances.over(view.extent); ++o, from += view.extent, to += view.extent) {
    Sum sum = 0;
    for (std::int64_t k = 0, at = first; k < view.extent; ++k, at += step) {
      const Sum next = added(sum, static_cast<Sum>(from[at]));
      to[at] = static_cast<T>(exclusive ? sum : next);
      sum = next;
    }
  }
}

PlainRefusal run_running(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const PlainTensor& x = node.in(0);
  const AxisView view = axis_view(x.shape, axis_of(node.integer(0), x.shape.rank()));
  const bool product = *static_cast<const bool*>(node.op().detail), exclusive = node.integer(1) != 0, reverse = node.integer(2) != 0;
  with_type(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    using Sum = std::conditional_t<std::is_same_v<T, float>, double, std::int64_t>;
    Glances glances;
    if (view.inner == 1 && !product) return add_lines<T, Sum>(x, out, view, exclusive, reverse);
    for (std::int64_t o = 0; o < view.outer; ++o)
      for (std::int64_t i = 0; i < view.inner && !glances.over(view.extent * kPlacesTogether); i += kPlacesTogether) {
        const std::int64_t first = o * view.extent * view.inner + i, places = std::min(kPlacesTogether, view.inner - i);
        std::array<Sum, kPlacesTogether> sums;
        std::fill_n(sums.data(), places, product ? 1 : 0);
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

constexpr GenericKernel kReduceKernels[] = {
    {"ReduceSum", run, scratch},       {"ReduceMean", run, scratch},      {"ReduceProd", run, scratch}, {"ReduceMax", run, scratch},
    {"ReduceMin", run, scratch},       {"ReduceL1", run, scratch},        {"ReduceL2", run, scratch},   {"ReduceLogSum", run, scratch},
    {"ReduceLogSumExp", run, scratch}, {"ReduceSumSquare", run, scratch}, {"ArgMax", run_arg},          {"ArgMin", run_arg},
    {"CumSum", run_running},           {"CumProd", run_running},
};

}  // namespace

std::span<const GenericKernel> reduce_kernels() noexcept { return kReduceKernels; }

}  // namespace sluice::kernels::plain
