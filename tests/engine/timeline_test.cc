#include "sluice/engine/timeline.h"

#include <algorithm>

#include "tests/engine/fixture.h"

namespace sluice {

TEST_CASE("steps and loads are expected in order, behind their gates, and end when the plan says") {
  const Fixture fixture;
  const auto minimum = minimum_budget(*fixture.model, {});
  REQUIRE(minimum);
  for (const bool repeat : {false, true}) {
    const SessionOptions options{.budget = *minimum, .repeat = repeat};
    const auto planned = plan_session(*fixture.model, options);
    REQUIRE(planned);
    const plan::Plan& plan = planned->plan;
    const auto times = expected_times(*fixture.model, plan, options);
    REQUIRE(times);
    REQUIRE(times->steps.size() == plan.steps.size());
    REQUIRE(times->loads.size() == plan.loads.size());
    CAPTURE(repeat);
    const auto over = [&](std::int64_t steps) { return steps <= 0 ? 0.0 : times->steps[static_cast<std::size_t>(steps) - 1].end_ms; };
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      CHECK(times->steps[i].begin_ms >= over(static_cast<std::int64_t>(i)));
      CHECK(times->steps[i].end_ms >= times->steps[i].begin_ms);
      for (std::size_t k = 0; k < plan.steps[i].loads_needed; ++k) CHECK(times->loads[k].end_ms <= times->steps[i].begin_ms);
    }
    std::size_t read = 0;
    for (std::size_t k = 0; k < plan.loads.size(); ++k) {
      if (repeat && !plan.loads[k].streamed()) continue;
      ++read;
      CHECK(times->loads[k].end_ms > times->loads[k].begin_ms);
      if (plan.loads[k].gate >= 0) CHECK(times->loads[k].begin_ms >= over(plan.loads[k].gate));
    }
    CHECK(read > 0);
    const double predicted = repeat ? plan.prediction.period_ms : plan.prediction.cold_ms;
    CHECK(times->steps.back().end_ms == Approx(predicted).epsilon(0.01));
  }
}

TEST_CASE("a plan of another build's kernels has no expected times") {
  const Fixture fixture;
  auto planned = plan_session(*fixture.model, {});
  REQUIRE(planned);
  planned->plan.steps[0].kernel = KernelId(60000);
  const auto times = expected_times(*fixture.model, planned->plan, {});
  REQUIRE_FALSE(times);
  CHECK(times.error().code == ErrorCode::kInvalidPlan);
}

}  // namespace sluice
