// The family's descriptors. Lookups of embeddings are copies, which the reference does as fast as any.
#include <array>

#include "sluice/kernels/registry.h"
#include "src/kernels/elementwise/row_walks.h"
#include "src/kernels/families.h"
#include "src/kernels/reference/table.h"
#include "src/kernels/reference/walk.h"
#include "src/kernels/resolve.h"
#include "src/kernels/transformer/attention.h"
#include "src/kernels/transformer/rows.h"

namespace sluice::kernels {
namespace {

void layer_norm_step(const KernelCall& call, const transformer::RowTable& rows) noexcept {
  const float epsilon = call.parameters<operators::LayerNormParameters>().epsilon;
  const auto* scale = reinterpret_cast<const float*>(call.weights[0].data);
  const auto* shift = reinterpret_cast<const float*>(call.weights[1].data);
  const RowView &in = call.inputs[0].view, &out = call.outputs[0].view;
  if (elementwise::closed_rows(in) && elementwise::closed_rows(out))
    return elementwise::for_joined_rows(call, in.dense() && out.dense(), [&](std::int64_t row, std::int64_t count) {
      rows.layer_norm_rows(in.at<const float>(row), scale, shift, epsilon, out.at<float>(row), out.channels, count * out.pixels);
    });
  reference::for_pixels(call, [&](std::int64_t row, std::int64_t pixel) {
    rows.layer_norm(reference::same_pixel<float>(in, out, row, pixel), scale, shift, epsilon, out.at<float>(row, pixel), out.channels);
  });
}

/// What the reference says of the operator, with other code.
template <KernelId kId, auto kParameters, auto kRun, auto kTable>
constexpr KernelDescriptor like_reference(std::string_view name, model::OpKind op) noexcept {
  KernelDescriptor kernel = reference_table::reference_of(op);
  kernel.id = kId;
  kernel.name = name;
  kernel.resolve = if_built<kId, resolve_as<kParameters, entry_for<kRun, kTable>>>();
  kernel.parameter_bytes = kParameterBytes<kParameters>;
  return kernel;
}

constexpr std::array<KernelDescriptor, 2> make_kernels() noexcept {
  std::array<KernelDescriptor, 2> kernels = {
      like_reference<kernel_id::kLayerNorm, layer_norm_parameters, layer_norm_step, transformer::row_table>("layer_norm",
                                                                                                            model::OpKind::kLayerNorm),
      like_reference<kernel_id::kAttention, attention_parameters, transformer::attention_step, transformer::attention_table>(
          "attention", model::OpKind::kAttention),
  };
  kernels[1].workspace = workspace_of<transformer::attention_workspace>;
  return kernels;
}

}  // namespace

std::span<const KernelDescriptor> transformer_kernels() noexcept {
  static constexpr auto kKernels = as_built([] { return make_kernels(); });
  return kKernels;
}

}  // namespace sluice::kernels
