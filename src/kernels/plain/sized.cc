// Results with as many elements as the values say: NonZero, Compress, Unique, Range. Each counts first and writes when it fits.
#include "sluice/operators/generic/sized.h"

#include "src/kernels/plain/elements.h"
#include "src/kernels/plain/table.h"

namespace sluice::kernels::plain {
using namespace operators::generic::sized;
namespace {

PlainRefusal run_nonzero(const PlainNode& node, PlainTensor& out, std::byte*) noexcept {
  const PlainTensor& x = node.in(0);
  return with_type(x.dtype, [&](auto zero) -> PlainRefusal {
    using T = decltype(zero);
    const auto* const values = x.as<const T>();
    const std::int64_t count = x.count(), found = count - std::count(values, values + count, T{});
    if (found > out.shape[1]) return kOverBound;
    out.shape = Shape{x.shape.rank(), found};
    std::int64_t at = 0;
    walk_rows(x.shape, [&](std::int64_t first, std::int64_t row, const Extents& index) {
      for (std::int64_t i = 0; i < row; ++i) {
        if (values[first + i] == T{}) continue;
        for (int axis = 0; axis + 1 < x.shape.rank(); ++axis)
          out.as<std::int64_t>()[axis * found + at] = index[static_cast<std::size_t>(axis)];
        if (x.shape.rank() > 0) out.as<std::int64_t>()[(x.shape.rank() - 1) * found + at] = i;
        ++at;
      }
    });
    return nullptr;
  });
}

PlainRefusal run_compress(const PlainNode& node, PlainTensor& out, std::byte*) noexcept {
  const PlainTensor &x = node.in(0), &condition = node.in(1);
  const int axis = node.given(0) ? axis_of(node.integer(0), x.shape.rank()) : 0;
  const AxisView view = node.given(0) ? axis_view(x.shape, axis) : AxisView{1, x.count(), 1};
  const std::int64_t most = std::min(view.extent, condition.count());
  std::int64_t held = 0;
  for (std::int64_t k = 0; k < most; ++k) held += condition.as<const std::uint8_t>()[k] != 0 ? 1 : 0;
  Shape extents = node.given(0) ? x.shape : Shape{0};
  extents[axis] = held;
  for (int a = 0; a < extents.rank(); ++a)
    if (extents[a] > out.shape[a]) return kOverBound;
  out.shape = extents;
  const auto size = static_cast<std::int64_t>(size_of(x.dtype));
  std::int64_t to = 0;
  for (std::int64_t o = 0; o < view.outer; ++o)
    for (std::int64_t k = 0; k < most; ++k) {
      if (condition.as<const std::uint8_t>()[k] == 0) continue;
      copy_elements(out.data + to * view.inner * size, x.data + (o * view.extent + k) * view.inner * size, view.inner, x.dtype);
      ++to;
    }
  return nullptr;
}

/// Items in order, the group of each item, the first item of each group, and the groups in the order in which they are told.
std::uint64_t unique_scratch(const PlainNode& node) noexcept {
  return 4 * sizeof(std::int64_t) * static_cast<std::uint64_t>(std::max<std::int64_t>(Items(node).view.extent, 1));
}

/// Fills the scratch; how many groups there are.
std::int64_t group_items(const PlainNode& node, const Items& items, std::int64_t* order, std::int64_t* group_of, std::int64_t* first,
                         std::int64_t* told) noexcept {
  const std::int64_t count = items.view.extent;
  std::int64_t groups = 0;
  with_type(node.in(0).dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* x = node.in(0).as<const T>();
    for (std::int64_t i = 0; i < count; ++i) order[i] = i;
    const auto sort = [&](const auto& compare) {
      std::sort(order, order + count, [&](std::int64_t a, std::int64_t b) {
        const int way = compare(a, b);
        return way < 0 || (way == 0 && a < b);
      });
    };
    if (items.view.outer == 1 && items.view.inner == 1)
      sort([x](std::int64_t a, std::int64_t b) { return Items::compare(x[a], x[b]); });
    else
      sort([&](std::int64_t a, std::int64_t b) { return items.compare(x, a, b); });
    for (std::int64_t i = 0; i < count; ++i) {
      if (i == 0 || items.compare(x, order[i - 1], order[i]) != 0) first[groups++] = order[i];
      group_of[order[i]] = groups - 1;
    }
  });
  for (std::int64_t g = 0; g < groups; ++g) told[g] = g;
  if (node.integer(1) == 0) std::sort(told, told + groups, [&](std::int64_t a, std::int64_t b) { return first[a] < first[b]; });
  return groups;
}

PlainRefusal run_unique(const PlainNode& node, PlainTensor& out, std::byte* scratch) noexcept {
  const Items items(node);
  const AxisView& view = items.view;
  auto* const order = reinterpret_cast<std::int64_t*>(scratch);
  std::int64_t *const group_of = order + view.extent, *const first = group_of + view.extent, *const told = first + view.extent;
  const std::int64_t groups = group_items(node, items, order, group_of, first, told);
  PlainTensor most;
  if (const PlainRefusal refusal = infer_unique(node, most)) return refusal;
  const bool slices = node.result() == 0 && node.given(0);
  if (node.result() != 2) most.shape[slices ? axis_of(node.integer(0), most.shape.rank()) : 0] = groups;
  for (int a = 0; a < most.shape.rank(); ++a)
    if (most.shape[a] > out.shape[a]) return kOverBound;
  out.shape = most.shape;
  auto* const numbers = out.as<std::int64_t>();
  if (node.result() == 3) std::fill(numbers, numbers + groups, 0);
  for (std::int64_t g = 0; g < groups; ++g) order[told[g]] = g;  // the place at which a group is told
  const auto size = static_cast<std::int64_t>(size_of(node.in(0).dtype));
  for (std::int64_t g = 0; g < groups && node.result() < 2; ++g) {
    if (node.result() == 1) {
      numbers[g] = first[told[g]];
      continue;
    }
    for (std::int64_t o = 0; o < view.outer; ++o)
      copy_elements(out.data + (o * groups + g) * view.inner * size,
                    node.in(0).data + (o * view.extent + first[told[g]]) * view.inner * size, view.inner, out.dtype);
  }
  for (std::int64_t i = 0; i < view.extent && node.result() >= 2; ++i) {
    if (node.result() == 2)
      numbers[i] = order[group_of[i]];
    else
      ++numbers[order[group_of[i]]];
  }
  return nullptr;
}

PlainRefusal run_range(const PlainNode& node, PlainTensor& out, std::byte*) noexcept {
  const double start = real_at(node.in(0), 0), limit = real_at(node.in(1), 0), step = real_at(node.in(2), 0);
  const double count = step == 0 ? -1 : std::ceil((limit - start) / step);
  if (step == 0 || !(count < 1e15)) return "the range is infinite";
  const auto length = static_cast<std::int64_t>(std::max(count, 0.0));
  if (length > out.shape[0]) return kOverBound;
  out.shape[0] = length;
  for (std::int64_t i = 0; i < length; ++i) {
    if (is_f32(out.dtype))
      out.as<float>()[i] = static_cast<float>(start + static_cast<double>(i) * step);
    else
      set_integer(out, i,
                  static_cast<std::int64_t>(static_cast<std::uint64_t>(integer_at(node.in(0), 0)) +
                                            static_cast<std::uint64_t>(i) * static_cast<std::uint64_t>(integer_at(node.in(2), 0))));
  }
  return nullptr;
}

constexpr GenericKernel kSizedKernels[] = {
    {"NonZero", nullptr, nullptr, run_nonzero},
    {"Compress", nullptr, nullptr, run_compress},
    {"Unique", nullptr, unique_scratch, run_unique},
    {"Range", nullptr, nullptr, run_range},
};

}  // namespace

std::span<const GenericKernel> sized_kernels() noexcept { return kSizedKernels; }

}  // namespace sluice::kernels::plain
