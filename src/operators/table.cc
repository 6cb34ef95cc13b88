#include <array>

#include "src/operators/families.h"

namespace sluice::operators {
namespace {

constexpr std::array<const OperatorDefinition*, model::kOpKindCount> kTable = {
    &kConv,      &kConvTranspose, &kDense,     &kPool,  &kUnary,     &kBinary,    &kAffine,     &kSoftmax,
    &kLrn,       &kConcat,        &kSlice,     &kPad,   &kResize,    &kTranspose, &kReshape,    &kMatMul,
    &kLayerNorm, &kAttention,     &kEmbedding, &kPlain, &kRecurrent, &kQuantize,  &kDequantize,
};

}  // namespace

const OperatorDefinition& definition_of(model::OpKind kind) noexcept { return *kTable[static_cast<std::size_t>(kind)]; }

std::span<const OperatorDefinition* const> definitions() noexcept { return kTable; }

std::optional<Shape> infer_shape(const model::Graph& graph, const model::Node& node) noexcept {
  const OperatorDefinition& definition = definition_of(node.op);
  if (node.attributes.index() != definition.attributes || node.inputs.size() < definition.inputs) return std::nullopt;
  return definition.infer(graph, node);
}

std::uint64_t macs_of(const model::Graph& graph, const model::Node& node) noexcept {
  const OperatorDefinition& definition = definition_of(node.op);
  return definition.macs == nullptr ? 0 : definition.macs(graph, node);
}

}  // namespace sluice::operators
