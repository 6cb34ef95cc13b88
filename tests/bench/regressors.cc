// sluice-bench-regressors [--json] PROFILE.json...: how well regressors predict a kernel's time at shapes that they have not seen, on the
// samples of measured profiles. Needs no clock: the same file gives the same table.
//
// sluice-bench-regressors [--json] --nets MEASURED.csv PROFILE.json: how well they predict whole nets that were measured in the minutes of
// the profile (scripts/prediction-accuracy --between --csv), one thread. Each is fitted to all samples of the profile.
//
// Protocol of the first: samples of one kernel are put in order by what multiplies (depth x taps), so that a fold is a family of alike
// layers, and cut into five folds, each predicted from the other four. Kernels with fewer than fifteen samples are left out.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "sluice/profiler/profile_file.h"
#include "tests/bench/kernel_regressors.h"
#include "tests/bench/must.h"
#include "tests/bench/priced_nets.h"

namespace sluice::profiler {
namespace {

constexpr std::size_t kFolds = 5, kFewest = 15;

/// |ln(predicted / measured)| of every sample, each predicted from the folds that it is not in.
std::vector<double> errors_of(Samples samples, const std::string& isa, const Regressor& regressor) {
  const auto products = [](const KernelSample& s) { return static_cast<double>(s.work.shape.depth) * s.work.shape.taps; };
  std::stable_sort(samples.begin(), samples.end(), [&](const KernelSample& a, const KernelSample& b) { return products(a) < products(b); });
  std::vector<double> errors;
  for (std::size_t fold = 0; fold < kFolds; ++fold) {
    Samples known, asked;
    for (std::size_t i = 0; i < samples.size(); ++i) (i * kFolds / samples.size() == fold ? asked : known).push_back(samples[i]);
    const std::vector<double> seconds = regressor(known, asked, isa);
    for (std::size_t i = 0; i < asked.size(); ++i) errors.push_back(std::abs(std::log(std::max(seconds[i], 1e-12) / asked[i].seconds)));
  }
  return errors;
}

/// Prints a table: what a column says, its name in JSON and its digits behind the point; then the rows.
class Table {
 public:
  struct Column {
    const char* title;
    const char* key;
    int digits;
    const char* unit = "";
  };

  Table(std::vector<Column> columns, bool json) : columns_(std::move(columns)), json_(json) {
    std::fputs(json_ ? "{\"regressors\": [" : "| regressor |", stdout);
    for (const Column& column : columns_)
      if (!json_) std::printf(" %s |", column.title);
    if (!json_) std::fputs("\n|---|", stdout);
    for (std::size_t i = 0; !json_ && i < columns_.size(); ++i) std::fputs("---|", stdout);
    if (!json_) std::fputs("\n", stdout);
  }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  ~Table() {
    if (json_) std::printf("\n]}\n");
  }

  void row(const char* name, const std::vector<double>& values) {
    json_ ? std::printf("%s\n  {\"name\": \"%s\"", any_ ? "," : "", name) : std::printf("| %s |", name);
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const Column& column = columns_[i];
      json_ ? std::printf(", \"%s\": %.6g", column.key, values[i]) : std::printf(" %.*f%s |", column.digits, values[i], column.unit);
    }
    std::fputs(json_ ? "}" : "\n", stdout);
    any_ = true;
  }

 private:
  const std::vector<Column> columns_;
  const bool json_;
  bool any_ = false;
};

/// The share of errors that are at most so large, in per cent.
double share_within(const std::vector<double>& errors, double most) {
  const auto count = std::count_if(errors.begin(), errors.end(), [&](double error) { return std::abs(error) <= most; });
  return 100.0 * static_cast<double>(count) / static_cast<double>(errors.size());
}

double root_mean_square(const std::vector<double>& errors) {
  double squares = 0;
  for (const double error : errors) squares += error * error;
  return std::sqrt(squares / static_cast<double>(errors.size()));
}

int compare_folds(const std::vector<std::string>& paths, bool json) {
  std::vector<DeviceProfile> profiles;
  for (const std::string& path : paths)
    for (DeviceProfile& profile : bench::must(load_profiles(path))) profiles.push_back(std::move(profile));
  const auto errors_by = [&](const Regressor& regressor) {
    std::vector<double> errors;
    for (DeviceProfile& profile : profiles)
      for_each_kernel(profile.samples, [&](std::span<KernelSample> samples) {
        if (samples.size() < kFewest) return;
        const std::vector<double> more = errors_of({samples.begin(), samples.end()}, profile.isa, regressor);
        errors.insert(errors.end(), more.begin(), more.end());
      });
    return errors;
  };
  const std::vector<Named> regressors = all_regressors();
  if (errors_by(by_rates).empty()) return std::fputs("sluice-bench-regressors: no profile with enough samples is named\n", stderr), 1;
  Table table({{"samples", "samples", 0},
               {"median error", "median_error_percent", 1, " %"},
               {"within 10 %", "within_10_percent", 1, " %"},
               {"within 25 %", "within_25_percent", 1, " %"},
               {"RMS of ln", "rms_of_ln", 3}},
              json);
  for (const Named& named : regressors) {
    const std::vector<double> errors = errors_by(named.regressor);
    table.row(named.name, {static_cast<double>(errors.size()), 100 * std::expm1(bench::median(errors)), share_within(errors, std::log(1.1)),
                           share_within(errors, std::log(1.25)), root_mean_square(errors)});
  }
  return 0;
}

struct SaidOfNet {
  std::string family;
  double said_ms = 0, measured_ms = 0;
};

/// Kendall's: of all pairs that differ, those in the right order less those in the wrong one.
double tau_of(std::span<const SaidOfNet> nets) {
  int agreeing = 0, pairs = 0;
  for (std::size_t i = 0; i < nets.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      if (nets[i].measured_ms == nets[j].measured_ms) continue;
      ++pairs;
      agreeing += (nets[i].said_ms - nets[j].said_ms) * (nets[i].measured_ms - nets[j].measured_ms) > 0 ? 1 : -1;
    }
  return pairs == 0 ? 1 : static_cast<double>(agreeing) / pairs;
}

void add_row(Table& table, const char* name, const std::vector<SaidOfNet>& nets) {
  std::vector<double> errors;
  std::map<std::string, std::vector<SaidOfNet>> families;
  for (const SaidOfNet& net : nets) {
    errors.push_back(net.said_ms / net.measured_ms - 1);
    families[net.family].push_back(net);
  }
  double inside = 0;
  for (const auto& [family, members] : families) inside += tau_of(members) / static_cast<double>(families.size());
  table.row(name, {static_cast<double>(nets.size()), share_within(errors, 0.1), share_within(errors, 0.05), 100 * root_mean_square(errors),
                   tau_of(nets), inside});
}

std::vector<SaidOfNet> said_of(const std::vector<bench::PricedNet>& nets, const Named& named, const DeviceProfile& profile,
                               bench::Parts bench::PricedNet::*parts_of) {
  Samples all;
  for (const bench::PricedNet& net : nets) all.insert(all.end(), (net.*parts_of).parts.begin(), (net.*parts_of).parts.end());
  const std::vector<double> seconds = named.whole(profile, all);
  std::vector<SaidOfNet> said;
  auto next = seconds.begin();
  for (const bench::PricedNet& net : nets) {
    const bench::Parts& parts = net.*parts_of;
    const auto end = next + static_cast<std::ptrdiff_t>(parts.parts.size());
    said.push_back({net.recorded.family, bench::milliseconds_of(parts, {next, end}, profile), net.recorded.usual_ms()});
    next = end;
  }
  return said;
}

int compare_nets(const std::string& measured, const std::string& path, bool json) {
  const DeviceProfile profile = profile_for_threads(bench::must(load_profiles(path)), 1);
  const std::vector<bench::PricedNet> nets = bench::priced_nets(measured, profile);
  if (nets.empty()) return std::fprintf(stderr, "sluice-bench-regressors: no net in %s\n", measured.c_str()), 1;
  Table table({{"nets", "nets", 0},
               {"within 10 %", "within_10_percent", 1, " %"},
               {"within 5 %", "within_5_percent", 1, " %"},
               {"RMSPE", "rmspe_percent", 1, " %"},
               {"tau over all", "tau", 3},
               {"mean tau in families", "mean_tau_in_families", 3}},
              json);
  for (const Named& named : all_regressors()) {
    add_row(table, named.name, said_of(nets, named, profile, &bench::PricedNet::steps));
    if (named.layers) add_row(table, "the same, layers whole", said_of(nets, named, profile, &bench::PricedNet::layers));
  }
  std::vector<SaidOfNet> again;
  for (const bench::PricedNet& net : nets) again.push_back({net.recorded.family, net.recorded.first_ms, net.recorded.second_ms});
  add_row(table, "the first measurement of the second", again);
  return 0;
}

int compare(int argc, char** argv) {
  bool json = false;
  std::string nets;
  std::vector<std::string> profiles;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--json") {
      json = true;
    } else if (word == "--nets" && i + 1 < argc) {
      nets = argv[++i];
    } else {
      profiles.push_back(word);
    }
  }
  if (nets.empty()) return compare_folds(profiles, json);
  if (profiles.size() == 1) return compare_nets(nets, profiles.front(), json);
  return std::fputs("usage: sluice-bench-regressors [--json] PROFILE... | [--json] --nets MEASURED.csv PROFILE\n", stderr), 1;
}

}  // namespace
}  // namespace sluice::profiler

int main(int argc, char** argv) { return sluice::profiler::compare(argc, argv); }
