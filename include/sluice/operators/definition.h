// What an operator is: one `OperatorDefinition` for each `model::OpKind`, in one table. Everything above the model asks here instead of
// switching over operators: validation, shapes, relations between axes, cost, what may be fused or computed in place.
//
// A family of operators is one file of src/operators with its definitions; src/operators/table.cc lists them. Start reading at
// src/operators/dense.cc. How the kernels compute them: kernels/kernel.h. To add one: docs/adding-an-operator.md.
//
// Invariants: (D1) functions of a definition take nodes of their kind; all but `validate` and `infer` take validated nodes only and never
// fail; (D2) `relate_input` and `relate_weight` declare every position that any kernel of the operator reads; (D3) none allocates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "sluice/core/error.h"
#include "sluice/model/graph.h"
#include "sluice/operators/cost.h"
#include "sluice/operators/relation.h"

namespace sluice::operators {

/// The parts of the epilogue that an operator takes.
struct EpilogueParts {
  bool bias = false;
  bool residual = false;
  bool activation = false;
};

/// Inputs whose bytes the output may take, given equal shapes and types: a step reads of them what it writes and no more. A residual always
/// is one. Where the last axis is reduced, steps must take all channels.
enum class InPlace : std::uint8_t { kNone, kFirst, kAny };

/// Which nodes of an operator are of the class int8.
enum class Integers : std::uint8_t { kNever, kSome, kAll };

struct OperatorDefinition {
  model::OpKind kind = model::OpKind::kReshape;
  std::size_t attributes = 0;  // which alternative of model::Attributes its nodes have
  std::size_t inputs = 1;      // the least number that it takes, a residual not counted
  EpilogueParts epilogue;
  InPlace in_place = InPlace::kNone;
  /// Each output element is made of one element of each input; nothing else depends on its position except a channel's weights.
  bool elementwise = false;
  /// Each output element is one of an input's, or one that the attributes state: nothing is computed.
  bool moves = false;
  bool quantised_panels = false;  // its panels may hold quantised values
  Integers integers = Integers::kNever;
  /// The planner lets bands of its rows follow bands of its inputs (planner/bands/band_chain.h).
  bool in_bands = false;

  /// Checks rules G2 and G4 for a node, except the parts of the epilogue, which `validate_node` checks for all.
  Status (*validate)(const model::Graph&, const model::Node&) = nullptr;
  /// The output's shape, where inputs and attributes decide it; nothing where they leave it open (the output then states it, and `validate`
  /// checks that it may be so) or do not fit. Ask `infer_shape`, which checks the attributes first.
  std::optional<Shape> (*infer)(const model::Graph&, const model::Node&) noexcept = nullptr;
  AxisRelations (*relate_input)(const model::Graph&, const model::Node&, std::size_t input) noexcept = nullptr;
  AxisRelations (*relate_weight)(const model::Graph&, const model::Node&, std::size_t weight) noexcept = nullptr;  // null: no weights
  Reduction (*reduction)(const model::Graph&, const model::Node&) noexcept = nullptr;  // null: no ranges of it can be taken
  Recurrence (*recurrence)(const model::Node&) noexcept = nullptr;                     // null: none

  /// Floating-point operations for one output element, a multiply-add counted as two; the epilogue's are added. null: none.
  std::uint64_t (*flops_per_output)(const model::Graph&, const model::Node&) noexcept = nullptr;
  /// Multiply-accumulates of the whole node. null: it has none to speak of.
  std::uint64_t (*macs)(const model::Graph&, const model::Node&) noexcept = nullptr;
  /// Replaces the usual features (cost.h).
  CostFeatures (*cost)(const model::Graph&, const model::Node&, const StepExtent&) noexcept = nullptr;

  std::string_view name() const noexcept { return model::name_of(kind); }
};

const OperatorDefinition& definition_of(model::OpKind kind) noexcept;
/// All of them, in the order of OpKind.
std::span<const OperatorDefinition* const> definitions() noexcept;

/// `infer` of a node whose input ids are in range and whose attributes may be anything. Reads inputs and attributes only.
std::optional<Shape> infer_shape(const model::Graph& graph, const model::Node& node) noexcept;

/// Multiply-accumulates of a node, from its shapes.
std::uint64_t macs_of(const model::Graph& graph, const model::Node& node) noexcept;

/// The relations of one validated node. Cheap: nothing is allocated, each answer is computed when it is asked for.
class Relations {
 public:
  Relations(const model::Graph& graph, const model::Node& node) noexcept
      : graph_(graph), node_(node), definition_(definition_of(node.op)) {}

  /// Axes of Node::inputs[i]. A residual is the same as the output.
  AxisRelations input(std::size_t i) const noexcept {
    if (is_residual(i)) return AxisRelations::all_same(graph_.tensor(node_.inputs[i]).shape.rank());
    return definition_.relate_input(graph_, node_, i);
  }
  /// Axes of Node::weights[i].
  AxisRelations weight(std::size_t i) const noexcept { return definition_.relate_weight(graph_, node_, i); }
  Reduction reduction() const noexcept { return definition_.reduction == nullptr ? Reduction{} : definition_.reduction(graph_, node_); }
  Recurrence recurrence() const noexcept { return definition_.recurrence == nullptr ? Recurrence{} : definition_.recurrence(node_); }
  const OperatorDefinition& definition() const noexcept { return definition_; }
  bool is_residual(std::size_t i) const noexcept { return node_.epilogue.has_residual && i + 1 == node_.inputs.size(); }

 private:
  const model::Graph& graph_;
  const model::Node& node_;
  const OperatorDefinition& definition_;
};

}  // namespace sluice::operators
