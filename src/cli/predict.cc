// `sluice predict`: how long a model will take in a budget, from its header alone. An ONNX file is converted without its weights first, by
// `sluice-convert`, into a file that is removed afterwards.
#include "sluice/engine/predictor.h"
#include "sluice/kernels/registry.h"
#include "src/cli/commands.h"
#include "src/cli/converted.h"
#include "src/cli/dims.h"
#include "src/cli/failure.h"
#include "src/cli/json.h"
#include "src/cli/open_model.h"
#include "src/cli/profile_file.h"
#include "src/cli/session_options.h"
#include "src/cli/text.h"
#include "src/cli/visible.h"

namespace sluice::cli {
namespace {

std::shared_ptr<const Model> open_onnx(const PredictOptions& options, const std::string& path) {
  const ConvertedModel made(
      path, {.dims = options.budget.dims, .numerics = options.numerics, .weights = options.weights, .without_weights = true});
  return open_model(made.path(), {});
}

/// A model and what to ask of it.
struct Question {
  std::string path;
  std::shared_ptr<const Model> model;
  SessionOptions options;
};

struct Answer {
  Bytes budget;
  LatencyPrediction prediction;
};

Question question_of(const PredictOptions& given, const std::string& path, const FoundProfile& profile) {
  Question question{path, is_onnx(path) ? open_onnx(given, path) : open_model(path, given.budget.dims, given.budget.key),
                    session_options(given.budget)};
  question.options.repeat = !given.cold;
  question.options.profile = profile.get();
  return question;
}

Answer answer(const Question& question, Bytes budget) { return {budget, unwrap(Predictor(question.model, question.options).at(budget))}; }

Json json_of(const LatencyPrediction& p) {
  return {{"latency_ms", p.latency_ms},
          {"interval_ms", Json::array({p.low_ms, p.high_ms})},
          {"peak_bytes", p.peak.count()},
          {"bytes_read", p.bytes_read.count()}};
}

Json json_of_nodes(const model::Graph& graph, const LatencyPrediction& p) {
  Json nodes = Json::array();
  for (const NodePrediction& n : p.nodes) {
    const model::Node& node = graph.node(n.node);
    const kernels::KernelDescriptor* const kernel = kernels::find_kernel(n.kernel);
    nodes.push_back({{"name", node.name},
                     {"operator", name_of(node.op)},
                     {"kernel", kernel == nullptr ? "" : std::string(kernel->name)},
                     {"steps", n.steps},
                     {"compute_ms", n.compute_ms},
                     {"wait_ms", n.wait_ms}});
  }
  return nodes;
}

/// What predictions hold for.
Json conditions_of(const Question& question, const FoundProfile& profile) {
  return {{"model", question.path},
          {"dims", json_of_dims(*question.model)},
          {"threads", question.options.threads},
          {"repeat", question.options.repeat},
          {"scope", scope_name(question.options.scope)},
          {"profile", profile.path.empty() ? "assumed" : profile.path}};
}

Json json_of(const Question& question, const Answer& answered, const FoundProfile& profile) {
  Json json = conditions_of(question, profile);
  json["measured"] = answered.prediction.measured;
  json.update(json_of(answered.prediction));
  add_budget(json, answered.budget, answered.prediction.peak);
  json["nodes"] = json_of_nodes(question.model->graph(), answered.prediction);
  return json;
}

std::string budget_text(Bytes budget) { return budget < kUnlimitedBytes ? format_bytes(budget) : "unlimited"; }

void print_head() { fmt::print("{:>12}{:>12}{:>24}{:>12}{:>12}\n", "budget", "ms", "90% interval", "peak", "read"); }
void print_row(const Answer& a) {
  const LatencyPrediction& p = a.prediction;
  fmt::print("{:>12}{:>12.3f}{:>24}{:>12}{:>12}\n", budget_text(a.budget), p.latency_ms,
             fmt::format("{:.3f} to {:.3f}", p.low_ms, p.high_ms), format_bytes(p.peak), format_bytes(p.bytes_read));
}

/// What was not measured is said, not passed over.
void print_conditions(const Question& question, bool measured, const FoundProfile& profile) {
  fmt::print("{}{}, {} thread{}, {}\n", question.path, dims_text(*question.model), question.options.threads,
             question.options.threads == 1 ? "" : "s", question.options.repeat ? "repeated runs" : "one cold run");
  if (measured) {
    fmt::print("profile {}\n\n", profile.path);
  } else {
    fmt::print("an assumed profile: no device's; `sluice profile` measures this one on so many threads\n\n");
  }
}

void print_nodes(const model::Graph& graph, const LatencyPrediction& p) {
  fmt::print("\n  {:<12}{:<32}{:<24}{:>6}{:>12}{:>12}\n", "operator", "node", "kernel", "steps", "ms", "waits ms");
  for (const NodePrediction& n : p.nodes) {
    const model::Node& node = graph.node(n.node);
    const kernels::KernelDescriptor* const kernel = kernels::find_kernel(n.kernel);
    fmt::print("  {:<12}{:<32}{:<24}{:>6}{:>12.4f}{:>12.4f}\n", name_of(node.op), visible(node.name.substr(0, 31)),
               kernel == nullptr ? "" : kernel->name, n.steps, n.compute_ms, n.wait_ms);
  }
}

void compare(const PredictOptions& given, const FoundProfile& profile) {
  std::vector<std::pair<Question, Answer>> both;
  for (const std::string& path : given.compare) {
    Question question = question_of(given, path, profile);
    Answer answered = answer(question, question.options.budget);
    both.emplace_back(std::move(question), std::move(answered));
  }
  const LatencyPrediction &a = both[0].second.prediction, &b = both[1].second.prediction;
  if (given.json) {
    Json models = Json::array();
    for (const auto& [question, answered] : both) models.push_back(json_of(question, answered, profile));
    print_json("sluice predict --compare", {{"models", models}, {"ratio", b.latency_ms / a.latency_ms}});
    return;
  }
  for (const auto& [question, answered] : both) {
    print_conditions(question, answered.prediction.measured, profile);
    print_head();
    print_row(answered);
    fmt::print("\n");
  }
  fmt::print("the second takes {:.3f} times as long as the first{}\n", b.latency_ms / a.latency_ms,
             a.low_ms > b.high_ms || b.low_ms > a.high_ms ? "" : "; their intervals overlap");
}

void draw_curve(const PredictOptions& given, const FoundProfile& profile) {
  const Question question = question_of(given, given.budget.model, profile);
  std::vector<Answer> answers;
  for (const std::string& text : given.budgets) answers.push_back(answer(question, parse_size(text, "--budgets")));
  if (given.json) {
    Json json = conditions_of(question, profile);
    json["measured"] = answers.front().prediction.measured;
    json["points"] = Json::array();
    for (const Answer& a : answers) {
      Json point = json_of(a.prediction);
      add_budget(point, a.budget, a.prediction.peak);
      json["points"].push_back(std::move(point));
    }
    print_json("sluice predict --budgets", json);
    return;
  }
  print_conditions(question, answers.front().prediction.measured, profile);
  print_head();
  for (const Answer& a : answers) print_row(a);
}

}  // namespace

void predict(const PredictOptions& options) {
  if (options.compare.empty() && options.budget.model.empty())
    raise(make_error(ErrorCode::kInvalidArgument, "model", "is needed: a model file, an ONNX file, or --compare with two of them"));
  const FoundProfile profile = find_profile(options.budget.profile, session_options(options.budget).threads);
  if (!options.compare.empty()) return compare(options, profile);
  if (!options.budgets.empty()) return draw_curve(options, profile);
  const Question question = question_of(options, options.budget.model, profile);
  const Answer answered = answer(question, question.options.budget);
  if (options.json) {
    print_json("sluice predict", json_of(question, answered, profile));
    return;
  }
  print_conditions(question, answered.prediction.measured, profile);
  print_head();
  print_row(answered);
  print_nodes(question.model->graph(), answered.prediction);
}

}  // namespace sluice::cli
