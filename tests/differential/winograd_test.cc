// Winograd convolutions against their reference, bit by bit, in both weight modes; and against the exact class, within a tolerance.
#include "sluice/kernels/registry.h"
#include "tests/differential/kernel_harness.h"

namespace sluice::kernels::test {
namespace {

struct Pads {
  std::int64_t top = 1, left = 1, bottom = 1, right = 1;
};

Problem winograd_problem(std::int64_t height, std::int64_t width, std::int64_t in, std::int64_t out, const Pads& pads = {},
                         std::int64_t images = 1, const model::Epilogue& epilogue = {}, std::int64_t groups = 1) {
  const model::Window w{.in_h = height,
                        .in_w = width,
                        .kernel_h = 3,
                        .kernel_w = 3,
                        .pad_top = pads.top,
                        .pad_left = pads.left,
                        .pad_bottom = pads.bottom,
                        .pad_right = pads.right};
  Problem p = conv_problem({with_output(w), groups, in, out}, images, epilogue);
  p.node().numeric = model::NumericClass::kWinograd4;
  return p;
}

const KernelDescriptor& winograd() { return *find_kernel(kernel_id::kConvWinograd); }

void check_all_cuts(const Problem& p) {
  const auto want = run_reference(p);
  for (Cut cut : usual_cuts())
    for (const std::int64_t panels : {0, 1}) {
      cut.panels = panels;
      cut.derived = false;
      check_bits(p, winograd(), cut, want);
      cut.derived = true;
      check_bits(p, winograd(), cut, want);
      if (!p.node().epilogue.has_residual) continue;
      cut.in_place = 1;
      check_bits(p, winograd(), cut, want);
      cut.in_place = -1;
    }
}

TEST_CASE("a node of the class winograd4 has two kernels: its own and its reference") {
  const Problem p = winograd_problem(6, 6, 4, 16);
  const auto kernels = kernels_for(p.graph, p.node());
  REQUIRE(kernels.size() == 2);
  CHECK(kernels[0] == &winograd());
  CHECK(kernels[1] == &reference_kernel(model::OpKind::kConv, model::NumericClass::kWinograd4));
  CHECK(find_kernel(kernel_id::kReferenceWinograd) == kernels[1]);
}

TEST_CASE("Winograd: every small height and width") {
  for (std::int64_t height : {1, 2, 3, 4, 5, 8, 9})
    for (std::int64_t width : {1, 4, 6, 7}) check_all_cuts(winograd_problem(height, width, 5, 18));
}

TEST_CASE("Winograd: channel counts around vectors, panels, pairs of panels and runs of channels") {
  for (std::int64_t in : {1, 3, 16, 17})
    for (std::int64_t out : {1, 16, 17, 33, 64}) check_all_cuts(winograd_problem(5, 6, in, out));
  check_all_cuts(winograd_problem(3, 4, 63, 20));
  check_all_cuts(winograd_problem(3, 4, 65, 20));
  check_all_cuts(winograd_problem(3, 4, 130, 40));
}

TEST_CASE("Winograd: any padding, several images, a full epilogue") {
  check_all_cuts(winograd_problem(7, 6, 3, 20, {0, 0, 0, 0}));
  check_all_cuts(winograd_problem(7, 6, 3, 20, {0, 2, 1, 0}));
  check_all_cuts(winograd_problem(4, 3, 3, 20, {5, 1, 0, 7}));
  check_all_cuts(winograd_problem(6, 5, 4, 40, {}, 3, {.has_bias = true, .has_residual = true, .activation = {model::Function::kSilu}}));
  check_all_cuts(winograd_problem(9, 9, 4, 53, {}, 2, {.has_bias = true, .has_residual = true, .activation = {model::Function::kRelu}}));
}

TEST_CASE("Winograd: several blocks of squares, their weights kept or transformed again") {
  check_all_cuts(winograd_problem(21, 22, 6, 48));
  check_all_cuts(winograd_problem(4, 230, 48, 96));
}

TEST_CASE("Winograd: groups that fill whole panels, the last of them too or not") {
  for (const std::int64_t group_in : {1, 5, 16, 70})
    for (const std::int64_t group_out : {16, 24, 33, 48}) {
      check_all_cuts(winograd_problem(5, 9, 2 * group_in, 2 * group_out, {}, 1, {}, 2));
      check_all_cuts(winograd_problem(10, 7, 3 * group_in, 3 * group_out, {}, 2,
                                      {.has_bias = true, .has_residual = true, .activation = {model::Function::kRelu}}, 3));
    }
  check_all_cuts(winograd_problem(21, 22, 4 * 17, 4 * 32, {}, 1, {}, 4));
}

TEST_CASE("Winograd is not for groups that share panels") {
  const Problem p = winograd_problem(6, 6, 8, 30, {}, 1, {}, 2);
  CHECK_FALSE(winograd().supports(p.graph, p.node()));
}

TEST_CASE("Winograd's cost: a quarter of the products, and the transforms; derived weights are larger") {
  const Problem p = winograd_problem(28, 28, 64, 64);
  const StepExtent raw{{0, 28}, {0, 64}};
  const StepExtent derived{{0, 28}, {0, 64}, 1, true};
  const CostFeatures from_raw = winograd().cost(p.graph, p.node(), raw), from_derived = winograd().cost(p.graph, p.node(), derived);
  const CostFeatures direct = find_kernel(kernel_id::kConvDirect)->cost(p.graph, p.node(), raw);
  const CostFeatures prepare = winograd().prepare_cost(p.graph, p.node(), raw);
  CHECK(from_raw.flops * 2 < direct.flops);
  CHECK(from_raw.flops * 4 > direct.flops);
  CHECK(from_raw.flops > prepare.flops);
  CHECK(from_raw.weight_bytes == direct.weight_bytes);
  CHECK(from_derived.weight_bytes == prepare.output_bytes);
  CHECK(from_derived.weight_bytes == 4 * derived_panel_bytes(winograd(), p.graph, p.node()).count());
  const Problem large = winograd_problem(56, 56, 64, 64);  // read again for each of four blocks of squares
  CHECK(winograd().cost(large.graph, large.node(), {{0, 56}, {0, 64}, 1, true}).weight_bytes == 4 * prepare.output_bytes);
  CHECK(workspace_bytes(winograd(), p.graph, p.node(), raw) < Bytes(1 << 20));
}

TEST_CASE("Winograd stays within 2e-5 of the largest exact output") {
  for (const std::int64_t depth : {16, 64, 256}) {
    Problem p = winograd_problem(14, 14, depth, 16);
    const auto got = values_of<float>(run(p, winograd()));
    p.node().numeric = model::NumericClass::kExact;
    const auto want = values_of<float>(run_reference(p));
    float norm = 0.0f, worst = 0.0f;
    for (std::size_t i = 0; i < want.size(); ++i) {
      norm = std::max(norm, std::fabs(want[i]));
      worst = std::max(worst, std::fabs(got[i] - want[i]));
    }
    CHECK(worst <= 2e-5f * norm);
    CHECK(worst > 0.0f);  // or the exact kernel ran
  }
}

}  // namespace
}  // namespace sluice::kernels::test
