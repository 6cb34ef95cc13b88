// A processor that lacks the instruction set of SLUICE_ISA runs the best one that it has: CTest then reports the run as skipped.
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "sluice/core/cpu.h"

TEST_CASE("the instruction set that SLUICE_ISA names is the one that runs") {
  const char* const forced = std::getenv("SLUICE_ISA");
  if (forced == nullptr || sluice::active_isa_name() == forced) return;
  const std::string_view active = sluice::active_isa_name();
  std::printf("SKIPPED: SLUICE_ISA=%s: this processor runs %.*s\n", forced, static_cast<int>(active.size()), active.data());
}
