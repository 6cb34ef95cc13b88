// What bounds a measured point, in one word and in one sentence: the question that a table of milliseconds leaves open.
#pragma once

#include <cstdint>
#include <string>

namespace sluice::cli::bench_detail {

/// What a point showed and what its plan expected, in milliseconds of one run.
struct BoundFacts {
  double median_ms = 0;
  double stall_ms = 0;              // measured: compute waiting for reads
  double planned_disk_ms = 0;       // of the waiting that the plan expects: what the disk alone costs,
  double planned_budget_ms = 0;     // what only a larger budget would save,
  double planned_addresses_ms = 0;  // what only better addresses would save
};

struct Bound {
  std::string word;  // compute, disk, budget, addresses
  std::string sentence;
};

/// Less than a twentieth of the time waiting: compute. Else the largest of the plan's three reasons; where the plan expects no waiting and
/// there is some, the disk.
Bound bound_of(const BoundFacts& facts);

}  // namespace sluice::cli::bench_detail
