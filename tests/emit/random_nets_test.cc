// Networks at random are emitted in the least RAM, streamed and held, and in some RAM more; sanitizers watch them give the engine's bits.
// SLUICE_EMIT_NETS=300 SLUICE_EMIT_SEED=1 build/ci/tests/emit_random_test says how many, from which seed on, and prints what was refused.
#include "tests/emit/random_nets.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <iostream>
#include <map>

#include "tests/emit/compiled_emission.h"

using namespace sluice;
using namespace sluice::test;

namespace {

std::uint32_t number_of(const char* variable, std::uint32_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10));
}

/// In how many forms one network was emitted, and why it was not.
struct Outcome {
  int forms = 0;
  std::string refused;
};

void check_form(const TemporaryFolder& folder, const std::shared_ptr<const Model>& model, emit::EmitOptions options, Outcome& outcome,
                std::uint64_t& ram) {
  const auto made = emit::emit(model->file(), options);
  if (!made) {
    outcome.refused = made.error().to_string();
    CHECK(made.error().code == ErrorCode::kUnsupported);
    return;
  }
  INFO("RAM " << options.ram << ", overhead " << options.max_overhead << ", held " << (options.network.input == emit::InputForm::kHeld));
  ram = made->arena_bytes + made->stack_bound_bytes;
  CHECK(failure_of(folder, model, options, *made, "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all") == "");
  ++outcome.forms;
}

Outcome outcome_of(std::uint32_t seed) {
  const RandomNet net(seed);
  INFO("seed " << seed << "\n" << net.text());
  const TemporaryFolder folder;
  importer::ConvertReport report;
  Outcome outcome;
  const auto model = convert_exactly(folder, net.onnx(), report);
  if (!model) {
    outcome.refused = "not converted: " + (report.problems.empty() ? model.error().to_string() : report.problems[0].message);
    return outcome;
  }
  const bool streams = (*model)->graph().inputs.size() == 1;
  for (const emit::InputForm input : {emit::InputForm::kStreamed, emit::InputForm::kHeld}) {
    if (input == emit::InputForm::kStreamed && !streams) continue;
    emit::EmitOptions options{.name = "net", .network = {.input = input}};
    std::uint64_t least = 0, other = 0;
    check_form(folder, *model, options, outcome, least);
    if (!outcome.refused.empty() || (streams && input == emit::InputForm::kHeld)) break;
    options.ram = least + least * (seed % 90 + 3) / 100;
    check_form(folder, *model, options, outcome, other);
    if (seed % 3 == 0) check_form(folder, *model, {.name = "net", .max_overhead = 1, .network = {.input = input}}, outcome, other);
  }
  return outcome;
}

}  // namespace

TEST_CASE("networks at random give the engine's bits") {
  const std::uint32_t count = number_of("SLUICE_EMIT_NETS", 4), first = number_of("SLUICE_EMIT_SEED", 1);
  const bool says = std::getenv("SLUICE_EMIT_NETS") != nullptr;
  std::uint32_t emitted = 0;
  for (std::uint32_t seed = first; seed < first + count; ++seed) {
    const Outcome outcome = outcome_of(seed);
    emitted += outcome.forms > 0 ? 1 : 0;
    if (says && !outcome.refused.empty()) std::cout << "seed " << seed << ": " << outcome.refused << std::endl;
  }
  if (says) std::cout << emitted << " of " << count << " networks were emitted" << std::endl;
  CHECK(emitted * 2 >= count);
}
