#include "src/cli/bench/energy.h"

#include <filesystem>
#include <fstream>

namespace sluice::cli::bench_detail {
namespace {

namespace fs = std::filesystem;

std::optional<std::uint64_t> number_in(const std::string& path) {
  std::uint64_t value = 0;
  if (std::ifstream(path) >> value) return value;
  return std::nullopt;
}

std::vector<std::string> folders_of(const std::string& folder, const std::string& prefix) {
  std::vector<std::string> found;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored))
    if (entry.path().filename().string().starts_with(prefix)) found.push_back(entry.path().string());
  return found;
}

}  // namespace

EnergyMeter::EnergyMeter(std::string root) {
  // Packages are intel-rapl:0, intel-rapl:1, ...; what lies below them (cores, memory) is counted in them.
  for (const std::string& folder : folders_of(root + "/class/powercap", "intel-rapl:")) {
    if (folder.find(':') != folder.rfind(':')) continue;
    const auto begin = number_in(folder + "/energy_uj"), wraps_at = number_in(folder + "/max_energy_range_uj");
    if (begin && wraps_at && *wraps_at > 0) counters_.push_back({folder + "/energy_uj", *begin, *wraps_at});
  }
  if (!counters_.empty()) return;
  for (const std::string& folder : folders_of(root + "/class/power_supply", "BAT"))
    if (const auto begin = number_in(folder + "/energy_now")) counters_.push_back({folder + "/energy_now", *begin, 0});
}

std::optional<double> EnergyMeter::joules() const {
  constexpr double kPerMicrojoule = 1e-6, kPerMicrowattHour = 3600e-6;
  double sum = 0;
  for (const Counter& counter : counters_) {
    const auto now = number_in(counter.path);
    if (!now) return std::nullopt;
    if (counter.wraps_at == 0) {
      if (*now > counter.begin) return std::nullopt;  // it is being charged
      sum += static_cast<double>(counter.begin - *now) * kPerMicrowattHour;
    } else {
      const std::uint64_t used = *now >= counter.begin ? *now - counter.begin : *now + counter.wraps_at - counter.begin;
      sum += static_cast<double>(used) * kPerMicrojoule;
    }
  }
  if (counters_.empty()) return std::nullopt;
  return sum;
}

}  // namespace sluice::cli::bench_detail
