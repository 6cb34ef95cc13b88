// Bytes that are made real only to become bytes of another scale are rounded once, to a scale for both:
//
//     x -> Q1 -> DQ1 -> Q2 -> DQ2          =>     x -> Q -> DQ
//
// Exporters write such pairs around what does nothing at run time (Dropout), with scales that differ by what each calibration saw. The range
// of Q is what both ranges have in common, so it clips where the two clipped, and its steps are no coarser than theirs: the result is at most
// one and a half steps of the coarser scale from that of the two roundings. ONNX Runtime does the same, with the same numbers.
#include <algorithm>
#include <cmath>

#include "src/importer/rewrite/linear.h"
#include "src/importer/rewrite/rewrite.h"

namespace sluice::importer {
namespace {

constexpr float kLast = 255.0f;

/// The scale of the bytes that stand for the reals which both scales have. Zero points are those of u8 (linear.h); rounding them is left to
/// the file's own type, which `is_signed` says. Nothing: the ranges share too little.
std::optional<ByteScale> common_scale(const ByteScale& a, const ByteScale& b, bool is_signed) {
  if (a == b) return a;
  const auto least = [](const ByteScale& s) { return static_cast<float>(-s.zero) * s.scale; };
  const auto most = [](const ByteScale& s) { return (kLast - static_cast<float>(s.zero)) * s.scale; };
  const float low = std::max(least(a), least(b)), high = std::min(most(a), most(b));
  const float scale = (high - low) / kLast, first = is_signed ? -128.0f : 0.0f;
  if (!std::isnormal(scale) || scale < 0.0f) return std::nullopt;
  return ByteScale{scale, static_cast<std::int32_t>(std::round(first - low / scale) - first)};
}

class MergeQuantisers {
 public:
  explicit MergeQuantisers(Draft& draft) : draft_(draft), uses_(draft) {}

  /// In sweeps, as ONNX Runtime does it: of four pairs the first two, the last two, and then what became of them.
  void run() {
    for (bool merged = true; merged;) {
      merged = false;
      for (std::size_t n = 0; n < draft_.nodes.size(); ++n) merged |= merge_after(n);
    }
  }

 private:
  DType type_of(const DraftNode& quantiser) const { return draft_.value(quantiser.output).dtype; }

  /// A QuantizeLinear or DequantizeLinear whose scale and zero point can be replaced.
  bool replaceable(std::size_t n) const {
    const DraftNode& node = draft_.nodes[n];
    return !node.dead && node.inputs.size() == 3 && byte_scale_of(draft_, node).has_value() &&
           draft_.value(node.inputs[1]).constant->dtype == DType::kF32;
  }

  /// The node that alone reads a value and makes bytes real, or reals bytes, as `like` does.
  std::optional<std::size_t> only_reader(ValueId value) const {
    if (!uses_.single_reader(value)) return std::nullopt;
    const std::size_t reader = uses_.readers[value.index()][0];
    return replaceable(reader) && draft_.nodes[reader].inputs[0] == value ? std::optional(reader) : std::nullopt;
  }

  /// Whether all readers of what `quantiser` makes dequantise it by its own scale.
  bool only_dequantised(const DraftNode& quantiser) const {
    const std::vector<std::size_t>& readers = uses_.readers[quantiser.output.index()];
    const auto scale = byte_scale_of(draft_, quantiser);
    return !uses_.is_output[quantiser.output.index()] && !readers.empty() &&
           std::all_of(readers.begin(), readers.end(), [&](std::size_t reader) {
             return replaceable(reader) && is_dequantise(draft_.nodes[reader]) && byte_scale_of(draft_, draft_.nodes[reader]) == scale;
           });
  }

  /// Node `n` is Q1 of the picture above, and the rest is as it shows: then Q2's readers read what Q1 makes.
  bool merge_after(std::size_t n) {
    if (!replaceable(n) || !is_quantise(draft_.nodes[n])) return false;
    const auto dequantiser = only_reader(draft_.nodes[n].output);
    if (!dequantiser || !is_dequantise(draft_.nodes[*dequantiser])) return false;
    const auto second = only_reader(draft_.nodes[*dequantiser].output);
    if (!second || !is_quantise(draft_.nodes[*second])) return false;
    DraftNode &q1 = draft_.nodes[n], &dq1 = draft_.nodes[*dequantiser], &q2 = draft_.nodes[*second];
    const auto scale = byte_scale_of(draft_, q1);
    if (byte_scale_of(draft_, dq1) != scale || type_of(q1) != type_of(q2) || !only_dequantised(q2)) return false;
    const auto common = common_scale(*scale, *byte_scale_of(draft_, q2), type_of(q1) == DType::kI8);
    if (!common) return false;
    dq1.dead = q2.dead = true;
    std::vector<std::size_t>& readers = uses_.readers[q1.output.index()];
    readers = uses_.readers[q2.output.index()];
    const ValueId bytes = q1.output;
    for (const std::size_t reader : readers) draft_.nodes[reader].inputs[0] = bytes;
    if (*common != *scale || *common != *byte_scale_of(draft_, q2)) rescale(n, readers, *common);
    return true;
  }

  void rescale(std::size_t quantiser, const std::vector<std::size_t>& dequantisers, const ByteScale& scale) {
    const DType type = type_of(draft_.nodes[quantiser]);
    const std::int64_t zero = scale.zero - (type == DType::kI8 ? 128 : 0);
    const ValueId factor = add_constant(draft_.nodes[quantiser].name + ":scale", make_fill(Shape{}, scale.scale));
    const ValueId point = add_constant(draft_.nodes[quantiser].name + ":zero", make_constant(Shape{}, std::span(&zero, 1), type));
    const auto set = [&](DraftNode& node) { node.inputs[1] = factor, node.inputs[2] = point; };
    set(draft_.nodes[quantiser]);
    for (const std::size_t n : dequantisers) set(draft_.nodes[n]);
  }

  ValueId add_constant(std::string name, Constant constant) {
    Value value;
    value.name = std::move(name);
    value.dtype = constant.dtype;
    value.shape = constant.shape;
    value.constant = std::move(constant);
    return draft_.add_value(std::move(value));
  }

  Draft& draft_;
  Uses uses_;  // of values that were there before
};

}  // namespace

void merge_quantisers(Draft& draft) { MergeQuantisers(draft).run(); }

}  // namespace sluice::importer
