#include "sluice/model/model_file.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <random>

#include "sluice/core/hash.h"
#include "sluice/operators/validate.h"
#include "src/model/header.h"
#include "src/model/layout.h"
#include "tests/core/fake_file_ops.h"
#include "tests/core/temporary_files.h"
#include "tests/model/open_bytes.h"
#include "tests/model/sample_graph.h"

namespace sluice::model {
namespace {

/// The sample's file, and where its parts are.
struct SampleFile {
  Graph graph = sample_graph();
  std::string bytes;
  std::size_t header_end = 0;

  SampleFile() {
    const TemporaryDirectory directory;
    PatternProducer producer(graph);
    REQUIRE(write_model(graph, producer, directory.file("m"), operators::validate_node));
    bytes = read_text(directory.file("m"));
    std::uint64_t header_size = 0;
    std::memcpy(&header_size, bytes.data() + 24, sizeof header_size);
    header_end = kPrefixSize + header_size;
  }
};

/// Weights that differ from those of PatternProducer in each byte.
class OtherProducer final : public WeightProducer {
 public:
  explicit OtherProducer(const Graph& graph) : pattern_(graph) {}

  Status produce(WeightId id, PanelRange p, std::span<std::byte> out) override {
    const Status status = pattern_.produce(id, p, out);
    for (std::byte& value : out) value = ~value;
    return status;
  }

 private:
  PatternProducer pattern_;
};

/// Makes the prefix's hash that of the header as it is now, so that what lies behind the hash is reached.
void rehash(std::string& bytes, std::size_t header_end) {
  const std::uint64_t hash = xxh3_64(std::as_bytes(std::span(bytes)).subspan(kPrefixSize, header_end - kPrefixSize));
  std::memcpy(bytes.data() + 32, &hash, sizeof hash);
}

void flip(std::string& bytes, std::size_t bit) { bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8))); }

/// What a planner does with any graph that opened: no number in it may lead astray.
std::uint64_t use(const Graph& graph) {
  std::uint64_t sum = 0;
  std::vector<WeightId> read;
  for (const Node& node : graph.nodes) weights_read_by(graph, node, read);
  for (const WeightId id : read) sum += panel_range(graph.weight(id), {0, graph.weight(id).panels}).end().count();
  for (const Tensor& tensor : graph.tensors) sum += tensor.bytes().count();
  for (const Weight& weight : graph.weights) {
    for (const Stretch& stretch : graph.stretches_of(weight)) sum += stretch.offset.count();
  }
  return sum;
}

}  // namespace

TEST_CASE("a model file gives back the graph that was written") {
  const SampleFile sample;
  const ScopedFileOps memory(MemoryFile::ops());
  const auto model = open_bytes(sample.bytes);
  INFO((model ? "" : model.error().to_string()));
  REQUIRE(model);
  const Graph& graph = model->graph();

  // The header holds every field, and encoding is a function of the graph: equal headers are equal graphs.
  const auto again = encode_header(graph);
  REQUIRE(again);
  CHECK(std::memcmp(again->data(), sample.bytes.data() + kPrefixSize, again->size()) == 0);
  CHECK(again->size() == model->header_bytes().count());
  CHECK(model->file_size().count() == sample.bytes.size());
  CHECK(model->hash() == xxh3_64(*again));

  CHECK(graph.nodes[kWinograd].numeric == NumericClass::kWinograd4);
  CHECK(graph.nodes[kGrouped].epilogue == Epilogue{.has_bias = true, .activation = {Function::kClip, 0, 6}});
  CHECK(graph.nodes[kStem].as<ConvAttributes>().window == sample.graph.nodes[kStem].as<ConvAttributes>().window);
  CHECK(graph.nodes[kSliceNode].as<SliceAttributes>().step[2] == -1);
  CHECK(graph.nodes[kPadNode].as<PadAttributes>().before[2] == 2);
  CHECK(graph.nodes[kTransposeNode].as<TransposeAttributes>().perm[1] == 2);
  CHECK(graph.inputs[0].onnx_shape == Shape{1, 3, 8, 8});
  CHECK(graph.preprocess.stddev[2] == 0.225f);
  CHECK(graph.labels == std::vector<std::string>{"tabby", "espresso", ""});
}

TEST_CASE("weights lie where the header says, small ones first, in whole stretches") {
  const SampleFile sample;
  for (std::size_t i = 0; i < sample.graph.weights.size(); ++i) {
    const Weight& weight = sample.graph.weights[i];
    INFO(weight.name);
    CHECK(weight.always_resident == (weight.bytes < kAlwaysResidentBelow));
    CHECK(weight.offset.count() % kWeightAlignment == 0);
    bool equal = true;
    for (std::uint64_t b = 0; b < weight.bytes.count(); ++b) {
      equal = equal && static_cast<std::byte>(sample.bytes[weight.offset.count() + b]) == PatternProducer::byte_at(WeightId(i), b);
    }
    CHECK(equal);
  }
  const auto of_name = [&](const std::string& name) {
    return *std::find_if(sample.graph.weights.begin(), sample.graph.weights.end(), [&](const Weight& w) { return w.name == name; });
  };
  CHECK(of_name("dense.weight").stretch_count == 2);  // 20 panels of 6 KiB
  CHECK(of_name("winograd.weight").offset.count() % kSegmentAlignment == 0);
  CHECK(of_name("gain.values").offset < of_name("winograd.weight").offset);
  CHECK(of_name("stem.weight").offset < of_name("stem.bias").offset);
  CHECK(sample.bytes.size() % kSegmentAlignment == 0);
}

TEST_CASE("a model file cut anywhere is refused") {
  const SampleFile sample;
  const ScopedFileOps memory(MemoryFile::ops());
  for (std::size_t size = 0; size < sample.bytes.size(); size += size < sample.header_end ? 1 : 4096) {
    const auto model = open_bytes(sample.bytes.substr(0, size));
    REQUIRE_FALSE(model);
    REQUIRE(model.error().code == ErrorCode::kInvalidModel);
  }
  REQUIRE_FALSE(open_bytes(sample.bytes + '\0'));
}

TEST_CASE("a flipped bit of the header is refused") {
  const SampleFile sample;
  const ScopedFileOps memory(MemoryFile::ops());
  MemoryFile::bytes() = sample.bytes;
  for (std::size_t bit = 0; bit < sample.header_end * 8; ++bit) {
    flip(MemoryFile::bytes(), bit);
    const auto model = ModelFile::open("memory", operators::validate_node);
    flip(MemoryFile::bytes(), bit);
    INFO("bit " << bit);
    REQUIRE_FALSE(model);
  }
}

TEST_CASE("a flipped bit of the header is safe even where the hash agrees") {
  const SampleFile sample;
  const ScopedFileOps memory(MemoryFile::ops());
  MemoryFile::bytes() = sample.bytes;
  int refused = 0;
  for (std::size_t bit = kPrefixSize * 8; bit < sample.header_end * 8; ++bit) {
    flip(MemoryFile::bytes(), bit);
    rehash(MemoryFile::bytes(), sample.header_end);
    if (const auto model = ModelFile::open("memory", operators::validate_node)) {
      REQUIRE(use(model->graph()) > 0);
      REQUIRE(validate(model->graph(), model->file_size(), operators::validate_node));
    } else {
      ++refused;
    }
    flip(MemoryFile::bytes(), bit);
  }
  CHECK(refused > 1000);
}

TEST_CASE("random damage to the header is safe even where the hash agrees") {
  const SampleFile sample;
  const ScopedFileOps memory(MemoryFile::ops());
  std::mt19937_64 random(7);
  constexpr unsigned char kValues[] = {0, 1, 0x7f, 0x80, 0xff};
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = sample.bytes;
    for (std::size_t hits = random() % 6 + 1; hits > 0; --hits) {
      const std::size_t at = kPrefixSize + random() % (sample.header_end - kPrefixSize - 8);
      std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), random() % 8 + 1, static_cast<char>(kValues[random() % 5]));
    }
    rehash(bytes, sample.header_end);
    if (const auto model = open_bytes(bytes)) REQUIRE(use(model->graph()) > 0);
  }
}

TEST_CASE("every flipped bit of a weight is found") {
  const SampleFile sample;
  const ScopedFileOps memory(MemoryFile::ops());
  const auto model = open_bytes(sample.bytes);
  REQUIRE(model);
  Bytes checked;
  REQUIRE(verify_weights(*model, [&](Bytes bytes) { checked = bytes; }));
  Bytes total;
  for (const Weight& weight : sample.graph.weights) total += weight.bytes;
  CHECK(checked == total);
  std::mt19937_64 random(11);
  for (int round = 0; round < 10000; ++round) {
    const Weight& weight = sample.graph.weights[random() % sample.graph.weights.size()];
    const std::size_t bit = weight.offset.count() * 8 + random() % (weight.bytes.count() * 8);
    flip(MemoryFile::bytes(), bit);
    const Status status = verify_weights(*model);
    flip(MemoryFile::bytes(), bit);
    REQUIRE_FALSE(status);
    REQUIRE(status.error().code == ErrorCode::kChecksumMismatch);
    REQUIRE(status.error().subject().substr(0, weight.name.size()) == weight.name);
  }
}

TEST_CASE("swapped, doubled and erased segments are found") {
  const SampleFile sample;
  const ScopedFileOps memory(MemoryFile::ops());
  const auto model = open_bytes(sample.bytes);
  REQUIRE(model);
  const std::size_t first = align_up(sample.header_end, kSegmentAlignment);
  const std::size_t last = sample.bytes.size() - kSegmentAlignment;
  std::string& bytes = MemoryFile::bytes();

  std::swap_ranges(bytes.begin() + first, bytes.begin() + first + kSegmentAlignment, bytes.begin() + last);
  CHECK_FALSE(verify_weights(*model));
  bytes = sample.bytes;
  std::copy_n(sample.bytes.begin() + first, kSegmentAlignment, bytes.begin() + first + kSegmentAlignment);
  CHECK_FALSE(verify_weights(*model));
  bytes = sample.bytes;
  std::fill(bytes.begin() + first, bytes.end(), '\0');
  CHECK_FALSE(verify_weights(*model));
  bytes = sample.bytes;
  CHECK(verify_weights(*model));
  bytes.resize(last);
  CHECK(verify_weights(*model).error().code == ErrorCode::kFileChanged);
}

TEST_CASE("segments of another model with the same layout are found, and so is its header") {
  const SampleFile sample;
  // The same graph with other weights, as it would be after more training.
  const TemporaryDirectory directory;
  Graph graph = sample_graph();
  OtherProducer producer(graph);
  REQUIRE(write_model(graph, producer, directory.file("m"), operators::validate_node));
  const std::string other = read_text(directory.file("m"));
  REQUIRE(other.size() == sample.bytes.size());

  const ScopedFileOps memory(MemoryFile::ops());
  const std::size_t begin = align_up(sample.header_end, kSegmentAlignment);
  int foreign = 0;
  for (std::size_t at = begin; at < other.size(); at += kSegmentAlignment) {
    const std::size_t size = std::min<std::size_t>(kSegmentAlignment, other.size() - at);
    if (other.compare(at, size, sample.bytes, at, size) == 0) continue;  // padding alone
    std::string mixed = sample.bytes;
    mixed.replace(at, size, other, at, size);
    const auto model = open_bytes(mixed);
    REQUIRE(model);
    const Status status = verify_weights(*model);
    INFO("segment at " << at);
    REQUIRE_FALSE(status);
    CHECK(status.error().code == ErrorCode::kChecksumMismatch);
    ++foreign;
  }
  CHECK(foreign > 2);
  const auto model = open_bytes(other.substr(0, begin) + sample.bytes.substr(begin));
  REQUIRE(model);
  CHECK(verify_weights(*model).error().code == ErrorCode::kChecksumMismatch);
}

TEST_CASE("each failing call of opening and verifying is an error or makes no difference") {
  const SampleFile sample;
  const TemporaryDirectory directory;
  write_text(directory.file("m"), sample.bytes);
  const ScopedFileOps ops(FaultPlan::ops());
  int failures = 0;
  for (int n = 0;; ++n) {
    INFO("call " << n);
    FaultPlan::current() = {.fail_at = n};
    const auto model = ModelFile::open(directory.file("m"), operators::validate_node);
    const Status status = model ? verify_weights(*model) : fail(model.error());
    if (FaultPlan::current().calls <= n) break;  // there was no such call
    // A failing trial of direct reads is no failure: larger blocks and buffered reads are left.
    if (status) continue;
    ++failures;
    REQUIRE(status.error().code == ErrorCode::kIo);
  }
  CHECK(failures >= 6);  // open, two fstat, prefix, header, weights
  FaultPlan::current() = {.most_bytes = 4096, .interruptions = 2};
  const auto model = ModelFile::open(directory.file("m"), operators::validate_node);
  REQUIRE(model);
  CHECK(verify_weights(*model));
  FaultPlan::current() = {};
}

TEST_CASE("other kinds of file are refused by name") {
  const SampleFile sample;
  const ScopedFileOps memory(MemoryFile::ops());
  std::string big_endian = sample.bytes;
  std::reverse(big_endian.begin() + 8, big_endian.begin() + 12);
  auto model = open_bytes(big_endian);
  REQUIRE_FALSE(model);
  CHECK(model.error().code == ErrorCode::kUnsupportedVersion);
  CHECK(model.error().to_string().find("big-endian") != std::string::npos);

  std::string future = sample.bytes;
  future[12] = 9;
  model = open_bytes(future);
  REQUIRE_FALSE(model);
  CHECK(model.error().code == ErrorCode::kUnsupportedVersion);
  CHECK(model.error().available == 9);

  CHECK(open_bytes(std::string(100, '\0')).error().code == ErrorCode::kInvalidModel);
  CHECK(open_bytes("").error().code == ErrorCode::kInvalidModel);
}

TEST_CASE("a header that uses its parts more than once does not grow in memory") {
  // A thousand labels, all of them one long string: 4 KB of offsets would become 40 MB.
  Graph graph = sample_graph();
  graph.labels.assign(1000, "");
  graph.labels[999] = std::string(40000, 'x');
  REQUIRE(assign_layout(graph, Bytes(1 << 20)));
  auto header = encode_header(graph);
  REQUIRE(header);
  const auto word = [&](std::size_t at) {
    std::uint32_t value = 0;
    std::memcpy(&value, header->data() + at, 4);
    return value;
  };
  // The vector of labels is the only one with a thousand entries; its last leads to the long string.
  std::size_t vector = 0;
  while (word(vector) != 1000) vector += 4;
  const std::size_t last = vector + 4 * 1000;
  const std::size_t target = last + word(last);
  REQUIRE(word(target) == 40000);
  for (std::size_t at = vector + 4; at < last; at += 4) {
    const auto offset = static_cast<std::uint32_t>(target - at);
    std::memcpy(header->data() + at, &offset, 4);
  }
  const auto decoded = decode_header(*header, "shared");
  REQUIRE_FALSE(decoded);
  CHECK(decoded.error().code == ErrorCode::kInvalidModel);
}

TEST_CASE("files over 4 GiB work") {
  GraphBuilder b;
  const TensorId in = b.tensor("in", {1, 4096});
  const TensorId wide = b.tensor("wide", {1, 16 * 20000});
  const TensorId out = b.tensor("out", {1, 16});
  b.input(in, {1, 4096}, {0, 1, 2, 3, 4, 5, 6, 7});
  b.node(OpKind::kDense, {in}, wide, DenseAttributes{4096, 16 * 20000}).weights = {b.panels("big", {16 * 20000, 4096}, 20000, 1, 4096)};
  b.node(OpKind::kDense, {wide}, out, DenseAttributes{16 * 20000, 16}).weights = {b.panels("far", {16, 16 * 20000}, 1, 1, 16 * 20000)};
  b.output(out);
  Graph& graph = b.graph;

  // The big weight stays a hole: only the far one, whose offset needs more than 32 bits, is written.
  REQUIRE(assign_layout(graph, Bytes(1 << 20)));
  const auto size = assign_layout(graph, Bytes(kPrefixSize + encode_header(graph)->size()));
  REQUIRE(size);
  const Weight& far = graph.weights[1];
  REQUIRE(far.offset.count() > (std::uint64_t{1} << 32));
  std::vector<std::byte> values(far.bytes.count(), std::byte{0x5a});
  graph.stretches[far.first_stretch].xxh3 = xxh3_64(values);
  const auto header = encode_header(graph);
  REQUIRE(header);

  const TemporaryDirectory directory;
  auto file = AtomicFile::create(directory.file("m"));
  REQUIRE(file);
  if (!file->resize(*size)) {
    WARN("skipped: the file system takes no sparse file of 5 GiB");
    return;
  }
  REQUIRE(file->write_at(Bytes(0), encode_prefix({Bytes(header->size()), xxh3_64(*header), *size})));
  REQUIRE(file->write_at(Bytes(kPrefixSize), *header));
  REQUIRE(file->write_at(far.offset, values));
  REQUIRE(file->commit());

  const auto model = ModelFile::open(directory.file("m"), operators::validate_node);
  INFO((model ? "" : model.error().to_string()));
  REQUIRE(model);
  const Stretch& stretch = model->graph().stretches[far.first_stretch];
  const std::uint64_t begin = align_down(stretch.offset.count(), 4096);
  const std::uint64_t end = align_up((stretch.offset + stretch.stored_size).count(), 4096);
  const std::unique_ptr<std::byte, decltype(&std::free)> buffer(static_cast<std::byte*>(std::aligned_alloc(4096, end - begin)), &std::free);
  REQUIRE(model->source().read({Bytes(begin), Bytes(end - begin)}, buffer.get()));
  CHECK(xxh3_64({buffer.get() + (stretch.offset.count() - begin), stretch.stored_size.count()}) == stretch.xxh3);
}

}  // namespace sluice::model
