#include <array>

#include "src/core/build_list.h"
#include "src/operators/families.h"

namespace sluice::operators {
namespace {

/// Stands for an operator that was left out of this build: `validate_node` refuses its nodes before anything else is asked.
constexpr OperatorDefinition kLeftOut = {};

#define SLUICE_DEFINITION(name) (has_operator(static_cast<int>(model::OpKind::name)) ? &name : &kLeftOut)
constexpr std::array<const OperatorDefinition*, model::kOpKindCount> kTable = {
    SLUICE_DEFINITION(kConv),      SLUICE_DEFINITION(kConvTranspose), SLUICE_DEFINITION(kDense),      SLUICE_DEFINITION(kPool),
    SLUICE_DEFINITION(kUnary),     SLUICE_DEFINITION(kBinary),        SLUICE_DEFINITION(kAffine),     SLUICE_DEFINITION(kSoftmax),
    SLUICE_DEFINITION(kLrn),       SLUICE_DEFINITION(kConcat),        SLUICE_DEFINITION(kSlice),      SLUICE_DEFINITION(kPad),
    SLUICE_DEFINITION(kResize),    SLUICE_DEFINITION(kTranspose),     SLUICE_DEFINITION(kReshape),    SLUICE_DEFINITION(kMatMul),
    SLUICE_DEFINITION(kLayerNorm), SLUICE_DEFINITION(kAttention),     SLUICE_DEFINITION(kEmbedding),  SLUICE_DEFINITION(kPlain),
    SLUICE_DEFINITION(kRecurrent), SLUICE_DEFINITION(kQuantize),      SLUICE_DEFINITION(kDequantize),
};
#undef SLUICE_DEFINITION

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
