// What `sluice trim` lists of models of recurrent and dense layers: no binary node, no pool, no plain operator.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice::trim {

inline constexpr int kOperators[] = {-1};
inline constexpr int kKernels[] = {17, -1};  // kernel_id::kRecurrent
inline constexpr std::string_view kFamilies[] = {""};
inline constexpr std::uint64_t kFeatures = 0;
inline constexpr int kWindows[] = {0};
inline constexpr int kPools[] = {0};
inline constexpr int kElementBytes[] = {0};
inline constexpr int kFunctions[] = {0};
inline constexpr bool kOpenExtents = false;
inline constexpr std::uint64_t kPlans = 0;
inline constexpr bool kLooksForKernels = true;

}  // namespace sluice::trim
