// Weights of operators beside convolutions and dense layers stream: at the smallest budget, which does not hold them, the bits are those of
// a run that has all memory, and the values are those of the plain operator, which gets the same weights as inputs.
#include <catch2/catch.hpp>
#include <cmath>

#include "sluice/engine/engine.h"
#include "sluice/importer/importer.h"
#include "tests/cli/temporary.h"
#include "tests/importer/onnx_builder.h"

using namespace sluice;
using namespace sluice::test;

namespace {

using Values = std::vector<Floats>;

std::shared_ptr<const Model> converted(const TemporaryFolder& folder, const OnnxBuilder& builder, const std::string& name) {
  write_file(folder.path(name + ".onnx"), builder.bytes());
  importer::ConvertReport report;
  const Status status = importer::convert(folder.path(name + ".onnx"), folder.path(name + ".sluice"), {}, report);
  for (const importer::Problem& problem : report.problems) UNSCOPED_INFO(problem.op_type + ": " + problem.message);
  REQUIRE(status);
  return *Model::open(folder.path(name + ".sluice"));
}

Values outputs(const std::shared_ptr<const Model>& model, const Values& inputs, const SessionOptions& options) {
  const auto session = Session::create(model, options);
  REQUIRE(session);
  Values result;
  for (int run = 0; run < (options.repeat ? 2 : 1); ++run) {
    for (std::size_t i = 0; i < model->graph().inputs.size(); ++i)
      REQUIRE((*session)->set_input(i, DType::kF32, std::as_bytes(std::span(inputs[i]))));
    REQUIRE((*session)->run());
  }
  for (std::size_t i = 0; i < model->graph().outputs.size(); ++i) {
    result.emplace_back(static_cast<std::size_t>(model->graph().outputs[i].onnx_shape.element_count()));
    REQUIRE((*session)->get_output(i, std::as_writable_bytes(std::span(result.back()))));
  }
  return result;
}

float worst(const Values& a, const Values& b) {
  float most = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t k = 0; k < a[i].size(); ++k) most = std::max(most, std::fabs(a[i][k] - b[i][k]));
  return most;
}

/// `model` gives the same bits at its smallest budget, between, and with all memory; the arena of the smallest does not hold `weights`.
Values check_budgets(const std::shared_ptr<const Model>& model, const Values& inputs, Bytes weights) {
  const Values all = outputs(model, inputs, {});
  for (const int threads : {1, 2})
    for (const bool repeat : {false, true}) {
      SessionOptions options{.threads = threads, .repeat = repeat};
      const auto least = minimum_budget(*model, options);
      REQUIRE(least);
      options.budget = *least;
      const auto planned = plan_session(*model, options);
      REQUIRE(planned);
      CHECK(planned->plan.arena_bytes < weights);
      CHECK(outputs(model, inputs, options) == all);
      options.budget = *least + Bytes(weights.count() / 2);
      CHECK(outputs(model, inputs, options) == all);
    }
  return all;
}

struct Recurrent {
  const char* op;
  std::int64_t gates;
  std::string direction = "forward";
  std::int64_t layout = 0;
  bool states = false;
  bool peepholes = false;
  std::vector<std::string> attributes = {};

  std::int64_t hidden = 96, times = 5, batches = 2, inputs = 64;

  Ints w() const { return {directions(), gates * hidden, inputs}; }
  Ints r() const { return {directions(), gates * hidden, hidden}; }
  std::int64_t directions() const { return direction == "bidirectional" ? 2 : 1; }

  /// With the matrices as weights of the file, or as inputs.
  OnnxBuilder build(bool constant) const {
    OnnxBuilder b(14);
    b.input("x", layout == 0 ? Ints{times, batches, inputs} : Ints{batches, times, inputs});
    if (constant)
      b.weight("w", w()).weight("r", r(), 0.007f);
    else
      b.input("w", w()).input("r", r());
    b.weight("b", {directions(), 2 * gates * hidden}, 0.02f);
    std::vector<std::string> names{"x", "w", "r", "b", ""}, outs{"y", "y_h"};
    const bool lstm = std::string(op) == "LSTM";
    if (lstm) outs.push_back("y_c");
    if (states) {
      const Ints state = layout == 0 ? Ints{directions(), batches, hidden} : Ints{batches, directions(), hidden};
      b.weight("h0", state, 0.05f).weight("c0", state, 0.03f);
      names.push_back("h0");
      if (lstm) names.push_back("c0");
    }
    if (peepholes) {
      b.weight("p", {directions(), 3 * hidden}, 0.04f);
      names.resize(7);
      names.push_back("p");
    }
    std::vector<std::string> all = attributes;
    all.push_back(attribute("hidden_size", hidden));
    all.push_back(attribute("direction", direction.c_str()));
    all.push_back(attribute("layout", layout));
    b.node(op, names, outs, all);
    for (const std::string& out : outs) b.output(out);
    return b;
  }
};

void check_recurrent(const Recurrent& node) {
  INFO(node.op << " " << node.direction << " layout " << node.layout);
  const TemporaryFolder folder;
  const auto model = converted(folder, node.build(true), "own"), plain = converted(folder, node.build(false), "plain");
  const auto count = [](const Ints& dims) { return dims[0] * dims[1] * dims[2]; };
  const Floats x = ramp(node.times * node.batches * node.inputs, 0.05f);
  const Values want = outputs(plain, {x, ramp(count(node.w())), ramp(count(node.r()), 0.007f)}, {});
  const auto weights = static_cast<std::uint64_t>(count(node.w()) + count(node.r())) * sizeof(float);
  const Values found = check_budgets(model, {x}, Bytes(weights));
  CHECK(worst({Floats(want[0].size())}, want) > 0.1f);
  CHECK(worst(found, want) < 2e-5f);
}

}  // namespace

TEST_CASE("matrices of RNN, GRU and LSTM stream") {
  check_recurrent({"LSTM", 4});
  check_recurrent({"LSTM", 4, "reverse", 1, true});
  check_recurrent({"LSTM", 4, "bidirectional", 0, true, true, {attribute("input_forget", std::int64_t{1})}});
  check_recurrent({"GRU", 3, "bidirectional", 1});
  check_recurrent({"GRU", 3, "reverse", 0, true, false, {attribute("linear_before_reset", std::int64_t{1})}});
  check_recurrent({"RNN", 1, "bidirectional"});
}
