// The reference's entries of the registry; table.h has what they say.
#include <array>

#include "src/kernels/families.h"
#include "src/kernels/reference/functions.h"
#include "src/kernels/reference/table.h"

namespace sluice::kernels {

std::uint32_t full_shape_inputs(const model::Graph& graph, const model::Node& node) noexcept {
  const model::Tensor& out = graph.tensor(node.outputs[0]);
  std::uint32_t mask = 0;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const model::Tensor& in = graph.tensor(node.inputs[i]);
    if (in.shape == out.shape && in.dtype == out.dtype && !in.weight.valid()) mask |= 1u << i;
  }
  return mask;
}

namespace {

constexpr auto kBuilt = as_built(reference_table::kKernels);

}  // namespace

std::span<const KernelDescriptor> reference_kernels() noexcept { return kBuilt; }

const KernelDescriptor& reference_kernel(model::OpKind op, model::NumericClass numeric) noexcept {
  const KernelDescriptor* const integer = numeric == model::NumericClass::kInt8 ? generic_integer_kernel(op) : nullptr;
  if (integer != nullptr) return *integer;
  return numeric == model::NumericClass::kWinograd4 ? kBuilt[reference_table::kKinds] : kBuilt[static_cast<std::size_t>(op)];
}

float reference_apply(const model::Activation& activation, float x) noexcept { return reference::apply(activation, x); }

}  // namespace sluice::kernels
