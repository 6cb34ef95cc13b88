// A transposed convolution of few outputs as a convolution whose outputs are phases, and a move.
//
//     output y of an axis of stride s lies in phase p = y mod s at place q = y / s; it sums taps a = p + pad - s * u of inputs q + u
//
// All phases of a place read the same inputs, those from the least u to the greatest. So one convolution of stride 1 over these gives
// every phase as a channel, [phase of rows][phase of columns][output], and depth to space puts them where they belong. It gains where
// outputs are few: panels of 16 outputs are filled by phases that would else lie empty.
//
// With a stride of 1 there is one phase and nothing to move: the convolution with the kernel turned round, which has faster kernels, Winograd
// among them, where outputs are more than a few and the input is no smaller than the kernel.
//
// Two prices. Taps that a phase does not have are zeros: where an input is infinite or no number, outputs up to one place farther become
// NaN (docs/limits.md). And the move goes over the whole result, which no bands of rows take: with several phases results are small ones only,
// so that the smallest budgets stay.
#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "sluice/core/panels.h"
#include "sluice/core/transposed_sums.h"
#include "sluice/core/units.h"
#include "src/importer/rewrite/rewrite.h"

namespace sluice::importer {
namespace {

/// Of the result, in f32: so much may the smallest budget rise by.
constexpr std::int64_t kMostResultBytes = std::int64_t{512} << 10;

/// One spatial axis of a transposed convolution. `u` counts inputs from the place on, those before it negative.
struct PhaseAxis {
  std::int64_t in, out, kernel, stride, pad;

  /// The least and the greatest u of any phase.
  std::int64_t first() const noexcept { return -floor_div(kernel - 1 - pad, stride); }
  std::int64_t last() const noexcept { return floor_div(stride - 1 + pad, stride); }
  std::int64_t taps() const noexcept { return last() - first() + 1; }
  std::int64_t places() const noexcept { return out / stride; }
  std::int64_t pad_before() const noexcept { return -first(); }
  std::int64_t pad_after() const noexcept { return places() + last() - in; }
  /// Each phase has as many places, whatever the input's extent is, and no input is left out.
  bool fits() const noexcept { return out % stride == 0 && first() <= 0 && last() >= 0 && pad_after() >= 0; }
  /// The tap that a phase has at u = first() + t; outside [0, kernel): none.
  std::int64_t tap(std::int64_t phase, std::int64_t t) const noexcept { return phase + pad - stride * (first() + t); }
};

std::int64_t panels(std::int64_t outputs) noexcept { return ceil_div(outputs, std::int64_t{kPanelLanes}); }

/// Are panels of phases at most 3/5 of the products? Above that the move would take what is gained. Those that sum by taps
/// (core/transposed_sums.h) gain where nearly each tap of a phase is one of the kernel.
bool gains(const PhaseAxis& rows, const PhaseAxis& columns, std::int64_t outputs, bool by_taps) noexcept {
  const std::int64_t phases = rows.stride * columns.stride;
  // Few outputs have a kernel of their own; of an input smaller than the kernel most taps would meet padding.
  constexpr std::int64_t kFewOutputs = 10;
  const bool winograd = rows.kernel == 3 && columns.kernel == 3;
  if (phases == 1) return outputs > kFewOutputs && (winograd || !by_taps) && rows.in >= rows.kernel && columns.in >= columns.kernel;
  if (by_taps && 4 * phases * rows.taps() * columns.taps() > 5 * rows.kernel * columns.kernel) return false;
  return 5 * rows.taps() * columns.taps() * panels(outputs * phases) <= 3 * rows.kernel * columns.kernel * panels(outputs);
}

/// [C, O, h, w] of the transposed convolution to [phases * O, C, taps of rows, taps of columns].
Constant phase_weights(const Constant& from, const PhaseAxis& rows, const PhaseAxis& columns) {
  const std::int64_t channels = from.shape[0], outputs = from.shape[1];
  const Shape to{rows.stride * columns.stride * outputs, channels, rows.taps(), columns.taps()};
  if (from.absent) return make_absent(from.dtype, to);
  const std::vector<float> given = floats(from);
  std::vector<float> made;
  made.reserve(static_cast<std::size_t>(to.element_count()));
  for (std::int64_t phase = 0; phase < rows.stride * columns.stride; ++phase)
    for (std::int64_t o = 0; o < outputs; ++o)
      for (std::int64_t c = 0; c < channels; ++c)
        for (std::int64_t y = 0; y < to[2]; ++y)
          for (std::int64_t x = 0; x < to[3]; ++x) {
            const std::int64_t a = rows.tap(phase / columns.stride, y), b = columns.tap(phase % columns.stride, x);
            const bool has = a >= 0 && a < rows.kernel && b >= 0 && b < columns.kernel;
            made.push_back(has ? given[static_cast<std::size_t>(((c * outputs + o) * rows.kernel + a) * columns.kernel + b)] : 0.0f);
          }
  return make_constant(to, made);
}

class ByPhases {
 public:
  explicit ByPhases(Draft& draft) : draft_(draft) { source_.swap(draft.nodes); }
  void run() {
    for (DraftNode& node : source_)
      if (!split(node)) draft_.nodes.push_back(std::move(node));
  }

 private:
  /// A weight that several nodes share is made, and stored, once.
  Constant made_of(const Constant& weights, const PhaseAxis& rows, const PhaseAxis& columns) {
    if (weights.absent) return phase_weights(weights, rows, columns);
    const auto of_axis = [](const PhaseAxis& axis) { return std::array{axis.kernel, axis.stride, axis.pad}; };
    const auto [known, is_new] = made_.try_emplace({weights.data, weights.shape[0], of_axis(rows), of_axis(columns)});
    if (is_new) known->second = phase_weights(weights, rows, columns);
    return known->second;
  }

  /// False where the node stays as it is.
  bool split(DraftNode& node) {
    if (node.op != model::OpKind::kConvTranspose || !node.panels || node.integers || node.epilogue.has_residual) return false;
    const Constant& weights = node.panels->values;
    auto& conv = std::get<model::ConvAttributes>(node.attributes);
    const model::Window& w = conv.window;
    if (conv.groups != 1 || w.dilation_h != 1 || w.dilation_w != 1 || weights.quantised || weights.dtype != DType::kF32) return false;
    const PhaseAxis rows{w.in_h, w.out_h, w.kernel_h, w.stride_h, w.pad_top}, columns{w.in_w, w.out_w, w.kernel_w, w.stride_w, w.pad_left};
    const std::int64_t outputs = conv.out_channels, phases = rows.stride * columns.stride;
    const bool by_taps = sums_by_taps(w, conv.groups, conv.in_channels, outputs);
    // Where no two taps meet, a kernel puts the phases beside each other itself.
    if (rows.kernel == rows.stride && columns.kernel == columns.stride && rows.pad == 0 && columns.pad == 0) return false;
    if (!rows.fits() || !columns.fits() || !gains(rows, columns, outputs, by_taps)) return false;
    const std::int64_t result_bytes = draft_.value(node.output).shape.element_count() * static_cast<std::int64_t>(sizeof(float));
    if (phases > 1 && result_bytes > kMostResultBytes) return false;
    if (weights.elements() > kMaxFoldedElements || phases * rows.taps() * columns.taps() * outputs * conv.in_channels > kMaxFoldedElements)
      return false;

    node.op = model::OpKind::kConv;
    node.panels->values = made_of(weights, rows, columns);
    const std::vector<float> bias = std::move(node.bias), scale = std::move(node.panels->scale);
    node.bias.clear();
    node.panels->scale.clear();
    for (std::int64_t phase = 0; phase < phases; ++phase) {
      node.bias.insert(node.bias.end(), bias.begin(), bias.end());
      node.panels->scale.insert(node.panels->scale.end(), scale.begin(), scale.end());
    }
    conv.out_channels = phases * outputs;
    conv.window = {.in_h = w.in_h,
                   .in_w = w.in_w,
                   .out_h = rows.places(),
                   .out_w = columns.places(),
                   .kernel_h = rows.taps(),
                   .kernel_w = columns.taps(),
                   .pad_top = rows.pad_before(),
                   .pad_left = columns.pad_before(),
                   .pad_bottom = rows.pad_after(),
                   .pad_right = columns.pad_after()};
    if (phases > 1)
      move_to_space(node, rows, columns);
    else
      draft_.nodes.push_back(std::move(node));
    return true;
  }

  /// Behind the convolution: phases of places become neighbours in the output that the node had.
  void move_to_space(DraftNode& node, const PhaseAxis& rows, const PhaseAxis& columns) {
    const ValueId result = node.output;
    const Shape shape = draft_.value(result).shape;
    const std::int64_t images = shape[0], outputs = shape[1];
    node.output = value(result, ":phases", {images, rows.stride * columns.stride * outputs, rows.places(), columns.places()});
    const ValueId split = value(result, ":split", {images, rows.stride, columns.stride, outputs, rows.places(), columns.places()});
    const ValueId moved = value(result, ":moved", {images, outputs, rows.places(), rows.stride, columns.places(), columns.stride});
    const std::string name = node.name;
    const ValueId phases = node.output;
    draft_.nodes.push_back(std::move(node));
    add(name + ":split", model::OpKind::kReshape, phases, split);
    add(name + ":moved", model::OpKind::kTranspose, split, moved).attributes = model::TransposeAttributes{Perm{0, 3, 4, 1, 5, 2, 6, 7}};
    add(name, model::OpKind::kReshape, moved, result);
  }

  ValueId value(ValueId like, const char* suffix, const Shape& shape) {
    Value made = draft_.value(like);
    made.name += suffix;
    made.shape = shape;
    return draft_.add_value(std::move(made));
  }

  DraftNode& add(const std::string& name, model::OpKind op, ValueId from, ValueId to) {
    DraftNode node;
    node.name = name;
    node.op = op;
    node.inputs = {from};
    node.output = to;
    draft_.nodes.push_back(std::move(node));
    return draft_.nodes.back();
  }

  using Axis = std::array<std::int64_t, 3>;
  Draft& draft_;
  std::vector<DraftNode> source_;
  std::map<std::tuple<const std::byte*, std::int64_t, Axis, Axis>, Constant> made_;
};

}  // namespace

void transposed_by_phases(Draft& draft) { ByPhases(draft).run(); }

}  // namespace sluice::importer
