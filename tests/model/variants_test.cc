// Several graphs over one set of weights: what is encoded comes back word for word, and nothing in a header is taken on trust.
#include "sluice/model/variants.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <random>

#include "sluice/core/hash.h"
#include "sluice/model/model_file.h"
#include "sluice/operators/validate.h"
#include "src/model/header.h"
#include "tests/core/fake_file_ops.h"
#include "tests/core/temporary_files.h"
#include "tests/model/open_bytes.h"
#include "tests/model/sample_graph.h"

namespace sluice::model {
namespace {

/// One convolution over `n` images of `side` x `side`; above 16 a node more, so another structure.
Graph graph_at(std::int64_t n, std::int64_t side) {
  GraphBuilder b;
  b.graph.name = "several";
  const Shape in{n, side, side, 3}, out{n, side, side, 32};
  const TensorId image = b.tensor("image", in), features = b.tensor("features", out), scores = b.tensor("scores", out);
  b.input(image, {n, 3, side, side}, {0, 2, 3, 1, 4, 5, 6, 7});
  Node& conv = b.node(OpKind::kConv, {image}, side > 16 ? features : scores, conv_attributes(in, out, 3, 1, 1));
  conv.epilogue.has_bias = true;
  conv.weights = {b.panels("weight", {32, 3, 3, 3}, 2, 9, 3), b.plain("bias", {32})};
  if (side > 16) b.node(OpKind::kUnary, {features}, scores).epilogue.activation.function = Function::kTanh;
  if (side <= 16) b.graph.tensors.erase(b.graph.tensors.begin() + 1);
  if (side <= 16) b.graph.nodes[0].outputs = {TensorId(1)};
  b.output(side > 16 ? scores : TensorId(1));
  return b.graph;
}

std::vector<Dimension> two_dimensions() { return {{"n", {1, 2, 5}, 0}, {"side", {8, 16, 32}, 0}}; }

Graph graph_of(std::size_t point) {
  const std::vector<std::int64_t> extents = extents_at(two_dimensions(), point);
  return graph_at(extents[0], extents[1]);
}

Variants sample_variants() {
  VariantsEncoder encoder(two_dimensions());
  for (std::size_t point = 9; point-- > 0;) REQUIRE(encoder.add(point, graph_of(point)));
  return encoder.take();
}

struct SeveralFile {
  std::string bytes;
  std::size_t header_end = 0;

  explicit SeveralFile(const Variants& variants) {
    const TemporaryDirectory directory;
    Graph graph = graph_of(8);
    PatternProducer producer(graph);
    REQUIRE(write_model(graph, producer, directory.file("m"), operators::validate_node,
                        {.progress = {}, .before_commit = {}, .variants = &variants}));
    bytes = read_text(directory.file("m"));
    std::uint64_t header_size = 0;
    std::memcpy(&header_size, bytes.data() + 24, sizeof header_size);
    header_end = kPrefixSize + header_size;
  }
};

/// What of a graph the variants hold.
std::vector<std::byte> encoded(Graph graph) {
  graph.weights.clear();
  graph.stretches.clear();
  return *encode_header(graph);
}

}  // namespace

TEST_CASE("extents are written as convert takes them") {
  using List = std::vector<std::int64_t>;
  CHECK(extents_text(List{7}) == "7");
  CHECK(extents_text(List{1, 2}) == "1,2");
  CHECK(extents_text(List{1, 2, 3, 4, 5, 6, 7, 8}) == "1..8");
  CHECK(extents_text(List{32, 64, 96}) == "32..96:32");
  CHECK(extents_text(List{0, 1, 2, 5, 9, 10, 20, 30}) == "0..2,5,9,10..30:10");
  CHECK(extents_text(List{1, 4, 8}) == "1,4,8");
}

TEST_CASE("a point is bound by names, and what is not named is at its bound") {
  std::vector<Dimension> dimensions = two_dimensions();
  CHECK(count_points(dimensions) == 9);
  for (std::size_t point = 0; point < 9; ++point) {
    const auto extents = extents_at(dimensions, point);
    CHECK(*bind(dimensions, {{"n", extents[0]}, {"side", extents[1]}}) == point);
    CHECK(dimensions[0].extent == extents[0]);
    CHECK(dimensions[1].extent == extents[1]);
  }
  CHECK(*bind(dimensions, {}) == 8);
  CHECK(*bind(dimensions, {{"n", 1}}) == 2);

  const auto above = bind(dimensions, {{"n", 6}});
  REQUIRE_FALSE(above);
  CHECK(above.error().code == ErrorCode::kInvalidArgument);
  CHECK(above.error().subject() == "dimension n (1,2,5)");
  CHECK(above.error().needed == 5);
  CHECK(above.error().available == 6);
  const auto between = bind(dimensions, {{"side", 9}});
  REQUIRE_FALSE(between);
  CHECK(between.error().subject() == "dimension side (8,16,32)");
  CHECK_FALSE(bind(dimensions, {{"side", 7}}));
  CHECK_FALSE(bind(dimensions, {{"side", -1}}));
  const auto bound = bind(dimensions, {{"m", 1}});
  REQUIRE_FALSE(bound);
  const std::string_view unknown = bound.error().subject();
  CHECK(unknown.starts_with("dimension m, where there are "));
  CHECK(unknown.find("n (1,2,5)") != std::string_view::npos);
  CHECK(unknown.find("side (8,16,32)") != std::string_view::npos);
  std::vector<Dimension> none;
  CHECK(*bind(none, {}) == 0);
  CHECK_FALSE(bind(none, {{"n", 1}}));
}

TEST_CASE("each graph comes back as it was encoded, graphs of one structure in one form") {
  const Variants variants = sample_variants();
  REQUIRE(variants.check("sample"));
  REQUIRE(variants.forms.size() == 2);
  CHECK(variants.forms[0].points.size() + variants.forms[1].points.size() == 9);
  for (const Form& form : variants.forms) {
    // Two tensors and two ports have n in them, and two words of the six-point form the sides: words with the same values share a column.
    CHECK(form.words.size() >= 4);
    CHECK(form.values.size() / form.points.size() <= (form.points.size() == 3 ? 1 : 3));
  }
  for (std::size_t point = 0; point < 9; ++point) {
    const auto words = variants.graph_at(point);
    const auto expected = encoded(graph_of(point));
    REQUIRE(words.size() * 8 >= expected.size());
    CHECK(std::memcmp(words.data(), expected.data(), expected.size()) == 0);
  }
}

TEST_CASE("a file with variants opens at each point, and at the bound as any other file") {
  const Variants variants = sample_variants();
  const SeveralFile file(variants);
  const ScopedFileOps memory(MemoryFile::ops());
  const auto bound = open_bytes(file.bytes);
  REQUIRE(bound);
  std::uint64_t header_hash = 0;
  std::memcpy(&header_hash, file.bytes.data() + 32, sizeof header_hash);
  CHECK(bound->hash() == header_hash);
  CHECK(open_bytes(file.bytes, {{"n", 5}})->hash() == header_hash);
  CHECK(bound->dimensions().size() == 2);
  CHECK(bound->dimensions()[1].extent == 32);
  std::vector<std::uint64_t> hashes;
  for (std::size_t point = 0; point < 9; ++point) {
    const auto extents = extents_at(two_dimensions(), point);
    const auto opened = bound->with_extents({{"n", extents[0]}, {"side", extents[1]}});
    REQUIRE(opened);
    CHECK(encoded(opened->graph()) == encoded(graph_of(point)));
    CHECK(opened->graph().weights.size() == 2);
    CHECK(opened->graph().stretches.size() == bound->graph().stretches.size());
    CHECK(opened->dimensions()[0].extent == extents[0]);
    CHECK(&opened->source() == &bound->source());
    CHECK(std::find(hashes.begin(), hashes.end(), opened->hash()) == hashes.end());  // plans are of one point
    hashes.push_back(opened->hash());
  }
  CHECK_FALSE(open_bytes(file.bytes, {{"n", 3}}));
  CHECK_FALSE(open_bytes(file.bytes, {{"m", 1}}));
}

TEST_CASE("a graph that would not be valid at one point is refused there, not at others") {
  Variants variants = sample_variants();
  // Every number that varies becomes negative at one point.
  Form& form = variants.forms[1];
  const auto at = std::find(form.points.begin(), form.points.end(), 0u) - form.points.begin();
  for (std::size_t column = 0; column < form.values.size() / form.points.size(); ++column)
    form.values[column * form.points.size() + static_cast<std::size_t>(at)] = ~std::uint64_t{0};
  const SeveralFile file(variants);
  const ScopedFileOps memory(MemoryFile::ops());
  REQUIRE(open_bytes(file.bytes));
  REQUIRE(open_bytes(file.bytes, {{"n", 1}, {"side", 16}}));
  const auto broken = open_bytes(file.bytes, {{"n", 1}, {"side", 8}});
  REQUIRE_FALSE(broken);
  CHECK(broken.error().code == ErrorCode::kInvalidModel);
}

TEST_CASE("each rule of the variants is checked") {
  const auto rule = [](auto&& spoil) {
    Variants variants = sample_variants();
    spoil(variants);
    const Status status = variants.check("m");
    return status ? std::string("none") : std::string(status.error().reason, 2);
  };
  CHECK(rule([](Variants&) {}) == "none");
  CHECK(rule([](Variants& v) { v.dimensions.clear(); }) == "V1");
  CHECK(rule([](Variants& v) { v.dimensions[0].name = "side"; }) == "V1");
  CHECK(rule([](Variants& v) { v.dimensions[0].name.clear(); }) == "V1");
  CHECK(rule([](Variants& v) { v.dimensions[0].extents.clear(); }) == "V1");
  CHECK(rule([](Variants& v) { v.dimensions[0].extents = {1, 5, 2}; }) == "V1");
  CHECK(rule([](Variants& v) { v.dimensions[0].extents = {1, 1, 2}; }) == "V1");
  CHECK(rule([](Variants& v) { v.dimensions[0].extents = {-1, 1, 2}; }) == "V1");
  CHECK(rule([](Variants& v) {
          v.dimensions.assign(kMaxDimensions + 1, {"n", {1}, 0});
          for (std::size_t i = 0; i < v.dimensions.size(); ++i) v.dimensions[i].name += std::to_string(i);
        }) == "V1");
  CHECK(rule([](Variants& v) {
          for (std::int64_t i = 6; i < 5000; ++i) v.dimensions[0].extents.push_back(i);
        }) == "V1");
  CHECK(rule([](Variants& v) { v.forms.pop_back(); }) == "V2");
  CHECK(rule([](Variants& v) { v.forms[0].points[1] = v.forms[0].points[0]; }) == "V2");
  CHECK(rule([](Variants& v) { v.forms[0].points[0] = v.forms[1].points[0]; }) == "V2");
  CHECK(rule([](Variants& v) { v.forms[0].points[0] = 9; }) == "V2");
  CHECK(rule([](Variants& v) { v.dimensions[0].extents.push_back(6); }) == "V2");
  CHECK(rule([](Variants& v) { v.forms[0].graph.pop_back(); }) == "V3");
  CHECK(rule([](Variants& v) { v.forms[0].graph.clear(); }) == "V3");
  CHECK(rule([](Variants& v) { v.forms[0].words.pop_back(); }) == "V3");
  CHECK(rule([](Variants& v) { std::swap(v.forms[0].words[0], v.forms[0].words[1]); }) == "V3");
  CHECK(rule([](Variants& v) { v.forms[0].words.back() = static_cast<std::uint32_t>(v.forms[0].graph.size() / 8); }) == "V3");
  CHECK(rule([](Variants& v) { v.forms[0].columns[0] = 1000; }) == "V3");
  CHECK(rule([](Variants& v) { v.forms[0].values.pop_back(); }) == "V3");
  CHECK(rule([](Variants& v) { v.forms[0].values.clear(); }) == "V3");
}

namespace {

std::vector<std::int64_t> up_to(std::int64_t last) {
  std::vector<std::int64_t> extents;
  for (std::int64_t extent = 1; extent <= last; ++extent) extents.push_back(extent);
  return extents;
}

/// 100 x 60 points; above side 16 another structure.
std::vector<Dimension> wide_dimensions() { return {{"n", up_to(100), 0}, {"side", up_to(60), 0}}; }
Graph wide_graph(std::size_t point) {
  const std::vector<std::int64_t> extents = extents_at(wide_dimensions(), point);
  return graph_at(extents[0], extents[1]);
}
Status make_wide(std::size_t point, Graph& graph) { return graph = wide_graph(point), Status(); }
Variants variants_by_axis() {
  std::size_t made = 0;
  auto variants = encode_by_axis(wide_dimensions(), make_wide, made);
  REQUIRE(variants);
  CHECK(made < 800);  // of 6000
  return *variants;
}

}  // namespace

TEST_CASE("of more points than are listed, each graph is what it would have been") {
  const Variants variants = variants_by_axis();
  REQUIRE(variants.check("wide"));
  CHECK(variants.forms.size() == 2);
  for (std::size_t point = 0; point < 6000; ++point) {
    const auto words = variants.graph_at(point);
    const auto expected = encoded(wide_graph(point));
    REQUIRE(words.size() * 8 >= expected.size());
    REQUIRE(std::memcmp(words.data(), expected.data(), expected.size()) == 0);
  }
}

TEST_CASE("sums, and products beside what does not vary, follow from their axes; anything else is refused") {
  const std::vector<Dimension> dimensions{{"a", up_to(70), 0}, {"b", up_to(70), 0}, {"c", {3}, 0}};
  const auto encode = [&](auto number) {
    std::size_t made = 0;
    return encode_by_axis(
        dimensions,
        [&](std::size_t point, Graph& graph) {
          const auto extents = extents_at(dimensions, point);
          graph = graph_at(number(extents[0], extents[1]), 8);
          return Status();
        },
        made);
  };
  CHECK(encode([](auto a, auto b) { return a + b; }));
  CHECK(encode([](auto a, auto b) { return a * b; }));
  CHECK(encode([](auto a, auto b) { return 7 + 5 * a * b; }));
  CHECK(encode([](auto a, auto b) { return ((a + 1) / 2) * ((b + 3) / 4); }));
  const auto refused = encode([](auto a, auto b) { return std::max(a, b); });
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kUnsupported);
  CHECK(refused.error().subject() == "dimensions a, b, c");
}

TEST_CASE("each rule of variants by axis is checked") {
  const Variants sound = variants_by_axis();
  const auto rule = [&](auto&& spoil) {
    Variants variants = sound;
    spoil(variants);
    const Status status = variants.check("m");
    return status ? std::string("none") : std::string(status.error().reason, 2);
  };
  CHECK(rule([](Variants&) {}) == "none");
  CHECK(rule([](Variants& v) { v.forms.pop_back(); }) == "V2");
  CHECK(rule([](Variants& v) { v.forms.push_back(v.forms[0]); }) == "V2");
  CHECK(rule([](Variants& v) { v.dimensions[0].extents.push_back(101); }) == "V2");
  CHECK(rule([](Variants& v) { v.dimensions.push_back({"m", {1}, 0}); }) == "V3");
  CHECK(rule([](Variants& v) { v.forms[0].axes.clear(); }) == "V1");  // listed, then, and too many
  CHECK(rule([](Variants& v) { v.forms[1].axes.clear(); }) == "V3");
  CHECK(rule([](Variants& v) { v.forms[0].axes.pop_back(); }) == "V3");
  CHECK(rule([](Variants& v) { v.forms[0].axes[0].positions.back() = 100; }) == "V2");
  CHECK(rule([](Variants& v) { std::swap(v.forms[0].axes[0].positions[0], v.forms[0].axes[0].positions[1]); }) == "V2");
  CHECK(rule([](Variants& v) { v.forms[0].axes[1].values.pop_back(); }) == "V3");
  CHECK(rule([](Variants& v) { v.forms[0].values.pop_back(); }) == "V3");
  CHECK(rule([](Variants& v) { v.forms[0].offsets.pop_back(); }) == "V3");
  CHECK(rule([](Variants& v) { v.forms[0].columns[0] = 1000; }) == "V3");
  CHECK(rule([](Variants& v) { v.forms[0].points.push_back(1); }) == "V3");
}

TEST_CASE("a file by axis opens at any point, and any bit of its header may be wrong") {
  const TemporaryDirectory directory;
  const Variants variants = variants_by_axis();
  Graph graph = wide_graph(5999);
  PatternProducer producer(graph);
  REQUIRE(write_model(graph, producer, directory.file("m"), operators::validate_node, {.variants = &variants}));
  const std::string bytes = read_text(directory.file("m"));
  std::uint64_t header_size = 0;
  std::memcpy(&header_size, bytes.data() + 24, sizeof header_size);
  const ScopedFileOps memory(MemoryFile::ops());
  for (const std::size_t point : {0, 15, 59, 60 * 49 + 16, 60 * 98 + 40, 5999}) {
    const auto extents = extents_at(wide_dimensions(), point);
    const auto opened = open_bytes(bytes, {{"n", extents[0]}, {"side", extents[1]}});
    REQUIRE(opened);
    CHECK(encoded(opened->graph()) == encoded(wide_graph(point)));
  }
  std::mt19937 random(9);
  for (int trial = 0; trial < 1000; ++trial) {
    std::string broken = bytes;
    const std::size_t bit = kPrefixSize * 8 + random() % (header_size * 8);
    broken[bit / 8] = static_cast<char>(broken[bit / 8] ^ (1 << (bit % 8)));
    const std::uint64_t hash = xxh3_64(std::as_bytes(std::span(broken)).subspan(kPrefixSize, header_size));
    std::memcpy(broken.data() + 32, &hash, sizeof hash);
    const auto model = open_bytes(broken, {{"n", 1 + trial % 100}, {"side", 1 + trial % 60}});
    if (model) CHECK(validate(model->graph(), model->file_size(), operators::validate_node));
  }
}

TEST_CASE("any bit of a header with variants may be wrong") {
  const SeveralFile file(sample_variants());
  const ScopedFileOps memory(MemoryFile::ops());
  std::mt19937 random(7);
  for (int trial = 0; trial < 3000; ++trial) {
    std::string bytes = file.bytes;
    for (int flips = 0; flips < 1 + trial % 3; ++flips) {
      const std::size_t bit = kPrefixSize * 8 + random() % ((file.header_end - kPrefixSize) * 8);
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
    }
    const std::uint64_t hash = xxh3_64(std::as_bytes(std::span(bytes)).subspan(kPrefixSize, file.header_end - kPrefixSize));
    std::memcpy(bytes.data() + 32, &hash, sizeof hash);
    const auto extents = extents_at(two_dimensions(), static_cast<std::size_t>(trial) % 9);
    const auto model = open_bytes(bytes, {{"n", extents[0]}, {"side", extents[1]}});
    // Whatever opens has passed validate; nothing else is to be known of it.
    if (model) CHECK(validate(model->graph(), model->file_size(), operators::validate_node));
  }
}

}  // namespace sluice::model
