// A small language model from ONNX to its scores: fused or not, whole or in slices, the numbers are the same.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "sluice/engine/engine.h"
#include "sluice/importer/importer.h"
#include "tests/cli/temporary.h"
#include "tests/importer/transformer_builder.h"

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr std::int64_t kRows = 7, kVocabulary = 1500;

std::shared_ptr<const Model> converted(const TemporaryFolder& folder, bool fuse) {
  const std::string onnx = folder.path("m.onnx"), path = folder.path(fuse ? "fused.sluice" : "plain.sluice");
  write_file(onnx, small_language_model(kRows, 3, 16, kVocabulary).bytes());
  importer::ConvertReport report;
  importer::ConvertOptions options;
  options.fuse = fuse;
  REQUIRE(importer::convert(onnx, path, options, report));
  auto model = Model::open(path);
  REQUIRE(model);
  return *std::move(model);
}

std::vector<float> scores(const std::shared_ptr<const Model>& model, const SessionOptions& options) {
  const auto session = Session::create(model, options);
  REQUIRE(session);
  const std::vector<std::int64_t> tokens{3, 1499, 17, 0, 700, -1, 3};
  REQUIRE((*session)->set_input(0, DType::kI64, std::as_bytes(std::span(tokens))));
  REQUIRE((*session)->run());
  std::vector<float> out(kRows * kVocabulary);
  REQUIRE((*session)->get_output(0, std::as_writable_bytes(std::span(out))));
  return out;
}

std::size_t count(const model::Graph& graph, model::OpKind op) {
  return static_cast<std::size_t>(std::count_if(graph.nodes.begin(), graph.nodes.end(), [&](const model::Node& n) { return n.op == op; }));
}

}  // namespace

TEST_CASE("a language model is the same numbers fused and not") {
  const TemporaryFolder folder;
  const auto fused = converted(folder, true), plain = converted(folder, false);
  CHECK(count(fused->graph(), model::OpKind::kAttention) == 2);
  CHECK(count(fused->graph(), model::OpKind::kLayerNorm) == 5);
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

TEST_CASE("a token outside the table is an error, after which the session runs on") {
  const TemporaryFolder folder;
  const auto model = converted(folder, true);
  const auto least = minimum_budget(*model, {.threads = 2});
  REQUIRE(least);
  const auto session = Session::create(model, {.budget = *least, .threads = 2});
  REQUIRE(session);
  const auto run = [&](std::int64_t token) {
    const std::vector<std::int64_t> tokens{3, token, token, 0, 700, token, 3};
    REQUIRE((*session)->set_input(0, DType::kI64, std::as_bytes(std::span(tokens))));
    return (*session)->run();
  };
  REQUIRE(run(kVocabulary - 1));
  for (const std::int64_t token : {kVocabulary, -kVocabulary - 1}) {
    const Status status = run(token);
    REQUIRE(!status);
    CHECK(status.error().code == ErrorCode::kInvalidArgument);
    CHECK(status.error().to_string().find("outside the table") != std::string::npos);
  }
  REQUIRE(run(-kVocabulary));
}
