#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <protozero/pbf_reader.hpp>
#include <random>
#include <set>

#include "src/cli/detect/detector.h"
#include "src/cli/detect/evidence.h"
#include "src/cli/detect/runner.h"
#include "src/cli/failure.h"
#include "tests/cli/temporary.h"
#include "tests/core/temporary_files.h"

namespace sluice::cli::detect {
namespace {

using Pairs = std::set<std::pair<std::string, std::string>>;

/// A node of a model: its word, its operator, and the names of its inputs and of its output.
struct Node {
  std::string word;
  std::string op;
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
        const std::string text = message.tag() <= 4 ? message.get_string() : (message.skip(), std::string());
        if (message.tag() == 1) node.inputs.push_back(text);
        if (message.tag() == 2) node.output = text;
        if (message.tag() == 3) node.word = text.substr(0, text.find('.'));
        if (message.tag() == 4) node.op = text;
      }
    }
  }
  return nodes;
}

struct Rules {
  Pairs fused;
  Pairs forks = {};     // that hold although the first one's result is needed elsewhere
  double share = 0.1;   // what fused operators still take of their own time
  double noise = 0.02;  // standard deviation of each answer
  /// What a runtime that keeps channels innermost takes to move a map where an operator of windows or channels meets one over images.
  double move_ms = 0;
};

/// A runtime with planted rules: calls cost as much as operators, and the machine is noisy: each answer is off by some per cent, some by
/// half, and all of it wanders by some per cent.
///
/// An operator runs as one with one of those before it, if nothing else needs that one's result or the rule holds for forks, too.
class PlantedRuntime final : public Runner {
 public:
  PlantedRuntime(Rules rules, std::uint32_t seed) : rules_(std::move(rules)), random_(seed) {}

  double time(const std::string& path) override {
    const auto [known, is_new] = known_.try_emplace(path, 0);
    if (is_new) known->second = quiet_ms(nodes_of(path));
    ++asked_;
    wander_ = 0.99 * wander_ + 0.01 * std::normal_distribution<double>(0, 1)(random_);
    const double spike = std::uniform_real_distribution<double>(0, 1)(random_) < 0.03 ? 1.5 : 1;
    return known->second * spike * std::exp(wander_ * 0.1 + rules_.noise * std::normal_distribution<double>(0, 1)(random_));
  }

  std::size_t asked() const { return asked_; }

 private:
  double quiet_ms(const std::vector<Node>& nodes) const {
    const std::map<std::string, double> costs = {{"stem", 0.05},  {"conv", 0.1}, {"dwconv", 0.2}, {"bn", 0.03},      {"relu", 0.02},
                                                 {"add", 0.03},   {"mul", 0.03}, {"merge", 0.03}, {"maxpool", 0.07}, {"separator", 0.03},
                                                 {"clip", 0.025}, {"end", 0.03}, {"mean", 0.01},  {"avgpool", 0.08}};
    std::map<std::string, const Node*> made_by;
    std::map<std::string, int> uses;
    for (const Node& node : nodes)
      for (const std::string& input : node.inputs) ++uses[input];
    double ms = 0.4;
    for (const Node& node : nodes) {
      made_by[node.output] = &node;
      bool fused = false;
      for (const std::string& input : node.inputs) {
        const Node* before = made_by[input];
        if (before == nullptr) continue;
        const std::pair pair{before->word, node.word};
        fused = fused || (uses[input] == 1 ? rules_.fused : rules_.forks).contains(pair);
        if ((before->op == "InstanceNormalization") != (node.op == "InstanceNormalization")) ms += rules_.move_ms;
      }
      ms += costs.at(node.word) * (fused ? rules_.share : 1);
    }
    return ms;
  }

  Rules rules_;
  std::mt19937 random_;
  std::map<std::string, double> known_;
  std::size_t asked_ = 0;
  double wander_ = 0;
};

/// Whether a runtime with these rules runs the pattern's operators as one.
bool is_planted(const Pattern& pattern, const Rules& rules) {
  const std::vector<std::string>& words = pattern.words;
  if (pattern.form == Form::kFork) return rules.forks.contains({words[0], words[1]});
  if (pattern.form == Form::kJoin) return rules.fused.contains({words[0], words[2]}) || rules.fused.contains({words[1], words[2]});
  for (std::size_t i = 1; i < words.size(); ++i)
    if (!rules.fused.contains({words[i - 1], words[i]})) return false;
  return true;
}

std::string text_of(const Rule& rule) {
  std::string text = name_of(rule.pattern.form);
  for (const std::string& word : rule.pattern.words) text += " " + word;
  return text + " saves " + std::to_string(rule.saving_ms) + " of " + std::to_string(rule.cheaper_ms);
}

struct Found {
  int fused = 0, fused_found = 0, apart = 0, apart_found = 0;
};

/// How many of the planted rules and of the others are found, by form; it may abstain, not guess.
std::map<Form, Found> find_in_seeds(std::uint32_t seeds, const Rules& rules) {
  std::map<Form, Found> found;
  for (std::uint32_t seed = 1; seed <= seeds; ++seed) {
    const TemporaryFolder folder;
    PlantedRuntime runtime(rules, seed);
    const Detection detection = detect(runtime, {.operators = {"conv", "dwconv", "bn", "relu", "add", "maxpool"},
                                                 .most_rounds = 150,
                                                 .seconds = 1e9,
                                                 .directory = folder.path("")});
    for (const Rule& rule : detection.rules) {
      const bool planted = is_planted(rule.pattern, rules);
      INFO(seed << ": " << text_of(rule));
      if (rule.fused) CHECK(*rule.fused == planted);
      Found& of_form = found[rule.pattern.form];
      (planted ? of_form.fused : of_form.apart) += 1;
      if (rule.fused) (planted ? of_form.fused_found : of_form.apart_found) += 1;
    }
  }
  return found;
}

void check_found(const std::map<Form, Found>& found, int per_cent) {
  for (const auto& [form, of_form] : found) {
    INFO(name_of(form) << ": " << of_form.fused_found << " of " << of_form.fused << " fused, " << of_form.apart_found << " of "
                       << of_form.apart << " apart");
    CHECK(of_form.fused > 0);
    CHECK((of_form.apart > 0 || form == Form::kJoin));  // joins are asked about where one of their pairs is fused
    CHECK(of_form.fused_found * 100 >= of_form.fused * per_cent);
    CHECK(of_form.apart_found * 100 >= of_form.apart * per_cent);
  }
  CHECK(found.size() == 3);
}

const Pairs kPlanted = {{"conv", "relu"}, {"conv", "bn"}, {"bn", "relu"}, {"conv", "add"}, {"add", "relu"}, {"dwconv", "bn"}};
const Pairs kPlantedForks = {{"conv", "bn"}};

TEST_CASE("planted rules are found, and in twenty seeds nothing else is called fused") {
  check_found(find_in_seeds(20, {.fused = kPlanted, .forks = kPlantedForks}), 97);
}

TEST_CASE("operators that run as one and still take half of their time are found") {
  check_found(find_in_seeds(5, {.fused = kPlanted, .forks = kPlantedForks, .share = 0.5, .noise = 0.01}), 97);
}

TEST_CASE("where noise hides what is saved, the answer is left open") {
  const auto found = find_in_seeds(5, {.fused = kPlanted, .forks = kPlantedForks, .noise = 0.2});
  const Found& pairs = found.at(Form::kChain);
  CHECK(pairs.fused_found + pairs.apart_found < pairs.fused + pairs.apart);
}

TEST_CASE("a runtime that moves maps around separators over images is asked with the other") {
  const Rules rules{.fused = kPlanted, .forks = kPlantedForks, .move_ms = 0.05};
  const TemporaryFolder folder;
  PlantedRuntime moving(rules, 1), still({.fused = kPlanted}, 1);
  const Options options{.operators = {"conv", "relu"}, .most_rounds = 8, .seconds = 1e9, .directory = folder.path("")};
  CHECK(detect(moving, options).separator == Separator::kChannels);
  CHECK(detect(still, options).separator == Separator::kImage);
  check_found(find_in_seeds(5, rules), 97);
}

TEST_CASE("no model is measured for a pattern when the time is over") {
  const TemporaryFolder folder;
  PlantedRuntime runtime({.fused = {{"conv", "relu"}}}, 1);
  const Detection detection = detect(runtime, {.operators = {"conv", "relu"}, .seconds = 0, .directory = folder.path("")});
  CHECK(detection.rules.size() == 4);
  CHECK(detection.measurements == runtime.asked());
  for (const Rule& rule : detection.rules) {
    CHECK_FALSE(rule.fused);
    CHECK(rule.rounds == 0);
  }
}

TEST_CASE("larger patterns are asked about where pairs are fused") {
  const TemporaryFolder folder;
  PlantedRuntime runtime({.fused = {{"conv", "bn"}, {"bn", "relu"}}}, 1);
  const Detection detection = detect(runtime, {.operators = {"conv", "bn", "relu"}, .seconds = 1e9, .directory = folder.path("")});
  REQUIRE(detection.rules.size() == 9 + 1 + 2);
  CHECK(detection.rules[9].pattern == Pattern{Form::kChain, {"conv", "bn", "relu"}});
  CHECK(detection.rules[9].fused.value_or(false));
  CHECK(detection.rules[10].pattern == Pattern{Form::kFork, {"conv", "bn"}});
  CHECK_FALSE(detection.rules[10].fused.value_or(true));
}

TEST_CASE("a join is asked about where one of its pairs is fused, in one order of its two results") {
  const TemporaryFolder folder;
  PlantedRuntime runtime({.fused = {{"conv", "add"}}}, 1);
  const Detection detection = detect(runtime, {.operators = {"relu", "conv", "add"}, .seconds = 1e9, .directory = folder.path("")});
  std::vector<Pattern> joins;
  for (const Rule& rule : detection.rules)
    if (rule.pattern.form == Form::kJoin) joins.push_back(rule.pattern);
  CHECK(joins == std::vector<Pattern>{{Form::kJoin, {"relu", "conv", "add"}},
                                      {Form::kJoin, {"conv", "conv", "add"}},
                                      {Form::kJoin, {"conv", "add", "add"}}});
}

TEST_CASE("the models of a pattern have the same operators and separators") {
  const TemporaryFolder folder;
  const std::vector<Pattern> patterns = {{Form::kChain, {"conv", "relu"}},
                                         {Form::kChain, {"conv", "add", "relu"}},
                                         {Form::kFork, {"conv", "relu"}},
                                         {Form::kJoin, {"conv", "relu", "add"}}};
  for (const Pattern& pattern : patterns)
    for (const Separator separator : {Separator::kImage, Separator::kChannels})
      for (int cut = 1; cut <= cuts_of(pattern); ++cut) {
        const auto write = [&](int where) {
          const Arrangement arrangement{separator, pattern, where, 3};
          std::ofstream(folder.path(file_name_of(arrangement)), std::ios::binary) << model_of(arrangement);
          return nodes_of(folder.path(file_name_of(arrangement)));
        };
        const std::vector<Node> together = write(0), apart = write(cut);
        std::multiset<std::pair<std::string, std::string>> of_together, of_apart;
        for (const Node& node : together) of_together.emplace(node.word, node.op);
        for (const Node& node : apart) of_apart.emplace(node.word, node.op);
        INFO(file_name_of({separator, pattern, cut, 3}));
        CHECK(of_together == of_apart);
        std::map<std::string, std::string> made_by;
        std::vector<std::string> meets;  // the patterns' operators that read a result of another one
        for (const Node& node : apart) {
          made_by[node.output] = node.word;
          const bool is_last = node.word == pattern.words.back();
          for (const std::string& input : node.inputs)
            if (is_last && cut == cuts_of(pattern) && made_by.contains(input)) meets.push_back(made_by[input]);
        }
        if (cut == cuts_of(pattern)) CHECK(meets.size() > 0);
        for (const std::string& word : meets) CHECK(word == "separator");
      }
}

TEST_CASE("a difference is one of the lowest answers, and few answers are less sure") {
  const auto difference = [](const std::vector<double>& less, const std::vector<double>& more) { return difference_of(less, more, 1); };
  // Lower quarters: one of four, of eight two, whatever the others are.
  CHECK(difference({1, 20, 30, 40}, {4, 50, 60, 70}).middle == Approx(3));
  CHECK(difference({9, 1, 9, 3, 9, 9, 9, 9}, {70, 70, 7, 70, 70, 5, 70, 70}).middle == Approx(4));
  CHECK(difference({1, 2, 9, 9, 9, 9}, {3, 6, 9, 9, 9, 9}).middle == Approx((1 * 2 + 0.5 * 4) / 1.5));  // of six one and a half
  CHECK(std::isinf(difference({1}, {2}).error));
  CHECK(std::isinf(difference({}, {}).error));
  CHECK(std::isinf(difference_of(std::vector<double>{1, 2, 3}, std::vector<double>{1, 2, 3}, 2).error));  // one whole block
  CHECK(std::isinf(difference({2, 2, 2, 2}, {2, 2, 2, 2}).error));                                        // of a clock that may not tell
  CHECK(difference({1, 1, 1, 1}, {2, 2, 2, 2}).error > 0.4);                                              // nor one of whole numbers
  std::vector<double> few_less, few_more, less, more;
  std::mt19937 random(1);
  std::normal_distribution<double> noise(0, 0.1);
  for (int i = 0; i < 256; ++i) {
    less.push_back(1 + noise(random));
    more.push_back(2 + noise(random));
    if (i % 16 == 0) few_less.push_back(less.back()), few_more.push_back(more.back());
  }
  const Estimate of_few = difference(few_less, few_more), of_all = difference(less, more);
  CHECK(std::fabs(of_all.middle - 1) < 4 * of_all.error);
  CHECK(std::fabs(of_few.middle - 1) < 4 * of_few.error);
  CHECK(of_all.error < of_few.error / 4);
}

TEST_CASE("the error of a difference is what differences of other answers differ by") {
  std::mt19937 random(2);
  std::normal_distribution<double> noise(0, 1);
  constexpr int kTimes = 200, kBlocks = 32;
  // How often the machine is slower by a third, and how much of its noise two answers of a block have in common.
  for (const auto& [slow, shared] : {std::pair{0.0, 0.0}, {0.4, 0.0}, {0.4, 1.0}, {0.0, 1.0}}) {
    std::bernoulli_distribution slower(slow);
    double squares = 0, stated = 0;
    for (int time = 0; time < kTimes; ++time) {
      std::vector<double> less, more;
      for (int i = 0; i < kBlocks; ++i)
        for (std::vector<double>* answers : {&less, &more}) {
          const double common = noise(random);
          for (int visit = 0; visit < 2; ++visit)
            answers->push_back((slower(random) ? 1.3 : 1) + 0.02 * (shared * common + (1 - shared) * noise(random)));
        }
      const Estimate difference = difference_of(less, more, 2);
      squares += difference.middle * difference.middle / kTimes;
      stated += difference.error / kTimes;
    }
    CAPTURE(slow, shared);
    CHECK(stated > std::sqrt(squares));  // few answers are less sure
    CHECK(stated < 2 * std::sqrt(squares));
    CHECK(stated < 0.012);  // with 0.4 of them slow, means of 64 answers are off by 0.018, and their differences by 0.026
  }
}

TEST_CASE("savings are held against bars between nothing and half of an operator") {
  const Estimate cost{1, 0.01};
  CHECK(verdict_of({1, 0.1}, cost, 1).fused == true);
  CHECK(verdict_of({0.5, 0.05}, cost, 1).fused == true);
  CHECK(verdict_of({0, 0.05}, cost, 1).fused == false);
  CHECK(verdict_of({0.5, 0.1}, cost, 1).fused == std::nullopt);
  CHECK(verdict_of({0, 0.2}, cost, 1).fused == std::nullopt);
  CHECK(verdict_of({-0.8, 0.01}, cost, 1).fused == std::nullopt);  // the separator takes part
  CHECK(verdict_of({2.5, 0.01}, cost, 1).fused == std::nullopt);   // it does, or chance
  CHECK(verdict_of({2.5, 0.01}, cost, 3).fused == true);           // behind an operator that takes as long
  CHECK(verdict_of({1, 0.1}, {1, 0.5}, 1).fused == std::nullopt);  // the operator is not above the noise
  CHECK(verdict_of({1, 0.01}, cost, 1).p_value < verdict_of({1, 0.1}, cost, 1).p_value);
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
