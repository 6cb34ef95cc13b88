// Convolutions over any number of axes with weights of the run time or integers: the forms that kConv does not take.
#include "sluice/operators/generic/convolve.h"

#include "sluice/kernels/call.h"
#include "src/kernels/elementwise/product.h"
#include "src/kernels/generic/chains.h"
#include "src/kernels/plain/elements.h"
#include "src/kernels/plain/line_chains.h"
#include "src/kernels/plain/move.h"
#include "src/kernels/plain/pool_rows.h"
#include "src/kernels/plain/quantized.h"
#include "src/kernels/plain/table.h"
#include "src/kernels/plain/transposed_lines.h"
#include "src/kernels/plain/vectors.h"

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
      for (std::int64_t p = before_; p < std::min(before_ + step_, before_ + in_w_); ++p) {
        float* of_phase = to + place_of(p);
        for (std::int64_t i = p - before_; i < in_w_; i += step_) *of_phase++ = from[i];
      }
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

/// The same with the last axes as one, where the last has one tap and no padding, and the one before no stride: longer lines.
Windows with_long_lines(Windows w) noexcept {
  while (w.axes > 1) {
    const auto last = static_cast<std::size_t>(w.axes - 1), merged = last - 1;
    const bool alone = w.kernel[last] == 1 && w.stride[last] == 1 && w.before[last] == 0 && w.after[last] == 0;
    if (!alone || w.stride[merged] != 1) break;  // nothing that depends on extents: scratch is asked for with the largest
    const std::int64_t row = w.in[last];
    w.in[merged] *= row;
    w.out[merged] *= row;
    w.dilation[merged] *= row;
    w.before[merged] *= row;
    w.after[merged] *= row;
    --w.axes;
  }
  return w;
}

std::uint64_t conv_scratch(const PlainNode& node) noexcept {
  Windows w;
  if (!convolution_of(node, 1, w) || !ConvolvedLines::takes(w)) return 0;
  return ConvolvedLines::scratch_bytes(node, with_long_lines(w), node.in(0).shape[1]);
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
  const Windows lines = with_long_lines(w);
  ConvolvedLines(lines, node.in(0).shape).run(node, out, weight, reinterpret_cast<float*>(scratch));
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

std::uint64_t transposed_scratch(const PlainNode& node) noexcept {
  Windows w;
  return transposed_of(node, w) && takes_transposed_lines(w) ? transposed_lines_scratch(node.in(0), w) : 0;
}

PlainRefusal run_transposed(const PlainNode& node, const PlainTensor& out, std::byte* scratch) noexcept {
  Windows w;
  transposed_of(node, w);
  const Shape& k = node.in(1).shape;
  const std::int64_t depth = k[0] / node.integer(6), step = k[1] * w.taps();
  const DenseWeight weight{.group_step = depth * step, .row_step = w.taps(), .step = step, .per_group = k[1], .depth = depth};
  if (!takes_transposed_lines(w)) {
    form_chains(node, out, w, weight, [&](std::int64_t at, std::int64_t tap) { return transposed_place(w, at, tap); });
    return nullptr;
  }
  std::fill_n(out.as<float>(), out.count(), 0.0f);
  run_transposed_lines(node, out, w, weight, reinterpret_cast<float*>(scratch));
  add_bias(node, out);
  return nullptr;
}

/// Adds one tap of all outputs to the image: what is left of the axes from `axis` on.
void add_tap(const Windows& w, std::int64_t tap, int axis, const float* from, float* to) noexcept {
  const auto a = static_cast<std::size_t>(axis);
  std::int64_t outputs = 1, inputs = 1, taps = 1;  // of the axes behind
  for (auto b = a + 1; b < static_cast<std::size_t>(w.axes); ++b) {
    outputs *= w.out[b];
    inputs *= w.in[b];
    taps *= w.kernel[b];
  }
  const std::int64_t k = tap / taps % w.kernel[a], first = k * w.dilation[a] - w.before[a], step = w.stride[a];
  const Interval<std::int64_t> taken = taken_by(w, a, k);
  if (axis + 1 < w.axes) {
    for (std::int64_t i = taken.begin; i < taken.end; ++i) add_tap(w, tap, axis + 1, from + i * outputs, to + (first + i * step) * inputs);
    return;
  }
  const auto add = [&](std::int64_t apart) {
    for (std::int64_t i = taken.begin; i < taken.end; ++i) to[first + i * apart] += from[i];
  };
  step == 1 ? add(1) : step == 2 ? add(2) : add(step);
}

PlainRefusal run_columns(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  Windows w;
  columns_of(node, w);
  const std::int64_t planes = out.shape[0] * out.shape[1], taps = w.taps(), outputs = w.outputs(), inputs = w.inputs();
  const auto* from = node.in(0).as<const float>();
  std::fill_n(out.as<float>(), out.count(), 0.0f);
  Glances glances;
  for (std::int64_t p = 0; p < planes; ++p)
    for (std::int64_t tap = 0; tap < taps && !glances.over(outputs); ++tap, from += outputs)
      add_tap(w, tap, 0, from, out.as<float>() + p * inputs);
  return nullptr;
}

/// Outputs of a deformed convolution whose sampled inputs are formed at once: [channel of the group][tap][output].
constexpr std::int64_t kDeformOutputs = 64;

/// Where the taps of kSampleLanes outputs lie: bilinear, zero outside, times the mask.
class DeformTaps {
 public:
  DeformTaps(const PlainNode& node, const Windows& w) noexcept : node_(node), w_(w) {
    places_.fill(-1);  // lanes behind the last output are read too
    weights_.fill(0);
  }

  /// Tap `tap` of outputs [first, first + count), as the offsets of plane `offset` move it.
  SampleTaps of(std::int64_t offset, std::int64_t tap, std::int64_t first, std::int64_t count) noexcept {
    const std::int64_t outputs = w_.outputs();
    const float* const moves = node_.in(2).as<const float>() + offset * 2 * outputs;
    const float* const masks = node_.has(4) ? node_.in(4).as<const float>() + offset * outputs : nullptr;
    const std::int64_t tap_row = tap / w_.kernel[1] * w_.dilation[0] - w_.before[0];
    const std::int64_t tap_column = tap % w_.kernel[1] * w_.dilation[1] - w_.before[1];
    std::int64_t y = first / w_.out[1], x = first % w_.out[1] - 1;
    for (std::int64_t lane = 0; lane < count; ++lane) {
      const std::int64_t at = first + lane;
      if (++x == w_.out[1]) x = 0, ++y;
      const std::int64_t row = y * w_.stride[0] + tap_row, column = x * w_.stride[1] + tap_column;
      const double mask = masks != nullptr ? masks[at] : 1.0f;
      set(static_cast<std::size_t>(lane), static_cast<double>(row) + moves[at], static_cast<double>(column) + moves[outputs + at], mask);
    }
    return {places_.data(), weights_.data(), 4};
  }

 private:
  void set(std::size_t lane, double y, double x, double mask) noexcept {
    const auto height = static_cast<double>(w_.in[0]), width = static_cast<double>(w_.in[1]);
    const bool inside = y > -1 && x > -1 && y < height && x < width;
    const auto floor_of = [](double v) {
      return static_cast<std::int64_t>(v) - (v < static_cast<double>(static_cast<std::int64_t>(v)) ? 1 : 0);
    };
    const std::int64_t top = inside ? floor_of(y) : -2, left = inside ? floor_of(x) : -2;
    const double dy = inside ? y - static_cast<double>(top) : 0, dx = inside ? x - static_cast<double>(left) : 0;
    for (std::size_t corner = 0; corner < 4; ++corner) {
      const std::int64_t r = top + static_cast<std::int64_t>(corner / 2), c = left + static_cast<std::int64_t>(corner % 2);
      const bool there = r >= 0 && r < w_.in[0] && c >= 0 && c < w_.in[1];
      const std::size_t i = corner * kSampleLanes + lane;
      places_[i] = there ? static_cast<std::int32_t>(r * w_.in[1] + c) : -1;
      weights_[i] = there ? (corner / 2 != 0 ? dy : 1 - dy) * (corner % 2 != 0 ? dx : 1 - dx) * mask : 0;
    }
  }

  const PlainNode& node_;
  const Windows& w_;
  std::array<std::int32_t, 4 * kSampleLanes> places_;
  std::array<double, 4 * kSampleLanes> weights_;
};

/// Are channels the lanes of samples? Then kSampleChannels of them, which have the same offsets, lie as pixels do.
bool deforms_pixels(const PlainNode& node) noexcept {
  const std::int64_t depth = node.in(1).shape[1], groups = node.integer(6), offset_groups = node.integer(7);
  const bool whole = depth % kSampleChannels == 0 || (groups == 1 && 2 * depth > kSampleChannels);
  return whole && (offset_groups == 1 || node.in(0).shape[1] / offset_groups % kSampleChannels == 0);
}

/// Columns; behind them, where channels are the lanes, a tile of samples and the image's planes as pixels, kSampleChannels at a time.
std::uint64_t deform_scratch(const PlainNode& node) noexcept {
  Windows w;
  if (!convolution_of(node, 1, w)) return 0;
  std::int64_t floats = node.in(1).shape[1] * w.taps() * kDeformOutputs;
  if (deforms_pixels(node)) floats += kSampleChannels * (kSampleLanes + ceil_div(node.in(0).shape[1], kSampleChannels) * w.inputs());
  return static_cast<std::uint64_t>(floats) * sizeof(float);
}

/// Sampled inputs, then each output one chain (generic/chains.h) over channels and their taps, from the bias on.
class DeformedGroups {
 public:
  DeformedGroups(const PlainNode& node, const PlainTensor& out, const Windows& w, float* columns) noexcept
      : node_(node), out_(out), w_(w), columns_(columns), sampled_(node, w) {
    const Shape& k = node.in(1).shape;
    depth_ = k[1];
    per_group_ = k[0] / node.integer(6);
    per_offset_group_ = node.in(0).shape[1] / node.integer(7);
    of_pixels_ = deforms_pixels(node);
    tile_ = columns + depth_ * w.taps() * kDeformOutputs;
    pixels_ = tile_ + kSampleChannels * kSampleLanes;
  }

  /// Before outputs of image `n`.
  void begin(std::int64_t n) noexcept {
    const std::int64_t channels = node_.in(0).shape[1], inputs = w_.inputs();
    for (std::int64_t c = 0; of_pixels_ && c < channels; c += kSampleChannels) {
      const std::int64_t some = std::min(kSampleChannels, channels - c);
      if (some < kSampleChannels) std::fill_n(pixels_ + c * inputs, inputs * kSampleChannels, 0.0f);
      turn_floats(node_.in(0).as<const float>() + (n * channels + c) * inputs, inputs, some, pixels_ + c * inputs, kSampleChannels, inputs);
    }
  }

  /// Outputs [first, first + count) of a group, count <= kDeformOutputs.
  void run(std::int64_t n, std::int64_t group, std::int64_t first, std::int64_t count) noexcept {
    for (std::int64_t tap = 0; tap < w_.taps(); ++tap)
      for (std::int64_t i = 0; i < count; i += kSampleLanes) sample(n, group, tap, first, i, std::min(kSampleLanes, count - i));
    const std::int64_t channels = out_.shape[1], outputs = w_.outputs(), products = depth_ * w_.taps();
    for (std::int64_t m = group * per_group_; m < (group + 1) * per_group_; m += elementwise::kMaxProductRows) {
      elementwise::ProductTile tile{.right = columns_, .right_pitch = kDeformOutputs, .depth = products, .n = count, .adds = true};
      for (; tile.rows < std::min<std::int64_t>(elementwise::kMaxProductRows, (group + 1) * per_group_ - m); ++tile.rows) {
        tile.left[tile.rows] = node_.in(1).as<const float>() + (m + tile.rows) * products;
        tile.out[tile.rows] = out_.as<float>() + (n * channels + m + tile.rows) * outputs + first;
        std::fill_n(tile.out[tile.rows], count, node_.has(3) ? node_.in(3).as<const float>()[m + tile.rows] : 0.0f);
      }
      product_(tile);
    }
  }

 private:
  void sample(std::int64_t n, std::int64_t group, std::int64_t tap, std::int64_t first, std::int64_t i, std::int64_t count) noexcept {
    SampleTaps taps;
    std::int64_t known = -1;
    for (std::int64_t c = 0; c < depth_; ++c) {
      const std::int64_t channel = group * depth_ + c, offsets = n * node_.integer(7) + channel / per_offset_group_;
      if (offsets != known) taps = sampled_.of(offsets * w_.taps() + tap, tap, first + i, count);
      known = offsets;
      float* const to = columns_ + (c * w_.taps() + tap) * kDeformOutputs + i;
      if (of_pixels_) {
        vectors_.sample_pixels(taps, pixels_ + channel * w_.inputs(), tile_, count);
        turn_floats(tile_, kSampleChannels, count, to, w_.taps() * kDeformOutputs, std::min(kSampleChannels, depth_ - c));
        c += kSampleChannels - 1;
        continue;
      }
      vectors_.sample(taps, node_.in(0).as<const float>() + (n * node_.in(0).shape[1] + channel) * w_.inputs(), to, count);
    }
  }

  const PlainNode& node_;
  const PlainTensor& out_;
  const Windows& w_;
  float* const columns_;
  float *tile_ = nullptr, *pixels_ = nullptr;
  bool of_pixels_ = false;
  DeformTaps sampled_;
  std::int64_t depth_ = 0, per_group_ = 0, per_offset_group_ = 0;
  const VectorTable& vectors_ = vector_table(active_isa());
  const elementwise::ProductRun product_ = elementwise::product_run(active_isa());
};

PlainRefusal run_deform(const PlainNode& node, const PlainTensor& out, std::byte* scratch) noexcept {
  Windows w;
  convolution_of(node, 1, w);
  if (w.inputs() > INT32_MAX) return kWrongShape;
  DeformedGroups groups(node, out, w, reinterpret_cast<float*>(scratch));
  const std::int64_t outputs = w.outputs(), work = node.in(1).count() / std::max<std::int64_t>(1, node.integer(6)) * kDeformOutputs / 8;
  Glances glances;
  for (std::int64_t n = 0; n < out.shape[0]; ++n) {
    groups.begin(n);
    for (std::int64_t group = 0; group < node.integer(6); ++group)
      for (std::int64_t first = 0; first < outputs && !glances.over(work); first += kDeformOutputs)
        groups.run(n, group, first, std::min(kDeformOutputs, outputs - first));
  }
  return nullptr;
}

constexpr GenericKernel kConvolveKernels[] = {
    {"Conv", run_conv, conv_scratch},  {"ConvInteger", run_conv_integer},
    {"QLinearConv", run_qlinear_conv}, {"ConvTranspose", run_transposed, transposed_scratch},
    {"Col2Im", run_columns},           {"DeformConv", run_deform, deform_scratch},
};

}  // namespace

std::span<const GenericKernel> convolve_kernels() noexcept { return kConvolveKernels; }

}  // namespace sluice::kernels::plain
