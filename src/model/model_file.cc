#include "sluice/model/model_file.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "sluice/core/hash.h"
#include "sluice/core/sort.h"
#include "sluice/model/part.h"
#include "src/core/out_of_memory.h"
#include "src/model/aligned_buffer.h"
#include "src/model/built_features.h"
#include "src/model/header.h"

namespace sluice::model {
namespace {

/// Reads [0, size) of a source into private memory.
Result<AlignedBuffer> read_start(WeightSource& source, Bytes size, const std::string& path) {
  AlignedBuffer buffer = AlignedBuffer::allocate(size);
  if (buffer.data() == nullptr) return fail(make_error(ErrorCode::kOutOfMemory, path, "no memory for the header", size.count(), 0));
  SLUICE_RETURN_IF_ERROR(source.read({Bytes(0), size}, buffer.data()));
  return buffer;
}

Result<Prefix> read_prefix(WeightSource& source, const std::string& path) {
  if (source.size() < Bytes(kPrefixSize)) {
    return fail(make_error(ErrorCode::kInvalidModel, path, "the file is too short for a model file", kPrefixSize, source.size().count()));
  }
  SLUICE_ASSIGN_OR_RETURN(const AlignedBuffer buffer, read_start(source, Bytes(kPrefixSize), path));
  return decode_prefix({buffer.data(), kPrefixSize}, source.size(), path);
}

/// Decrypts the header in place. What is damaged has another hash, so a tag that does not agree is the key's fault, or a forgery.
Status decrypt_header(const Prefix& prefix, const FileKey& key, std::span<std::byte> header, const std::string& path) {
  SLUICE_ASSIGN_OR_RETURN(Cipher cipher, Cipher::make(key, Direction::kDecrypt, path));
  if (cipher.begin_header(associated_prefix(prefix)) && cipher.update(header) && cipher.agrees_with(prefix.header_tag)) return {};
  return fail(ErrorCode::kWrongKey, path, "the key is not the one that the model was encrypted with, or its header was forged");
}

/// `key` is null unless the file is encrypted.
Result<OpenHeader> read_header(WeightSource& source, const Prefix& prefix, const std::string& path, NodeRules rules, const Extents& extents,
                               const FileKey* key) {
  const Bytes header_end = Bytes(kPrefixSize) + prefix.header_size;
  SLUICE_ASSIGN_OR_RETURN(AlignedBuffer buffer, read_start(source, header_end, path));
  const std::span<std::byte> header(buffer.data() + kPrefixSize, prefix.header_size.count());
  if (xxh3_64(header) != prefix.header_hash) {
    return fail(ErrorCode::kChecksumMismatch, path, "the header is not the one that was written");
  }
  if (is_built(Feature::kEncryption) && key != nullptr) {
    buffer.keep_secret(header_end);
    SLUICE_RETURN_IF_ERROR(decrypt_header(prefix, *key, header, path));
  }
  SLUICE_ASSIGN_OR_RETURN(OpenHeader open, decode_header(header, path, extents));
  // Features of the file that its graph does not show: a file without weights has no encrypted stretch, but is still encrypted.
  const Features of_file = prefix.needed & (bit_of(Feature::kEncryption) | bit_of(Feature::kWithoutWeights));
  if ((open.needed | of_file) != prefix.needed) return fail(ErrorCode::kInvalidModel, path, "prefix and header name other features");
  SLUICE_RETURN_IF_ERROR(validate(open.graph, prefix.file_size, rules));
  // Stretches lie in rising order (G5), so the first stands for all.
  if (!open.graph.stretches.empty() && open.graph.stretches.front().offset < header_end) {
    return fail(ErrorCode::kInvalidModel, path, "a weight lies inside the header");
  }
  return open;
}

/// The hash of a graph that is not the file's own.
std::uint64_t hash_at(std::uint64_t header_hash, std::span<const Dimension> dimensions) {
  std::vector<std::uint64_t> numbers = {header_hash};
  for (const Dimension& dimension : dimensions) numbers.push_back(static_cast<std::uint64_t>(dimension.extent));
  return xxh3_64(std::as_bytes(std::span(numbers)));
}

/// Reads stretches in file order through one buffer and compares their hashes, or their tags.
class StretchVerifier {
 public:
  StretchVerifier(const ModelFile& model, const std::function<void(Bytes)>& progress) : model_(model), progress_(progress) {}

  Status run() {
    if (buffer_.data() == nullptr) {
      return fail(make_error(ErrorCode::kOutOfMemory, model_.path(), "no memory for reading", size_.count(), 0));
    }
    if (is_built(Feature::kEncryption) && model_.key() != nullptr) {
      SLUICE_ASSIGN_OR_RETURN(Cipher cipher, Cipher::make(*model_.key(), Direction::kDecrypt, model_.path()));
      cipher_ = std::move(cipher);
      buffer_.keep_secret(size_);
    }
    // Goes in file order, so that each byte is read once.
    std::vector<const Weight*> order;
    for (const Weight& weight : model_.graph().weights) order.push_back(&weight);
    sluice::sort(order.begin(), order.end(), [](const Weight* a, const Weight* b) { return a->first_stretch < b->first_stretch; });
    for (const Weight* weight : order)
      for (std::uint32_t i = 0; i < weight->stretch_count; ++i) SLUICE_RETURN_IF_ERROR(verify(*weight, weight->first_stretch + i));
    return model_.source().check_unchanged();
  }

 private:
  static constexpr std::uint64_t kMostBufferBytes = 1u << 20;

  Status verify(const Weight& weight, std::uint32_t index) {
    const Stretch& stretch = model_.graph().stretches[index];
    SLUICE_ASSIGN_OR_RETURN(const bool agrees, cipher_ ? tag_agrees(stretch, index) : hash_agrees(stretch));
    if (!agrees) {
      const std::string subject = weight.name + " at file offset " + std::to_string(stretch.offset.count());
      return fail(ErrorCode::kChecksumMismatch, subject, "the bytes of this weight are not those that were written");
    }
    checked_ += stretch.stored_size;
    if (progress_) progress_(checked_);
    return {};
  }

  Result<bool> hash_agrees(const Stretch& stretch) {
    Xxh3 hash;
    SLUICE_RETURN_IF_ERROR(for_each_piece(stretch, [&](std::span<std::byte> bytes) { hash.update(bytes); }));
    return hash.digest() == stretch.xxh3;
  }

  Result<bool> tag_agrees(const Stretch& stretch, std::uint32_t index) {
    bool sound = cipher_->begin_stretch(index, stretch.stored_size, stretch.raw_size);
    SLUICE_RETURN_IF_ERROR(for_each_piece(stretch, [&](std::span<std::byte> bytes) { sound = sound && cipher_->update(bytes); }));
    return sound && cipher_->agrees_with(model_.graph().tags[index]);
  }

  /// Calls use(bytes) with the stored bytes of a stretch, from the first to the last, which it may write to.
  template <class Use>
  Status for_each_piece(const Stretch& stretch, const Use& use) {
    for (std::uint64_t done = 0; done < stretch.stored_size.count();) {
      SLUICE_ASSIGN_OR_RETURN(const auto bytes, bytes_at(stretch.offset + Bytes(done)));
      const std::uint64_t taken = std::min<std::uint64_t>(bytes.size(), stretch.stored_size.count() - done);
      use(bytes.first(taken));
      done += taken;
    }
    return {};
  }

  /// The bytes of the file from `offset` to the end of the buffer, which is moved there if it has to be.
  Result<std::span<std::byte>> bytes_at(Bytes offset) {
    if (offset < held_.offset || offset >= held_.end()) {
      held_ = {};
      const Bytes begin(align_down(offset.count(), AlignedBuffer::kAlignment));
      const FileRange range{begin, std::min(size_, model_.file_size() - begin)};
      SLUICE_RETURN_IF_ERROR(model_.source().read(range, buffer_.data()));
      held_ = range;
    }
    const std::uint64_t skipped = (offset - held_.offset).count();
    return std::span<std::byte>(buffer_.data() + skipped, held_.size.count() - skipped);
  }

  const ModelFile& model_;
  const std::function<void(Bytes)>& progress_;
  const Bytes size_ = std::min(Bytes(kMostBufferBytes), model_.file_size());  // pages that nothing is read into are made and wiped, too
  AlignedBuffer buffer_ = AlignedBuffer::allocate(size_);
  FileRange held_;  // what of the file is in the buffer
  Bytes checked_;
  std::optional<Cipher> cipher_;
};

}  // namespace

Result<ModelFile> ModelFile::open(const std::string& path, NodeRules rules, const Extents& extents, const KeyCallback& key) {
  return or_out_of_memory(path, [&]() -> Result<ModelFile> {
    ModelFile model(rules);
    model.path_ = path;
    SLUICE_ASSIGN_OR_RETURN(model.source_, open_weight_source(path));
    SLUICE_RETURN_IF_ERROR(model.read(extents, key));
    return model;
  });
}

Result<ModelFile> ModelFile::open(std::unique_ptr<WeightSource> source, const std::string& name, NodeRules rules, const Extents& extents,
                                  const KeyCallback& key) {
  return or_out_of_memory(name, [&]() -> Result<ModelFile> {
    ModelFile model(rules);
    model.path_ = name;
    model.has_path_ = false;
    model.source_ = std::move(source);
    SLUICE_RETURN_IF_ERROR(model.read(extents, key));
    return model;
  });
}

Result<ModelFile> ModelFile::with_extents(const Extents& extents) const {
  SLUICE_RETURN_IF_ERROR(source_->check_unchanged());
  return or_out_of_memory(path_, [&]() -> Result<ModelFile> {
    ModelFile model(*rules_);
    model.path_ = path_;
    model.has_path_ = has_path_;
    model.source_ = source_;
    model.key_ = key_;
    SLUICE_RETURN_IF_ERROR(model.read(extents, {}));
    if (model.header_hash_ != header_hash_) return fail(ErrorCode::kFileChanged, path_, "the file was written while in use");
    return model;
  });
}

Result<ModelFile> ModelFile::with_part(std::size_t first_node, std::size_t count) const {
  return or_out_of_memory(path_, [&]() -> Result<ModelFile> {
    SLUICE_ASSIGN_OR_RETURN(Part part, part_of(*graph_, first_node, count));
    SLUICE_RETURN_IF_ERROR(validate(part.graph, file_size_, *rules_));
    ModelFile model(*rules_);
    model.path_ = path_;
    model.has_path_ = has_path_;
    model.source_ = source_;
    model.key_ = key_;
    model.header_hash_ = header_hash_;
    const std::array<std::uint64_t, 3> identity = {hash_, first_node, count};
    model.hash_ = xxh3_64(std::as_bytes(std::span(identity)));
    model.file_size_ = file_size_;
    model.header_bytes_ = header_bytes_;
    model.dimensions_ = dimensions_;
    model.graph_ = std::make_unique<Graph>(std::move(part.graph));
    return model;
  });
}

/// For an encrypted file that is opened for the first time.
Status ModelFile::take_key(const Prefix& prefix, const KeyCallback& key) {
  if constexpr (!is_built(Feature::kEncryption)) {
    return fail(ErrorCode::kUnsupported, path_, "the model is encrypted, and this build was trimmed to models that are not");
  } else {
    if (!key) return fail(ErrorCode::kWrongKey, path_, "the model is encrypted, and no key was given");
    Key given;
    SLUICE_RETURN_IF_ERROR(key(given.bytes()));
    SLUICE_ASSIGN_OR_RETURN(key_, FileKey::derive(given, prefix.salt, path_));
    return {};
  }
}

Status ModelFile::read(const Extents& extents, const KeyCallback& key) {
  SLUICE_ASSIGN_OR_RETURN(const Prefix prefix, read_prefix(*source_, path_));
  if (!prefix.encrypted()) {
    key_.reset();
  } else if (key_ == nullptr || key_->salt() != prefix.salt) {
    SLUICE_RETURN_IF_ERROR(take_key(prefix, key));
  }
  SLUICE_ASSIGN_OR_RETURN(OpenHeader header, read_header(*source_, prefix, path_, *rules_, extents, key_.get()));
  graph_ = std::make_unique<Graph>(std::move(header.graph));
  dimensions_ = std::move(header.dimensions);
  header_hash_ = prefix.header_hash;
  hash_ = header.at_bound ? header_hash_ : hash_at(header_hash_, dimensions_);
  file_size_ = prefix.file_size;
  has_weights_ = (prefix.needed & bit_of(Feature::kWithoutWeights)) == 0;
  header_bytes_ = prefix.header_size;
  return {};
}

Status ModelFile::check_has_weights() const {
  if (has_weights_) return {};
  return fail(ErrorCode::kUnsupported, path_,
              "the model file has no weights: it can be planned and predicted, not run; convert it with them");
}

Status verify_weights(const ModelFile& model, const std::function<void(Bytes)>& progress) {
  SLUICE_RETURN_IF_ERROR(model.check_has_weights());
  return or_out_of_memory(model.path(), [&] { return StretchVerifier(model, progress).run(); });
}

}  // namespace sluice::model
