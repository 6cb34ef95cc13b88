// Opens a model file: structure, then meaning, then ready. No weight is read.
//
//     0        prefix: magic, version, sizes, hash of the header       (docs/file-format.md)
//     128      header: a FlatBuffer (schema/model.fbs)                 read into private memory, verified, decoded, released
//     4096*k   resident segment: weights below 16 KiB
//     4096*m   streamed segment: the other weights, in step order
//
// A model file is untrusted: the FlatBuffers verifier with depth and table limits, then `validate`, then, as weights arrive, checksums. Of
// an encrypted file only the prefix is read until its key has shown that its writer had the same key.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "sluice/core/error.h"
#include "sluice/model/graph.h"
#include "sluice/model/key.h"
#include "sluice/model/variants.h"
#include "sluice/model/weight_source.h"

namespace sluice::model {

class FileKey;  // src/model/cipher.h
struct Prefix;  // src/model/header.h

/// An open model. Movable; keeps the file open. Thread-safe after opening (all const).
class ModelFile {
 public:
  /// The graph is that of `extents`, by default of the bound, and has passed `validate` with `rules`. Errors: kIo; kInvalidModel,
  /// kUnsupportedVersion, kChecksumMismatch with the rule that is broken; kInvalidArgument for extents that the file has no graph for.
  /// `key` is asked if the file is encrypted; then also kWrongKey, the key's own, and kUnsupported where OpenSSL cannot be loaded.
  static Result<ModelFile> open(const std::string& path, NodeRules rules, const Extents& extents = {}, const KeyCallback& key = {});
  /// Opens a model that is not a file of its own (model/other_sources.h); errors show `name` in place of a path.
  static Result<ModelFile> open(std::unique_ptr<WeightSource> source, const std::string& name, NodeRules rules, const Extents& extents = {},
                                const KeyCallback& key = {});
  /// Opens the same file with its graph of other extents: reads the header again, shares the open file and its key. Errors: those of
  /// `open`; kFileChanged.
  Result<ModelFile> with_extents(const Extents& extents) const;

  /// Opens the same file with a part of its graph (part.h) in place of the whole. Errors: those of `part_of` and of `validate`.
  Result<ModelFile> with_part(std::size_t first_node, std::size_t count) const;

  const Graph& graph() const noexcept { return *graph_; }
  /// The dimensions that can be bound, and the extents that this graph has; empty for a file of one shape.
  const std::vector<Dimension>& dimensions() const noexcept { return dimensions_; }
  /// The hash that plans are tied to: XXH3-64 of the header; of the extents too, if they are not the bound; of the part too, if this is
  /// one.
  std::uint64_t hash() const noexcept { return hash_; }
  const std::string& path() const noexcept { return path_; }
  /// Whether the path leads to the model, so that it can be opened a second time.
  bool has_path() const noexcept { return has_path_; }
  /// Errors: kUnsupported, by name, for a file that ends after its header (Feature::kWithoutWeights).
  Status check_has_weights() const;
  Bytes file_size() const noexcept { return file_size_; }
  Bytes header_bytes() const noexcept { return header_bytes_; }
  /// Reads weights of this file. Lives as long as the ModelFile, or another one of the same file.
  WeightSource& source() const noexcept { return *source_; }
  /// Decrypts the stretches of an encrypted file; null: the file is not encrypted. Lives as long as the source.
  const FileKey* key() const noexcept { return key_.get(); }

 private:
  explicit ModelFile(NodeRules rules) noexcept : rules_(&rules) {}
  Status read(const Extents& extents, const KeyCallback& key);
  Status take_key(const Prefix& prefix, const KeyCallback& key);

  Status (*rules_)(const Graph&, const Node&);
  std::string path_;
  bool has_path_ = true;
  bool has_weights_ = true;
  std::uint64_t header_hash_ = 0;
  std::uint64_t hash_ = 0;
  Bytes file_size_;
  Bytes header_bytes_;
  std::unique_ptr<Graph> graph_;
  std::vector<Dimension> dimensions_;
  std::shared_ptr<WeightSource> source_;
  std::shared_ptr<const FileKey> key_;
};

/// Reads every stretch and compares its checksum, or its tag. Errors: kChecksumMismatch naming the weight and the stretch's offset; kIo;
/// kFileChanged. `progress` is called with the bytes checked so far; may be empty.
Status verify_weights(const ModelFile& model, const std::function<void(Bytes)>& progress = {});

}  // namespace sluice::model
