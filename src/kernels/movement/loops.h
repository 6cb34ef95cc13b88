// The border between the walk over axes (plain C++, one copy) and the inner loops of movement (one copy an instruction set).
//
// Elements have 1, 2, 4 or 8 bytes; loops are listed by the logarithm of that. Steps count bytes. Nothing outside the elements that a loop
// copies is written, and nothing before the first or behind the last of them is read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "sluice/core/cpu.h"

namespace sluice::kernels::movement {

/// A matrix that is copied turned over: element (p, q) lies at from + p * from_step + q elements, and at to + q * to_step + p elements.
///
///     from   q q q q q        to   p p p
///     p      . . . . .        q    . . .
struct Turn {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::int64_t from_step = 0;
  std::int64_t to_step = 0;
  std::int64_t p = 0;
  std::int64_t q = 0;
};

/// Elements in a line: element i lies at from + i * from_step, and at to + i * to_step.
struct Line {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::int64_t from_step = 0;
  std::int64_t to_step = 0;
  std::int64_t count = 0;
};

struct LoopTable {
  std::array<void (*)(const Turn&) noexcept, 4> turn;
  std::array<void (*)(const Line&) noexcept, 4> line;
};

/// The table for an instruction set, or for the nearest lower one this build has. `isa` must be one that the CPU has.
const LoopTable& loop_table(Isa isa) noexcept;

}  // namespace sluice::kernels::movement
