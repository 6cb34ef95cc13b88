#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "src/cli/bench/bound.h"
#include "src/cli/bench/energy.h"
#include "src/cli/bench/statistics.h"
#include "tests/cli/temporary.h"

using namespace sluice::cli::bench_detail;

namespace {

void write(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

}  // namespace

TEST_CASE("quantiles are values that were measured") {
  const std::vector<double> ten = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  CHECK(quantile(ten, 0.5) == 5);
  CHECK(quantile(ten, 0.9) == 9);
  CHECK(quantile(ten, 0.99) == 10);
  CHECK(quantile(ten, 0) == 1);
  CHECK(quantile(std::vector<double>{7}, 0.5) == 7);
}

TEST_CASE("what bounds a point follows from its waiting and the plan's reasons") {
  CHECK(bound_of({.median_ms = 100, .stall_ms = 4.9, .planned_budget_ms = 50}).word == "compute");
  CHECK(bound_of({.median_ms = 100, .stall_ms = 30, .planned_disk_ms = 20, .planned_budget_ms = 10}).word == "disk");
  CHECK(bound_of({.median_ms = 100, .stall_ms = 30, .planned_disk_ms = 5, .planned_budget_ms = 10}).word == "budget");
  CHECK(bound_of({.median_ms = 100, .stall_ms = 30, .planned_budget_ms = 10, .planned_addresses_ms = 11}).word == "addresses");
  CHECK(bound_of({.median_ms = 100, .stall_ms = 30}).word == "disk");
  CHECK(bound_of({}).word == "compute");
}

TEST_CASE("energy is the sum of the packages' counters, which may wrap") {
  const TemporaryFolder folder;
  const std::string root = folder.path("sys");
  const std::string rapl = root + "/class/powercap/intel-rapl:";
  for (const char* package : {"0", "1"}) write(rapl + package + "/max_energy_range_uj", "10000000");
  write(rapl + "0/energy_uj", "9000000");
  write(rapl + "1/energy_uj", "1000000");
  write(rapl + "0:0/max_energy_range_uj", "10000000");  // the cores of package 0
  write(rapl + "0:0/energy_uj", "0");
  const EnergyMeter meter(root);
  CHECK(meter.joules() == Approx(0.0));
  write(rapl + "0/energy_uj", "500000");
  write(rapl + "1/energy_uj", "3000000");
  write(rapl + "0:0/energy_uj", "7000000");
  CHECK(meter.joules() == Approx(1.5 + 2.0));
}

TEST_CASE("a battery counts what it loses, and nothing while it is charged") {
  const TemporaryFolder folder;
  const std::string root = folder.path("sys");
  write(root + "/class/power_supply/BAT0/energy_now", "50000000");
  const EnergyMeter meter(root);
  write(root + "/class/power_supply/BAT0/energy_now", "49999000");
  CHECK(meter.joules() == Approx(3.6));
  write(root + "/class/power_supply/BAT0/energy_now", "50001000");
  CHECK_FALSE(meter.joules());
  CHECK_FALSE(EnergyMeter(folder.path("none")).joules());
}
