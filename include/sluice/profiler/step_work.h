// What a step is, as far as its time depends on it: how much work, and in what shape. From the parameters of its resolved call and its
// extent; what the latency model (latency.h) reads, and what a profile keeps of each measured step.
//
//     node --resolve--> parameters --+ extent--> StepWork --+ profile--> seconds
//
// Flops and bytes alone cannot see that 15 pixels fill two tiles of 14, or that a 1x1 and a 3x3 convolution of as many flops are bound by
// different things: the shape says it.
//
// Invariants: extents are at least 1; equal steps of equal nodes have equal work.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "sluice/core/ids.h"
#include "sluice/kernels/kernel.h"
#include "sluice/model/graph.h"

namespace sluice::profiler {

/// What a kernel does in a step: runs, runs from derived weights, or prepares them. Each has its own times.
enum class KernelUse : std::uint8_t { kRun, kRunDerived, kPrepare };

/// Of slices and concatenations, pieces of fewer values are copied some at once: they count as one.
inline constexpr std::int64_t kValuesMovedAtOnce = 8;

/// The shape of a step's work; 1 where the operator has no such thing.
struct StepShape {
  std::uint32_t rows = 1;      // of the output that the step writes; of a slice or concatenation the pieces that it copies
  std::uint32_t columns = 1;   // pixels of a row; of these 1
  std::uint32_t channels = 1;  // that the step writes; of these the values of a piece
  std::uint32_t depth = 1;     // values that one tap of one output adds up; of attention the features of a head
  std::uint32_t taps = 1;      // of a window; of attention the keys; of a recurrent layer the sequences beside one another
  std::uint32_t stride =
      1;  // the larger one of a window's two; of a normalisation or softmax 1; of a recurrent layer 2 where the first state is given
  std::uint32_t epilogue =
      1;  // what a layer does to each output behind its sum: 1 a comparison at most, 2 a few products, 3 an exponential
  friend bool operator==(const StepShape&, const StepShape&) = default;
};

inline constexpr std::uint16_t kCausal = 1;  // StepWork::variant of attentions; 0: others
inline constexpr std::uint16_t kWholeMean =
    2;  // of pools of bytes: the mean of a whole map, which adds by dot products; else a PoolingKind

struct StepWork {
  kernels::CostFeatures cost;
  StepShape shape;
  std::uint16_t variant = 0;  // what else makes other code of a kernel: the function of elementwise kernels, the kind of a pool
  /// Bytes that the whole run touches (run_bytes_of) before it comes back to the same memory. 0: not known.
  std::uint64_t run_bytes = 0;
  /// And what passes through the caches that processors share meanwhile, that of other programs included; at least the above.
  std::uint64_t shared_bytes = 0;

  StepWork() noexcept = default;
  StepWork(const kernels::CostFeatures& work) noexcept : cost(work) {}  // NOLINT: work of no particular shape
  StepWork(const kernels::CostFeatures& work, const StepShape& of, std::uint16_t other) noexcept : cost(work), shape(of), variant(other) {}
};

/// Work of a step of `node` on `kernel`, which supports it; of the run nothing is known yet. Allocates nothing.
StepWork work_of(const kernels::KernelDescriptor& kernel, KernelUse use, const model::Graph& graph, const model::Node& node,
                 const kernels::StepExtent& extent) noexcept;

/// The bytes that one inference touches: all weights (of tables, rows that are read) and the most bytes of activations that live at once. A
/// cache of so many bytes still holds a step's weights when the next inference comes to it; one of less does not.
std::uint64_t run_bytes_of(const model::Graph& graph);

/// What is known of an inference before its steps are priced: the bytes that it touches, its multiply-adds as flops, where products of bytes count
/// a third, and the bytes of all weights and results, of which each passes once.
struct RunWork {
  std::uint64_t bytes = 0;
  double flops = 0;
  double passing = 0;
};
RunWork run_work_of(const model::Graph& graph);

}  // namespace sluice::profiler
