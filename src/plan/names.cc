#include "sluice/plan/plan.h"

namespace sluice::plan {

std::string_view name_of(BufferKind kind) noexcept {
  constexpr std::string_view kNames[] = {"input", "output", "activation", "weight", "derived", "workspace", "state", "sums"};
  return kNames[static_cast<int>(kind)];
}

}  // namespace sluice::plan
