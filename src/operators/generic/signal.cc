// Signals: Fourier transforms, windows, the mel scale, sequences of words.
#include "sluice/operators/generic/signal.h"

#include <bit>
#include <numbers>

#include "src/operators/generic/table.h"

namespace sluice::operators::generic {
using namespace signal;
namespace {

PlainRefusal infer_dft(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  if (!is_f32(node.in(0).dtype)) return kWrongType;
  Transform t;
  if (!transform_of(node, t)) return kWrongArgument;
  out = {DType::kF32, node.in(0).shape};
  out.shape[t.axis] = t.made;
  out.shape[out.shape.rank() - 1] = t.real_result ? 1 : 2;
  return nullptr;
}

PlainRefusal infer_stft(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  if (!is_f32(node.in(0).dtype) || (node.has(2) && !is_f32(node.in(2).dtype))) return kWrongType;
  Frames f;
  if (!frames_of(node, f) || (node.has(2) && node.in(2).count() != f.length)) return kWrongArgument;
  out = {DType::kF32, Shape{node.in(0).shape[0], f.count, f.bins, 2}};
  return nullptr;
}

constexpr WindowTerms kHann{0.5, 0.5, 0}, kHamming{25.0 / 46.0, 1 - 25.0 / 46.0, 0}, kBlackman{0.42, 0.5, 0.08};

PlainRefusal infer_window(const PlainNode& node, PlainTensor& out) noexcept {
  const std::int64_t size = node.integer(0);
  if (!node.given(0) || size < 0 || size > (std::int64_t{1} << 28) || node.integer(1) != 1) return kWrongArgument;
  out = {DType::kF32, Shape{size}};
  return nullptr;
}

// ---- MelWeightMatrix

PlainRefusal infer_mel(const PlainNode& node, PlainTensor& out) noexcept {
  const std::int64_t bins = node.integer(0), length = node.integer(1);
  if (bins < 1 || length < 1 || bins > (1 << 20) || length > (1 << 20) || node.integer(2) < 1 || node.integer(5) != 1)
    return kWrongArgument;
  out = {DType::kF32, Shape{length / 2 + 1, bins}};
  return nullptr;
}

std::int64_t tf_idf_width(const PlainNode& node) noexcept {
  std::int64_t width = 0;
  for (const std::int64_t index : node.list(5)) width = std::max(width, index + 1);
  return width;
}

PlainRefusal infer_tf_idf(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  const Shape& in = node.in(0).shape;
  if (!is_index(node.in(0).dtype)) return kWrongType;
  if (in.rank() < 1 || in.rank() > 2) return kWrongRank;
  const auto counts = node.list(4), pool = node.list(6);
  if (counts.empty() || pool.empty() || node.integer(0) < 1 || node.integer(2) < 1 || node.integer(1) < 0 ||
      node.integer(2) > node.integer(0))
    return kWrongArgument;
  std::int64_t last = 0, grams = 0;
  for (std::size_t n = 0; n < counts.size(); ++n) {
    const std::int64_t end = n + 1 < counts.size() ? counts[n + 1] : static_cast<std::int64_t>(pool.size());
    if (counts[n] < last || end < counts[n] || end > static_cast<std::int64_t>(pool.size()) ||
        (end - counts[n]) % static_cast<std::int64_t>(n + 1) != 0)
      return kWrongArgument;
    grams += (end - counts[n]) / static_cast<std::int64_t>(n + 1);
    last = counts[n];
  }
  if (grams != static_cast<std::int64_t>(node.list(5).size())) return kWrongArgument;
  for (const std::int64_t index : node.list(5))
    if (index < 0 || index > (1 << 24)) return kWrongArgument;
  if (node.given(7) && node.list(7).size() != node.list(5).size()) return kWrongArgument;
  out.dtype = DType::kF32;
  out.shape = in.rank() == 1 ? Shape{tf_idf_width(node)} : Shape{in[0], tf_idf_width(node)};
  return nullptr;
}

constexpr std::string_view kWindowArguments = "size:i@0 output_datatype:i=1 periodic:i=1";

constexpr PlainOperator kSignalOperators[] = {
    {460, "DFT", "dft_length:i@1 axis_input:i@2 inverse:i=0 axis:i # onesided:i=0", infer_dft, nullptr, 1, bound_stated_f32},
    {461, "STFT", "frame_step:i@1 frame_length:i@3 onesided:i=1", infer_stft, nullptr, 1, bound_stated_f32},
    {462, "HannWindow", kWindowArguments, infer_window, &kHann, 1, bound_stated_f32},
    {463, "HammingWindow", kWindowArguments, infer_window, &kHamming, 1, bound_stated_f32},
    {464, "BlackmanWindow", kWindowArguments, infer_window, &kBlackman, 1, bound_stated_f32},
    {465, "MelWeightMatrix", "bins:i@0 length:i@1 rate:i@2 low:f@3 high:f@4 output_datatype:i=1", infer_mel, nullptr, 1, bound_stated_f32},
    {466, "TfIdfVectorizer",
     "max_gram_length:i=1 max_skip_count:i=0 min_gram_length:i=1 mode:s=TF|IDF|TFIDF ngram_counts:I ngram_indexes:I pool_int64s:I "
     "weights:F",
     infer_tf_idf},
};

}  // namespace

std::span<const PlainOperator> signal_operators() noexcept { return kSignalOperators; }

}  // namespace sluice::operators::generic
