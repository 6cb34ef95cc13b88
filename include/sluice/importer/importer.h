// Makes a model file from an ONNX file.
//
//     ONNX file --read--> OnnxGraph --lower--> Draft: one form an operator, shapes known --rewrite--> fused, NHWC
//               --emit--> model::Graph --pack--> file
//
// The steps lie in src/importer: draft.h, lowering.h, rewrite/, emit.h.
//
// Where dimensions are left open for several extents, all of this but the packing happens once for each choice of them, and weights are
// shared (src/importer/weight_pool.h, model/variants.h).
//
// The file is mapped, weights are located on the wire and packed one stretch at a time: converting takes under 128 MiB of anonymous memory
// whatever the model. All problems of a file are reported at once.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sluice/core/dtype.h"
#include "sluice/core/error.h"
#include "sluice/core/shape.h"
#include "sluice/core/units.h"
#include "sluice/kernels/packing.h"
#include "sluice/model/graph.h"
#include "sluice/model/key.h"
#include "sluice/model/variants.h"

namespace sluice::importer {

/// A reason why the file cannot be converted, in words for its user.
struct Problem {
  ErrorCode code = ErrorCode::kUnsupported;
  std::string node;     // name, or its output's name when it has none; empty for the file as a whole
  std::string op_type;  // "Conv"; with a domain: "com.microsoft::FusedConv"
  int opset = 0;
  std::string message;  // what is wrong, and the nearest supported form if there is one
};

/// A tensor for an input: ONNX order, row-major.
struct InputValue {
  DType dtype = DType::kF32;
  Shape shape;
  std::vector<std::byte> data;
};

/// An extent that follows from others: the sum of these, each a number or the name of a dimension in `dims` or `open_dims`.
using DimSum = std::vector<std::string>;

/// Which weights are entropy-coded (model/code.h): stored in fewer bytes, with the same values, and decoded as they are read.
enum class Coding : std::uint8_t {
  kNone = 0,
  kFast = 1,   // those that shrink by a tenth or more: floats, most of them
  kSmall = 2,  // all that shrink
  kAuto = 3,   // those that a core decodes faster than the disk would bring what coding saves
};

struct ConvertOptions {
  std::map<std::string, std::int64_t> dims{};  // --dim name=value: free dimensions by name, any by input.axis
  /// --dim name=1..8: dimensions that are bound when the model is opened, with the extents that they can have (model/variants.h).
  std::map<std::string, std::vector<std::int64_t>> open_dims{};
  std::map<std::string, DimSum> dim_sums{};        // --dim name=other+1
  std::map<std::string, InputValue> values{};      // graph inputs that become constants: those whose values decide shapes
  std::map<std::string, Shape> bounds{};           // of values whose extents are known at run only: --bound name=extents
  bool exact = false;                              // --numerics exact: every node of the class kExact, no Winograd
  bool fuse = true;                                // off: one node for each operator (tests)
  std::optional<kernels::PanelStorage> weights{};  // --weights: what panels hold; nothing: as the file has them, f16 or f32
  /// --weights auto: what those of these weights hold, by name, whatever `weights` says (weight_choice.h).
  std::map<std::string, kernels::PanelStorage, std::less<>> weight_forms{};
  double prune = 0;                // --prune: this share of the blocks of each weight that gains by it are left out
  bool sparse = true;              // --sparse auto: zero blocks of 16 outputs x 1 input are left out where that pays
  model::Preprocess preprocess{};  // written as metadata when present
  std::vector<std::string> labels{};
  /// --max-constants: bytes that convert may make beyond those in the file, by computing with constants, writing out fills and unrolling
  /// bodies. None: 3 MiB for a file of at most 1 KiB, else 64 KiB for each of its bytes, up to 256 MiB in memory and 4 GiB written.
  std::optional<Bytes> max_constants{};
  Coding code = Coding::kNone;           // --code
  double disk_bytes_per_second = 1.5e9;  // --io-limit: of the disk that Coding::kAuto codes for; a middling NVMe disk's
  const model::Key* key = nullptr;       // --encrypt: what the model is encrypted with; it outlives the call
  /// --without-weights: the model file ends after its header and can be planned, not run. Initialisers may be without data then (shapes
  /// alone, or external files that are not there); integers that decide shapes still have to have theirs.
  bool without_weights = false;
  /// --made-up-weights: initialisers without data are drawn (f32 of two axes and more, so that what passes through layers stays of its size)
  /// or become ones (other reals) or zeros, so that the time of such a net can be measured. They take memory while they are converted.
  bool made_up_weights = false;
  std::function<void(Bytes, Bytes)> progress{};
};

/// A weight whose least blocks were left out.
struct PrunedWeight {
  std::string name;
  Bytes before, after;
  double noise_db = 0;  // signal to noise of its values; infinite: what was left out was zero
};

/// Figures of a conversion, for its report.
struct ConvertReport {
  std::vector<Problem> problems;          // empty on success
  std::vector<std::string> value_inputs;  // inputs that would have to be bound (ConvertOptions::values), where that was a problem
  std::vector<std::string> unbounded;     // values that would have to be given a bound (ConvertOptions::bounds), where that was a problem
  std::int64_t onnx_nodes = 0;
  std::int64_t nodes = 0;
  Bytes weight_bytes;
  Bytes file_bytes;
  Bytes coded_bytes;   // of weights that have coded stretches, raw
  Bytes stored_bytes;  // of all weights, as they are in the file
  std::int64_t sparse_weights = 0;
  std::vector<PrunedWeight> pruned;  // in the order of the graph
  Bytes sparse_bytes;                // of weights in sparse panels, raw
  Bytes sparse_dense_bytes;          // what they would take with their zeros
  // Of a model with dimensions that are bound when it is opened:
  std::vector<model::Dimension> dimensions;
  std::int64_t graphs = 1;       // for each choice of extents
  std::int64_t made_graphs = 1;  // of those, that were made; others are made when they are opened (model/variants.h)
  std::int64_t forms = 1;        // structures that these graphs have
  Bytes variant_bytes;           // weights that the bound's graph does not read
};

/// Converts `onnx_path` to `model_path`. On failure the Status carries the first problem's code and `report.problems` all of them.
Status convert(const std::string& onnx_path, const std::string& model_path, const ConvertOptions& options, ConvertReport& report);

}  // namespace sluice::importer
