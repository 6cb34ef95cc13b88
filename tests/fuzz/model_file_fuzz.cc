// Opens any bytes as a model file. An input is the file up to the end of its header. Most mutations change the header and make the prefix
// agree with it again, so that verifier, decoder and validation see them; the others change anything.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "sluice/core/hash.h"
#include "sluice/model/model_file.h"
#include "sluice/operators/validate.h"
#include "src/model/header.h"
#include "src/model/layout.h"
#include "tests/fuzz/virtual_file.h"
#include "tests/model/sample_graph.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

using namespace sluice;
using namespace sluice::model;

constexpr std::size_t kFileSizeField = 40;
constexpr std::uint64_t kMostFileSize = std::uint64_t{1} << 40;

std::uint64_t claimed_file_size(std::span<const std::uint8_t> bytes) {
  std::uint64_t size = 0;
  if (bytes.size() >= kPrefixSize) std::memcpy(&size, bytes.data() + kFileSizeField, sizeof size);
  return size > kMostFileSize ? 0 : size;
}

const Extents kOther = {{"n", 1}};

/// The sample, and with n = 1 a graph that has other numbers.
Variants variants_of(const Graph& graph) {
  Graph other = graph;
  other.nodes[kLrnNode].attributes = LrnAttributes{.size = 3, .alpha = 0.5f, .beta = 0.5f, .bias = 2.0f};
  VariantsEncoder encoder({{"n", {1, 2}, 0}});
  static_cast<void>(encoder.add(1, graph));
  static_cast<void>(encoder.add(0, other));
  return encoder.take();
}

constexpr std::size_t kNeededField = 48;

/// Prefix and header of a graph.
std::vector<std::uint8_t> seed(Graph graph) {
  const Variants variants = variants_of(graph);
  static_cast<void>(assign_layout(graph, Bytes(0)));
  const Bytes file_size = *assign_layout(graph, Bytes(kPrefixSize + encode_header(graph, &variants)->size()));
  const auto header = *encode_header(graph, &variants);
  const auto prefix = encode_prefix({Bytes(header.size()), xxh3_64(header), file_size, features_of(graph)});
  std::vector<std::uint8_t> bytes(kPrefixSize + header.size());
  std::memcpy(bytes.data(), prefix.data(), kPrefixSize);
  std::memcpy(bytes.data() + kPrefixSize, header.data(), header.size());
  return bytes;
}

/// What a planner does first. The sum keeps the reads from being optimised away.
std::uint64_t use(const Graph& graph) {
  std::uint64_t sum = 0;
  std::vector<WeightId> read;
  for (const Node& node : graph.nodes) weights_read_by(graph, node, read);
  for (const WeightId id : read) sum += panel_range(graph.weight(id), {0, graph.weight(id).panels}).end().count();
  for (const Tensor& tensor : graph.tensors) sum += tensor.bytes().count();
  return sum;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  VirtualFile::install({data, size}, claimed_file_size({data, size}));
  for (const Extents& extents : {Extents(), kOther}) {
    const auto model = ModelFile::open("input", operators::validate_node, extents);
    if (model && use(model->graph()) == 0) std::abort();
  }
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned int random) {
  static const std::vector<std::uint8_t> samples[] = {seed(sample_graph()), seed(every_feature())};
  const std::vector<std::uint8_t>& sample = samples[random / 8 % 2];
  if (size <= kPrefixSize && sample.size() <= max_size) {
    std::memcpy(data, sample.data(), sample.size());
    size = sample.size();
  }
  if (random % 8 == 0 || size <= kPrefixSize) return LLVMFuzzerMutate(data, size, max_size);
  const std::size_t header_size = LLVMFuzzerMutate(data + kPrefixSize, size - kPrefixSize, max_size - kPrefixSize);
  const auto header = std::as_bytes(std::span(data + kPrefixSize, header_size));
  const std::uint64_t file_size = std::max<std::uint64_t>(claimed_file_size({data, size}), kPrefixSize + header_size);
  Features needed = 0;
  std::memcpy(&needed, data + kNeededField, sizeof needed);
  const auto prefix = encode_prefix({Bytes(header_size), xxh3_64(header), Bytes(file_size), needed});
  std::memcpy(data, prefix.data(), kPrefixSize);
  return kPrefixSize + header_size;
}
