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

/// The words of a chain's nodes, in order.
std::vector<std::string> words_of(const std::string& path) {
  const std::string bytes = read_text(path);
  std::vector<std::string> words;
  protozero::pbf_reader model(bytes);
  while (model.next(7)) {
    protozero::pbf_reader graph = model.get_message();
    while (graph.next(1)) {
      protozero::pbf_reader node = graph.get_message();
      while (node.next(3)) words.push_back(node.get_string());
    }
  }
  return words;
}

/// A runtime with planted rules: what is fused costs a tenth of itself, calls cost as much as operators, and the machine is noisy: each
/// time is off by half a per cent, as medians of a runner's own runs are, some by half, and all of it wanders by some per cent.
class PlantedRuntime final : public Runner {
 public:
  PlantedRuntime(Pairs rules, std::uint32_t seed) : rules_(std::move(rules)), random_(seed) {}

  double time(const std::string& path) override {
    const std::map<std::string, double> costs = {{"conv", 0.9}, {"dwconv", 0.2}, {"bn", 0.08},     {"relu", 0.06},    {"sigmoid", 0.08},
                                                 {"add", 0.08}, {"mul", 0.08},   {"maxpool", 0.1}, {"avgpool", 0.11}, {"separator", 0.06}};
    double ms = 0.4;
    std::string before;
    for (const std::string& word : words_of(path)) {
      const auto cost = costs.find(word);
      if (cost == costs.end()) continue;
      ms += cost->second * (rules_.contains({before, word}) ? 0.1 : 1);
      before = word;
    }
    wander_ = 0.99 * wander_ + 0.01 * std::normal_distribution<double>(0, 1)(random_);
    const double spike = std::uniform_real_distribution<double>(0, 1)(random_) < 0.03 ? 1.5 : 1;
    return ms * spike * std::exp(wander_ * 0.1 + 0.005 * std::normal_distribution<double>(0, 1)(random_));
  }

 private:
  Pairs rules_;
  std::mt19937 random_;
  double wander_ = 0;
};

TEST_CASE("planted rules are found, and in twenty seeds nothing else is called fused") {
  const Pairs planted = {{"conv", "relu"}, {"conv", "bn"}, {"bn", "relu"}, {"conv", "add"}, {"add", "relu"}, {"dwconv", "bn"}};
  int found = 0, wanted = 0;
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    const TemporaryFolder folder;
    PlantedRuntime runtime(planted, seed);
    const Detection detection =
        detect(runtime, {.operators = {"conv", "dwconv", "bn", "relu", "add", "maxpool"}, .seconds = 1e9, .directory = folder.path("")});
    for (const Rule& rule : detection.rules) {
      if (rule.pattern.size() != 2) continue;
      const bool is_planted = planted.contains({rule.pattern[0], rule.pattern[1]});
      INFO(seed << ": " << rule.pattern[0] << " " << rule.pattern[1] << " saves " << rule.saving_ms << " of " << rule.cheaper_ms);
      if (rule.fused) CHECK(*rule.fused == is_planted);  // it may abstain, not guess
      wanted += is_planted ? 1 : 0;
      found += is_planted && rule.fused.value_or(false) ? 1 : 0;
    }
  }
  CHECK(found >= wanted * 8 / 10);
}

TEST_CASE("chains of three are asked about where both pairs are fused") {
  const TemporaryFolder folder;
  PlantedRuntime runtime({{"conv", "bn"}, {"bn", "relu"}}, 1);
  const Detection detection = detect(runtime, {.operators = {"conv", "bn", "relu"}, .seconds = 1e9, .directory = folder.path("")});
  CHECK(detection.rules.size() == 9 + 1);
  CHECK(detection.rules.back().pattern == Pattern{"conv", "bn", "relu"});
  CHECK(detection.rules.back().fused.value_or(false));
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
