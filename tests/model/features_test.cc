#include "sluice/model/features.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <limits>
#include <random>

#include "sluice/core/hash.h"
#include "sluice/model/model_file.h"
#include "sluice/operators/validate.h"
#include "src/model/header.h"
#include "src/model/layout.h"
#include "tests/core/fake_file_ops.h"
#include "tests/core/temporary_files.h"
#include "tests/model/open_bytes.h"
#include "tests/model/sample_graph.h"

namespace sluice::model {
namespace {

/// All but what only a file has.
constexpr Features kOfGraphs = kKnownFeatures & ~bit_of(Feature::kWithoutWeights);

struct Laid {
  Graph graph;
  Bytes file_size;
};

/// The graph with all features, its weights laid out and stored in every form.
Laid laid_out() {
  Laid laid{every_feature(), {}};
  laid.file_size = assign_layout(laid.graph, Bytes(1 << 16)).value();
  add_stored_forms(laid.graph);
  return laid;
}

/// A file whose weights are not there: what opening reads.
std::string file_of(const Graph& graph, Bytes file_size) {
  const auto header = encode_header(graph).value();
  const auto prefix = encode_prefix({Bytes(header.size()), xxh3_64(header), file_size, features_of(graph)});
  std::string bytes(file_size.count(), '\0');
  std::memcpy(bytes.data(), prefix.data(), prefix.size());
  std::memcpy(bytes.data() + prefix.size(), header.data(), header.size());
  return bytes;
}

/// A graph of sound form is unsupported; what is broken in it is invalid, by its rule.
void check_invalid(const Break& broken) {
  INFO(broken.name);
  Laid laid = laid_out();
  REQUIRE(validate(laid.graph, laid.file_size, operators::validate_node).error().code == ErrorCode::kUnsupported);
  broken.apply(laid.graph);
  const Status status = validate(laid.graph, laid.file_size, operators::validate_node);
  REQUIRE_FALSE(status);
  INFO(status.error().to_string());
  CHECK(status.error().code == ErrorCode::kInvalidModel);
  CHECK(status.error().to_string().find(broken.reason) != std::string::npos);
}

Quantisation& q(Graph& g, std::size_t i) { return g.quantisations[i]; }
Tensor& quantised_tensor(Graph& g) { return g.tensors[g.nodes[kStem].outputs[0].index()]; }
Weight& sparse_weight(Graph& g) { return g.weights[g.nodes[kWinograd].weights[0].index()]; }

}  // namespace

TEST_CASE("a header gives back every feature that was written") {
  const Laid laid = laid_out();
  const auto header = encode_header(laid.graph);
  REQUIRE(header);
  const auto decoded = decode_header(*header, "memory");
  INFO((decoded ? "" : decoded.error().to_string()));
  REQUIRE(decoded);
  CHECK(decoded->needed == kOfGraphs);
  CHECK(encode_header(decoded->graph).value() == *header);

  const Graph& graph = decoded->graph;
  CHECK(graph.tags == laid.graph.tags);
  CHECK(has_form(graph.stretches[3].form, StretchForm::kEncrypted));
  CHECK(graph.quantisations[0].zero_points == std::vector<std::int32_t>{3});
  CHECK(graph.quantisations[2].scale_weight == graph.nodes[kStem].weights[1]);
  CHECK(graph.subgraphs[1].nodes[0].first_subgraph == 2);
  CHECK(graph.subgraphs[0].captures[0].outer == graph.nodes[kUnaryNode].inputs[0]);
  CHECK(graph.weight(graph.nodes[kWinograd].weights[0]).panel_ends == std::vector<std::uint32_t>{5, 40});
  CHECK(graph.units[1].name == "head");
  CHECK(graph.codes == laid.graph.codes);
  CHECK(graph.weights[3].code == 1);
}

TEST_CASE("a feature that this build has not is refused by name, in a sound file") {
  Laid laid = laid_out();
  CHECK(features_of(laid.graph) == kOfGraphs);
  CHECK(validate(laid.graph, laid.file_size, operators::validate_node).error().code == ErrorCode::kUnsupported);

  const Break needs[] = {
      {"bf16", [](Graph& g) { g.tensors[0].dtype = DType::kBF16; }, "image: it is a bf16 tensor"},
      {"inputs", [](Graph& g) { g.weights[0].panel_layout.side = PanelSide::kInputs; }, "input features"},
  };
  for (const Break& need : needs) {
    INFO(need.name);
    Graph graph = sample_graph();
    need.apply(graph);
    const Status status = validate(graph, Bytes(0), operators::validate_node);
    REQUIRE_FALSE(status);
    INFO(status.error().to_string());
    CHECK(status.error().code == ErrorCode::kUnsupported);
    CHECK(status.error().to_string().find(need.reason) != std::string::npos);
    const Features features = features_of(graph) & ~kSupportedFeatures;
    CHECK(features != 0);
    CHECK((features & (features - 1)) == 0);  // the one, and no other
  }
}

TEST_CASE("a stored form of stretches is refused by name") {
  Graph graph = sample_graph();
  const auto size = assign_layout(graph, Bytes(1 << 16));
  REQUIRE(validate(graph, *size, operators::validate_node));
  graph.stretches[0].form = StretchForm::kZerosLeftOut;
  graph.stretches[0].stored_size = Bytes(100);
  const Status status = validate(graph, *size, operators::validate_node);
  REQUIRE_FALSE(status);
  INFO(status.error().to_string());
  CHECK(status.error().code == ErrorCode::kUnsupported);
  CHECK(status.error().to_string().find("fills none in") != std::string::npos);
}

TEST_CASE("G5: sparse panels and stored forms") {
  const Break breaks[] = {
      {"ends fall",
       [](Graph& g) {
         sparse_weight(g).panel_ends = {40, 5};
       },
       "G5: the ends of its panels"},
      {"an empty panel",
       [](Graph& g) {
         sparse_weight(g).panel_ends = {5, 5};
       },
       "G5: the ends of its panels"},
      {"an end too few", [](Graph& g) { sparse_weight(g).panel_ends.pop_back(); }, "G5: the ends of its panels"},
      {"a panel above the most", [](Graph& g) { sparse_weight(g).panel_ends[1] = 2000; }, "G5: the ends of its panels"},
      {"another size", [](Graph& g) { sparse_weight(g).panel_ends[1] = 41; }, "G5: a weight's size"},
      {"ends of dense panels",
       [](Graph& g) {
         g.weights[0].panel_ends = {1, 2};
       },
       "G5: the ends of its panels"},
      {"a huge panel", [](Graph& g) { g.weights[0].panel_bytes = Bytes(std::uint64_t{1} << 32); }, "G5: a panel is larger"},
      {"a plain weight with scales", [](Graph& g) { g.weights[1].panel_layout.scale = PanelScale::kF32; }, "G5: a plain weight"},
      {"a coded stretch that grew", [](Graph& g) { g.stretches[0].stored_size = g.stretches[0].raw_size; }, "G5: a stretch is not"},
      {"a stretch of nothing", [](Graph& g) { g.stretches[0].stored_size = Bytes(0); }, "G5: a stretch is not"},
      {"a gap", [](Graph& g) { g.stretches.back().offset += Bytes(1); }, "G5: a stretch is not"},
      {"one stretch in the clear", [](Graph& g) { g.stretches[2].form = StretchForm::kCoded; }, "G5: some stretches are encrypted"},
      {"a tag too few", [](Graph& g) { g.tags.pop_back(); }, "G5: some stretches are encrypted"},
      {"a table of other sum", [](Graph& g) { g.codes[0].frequencies[1] = 97; }, "G5: a table of codes"},
      {"a table of one symbol", [](Graph& g) { g.codes[0].frequencies = {4096}; }, "G5: a table of codes"},
      {"a table with a symbol too many", [](Graph& g) { g.codes[0].first = 255; }, "G5: a table of codes"},
      {"a table that is not there", [](Graph& g) { g.weights[1].code = 2; }, "G5: its table of codes"},
      {"coded without a table", [](Graph& g) { g.weights[1].code = kNoCode; }, "G5: a stretch is coded"},
  };
  for (const Break& broken : breaks) check_invalid(broken);
}

TEST_CASE("G7: quantisation") {
  const Break breaks[] = {
      {"does not exist", [](Graph& g) { quantised_tensor(g).quantisation = 3; }, "G7: its quantisation does not exist"},
      {"floats", [](Graph& g) { quantised_tensor(g).dtype = DType::kF32; }, "G7: only integers"},
      {"axis", [](Graph& g) { q(g, 0).axis = 4; }, "G7: its scales are along an axis"},
      {"axis below", [](Graph& g) { q(g, 0).axis = -2; }, "G7: its scales are along an axis"},
      {"no scale", [](Graph& g) { q(g, 0).scales.clear(); }, "G7: it has not one scale"},
      {"scales of an axis", [](Graph& g) { q(g, 0).axis = 3; }, "G7: it has not one scale"},
      {"zero scale", [](Graph& g) { q(g, 0).scales[0] = 0; }, "G7: a scale is not finite"},
      {"NaN", [](Graph& g) { q(g, 0).scales[0] = std::numeric_limits<float>::quiet_NaN(); }, "G7: a scale is not finite"},
      {"zero point out of range", [](Graph& g) { q(g, 0).zero_points[0] = 256; }, "G7: a zero point is no value"},
      {"zero points", [](Graph& g) { q(g, 0).zero_points.push_back(1); }, "G7: it has not as many zero points"},
      {"both", [](Graph& g) { q(g, 0).scale_weight = WeightId(1); }, "G7: scales are both"},
      {"both zeros", [](Graph& g) { q(g, 0).zero_weight = WeightId(1); }, "G7: zero points are both"},
      {"weight", [](Graph& g) { q(g, 2).scale_weight = WeightId(1000); }, "G7: it has not"},
      {"weight of panels", [](Graph& g) { q(g, 2).scale_weight = WeightId(0); }, "G7: it has not"},
      {"weight too short",
       [](Graph& g) {
         q(g, 2).axis = 3, g.weights[0].shape = {3, 3, 3, 33};
       },
       "G7: it has not"},
      {"zero weight of floats", [](Graph& g) { q(g, 2).zero_weight = WeightId(1); }, "G7: it has not"},
  };
  for (const Break& broken : breaks) check_invalid(broken);
}

TEST_CASE("G8: subgraphs") {
  const Break breaks[] = {
      {"does not exist", [](Graph& g) { g.nodes[kUnaryNode].subgraph_count = 4; }, "G8: a subgraph that the node runs"},
      {"count wraps", [](Graph& g) { g.nodes[kUnaryNode].subgraph_count = 0xffffffff; }, "G8: a subgraph that the node runs"},
      {"first without count", [](Graph& g) { g.nodes[kLrnNode].first_subgraph = 1; }, "G8: a node without subgraphs"},
      {"a circle", [](Graph& g) { g.subgraphs[1].nodes[0].first_subgraph = 1; }, "G8: a subgraph that the node runs"},
      {"too deep",
       [](Graph& g) {
         // Each runs the next.
         for (std::uint32_t s = 2; s < 2 + kMaxNested; ++s) {
           g.subgraphs[s].nodes[0].first_subgraph = s + 1;
           g.subgraphs[s].nodes[0].subgraph_count = 1;
           g.subgraphs.push_back(g.subgraphs[0]);
           g.subgraphs.back().captures = {};
           g.subgraphs.back().inputs = {TensorId(0)};
         }
       },
       "G8: subgraphs lie too deep"},
      {"two runners", [](Graph& g) { g.nodes[kUnaryNode].subgraph_count = 3; }, "G8: two nodes run"},
      {"no runner", [](Graph& g) { g.subgraphs[1].nodes[0].first_subgraph = g.subgraphs[1].nodes[0].subgraph_count = 0; },
       "G8: no node runs"},
      {"captures what is not there", [](Graph& g) { g.subgraphs[0].captures[0].outer = TensorId(1000); }, "G8: the subgraph captures"},
      {"captures none", [](Graph& g) { g.subgraphs[0].captures[0].outer = {}; }, "G8: the subgraph captures"},
      {"captures no input", [](Graph& g) { g.subgraphs[0].captures[0].outer = TensorId(0); }, "G8: the subgraph captures"},
      {"captures into nowhere", [](Graph& g) { g.subgraphs[0].captures[0].inner = TensorId(2); }, "G8: a tensor of the subgraph"},
      {"another type inside", [](Graph& g) { g.subgraphs[0].tensors[0].dtype = DType::kI32; }, "G8: a captured tensor"},
      {"another shape inside",
       [](Graph& g) {
         g.subgraphs[0].tensors[0].shape = {1, 2};
       },
       "G8: a captured tensor"},
      {"made twice", [](Graph& g) { g.subgraphs[0].nodes[0].outputs[0] = TensorId(0); }, "G8: a tensor of the subgraph"},
      {"an input that does not exist", [](Graph& g) { g.subgraphs[0].nodes[0].inputs[0] = TensorId(2); }, "G8: an input tensor"},
      {"used before it is made", [](Graph& g) { g.subgraphs[0].nodes[0].inputs[0] = TensorId(1); }, "G8: an input is used before"},
      {"a weight", [](Graph& g) { g.subgraphs[0].nodes[0].weights = {WeightId(1000)}; }, "G8: a weight does not exist"},
      {"a node without outputs", [](Graph& g) { g.subgraphs[0].nodes[0].outputs.clear(); }, "G8: a node without outputs"},
      {"made by nothing", [](Graph& g) { g.subgraphs[2].inputs.clear(), g.subgraphs[2].nodes.clear(); }, "G8: nothing makes"},
      {"no outputs", [](Graph& g) { g.subgraphs[0].outputs.clear(); }, "G8: a subgraph without outputs"},
      {"an output that does not exist", [](Graph& g) { g.subgraphs[0].outputs = {TensorId(2)}; }, "G8: an output"},
      {"a constant of no weight", [](Graph& g) { g.subgraphs[0].tensors[0].weight = WeightId(1000); }, "G1: a constant's weight"},
      {"a quantisation of none", [](Graph& g) { g.subgraphs[0].tensors[0].quantisation = 7; }, "G7: its quantisation"},
  };
  for (const Break& broken : breaks) check_invalid(broken);
}

TEST_CASE("G9: units") {
  const Break breaks[] = {
      {"a gap", [](Graph& g) { g.units[1].first_node += 1; }, "G9: the units are not"},
      {"an empty unit",
       [](Graph& g) {
         g.units.insert(g.units.begin(), Unit{"none", 0, 0, {}, {}});
       },
       "G9: the units are not"},
      {"too many nodes", [](Graph& g) { g.units[2].node_count += 1; }, "G9: the units are not"},
      {"count wraps", [](Graph& g) { g.units[0].node_count = 0xffffffff; }, "G9: the units are not"},
      {"nodes left out", [](Graph& g) { g.units.pop_back(); }, "G9: nodes behind"},
      {"no name", [](Graph& g) { g.units[0].name.clear(); }, "G9: a unit has no name"},
      {"two of one name", [](Graph& g) { g.units[0].name = "head"; }, "G9: a unit has no name"},
      {"an input left out", [](Graph& g) { g.units[1].inputs.clear(); }, "G9: the unit's ports"},
      {"an input twice", [](Graph& g) { g.units[1].inputs.push_back(g.units[1].inputs[0]); }, "G9: the unit's ports"},
      {"an output too many", [](Graph& g) { g.units[0].outputs.push_back(TensorId(0)); }, "G9: the unit's ports"},
      {"a port of nothing", [](Graph& g) { g.units[1].outputs = {TensorId(1000)}; }, "G9: the unit's ports"},
  };
  for (const Break& broken : breaks) {
    INFO(broken.name);
    Graph graph = sample_graph();
    REQUIRE(validate(graph, Bytes(0), operators::validate_node));
    broken.apply(graph);
    const Status status = validate(graph, Bytes(0), operators::validate_node);
    REQUIRE_FALSE(status);
    CHECK(status.error().to_string().find(broken.reason) != std::string::npos);
  }
}

TEST_CASE("damage to a header with every feature is safe") {
  const Laid laid = laid_out();
  const auto whole = encode_header(laid.graph).value();
  // The decoder wants its bytes aligned, as the reader of files gives them.
  std::vector<std::uint64_t> words(whole.size() / 8 + 1);
  const auto try_decoding = [&](std::size_t size) {
    const auto decoded = decode_header({reinterpret_cast<const std::byte*>(words.data()), size}, "memory");
    if (decoded) CHECK_FALSE(validate(decoded->graph, laid.file_size, operators::validate_node));
  };
  std::memcpy(words.data(), whole.data(), whole.size());
  for (std::size_t size = 0; size < whole.size(); size += 8) try_decoding(size);
  auto* const bytes = reinterpret_cast<unsigned char*>(words.data());
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    bytes[bit / 8] ^= static_cast<unsigned char>(1u << (bit % 8));
    try_decoding(whole.size());
    bytes[bit / 8] ^= static_cast<unsigned char>(1u << (bit % 8));
  }
  std::mt19937_64 random(13);
  constexpr unsigned char kValues[] = {0, 1, 0x7f, 0x80, 0xff};
  for (int round = 0; round < 3000; ++round) {
    for (std::size_t hits = random() % 6 + 1; hits > 0; --hits)
      std::fill_n(bytes + random() % (whole.size() - 8), random() % 8 + 1, kValues[random() % 5]);
    try_decoding(whole.size());
    std::memcpy(words.data(), whole.data(), whole.size());
  }
}

TEST_CASE("panels of 16-bit floats, and scales of them, are a matter of kernels") {
  for (const PanelLayout& layout :
       {PanelLayout{.layout = WeightLayout::kPanels, .dtype = DType::kBF16},
        PanelLayout{.layout = WeightLayout::kPanels, .dtype = DType::kF16},
        PanelLayout{.layout = WeightLayout::kPanels, .dtype = DType::kI8, .k_group = 9, .scale = PanelScale::kF16}}) {
    Graph graph = sample_graph();
    repack(graph.weights[0], layout);
    CHECK(validate(graph, Bytes(0), operators::validate_node));
    CHECK((features_of(graph) & ~features_of(sample_graph())) != 0);
  }
}

TEST_CASE("the prefix says what a file needs") {
  const ScopedFileOps memory(MemoryFile::ops());
  Graph graph = sample_graph();
  const Bytes size = assign_layout(graph, Bytes(1 << 16)).value();
  const std::string plain = file_of(graph, size);
  REQUIRE(open_bytes(plain));
  const auto with = [&](std::size_t at, char value) {
    std::string bytes = plain;
    bytes[at] = value;
    return open_bytes(bytes).error();
  };
  CHECK(with(54, 1).code == ErrorCode::kUnsupportedVersion);
  CHECK(with(54, 1).needed == (std::uint64_t{1} << 48 | features_of(graph)));
  CHECK(with(49, 2).code == ErrorCode::kWrongKey);
  CHECK(with(49, 2).to_string().find("no key was given") != std::string::npos);
  CHECK(with(48, 4).to_string().find("prefix and header") != std::string::npos);
  for (const std::size_t at : {56, 63, 64, 95, 96, 111, 112, 127}) CHECK(with(at, 1).code == ErrorCode::kInvalidModel);

  Tensor& image = graph.tensors[graph.inputs[0].tensor.index()];
  image.dtype = DType::kBF16;
  const auto refused = open_bytes(file_of(graph, size));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kUnsupported);
  CHECK(refused.error().subject() == image.name);
  PatternProducer producer(graph);
  const TemporaryDirectory directory;
  CHECK(write_model(graph, producer, directory.file("m"), operators::validate_node).error().code == ErrorCode::kUnsupported);
}

TEST_CASE("a file of format version 1 is refused with the way out") {
  const auto model = ModelFile::open(SLUICE_TEST_FILES "/version_1.sluice", operators::validate_node);
  REQUIRE_FALSE(model);
  CHECK(model.error().code == ErrorCode::kUnsupportedVersion);
  CHECK(exit_status(model.error().code) == 2);
  CHECK(model.error().available == 1);
  const std::string text = model.error().to_string();
  CHECK(text.find("format version 1 was never released") != std::string::npos);
  CHECK(text.find("sluice convert MODEL.onnx -o") != std::string::npos);
}

}  // namespace sluice::model
