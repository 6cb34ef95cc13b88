// A small language model from ONNX to its scores: fused or not, whole or in slices, the numbers are the same.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>

#include "sluice/engine/engine.h"
#include "sluice/importer/importer.h"
#include "tests/cli/temporary.h"
#include "tests/importer/transformer_builder.h"

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr std::int64_t kRows = 7, kVocabulary = 1500;
constexpr std::int64_t kLargeVocabulary = 12000;  // of which a step that looks up seven tokens does not want to hold all

std::shared_ptr<const Model> converted(const TemporaryFolder& folder, bool fuse, std::int64_t vocabulary = kVocabulary) {
  const std::string onnx = folder.path("m.onnx"), path = folder.path(fuse ? "fused.sluice" : "plain.sluice");
  write_file(onnx, small_language_model(kRows, 3, 16, vocabulary).bytes());
  importer::ConvertReport report;
  importer::ConvertOptions options;
  options.fuse = fuse;
  REQUIRE(importer::convert(onnx, path, options, report));
  auto model = Model::open(path);
  REQUIRE(model);
  return *std::move(model);
}

/// `read` becomes what the run read.
std::vector<float> scores(const std::shared_ptr<const Model>& model, const SessionOptions& options, Bytes* read = nullptr) {
  const auto session = Session::create(model, options);
  REQUIRE(session);
  const std::vector<std::int64_t> tokens{3, 1499, 17, 0, 700, -1, 3};
  REQUIRE((*session)->set_input(0, DType::kI64, std::as_bytes(std::span(tokens))));
  REQUIRE((*session)->run());
  if (read != nullptr) *read = (*session)->stats().bytes_read;
  std::vector<float> out(static_cast<std::size_t>(model->graph().outputs[0].onnx_shape.element_count()));
  REQUIRE((*session)->get_output(0, std::as_writable_bytes(std::span(out))));
  return out;
}

const model::Weight& table_of(const model::Graph& graph) {
  const auto of_embedding = [](const model::Node& n) { return n.op == model::OpKind::kEmbedding; };
  return graph.weight(std::find_if(graph.nodes.begin(), graph.nodes.end(), of_embedding)->weights[0]);
}

/// Does the plan leave it to the step to read what it looks up?
bool looks_up_in_step(const model::Graph& graph, const plan::Plan& plan) {
  for (const plan::Step& step : plan.steps)
    if (graph.node(step.node).op == model::OpKind::kEmbedding && !plan.operands[step.first_operand].load.valid()) return true;
  return false;
}

std::size_t count(const model::Graph& graph, model::OpKind op) {
  return static_cast<std::size_t>(std::count_if(graph.nodes.begin(), graph.nodes.end(), [&](const model::Node& n) { return n.op == op; }));
}

constexpr std::int64_t kPositions = 40, kHeads = 4, kDepth = 16, kChannels = kHeads * kDepth;

/// x + attention of its norm, or the norm of x + attention of x. `together`: the caller wants the keys, too, so that the heads form no groups.
std::shared_ptr<const Model> encoder(const TemporaryFolder& folder, bool together, bool norm_first = true) {
  OnnxBuilder b;
  TransformerBuilder t(b);
  b.input("x", {1, kPositions, kChannels});
  const std::string norm = norm_first ? t.layer_norm("x", kChannels) : "x", q = t.dense(norm, kChannels, kChannels),
                    k = t.dense(norm, kChannels, kChannels), v = t.dense(norm, kChannels, kChannels);
  const auto turned = [&](const std::string& part, const Ints& perm) {
    return t.node("Transpose", {t.node("Reshape", {part, t.ints({1, kPositions, kHeads, kDepth})})}, {attribute("perm", perm)});
  };
  const std::string product = t.node("MatMul", {turned(q, {0, 2, 1, 3}), turned(k, {0, 2, 3, 1})});
  const std::string weights = t.node("Softmax", {t.node("Mul", {product, t.scalar(0.25f)})}, {attribute("axis", std::int64_t{-1})});
  const std::string mixed =
      t.node("Transpose", {t.node("MatMul", {weights, turned(v, {0, 2, 1, 3})})}, {attribute("perm", Ints{0, 2, 1, 3})});
  const std::string flat = t.node("Reshape", {mixed, t.ints({1, kPositions, kChannels})});
  const std::string sum = t.node("Add", {"x", t.dense(flat, kChannels, kChannels)});
  b.output(norm_first ? sum : t.layer_norm(sum, kChannels));
  if (together) b.output(k);
  const std::string onnx = folder.path("e.onnx"), path = folder.path(together ? "together.sluice" : "groups.sluice");
  write_file(onnx, b.bytes());
  importer::ConvertReport report;
  REQUIRE(importer::convert(onnx, path, {}, report));
  auto model = Model::open(path);
  REQUIRE(model);
  return *std::move(model);
}

std::vector<float> encoded(const std::shared_ptr<const Model>& model, const SessionOptions& options) {
  const auto session = Session::create(model, options);
  REQUIRE(session);
  std::vector<float> x(kPositions * kChannels), y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
  REQUIRE((*session)->set_input(0, DType::kF32, std::as_bytes(std::span(x))));
  REQUIRE((*session)->run());
  REQUIRE((*session)->get_output(0, std::as_writable_bytes(std::span(y))));
  return y;
}

}  // namespace

TEST_CASE("a language model is the same numbers fused and not") {
  const TemporaryFolder folder;
  const auto fused = converted(folder, true), plain = converted(folder, false);
  CHECK(count(fused->graph(), model::OpKind::kAttention) == 2);
  CHECK(count(fused->graph(), model::OpKind::kLayerNorm) == 5 + 2);  // once more for the queries of each
  CHECK(count(fused->graph(), model::OpKind::kUnary) == 0);
  CHECK(count(plain->graph(), model::OpKind::kAttention) == 0);
  const std::vector<float> a = scores(fused, {}), b = scores(plain, {});
  float norm = 0.0f, worst = 0.0f;
  for (std::size_t i = 0; i < a.size(); ++i) {
    norm = std::max(norm, std::fabs(b[i]));
    worst = std::max(worst, std::fabs(a[i] - b[i]));
  }
  CHECK(norm > 0.01f);
  CHECK(worst <= 1e-5f * norm);
}

TEST_CASE("the table is stored once, and a budget too small for it gives the same bits") {
  const TemporaryFolder folder;
  const auto model = converted(folder, true);
  const auto& nodes = model->graph().nodes;
  const auto embedding = std::find_if(nodes.begin(), nodes.end(), [](const auto& n) { return n.op == model::OpKind::kEmbedding; });
  const auto last = std::find_if(nodes.rbegin(), nodes.rend(), [](const auto& n) { return n.op == model::OpKind::kDense; });
  REQUIRE(embedding->weights[0] == last->weights[0]);
  const Bytes table = model->graph().weight(embedding->weights[0]).bytes;
  const std::vector<float> want = scores(model, {});
  const auto least = minimum_budget(*model, {});
  REQUIRE(least);
  const auto planned = plan_session(*model, {.budget = *least});
  REQUIRE(planned);
  CHECK(planned->plan.arena_bytes < table + Bytes(kRows * kVocabulary * sizeof(float)));
  for (int threads : {1, 2}) {
    const auto budget = minimum_budget(*model, {.threads = threads});
    REQUIRE(budget);
    const bool same = scores(model, {.budget = *budget, .threads = threads}) == want;
    CHECK(same);
  }
}

TEST_CASE("of a large table a run reads what it looks up, once more what it multiplies by, and gives the same bits") {
  const TemporaryFolder folder;
  const auto model = converted(folder, true, kLargeVocabulary);
  const Bytes table = table_of(model->graph()).bytes;
  Bytes weights;
  for (const model::Weight& weight : model->graph().weights) weights += weight.bytes;
  const std::vector<float> want = scores(model, {});
  CHECK(!looks_up_in_step(model->graph(), plan_session(*model, {.repeat = true})->plan));  // it is kept
  for (int threads : {1, 2}) {
    SessionOptions options{.threads = threads};
    options.budget = *minimum_budget(*model, options);
    for (const Bytes more : {Bytes(), Bytes(64 * 1024), Bytes(table.count() / 2)}) {
      options.budget += more;
      CHECK(looks_up_in_step(model->graph(), plan_session(*model, options)->plan));
      Bytes read;
      const bool same = scores(model, options, &read) == want;
      CHECK(same);
      CHECK(read < weights + Bytes(table.count() / 4));
    }
  }
}

TEST_CASE("a part of a table that is not what was written is an error of the run that looks it up") {
  const TemporaryFolder folder;
  const auto model = converted(folder, true, kLargeVocabulary);
  const model::Weight& table = table_of(model->graph());
  const auto session = Session::create(model, {.budget = *minimum_budget(*model, {})});
  REQUIRE(session);
  std::fstream file(folder.path("fused.sluice"), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(table.offset.count() + 40 * table.panel_bytes.count()));
  file.put(char(0x55));
  file.close();
  const std::vector<std::int64_t> tokens(kRows, 40 * model::kPanelLanes);
  REQUIRE((*session)->set_input(0, DType::kI64, std::as_bytes(std::span(tokens))));
  const Status status = (*session)->run();
  REQUIRE(!status);
  CHECK(status.error().code == ErrorCode::kChecksumMismatch);
}

TEST_CASE("a token outside the table is an error, after which the session runs on") {
  const TemporaryFolder folder;
  const std::int64_t vocabulary = GENERATE(kVocabulary, kLargeVocabulary);
  const auto model = converted(folder, true, vocabulary);
  const auto least = minimum_budget(*model, {.threads = 2});
  REQUIRE(least);
  const auto session = Session::create(model, {.budget = *least, .threads = 2});
  REQUIRE(session);
  const auto run = [&](std::int64_t token) {
    const std::vector<std::int64_t> tokens{3, token, token, 0, 700, token, 3};
    REQUIRE((*session)->set_input(0, DType::kI64, std::as_bytes(std::span(tokens))));
    return (*session)->run();
  };
  REQUIRE(run(vocabulary - 1));
  for (const std::int64_t token : {vocabulary, -vocabulary - 1}) {
    const Status status = run(token);
    REQUIRE(!status);
    CHECK(status.error().code == ErrorCode::kInvalidArgument);
    CHECK(status.error().to_string().find("outside the table") != std::string::npos);
  }
  REQUIRE(run(-vocabulary));
}

TEST_CASE("heads in groups give the bits of heads that stay together, whole and in bands, with one thread and two") {
  const TemporaryFolder folder;
  const auto together = encoder(folder, true), groups = encoder(folder, false);
  REQUIRE(count(together->graph(), model::OpKind::kAttention) == 1);
  REQUIRE(count(groups->graph(), model::OpKind::kAttention) == 4);
  const std::vector<float> y = encoded(together, {});
  CHECK(*std::max_element(y.begin(), y.end()) > 0.1f);
  for (const int threads : {1, 2})
    for (const auto partition : {planner::Partition::kOff, planner::Partition::kLeast}) {
      SessionOptions options;
      options.threads = threads;
      options.tuning.partition = partition;
      CHECK(encoded(groups, options) == y);
    }
}

TEST_CASE("heads of which the last group is projected for itself give one sum in all plans, near that of heads that stay together") {
  const TemporaryFolder folder;
  const auto together = encoder(folder, true, false), groups = encoder(folder, false, false);
  REQUIRE(count(groups->graph(), model::OpKind::kDense) == count(together->graph(), model::OpKind::kDense) + 3 * 3 + 1);
  const std::vector<float> y = encoded(groups, {}), whole = encoded(together, {});
  for (std::size_t i = 0; i < y.size(); ++i) REQUIRE(y[i] == Approx(whole[i]).margin(1e-5));
  for (const int threads : {1, 2})
    for (const auto partition : {planner::Partition::kOff, planner::Partition::kLeast}) {
      SessionOptions options;
      options.threads = threads;
      options.tuning.partition = partition;
      CHECK(encoded(groups, options) == y);
    }
}
