#include "sluice/model/model_writer.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sluice/core/file.h"
#include "sluice/core/hash.h"
#include "src/core/out_of_memory.h"
#include "src/model/header.h"
#include "src/model/layout.h"

namespace sluice::model {
namespace {

/// Encrypts a file as it is written.
struct Encryption {
  Salt salt{};
  Cipher cipher;

  static Result<std::optional<Encryption>> begin(const Key* key, const std::string& path) {
    if (key == nullptr) return std::nullopt;
    SLUICE_ASSIGN_OR_RETURN(const Salt salt, random_salt());
    SLUICE_ASSIGN_OR_RETURN(const auto file_key, FileKey::derive(*key, salt, path));
    SLUICE_ASSIGN_OR_RETURN(Cipher cipher, Cipher::make(*file_key, Direction::kEncrypt, path));
    return Encryption{salt, std::move(cipher)};
  }
};

tl::unexpected<Error> not_encrypted(const Graph& graph) { return fail(ErrorCode::kInternal, graph.name, "OpenSSL encrypted nothing"); }

/// Asks for the stretches of weights: first, if they are to be coded, to make tables of them, then to write them. `buffer_` is kept between
/// weights.
class WeightWriter {
 public:
  /// `cipher` may be null.
  WeightWriter(Graph& graph, WeightProducer& producer, const WriteOptions& options, Cipher* cipher, Bytes total)
      : graph_(graph), producer_(producer), options_(options), cipher_(cipher), total_(options.coder == nullptr ? total : 2 * total) {}

  /// Gives those weights tables that are worth it.
  Status choose_codes() {
    graph_.codes.clear();
    for (Weight& weight : graph_.weights) weight.code = kNoCode;
    if (options_.coder == nullptr) return {};
    for (const WeightId id : weights_in_file_order(graph_)) SLUICE_RETURN_IF_ERROR(choose_code(id));
    return {};
  }

  /// Writes a weight where it was laid out or, once one before it has shrunk, right behind that.
  Status write(WeightId id, AtomicFile& file) {
    Weight& weight = graph_.weights[id.index()];
    if (cipher_ != nullptr) graph_.tags.resize(graph_.stretches.size());
    if (shrunk_) weight.offset = align_up(end_, kWeightAlignment);
    end_ = weight.offset;
    return for_each_stretch(id, [&](Stretch& stretch) { return write(stretch, weight, file); });
  }

  /// The end of what was written.
  Bytes end() const noexcept { return end_; }

 private:
  template <class Use>
  Status for_each_stretch(WeightId id, const Use& use) {
    const Weight& weight = graph_.weight(id);
    const std::int64_t step = panels_per_stretch(weight.panel_bytes);
    for (std::uint32_t i = 0; i < weight.stretch_count; ++i) {
      Stretch& stretch = graph_.stretches[weight.first_stretch + i];
      const PanelRange panels{i * step, std::min((i + 1) * step, weight.panels)};
      buffer_.assign(stretch.raw_size.count(), std::byte{});
      SLUICE_RETURN_IF_ERROR(producer_.produce(id, panels, buffer_));
      SLUICE_RETURN_IF_ERROR(use(stretch));
      done_ += stretch.raw_size;
      if (options_.progress) options_.progress(done_, total_);
    }
    return {};
  }

  Status choose_code(WeightId id) {
    Weight& weight = graph_.weights[id.index()];
    if (!options_.coder->begin(weight)) {
      done_ += weight.bytes;
      return {};
    }
    SLUICE_RETURN_IF_ERROR(for_each_stretch(id, [&](Stretch&) -> Status {
      options_.coder->look(buffer_);
      return {};
    }));
    std::optional<Code> code = options_.coder->end();
    if (!code) return {};
    weight.code = static_cast<std::uint32_t>(graph_.codes.size());
    graph_.codes.push_back(*std::move(code));
    return {};
  }

  Status write(Stretch& stretch, const Weight& weight, AtomicFile& file) {
    std::optional<std::vector<std::byte>> coded;
    if (weight.code != kNoCode) coded = options_.coder->encode(graph_.codes[weight.code], buffer_);
    std::vector<std::byte>& stored = coded ? *coded : buffer_;
    shrunk_ = shrunk_ || coded;
    stretch.form = coded ? StretchForm::kCoded : StretchForm::kRaw;
    stretch.offset = end_;
    stretch.stored_size = Bytes(stored.size());
    if (cipher_ == nullptr) {
      stretch.xxh3 = xxh3_64(stored);
    } else {
      SLUICE_RETURN_IF_ERROR(encrypt(stretch, stored));
    }
    end_ += stretch.stored_size;
    return file.write_at(stretch.offset, stored);
  }

  /// Encrypts, in place, a stretch that is about to be written.
  Status encrypt(Stretch& stretch, std::span<std::byte> stored) {
    const auto index = static_cast<std::uint32_t>(&stretch - graph_.stretches.data());
    stretch.form = stretch.form | StretchForm::kEncrypted;
    if (cipher_->begin_stretch(index, stretch.stored_size, stretch.raw_size) && cipher_->update(stored) &&
        cipher_->take_tag(graph_.tags[index]))
      return {};
    return not_encrypted(graph_);
  }

  Graph& graph_;
  WeightProducer& producer_;
  const WriteOptions& options_;
  Cipher* cipher_;
  Bytes total_;
  Bytes done_;
  bool shrunk_ = false;  // a stretch, so that what follows lies elsewhere than it was laid out
  Bytes end_;
  std::vector<std::byte> buffer_;
};

/// Gives the weights their places; the header's size does not depend on what they are, so a first layout tells it.
Result<Prefix> lay_out(Graph& graph, const Variants* variants) {
  SLUICE_RETURN_IF_ERROR(assign_layout(graph, Bytes(kPrefixSize)));
  SLUICE_ASSIGN_OR_RETURN(const auto header, encode_header(graph, variants));
  Prefix prefix;
  prefix.needed = features_of(graph) | (variants == nullptr ? 0 : variants->needed);
  prefix.header_size = Bytes(header.size());
  SLUICE_ASSIGN_OR_RETURN(prefix.file_size, assign_layout(graph, Bytes(kPrefixSize) + prefix.header_size));
  return prefix;
}

Status write_header(const Graph& graph, const Variants* variants, Prefix prefix, Encryption* encryption, AtomicFile& file) {
  SLUICE_ASSIGN_OR_RETURN(auto header, encode_header(graph, variants));
  if (header.size() != prefix.header_size.count()) {
    return fail(ErrorCode::kInternal, graph.name, "the header's size depends on hashes or offsets");
  }
  if (encryption != nullptr) {
    Cipher& cipher = encryption->cipher;
    prefix.salt = encryption->salt;
    if (!cipher.begin_header(associated_prefix(prefix)) || !cipher.update(header) || !cipher.take_tag(prefix.header_tag))
      return not_encrypted(graph);
  }
  prefix.header_hash = xxh3_64(header);
  SLUICE_RETURN_IF_ERROR(file.write_at(Bytes(kPrefixSize), header));
  return file.write_at(Bytes(0), encode_prefix(prefix));
}

/// An invalid graph is a mistake of the caller here, not of a file.
Status as_argument_error(Status status) {
  if (!status && status.error().code == ErrorCode::kInvalidModel) status.error().code = ErrorCode::kInvalidArgument;
  return status;
}

Bytes weight_bytes(const Graph& graph) {
  Bytes total;
  for (const Weight& weight : graph.weights) total += weight.bytes;
  return total;
}

Status write_whole(Graph& graph, WeightProducer& producer, const std::string& path, NodeRules rules, const WriteOptions& options) {
  SLUICE_RETURN_IF_ERROR(as_argument_error(validate(graph, Bytes(0), rules)));
  if (options.variants != nullptr) SLUICE_RETURN_IF_ERROR(as_argument_error(options.variants->check(graph.name)));
  SLUICE_RETURN_IF_ERROR(assign_layout(graph, Bytes(kPrefixSize)));
  SLUICE_ASSIGN_OR_RETURN(std::optional<Encryption> encryption, Encryption::begin(options.key, path));
  WeightWriter writer(graph, producer, options, encryption ? &encryption->cipher : nullptr, weight_bytes(graph));
  SLUICE_RETURN_IF_ERROR(writer.choose_codes());
  SLUICE_ASSIGN_OR_RETURN(Prefix prefix, lay_out(graph, options.variants));
  SLUICE_RETURN_IF_ERROR(as_argument_error(validate(graph, prefix.file_size, rules)));

  SLUICE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::create(path));
  if (!options.weights) {
    prefix.needed |= bit_of(Feature::kWithoutWeights) | (encryption ? bit_of(Feature::kEncryption) : 0);
    SLUICE_RETURN_IF_ERROR(file.resize(Bytes(kPrefixSize) + prefix.header_size));
    SLUICE_RETURN_IF_ERROR(write_header(graph, options.variants, prefix, encryption ? &*encryption : nullptr, file));
    return file.commit();
  }
  SLUICE_RETURN_IF_ERROR(file.resize(prefix.file_size));
  for (const WeightId id : weights_in_file_order(graph)) SLUICE_RETURN_IF_ERROR(writer.write(id, file));
  if (!graph.codes.empty() || encryption) {
    prefix.needed |= features_of(graph) | (encryption ? bit_of(Feature::kEncryption) : 0);
    if (!graph.codes.empty()) {
      prefix.file_size = align_up(writer.end(), kSegmentAlignment);
      SLUICE_RETURN_IF_ERROR(file.resize(prefix.file_size));
    }
    SLUICE_RETURN_IF_ERROR(as_argument_error(validate(graph, prefix.file_size, rules)));
  }
  SLUICE_RETURN_IF_ERROR(write_header(graph, options.variants, prefix, encryption ? &*encryption : nullptr, file));
  if (options.before_commit) SLUICE_RETURN_IF_ERROR(options.before_commit());
  return file.commit();
}

}  // namespace

Status write_model(Graph& graph, WeightProducer& producer, const std::string& path, NodeRules rules, const WriteOptions& options) {
  return or_out_of_memory(path, [&] { return write_whole(graph, producer, path, rules, options); });
}

}  // namespace sluice::model
