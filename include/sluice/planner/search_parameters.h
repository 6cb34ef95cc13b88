// What the planner's search may do: each rule a switch, each bound a number, all in one place.
//
// The defaults are what sessions plan with. A rule that is off is not missed by any other: plans are then slower or need more memory, but
// always right (tests/planner/search_parameters_test.cc turns off each, and all). `scripts/bench rules` measures what each is worth;
// docs/planner.md has the table.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::planner {

struct SearchParameters {
  // Switches of the problem that is planned.
  bool greedy_order = true;  // nodes in the order that keeps activations low, where that beats the graph's own; costs 1 ms at 1,000 nodes
  bool time_bands = true;    // bands of rows through neighbours, so that what passes between them stays in a cache
  bool memory_bands = true;  // bands of rows round the peaks of memory, as far as the budget asks for them
  bool kept_transforms = true;  // Winograd's weights kept transformed in place of raw ones; repeated runs only
  bool other_orders = true;     // orders in which weights are kept besides the model's own; repeated runs only

  // Switches of the drafts that are made of it.
  bool small_first_loads = true;  // the first loads of a first run are small, so that computing starts early
  bool other_sizes = true;        // slices larger and smaller than the middle size
  bool more_drafts = true;        // where nothing good was placed: smaller slices, loads apart, shares between, little kept

  // How a draft gets gates and addresses.
  bool late_trim = true;       // loads no earlier than they must be, for smaller rectangles; off: as early as bytes allow
  bool address_rules = true;   // from the highest address down, and alternating, if the lowest leaves delays
  bool load_sides = true;      // single loads change sides
  bool together = true;        // activations move, too: one placement problem
  bool left_extension = true;  // gates as early as the addresses that were found allow: room for reads that come late
  bool baselines = true;       // the paper's rule and loads on demand are tried last, so that the default is never worse

  // A later candidate must take less than so many times the seconds of the best. Profiles are not known better.
  double worthwhile = 0.999;
  double close_enough = 1.004;    // of its bound: a candidate that is not worked on further
  double worth_searching = 1.01;  // of its bound: one that is farther away is tried in every way
  double good = 1.02;             // of the least bound: drafts beyond the first ones are made only while nothing is as good
  double worth_reading = 0.99;    // of one that keeps every weight, or reads each once where bands read again: reading takes power
  double worth_both = 0.99;       // of the first partition's candidate: what the bound of the other must promise

  std::uint64_t quick_ms = 4;  // of counted work without the exact search: a few tries of a large model, many of a small one
  /// If the exact search finds a placement, it mostly does so within 2 ms; many short tries, of several drafts, find more than two long
  /// ones.
  std::uint64_t exact_shares = 24;
  int exact_tries = 8;
  double exact_up_to = 1.3;  // capacities that the quick rules reach: where they stay higher, one share seldom finds a placement

  std::size_t most_mixes = 6;  // drafts of other kept shares and prices of transforms, in one slice size
  std::size_t size_walks = 2;  // mixes that are followed through the sizes
  int most_thorough = 2;       // drafts that are tried in every way when there is a good plan already

  /// Limits of load_sides. Trying 6 loads before each delay missed those that had split the free space; 400 failures in a row found no more
  /// than 150 at the budgets of the benchmark, and left less work to others.
  std::size_t side_delays = 6;
  std::size_t side_loads = 16;
  int side_failures = 150;
  std::uint64_t side_share_of_work = 8;  // one part in so many of what is left

  /// Limits of time_bands: the longest run of nodes in a chain, and the share of its own time that a chain must promise to save.
  std::size_t time_chain_nodes = 8;
  double time_chain_gain = 0.97;

  /// Limit of memory_bands: a partition is worth having if its peak is less than this share of the peak before.
  double band_gain = 0.99;
  std::size_t band_near = 6;           // places on either side of a peak at which regions may end, whatever crosses there
  std::size_t band_longest = 256;      // nodes to a side
  std::size_t band_valleys = 12;       // places farther away at which less crosses than at any before
  std::size_t band_regions = 24;       // that are tried round a peak
  int band_rounds = 64;                // peaks that are lowered
  std::size_t band_join_nodes = 1024;  // in larger graphs regions do not begin at joins that live at the peak
};

}  // namespace sluice::planner
