// What plans may need that this build has code for.
#pragma once

#include "sluice/plan/needs.h"
#include "src/core/build_list.h"

namespace sluice::plan {

constexpr bool is_built(Need need) noexcept { return has_plan_need(static_cast<int>(need)); }
static_assert(is_built(Need::kSums) == kHasSums);
inline constexpr bool kHasPassing = is_built(Need::kPassing);

inline constexpr Needs kBuiltNeeds = [] {
  Needs built = 0;
  for (int i = 0; i < kNeedCount; ++i)
    if (has_plan_need(i)) built |= Needs{1} << i;
  return built;
}();

}  // namespace sluice::plan
