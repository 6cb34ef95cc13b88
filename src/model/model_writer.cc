#include "sluice/model/model_writer.h"

#include <algorithm>
#include <vector>

#include "sluice/core/file.h"
#include "sluice/core/hash.h"
#include "src/core/out_of_memory.h"
#include "src/model/header.h"
#include "src/model/layout.h"

namespace sluice::model {
namespace {

/// Asks for each stretch of a weight, hashes it and writes it. `buffer` is kept between weights.
class WeightWriter {
 public:
  WeightWriter(Graph& graph, WeightProducer& producer, AtomicFile& file, const WriteOptions& options, Bytes total)
      : graph_(graph), producer_(producer), file_(file), options_(options), total_(total) {}

  Status write(WeightId id) {
    const Weight& weight = graph_.weight(id);
    const std::int64_t step = panels_per_stretch(weight.panel_bytes);
    for (std::uint32_t i = 0; i < weight.stretch_count; ++i) {
      Stretch& stretch = graph_.stretches[weight.first_stretch + i];
      const PanelRange panels{i * step, std::min((i + 1) * step, weight.panels)};
      buffer_.assign(stretch.raw_size.count(), std::byte{});
      SLUICE_RETURN_IF_ERROR(producer_.produce(id, panels, buffer_));
      stretch.xxh3 = xxh3_64(buffer_);
      SLUICE_RETURN_IF_ERROR(file_.write_at(stretch.offset, buffer_));
      written_ += stretch.stored_size;
      if (options_.progress) options_.progress(written_, total_);
    }
    return {};
  }

 private:
  Graph& graph_;
  WeightProducer& producer_;
  AtomicFile& file_;
  const WriteOptions& options_;
  Bytes total_;
  Bytes written_;
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

Status write_header(const Graph& graph, const Variants* variants, Prefix prefix, AtomicFile& file) {
  SLUICE_ASSIGN_OR_RETURN(const auto header, encode_header(graph, variants));
  if (header.size() != prefix.header_size.count()) {
    return fail(ErrorCode::kInternal, graph.name, "the header's size depends on hashes or offsets");
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
  SLUICE_ASSIGN_OR_RETURN(const Prefix prefix, lay_out(graph, options.variants));
  SLUICE_RETURN_IF_ERROR(as_argument_error(validate(graph, prefix.file_size, rules)));

  SLUICE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::create(path));
  SLUICE_RETURN_IF_ERROR(file.resize(prefix.file_size));
  WeightWriter writer(graph, producer, file, options, weight_bytes(graph));
  for (const WeightId id : weights_in_file_order(graph)) SLUICE_RETURN_IF_ERROR(writer.write(id));
  SLUICE_RETURN_IF_ERROR(write_header(graph, options.variants, prefix, file));
  if (options.before_commit) SLUICE_RETURN_IF_ERROR(options.before_commit());
  return file.commit();
}

}  // namespace

Status write_model(Graph& graph, WeightProducer& producer, const std::string& path, NodeRules rules, const WriteOptions& options) {
  return or_out_of_memory(path, [&] { return write_whole(graph, producer, path, rules, options); });
}

}  // namespace sluice::model
