// Values shifted and scaled by their own statistics.
#include "src/kernels/plain/elements.h"
#include "src/kernels/plain/table.h"
#include "src/kernels/plain/vectors.h"

namespace sluice::kernels::plain {
namespace {

struct Moments {
  double mean = 0, variance = 0;
};

/// Calls body(row, moments) for each row.
template <class Body>
void each_moments(const float* x, std::int64_t rows, std::int64_t count, const Body& body) noexcept {
  const VectorTable& vectors = vector_table(active_isa());
  const auto terms = static_cast<double>(count);
  for (std::int64_t row = 0; row < rows; ++row, x += count) {
    const double mean = vectors.sum(Term::kValue, x, count) / terms;
    body(row, Moments{mean, vectors.squares(mean, x, count) / terms});
  }
}

bool floats(const PlainNode& node) noexcept {
  return std::all_of(node.inputs().begin(), node.inputs().end(), [](const PlainTensor& t) { return is_f32(t.dtype); });
}

// ---- LayerNormalization, RMSNormalization: over all axes from `axis` on

PlainRefusal infer_layer(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0) || !node.has(1)) return kMissingInput;
  if (!floats(node)) return kWrongType;
  const Shape& in = node.in(0).shape;
  const int axis = axis_of(node.integer(0), in.rank());
  if (axis < 0) return kWrongAxis;
  out = {DType::kF32, in};
  Shape joined;
  for (const int parameter : {1, 2})
    if (node.has(parameter) && (!broadcast_to(in, node.in(parameter).shape, joined) || !(joined == in))) return kWrongShape;
  if (node.result() > 0)
    for (int a = axis; a < in.rank(); ++a) out.shape[a] = 1;
  return nullptr;
}

constexpr bool kCentred = true, kUncentred = false;

PlainRefusal run_layer(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const PlainTensor& x = node.in(0);
  const int axis = axis_of(node.integer(0), x.shape.rank());
  const std::int64_t count = x.shape.count(axis, x.shape.rank()), rows = x.shape.count(0, axis);
  const bool centred = *static_cast<const bool*>(node.op().detail);
  const double epsilon = node.real(1);
  each_moments(x.as<const float>(), rows, count, [&](std::int64_t r, Moments m) {
    const float* from = x.as<const float>() + r * count;
    if (!centred) m = {0, m.variance + m.mean * m.mean};
    const double scale = 1 / std::sqrt(m.variance + epsilon);
    if (node.result() > 0) {
      out.as<float>()[r] = static_cast<float>(node.result() == 1 ? m.mean : scale);
      return;
    }
    for (std::int64_t i = 0; i < count; ++i) out.as<float>()[r * count + i] = static_cast<float>((from[i] - m.mean) * scale);
  });
  if (node.result() > 0) return nullptr;
  for (const int parameter : {1, 2}) {
    if (!node.has(parameter)) continue;
    const auto* value = node.in(parameter).as<const float>();
    walk(out.shape, std::array<Extents, 1>{broadcast_strides(node.in(parameter).shape, out.shape)}, [&](std::int64_t i, const auto& at) {
      float& y = out.as<float>()[i];
      y = parameter == 1 ? y * value[at[0]] : y + value[at[0]];
    });
  }
  return nullptr;
}

// ---- InstanceNormalization, GroupNormalization: over the values of each group of channels

PlainRefusal infer_group(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0) || !node.has(1) || !node.has(2)) return kMissingInput;
  if (!floats(node)) return kWrongType;
  const Shape& in = node.in(0).shape;
  if (in.rank() < 2) return kWrongRank;
  const std::int64_t channels = in[1], groups = node.given(1) ? node.integer(1) : channels;
  if (groups < 1 || channels % groups != 0) return kWrongArgument;
  for (const int parameter : {1, 2})
    if (const std::int64_t n = node.in(parameter).count(); n != channels && n != groups) return kWrongShape;
  out = {DType::kF32, in};
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

// ---- MeanVarianceNormalization

PlainRefusal infer_mvn(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  if (!floats(node)) return kWrongType;
  out = {DType::kF32, node.in(0).shape};
  for (const std::int64_t axis : node.list(0))
    if (axis_of(axis, out.shape.rank()) < 0) return kWrongAxis;
  return node.list(0).empty() && out.shape.rank() < 4 ? kWrongRank : nullptr;
}

/// Sums, then sums of squares, by kept place.
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
  auto* variance = mean + places;
  std::fill(mean, mean + 2 * places, 0.0);
  const std::array<Extents, 1> strides{broadcast_strides(kept, x.shape)};
  const auto* from = x.as<const float>();
  walk(x.shape, strides, [&](std::int64_t i, const auto& at) { mean[at[0]] += from[i] / terms; });
  walk(x.shape, strides,
       [&](std::int64_t i, const auto& at) { variance[at[0]] += (from[i] - mean[at[0]]) * (from[i] - mean[at[0]]) / terms; });
  walk(x.shape, strides, [&](std::int64_t i, const auto& at) {
    out.as<float>()[i] = static_cast<float>((from[i] - mean[at[0]]) / (std::sqrt(variance[at[0]]) + 1e-9));
  });
  return nullptr;
}

// ---- LpNormalization

PlainRefusal infer_lp(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  if (!floats(node)) return kWrongType;
  if (axis_of(node.integer(0), node.in(0).shape.rank()) < 0) return kWrongAxis;
  if (node.integer(1) != 1 && node.integer(1) != 2) return kWrongArgument;
  out = {DType::kF32, node.in(0).shape};
  return nullptr;
}

PlainRefusal run_lp(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const AxisView view = axis_view(out.shape, axis_of(node.integer(0), out.shape.rank()));
  const bool squares = node.integer(1) == 2;
  for (std::int64_t o = 0; o < view.outer; ++o)
    for (std::int64_t i = 0; i < view.inner; ++i) {
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

// ---- BatchNormalization with statistics of the run time, or its own: Y, running mean, running variance

PlainRefusal infer_batch(const PlainNode& node, PlainTensor& out) noexcept {
  for (int i = 0; i < 5; ++i)
    if (!node.has(i)) return kMissingInput;
  if (!floats(node)) return kWrongType;
  const Shape& in = node.in(0).shape;
  if (in.rank() < 2) return kWrongRank;
  for (int i = 1; i < 5; ++i)
    if (node.in(i).count() != in[1]) return kWrongShape;
  if (node.result() > 0 && node.integer(2) == 0) return "running statistics are outputs in training mode only";
  out = {DType::kF32, node.result() == 0 ? in : Shape{in[1]}};
  return nullptr;
}

PlainRefusal run_batch(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const PlainTensor& x = node.in(0);
  const AxisView view = axis_view(x.shape, 1);
  const bool training = node.integer(2) != 0;
  const double momentum = node.real(1);
  for (std::int64_t c = 0; c < view.extent; ++c) {
    Moments m{node.in(3).as<const float>()[c], node.in(4).as<const float>()[c]};
    if (training) {
      const Moments given = m;
      const double terms = static_cast<double>(view.outer * view.inner);
      const auto over_channel = [&](const auto& body) {
        for (std::int64_t o = 0; o < view.outer; ++o)
          for (std::int64_t i = 0; i < view.inner; ++i) body(x.as<const float>()[(o * view.extent + c) * view.inner + i]);
      };
      m = {};
      over_channel([&](double value) { m.mean += value / terms; });
      over_channel([&](double value) { m.variance += (value - m.mean) * (value - m.mean) / terms; });
      if (node.result() > 0) {
        const double before = node.result() == 1 ? given.mean : given.variance, now = node.result() == 1 ? m.mean : m.variance;
        out.as<float>()[c] = static_cast<float>(before * momentum + now * (1 - momentum));
        continue;
      }
    }
    const double scale = node.in(1).as<const float>()[c] / std::sqrt(m.variance + node.real(0));
    for (std::int64_t o = 0; o < view.outer; ++o)
      for (std::int64_t i = 0; i < view.inner; ++i) {
        const std::int64_t at = (o * view.extent + c) * view.inner + i;
        out.as<float>()[at] = static_cast<float>((x.as<const float>()[at] - m.mean) * scale + node.in(2).as<const float>()[c]);
      }
  }
  return nullptr;
}

constexpr PlainOperator kOperators[] = {
    {300, "LayerNormalization", "axis:i=-1 epsilon:f=1e-5 stash_type:i=1", infer_layer, run_layer, nullptr, &kCentred, 3},
    {301, "RMSNormalization", "axis:i=-1 epsilon:f=1e-5 stash_type:i=1", infer_layer, run_layer, nullptr, &kUncentred},
    {302, "InstanceNormalization", "epsilon:f=1e-5 num_groups:i", infer_group, run_group},
    {303, "GroupNormalization", "epsilon:f=1e-5 num_groups:i", infer_group, run_group},
    {304, "MeanVarianceNormalization", "axes:I", infer_mvn, run_mvn, mvn_scratch},
    {305, "LpNormalization", "axis:i=-1 p:i=2", infer_lp, run_lp},
    {306, "BatchNormalization", "epsilon:f=1e-5 momentum:f=0.9 training_mode:i=0", infer_batch, run_batch, nullptr, nullptr, 3},
};

}  // namespace

std::span<const PlainOperator> normalize_operators() noexcept { return kOperators; }

}  // namespace sluice::kernels::plain
