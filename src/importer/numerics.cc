#include "src/importer/numerics.h"

#include "sluice/core/units.h"

namespace sluice::importer {
namespace {

// Effective GFLOP/s of one thread (AVX-512), Winograd from raw weights / from transformed weights / direct:
//
//     56x56x64   563 / 558 / 169     28x28x128   541 / 617 / 171     14x14x256  384 / 410 / 173     7x7x512   157 / 163 / 160
//     224x224x64 524 / 502 / 164     28x28x512   336 / 431 / 147     14x14x512  282 / 271 / 163     7x7x128   161 / 220 / 173
//     55x55x16   353 / 353 / 177     13x13x64    284 / 330 / 180     10x10x128  244 / 308 / 164     8x8x512   205 / 202 / 163
//     56x56x8    254 / 249 / 165     14x14x8     162 / 195 / 161     9x9x128    192 / 252 / 183     224x224x3  87 /  89 / 132
//
// So at least 16 channels in a group, and at least four squares of 4x4 outputs of which not too much is cut off: 8x8 and 10x10 gain, 7x7
// does not.
constexpr std::int64_t kLeastChannels = 16;
constexpr std::int64_t kLeastPixels = 64;
/// Pixels computed for a pixel wanted, in tenths: 13x13 has 1.51, 9x9 has 1.78.
constexpr std::int64_t kMostWasteTenths = 16;

/// Squares of up to four outputs take as long as of 16, where direct sums over f32 weights have pixels as lanes. Time of these / Winograd, 56x56:
///
///     outputs      1     3     4     8         (AVX-512, AVX2)
///     16 inputs   0.49, 0.35   0.72, 0.70   0.73, 0.72   1.22, 1.35
///     64          0.64, 0.49   0.88, 0.92   0.86, 0.90   1.45, 1.66
///     256         0.98, 0.75   1.31, 1.13   1.26, 1.09   2.10, 1.86
bool has_few_outputs(const model::ConvAttributes& conv) noexcept {
  constexpr std::int64_t kFewest = 2, kFew = 4, kLeastColumns = 12;
  const std::int64_t most_inputs = conv.out_channels <= kFewest ? 256 : conv.out_channels <= kFew ? 64 : 0;
  return conv.in_channels <= most_inputs && conv.groups == 1 && conv.window.out_w >= kLeastColumns;
}

bool gains(const model::ConvAttributes& conv) noexcept {
  const model::Window& w = conv.window;
  const bool legal = w.kernel_h == 3 && w.kernel_w == 3 && w.stride_h == 1 && w.stride_w == 1 && w.dilation_h == 1 && w.dilation_w == 1 &&
                     (conv.groups == 1 || conv.out_channels / conv.groups >= kPanelLanes);
  const std::int64_t pixels = w.out_h * w.out_w;
  const std::int64_t computed = 16 * ceil_div(w.out_h, 4) * ceil_div(w.out_w, 4);
  return legal && conv.in_channels / conv.groups >= kLeastChannels && pixels >= kLeastPixels && 10 * computed <= kMostWasteTenths * pixels;
}

}  // namespace

void choose_numerics(model::Graph& graph, const std::set<std::string>& exact) {
  for (model::Node& node : graph.nodes) {
    if (node.op != model::OpKind::kConv || node.numeric != model::NumericClass::kExact || exact.contains(node.name)) continue;
    const model::PanelLayout& layout = graph.weight(node.weights[0]).panel_layout;
    const bool narrow = model::is_narrow(layout);
    const auto& conv = node.as<model::ConvAttributes>();
    if (!narrow && (layout.dtype != DType::kF32 || has_few_outputs(conv))) continue;
    if (gains(conv)) node.numeric = model::NumericClass::kWinograd4;
  }
}

}  // namespace sluice::importer
