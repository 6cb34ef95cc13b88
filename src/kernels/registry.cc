#include "sluice/kernels/registry.h"

#include <array>
#include <string>

#include "sluice/kernels/left_out.h"
#include "sluice/operators/generic.h"
#include "src/core/build_list.h"
#include "src/kernels/families.h"

namespace sluice::kernels {
namespace {

/// The kernels in order of preference: a node takes the first one that supports it.
std::array<std::span<const KernelDescriptor>, 7> families() noexcept {
  return {weighted_kernels(), sparse_kernels(),  elementwise_kernels(), transformer_kernels(),
          movement_kernels(), integer_kernels(), reference_kernels()};
}

}  // namespace

const KernelDescriptor* find_kernel(KernelId id) noexcept {
  for (const auto& family : families()) {
    for (const KernelDescriptor& kernel : family)
      if (kernel.id == id) return &kernel;
  }
  return nullptr;
}

std::vector<const KernelDescriptor*> kernels_for(const model::Graph& graph, const model::Node& node) {
  std::vector<const KernelDescriptor*> found;
  for (const auto& family : families()) {
    for (const KernelDescriptor& kernel : family) {
      if (kernel.resolve != nullptr && kernel.op == node.op && kernel.numeric == node.numeric && kernel.supports(graph, node))
        found.push_back(&kernel);
    }
  }
  return found;
}

Error no_kernel_for(const model::Graph& graph, const model::Node& node) {
  const auto* generic = std::get_if<model::PlainAttributes>(&node.attributes);
  if (kTrimmed && generic != nullptr && operators::find_plain(generic->op) == nullptr)
    return make_error(ErrorCode::kUnsupported, std::string(node.name) + " (generic operator " + std::to_string(generic->op) + ")",
                      kLeftOut);
  for (const auto& family : families()) {
    for (const KernelDescriptor& kernel : family) {
      if (kernel.resolve != nullptr || kernel.op != node.op || kernel.numeric != node.numeric) continue;
      if (kernel.supports != nullptr && !kernel.supports(graph, node)) continue;
      return make_error(ErrorCode::kUnsupported, std::string(node.name) + " (" + std::string(kernel.name) + ")", kLeftOut);
    }
  }
  return make_error(ErrorCode::kUnsupported, node.name, "no kernel of this build runs the node in this form");
}

}  // namespace sluice::kernels
