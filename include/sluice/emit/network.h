// A graph as emission sees it: stages that make tensors a few pixels at a time, and the storages in which the tensors lie.
//
//     graph --make_network--> Network --plan_memory--> MemoryPlan --write--> NAME.c, NAME.h
//
// Every tensor is rows x pixels x channels (core/tensor.h). A storage is the bytes of a tensor, and of those that reshapes make of it; its
// elements have one order, so a reader may divide them into other rows and pixels than the maker.
//
// Invariants: (N1) stages are in an order in which makers come before readers; (N2) a storage is made by one stage, or comes from outside;
// (N3) what a stage reads for an output pixel lies in [first, last] of `Along` on both axes (operators/relation.h says so), and
// `first` and `last` never fall as the output position rises.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sluice/core/dtype.h"
#include "sluice/core/ids.h"
#include "sluice/core/tensor.h"
#include "sluice/model/graph.h"

namespace sluice::emit {

/// What is read along one axis for an output position. The emitted code computes the same (portable/rows.h).
struct Along {
  std::int64_t stride = 1, ahead = 0, behind = 0, divisor = 1, extent = 1;

  std::int64_t last(std::int64_t o) const noexcept {
    const std::int64_t at = o * stride + ahead;
    return at <= 0 ? 0 : std::min(at / divisor, extent - 1);
  }
  std::int64_t first(std::int64_t o) const noexcept {
    const std::int64_t at = o * stride - behind;
    return at <= 0 ? 0 : std::min((at + divisor - 1) / divisor, extent - 1);
  }
};

struct Reach {
  Along row, pixel;
};

struct StageInput {
  std::size_t storage = 0;
  RowExtents view;             // the tensor as this stage sees it
  std::optional<Reach> reach;  // none: an output pixel reads the pixel of the same number, and nothing else
  bool rows_in_one = false;    // a row is read as one piece, from pixel to pixel
  bool in_place = false;       // without a window: each element is read only for its own output element, before that is written
};

/// Code of include/sluice/portable.
enum class Kernel : std::uint8_t {
  kReadRow,
  kReadSignedRow,
  kConvU8,
  kDepthwiseU8,
  kPoolU8,
  kFoldU8,
  kTableU8,
  kBinaryU8,
  kQuantize,
  kDequantize,
  kConvF32,
  kDepthwiseF32,
  kTransposedF32,
  kPoolF32,
  kFoldF32,
  kUnaryF32,
  kBinaryF32,
  kSoftmax,
  kLayerNorm,
  kConcat,
  kJoin,
  kResize,
  kResizeF32,
  kPad,
  kCopy,
  kMatMul,
  kMatMulU8,
  kAttention,
  kSoftmaxU8,
  kResizeU8,
};

/// Rows of the network's input, from outside.
constexpr bool reads_rows(Kernel kernel) noexcept { return kernel == Kernel::kReadRow || kernel == Kernel::kReadSignedRow; }

struct Stage {
  Kernel kernel = Kernel::kReadRow;
  NodeId node;  // not of what reads a row
  std::vector<StageInput> inputs;
  std::size_t storage = 0;
  RowExtents out;     // its output
  RowExtents walked;  // the same; for a fold those of its input
  bool folds = false;
  bool whole_rows = false;          // it makes a row at a time, in one piece
  std::uint64_t scratch_bytes = 0;  // while it makes a pixel
  std::uint64_t kept_bytes = 0;     // from its first pixel to its last
  std::uint64_t macs = 0;
};

struct Storage {
  std::string name;
  DType dtype = DType::kF32;
  std::int64_t elements = 0;
  std::optional<std::size_t> maker;  // none: it comes from outside, whole
  std::vector<std::size_t> readers;  // stages, rising
  bool is_output = false;

  std::uint64_t bytes() const noexcept { return static_cast<std::uint64_t>(elements) * size_of(dtype); }
};

/// A port of the graph: its storage, and what the caller sees of it.
struct NetworkPort {
  std::string name;
  std::size_t storage = 0;
  RowExtents view;
  TensorId tensor;     // whose type and scale the caller's values have
  bool flips = false;  // the caller's are signed bytes, those of the storage unsigned ones: 128 more
};

struct Network {
  std::vector<Stage> stages;
  std::vector<Storage> storages;
  std::vector<NetworkPort> inputs;
  std::vector<NetworkPort> outputs;
  std::uint64_t macs = 0;
};

enum class InputForm : std::uint8_t {
  kStreamed,  // row by row, when they are wanted
  kHeld,      // in the arena before the run, which writes over it
};

struct NetworkOptions {
  InputForm input = InputForm::kStreamed;
  bool float_ports = false;  // an input that is quantised first comes as floats; else as the bytes that it becomes
  /// Tables that change signed bytes to unsigned ones or back, and nothing else. At the ports no stage does that: `flips` says so.
  std::set<NodeId> sign_tables;
};

/// Errors: kUnsupported naming the node and the reason; kInvalidArgument where inputs cannot be streamed.
Result<Network> make_network(const model::Graph& graph, const NetworkOptions& options);

}  // namespace sluice::emit
