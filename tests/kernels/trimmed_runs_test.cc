// The runs of a trimmed build, compiled here with a list of their own: what kernels of the list call is there, and computes the same.
#include <catch2/catch.hpp>

#include "sluice/kernels/kernel_ids.h"
#include "src/core/build_list.h"
#include "src/kernels/elementwise/runs.h"

namespace sluice::kernels::elementwise {

static_assert(kTrimmed && has_kernel(kernel_id::kRecurrent) && !has_kernel(kernel_id::kBinary));

TEST_CASE("a build for recurrent layers alone has their sums, differences and products") {
  const float a = 6, b[] = {2, 3, 4, 5};
  const struct {
    BinaryFunction op;
    float first, last;
  } cases[] = {{BinaryFunction::kAdd, 8, 11}, {BinaryFunction::kSub, 4, 1}, {BinaryFunction::kMul, 12, 30}};
  const RunTable& runs = run_table(best_isa());
  REQUIRE(runs.binary != nullptr);
  for (const auto& c : cases) {
    float out[4] = {};
    runs.binary(c.op, {&a, 0}, {b, 1}, {}, out, 4);
    CHECK(out[0] == c.first);
    CHECK(out[3] == c.last);
  }
}

}  // namespace sluice::kernels::elementwise
