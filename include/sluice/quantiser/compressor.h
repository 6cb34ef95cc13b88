// ONNX of floats in, a smaller model file out: weights that become zero, weights that share a few values, with a report of what that cost
// (docs/quantisation.md, ADR 0041).
//
//     read --fold norms--> layers --observe their inputs over the data--> shrink each --compare outputs--> convert
//
// With data, what a weight loses is made up for by the others of its output. Nothing here depends on time or threads: the same data gives
// the same file.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sluice/quantiser/quantiser.h"

namespace sluice::quantiser {

struct CompressOptions {
  importer::ConvertOptions convert;  // all of it, for the model file
  double prune = 0;                  // this share of the weights of each layer becomes zero, from 0 to 0.99
  /// 2 to 256: each layer's weights are one of so many whole numbers times their output's scale, and stored as bytes, which coding makes
  /// shorter. Zeros may then be anywhere. 0: weights stay f32, and zeros are in blocks of 16 outputs x 1 input, which kernels skip.
  std::size_t cluster = 0;
  /// So many times fewer bytes than the file's floats are what all weights are stored in, at the least: values and single zeros of each
  /// layer are chosen so that the noise of all layers together is the least. Above 1, and instead of `prune` and `cluster`. 0: not asked
  /// for. Takes about four times the memory of the weights, in addition to what the others take.
  double smaller = 0;
  Bytes tensor_memory{256u << 20};  // of observed tensors that lie in the arena at once, and of what is kept of the inputs
  std::function<void(std::string_view stage, std::size_t done, std::size_t all)> progress;
};

/// One layer whose weights changed.
struct CompressedLayer {
  std::string node;
  std::string op;
  std::size_t weights = 0;
  std::size_t values = 0;  // different codes; 0: not clustered
  double zeros = 0;        // the share of weights that are zero
  double noise_db = 0;     // signal to noise of its outputs over the data by itself; without data, of its weights
  /// Its outputs sum so many values, too many for data to help: nothing was made up for, and the noise is that of its weights. Else 0.
  std::int64_t too_long = 0;
};

struct CompressReport {
  std::vector<importer::Problem> problems;  // empty on success
  std::size_t items = 0;
  std::vector<CompressedLayer> layers;  // in the order of the graph
  std::vector<OutputNoise> outputs;     // with data: of the whole model, beside f32
  std::int64_t rows = 0;                // as in Report
  std::int64_t agreeing = 0;
  Bytes float_bytes;  // of the file's floats: what `smaller` is counted from
  importer::ConvertReport converted;
};

/// Writes `onnx_path` with fewer weights as the model file `out_path`. Without items in `data` nothing is made up for. Errors: those of
/// importer::convert, with `report.problems`; kInvalidArgument for options that make no sense, and for a model that cannot be so many times
/// `smaller`; kUnsupported where no layer has weights that could be changed.
Status compress(const std::string& onnx_path, const std::string& out_path, const Data& data, const CompressOptions& options,
                CompressReport& report);

}  // namespace sluice::quantiser
