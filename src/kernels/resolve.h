// From a node to the parameters of its kernels: what `resolve` of every family is made of. Of the kernels, the tables of the families and
// this alone see a graph.
#pragma once

#include <algorithm>
#include <array>
#include <type_traits>

#include "sluice/kernels/kernel.h"
#include "sluice/operators/parameters/elementwise.h"
#include "sluice/operators/parameters/movement.h"
#include "sluice/operators/parameters/plain.h"
#include "sluice/operators/parameters/transformer.h"
#include "sluice/operators/parameters/weighted.h"
#include "src/core/build_list.h"

namespace sluice::kernels {

operators::ConvolutionParameters convolution_parameters(const model::Graph& graph, const model::Node& node) noexcept;
operators::DenseParameters dense_parameters(const model::Graph& graph, const model::Node& node) noexcept;
operators::RecurrentParameters recurrent_parameters(const model::Graph& graph, const model::Node& node) noexcept;
operators::UnaryParameters unary_parameters(const model::Graph& graph, const model::Node& node) noexcept;
operators::BinaryParameters binary_parameters(const model::Graph& graph, const model::Node& node) noexcept;
operators::AffineParameters affine_parameters(const model::Graph& graph, const model::Node& node) noexcept;
operators::PoolParameters pool_parameters(const model::Graph& graph, const model::Node& node) noexcept;
operators::SoftmaxParameters softmax_parameters(const model::Graph& graph, const model::Node& node) noexcept;
operators::LrnParameters lrn_parameters(const model::Graph& graph, const model::Node& node) noexcept;
operators::MatMulParameters matmul_parameters(const model::Graph& graph, const model::Node& node) noexcept;
operators::ConcatParameters concat_parameters(const model::Graph& graph, const model::Node& node) noexcept;
operators::SliceParameters slice_parameters(const model::Graph& graph, const model::Node& node) noexcept;
operators::PadParameters pad_parameters(const model::Graph& graph, const model::Node& node) noexcept;
operators::ResizeParameters resize_parameters(const model::Graph& graph, const model::Node& node) noexcept;
operators::TransposeParameters transpose_parameters(const model::Graph& graph, const model::Node& node) noexcept;
operators::ReshapeParameters reshape_parameters(const model::Graph& graph, const model::Node& node) noexcept;
operators::LayerNormParameters layer_norm_parameters(const model::Graph& graph, const model::Node& node) noexcept;
operators::AttentionParameters attention_parameters(const model::Graph& graph, const model::Node& node) noexcept;
operators::EmbeddingParameters embedding_parameters(const model::Graph& graph, const model::Node& node) noexcept;

/// What `in_place_inputs` of many kernels is: nothing, the first input, or the residual of a convolution or dense layer, which is read where
/// the output is written.
inline std::uint32_t none_in_place(const model::Graph&, const model::Node&) noexcept { return 0; }
inline std::uint32_t first_in_place(const model::Graph&, const model::Node&) noexcept { return 1; }
inline std::uint32_t residual_in_place(const model::Graph&, const model::Node& node) noexcept {
  return node.epilogue.has_residual ? 1u << (node.inputs.size() - 1) : 0u;
}

/// What a function of parameters takes first, or a function of a node gives.
template <class T>
struct ParametersOf;
template <class T, class R, class... More>
struct ParametersOf<R (*)(const T&, More...) noexcept> {
  using Type = T;
};

/// The entry of an instruction set: `kRun` with the inner loops that `kTable` has for it. Chosen at resolve; a call knows no Isa.
template <auto kRun, auto kTable, Isa kIsa>
void run_entry(const KernelCall& call) noexcept {
  kRun(call, kTable(kIsa));
}
template <auto kRun, auto kTable>
KernelEntry entry_for(Isa isa) noexcept {
  if constexpr (kOneIsa) return run_entry<kRun, kTable, kOnlyIsa>;
  switch (isa) {
    case Isa::kAvx512:
      return run_entry<kRun, kTable, Isa::kAvx512>;
    case Isa::kAvx2:
      return run_entry<kRun, kTable, Isa::kAvx2>;
    case Isa::kNeon:
      return run_entry<kRun, kTable, Isa::kNeon>;
    case Isa::kScalar:
      break;
  }
  return run_entry<kRun, kTable, Isa::kScalar>;
}
/// Like `entry_for`, for code that is the same on every instruction set.
template <auto kRun>
KernelEntry entry_for_any(Isa) noexcept {
  return kRun;
}

/// KernelDescriptor::resolve: parameters by `kParameters(graph, node)`, entries by `kRun(isa)` and, where there is one, `kPrepare(isa)`.
template <auto kParameters, auto kRun>
ResolvedCall resolve_as(const model::Graph& graph, const model::Node& node, Isa isa) noexcept {
  return {.run = kRun(isa), .parameters = operators::Parameters(kParameters(graph, node))};
}
template <auto kParameters, auto kRun, auto kPrepare>
ResolvedCall resolve_as(const model::Graph& graph, const model::Node& node, Isa isa) noexcept {
  return {.run = kRun(isa), .prepare = kPrepare(isa), .parameters = operators::Parameters(kParameters(graph, node))};
}

using Resolve = ResolvedCall (*)(const model::Graph&, const model::Node&, Isa) noexcept;
/// `kResolve`, through which alone a kernel's code is reached; null where this build was trimmed to models that do without (build_list.h).
template <KernelId kId, Resolve kResolve>
constexpr Resolve if_built() noexcept {
  if constexpr (has_kernel(kId)) return kResolve;
  return nullptr;
}

/// A family's table as this build has it, made when it is compiled: of a kernel that was left out there stays what a refusal needs, its name
/// and, where there is a planner that looks for kernels, its nodes. So nothing refers to the rest of it.
template <std::size_t kCount>
constexpr std::array<KernelDescriptor, kCount> as_built(std::array<KernelDescriptor, kCount> kernels) noexcept {
  for (KernelDescriptor& kernel : kernels) {
    if (has_kernel(kernel.id)) continue;  // as `if_built` asked; under sanitizers no address is a constant that could be compared
    kernel = {.id = kernel.id,
              .name = kernel.name,
              .op = kernel.op,
              .numeric = kernel.numeric,
              .supports = kLooksForKernels ? kernel.supports : nullptr};
  }
  return kernels;
}

/// The same of what `make()` gives, a lambda without captures. Where nobody looks for kernels, a plan names them by number and nothing stays
/// of those that were left out: at an eighth of a KiB each they would be a fortieth of a small program.
template <class Make>
constexpr auto as_built(Make) noexcept {
  constexpr auto kAll = as_built(Make()());
  if constexpr (kLooksForKernels) {
    return kAll;
  } else {
    constexpr std::size_t kCount = static_cast<std::size_t>(
        std::count_if(kAll.begin(), kAll.end(), [](const KernelDescriptor& kernel) { return has_kernel(kernel.id); }));
    std::array<KernelDescriptor, kCount> built;
    std::copy_if(kAll.begin(), kAll.end(), built.begin(), [](const KernelDescriptor& kernel) { return has_kernel(kernel.id); });
    return built;
  }
}

template <auto kParameters>
inline constexpr std::size_t kParameterBytes = sizeof(std::invoke_result_t<decltype(kParameters), const model::Graph&, const model::Node&>);

/// KernelDescriptor::workspace, answered by a function of the kernel's own kind of parameters.
template <auto kAnswer>
Bytes workspace_of(const operators::Parameters& parameters, const StepExtent& extent) noexcept {
  return kAnswer(parameters.as<typename ParametersOf<decltype(kAnswer)>::Type>(), extent);
}

}  // namespace sluice::kernels
