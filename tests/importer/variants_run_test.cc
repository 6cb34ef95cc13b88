// One model file for several shapes: at each choice of extents it is the model that was converted for these extents alone. The same graph,
// the same plans, the same bits, at the least budget and without one (docs/adr/0012-extents-bound-at-open.md).
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <random>

#include "sluice/engine/engine.h"
#include "sluice/importer/importer.h"
#include "tests/cli/temporary.h"
#include "tests/importer/onnx_builder.h"

using namespace sluice;
using namespace sluice::test;
using importer::ConvertOptions;
using model::Extents;

namespace {

std::string shared_folder() {
  if (const char* named = std::getenv("SLUICE_SHARED_DIR")) return named;
  return *SLUICE_SHARED_DIR != '\0' ? SLUICE_SHARED_DIR : SLUICE_SHARED_DIR_DEFAULT;
}

using Bytewise = std::vector<std::byte>;

std::shared_ptr<const Model> convert_and_open(const std::string& onnx, const std::string& path, const ConvertOptions& options) {
  importer::ConvertReport report;
  const Status status = importer::convert(onnx, path, options, report);
  for (const importer::Problem& problem : report.problems) UNSCOPED_INFO(problem.node + ": " + problem.message);
  REQUIRE(status);
  const auto model = Model::open(path);
  if (!model) UNSCOPED_INFO(model.error().to_string());
  REQUIRE(model);
  return *model;
}

/// Values that every input takes: reals about zero, small whole numbers.
std::vector<Bytewise> inputs_for(const model::Graph& graph) {
  std::mt19937 random(11);
  std::vector<Bytewise> inputs;
  for (const model::Port& port : graph.inputs) {
    const model::Tensor& tensor = graph.tensor(port.tensor);
    Bytewise bytes(tensor.bytes().count());
    const auto fill = [&](auto make) {
      for (std::size_t at = 0; at < bytes.size(); at += sizeof(make())) {
        const auto value = make();
        std::memcpy(bytes.data() + at, &value, sizeof value);
      }
    };
    if (tensor.dtype == DType::kF32) fill([&] { return static_cast<float>(random() % 2001) / 1000.0f - 1.0f; });
    if (tensor.dtype == DType::kI32) fill([&] { return static_cast<std::int32_t>(random() % 2); });
    if (tensor.dtype == DType::kI64) fill([&] { return static_cast<std::int64_t>(random() % 2); });
    inputs.push_back(std::move(bytes));
  }
  return inputs;
}

std::vector<Bytewise> run(Session& session) {
  const model::Graph& graph = session.model().graph();
  const std::vector<Bytewise> inputs = inputs_for(graph);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].empty()) continue;
    REQUIRE(session.set_input(i, graph.tensor(graph.inputs[i].tensor).dtype, inputs[i]));
  }
  const Status status = session.run();
  if (!status) UNSCOPED_INFO(status.error().to_string());
  REQUIRE(status);
  std::vector<Bytewise> outputs;
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    const DType dtype = graph.dtype_of(graph.outputs[i]);
    outputs.emplace_back(static_cast<std::size_t>(session.output_shape(i).element_count()) * size_of(dtype));
    REQUIRE(session.get_output(i, outputs.back()));
  }
  return outputs;
}

/// What a node's tensors are, weights by what they hold rather than by their number.
std::string description(const model::Graph& graph) {
  std::string text;
  const auto tensor = [&](TensorId id) {
    const model::Tensor& t = graph.tensor(id);
    text += t.name + " " + t.shape.to_string() + " " + std::to_string(t.bounded);
    text += (t.weight.valid() ? " = " + graph.weight(t.weight).name : "") + ", ";
  };
  const auto weight = [&](WeightId id) {
    text += graph.weight(id).name + " " + graph.weight(id).shape.to_string();
    for (const model::Stretch& stretch : graph.stretches_of(graph.weight(id))) text += " " + std::to_string(stretch.xxh3);
    text += ", ";
  };
  for (const model::Node& node : graph.nodes) {
    text += node.name + " " + std::to_string(static_cast<int>(node.op)) + " " + std::to_string(static_cast<int>(node.numeric)) + ": ";
    for (const TensorId id : node.inputs) tensor(id);
    for (const TensorId id : node.outputs) tensor(id);
    std::vector<WeightId> weights;
    model::weights_read_by(graph, node, weights);
    for (const WeightId id : weights) weight(id);
    text += "\n";
  }
  for (const auto* ports : {&graph.inputs, &graph.outputs})
    for (const model::Port& port : *ports) text += port.name + " " + port.onnx_shape.to_string() + "\n";
  return text;
}

bool same_steps(const plan::Plan& a, const plan::Plan& b) {
  return std::equal(a.steps.begin(), a.steps.end(), b.steps.begin(), b.steps.end(), [](const plan::Step& x, const plan::Step& y) {
    return x.node == y.node && x.kernel == y.kernel && x.rows.begin == y.rows.begin && x.rows.end == y.rows.end &&
           x.channels.begin == y.channels.begin && x.channels.end == y.channels.end;
  });
}

/// Plans of one graph in two files. Where weights lie in the file may differ: those that only some graphs read lie behind the others.
void check_same_plan(const Model& alone, const Model& several, SessionOptions options) {
  const auto least_alone = minimum_budget(alone, options), least = minimum_budget(several, options);
  REQUIRE(least_alone);
  REQUIRE(least);
  // Tables for weights of other extents, the names of dimensions, and blocks.
  const std::uint64_t tables = 64 * 1024 + 128 * (several.graph().weights.size() - alone.graph().weights.size());
  CHECK(*least <= *least_alone + Bytes(tables));
  CHECK(*least_alone <= *least + Bytes(tables));
  for (const bool unlimited : {true, false}) {
    options.budget = unlimited ? kUnlimitedBytes : *least_alone;
    const auto a = plan_session(alone, options);
    options.budget = unlimited ? kUnlimitedBytes : *least;
    const auto b = plan_session(several, options);
    REQUIRE(a);
    REQUIRE(b);
    CHECK(same_steps(a->plan, b->plan));
    CHECK(std::fabs(static_cast<double>(a->plan.arena_bytes.count()) - static_cast<double>(b->plan.arena_bytes.count())) <=
          static_cast<double>(tables));
    CHECK(b->plan.prediction.cold_ms == Approx(a->plan.prediction.cold_ms).epsilon(0.01));
  }
}

/// Converts `onnx` once with `several` and once for each of `points`, and compares all of them.
void check(const std::string& onnx, const ConvertOptions& several, const std::vector<Extents>& points) {
  const TemporaryFolder folder;
  const auto model = convert_and_open(onnx, folder.path("several.sluice"), several);
  REQUIRE(model::verify_weights(model->file()));
  for (const Extents& point : points) {
    for (const auto& [name, extent] : point) UNSCOPED_INFO(name + "=" + std::to_string(extent));
    ConvertOptions alone = several;
    alone.open_dims.clear();
    for (const auto& [name, extent] : point) alone.dims[name] = extent;
    const auto direct = convert_and_open(onnx, folder.path("alone.sluice"), alone);
    const auto opened = model->with_dims(point);
    REQUIRE(opened);
    REQUIRE(description((*opened)->graph()) == description(direct->graph()));
    check_same_plan(*direct, **opened, {});
    const auto of_direct = Session::create(direct, {});
    REQUIRE(of_direct);
    const std::vector<Bytewise> expected = run(**of_direct);
    for (const bool least : {false, true}) {
      SessionOptions options{.dims = point};
      if (least) options.budget = *minimum_budget(*model, options);
      const auto session = Session::create(model, options);
      REQUIRE(session);
      CHECK((run(**session) == expected));
      if (least) CHECK((*session)->memory().budget == options.budget);
    }
  }
}

/// Two convolutions, a residual, pooling and a dense layer; the batch and the sides may vary.
OnnxBuilder small_network(std::int64_t side) {
  OnnxBuilder b;
  b.input("x", {1, 3, side, side}).weight("w1", {32, 3, 3, 3}).weight("b1", {32}).weight("w2", {32, 32, 3, 3}).weight("d", {10, 32});
  b.node("Conv", {"x", "w1", "b1"}, {"c1"}, {attribute("pads", Ints{1, 1, 1, 1})}).node("Relu", {"c1"}, {"r1"});
  b.node("Conv", {"r1", "w2"}, {"c2"}, {attribute("pads", Ints{1, 1, 1, 1})}).node("Add", {"c2", "r1"}, {"s"});
  b.node("GlobalAveragePool", {"s"}, {"g"}).node("Flatten", {"g"}, {"f"});
  return b.node("Gemm", {"f", "d"}, {"y"}, {attribute("transB", std::int64_t{1})}).output("y");
}

/// A linear layer whose rows get their number, computed from the shape: a constant that differs with the extent.
OnnxBuilder numbered_rows() {
  OnnxBuilder b;
  b.input("x", {4, 8}).weight("w", {8, 2048}).initializer(tensor("zero", {}, Ints{0})).initializer(tensor("one", {}, Ints{1}));
  b.initializer(tensor("axis", {1}, Ints{1})).node("Shape", {"x"}, {"shape"});
  b.node("Gather", {"shape", "zero"}, {"rows"}).node("Range", {"zero", "rows", "one"}, {"numbers"});
  b.node("Cast", {"numbers"}, {"reals"}, {attribute("to", std::int64_t{1})}).node("Unsqueeze", {"reals", "axis"}, {"column"});
  return b.node("MatMul", {"x", "w"}, {"m"}).node("Add", {"m", "column"}, {"y"}).output("y");
}

struct Written {
  Written(const OnnxBuilder& builder) { write_file(folder.path("m.onnx"), builder.bytes()); }
  std::string path() const { return folder.path("m.onnx"); }
  TemporaryFolder folder;
};

ConvertOptions open_dims(std::map<std::string, std::vector<std::int64_t>> dims) {
  ConvertOptions options;
  options.open_dims = std::move(dims);
  return options;
}

}  // namespace

TEST_CASE("batch and sides of a convolutional network") {
  const Written network(small_network(16));
  ConvertOptions options = open_dims({{"x.0", {1, 2, 4}}, {"size", {8, 16, 20}}});
  options.dim_sums = {{"x.2", {"size"}}, {"x.3", {"size"}}};
  check(network.path(), options,
        {{{"x.0", 1}, {"size", 8}}, {{"x.0", 2}, {"size", 16}}, {{"x.0", 4}, {"size", 20}}, {{"x.0", 4}, {"size", 8}}});
}

TEST_CASE("more choices than are listed: each graph is made when it is opened, and is what convert makes for it alone") {
  const Written network(small_network(16));
  const auto up_to = [](std::int64_t first, std::int64_t last) {
    std::vector<std::int64_t> extents;
    for (; first <= last; ++first) extents.push_back(first);
    return extents;
  };
  ConvertOptions options = open_dims({{"x.0", up_to(1, 20)}, {"x.2", up_to(8, 30)}, {"x.3", up_to(8, 30)}});  // 10,580
  options.exact = true;
  check(network.path(), options,
        {{{"x.0", 1}, {"x.2", 8}, {"x.3", 8}}, {{"x.0", 7}, {"x.2", 19}, {"x.3", 23}}, {{"x.0", 20}, {"x.2", 30}, {"x.3", 30}}});
  // Winograd is chosen by height and width together, in squares of four.
  options.exact = false;
  const TemporaryFolder folder;
  importer::ConvertReport report;
  const Status refused = importer::convert(network.path(), folder.path("m.sluice"), options, report);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kUnsupported);
  CHECK(report.problems.front().message.find("--numerics exact") != std::string::npos);
}

TEST_CASE("constants that follow from an extent are stored for each of them") {
  const Written network(numbered_rows());
  check(network.path(), open_dims({{"x.0", {1, 2, 3, 7}}}), {{{"x.0", 1}}, {{"x.0", 3}}, {{"x.0", 7}}});
}

TEST_CASE("sessions of different extents live side by side on one open file") {
  const Written network(small_network(16));
  const TemporaryFolder folder;
  const auto model = convert_and_open(network.path(), folder.path("m.sluice"), open_dims({{"x.0", {1, 2, 3, 4}}}));
  const auto one = Session::create(model, {.dims = {{"x.0", 1}}});
  const auto four = Session::create(model, {});
  REQUIRE(one);
  REQUIRE(four);
  CHECK((*one)->model().graph().inputs[0].onnx_shape[0] == 1);
  CHECK((*four)->model().graph().inputs[0].onnx_shape[0] == 4);
  CHECK(&(*one)->model().file().source() == &(*four)->model().file().source());
  const std::vector<Bytewise> first = run(**one), all = run(**four);
  // The inputs begin alike, and images of a batch do not see each other.
  CHECK(std::equal(first[0].begin(), first[0].end(), all[0].begin()));
  CHECK((run(**one) == first));
  REQUIRE((*one)->set_budget(*minimum_budget(*model, {.dims = {{"x.0", 1}}})));
  CHECK((run(**one) == first));
  // One reading of the weights serves all images of a batch.
  SessionOptions least{.dims = {{"x.0", 4}}};
  least.budget = *minimum_budget(*model, least);
  const auto streamed = Session::create(model, least);
  REQUIRE(streamed);
  run(**streamed);
  CHECK((*streamed)->stats().bytes_read <= (*one)->stats().bytes_read + Bytes(64 * 1024));
}

TEST_CASE("a plan is of one choice of extents") {
  const Written network(small_network(16));
  const TemporaryFolder folder;
  const auto model = convert_and_open(network.path(), folder.path("m.sluice"), open_dims({{"x.0", {1, 2}}}));
  const auto plan = plan_session(*model, {.dims = {{"x.0", 1}}});
  REQUIRE(plan);
  SessionOptions options{.plan = &plan->plan};
  CHECK(Session::create(model, options).error().code == ErrorCode::kInvalidPlan);
  options.dims = {{"x.0", 1}};
  CHECK(Session::create(model, options));
}

TEST_CASE("initialisers that an old file lists as inputs are not named among its dimensions") {
  OnnxBuilder b(9);
  b.input("x", {1, 4}).input("w", {4, 8}).initializer(tensor("w", {4, 8}, Floats(32, 0.5f))).node("MatMul", {"x", "w"}, {"y"}).output("y");
  const TemporaryFolder folder;
  write_file(folder.path("old.onnx"), b.bytes());
  importer::ConvertReport report;
  REQUIRE_FALSE(importer::convert(folder.path("old.onnx"), folder.path("no.sluice"), {.dims = {{"Q", 3}}}, report));
  REQUIRE(report.problems.size() == 1);
  CHECK(report.problems[0].message == "--dim Q=3: no input has such a dimension; there are x.0, x.1");
}

TEST_CASE("extents that a file has no graph for are refused, at convert and at open") {
  const Written network(small_network(16));
  const TemporaryFolder folder;
  const auto model = convert_and_open(network.path(), folder.path("m.sluice"), open_dims({{"x.0", {1, 4}}}));
  for (const Extents& wrong : {Extents{{"x.0", 5}}, Extents{{"x.0", 2}}, Extents{{"x.0", 0}}, Extents{{"N", 1}}}) {
    const auto opened = Model::open(folder.path("m.sluice"), wrong);
    REQUIRE_FALSE(opened);
    CHECK(opened.error().code == ErrorCode::kInvalidArgument);
    CHECK_FALSE(Session::create(model, {.dims = wrong}));
    CHECK_FALSE(minimum_budget(*model, {.dims = wrong}));
  }
  const auto refused = [&](const ConvertOptions& options) {
    importer::ConvertReport report;
    const Status status = importer::convert(network.path(), folder.path("no.sluice"), options, report);
    REQUIRE_FALSE(status);
    REQUIRE_FALSE(report.problems.empty());
    CHECK_FALSE(std::filesystem::exists(folder.path("no.sluice")));
    return report.problems[0].message;
  };
  // Three channels are what the weights have.
  CHECK(refused(open_dims({{"x.1", {2, 3}}})).find("at x.1=2: ") == 0);
  CHECK(refused(open_dims({{"x.9", {1, 2}}})).find("no input has such a dimension") != std::string::npos);
  CHECK(refused(open_dims({{"x.0", {-1, 2}}})).find("negative") != std::string::npos);
  CHECK(refused(open_dims({{"x.0", {}}})).find("no extents") != std::string::npos);
  ConvertOptions sum;
  sum.dim_sums = {{"x.0", {"batch", "1"}}};
  CHECK(refused(sum).find("`batch`") != std::string::npos);
  ConvertOptions many = open_dims({{"x.0", {}}, {"x.2", {}}});
  for (std::int64_t i = 1; i <= 100; ++i) {
    many.open_dims["x.0"].push_back(i);
    many.open_dims["x.2"].push_back(i);
  }
  CHECK(refused(many).find("4096") != std::string::npos);
}

TEST_CASE("real models at several extents", "[.][models]") {
  const std::filesystem::path models = std::filesystem::path(shared_folder()) / "models";
  if (!std::filesystem::is_directory(models)) {
    std::cout << "SKIPPED: models/ is not here; SLUICE_SHARED_DIR names the folder that holds it\n";
    return;
  }
  SECTION("tokens of a language model, with and without a past") {
    ConvertOptions options = open_dims({{"seq_len", {1, 2, 3, 4, 5, 6, 7, 8}}, {"past_seq_len", {0, 7}}});
    options.dims = {{"batch_size", 1}};
    options.dim_sums = {{"total_seq_len", {"seq_len", "past_seq_len"}}};
    const auto at = [](std::int64_t tokens, std::int64_t past) { return Extents{{"seq_len", tokens}, {"past_seq_len", past}}; };
    check(models / "language/tiny-random-gpt2-fp32.onnx", options, {at(1, 7), at(8, 0), at(5, 0), at(1, 0), at(8, 7)});
  }
  SECTION("the batch of SqueezeNet") {
    check(models / "classification/squeezenet1.0_fp16.onnx", open_dims({{"data_0.0", {1, 2, 3}}}),
          {{{"data_0.0", 1}}, {{"data_0.0", 2}}, {{"data_0.0", 3}}});
  }
  SECTION("the sides of a detector") {
    check(models / "detection/yolox_nano.onnx", open_dims({{"images.2", {96, 128, 160}}, {"images.3", {128, 160}}}),
          {{{"images.2", 96}, {"images.3", 160}}, {{"images.2", 128}, {"images.3", 128}}, {{"images.2", 160}, {"images.3", 160}}});
  }
  SECTION("lines of text: batch and width of a recurrent reader") {
    const std::string batch = "p2o.DynamicDimension.0", width = "p2o.DynamicDimension.1";
    check(models / "ocr/en_number_mobile_v2.0_rec.onnx", open_dims({{batch, {1, 2}}, {width, {96, 128, 160}}}),
          {{{batch, 1}, {width, 96}}, {{batch, 2}, {width, 128}}, {{batch, 1}, {width, 160}}});
  }
}
