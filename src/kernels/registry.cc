#include "sluice/kernels/registry.h"

#include <array>

#include "src/kernels/families.h"

namespace sluice::kernels {
namespace {

/// In order of preference: a node takes the first kernel that supports it.
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
      if (kernel.op == node.op && kernel.numeric == node.numeric && kernel.supports(graph, node)) found.push_back(&kernel);
    }
  }
  return found;
}

}  // namespace sluice::kernels
