// What profiler/shares.h says of shares, beside the kernels' own cuts.
#include "sluice/profiler/shares.h"

#include <array>
#include <catch2/catch.hpp>
#include <numeric>
#include <vector>

#include "sluice/core/cpu.h"
#include "sluice/kernels/registry.h"
#include "sluice/profiler/terms.h"
#include "src/kernels/weighted/direct.h"
#include "src/kernels/weighted/strip.h"
#include "src/kernels/weighted/winograd_cut.h"
#include "src/profiler/sample_graph.h"

namespace sluice::profiler {
namespace {

using operators::ConvolutionParameters;
using namespace kernels::kernel_id;

constexpr int kThreads = 2;
constexpr detail::TileExtent kTile{14, 2, kThreads};

StepWork work_on(const kernels::KernelDescriptor& kernel, const model::Graph& graph, const model::Node& node, int threads) {
  const RowExtents out = row_extents(graph.tensor(node.outputs[0]).shape);
  return work_of(kernel, KernelUse::kRun, graph, node, {{0, out.rows}, {0, model::step_channels(graph, node)}, threads});
}

/// Calls body(parameters, extent, work) for each f32 convolution of the corpus that `kernel` runs and that has one group.
template <class Body>
void for_each_convolution(KernelId kernel, int threads, const Body& body) {
  const model::Graph graph = sample_graph();
  for (const model::Node& node : graph.nodes) {
    if (node.op != model::OpKind::kConv || node.as<model::ConvAttributes>().groups != 1) continue;
    for (const kernels::KernelDescriptor* found : kernels::kernels_for(graph, node)) {
      if (found->id != kernel) continue;
      const operators::Parameters parameters = found->resolve(graph, node, active_isa()).parameters;
      const RowExtents out = row_extents(graph.tensor(node.outputs[0]).shape);
      const kernels::StepExtent extent{{0, out.rows}, {0, model::step_channels(graph, node)}, threads};
      INFO(node.name);
      body(parameters.as<ConvolutionParameters>(), extent, work_on(*found, graph, node, threads));
    }
  }
}

/// The longest share of units that threads take in runs, in even ones.
double longest_of(const std::vector<double>& units) {
  const std::size_t half = units.size() / kThreads;
  const double first = std::accumulate(units.begin(), units.begin() + static_cast<std::ptrdiff_t>(half), 0.0);
  const double all = std::accumulate(units.begin(), units.end(), 0.0);
  return kThreads * std::max(first, all - first) / all;
}

TEST_CASE("shares of Winograd convolutions are those of their cuts") {
  int cuts = 0, uneven = 0;
  for_each_convolution(
      kConvWinograd, kThreads, [&](const ConvolutionParameters& conv, const kernels::StepExtent& extent, const StepWork& work) {
        const kernels::weighted::WinogradCut cut(conv, extent);
        std::vector<double> units;
        for (std::int64_t unit = 0; unit < cut.units(); ++unit)
          units.push_back(static_cast<double>(cut.squares_of(cut.block_of(unit)).size() * cut.panels_of(cut.run_of(unit)).size()));
        const detail::Shares shares = detail::shares_of(kConvWinograd, work, kTile);
        // Several blocks of unlike sizes: the model takes the largest for all.
        CHECK(shares.longest == Approx(longest_of(units)).epsilon(0.1));
        CHECK(shares.shared == (units.size() > 1));
        ++cuts;
        uneven += shares.longest > 1.1 ? 1 : 0;
      });
  CHECK(cuts > 20);
  CHECK(uneven > 0);
}

TEST_CASE("direct convolutions are read in place, or cut into strips, as terms say") {
  int steps = 0, in_place = 0, same = 0;
  for_each_convolution(kConvDirect, 1, [&](const ConvolutionParameters& conv, const kernels::StepExtent& extent, const StepWork& work) {
    if (conv.window.dilation_h != 1 || conv.window.dilation_w != 1 || conv.window.kernel_h != conv.window.kernel_w) return;
    const detail::DirectCut cut = detail::direct_cut(true, work);
    const bool stays = kernels::weighted::direct_workspace(conv, extent) == Bytes();
    ++steps;
    in_place += stays ? 1 : 0;
    if (stays || cut.in_place) return void(same += stays == cut.in_place ? 1 : 0);
    const auto strip = kernels::weighted::cut_strips(conv, extent, kernels::weighted::Direction::kForward).strip;
    const auto near = [](double a, std::int64_t b) { return a <= 1.3 * static_cast<double>(b) && static_cast<double>(b) <= 1.3 * a; };
    const double down = std::ceil(work.shape.rows / std::ceil(work.shape.rows / cut.strip_rows));
    same += near(down * cut.strip_columns, strip.out_rows * strip.out_columns) ? 1 : 0;
  });
  CHECK(steps > 50);
  CHECK(in_place > 10);
  CHECK(same >= 0.9 * steps);
}

TEST_CASE("shares of direct convolutions in strips are those of their cuts") {
  int steps = 0, same = 0;
  for_each_convolution(kConvDirect, kThreads,
                       [&](const ConvolutionParameters& conv, const kernels::StepExtent& extent, const StepWork& work) {
                         if (conv.window.dilation_h != 1 || conv.window.dilation_w != 1 || conv.window.kernel_h != conv.window.kernel_w)
                           return;
                         if (kernels::weighted::direct_workspace(conv, extent) == Bytes()) return;
                         const auto cut = kernels::weighted::cut_strips(conv, extent, kernels::weighted::Direction::kForward);
                         const kernels::weighted::OutAreas areas(extent.rows, conv.window, cut.strip);
                         std::vector<double> units;
                         for (std::int64_t unit = 0; unit < cut.units.count(); ++unit) {
                           const auto place = cut.units[unit];
                           const auto area = areas[place.run];
                           units.push_back(static_cast<double>(area.rows.size() * area.columns.size() * cut.blocks[place.block].panels));
                         }
                         const detail::Shares shares = detail::shares_of(kConvDirect, work, kTile);
                         ++steps;
                         same += std::abs(shares.longest - longest_of(units)) < 0.1 && shares.by_pixels == (cut.units.parts > 1) ? 1 : 0;
                       });
  CHECK(steps > 30);
  CHECK(same >= 0.9 * steps);
}

StepWork dense(std::uint32_t rows, std::uint32_t channels, std::uint32_t depth) {
  const std::uint64_t panels = (channels + 15) / 16;
  return {{std::uint64_t{2} * rows * channels * depth, std::uint64_t{4} * rows * depth, std::uint64_t{4} * rows * channels,
           panels * 64 * depth},
          {.rows = rows, .channels = channels, .depth = depth},
          0};
}

TEST_CASE("a dense layer is shared by panels, or by rows where weights are few") {
  const auto of = [](const StepWork& work) { return detail::shares_of(kDense, work, kTile); };
  CHECK_FALSE(of(dense(1, 16, 4096)).shared);  // one panel: one thread
  CHECK(of(dense(1, 16, 4096)).longest == 2);
  CHECK(of(dense(1, 32, 4096)).longest == 1);
  CHECK(of(dense(1, 48, 4096)).longest == Approx(4.0 / 3));  // two panels and one
  CHECK(of(dense(1, 1024, 4096)).longest == 1);
  CHECK(of(dense(1, 1024, 4096)).shared);
  CHECK_FALSE(of(dense(1, 1024, 4096)).by_pixels);
  CHECK(of(dense(196, 512, 512)).by_pixels);
  const detail::Shares alone = detail::shares_of(kDense, dense(1, 16, 4096), {14, 2, 1});
  CHECK(alone.longest == 1);
  CHECK_FALSE(alone.shared);
}

TEST_CASE("terms on several threads are those of the longest share") {
  const auto terms = [](const StepWork& work, std::int64_t threads) { return detail::terms_of(kDense, work, {14, 2, threads}); };
  StepWork slice = dense(1, 16, 4096), rows = dense(196, 512, 512);
  slice.run_bytes = rows.run_bytes = 64 << 20;
  const Terms one = terms(slice, 1), two = terms(slice, kThreads), whole = terms(rows, 1), shared = terms(rows, kThreads);
  CHECK(two[0] == one[0]);
  for (const std::size_t term : {1u, 2u, 4u, 9u, 10u}) CHECK(two[term] == kThreads * one[term]);
  CHECK(one[detail::kFromOthers] == 0);
  CHECK(two[detail::kFromOthers] == 4 * 4096);
  CHECK(two[detail::kTogether] == 0);
  // Each thread reads all weights, and what it has written itself.
  CHECK(shared[1] == whole[1]);
  CHECK(shared[4] == kThreads * whole[4]);
  CHECK(shared[detail::kFromOthers] == 0);
  CHECK(shared[detail::kTogether] == 1);
}

TEST_CASE("shares of any shape are within their bounds") {
  const std::array<std::uint32_t, 5> extents{1, 2, 17, 4096, 0xffffffffu};
  const std::array<KernelId, 6> kernels{kConvPointwise, kDense, kConvDirect, kConvWinograd, kConvDepthwise, kSlice};
  for (const KernelId kernel : kernels)
    for (const std::uint32_t rows : extents)
      for (const std::uint32_t columns : extents)
        for (const std::uint32_t channels : extents)
          for (const std::uint32_t depth : extents) {
            const StepWork work({1000, 1000, 1000, channels},
                                {.rows = rows, .columns = columns, .channels = channels, .depth = depth, .taps = 9}, 0);
            const detail::Shares shares = detail::shares_of(kernel, work, detail::tile_of("avx512", 1 << 30));
            CHECK((shares.longest >= 1 && shares.longest <= 256));
          }
}

}  // namespace
}  // namespace sluice::profiler
