// Runs several models in turn inside one budget for the whole process, two sessions of each, as a program does that finds, cuts out and
// names things:
//
//     12_share_a_budget DETECTOR.sluice CLASSIFIER.sluice 48MiB
//
// For each session and turn: what was read. The sessions of a model read its resident weights once. Every turn has to give the bits that
// the model gives alone, and the kernel's own figure for the process has to stay within the budget.
#include <sluice/sluice.h>

#include <cstdio>
#include <cstring>
#include <optional>
#include <vector>

namespace {

constexpr int kTurns = 3;

int report(const sluice::Error& error) {
  std::fprintf(stderr, "%s\n", error.to_string().c_str());
  return 1;
}

double mib(sluice::Bytes bytes) { return static_cast<double>(bytes.count()) / (1 << 20); }

/// Sets all inputs to small numbers and runs; `output` receives the first output.
sluice::Status run_once(const sluice::Model& model, sluice::Session& session, std::vector<std::byte>& output) {
  const auto& graph = model.graph();
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const auto& tensor = graph.tensor(graph.inputs[i].tensor);
    std::vector<std::byte> bytes(tensor.bytes().count());
    for (std::size_t at = 0; tensor.dtype == sluice::DType::kF32 && at + 4 <= bytes.size(); at += 4) {
      const float value = static_cast<float>(at / 4 % 257) / 257.0f - 0.5f;
      std::memcpy(bytes.data() + at, &value, sizeof value);
    }
    if (auto set = session.set_input(i, tensor.dtype, bytes); !set) return set;
  }
  if (auto run = session.run(); !run) return run;
  const auto elements = static_cast<std::size_t>(session.output_shape(0).element_count());
  output.resize(elements * size_of(graph.dtype_of(graph.outputs[0])));
  return session.get_output(0, output);
}

/// What the model gives when it is alone. Its memory is gone afterwards.
sluice::Result<std::vector<std::byte>> alone(const std::shared_ptr<const sluice::Model>& model, sluice::Bytes budget) {
  auto session = sluice::Session::create(model, {.budget = budget, .scope = sluice::BudgetScope::kProcess});
  if (!session) return tl::unexpected(session.error());
  std::vector<std::byte> output;
  if (auto run = run_once(*model, **session, output); !run) return tl::unexpected(run.error());
  return output;
}

}  // namespace

int main(int argc, char** argv) {
  const auto budget = argc < 3 ? std::nullopt : sluice::parse_bytes(argv[argc - 1]);
  if (!budget) return std::fprintf(stderr, "usage: %s MODEL... BUDGET\n", argv[0]), 1;

  std::vector<std::shared_ptr<const sluice::Model>> models;
  std::vector<std::vector<std::byte>> expected;
  for (int i = 1; i + 1 < argc; ++i) {
    auto model = sluice::Model::open(argv[i]);
    if (!model) return report(model.error());
    auto output = alone(*model, *budget);
    if (!output) return report(output.error());
    models.push_back(*model);
    expected.push_back(std::move(*output));
  }

  auto arena = sluice::SharedArena::create({.budget = *budget, .scope = sluice::BudgetScope::kProcess});
  if (!arena) return report(arena.error());
  std::vector<std::unique_ptr<sluice::Session>> sessions;  // two of each model, one after the other
  for (std::size_t i = 0; i < 2 * models.size(); ++i) {
    auto session = sluice::Session::create(models[i / 2], {.repeat = true, .arena = *arena});
    if (!session) return report(session.error());
    sessions.push_back(std::move(*session));
  }

  for (int turn = 0; turn < kTurns; ++turn) {
    for (std::size_t i = 0; i < sessions.size(); ++i) {
      std::vector<std::byte> output;
      if (auto run = run_once(*models[i / 2], *sessions[i], output); !run) return report(run.error());
      if (output != expected[i / 2]) return std::fprintf(stderr, "session %zu gave other bits in turn %d\n", i, turn), 1;
      std::printf("turn %d, session %zu of %s: read %.1f MiB\n", turn + 1, i % 2 + 1, argv[1 + i / 2],
                  mib(sessions[i]->stats().bytes_read));
    }
  }
  const sluice::MemoryReport memory = (*arena)->memory();
  std::printf("%zu sessions: arena %.1f MiB, overhead %.1f MiB, peak of the process %.1f MiB of %.1f MiB\n", sessions.size(),
              mib(memory.arena), mib(memory.overhead), mib(memory.peak_resident), mib(memory.budget));
  if (memory.peak_resident > memory.budget) return std::fprintf(stderr, "the process held more than its budget\n"), 1;
}
