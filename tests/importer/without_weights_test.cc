#include <catch2/catch.hpp>

#include "sluice/engine/predictor.h"
#include "sluice/importer/importer.h"
#include "tests/core/temporary_files.h"
#include "tests/importer/onnx_builder.h"
#include "tests/prediction/families.h"

namespace sluice {
namespace {

using TemporaryFolder = TemporaryDirectory;

Status convert(const std::string& onnx, const std::string& model, bool without_weights, importer::ConvertReport& report) {
  importer::ConvertOptions options;
  options.without_weights = without_weights;
  return importer::convert(onnx, model, options, report);
}

/// A net with its weights, or their shapes alone.
std::string small_net(bool shapes_alone) {
  test::OnnxBuilder b;
  const auto weight = [&](const std::string& name, const test::Ints& dims) {
    if (shapes_alone) b.initializer(test::raw_tensor(name, dims, 1, ""));
    if (!shapes_alone) b.weight(name, dims);
  };
  b.input("x", {1, 3, 32, 32});
  weight("w", {64, 3, 3, 3});
  weight("bias", {64});
  weight("v", {64, 1000});
  weight("last", {1000});
  b.node("Conv", {"x", "w", "bias"}, {"c"}, {test::attribute("pads", test::Ints{1, 1, 1, 1})}).node("Relu", {"c"}, {"r"});
  b.node("GlobalAveragePool", {"r"}, {"p"}).node("Flatten", {"p"}, {"f"}).node("Gemm", {"f", "v", "last"}, {"y"}).output("y");
  return b.bytes();
}

/// The first test network of a family, without weights.
std::shared_ptr<const Model> shapes_of(std::string_view family, const TemporaryFolder& folder) {
  test::write_file(folder.file("m.onnx"), test::variant_of(family, test::kTestNumbers));
  importer::ConvertReport report;
  REQUIRE(convert(folder.file("m.onnx"), folder.file("m.sluice"), true, report));
  const auto model = Model::open(folder.file("m.sluice"));
  REQUIRE(model);
  return *model;
}

TEST_CASE("a model of shapes alone is planned as the one with its weights, and run is refused by name") {
  const TemporaryFolder folder;
  test::write_file(folder.file("full.onnx"), small_net(false));
  test::write_file(folder.file("shapes.onnx"), small_net(true));
  importer::ConvertReport report;
  REQUIRE(convert(folder.file("full.onnx"), folder.file("full.sluice"), false, report));
  REQUIRE_FALSE(convert(folder.file("shapes.onnx"), folder.file("no.sluice"), false, report));
  CHECK(report.problems.front().message.find("raw_data has 0 bytes") != std::string::npos);
  REQUIRE(convert(folder.file("shapes.onnx"), folder.file("shapes.sluice"), true, report));
  REQUIRE(convert(folder.file("full.onnx"), folder.file("header.sluice"), true, report));

  const auto full = Model::open(folder.file("full.sluice"));
  REQUIRE(full);
  const SessionOptions options{.repeat = true};
  const auto expected = Predictor(*full, options).at(Bytes(512 * 1024));
  REQUIRE(expected);
  CHECK(expected->low_ms < expected->latency_ms);
  CHECK(expected->latency_ms < expected->high_ms);
  CHECK_FALSE(expected->measured);
  for (const char* name : {"shapes.sluice", "header.sluice"}) {
    const auto model = Model::open(folder.file(name));
    REQUIRE(model);
    CHECK((*model)->file().file_size() == (*full)->file().file_size());  // as it would be
    const auto predicted = Predictor(*model, options).at(Bytes(512 * 1024));
    REQUIRE(predicted);
    CHECK(predicted->latency_ms == expected->latency_ms);
    CHECK(predicted->peak == expected->peak);
    CHECK(predicted->bytes_read == expected->bytes_read);
    const auto planned = plan_session(**model, {.budget = Bytes(512 * 1024), .repeat = true});
    REQUIRE(planned);
    const Predictor predictor(*model, options);
    const auto first = predictor.of(planned->plan, planned->overhead), second = predictor.of(planned->plan, planned->overhead);
    REQUIRE(first);
    REQUIRE(second);
    CHECK(first->latency_ms == second->latency_ms);
    CHECK(first->high_ms == second->high_ms);
    CHECK(first->latency_ms == Approx(expected->latency_ms).epsilon(0.05));
    const auto session = Session::create(*model, {});
    REQUIRE_FALSE(session);
    CHECK(session.error().code == ErrorCode::kUnsupported);
    CHECK(session.error().to_string().find("no weights") != std::string::npos);
    CHECK(model::verify_weights((*model)->file()).error().code == ErrorCode::kUnsupported);
  }
}

TEST_CASE("integers that decide shapes have to be there") {
  const TemporaryFolder folder;
  test::OnnxBuilder b;
  b.input("x", {2, 6}).initializer(test::raw_tensor("shape", {2}, 7, ""));
  b.node("Reshape", {"x", "shape"}, {"r"}).node("Relu", {"r"}, {"y"}).output("y");
  test::write_file(folder.file("m.onnx"), b.bytes());
  importer::ConvertReport report;
  REQUIRE_FALSE(convert(folder.file("m.onnx"), folder.file("m.sluice"), true, report));
  CHECK(report.problems.front().message.find("the file has its shape alone") != std::string::npos);
}

TEST_CASE("a file that says it has no weights and has bytes behind its header is refused") {
  const TemporaryFolder folder;
  test::write_file(folder.file("m.onnx"), small_net(true));
  importer::ConvertReport report;
  REQUIRE(convert(folder.file("m.onnx"), folder.file("m.sluice"), true, report));
  std::ofstream(folder.file("m.sluice"), std::ios::binary | std::ios::app) << "more";
  CHECK(Model::open(folder.file("m.sluice")).error().code == ErrorCode::kInvalidModel);
}

TEST_CASE("every family can be predicted from its shapes, by nodes that add up") {
  const TemporaryFolder folder;
  for (const std::string_view family : test::family_names()) {
    INFO(family);
    const auto model = shapes_of(family, folder);
    const auto predicted = Predictor(model, {.repeat = true, .tuning = {.policy = planner::Policy::kResident}}).at(kUnlimitedBytes);
    REQUIRE(predicted);
    double sum = 0;
    for (const NodePrediction& node : predicted->nodes) sum += node.compute_ms + node.wait_ms;
    CHECK(predicted->latency_ms > 0);
    CHECK(sum == Approx(predicted->latency_ms).epsilon(0.02));
  }
}

TEST_CASE("a predictor that has priced other plans says what a new one does, and reads its profile when it is made") {
  const TemporaryFolder folder;
  const auto model = shapes_of("vgg", folder);
  const profiler::DeviceProfile profile;
  const SessionOptions options{.repeat = true, .profile = &profile};
  auto passing = std::make_unique<profiler::DeviceProfile>(profile);
  SessionOptions of_passing = options;
  of_passing.profile = passing.get();
  const Predictor old(model, of_passing);
  passing.reset();
  SessionOptions tight = options;
  const auto least = minimum_budget(*model, options);
  REQUIRE(least);
  tight.budget = Bytes(least->count() + least->count() / 8);
  const auto wide_plan = plan_session(*model, options), tight_plan = plan_session(*model, tight);
  REQUIRE((wide_plan && tight_plan));
  const auto planned_anew = old.at(tight.budget), by_new = Predictor(model, options).at(tight.budget);
  REQUIRE((planned_anew && by_new));
  CHECK(planned_anew->latency_ms == by_new->latency_ms);
  for (const auto* planned : {&*wide_plan, &*tight_plan, &*wide_plan, &*wide_plan, &*tight_plan}) {
    const auto said = old.of(planned->plan, planned->overhead);
    const auto anew = Predictor(model, options).of(planned->plan, planned->overhead);
    REQUIRE((said && anew));
    CHECK(said->latency_ms == anew->latency_ms);
    CHECK(said->high_ms == anew->high_ms);
    CHECK(said->bytes_read == anew->bytes_read);
    REQUIRE(said->nodes.size() == anew->nodes.size());
    for (std::size_t n = 0; n < said->nodes.size(); ++n) {
      CHECK(said->nodes[n].steps == anew->nodes[n].steps);
      CHECK(said->nodes[n].compute_ms == anew->nodes[n].compute_ms);
    }
  }
}

TEST_CASE("what a plan finds in place is priced for a device that copies it") {
  const TemporaryFolder folder;
  profiler::DeviceProfile plain, copies;
  copies.copies_views = true;
  std::size_t families_with_copies = 0;
  for (const std::string_view family : test::family_names()) {
    INFO(family);
    const auto model = shapes_of(family, folder);
    const auto prediction = [&](const profiler::DeviceProfile& profile) {
      const auto made =
          Predictor(model, {.repeat = true, .profile = &profile, .tuning = {.policy = planner::Policy::kResident}}).at(kUnlimitedBytes);
      REQUIRE(made);
      return *made;
    };
    const LatencyPrediction without = prediction(plain), with = prediction(copies);
    double copying = 0, sum = 0;
    for (const NodePrediction& node : with.nodes) (node.steps == 0 ? copying : sum) += node.compute_ms + node.wait_ms;
    for (const NodePrediction& node : without.nodes) CHECK(node.steps > 0);
    CHECK(with.latency_ms == Approx(without.latency_ms + copying).epsilon(1e-6));
    CHECK(sum + copying == Approx(with.latency_ms).epsilon(0.02));
    families_with_copies += copying > 0 ? 1 : 0;
  }
  CHECK(families_with_copies > 0);
}

TEST_CASE("a variant is the same each time, and another number is another net") {
  CHECK(test::variant_of("resnet", 7) == test::variant_of("resnet", 7));
  CHECK(test::variant_of("resnet", 7) != test::variant_of("resnet", 8));
  CHECK(test::variant_of("no family", 7).empty());
}

TEST_CASE("the layers of a variant of integers become integers") {
  for (const std::string_view family : test::family_names()) {
    INFO(family);
    const TemporaryFolder folder;
    test::write_file(folder.file("m.onnx"), test::variant_of(family, 7, test::Arithmetic::kIntegers));
    importer::ConvertReport report;
    REQUIRE(convert(folder.file("m.onnx"), folder.file("m.sluice"), true, report));
    const auto model = Model::open(folder.file("m.sluice"));
    REQUIRE(model);
    std::size_t integers = 0, floats = 0;
    for (const model::Node& node : (*model)->graph().nodes)
      if (node.op == model::OpKind::kConv || node.op == model::OpKind::kDense)
        ++(node.numeric == model::NumericClass::kInt8 ? integers : floats);
    CHECK(integers > 3);
    CHECK(floats <= (family == "sequence" ? 1u : 0u));  // what a recurrent layer makes of its inputs
  }
}

}  // namespace
}  // namespace sluice
