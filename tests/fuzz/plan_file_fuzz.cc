// Loads any bytes as a plan of a small model, and runs what the verifier accepts: whatever it lets through keeps to its memory, ends, and
// computes what the planner's own plan does. The first byte chooses the model, the rest is the body of the file; the prefix is made to
// agree with it, so that verifier and decoder see every mutation.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

#include "sluice/core/hash.h"
#include "sluice/plan/plan_file.h"
#include "tests/fuzz/converted_models.h"
#include "tests/fuzz/memory_file.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

using namespace sluice;

using File = std::vector<std::uint8_t>;
using Values = std::vector<std::vector<std::byte>>;

constexpr std::size_t kPrefixBytes = 32, kBodySizeField = 16, kBodyHashField = 24;
constexpr Bytes kMostArena{std::uint64_t{16} << 20};

[[noreturn]] void fail_with(const char* what, const std::string& why) {
  std::fprintf(stderr, "%s: %s\n", what, why.c_str());
  std::abort();
}

File read_whole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A model, its inputs and outputs, and plans of it as they are saved.
struct Subject {
  std::shared_ptr<const Model> model;
  Values inputs, expected;
  std::vector<File> saved;
};

Result<Values> run(const Subject& subject, const plan::Plan* plan) {
  const model::Graph& graph = subject.model->graph();
  SLUICE_ASSIGN_OR_RETURN(const auto session, Session::create(subject.model, {.plan = plan}));
  for (std::size_t i = 0; i < subject.inputs.size(); ++i) {
    SLUICE_RETURN_IF_ERROR(session->set_input(i, graph.tensor(graph.inputs[i].tensor).dtype, subject.inputs[i]));
  }
  SLUICE_RETURN_IF_ERROR(session->run());
  Values outputs;
  for (std::size_t o = 0; o < graph.outputs.size(); ++o) {
    const auto count = static_cast<std::size_t>(session->output_shape(o).element_count());
    outputs.emplace_back(count * size_of(graph.tensor(graph.outputs[o].tensor).dtype));
    SLUICE_RETURN_IF_ERROR(session->get_output(o, outputs.back()));
  }
  return outputs;
}

std::vector<Subject> make_subjects(const test::Folder& folder) {
  std::vector<Subject> made;
  for (const std::shared_ptr<const Model>& model : test::converted_models(folder)) {
    Subject subject{model, test::inputs_for(model->graph()), {}, {}};
    subject.expected = *run(subject, nullptr);
    const Bytes least = *minimum_budget(*model, {});
    for (const Bytes budget : {least, least + Bytes(64 << 10), kUnlimitedBytes}) {
      const std::string path = folder.path + "/plan";
      if (!save_plan(plan_session(*model, {.budget = budget})->plan, path)) std::abort();
      subject.saved.push_back(read_whole(path));
    }
    made.push_back(std::move(subject));
  }
  return made;
}

/// What the plan with this body computes, if it is accepted and takes no more than a small model can want.
Result<Values> run_saved(const Subject& subject, std::span<const std::uint8_t> body) {
  File bytes(kPrefixBytes + body.size());
  std::copy_n(subject.saved.front().begin(), kPrefixBytes, bytes.begin());
  std::copy(body.begin(), body.end(), bytes.begin() + kPrefixBytes);
  const std::uint64_t body_size = body.size(), body_hash = xxh3_64(std::as_bytes(body));
  std::memcpy(bytes.data() + kBodySizeField, &body_size, sizeof body_size);
  std::memcpy(bytes.data() + kBodyHashField, &body_hash, sizeof body_hash);
  const test::MemoryFile file(bytes);
  SLUICE_ASSIGN_OR_RETURN(const plan::Plan plan, plan::load_plan(file.path()));
  if (plan.arena_bytes > kMostArena) return fail(ErrorCode::kBudgetTooSmall, "plan", "more than is tried here");
  return run(subject, &plan);
}

/// Of each, the plans as they were saved run: a fuzzer whose inputs are all refused for their form would find nothing for ever.
const std::vector<Subject>& subjects() {
  static const test::Folder folder;
  static const std::vector<Subject> made = [] {
    std::vector<Subject> all = make_subjects(folder);
    for (const Subject& subject : all) {
      for (const File& saved : subject.saved) {
        const auto outputs = run_saved(subject, std::span(saved).subspan(kPrefixBytes));
        if (!outputs) fail_with("a plan as it was saved", outputs.error().to_string());
        if (*outputs != subject.expected) fail_with("a plan as it was saved", "gives other outputs");
      }
    }
    return all;
  }();
  return made;
}

/// Numbers of a plan become ones that are near, or those of another place. Nothing moves, so most of these are well-formed.
void change_numbers(std::span<std::uint8_t> body, std::minstd_rand& random) {
  constexpr std::size_t kWord = 4;
  const std::size_t words = body.size() / kWord;
  for (auto changes = 1 + random() % 4; words > 0 && changes > 0; --changes) {
    constexpr std::uint32_t kSteps[] = {1, 2, 16, 64, 4096};
    std::uint32_t word;
    const std::size_t at = random() % words * kWord, other = random() % words * kWord;
    std::memcpy(&word, body.data() + (random() % 4 == 0 ? other : at), kWord);
    if (const auto step = kSteps[random() % std::size(kSteps)]; random() % 4 != 0) word = random() % 2 == 0 ? word + step : word - step;
    std::memcpy(body.data() + at, &word, kWord);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const Subject& subject = subjects()[data[0] % subjects().size()];
  const auto outputs = run_saved(subject, {data + 1, size - 1});
  if (outputs && *outputs != subject.expected) fail_with("a plan that was accepted", "gives other outputs");
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned int random) {
  if (size <= 1) {
    const std::size_t chosen = random % subjects().size();
    const std::vector<File>& saved = subjects()[chosen].saved;
    const File& plan = saved[random / subjects().size() % saved.size()];
    if (plan.size() - kPrefixBytes >= max_size) return LLVMFuzzerMutate(data, size, max_size);
    data[0] = static_cast<std::uint8_t>(chosen);
    std::memcpy(data + 1, plan.data() + kPrefixBytes, plan.size() - kPrefixBytes);
    size = 1 + plan.size() - kPrefixBytes;
  }
  if (random % 4 == 0) return 1 + LLVMFuzzerMutate(data + 1, size - 1, max_size - 1);
  std::minstd_rand numbers(random);
  change_numbers({data + 1, size - 1}, numbers);
  return size;
}
