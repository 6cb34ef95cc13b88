// A measurer: a C99 program that times the portable kernels on a device and prints a device profile (profiler/device_profile.h).
//
//     layers --make_measurer--> stages, samples --measure_program--> measure.c --device--> a profile that `plan` and `predict` take
//
// Each kernel runs over a few layers, as the emitted code of a network would run it: from the same tables, by the same walk. A sample is
// the work of such a layer as the planner counts it, so that what was timed there prices the steps of a plan here. The layers are a model's
// own, each once, with fewer outputs where its weights would be too many, and small made-up ones of kernels that the model's do not tell
// all of.
//
// Invariants: layers lie one at a time in one arena of at most the given size; the same options give the same text.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sluice/emit/network.h"
#include "sluice/profiler/device_profile.h"

namespace sluice::emit {

struct MeasureOptions {
  std::uint64_t ram = 16 << 10;             // of the arena
  std::optional<std::set<Kernel>> kernels;  // nothing: all that there are
  const model::Graph* model = nullptr;      // whose layers are timed; null: made-up ones alone
  const Network* network = nullptr;         // of the model, which the least RAM cuts: its layers are timed in such pieces; null: whole
};

struct Measurer {
  std::vector<profiler::KernelSample> samples;  // sorted by kernel; seconds are the device's to find
  std::vector<std::size_t> stages;              // that each of them is timed by
  std::size_t stage_count = 0;
  std::size_t most_inputs = 0;  // of a stage
  std::uint64_t arena_bytes = 0;
  std::string text;  // kernels, constants and tables
};

/// Errors: kBudgetTooSmall where no layer fits; kUnsupported where none of the kernels is measured.
Result<Measurer> make_measurer(const MeasureOptions& options);

/// measure.c: `pieces` are the texts that are printed before each sample's time, and one more after all.
std::string measure_program(const Measurer& measurer, const std::vector<std::string>& pieces);

}  // namespace sluice::emit
