// Signals: Fourier transforms, windows, the mel scale, sequences of words.
#include "sluice/operators/generic/signal.h"

#include <bit>
#include <numbers>

#include "src/kernels/plain/elements.h"
#include "src/kernels/plain/fourier.h"
#include "src/kernels/plain/table.h"

namespace sluice::kernels::plain {
using namespace operators::generic::signal;
namespace {

constexpr double kTurn = 2 * std::numbers::pi;

/// Tables and values of the longest transform that there may be. Where the length comes at run time: up to twice the longest axis, rounded
/// up to a power of two.
std::uint64_t dft_scratch(const PlainNode& node) noexcept {
  Transform t;
  if (!node.has(0)) return 0;
  const Shape& in = node.in(0).shape;
  const bool known = transform_of(node, t);
  if (known && !(node.late() && !node.given(0))) return fourier_scratch(t.length);
  std::uint64_t longest = 1;
  for (int axis = 0; axis + 1 < in.rank(); ++axis) longest = std::max(longest, static_cast<std::uint64_t>(in[axis]));
  return fourier_scratch(static_cast<std::int64_t>(2 * std::bit_ceil(std::min<std::uint64_t>(longest, 1u << 23))));
}

PlainRefusal run_dft(const PlainNode& node, const PlainTensor& out, std::byte* scratch) noexcept {
  Transform t;
  transform_of(node, t);
  const PlainTensor& x = node.in(0);
  const std::int64_t parts = x.shape.back(), made_parts = out.shape.back();
  const std::int64_t outer = x.shape.count(0, t.axis), inner = x.shape.count(t.axis + 1, x.shape.rank() - 1);
  const auto value = [&](std::int64_t signal, std::int64_t n) -> Complex {
    // A real signal's upper half is the lower half mirrored.
    const bool mirrored = t.real_result && n >= t.taken;
    const std::int64_t from = mirrored ? t.length - n : n;
    if (from >= t.taken || from < 0) return {};
    const float* p = x.as<const float>() + ((signal / inner * t.taken + from) * inner + signal % inner) * parts;
    return {p[0], parts == 2 ? (mirrored ? -p[1] : p[1]) : 0.0};
  };
  const auto result = [&](std::int64_t signal, std::int64_t k, Complex y) {
    float* to = out.as<float>() + ((signal / inner * t.made + k) * inner + signal % inner) * made_parts;
    to[0] = static_cast<float>(y.re);
    if (made_parts == 2) to[1] = static_cast<float>(y.im);
  };
  FourierBatch(t.length, t.inverse, scratch).run(outer * inner, parts == 1, t.made, value, result);
  return nullptr;
}

/// Where the frames' length comes at run time, it is at most the signal's.
std::uint64_t stft_scratch(const PlainNode& node) noexcept {
  if (!node.has(0) || node.in(0).shape.rank() < 2) return 0;
  const std::int64_t signal = node.in(0).shape[1];
  const std::int64_t length = node.given(1) ? node.integer(1) : node.has(2) ? node.in(2).count() : signal;
  return fourier_scratch(std::clamp<std::int64_t>(length, 1, std::max<std::int64_t>(signal, 1)));
}

PlainRefusal run_stft(const PlainNode& node, const PlainTensor& out, std::byte* scratch) noexcept {
  Frames f;
  frames_of(node, f);
  const Shape& in = node.in(0).shape;
  const std::int64_t parts = in.rank() == 3 ? in[2] : 1;
  const float* const window = node.has(2) ? node.in(2).as<const float>() : nullptr;
  const auto value = [&](std::int64_t frame, std::int64_t n) -> Complex {
    const float* p = node.in(0).as<const float>() + (frame / f.count * in[1] + frame % f.count * f.step + n) * parts;
    const double weight = window != nullptr ? window[n] : 1.0;
    return {p[0] * weight, parts == 2 ? p[1] * weight : 0.0};
  };
  const auto result = [&](std::int64_t frame, std::int64_t k, Complex y) {
    float* to = out.as<float>() + (frame * f.bins + k) * 2;
    to[0] = static_cast<float>(y.re);
    to[1] = static_cast<float>(y.im);
  };
  FourierBatch(f.length, false, scratch).run(in[0] * f.count, parts == 1, f.bins, value, result);
  return nullptr;
}

PlainRefusal run_window(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const auto& w = *static_cast<const WindowTerms*>(node.op().detail);
  const std::int64_t size = node.integer(0);
  const double turns = static_cast<double>(node.integer(2) != 0 ? size : size - 1);
  for (std::int64_t i = 0; i < size; ++i) {
    const double angle = kTurn * static_cast<double>(i) / turns;
    out.as<float>()[i] = static_cast<float>(w.a0 - w.a1 * std::cos(angle) + w.a2 * std::cos(2 * angle));
  }
  return nullptr;
}

PlainRefusal run_mel(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const std::int64_t bins = node.integer(0), length = node.integer(1), rows = out.shape[0];
  const auto rate = static_cast<double>(node.integer(2));
  const auto mel = [](double hertz) { return 2595.0 * std::log10(1.0 + hertz / 700.0); };
  const double low = mel(node.real(3)), step = (mel(node.real(4)) - low) / static_cast<double>(bins + 2);
  // The spectrogram bin at which triangle edge i stands.
  const auto edge = [&](std::int64_t i) {
    const double hertz = 700.0 * (std::pow(10.0, (low + static_cast<double>(i) * step) / 2595.0) - 1.0);
    return std::clamp<std::int64_t>(whole(std::floor(static_cast<double>(length + 1) * hertz / rate)), 0, rows);
  };
  std::fill_n(out.as<float>(), out.count(), 0.0f);
  Glances glances;
  for (std::int64_t b = 0; b < bins && !glances.over(rows); ++b) {
    const std::int64_t first = edge(b), top = edge(b + 1), last = edge(b + 2);
    const auto set = [&](std::int64_t row, double value) {
      if (row < rows) out.as<float>()[row * bins + b] = static_cast<float>(value);
    };
    if (top == first) set(top, 1.0);
    for (std::int64_t row = first; top > first && row <= top; ++row)
      set(row, static_cast<double>(row - first) / static_cast<double>(top - first));
    for (std::int64_t row = top; last > top && row < last; ++row)
      set(row, static_cast<double>(last - row) / static_cast<double>(last - top));
  }
  return nullptr;
}

// ---- TfIdfVectorizer over integers. Counts of n-grams, their weights, or both. Arguments: max_gram_length, max_skip_count,
// min_gram_length, mode, ngram_counts, ngram_indexes, pool_int64s, weights.

enum TfIdfMode : std::int64_t { kTf = 0, kIdf = 1, kTfIdf = 2 };

/// Occurrences of the gram in the row, with `skip` values between neighbours.
std::int64_t occurrences(const PlainTensor& x, std::int64_t row, std::int64_t length, std::span<const std::int64_t> gram,
                         std::int64_t skip) noexcept {
  std::int64_t found = 0;
  const auto n = static_cast<std::int64_t>(gram.size());
  for (std::int64_t first = 0; first + (n - 1) * (skip + 1) < length; ++first) {
    bool same = true;
    for (std::int64_t i = 0; same && i < n; ++i)
      same = integer_at(x, row * length + first + i * (skip + 1)) == gram[static_cast<std::size_t>(i)];
    found += same ? 1 : 0;
  }
  return found;
}

PlainRefusal run_tf_idf(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const PlainTensor& x = node.in(0);
  const std::int64_t rows = x.shape.rank() == 1 ? 1 : x.shape[0], length = x.shape.back(), width = out.shape.back();
  const auto counts = node.list(4), places = node.list(5), pool = node.list(6);
  std::fill_n(out.as<float>(), out.count(), 0.0f);
  Glances glances;
  for (std::int64_t row = 0; row < rows; ++row) {
    std::size_t gram = 0;
    for (std::size_t n = 1; n <= counts.size(); ++n) {
      const auto end = static_cast<std::size_t>(n < counts.size() ? counts[n] : static_cast<std::int64_t>(pool.size()));
      for (auto at = static_cast<std::size_t>(counts[n - 1]); at < end; at += n, ++gram) {
        const auto size = static_cast<std::int64_t>(n);
        if (size < node.integer(2) || size > node.integer(0)) continue;
        std::int64_t found = 0;
        for (std::int64_t skip = 0; skip <= (n == 1 ? 0 : std::min(node.integer(1), length)); ++skip) {
          if (glances.over(length)) return kRunEnded;
          found += occurrences(x, row, length, pool.subspan(at, n), skip);
        }
        const double weight = node.given(7) ? node.real(7, gram) : 1.0;
        const std::int64_t mode = node.integer(3);
        out.as<float>()[row * width + places[gram]] = static_cast<float>(mode == kTf    ? static_cast<double>(found)
                                                                         : mode == kIdf ? (found > 0 ? weight : 0.0)
                                                                                        : static_cast<double>(found) * weight);
      }
    }
  }
  return nullptr;
}

constexpr GenericKernel kSignalKernels[] = {
    {"DFT", run_dft, dft_scratch},  {"STFT", run_stft, stft_scratch}, {"HannWindow", run_window},      {"HammingWindow", run_window},
    {"BlackmanWindow", run_window}, {"MelWeightMatrix", run_mel},     {"TfIdfVectorizer", run_tf_idf},
};

}  // namespace

std::span<const GenericKernel> signal_kernels() noexcept { return kSignalKernels; }

}  // namespace sluice::kernels::plain
