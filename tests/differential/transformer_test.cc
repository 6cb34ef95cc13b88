// What transformers are made of: the kernels against the reference, and the reference against itself, for every cut.
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

}  // namespace

TEST_CASE("layer norms") {
  for (std::int64_t c : kSizes) check_kernels(layer_norm_problem(Shape{5, c}));
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
  check_kernels(attention_problem({.batch = 3, .queries = 9, .keys = 20, .heads = 3, .depth = 16, .width = 16}));
  check_kernels(attention_problem({.batch = 2, .queries = 5, .keys = 19, .heads = 2, .depth = 16, .width = 16, .causal = true}));
}

TEST_CASE("embeddings") {
  for (std::int64_t features : kSizes) check_kernels(embedding_problem(Shape{4, 3}, 17, features));
  check_kernels(embedding_problem(Shape{}, 40, 9));
  check_kernels(embedding_problem(Shape{2, 3, 2}, 40, 9, DType::kI32));
  check_kernels(embedding_problem(Shape{1, 2, 3, 2}, 1, 9));
}
