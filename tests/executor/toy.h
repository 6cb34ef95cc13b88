// A small network, its weights in memory, and hand-made plans for it: what the executor's tests run.
//
// The network is a chain of dense layers with bias and relu. A plan cuts each weight into slices of some panels, puts some slices into a
// load, and gives the loads a few slots of the arena in turn. Between all buffers lie canaries that nobody may touch.
//
//     arena   [input][~~][bias, resident][~~][slot 0][~~][slot 1][~~] ... [activation 0][~~][activation 1] ...
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "sluice/core/arena.h"
#include "sluice/kernels/registry.h"
#include "sluice/model/graph.h"
#include "sluice/plan/plan.h"

namespace sluice::toy {

inline constexpr std::uint64_t kBlock = 4096;
inline constexpr std::byte kCanary{0xA5};

struct ToyOptions {
  std::int64_t rows = 3;
  std::vector<std::int64_t> widths = {24, 80, 40, 96, 10};  // of the input and of each layer's output
  std::int64_t panels_per_stretch = 1;
  std::uint32_t seed = 1;
  bool coarse = false;  // values whose lower halves are zero
};

struct ToyModel {
  model::Graph graph;
  std::vector<std::byte> file;
  std::vector<float> input;
  std::vector<float> expected;  // one chain of fused multiply-adds for each output, as NumericClass::kExact says
};

struct ToyPlanOptions {
  std::int64_t panels_per_step = 1;
  int steps_per_load = 1;
  int slots = 2;
  bool resident = false;
  std::uint32_t threads = 1;
  bool wrap = false;       // the first loads of a run go into the tail of the run before, as far as their slots allow
  int derived_layers = 0;  // the first so many layers work from derived panels, made by a prepare step for each slice
};

ToyModel make_toy_model(const ToyOptions& options);
plan::Plan make_toy_plan(const ToyModel& model, const ToyPlanOptions& options);

/// The number of a dense kernel that works from derived panels (the raw ones, scrambled) or from raw ones, and what finds it and all
/// others.
inline constexpr KernelId kDerivingKernel{9000};
const kernels::KernelDescriptor* find_toy_kernel(KernelId id) noexcept;
/// How often its `prepare` ran.
int prepare_count() noexcept;

/// Fills what lies outside all buffers with the canary, or counts the bytes there that are no longer it.
void plant_canaries(const plan::Plan& plan, Arena& arena);
std::size_t touched_canaries(const plan::Plan& plan, const Arena& arena);

}  // namespace sluice::toy
