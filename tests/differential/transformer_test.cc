// What transformers are made of: the kernels against the reference, and the reference against itself, for every cut.
#include <cfenv>

#include "differential/transformer_problems.h"
#include "sluice/kernels/registry.h"

using namespace sluice;
using namespace sluice::kernels;
using namespace sluice::kernels::test;
using model::OpKind;

namespace {

constexpr std::int64_t kSizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 65, 130};

/// Every kernel that takes the node, the reference too.
void check_kernels(const Problem& p) {
  const std::vector<std::byte> want = run_reference(p);
  for (const KernelDescriptor* kernel : kernels_for(p.graph, p.node())) {
    const std::uint32_t in_place = kernel->in_place_inputs(p.graph, p.node());
    for (Cut cut : usual_cuts()) {
      check_bits(p, *kernel, cut, want);
      if ((in_place & 1u) != 0) {
        cut.in_place = 0;
        check_bits(p, *kernel, cut, want);
      }
      if (!kernel->slices_channels) continue;
      cut.panels = 1;
      check_bits(p, *kernel, cut, want);
      cut.panels = 3;
      check_bits(p, *kernel, cut, want);
    }
  }
}

/// Brings a stretch of the first weight at a time, in rising order.
class Stretches final : public WeightReader {
 public:
  explicit Stretches(const Problem& p) : p_(p), weight_(p.graph.weights[0]) {}

  WeightPiece take(std::size_t, std::int64_t first_panel) noexcept override {
    rises_ = rises_ && first_panel > last_ && first_panel % kPanels == 0;
    last_ = first_panel;
    const PanelRange panels{first_panel, std::min(first_panel + kPanels, weight_.panels)};
    return {p_.weights[0].data() + static_cast<std::uint64_t>(first_panel) * weight_.panel_bytes.count(), panels};
  }
  void expect(std::size_t, std::int64_t) noexcept override {}
  bool rises() const noexcept { return rises_; }

  static std::vector<model::Stretch> of(const model::Weight& weight) {
    std::vector<model::Stretch> stretches;
    for (std::int64_t panel = 0; panel < weight.panels; panel += kPanels) {
      const model::FileRange bytes = model::panel_range(weight, {panel, std::min(panel + kPanels, weight.panels)});
      stretches.push_back({bytes.offset, bytes.size, bytes.size});
    }
    return stretches;
  }

 private:
  static constexpr std::int64_t kPanels = 2;
  const Problem& p_;
  const model::Weight& weight_;
  std::int64_t last_ = -1;
  bool rises_ = true;
};

}  // namespace

TEST_CASE("embeddings that read their table by themselves, on several threads") {
  constexpr std::int64_t kLookups = 4096, kRows = 20 * kLookups + 5;
  Problem p = embedding_problem(Shape{kLookups}, kRows, 3);
  std::vector<std::int64_t> falling;  // the least one comes last: every thread finds less than the one before
  for (std::int64_t i = 0; i < kLookups; ++i) falling.push_back(kRows - 1 - 20 * i);
  std::memcpy(p.inputs[0].data(), falling.data(), p.inputs[0].size());
  const std::vector<std::byte> want = run_reference(p);
  model::Weight& weight = p.graph.weights[0];
  p.graph.stretches = Stretches::of(weight);
  weight.stretch_count = static_cast<std::uint32_t>(p.graph.stretches.size());
  for (const KernelDescriptor* kernel : kernels_for(p.graph, p.node())) {
    CHECK(kernel->pieces_wanted(p.graph, p.node()) == std::min<std::int64_t>(kLookups, weight.stretch_count));
    for (const int threads : {1, 2, 4, 4, 4}) {
      Stretches reader(p);
      const bool same = run(p, *kernel, {.threads = threads, .reader = &reader}) == want;
      CHECK(same);
      CHECK(reader.rises());
    }
  }
}

TEST_CASE("layer norms") {
  for (std::int64_t c : kSizes) check_kernels(layer_norm_problem(Shape{5, c}));
  for (std::int64_t c = 1; c <= 17; ++c) {  // of few values, rows are the lanes
    check_kernels(layer_norm_problem(Shape{37, c}));
    check_kernels(layer_norm_problem(Shape{2, 3, 5, c}));
  }
  for (std::int64_t c : {18, 31, 32, 33, 47, 48, 49, 63, 64, 65, 80})
    check_kernels(layer_norm_problem(Shape{3, 7, c}));  // four, eight or sixteen rows at once, and one by one
  check_kernels(layer_norm_problem(Shape{2, 3, 2, 21}));
  check_kernels(layer_norm_problem(Shape{7}));
}

TEST_CASE("attentions") {
  for (std::int64_t size : kSizes) {
    check_kernels(attention_problem({.queries = 3, .keys = size, .heads = 2, .depth = 5, .width = 4}));
    check_kernels(attention_problem({.queries = size, .keys = size, .heads = 1, .depth = 8, .width = 8, .causal = true}));
    check_kernels(attention_problem({.queries = 2, .keys = 7, .heads = 2, .depth = size, .width = 3}));
    check_kernels(attention_problem({.queries = 2, .keys = 7, .heads = 1, .depth = 2, .width = size}));
  }
  // Several blocks of rows, whose keys are turned once; their bands are single blocks.
  for (const bool causal : {false, true})
    check_kernels(attention_problem({.queries = 101, .keys = 150, .heads = 2, .depth = 12, .width = 20, .causal = causal}));
  check_kernels(attention_problem({.batch = 3, .queries = 9, .keys = 20, .heads = 3, .depth = 16, .width = 16}));
  check_kernels(attention_problem({.batch = 2, .queries = 5, .keys = 19, .heads = 2, .depth = 16, .width = 16, .causal = true}));
}

TEST_CASE("attentions compute with nothing that other steps left in the workspace") {
  constexpr std::uint32_t kSignallingNan = 0x7fa00000;  // in the flags of the CPU once it is an operand
  for (const std::int64_t keys : {1, 15, 16, 17, 65, 130, 197}) {
    for (const bool causal : {false, true}) {
      const Problem p = attention_problem({.queries = keys, .keys = keys, .heads = 2, .depth = 5, .width = 7, .causal = causal});
      for (const KernelDescriptor* kernel : kernels_for(p.graph, p.node())) {
        INFO(keys << " keys, causal: " << causal);
        std::feclearexcept(FE_ALL_EXCEPT);
        run(p, *kernel, {.rows = 7, .left_in_workspace = kSignallingNan});
        CHECK(std::fetestexcept(FE_INVALID) == 0);
      }
    }
  }
}

TEST_CASE("embeddings") {
  for (std::int64_t features : kSizes) check_kernels(embedding_problem(Shape{4, 3}, 17, features));
  check_kernels(embedding_problem(Shape{}, 40, 9));
  check_kernels(embedding_problem(Shape{2, 3, 2}, 40, 9, DType::kI32));
  check_kernels(embedding_problem(Shape{1, 2, 3, 2}, 1, 9));
}
