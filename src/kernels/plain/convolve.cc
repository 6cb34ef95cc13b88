// Convolutions over any number of axes with weights of the run time or integers: the forms that kConv does not take.
#include "src/kernels/plain/quantized.h"
#include "src/kernels/plain/table.h"
#include "src/kernels/plain/windows.h"

namespace sluice::kernels::plain {
namespace {

bool is_byte(DType dtype) noexcept { return dtype == DType::kI8 || dtype == DType::kU8; }

/// x [N, C, ...], w [M, C / groups, ...]; argument 6 is `group`. The weight is input `weight`.
bool convolution_of(const PlainNode& node, int weight, Windows& w) noexcept {
  const Shape &x = node.in(0).shape, &k = node.in(weight).shape;
  const std::int64_t groups = node.integer(6);
  if (x.rank() < 3 || k.rank() != x.rank() || groups < 1) return false;
  if (x[1] % groups != 0 || k[0] % groups != 0 || k[1] != x[1] / groups) return false;
  return read_windows(node, x, k.dims().subspan(2), w) && slide(node, w);
}

/// Calls body(image, output channel, position, sum over taps and channels of term(x index, w index)).
template <class Sum, class Term, class Body>
void convolve(const PlainNode& node, int weight, const Windows& w, const Term& term, const Body& body) noexcept {
  const Shape &x = node.in(0).shape, &k = node.in(weight).shape;
  const std::int64_t outputs = w.outputs(), inputs = w.inputs(), taps = w.taps(), depth = k[1], per_group = k[0] / node.integer(6);
  for (std::int64_t n = 0; n < x[0]; ++n)
    for (std::int64_t m = 0; m < k[0]; ++m)
      for (std::int64_t at = 0; at < outputs; ++at) {
        Sum sum = 0;
        for (std::int64_t tap = 0; tap < taps; ++tap) {
          const std::int64_t place = tap_place(w, at, tap);
          if (place < 0) continue;
          for (std::int64_t c = 0; c < depth; ++c)
            sum += term((n * x[1] + m / per_group * depth + c) * inputs + place, (m * depth + c) * taps + tap);
        }
        body((n * k[0] + m) * outputs + at, m, sum);
      }
}

PlainRefusal infer_conv(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0) || !node.has(1)) return kMissingInput;
  for (const PlainTensor& t : node.inputs())
    if (!is_f32(t.dtype)) return kWrongType;
  Windows w;
  if (!convolution_of(node, 1, w) || (node.has(2) && node.in(2).count() != node.in(1).shape[0])) return kWrongShape;
  out.dtype = DType::kF32;
  return window_shape(w, node.in(0).shape[0], node.in(1).shape[0], out.shape) ? nullptr : kWrongShape;
}

PlainRefusal run_conv(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  Windows w;
  convolution_of(node, 1, w);
  const auto *x = node.in(0).as<const float>(), *k = node.in(1).as<const float>();
  const float* bias = node.has(2) ? node.in(2).as<const float>() : nullptr;
  convolve<double>(
      node, 1, w, [&](std::int64_t i, std::int64_t j) { return static_cast<double>(x[i]) * k[j]; },
      [&](std::int64_t at, std::int64_t m, double sum) {
        out.as<float>()[at] = static_cast<float>(sum + (bias == nullptr ? 0.0f : bias[m]));
      });
  return nullptr;
}

// ---- ConvInteger: x, w, their zero points

PlainRefusal infer_integer(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0) || !node.has(1)) return kMissingInput;
  if (!is_byte(node.in(0).dtype) || !is_byte(node.in(1).dtype)) return kWrongType;
  Windows w;
  if (!convolution_of(node, 1, w)) return kWrongShape;
  const std::int64_t channels = node.in(1).shape[0];
  if (node.has(2) && (node.in(2).dtype != node.in(0).dtype || node.in(2).count() != 1)) return kWrongType;
  if (node.has(3) && (node.in(3).dtype != node.in(1).dtype || (node.in(3).count() != 1 && node.in(3).count() != channels)))
    return kWrongType;
  out.dtype = DType::kI32;
  return window_shape(w, node.in(0).shape[0], channels, out.shape) ? nullptr : kWrongShape;
}

PlainRefusal run_integer(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  Windows w;
  convolution_of(node, 1, w);
  const std::int64_t per_channel = node.in(1).count() / std::max<std::int64_t>(1, node.in(1).shape[0]);
  convolve<std::int64_t>(
      node, 1, w,
      [&](std::int64_t i, std::int64_t j) {
        return (integer_at(node.in(0), i) - zero_point(node, 2, 0)) * (integer_at(node.in(1), j) - zero_point(node, 3, j / per_channel));
      },
      [&](std::int64_t at, std::int64_t, std::int64_t sum) { out.as<std::int32_t>()[at] = static_cast<std::int32_t>(sum); });
  return nullptr;
}

// ---- QLinearConv: x, its scale and zero point, w the same, y's scale and zero point, bias

PlainRefusal infer_qlinear(const PlainNode& node, PlainTensor& out) noexcept {
  for (int i = 0; i < 8; ++i)
    if (!node.has(i)) return kMissingInput;
  if (!is_byte(node.in(0).dtype) || !is_byte(node.in(3).dtype) || !is_byte(node.in(7).dtype)) return kWrongType;
  if (node.in(2).dtype != node.in(0).dtype || node.in(5).dtype != node.in(3).dtype) return kWrongType;
  Windows w;
  if (!convolution_of(node, 3, w)) return kWrongShape;
  const std::int64_t channels = node.in(3).shape[0];
  for (const int i : {1, 4, 6})
    if (!is_f32(node.in(i).dtype)) return kWrongType;
  for (const int i : {1, 2, 6, 7})
    if (node.in(i).count() != 1) return kWrongShape;
  for (const int i : {4, 5})
    if (node.in(i).count() != 1 && node.in(i).count() != channels) return kWrongShape;
  if (node.has(8) && (node.in(8).dtype != DType::kI32 || node.in(8).count() != channels)) return kWrongShape;
  out.dtype = node.in(7).dtype;
  return window_shape(w, node.in(0).shape[0], channels, out.shape) ? nullptr : kWrongShape;
}

PlainRefusal run_qlinear(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  Windows w;
  convolution_of(node, 3, w);
  const std::int64_t per_channel = node.in(3).count() / std::max<std::int64_t>(1, node.in(3).shape[0]);
  convolve<std::int64_t>(
      node, 3, w,
      [&](std::int64_t i, std::int64_t j) {
        return (integer_at(node.in(0), i) - zero_point(node, 2, 0)) * (integer_at(node.in(3), j) - zero_point(node, 5, j / per_channel));
      },
      [&](std::int64_t at, std::int64_t m, std::int64_t sum) {
        if (node.has(8)) sum += integer_at(node.in(8), m);
        const float scale = scale_of(node, 1, 0) * scale_of(node, 4, m) / scale_of(node, 6, 0);
        store_quantized(out, at, static_cast<float>(sum) * scale, integer_at(node.in(7), 0));
      });
  return nullptr;
}

// ---- ConvTranspose: x [N, C, ...], w [C, M / groups, ...]; arguments 7 and 8: output_padding, output_shape

bool transposed_of(const PlainNode& node, Windows& w) noexcept {
  const Shape &x = node.in(0).shape, &k = node.in(1).shape;
  const std::int64_t groups = node.integer(6), auto_pad = node.integer(4);
  if (x.rank() < 3 || k.rank() != x.rank() || groups < 1 || k[0] != x[1] || x[1] % groups != 0) return false;
  if (!read_windows(node, x, k.dims().subspan(2), w)) return false;
  Extents extra{}, wanted{};
  if (!read_axes(node, 7, w.axes, 0, 0, extra) || !read_axes(node, 8, w.axes, 0, 0, wanted)) return false;
  for (std::size_t a = 0; a < static_cast<std::size_t>(w.axes); ++a) {
    const std::int64_t full = w.stride[a] * (w.in[a] - 1) + extra[a] + (w.kernel[a] - 1) * w.dilation[a] + 1;
    const bool same = auto_pad == kSameUpper || auto_pad == kSameLower;
    if (same && wanted[a] == 0) wanted[a] = w.in[a] * w.stride[a];
    if (auto_pad == kValid) w.before[a] = w.after[a] = 0;
    if (wanted[a] > 0) {
      const std::int64_t total = std::max<std::int64_t>(0, full - wanted[a]);
      w.before[a] = auto_pad == kSameUpper ? total / 2 : total - total / 2;
      w.after[a] = total - w.before[a];
    }
    w.out[a] = wanted[a] > 0 ? wanted[a] : full - w.before[a] - w.after[a];
    if (w.out[a] < 1 || w.out[a] > kMaxWindowExtent) return false;
  }
  return true;
}

PlainRefusal infer_transposed(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0) || !node.has(1)) return kMissingInput;
  for (const PlainTensor& t : node.inputs())
    if (!is_f32(t.dtype)) return kWrongType;
  Windows w;
  if (!transposed_of(node, w)) return kWrongShape;
  const std::int64_t channels = node.in(1).shape[1] * node.integer(6);
  if (node.has(2) && node.in(2).count() != channels) return kWrongShape;
  out.dtype = DType::kF32;
  return window_shape(w, node.in(0).shape[0], channels, out.shape) ? nullptr : kWrongShape;
}

PlainRefusal run_transposed(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  Windows w;
  transposed_of(node, w);
  const Shape &x = node.in(0).shape, &k = node.in(1).shape;
  const std::int64_t groups = node.integer(6), per_group = k[1], channels = per_group * groups, depth = x[1] / groups;
  const std::int64_t outputs = w.outputs(), inputs = w.inputs(), taps = w.taps();
  for (std::int64_t n = 0; n < x[0]; ++n)
    for (std::int64_t m = 0; m < channels; ++m) {
      float* to = out.as<float>() + (n * channels + m) * outputs;
      std::fill_n(to, outputs, node.has(2) ? node.in(2).as<const float>()[m] : 0.0f);
      for (std::int64_t c = 0; c < depth; ++c) {
        const std::int64_t channel = m / per_group * depth + c;
        const float* from = node.in(0).as<const float>() + (n * x[1] + channel) * inputs;
        const float* weight = node.in(1).as<const float>() + (channel * per_group + m % per_group) * taps;
        for (std::int64_t i = 0; i < inputs; ++i)
          for (std::int64_t tap = 0; tap < taps; ++tap) {
            std::int64_t at = 0, scale = 1, left = i, tap_left = tap;
            bool inside = true;
            for (int axis = w.axes - 1; axis >= 0; --axis) {
              const auto a = static_cast<std::size_t>(axis);
              const std::int64_t place = left % w.in[a] * w.stride[a] + tap_left % w.kernel[a] * w.dilation[a] - w.before[a];
              left /= w.in[a];
              tap_left /= w.kernel[a];
              inside = inside && place >= 0 && place < w.out[a];
              if (inside) at += place * scale;
              scale *= w.out[a];
            }
            if (inside) to[at] += from[i] * weight[tap];
          }
      }
    }
  return nullptr;
}

// ---- Col2Im: columns [N, C * taps, positions] summed into an image; arguments 6, 7: image_shape, block_shape

bool columns_of(const PlainNode& node, Windows& w) noexcept {
  const auto image = node.list(6), block = node.list(7);
  const Shape& x = node.in(0).shape;
  if (x.rank() != 3 || image.empty() || image.size() != block.size() || image.size() > kMaxSpatial) return false;
  Dims dims;
  dims.add(1);
  dims.add(1);
  for (const std::int64_t extent : image) dims.add(extent);
  Shape shape;
  if (!make_shape(dims.span(), shape) || shape.element_count() == 0) return false;
  return read_windows(node, shape, block, w) && slide(node, w) && x[2] == w.outputs() && x[1] % w.taps() == 0;
}

PlainRefusal infer_columns(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  if (!is_f32(node.in(0).dtype)) return kWrongType;
  Windows w;
  if (!columns_of(node, w)) return kWrongShape;
  out.dtype = DType::kF32;
  Windows image = w;
  image.out = w.in;
  return window_shape(image, node.in(0).shape[0], node.in(0).shape[1] / w.taps(), out.shape) ? nullptr : kWrongShape;
}

PlainRefusal run_columns(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  Windows w;
  columns_of(node, w);
  const std::int64_t planes = out.shape[0] * out.shape[1], taps = w.taps(), outputs = w.outputs(), inputs = w.inputs();
  std::fill_n(out.as<float>(), out.count(), 0.0f);
  for (std::int64_t p = 0; p < planes; ++p)
    for (std::int64_t tap = 0; tap < taps; ++tap)
      for (std::int64_t at = 0; at < outputs; ++at)
        if (const std::int64_t place = tap_place(w, at, tap); place >= 0)
          out.as<float>()[p * inputs + place] += node.in(0).as<const float>()[(p * taps + tap) * outputs + at];
  return nullptr;
}

// ---- DeformConv, two axes: x, w, offsets [N, groups * taps * 2, oh, ow], bias, mask [N, groups * taps, oh, ow]; argument 7: offset_group

PlainRefusal infer_deform(const PlainNode& node, PlainTensor& out) noexcept {
  for (const int i : {0, 1, 2})
    if (!node.has(i)) return kMissingInput;
  for (const PlainTensor& t : node.inputs())
    if (!is_f32(t.dtype)) return kWrongType;
  const Shape& x = node.in(0).shape;
  Windows w;
  if (x.rank() != 4) return "supported is [N, C, H, W]";
  if (!convolution_of(node, 1, w)) return kWrongShape;
  const std::int64_t groups = node.integer(7);
  if (groups < 1 || x[1] % groups != 0) return kWrongArgument;
  const std::int64_t offsets = groups * w.taps();
  if (!(node.in(2).shape == Shape{x[0], 2 * offsets, w.out[0], w.out[1]})) return kWrongShape;
  if (node.has(3) && node.in(3).count() != node.in(1).shape[0]) return kWrongShape;
  if (node.has(4) && !(node.in(4).shape == Shape{x[0], offsets, w.out[0], w.out[1]})) return kWrongShape;
  out.dtype = DType::kF32;
  return window_shape(w, x[0], node.in(1).shape[0], out.shape) ? nullptr : kWrongShape;
}

/// Bilinear, zero outside.
double sample(const float* image, std::int64_t height, std::int64_t width, double y, double x) noexcept {
  if (!(y > -1 && x > -1 && y < static_cast<double>(height) && x < static_cast<double>(width))) return 0;
  const auto top = static_cast<std::int64_t>(std::floor(y)), left = static_cast<std::int64_t>(std::floor(x));
  const double dy = y - static_cast<double>(top), dx = x - static_cast<double>(left);
  const auto at = [&](std::int64_t r, std::int64_t c) {
    return r >= 0 && r < height && c >= 0 && c < width ? static_cast<double>(image[r * width + c]) : 0.0;
  };
  return (1 - dy) * ((1 - dx) * at(top, left) + dx * at(top, left + 1)) + dy * ((1 - dx) * at(top + 1, left) + dx * at(top + 1, left + 1));
}

PlainRefusal run_deform(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  Windows w;
  convolution_of(node, 1, w);
  const Shape &x = node.in(0).shape, &k = node.in(1).shape;
  const std::int64_t outputs = w.outputs(), inputs = w.inputs(), taps = w.taps(), depth = k[1], per_group = k[0] / node.integer(6);
  const std::int64_t offset_groups = node.integer(7), per_offset_group = x[1] / offset_groups;
  for (std::int64_t n = 0; n < x[0]; ++n)
    for (std::int64_t m = 0; m < k[0]; ++m)
      for (std::int64_t at = 0; at < outputs; ++at) {
        double sum = node.has(3) ? node.in(3).as<const float>()[m] : 0.0f;
        for (std::int64_t tap = 0; tap < taps; ++tap)
          for (std::int64_t c = 0; c < depth; ++c) {
            const std::int64_t channel = m / per_group * depth + c;
            const std::int64_t offset = (n * offset_groups + channel / per_offset_group) * taps + tap;
            const float* moves = node.in(2).as<const float>() + offset * 2 * outputs + at;
            const double y = static_cast<double>(at / w.out[1] * w.stride[0] + tap / w.kernel[1] * w.dilation[0] - w.before[0]) + moves[0];
            const double xx =
                static_cast<double>(at % w.out[1] * w.stride[1] + tap % w.kernel[1] * w.dilation[1] - w.before[1]) + moves[outputs];
            const double mask = node.has(4) ? node.in(4).as<const float>()[offset * outputs + at] : 1.0f;
            sum += sample(node.in(0).as<const float>() + (n * x[1] + channel) * inputs, w.in[0], w.in[1], y, xx) * mask *
                   node.in(1).as<const float>()[(m * depth + c) * taps + tap];
          }
        out.as<float>()[(n * k[0] + m) * outputs + at] = static_cast<float>(sum);
      }
  return nullptr;
}

constexpr PlainOperator kOperators[] = {
    {380, "Conv", SLUICE_WINDOW_ARGUMENTS "group:i=1", infer_conv},
    {381, "ConvInteger", SLUICE_WINDOW_ARGUMENTS "group:i=1", infer_integer},
    {382, "QLinearConv", SLUICE_WINDOW_ARGUMENTS "group:i=1", infer_qlinear},
    {383, "ConvTranspose", SLUICE_WINDOW_ARGUMENTS "group:i=1 output_padding:I output_shape:I", infer_transposed},
    {384, "Col2Im", SLUICE_WINDOW_ARGUMENTS "image_shape:I@1 block_shape:I@2", infer_columns, nullptr, 1, bound_stated},
    {385, "DeformConv", SLUICE_WINDOW_ARGUMENTS "group:i=1 offset_group:i=1", infer_deform},
};

constexpr GenericKernel kKernels[] = {
    {"Conv", run_conv},      {"ConvInteger", run_integer}, {"QLinearConv", run_qlinear}, {"ConvTranspose", run_transposed},
    {"Col2Im", run_columns}, {"DeformConv", run_deform},
};

}  // namespace

std::span<const PlainOperator> convolve_operators() noexcept { return kOperators; }
std::span<const GenericKernel> convolve_kernels() noexcept { return kKernels; }

}  // namespace sluice::kernels::plain
