// Opens a model file: structure, then meaning, then ready. No weight is read.
//
//     0        prefix: magic, version, sizes, hash of the header       (docs/file-format.md)
//     64       header: a FlatBuffer (schema/model.fbs)                 read into private memory, verified, decoded, released
//     4096*k   resident segment: weights below 16 KiB
//     4096*m   streamed segment: the other weights, in step order
//
// A model file is untrusted: the FlatBuffers verifier with depth and table limits, then `validate`, then, as weights arrive, checksums.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "sluice/core/error.h"
#include "sluice/model/graph.h"
#include "sluice/model/weight_source.h"

namespace sluice::model {

/// An open model. Movable; keeps the file open. Thread-safe after opening (all const).
class ModelFile {
 public:
  /// Errors: kIo; kInvalidModel, kUnsupportedVersion, kChecksumMismatch with the rule that is broken.
  static Result<ModelFile> open(const std::string& path);

  const Graph& graph() const noexcept { return *graph_; }
  /// XXH3-64 of the header: what plans are tied to.
  std::uint64_t hash() const noexcept { return hash_; }
  const std::string& path() const noexcept { return path_; }
  Bytes file_size() const noexcept { return file_size_; }
  Bytes header_bytes() const noexcept { return header_bytes_; }
  /// Reads weights of this file. Lives as long as the ModelFile.
  WeightSource& source() const noexcept { return *source_; }

 private:
  ModelFile() = default;
  std::string path_;
  std::uint64_t hash_ = 0;
  Bytes file_size_;
  Bytes header_bytes_;
  std::unique_ptr<Graph> graph_;
  std::unique_ptr<WeightSource> source_;
};

/// Reads every stretch and compares its checksum. Errors: kChecksumMismatch naming the weight and the stretch's offset; kIo; kFileChanged.
/// `progress` is called with the bytes checked so far; may be empty.
Status verify_weights(const ModelFile& model, const std::function<void(Bytes)>& progress = {});

}  // namespace sluice::model
