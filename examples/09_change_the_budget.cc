// Runs a model while its budget goes down and up again, as on a device whose other programs come and go:
//
//     09_change_the_budget MODEL.sluice 200MiB 40MiB 16MiB 200MiB
//
// For each budget: what the change cost, what the process holds before and after it, and the first and the middle of 32 runs. Every run has
// to give the bits of the first.
#include <sluice/sluice.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

double milliseconds(Clock::duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

int report(const sluice::Error& error) {
  std::fprintf(stderr, "%s\n", error.to_string().c_str());
  return 1;
}

/// What this process holds now.
double resident_mib() {
  long pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return static_cast<double>(pages) * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

/// Bytes that are small numbers, whatever the type.
std::vector<std::byte> some_input(const sluice::model::Tensor& tensor) {
  std::vector<std::byte> bytes(tensor.bytes().count());
  if (tensor.dtype != sluice::DType::kF32) return bytes;
  for (std::size_t i = 0; i + 4 <= bytes.size(); i += 4) {
    const float value = static_cast<float>(i / 4 % 257) / 257.0f - 0.5f;
    std::memcpy(bytes.data() + i, &value, sizeof value);
  }
  return bytes;
}

/// Runs once; the milliseconds, or an error. `output` receives the first output.
sluice::Result<double> run_once(const sluice::Model& model, sluice::Session& session, std::vector<std::byte>& output) {
  const auto& graph = model.graph();
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const auto& tensor = graph.tensor(graph.inputs[i].tensor);
    if (auto set = session.set_input(i, tensor.dtype, some_input(tensor)); !set) return tl::unexpected(set.error());
  }
  const auto start = Clock::now();
  if (auto run = session.run(); !run) return tl::unexpected(run.error());
  const double elapsed = milliseconds(Clock::now() - start);
  output.resize(graph.bytes_of(graph.outputs[0]).count());
  if (auto got = session.get_output(0, output); !got) return tl::unexpected(got.error());
  return elapsed;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 1;
  auto model = sluice::Model::open(argv[1]);
  if (!model) return report(model.error());

  std::vector<sluice::Bytes> budgets;
  for (int i = 2; i < argc; ++i) budgets.push_back(sluice::parse_bytes(argv[i]).value_or(sluice::Bytes()));
  const sluice::SessionOptions options{.budget = budgets.front(),
                                       .largest_budget = *std::max_element(budgets.begin(), budgets.end()),
                                       .scope = sluice::BudgetScope::kProcess,
                                       .repeat = true};
  auto session = sluice::Session::create(*model, options);
  if (!session) return report(session.error());

  std::printf("%12s %12s %12s %12s %12s %12s\n", "budget MiB", "change ms", "RSS before", "RSS after", "first ms", "middle ms");
  std::vector<std::byte> expected;
  for (sluice::Bytes budget : budgets) {
    const double before = resident_mib();
    const auto start = Clock::now();
    if (auto changed = (*session)->set_budget(budget); !changed) return report(changed.error());
    const double change_ms = milliseconds(Clock::now() - start);
    const double after = resident_mib();
    std::vector<double> runs;
    for (int i = 0; i < 32; ++i) {
      std::vector<std::byte> output;
      auto run = run_once(**model, **session, output);
      if (!run) return report(run.error());
      runs.push_back(*run);
      if (expected.empty()) expected = output;
      if (output != expected) {
        std::fprintf(stderr, "run %d in %.1f MiB gave other bits\n", i, static_cast<double>(budget.count()) / (1 << 20));
        return 1;
      }
    }
    const double first = runs.front();
    std::sort(runs.begin(), runs.end());
    std::printf("%12.1f %12.2f %12.1f %12.1f %12.1f %12.1f\n", static_cast<double>(budget.count()) / (1 << 20), change_ms, before, after,
                first, runs[runs.size() / 2]);
  }
}
