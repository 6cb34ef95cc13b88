// Convolutions over any number of axes with weights of the run time or integers: the forms that kConv does not take.
#include "sluice/operators/generic/convolve.h"

#include "sluice/kernels/call.h"
#include "src/kernels/generic/chains.h"
#include "src/kernels/plain/elements.h"
#include "src/kernels/plain/line_chains.h"
#include "src/kernels/plain/quantized.h"
#include "src/kernels/plain/table.h"

namespace sluice::kernels::plain {
using namespace operators::generic::convolve;
namespace {

/// Calls body(image, output channel, position, sum over taps and channels of term(x index, w index)).
template <class Sum, class Term, class Body>
void convolve(const PlainNode& node, int weight, const Windows& w, const Term& term, const Body& body) noexcept {
  const Shape &x = node.in(0).shape, &k = node.in(weight).shape;
  const std::int64_t outputs = w.outputs(), inputs = w.inputs(), taps = w.taps(), depth = k[1], per_group = k[0] / node.integer(6);
  Glances glances;
  for (std::int64_t n = 0; n < x[0]; ++n)
    for (std::int64_t m = 0; m < k[0]; ++m)
      for (std::int64_t at = 0; at < outputs; ++at) {
        Sum sum = 0;
        for (std::int64_t tap = 0; tap < taps; ++tap) {
          if (glances.over(1 + depth)) return;
          const std::int64_t place = tap_place(w, at, tap);
          if (place < 0) continue;
          for (std::int64_t c = 0; c < depth; ++c)
            sum += term((n * x[1] + m / per_group * depth + c) * inputs + place, (m * depth + c) * taps + tap);
        }
        body((n * k[0] + m) * outputs + at, m, sum);
      }
}

/// How the values of a weight lie that is no matrix of panels: those of output channel m of a group begin at m * row_step, those of its
/// input channels are `step` apart, its taps neighbours.
struct DenseWeight {
  std::int64_t group_step = 0;  // from the weights of one group to those of the next
  std::int64_t row_step = 0, step = 0;
  std::int64_t per_group = 0, depth = 0;  // output and input channels of a group
};

void add_bias(const PlainNode& node, const PlainTensor& out) noexcept {
  if (!node.has(2)) return;
  const std::int64_t channels = out.shape[1], outputs = out.shape.count(2, out.shape.rank());
  float* to = out.as<float>();
  for (std::int64_t plane = 0; plane < out.shape[0] * channels; ++plane)
    for (std::int64_t at = 0; at < outputs; ++at) *to++ += node.in(2).as<const float>()[plane % channels];
}

/// Every output one chain (generic/chains.h): taps in their order, channels rising within each; then the bias. `place_of(at, tap)`: the
/// input's place, or -1.
template <class PlaceOf>
void form_chains(const PlainNode& node, const PlainTensor& out, const Windows& w, const DenseWeight& weight,
                 const PlaceOf& place_of) noexcept {
  const std::int64_t outputs = w.outputs(), inputs = w.inputs(), taps = w.taps();
  const std::int64_t images = out.shape[0], channels = out.shape[1], groups = channels / weight.per_group;
  Glances glances;
  std::fill_n(out.as<float>(), out.count(), 0.0f);
  for (std::int64_t n = 0; n < images; ++n)
    for (std::int64_t at = 0; at < outputs; ++at)
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        const std::int64_t place = place_of(at, tap);
        if (glances.over(place < 0 ? 1 : 1 + channels * weight.depth)) return;
        if (place < 0) continue;
        for (std::int64_t g = 0; g < groups; ++g)
          generic::run({.x = {node.in(0).as<const float>() + (n * groups + g) * weight.depth * inputs + place, inputs},
                        .w = {node.in(1).as<const float>() + g * weight.group_step + tap, weight.step},
                        .depth = weight.depth,
                        .count = weight.per_group,
                        .row_step = weight.row_step,
                        .sums = out.as<float>() + (n * channels + g * weight.per_group) * outputs + at,
                        .sum_step = outputs});
      }
  add_bias(node, out);
}

/// Strides and paddings along a row up to here are copied.
constexpr std::int64_t kMostLineStride = 1024, kMostLinePadding = 4096;

/// The same for convolutions, whose rows are lines of neighbouring sums (line_chains.h). Rows of the input are copied with their padding,
/// so that all taps of a row's outputs are there: a product with zero changes no sum of finite weights. Of a stride s the copy has the
/// columns 0, s, 2 s, ... first, then 1, s + 1, ...: what a tap of neighbouring outputs meets are neighbours.
class ConvolvedLines {
 public:
  ConvolvedLines(const Windows& w, const Shape& x) noexcept : w_(w), outer_(w), channels_(x[1]) {
    const std::size_t last = static_cast<std::size_t>(--outer_.axes);
    before_ = w.before[last];
    in_w_ = w.in[last];
    out_w_ = w.out[last];
    step_ = w.stride[last];
    kernel_w_ = w.kernel[last];
    dilation_w_ = w.dilation[last];
    phase_ = ceil_div(std::max(before_ + in_w_, (out_w_ - 1) * step_ + (kernel_w_ - 1) * dilation_w_ + 1), step_);
    row_ = phase_ * step_;
    plane_ = outer_.inputs() * row_;
  }

  static bool takes(const Windows& w) noexcept {
    const std::size_t last = static_cast<std::size_t>(w.axes - 1);
    return w.stride[last] <= kMostLineStride && w.before[last] + w.after[last] <= kMostLinePadding;
  }
  /// Room for one image, where its rows may be copied: of extents up to these, for which other padding may follow from auto_pad.
  static std::uint64_t scratch_bytes(const PlainNode& node, const Windows& w, std::int64_t channels) noexcept {
    const std::size_t last = static_cast<std::size_t>(w.axes - 1);
    const bool fits = node.integer(4) == kNotSet || node.integer(4) == kValid;
    const std::int64_t reach = fits ? 0 : (w.kernel[last] - 1) * w.dilation[last], over = node.integer(5) != 0 ? w.stride[last] : 0;
    const std::int64_t padding = w.stride[last] - 1 + w.before[last] + w.after[last] + reach + over;
    if (padding == 0) return 0;
    return static_cast<std::uint64_t>(channels * (w.inputs() / std::max<std::int64_t>(1, w.in[last])) * (w.in[last] + padding)) *
           sizeof(float);
  }

  void run(const PlainNode& node, const PlainTensor& out, const DenseWeight& weight, float* scratch) const noexcept {
    ThreadPool* const pool = node.call() == nullptr ? nullptr : node.call()->pool;
    const auto for_all = [&](std::int64_t count, const auto& body) {
      if (pool != nullptr) return parallel_for(*pool, count, [&](std::int64_t i, int) { body(i); });
      for (std::int64_t i = 0; i < count; ++i) body(i);
    };
    const std::int64_t groups = out.shape[1] / weight.per_group, blocks = ceil_div(weight.per_group, kOutputs);
    const Glances none;  // of this thread's run, for all that work for it
    for (std::int64_t n = 0; n < out.shape[0]; ++n) {
      const float* const image = node.in(0).as<const float>() + n * channels_ * outer_.inputs() * in_w_;
      if (copies()) for_all(channels_, [&](std::int64_t c) { pad(image, c, scratch); });
      for_all(groups * blocks, [&](std::int64_t unit) {
        const std::int64_t group = unit / blocks, first = unit % blocks * kOutputs;
        Glances glances = none;
        LineChains line{.x = (copies() ? scratch : image) + group * weight.depth * plane_,
                        .x_channel = plane_,
                        .w = node.in(1).as<const float>() + group * weight.group_step + first * weight.row_step,
                        .w_row = weight.row_step,
                        .w_channel = weight.step,
                        .channels = weight.depth,
                        .sums = out.as<float>() + (n * out.shape[1] + group * weight.per_group + first) * w_.outputs(),
                        .sum_row = w_.outputs(),
                        .outputs = std::min(kOutputs, weight.per_group - first),
                        .count = out_w_};
        for (std::int64_t row = 0; row < outer_.outputs(); ++row, line.sums += out_w_)
          if (!add_row(row, line, glances)) return;
      });
    }
  }

 private:
  static constexpr std::int64_t kOutputs = 8;  // of a unit
  static constexpr std::int64_t kTaps = 64;    // of a call, and products of it, where there are several taps
  static constexpr std::int64_t kVector = 8;   // products that are one operation
  static constexpr std::int64_t kMostOfCall = kVector * Glances::kWork;

  bool copies() const noexcept { return step_ > 1 || row_ != in_w_; }
  /// Where column `p` of a padded row lies in its copy.
  std::int64_t place_of(std::int64_t p) const noexcept { return step_ == 1 ? p : p % step_ * phase_ + p / step_; }

  void pad(const float* image, std::int64_t channel, float* scratch) const noexcept {
    const std::int64_t rows = outer_.inputs();
    const float* from = image + channel * rows * in_w_;
    float* to = scratch + channel * plane_;
    for (std::int64_t r = 0; r < rows; ++r, from += in_w_, to += row_) {
      if (step_ == 1) {
        std::fill_n(to, before_, 0.0f);
        std::copy_n(from, in_w_, to + before_);
        std::fill(to + before_ + in_w_, to + row_, 0.0f);
        continue;
      }
      std::fill_n(to, row_, 0.0f);
      for (std::int64_t p = before_; p < before_ + in_w_; ++p) to[place_of(p)] = from[p - before_];
    }
  }

  /// False: the run is to end.
  bool add_row(std::int64_t row, LineChains line, Glances& glances) const noexcept {
    static const LineChainsRun run_line = line_chains_run(active_isa());
    std::int64_t offsets[kTaps], places[kTaps];
    const std::int64_t of_tap = line.channels * line.outputs * line.count;
    const std::int64_t together = std::clamp<std::int64_t>(kMostOfCall / std::max<std::int64_t>(1, of_tap), 1, kTaps);
    line.offsets = offsets;
    line.places = places;
    line.taps = 0;
    for (std::int64_t tap = 0; tap < outer_.taps(); ++tap) {
      const std::int64_t place = tap_place(outer_, row, tap);
      if (glances.over(1)) return false;
      for (std::int64_t x = 0; place >= 0 && x < kernel_w_; ++x) {
        offsets[line.taps] = place * row_ + place_of(x * dilation_w_);
        places[line.taps] = tap * kernel_w_ + x;
        if (++line.taps == together) {
          if (glances.over(together * of_tap / kVector)) return false;
          run_line(line);
          line.taps = 0;
        }
      }
    }
    if (line.taps > 0) run_line(line);
    return !glances.over(line.taps * of_tap / kVector);
  }

  const Windows& w_;
  Windows outer_;  // all axes but the last
  std::int64_t channels_, before_, in_w_, out_w_, step_, kernel_w_, dilation_w_;
  std::int64_t phase_, row_, plane_;  // of the padded input, in floats
};

std::uint64_t conv_scratch(const PlainNode& node) noexcept {
  Windows w;
  if (!convolution_of(node, 1, w) || !ConvolvedLines::takes(w)) return 0;
  return ConvolvedLines::scratch_bytes(node, w, node.in(0).shape[1]);
}

PlainRefusal run_conv(const PlainNode& node, const PlainTensor& out, std::byte* scratch) noexcept {
  Windows w;
  convolution_of(node, 1, w);
  const Shape& k = node.in(1).shape;
  const std::int64_t per_group = k[0] / node.integer(6), row = k[1] * w.taps();
  const DenseWeight weight{.group_step = per_group * row, .row_step = row, .step = w.taps(), .per_group = per_group, .depth = k[1]};
  if (!ConvolvedLines::takes(w)) {
    form_chains(node, out, w, weight, [&](std::int64_t at, std::int64_t tap) { return tap_place(w, at, tap); });
    return nullptr;
  }
  std::fill_n(out.as<float>(), out.count(), 0.0f);
  ConvolvedLines(w, node.in(0).shape).run(node, out, weight, reinterpret_cast<float*>(scratch));
  add_bias(node, out);
  return nullptr;
}

PlainRefusal run_conv_integer(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
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

PlainRefusal run_qlinear_conv(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
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

/// Where tap `tap` of output `at` meets the input, or -1: at (output + padding - tap) / stride on each axis, where that is whole.
std::int64_t transposed_place(const Windows& w, std::int64_t at, std::int64_t tap) noexcept {
  std::int64_t place = 0, scale = 1;
  for (int axis = w.axes - 1; axis >= 0; --axis) {
    const auto a = static_cast<std::size_t>(axis);
    const std::int64_t i = at % w.out[a] + w.before[a] - tap % w.kernel[a] * w.dilation[a];
    at /= w.out[a];
    tap /= w.kernel[a];
    if (i < 0 || i % w.stride[a] != 0 || i / w.stride[a] >= w.in[a]) return -1;
    place += i / w.stride[a] * scale;
    scale *= w.in[a];
  }
  return place;
}

PlainRefusal run_transposed(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  Windows w;
  transposed_of(node, w);
  const Shape& k = node.in(1).shape;
  const std::int64_t depth = k[0] / node.integer(6), step = k[1] * w.taps();
  const DenseWeight weight{.group_step = depth * step, .row_step = w.taps(), .step = step, .per_group = k[1], .depth = depth};
  form_chains(node, out, w, weight, [&](std::int64_t at, std::int64_t tap) { return transposed_place(w, at, tap); });
  return nullptr;
}

PlainRefusal run_columns(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  Windows w;
  columns_of(node, w);
  const std::int64_t planes = out.shape[0] * out.shape[1], taps = w.taps(), outputs = w.outputs(), inputs = w.inputs();
  std::fill_n(out.as<float>(), out.count(), 0.0f);
  Glances glances;
  for (std::int64_t p = 0; p < planes; ++p)
    for (std::int64_t tap = 0; tap < taps && !glances.over(outputs); ++tap)
      for (std::int64_t at = 0; at < outputs; ++at)
        if (const std::int64_t place = tap_place(w, at, tap); place >= 0)
          out.as<float>()[p * inputs + place] += node.in(0).as<const float>()[(p * taps + tap) * outputs + at];
  return nullptr;
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
  Glances glances;
  for (std::int64_t n = 0; n < x[0]; ++n)
    for (std::int64_t m = 0; m < k[0]; ++m)
      for (std::int64_t at = 0; at < outputs; ++at) {
        double sum = node.has(3) ? node.in(3).as<const float>()[m] : 0.0f;
        for (std::int64_t tap = 0; tap < taps && !glances.over(4 * depth); ++tap)
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

constexpr GenericKernel kConvolveKernels[] = {
    {"Conv", run_conv, conv_scratch},  {"ConvInteger", run_conv_integer}, {"QLinearConv", run_qlinear_conv},
    {"ConvTranspose", run_transposed}, {"Col2Im", run_columns},           {"DeformConv", run_deform},
};

}  // namespace

std::span<const GenericKernel> convolve_kernels() noexcept { return kConvolveKernels; }

}  // namespace sluice::kernels::plain
