// A model as a test builds it, run with all memory and at its smallest budget.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "sluice/engine/engine.h"
#include "sluice/importer/importer.h"
#include "tests/cli/temporary.h"
#include "tests/importer/onnx_builder.h"

namespace sluice::test {

using Values = std::vector<Floats>;

inline std::shared_ptr<const Model> converted(const TemporaryFolder& folder, const OnnxBuilder& builder, const std::string& name,
                                              const importer::ConvertOptions& options = {}) {
  write_file(folder.path(name + ".onnx"), builder.bytes());
  importer::ConvertReport report;
  const Status status = importer::convert(folder.path(name + ".onnx"), folder.path(name + ".sluice"), options, report);
  for (const importer::Problem& problem : report.problems) UNSCOPED_INFO(problem.op_type + ": " + problem.message);
  REQUIRE(status);
  return *Model::open(folder.path(name + ".sluice"));
}

inline Values outputs(const std::shared_ptr<const Model>& model, const Values& inputs, const SessionOptions& options) {
  const auto session = Session::create(model, options);
  if (!session) UNSCOPED_INFO(session.error().to_string());
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

inline float worst(const Values& a, const Values& b) {
  float most = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t k = 0; k < a[i].size(); ++k) most = std::max(most, std::fabs(a[i][k] - b[i][k]));
  return most;
}

/// `model` gives the same bits at its smallest budget, perhaps `between`, and with all memory; the arena of the smallest does not hold
/// `weights`.
inline Values check_budgets(const std::shared_ptr<const Model>& model, const Values& inputs, Bytes weights, bool between = false) {
  const Values all = outputs(model, inputs, {});
  for (const int threads : {1, 2})
    for (const bool repeat : {false, true}) {
      SessionOptions options{.threads = threads, .repeat = repeat};
      const auto least = minimum_budget(*model, options);
      REQUIRE(least);
      options.budget = *least;
      const auto planned = plan_session(*model, options);
      if (!planned) UNSCOPED_INFO(planned.error().to_string());
      REQUIRE(planned);
      CHECK(planned->plan.arena_bytes < weights);
      CHECK(outputs(model, inputs, options) == all);
      if (!between) continue;
      options.budget = *least + Bytes(weights.count() / 2);
      CHECK(outputs(model, inputs, options) == all);
    }
  return all;
}

}  // namespace sluice::test
