// The table of the elementwise family: which nodes each kernel takes, and how they may be cut.
#include <array>

#include "sluice/kernels/reference.h"
#include "sluice/kernels/registry.h"
#include "src/kernels/elementwise/steps.h"
#include "src/kernels/families.h"
#include "src/kernels/reference/resize_taps.h"

namespace sluice::kernels {
namespace {

using model::OpKind;

inline constexpr std::size_t kKernelCount = 7;

/// What the reference supports, in f32.
template <OpKind op>
bool floats(const model::Graph& graph, const model::Node& node) noexcept {
  return graph.tensor(node.outputs[0]).dtype == DType::kF32 && reference_kernel(op).supports(graph, node);
}

bool takes_binary(const model::Graph& graph, const model::Node& node) noexcept {
  const Shape& out = graph.tensor(node.outputs[0]).shape;
  for (TensorId input : node.inputs)
    if (!elementwise::walks_beside(graph.tensor(input).shape, out)) return false;
  return floats<OpKind::kBinary>(graph, node) && node.as<model::BinaryAttributes>().function != model::BinaryFunction::kPow;
}

bool takes_resize(const model::Graph& graph, const model::Node& node) noexcept {
  const Shape& in = graph.tensor(node.inputs[0]).shape;
  const Shape& out = graph.tensor(node.outputs[0]).shape;
  const auto& a = node.as<model::ResizeAttributes>();
  return floats<OpKind::kResize>(graph, node) && out.rank() == 4 && keeps_extent(a, in, out, 0) && keeps_extent(a, in, out, 3);
}

/// Sharing with the reference whatever does not depend on the code: cuts, places, costs.
constexpr KernelDescriptor describe(KernelId id, std::string_view name, OpKind op,
                                    bool (*supports)(const model::Graph&, const model::Node&) noexcept,
                                    void (*run)(const KernelCall&) noexcept) noexcept {
  KernelDescriptor kernel;
  kernel.id = id;
  kernel.name = name;
  kernel.op = op;
  kernel.supports = supports;
  kernel.run = run;
  return kernel;
}

std::array<KernelDescriptor, kKernelCount> make_kernels() noexcept {
  std::array<KernelDescriptor, kKernelCount> kernels = {
      describe(kernel_id::kPool, "pool", OpKind::kPool, floats<OpKind::kPool>, elementwise::pool_step),
      describe(kernel_id::kBinary, "binary", OpKind::kBinary, takes_binary, elementwise::binary_step),
      describe(kernel_id::kUnary, "unary", OpKind::kUnary, floats<OpKind::kUnary>, elementwise::unary_step),
      describe(kernel_id::kAffine, "affine", OpKind::kAffine, floats<OpKind::kAffine>, elementwise::affine_step),
      describe(kernel_id::kSoftmax, "softmax", OpKind::kSoftmax, floats<OpKind::kSoftmax>, elementwise::softmax_step),
      describe(kernel_id::kResize, "resize", OpKind::kResize, takes_resize, elementwise::resize_step),
      describe(kernel_id::kMatMul, "matmul", OpKind::kMatMul, floats<OpKind::kMatMul>, elementwise::matmul_step),
  };
  for (KernelDescriptor& kernel : kernels) {
    const KernelDescriptor& reference = reference_kernel(kernel.op);
    kernel.slices_rows = reference.slices_rows;
    kernel.in_place_inputs = reference.in_place_inputs;
    kernel.workspace = kernel.op == OpKind::kResize ? elementwise::resize_workspace : reference.workspace;
    kernel.cost = reference.cost;
  }
  return kernels;
}

}  // namespace

std::span<const KernelDescriptor> elementwise_kernels() noexcept {
  static const std::array<KernelDescriptor, kKernelCount> kKernels = make_kernels();
  return kKernels;
}

}  // namespace sluice::kernels
