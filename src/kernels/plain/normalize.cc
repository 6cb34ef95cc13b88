// Values shifted and scaled by their own statistics.
#include "sluice/operators/generic/normalize.h"

#include "src/kernels/elementwise/runs.h"
#include "src/kernels/generic/rows.h"
#include "src/kernels/plain/elements.h"
#include "src/kernels/plain/table.h"
#include "src/kernels/plain/vectors.h"

namespace sluice::kernels::plain {
using namespace operators::generic::normalize;
namespace {

struct Moments {
  double mean = 0, variance = 0;
};

/// Calls body(row, moments) for each row.
template <class Body>
void each_moments(const float* x, std::int64_t rows, std::int64_t count, const Body& body) noexcept {
  const VectorTable& vectors = vector_table(active_isa());
  const auto terms = static_cast<double>(count);
  Glances glances;
  for (std::int64_t row = 0; row < rows && !glances.over(count); ++row, x += count) {
    const double mean = vectors.sum(Term::kValue, x, count) / terms;
    body(row, Moments{mean, vectors.squares(mean, x, count) / terms});
  }
}

PlainRefusal run_layer(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const PlainTensor& x = node.in(0);
  const int axis = axis_of(node.integer(0), x.shape.rank());
  const std::int64_t count = x.shape.count(axis, x.shape.rank()), rows = x.shape.count(0, axis);
  const auto epsilon = static_cast<float>(node.real(1));
  const bool shifts = node.has(2);
  const auto* scale = node.in(1).as<const float>();
  const float* shift = shifts ? node.in(2).as<const float>() : nullptr;
  if (node.result() > 0) {
    for (std::int64_t r = 0; r < rows; ++r) {
      const generic::Moments m = generic::moments_of(x.as<const float>() + r * count, count, epsilon);
      out.as<float>()[r] = node.result() == 1 ? m.mean : m.factor;
    }
    return nullptr;
  }
  const std::array<Extents, 2> strides{broadcast_strides(node.in(1).shape, x.shape),
                                       shifts ? broadcast_strides(node.in(2).shape, x.shape) : Extents{}};
  generic::Moments m;
  walk(x.shape, strides, [&](std::int64_t i, const auto& at) {
    if (i % count == 0) m = generic::moments_of(x.as<const float>() + i, count, epsilon);
    out.as<float>()[i] = generic::normalised(x.as<const float>()[i], m, scale[at[0]], shifts ? shift[at[1]] : 0.0f);
  });
  return nullptr;
}

PlainRefusal run_rms(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const PlainTensor& x = node.in(0);
  const int axis = axis_of(node.integer(0), x.shape.rank());
  const std::int64_t count = x.shape.count(axis, x.shape.rank()), rows = x.shape.count(0, axis);
  const VectorTable& vectors = vector_table(active_isa());
  const elementwise::RunTable& runs = elementwise::run_table(active_isa());
  const bool scales_rows = node.has(1) && node.in(1).count() == count && node.in(1).shape.rank() <= x.shape.rank() - axis;
  const auto* const factors = scales_rows ? node.in(1).as<const float>() : nullptr;
  Glances glances;
  for (std::int64_t r = 0; r < rows && !glances.over(count); ++r) {
    const float* const from = x.as<const float>() + r * count;
    float* const to = out.as<float>() + r * count;
    const double mean_of_squares = vectors.sum(Term::kSquare, from, count) / static_cast<double>(count);
    vectors.rescale({.scale = 1 / std::sqrt(mean_of_squares + node.real(1))}, from, to, count);
    if (scales_rows) runs.binary(BinaryFunction::kMul, {.values = to, .step = 1}, {.values = factors, .step = 1}, {}, to, count);
  }
  for (const int parameter : {1, 2}) {
    if (!node.has(parameter) || (parameter == 1 && scales_rows)) continue;
    const auto* value = node.in(parameter).as<const float>();
    walk(out.shape, std::array<Extents, 1>{broadcast_strides(node.in(parameter).shape, out.shape)}, [&](std::int64_t i, const auto& at) {
      float& y = out.as<float>()[i];
      y = parameter == 1 ? y * value[at[0]] : y + value[at[0]];
    });
  }
  return nullptr;
}

PlainRefusal run_group(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const PlainTensor& x = node.in(0);
  const std::int64_t channels = x.shape[1], groups = node.given(1) ? node.integer(1) : channels;
  const std::int64_t per_group = channels / groups, inner = x.shape.count(2, x.shape.rank());
  const VectorTable& vectors = vector_table(active_isa());
  const auto parameter = [&](int input, std::int64_t channel) {
    const PlainTensor& p = node.in(input);
    return p.as<const float>()[p.count() == channels ? channel : channel / per_group];
  };
  each_moments(x.as<const float>(), x.shape[0] * groups, per_group * inner, [&](std::int64_t g, const Moments& m) {
    const std::int64_t first = g * per_group * inner;
    const double scale = 1 / std::sqrt(m.variance + node.real(0));
    for (std::int64_t c = 0; c < per_group; ++c) {
      const std::int64_t channel = g % groups * per_group + c;
      const Rescale by{m.mean, scale, parameter(1, channel), parameter(2, channel)};
      vectors.rescale(by, x.as<const float>() + first + c * inner, out.as<float>() + first + c * inner, inner);
    }
  });
  return nullptr;
}

/// Means, then variances and the factors that come of them, by kept place.
std::uint64_t mvn_scratch(const PlainNode& node) noexcept { return 2 * sizeof(double) * static_cast<std::uint64_t>(node.in(0).count()); }

PlainRefusal run_mvn(const PlainNode& node, const PlainTensor& out, std::byte* scratch) noexcept {
  constexpr std::int64_t kDefault[] = {0, 2, 3};
  const PlainTensor& x = node.in(0);
  const auto axes = node.list(0).empty() ? std::span<const std::int64_t>(kDefault) : node.list(0);
  Shape kept = x.shape;
  for (const std::int64_t axis : axes) kept[axis_of(axis, x.shape.rank())] = 1;
  const std::int64_t places = kept.element_count();
  const double terms = static_cast<double>(x.count()) / static_cast<double>(places);
  auto* mean = reinterpret_cast<double*>(scratch);
  auto* factor = mean + places;  // sums of squares first
  std::fill(mean, mean + 2 * places, 0.0);
  const VectorTable& vectors = vector_table(active_isa());
  // Along a line either one place takes all values, or each takes its own.
  const auto each_line = [&](const auto& whole, const auto& single) {
    walk_lines(x.shape, std::array<Extents, 1>{broadcast_strides(kept, x.shape)},
               [&](std::int64_t i, std::int64_t count, const auto& at, const auto& steps) {
                 if (steps[0] == 0) return whole(i, count, at[0]);
                 for (std::int64_t k = 0; k < count; ++k) single(i + k, at[0] + k * steps[0]);
               });
  };
  const auto* const from = x.as<const float>();
  auto* const to = out.as<float>();
  each_line([&](std::int64_t i, std::int64_t count, std::int64_t at) { mean[at] += vectors.sum(Term::kValue, from + i, count); },
            [&](std::int64_t i, std::int64_t at) { mean[at] += from[i]; });
  for (std::int64_t p = 0; p < places; ++p) mean[p] /= terms;
  each_line([&](std::int64_t i, std::int64_t count, std::int64_t at) { factor[at] += vectors.squares(mean[at], from + i, count); },
            [&](std::int64_t i, std::int64_t at) { factor[at] += (from[i] - mean[at]) * (from[i] - mean[at]); });
  for (std::int64_t p = 0; p < places; ++p) factor[p] = 1 / (std::sqrt(factor[p] / terms) + 1e-9);
  each_line(
      [&](std::int64_t i, std::int64_t count, std::int64_t at) {
        vectors.rescale({mean[at], factor[at], 1, 0}, from + i, to + i, count);
      },
      [&](std::int64_t i, std::int64_t at) { to[i] = static_cast<float>((from[i] - mean[at]) * factor[at]); });
  return nullptr;
}

PlainRefusal run_lp(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const AxisView view = axis_view(out.shape, axis_of(node.integer(0), out.shape.rank()));
  const bool squares = node.integer(1) == 2;
  Glances glances;
  for (std::int64_t o = 0; o < view.outer; ++o)
    for (std::int64_t i = 0; i < view.inner && !glances.over(view.extent); ++i) {
      const std::int64_t first = o * view.extent * view.inner + i;
      const float* x = node.in(0).as<const float>() + first;
      double norm = 0;
      for (std::int64_t k = 0; k < view.extent; ++k) {
        const double value = x[k * view.inner];
        norm += squares ? value * value : std::fabs(value);
      }
      if (squares) norm = std::sqrt(norm);
      for (std::int64_t k = 0; k < view.extent; ++k)
        out.as<float>()[first + k * view.inner] = norm == 0 ? 0.0f : static_cast<float>(x[k * view.inner] / norm);
    }
  return nullptr;
}

/// The statistics of channel c in training: over all its values.
Moments statistics_of(const PlainTensor& x, const AxisView& view, std::int64_t c) noexcept {
  const double terms = static_cast<double>(view.outer * view.inner);
  const auto over_channel = [&](const auto& body) {
    for (std::int64_t o = 0; o < view.outer; ++o)
      for (std::int64_t i = 0; i < view.inner; ++i) body(x.as<const float>()[(o * view.extent + c) * view.inner + i]);
  };
  Moments m;
  over_channel([&](double value) { m.mean += value / terms; });
  over_channel([&](double value) { m.variance += (value - m.mean) * (value - m.mean) / terms; });
  return m;
}

PlainRefusal run_batch(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const PlainTensor& x = node.in(0);
  const AxisView view = axis_view(x.shape, 1);
  const double momentum = node.real(1);
  Glances glances;
  for (std::int64_t c = 0; c < view.extent && !glances.over(view.outer * view.inner); ++c) {
    Moments m{node.in(3).as<const float>()[c], node.in(4).as<const float>()[c]};
    if (node.integer(2) != 0) {
      const Moments given = m;
      m = statistics_of(x, view, c);
      if (node.result() > 0) {
        const double before = node.result() == 1 ? given.mean : given.variance, now = node.result() == 1 ? m.mean : m.variance;
        out.as<float>()[c] = static_cast<float>(before * momentum + now * (1 - momentum));
        continue;
      }
    }
    const ScaleAndShift y =
        scale_and_shift(node.in(1).as<const float>()[c], node.in(2).as<const float>()[c], m.mean, m.variance, node.real(0));
    for (std::int64_t o = 0; o < view.outer; ++o)
      for (std::int64_t i = 0; i < view.inner; ++i) {
        const std::int64_t at = (o * view.extent + c) * view.inner + i;
        out.as<float>()[at] = std::fma(x.as<const float>()[at], y.scale, y.shift);
      }
  }
  return nullptr;
}

constexpr GenericKernel kNormalizeKernels[] = {
    {"LayerNormalization", run_layer},
    {"RMSNormalization", run_rms},
    {"InstanceNormalization", run_group},
    {"GroupNormalization", run_group},
    {"MeanVarianceNormalization", run_mvn, mvn_scratch},
    {"LpNormalization", run_lp},
    {"BatchNormalization", run_batch},
};

}  // namespace

std::span<const GenericKernel> normalize_kernels() noexcept { return kNormalizeKernels; }

}  // namespace sluice::kernels::plain
