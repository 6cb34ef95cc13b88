// Values chosen by their size or place: TopK, Hardmax, OneHot, Trilu, ReverseSequence, CenterCropPad, EyeLike.
#include <functional>

#include "src/kernels/plain/elements.h"
#include "src/kernels/plain/move.h"
#include "src/kernels/plain/table.h"
#include "src/kernels/plain/vectors.h"

namespace sluice::kernels::plain {
namespace {

std::uint64_t top_k_scratch(const PlainNode& node) noexcept {
  const PlainTensor& x = node.in(0);
  const int axis = axis_of(node.integer(1), x.shape.rank());
  if (axis < 0) return 0;
  const bool copies = is_f32(x.dtype) && x.shape.count(axis + 1, x.shape.rank()) != 1;  // a line of values that do not lie side by side
  return static_cast<std::uint64_t>(x.shape[axis]) * (sizeof(std::int64_t) + (copies ? sizeof(float) : 0));
}

/// The k best of a row of f32 as keys with their places (vectors.h): those found are thinned out to the best k whenever there are some
/// times as many, and what is no better than the last of these is passed over, a vector at a time. `found` has room for all values.
void find_best(const float* from, std::int64_t extent, std::int64_t k, bool largest, const VectorTable& vectors,
               std::uint64_t* found) noexcept {
  Scan scan{.values = from, .end = extent, .largest = largest, .found = found, .room = std::min(extent, 4 * k + 16 * kMostLanes)};
  for (;;) {
    vectors.scan(scan);
    if (scan.count > k) {
      std::nth_element(found, found + k - 1, found + scan.count, std::greater<>());
      scan.count = k;
    }
    if (scan.next == scan.end) break;
    scan.above = key_of(found[k - 1]);
  }
  std::sort(found, found + k, std::greater<>());
}

/// The places of the k best of a line that is too short for vectors: each value is put where it belongs among those before it.
template <bool kLargest>
void sort_short_line(const float* from, std::int64_t step, std::int64_t extent, std::int64_t k, std::int64_t* places) noexcept {
  std::int64_t count = 0;
  for (std::int64_t p = 0; p < extent; ++p) {
    const float value = from[p * step];
    std::int64_t at = count;
    for (; at > 0; --at) {
      const float other = from[places[at - 1] * step];
      if (!(kLargest ? value > other : value < other) && !(other != other && value == value)) break;
      if (at < k) places[at] = places[at - 1];
    }
    if (at < k) places[at] = p;
    count = std::min(count + 1, k);
  }
}

/// f32 in lines of fewer than kMostLanes.
void find_in_short_lines(const PlainNode& node, const PlainTensor& out, const AxisView& view) noexcept {
  const std::int64_t k = node.integer(0), at_once = std::max<std::int64_t>(1, Glances::kWork / (view.extent * view.extent));
  const bool of_values = node.result() == 0;
  const auto sort = node.integer(2) != 0 ? sort_short_line<true> : sort_short_line<false>;
  std::array<std::int64_t, kMostLanes> places;
  Glances glances;
  for (std::int64_t o = 0; o < view.outer; ++o)
    for (std::int64_t i = 0; i < view.inner; ++i) {
      const bool looks = view.inner < at_once ? i == 0 : i % at_once == 0;
      if (looks && glances.over(std::min(at_once, view.inner) * view.extent * view.extent)) return;
      const float* const from = node.in(0).as<const float>() + o * view.extent * view.inner + i;
      sort(from, view.inner, view.extent, k, places.data());
      for (std::int64_t p = 0; p < k; ++p) {
        const std::int64_t place = places[static_cast<std::size_t>(p)], to = (o * k + p) * view.inner + i;
        if (of_values)
          out.as<float>()[to] = from[place * view.inner];
        else
          out.as<std::int64_t>()[to] = place;
      }
    }
}

/// f32, of which a line that has gaps is copied behind the keys.
void find_f32_best(const PlainNode& node, const PlainTensor& out, const AxisView& view, std::byte* scratch) noexcept {
  constexpr std::int64_t kMostTurns = 2048;  // values looked at in all turns of `best_places`
  const VectorTable& vectors = vector_table(active_isa());
  const std::int64_t k = node.integer(0);
  const bool largest = node.integer(2) != 0, few = view.extent >= kMostLanes && k * view.extent <= kMostTurns;
  auto* const found = reinterpret_cast<std::uint64_t*>(scratch);
  std::array<std::int64_t, kMostTurns / kMostLanes> places;
  auto* const line = reinterpret_cast<float*>(found + view.extent);
  Glances glances;
  for (std::int64_t at = 0; at < view.outer * view.inner && !glances.over(view.extent + 8 * k); ++at) {
    const std::int64_t o = at / view.inner, i = at % view.inner;
    const float* from = node.in(0).as<const float>() + o * view.extent * view.inner + i;
    if (view.inner != 1) {
      for (std::int64_t p = 0; p < view.extent; ++p) line[p] = from[p * view.inner];
      from = line;
    }
    if (few)
      vectors.best_places(largest, from, view.extent, k, reinterpret_cast<std::int32_t*>(scratch), places.data());
    else
      find_best(from, view.extent, k, largest, vectors, found);
    for (std::int64_t p = 0; p < k; ++p) {
      const std::int64_t place = few ? places[static_cast<std::size_t>(p)] : place_of(found[p]);
      const std::int64_t to = (o * k + p) * view.inner + i;
      if (node.result() == 0)
        out.as<float>()[to] = from[place];
      else
        out.as<std::int64_t>()[to] = place;
    }
  }
}

PlainRefusal run_top_k(const PlainNode& node, const PlainTensor& out, std::byte* scratch) noexcept {
  const PlainTensor& x = node.in(0);
  const AxisView view = axis_view(x.shape, axis_of(node.integer(1), x.shape.rank()));
  const std::int64_t k = node.integer(0);
  const bool largest = node.integer(2) != 0;
  if (is_f32(x.dtype) && view.extent <= INT32_MAX) {
    if (k > 0 && view.extent < kMostLanes)
      find_in_short_lines(node, out, view);
    else if (k > 0)
      find_f32_best(node, out, view, scratch);
    return nullptr;
  }
  auto* places = reinterpret_cast<std::int64_t*>(scratch);
  with_type(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    Glances glances;
    for (std::int64_t o = 0; o < view.outer; ++o)
      for (std::int64_t i = 0; i < view.inner && !glances.over(view.extent + 8 * k); ++i) {
        const T* from = x.as<const T>() + o * view.extent * view.inner + i;
        for (std::int64_t p = 0; p < k; ++p) places[p] = p;
        // NaN sorts last either way, so that the order is one.
        const auto before = [&](std::int64_t a, std::int64_t b) {
          const T u = from[a * view.inner], v = from[b * view.inner];
          if (u != u || v != v) return u == u || (v != v && a < b);
          if (u != v) return largest ? u > v : u < v;
          return a < b;
        };
        // A heap of the k best so far, the worst of them on top: most of the others are no better than that, which one comparison tells.
        std::make_heap(places, places + k, before);
        for (std::int64_t p = k; p < view.extent && k > 0; ++p) {
          const T value = from[p * view.inner], worst = from[places[0] * view.inner];
          const bool better = (largest ? value > worst : value < worst) || (worst != worst && value == value);
          if (!better) continue;
          std::pop_heap(places, places + k, before);
          places[k - 1] = p;
          std::push_heap(places, places + k, before);
        }
        std::sort_heap(places, places + k, before);
        for (std::int64_t p = 0; p < k; ++p) {
          const std::int64_t to = (o * k + p) * view.inner + i;
          if (node.result() == 0)
            out.as<T>()[to] = from[places[p] * view.inner];
          else
            out.as<std::int64_t>()[to] = places[p];
        }
      }
  });
  return nullptr;
}

PlainRefusal run_hardmax(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const PlainTensor& x = node.in(0);
  const bool old = node.integer(1) < 13;
  const int axis = axis_of(node.given(0) ? node.integer(0) : old ? 1 : -1, x.shape.rank());
  if (axis < 0) return kWrongAxis;
  AxisView view = axis_view(x.shape, axis);
  if (old) view = {view.outer, view.extent * view.inner, 1};  // before opset 13 all axes from `axis` on are one
  if (out.count() == 0) return nullptr;
  if (view.extent > INT32_MAX) return "the axis has more places than 2^31 - 1";
  const VectorTable& vectors = vector_table(active_isa());
  const Extreme first_largest;
  const auto* from = x.as<const float>();
  auto* to = out.as<float>();
  std::fill(to, to + out.count(), 0.0f);
  constexpr std::int64_t kTogether = 64;
  std::array<std::int64_t, kTogether> places;
  Glances glances;
  for (std::int64_t o = 0; o < view.outer; ++o, from += view.extent * view.inner, to += view.extent * view.inner)
    for (std::int64_t i = 0; i < view.inner && !glances.over(view.extent * std::min(kTogether, view.inner)); i += kTogether) {
      const std::int64_t count = std::min(kTogether, view.inner - i);
      if (view.inner == 1)
        places[0] = vectors.extreme_place(first_largest, from, view.extent);
      else
        vectors.extreme_places(first_largest, {from + i, view.inner, view.extent}, count, places.data());
      for (std::int64_t k = 0; k < count; ++k) to[places[static_cast<std::size_t>(k)] * view.inner + i + k] = 1.0f;
    }
  return nullptr;
}

PlainRefusal run_one_hot(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const std::int64_t depth = node.integer(0);
  const AxisView view = axis_view(out.shape, axis_of(node.integer(1), out.shape.rank()));
  Glances glances;
  with_size(out.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T cold = node.in(2).as<const T>()[0], warm = node.in(2).as<const T>()[1];
    T* to = out.as<T>();
    for (std::int64_t o = 0; o < view.outer && !glances.over(depth * view.inner / 8); ++o, to += depth * view.inner) {
      std::fill_n(to, depth * view.inner, cold);
      for (std::int64_t i = 0; i < view.inner; ++i) {
        // An index outside [-depth, depth) is no error here: its column stays cold.
        std::int64_t hot = integer_at(node.in(0), o * view.inner + i);
        if (hot < 0) hot += depth;
        if (hot >= 0 && hot < depth) to[hot * view.inner + i] = warm;
      }
    }
  });
  return nullptr;
}

PlainRefusal run_trilu(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const Shape& shape = out.shape;
  const std::int64_t columns = shape.back(), rows = shape[shape.rank() - 2];
  const bool upper = node.integer(1) != 0;
  const std::int64_t k = std::clamp<std::int64_t>(node.integer(0), -rows - columns, rows + columns);
  const auto size = static_cast<std::int64_t>(size_of(out.dtype));
  std::memcpy(out.data, node.in(0).data, static_cast<std::size_t>(out.count() * size));
  const std::int64_t all_rows = out.count() / columns;
  for (std::int64_t r = 0; r < all_rows; ++r) {
    const std::int64_t edge = r % rows + k;
    const std::int64_t first = std::clamp<std::int64_t>(upper ? 0 : edge + 1, 0, columns),
                       last = std::clamp<std::int64_t>(upper ? edge : columns, first, columns);
    std::memset(out.data + (r * columns + first) * size, 0, static_cast<std::size_t>((last - first) * size));
  }
  return nullptr;
}

PlainRefusal run_reverse(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const Shape& shape = out.shape;
  const bool time_first = node.integer(0) == 0;
  const std::int64_t times = shape[time_first ? 0 : 1], batches = shape[time_first ? 1 : 0], inner = shape.count(2, shape.rank());
  const auto size = static_cast<std::int64_t>(size_of(out.dtype));
  for (std::int64_t b = 0; b < batches; ++b) {
    const std::int64_t length = integer_at(node.in(1), b);
    if (length < 0 || length > times) return "a length is longer than the sequence";
    for (std::int64_t t = 0; t < times; ++t) {
      const std::int64_t from = t < length ? length - 1 - t : t;
      const auto at = [&](std::int64_t time) { return (time_first ? time * batches + b : b * times + time) * inner * size; };
      copy_elements(out.data + at(t), node.in(0).data + at(from), inner, out.dtype);
    }
  }
  return nullptr;
}

PlainRefusal run_crop(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const PlainTensor& x = node.in(0);
  const auto place = [&](int axis, std::int64_t i) {
    const std::int64_t less = x.shape[axis] - out.shape[axis];  // the smaller half of what is cut or added comes first
    return i + (less >= 0 ? less / 2 : -(-less / 2));
  };
  constexpr std::array<std::byte, 8> kZero{};
  move_by_places(node, x, out, place, kZero.data());
  return nullptr;
}

PlainRefusal run_eye(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const std::int64_t rows = out.shape[0], columns = out.shape[1], right = node.integer(1);
  const std::int64_t first = right < 0 ? (right < -rows ? rows : -right) : 0;
  with_type(out.dtype, [&](auto zero) {
    using E = decltype(zero);
    E* const to = out.as<E>();
    std::fill_n(to, rows * columns, zero);
    for (std::int64_t row = first; row < rows && right < columns - row; ++row) to[row * columns + row + right] = static_cast<E>(1);
  });
  return nullptr;
}

constexpr GenericKernel kSelectKernels[] = {
    {"TopK", run_top_k, top_k_scratch}, {"Hardmax", run_hardmax},    {"OneHot", run_one_hot}, {"Trilu", run_trilu},
    {"ReverseSequence", run_reverse},   {"CenterCropPad", run_crop}, {"EyeLike", run_eye},
};

}  // namespace

std::span<const GenericKernel> select_kernels() noexcept { return kSelectKernels; }

}  // namespace sluice::kernels::plain
