#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <protozero/pbf_reader.hpp>
#include <random>
#include <set>

#include "src/cli/detect/detector.h"
#include "src/cli/detect/runner.h"
#include "src/cli/failure.h"
#include "tests/cli/temporary.h"
#include "tests/core/temporary_files.h"

namespace sluice::cli::detect {
namespace {

using Pairs = std::set<std::pair<std::string, std::string>>;

/// A node of a model: its word, and the names of its inputs and of its output.
struct Node {
  std::string word;
  std::vector<std::string> inputs;
  std::string output;
};

std::vector<Node> nodes_of(const std::string& path) {
  const std::string bytes = read_text(path);
  std::vector<Node> nodes;
  protozero::pbf_reader model(bytes);
  while (model.next(7)) {
    protozero::pbf_reader graph = model.get_message();
    while (graph.next(1)) {
      protozero::pbf_reader message = graph.get_message();
      Node& node = nodes.emplace_back();
      while (message.next()) {
        const std::string text = message.tag() <= 3 ? message.get_string() : (message.skip(), std::string());
        if (message.tag() == 1) node.inputs.push_back(text);
        if (message.tag() == 2) node.output = text;
        if (message.tag() == 3) node.word = text.substr(0, text.find('.'));
      }
    }
  }
  return nodes;
}

/// A runtime with planted rules: what is fused costs a tenth of itself, calls cost as much as operators, and the machine is noisy: each
/// time is off by half a per cent, as medians of a runner's own runs are, some by half, and all of it wanders by some per cent.
///
/// An operator runs as one with one of those before it, if nothing else needs that one's result or the rule holds for forks, too.
class PlantedRuntime final : public Runner {
 public:
  PlantedRuntime(Pairs rules, Pairs forks, std::uint32_t seed) : rules_(std::move(rules)), forks_(std::move(forks)), random_(seed) {}

  double time(const std::string& path) override {
    const std::map<std::string, double> costs = {{"conv", 0.9},     {"dwconv", 0.2},     {"bn", 0.08},    {"relu", 0.06},
                                                 {"add", 0.08},     {"mul", 0.08},       {"merge", 0.07}, {"maxpool", 0.1},
                                                 {"avgpool", 0.11}, {"separator", 0.06}, {"clip", 0.08}};
    const std::vector<Node> nodes = nodes_of(path);
    std::map<std::string, std::string> made_by;
    std::map<std::string, int> uses;
    for (const Node& node : nodes)
      for (const std::string& input : node.inputs) ++uses[input];
    double ms = 0.4;
    for (const Node& node : nodes) {
      made_by[node.output] = node.word;
      const auto cost = costs.find(node.word);
      if (cost == costs.end()) continue;
      const bool fused = std::any_of(node.inputs.begin(), node.inputs.end(), [&](const std::string& input) {
        const std::pair pair{made_by[input], node.word};
        return uses[input] == 1 ? rules_.contains(pair) : forks_.contains(pair);
      });
      ms += cost->second * (fused ? 0.1 : 1);
    }
    wander_ = 0.99 * wander_ + 0.01 * std::normal_distribution<double>(0, 1)(random_);
    const double spike = std::uniform_real_distribution<double>(0, 1)(random_) < 0.03 ? 1.5 : 1;
    return ms * spike * std::exp(wander_ * 0.1 + 0.005 * std::normal_distribution<double>(0, 1)(random_));
  }

 private:
  Pairs rules_, forks_;
  std::mt19937 random_;
  double wander_ = 0;
};

/// Whether a runtime with these rules runs the pattern's operators as one.
bool is_planted(const Pattern& pattern, const Pairs& rules, const Pairs& forks) {
  const std::vector<std::string>& words = pattern.words;
  if (pattern.form == Form::kFork) return forks.contains({words[0], words[1]});
  if (pattern.form == Form::kJoin) return rules.contains({words[0], words[2]}) || rules.contains({words[1], words[2]});
  for (std::size_t i = 1; i < words.size(); ++i)
    if (!rules.contains({words[i - 1], words[i]})) return false;
  return true;
}

TEST_CASE("planted rules are found, and in twenty seeds nothing else is called fused") {
  const Pairs rules = {{"conv", "relu"}, {"conv", "bn"}, {"bn", "relu"}, {"conv", "add"}, {"add", "relu"}, {"dwconv", "bn"}};
  const Pairs forks = {{"conv", "bn"}};
  std::map<Form, std::pair<int, int>> found;  // of how many
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    const TemporaryFolder folder;
    PlantedRuntime runtime(rules, forks, seed);
    const Detection detection =
        detect(runtime, {.operators = {"conv", "dwconv", "bn", "relu", "add", "maxpool"}, .seconds = 1e9, .directory = folder.path("")});
    for (const Rule& rule : detection.rules) {
      const bool planted = is_planted(rule.pattern, rules, forks);
      std::string words = name_of(rule.pattern.form);
      for (const std::string& word : rule.pattern.words) words += " " + word;
      INFO(seed << ": " << words << " saves " << rule.saving_ms << " of " << rule.cheaper_ms);
      if (rule.fused) CHECK(*rule.fused == planted);  // it may abstain, not guess
      auto& [right, all] = found[rule.pattern.form];
      all += planted ? 1 : 0;
      right += planted && rule.fused.value_or(false) ? 1 : 0;
    }
  }
  for (const auto& [form, count] : found) {
    INFO(name_of(form) << ": " << count.first << " of " << count.second);
    CHECK(count.second > 0);
    CHECK(count.first * 10 >= count.second * 8);
  }
}

TEST_CASE("larger patterns are asked about where pairs are fused") {
  const TemporaryFolder folder;
  PlantedRuntime runtime({{"conv", "bn"}, {"bn", "relu"}}, {}, 1);
  const Detection detection = detect(runtime, {.operators = {"conv", "bn", "relu"}, .seconds = 1e9, .directory = folder.path("")});
  REQUIRE(detection.rules.size() == 9 + 1 + 2);
  CHECK(detection.rules[9].pattern == Pattern{Form::kChain, {"conv", "bn", "relu"}});
  CHECK(detection.rules[9].fused.value_or(false));
  CHECK(detection.rules[10].pattern == Pattern{Form::kFork, {"conv", "bn"}});
  CHECK_FALSE(detection.rules[10].fused.value_or(true));
}

TEST_CASE("a join is asked about where one of its pairs is fused, in one order of its two results") {
  const TemporaryFolder folder;
  PlantedRuntime runtime({{"conv", "add"}}, {}, 1);
  const Detection detection = detect(runtime, {.operators = {"relu", "conv", "add"}, .seconds = 1e9, .directory = folder.path("")});
  std::vector<Pattern> joins;
  for (const Rule& rule : detection.rules)
    if (rule.pattern.form == Form::kJoin) joins.push_back(rule.pattern);
  CHECK(joins == std::vector<Pattern>{{Form::kJoin, {"relu", "conv", "add"}},
                                      {Form::kJoin, {"conv", "conv", "add"}},
                                      {Form::kJoin, {"conv", "add", "add"}}});
}

TEST_CASE("a runner is a process that answers lines, and what is no answer is told") {
  ProcessRunner good("while read path; do echo 1.25; done", 10);
  CHECK(good.time("a") == 1.25);
  CHECK(good.time("b") == 1.25);
  ProcessRunner words("while read path; do echo soon; done", 10);
  CHECK_THROWS_AS(words.time("a"), Failure);
  ProcessRunner silent("sleep 30", 0.05);
  CHECK_THROWS_AS(silent.time("a"), Failure);
  ProcessRunner gone("true", 10);
  CHECK_THROWS_AS(gone.time("a"), Failure);
}

TEST_CASE("a runner that answers and reads nothing is given up when the pipe to it is full") {
  ProcessRunner eager("yes 1", 0.2);
  const std::string path(4000, 'a');
  constexpr int kMoreThanAnyPipeHolds = 1000;  // 4 MB; Linux gives a pipe 64 KiB, and 1 MiB to those who ask
  const auto ask = [&] {
    for (int i = 0; i < kMoreThanAnyPipeHolds; ++i) eager.time(path);
  };
  CHECK_THROWS_AS(ask(), Failure);
}

TEST_CASE("a runner that does not end by itself, nor when it is asked to, is ended") {
  ProcessRunner deaf("trap '' TERM; read path; echo 1; while :; do sleep 1; done", 10);
  CHECK(deaf.time("a") == 1);
}

}  // namespace
}  // namespace sluice::cli::detect
