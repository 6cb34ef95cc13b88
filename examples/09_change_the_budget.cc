// Runs a model while its budget goes down and up again, as on a device whose other programs come and go:
//
//     09_change_the_budget MODEL.sluice 200MiB 40MiB 16MiB 200MiB
//
// For each budget: what the change cost, what the process holds after it, and the first and the middle of eight runs.
#include <sluice/sluice.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

double milliseconds(Clock::duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

int report(const sluice::Error& error) {
  std::fprintf(stderr, "%s\n", error.to_string().c_str());
  return 1;
}

/// Runs once on an input of zeros; the milliseconds, or an error.
sluice::Result<double> run_once(const sluice::Model& model, sluice::Session& session) {
  const auto& ports = model.graph().inputs;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const auto& tensor = model.graph().tensor(ports[i].tensor);
    const std::vector<std::byte> zeros(tensor.bytes().count());
    if (auto set = session.set_input(i, tensor.dtype, zeros); !set) return tl::unexpected(set.error());
  }
  const auto start = Clock::now();
  if (auto run = session.run(); !run) return tl::unexpected(run.error());
  return milliseconds(Clock::now() - start);
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

  std::printf("%12s %12s %12s %12s %12s\n", "budget MiB", "change ms", "arena MiB", "first ms", "middle ms");
  for (sluice::Bytes budget : budgets) {
    const auto start = Clock::now();
    if (auto changed = (*session)->set_budget(budget); !changed) return report(changed.error());
    const double change_ms = milliseconds(Clock::now() - start);
    std::vector<double> runs;
    for (int i = 0; i < 8; ++i) {
      auto run = run_once(**model, **session);
      if (!run) return report(run.error());
      runs.push_back(*run);
    }
    const double first = runs.front();
    std::sort(runs.begin(), runs.end());
    const double mib = 1 << 20;
    std::printf("%12.1f %12.2f %12.1f %12.1f %12.1f\n", static_cast<double>(budget.count()) / mib, change_ms,
                static_cast<double>((*session)->memory().arena.count()) / mib, first, runs[runs.size() / 2]);
  }
}
