// The table of the elementwise family: which nodes each kernel takes, and how they may be cut.
#include <array>

#include "sluice/kernels/registry.h"
#include "src/kernels/elementwise/runs.h"
#include "src/kernels/elementwise/steps.h"
#include "src/kernels/families.h"
#include "src/kernels/reference/resize_taps.h"
#include "src/kernels/reference/table.h"
#include "src/kernels/resolve.h"

namespace sluice::kernels {
namespace {

using model::OpKind;

inline constexpr std::size_t kKernelCount = 8;

/// What the reference supports, in f32.
template <OpKind op>
bool floats(const model::Graph& graph, const model::Node& node) noexcept {
  return graph.tensor(node.outputs[0]).dtype == DType::kF32 && reference_table::reference_of(op).supports(graph, node);
}

bool takes_binary(const model::Graph& graph, const model::Node& node) noexcept {
  const Shape& out = graph.tensor(node.outputs[0]).shape;
  for (TensorId input : node.inputs)
    if (!elementwise::walks_beside(graph.tensor(input).shape, out)) return false;
  return floats<OpKind::kBinary>(graph, node);
}

bool takes_resize(const model::Graph& graph, const model::Node& node) noexcept {
  const Shape& in = graph.tensor(node.inputs[0]).shape;
  const Shape& out = graph.tensor(node.outputs[0]).shape;
  const operators::ResizeParameters a = resize_parameters(graph, node);
  const int rank = out.rank();
  return floats<OpKind::kResize>(graph, node) && rank >= 3 && rank <= 5 && keeps_extent(a, in, out, 0) &&
         keeps_extent(a, in, out, rank - 1);
}

bool takes_lrn(const model::Graph& graph, const model::Node& node) noexcept {
  const std::int64_t channels = graph.tensor(node.outputs[0]).shape.back();
  return floats<OpKind::kLrn>(graph, node) && channels + node.as<model::LrnAttributes>().size <= elementwise::kMostLrnFloats;
}

/// Sharing with the reference whatever does not depend on the code: cuts, places, costs.
template <KernelId kId, auto kParameters, auto kRun, auto kTable = elementwise::run_table>
constexpr KernelDescriptor describe(std::string_view name, OpKind op,
                                    bool (*supports)(const model::Graph&, const model::Node&) noexcept) noexcept {
  KernelDescriptor kernel;
  kernel.id = kId;
  kernel.name = name;
  kernel.op = op;
  kernel.supports = supports;
  kernel.resolve = if_built<kId, resolve_as<kParameters, entry_for<kRun, kTable>>>();
  kernel.parameter_bytes = kParameterBytes<kParameters>;
  return kernel;
}

constexpr std::array<KernelDescriptor, kKernelCount> make_kernels() noexcept {
  std::array<KernelDescriptor, kKernelCount> kernels = {
      describe<kernel_id::kPool, pool_parameters, elementwise::pool_step>("pool", OpKind::kPool, floats<OpKind::kPool>),
      describe<kernel_id::kBinary, binary_parameters, elementwise::binary_step>("binary", OpKind::kBinary, takes_binary),
      describe<kernel_id::kUnary, unary_parameters, elementwise::unary_step>("unary", OpKind::kUnary, floats<OpKind::kUnary>),
      describe<kernel_id::kAffine, affine_parameters, elementwise::affine_step>("affine", OpKind::kAffine, floats<OpKind::kAffine>),
      describe<kernel_id::kSoftmax, softmax_parameters, elementwise::softmax_step>("softmax", OpKind::kSoftmax, floats<OpKind::kSoftmax>),
      describe<kernel_id::kResize, resize_parameters, elementwise::resize_step>("resize", OpKind::kResize, takes_resize),
      describe<kernel_id::kLrn, lrn_parameters, elementwise::lrn_step>("lrn", OpKind::kLrn, takes_lrn),
      describe<kernel_id::kMatMul, matmul_parameters, elementwise::matmul_step, elementwise::product_table>("matmul", OpKind::kMatMul,
                                                                                                            floats<OpKind::kMatMul>),
  };
  for (KernelDescriptor& kernel : kernels) {
    const KernelDescriptor reference = reference_table::reference_of(kernel.op);
    kernel.slices_rows = reference.slices_rows;
    kernel.in_place_inputs = reference.in_place_inputs;
    kernel.workspace = kernel.op == OpKind::kResize ? workspace_of<elementwise::resize_workspace> : reference.workspace;
    kernel.cost = reference.cost;
    kernel.takes_pitches = reference.takes_pitches;
  }
  return kernels;
}

}  // namespace

std::span<const KernelDescriptor> elementwise_kernels() noexcept {
  static constexpr auto kKernels = as_built([] { return make_kernels(); });
  return kKernels;
}

}  // namespace sluice::kernels
