// A step's rows, shared among threads.
#pragma once

#include <algorithm>

#include "sluice/kernels/call.h"
#include "src/kernels/weighted/blocks.h"

namespace sluice::kernels::integer {

/// Calls body(rows) for parts of the step's rows, on the pool if that pays.
template <class Body>
void for_row_parts(const KernelCall& call, const Body& body) noexcept {
  constexpr std::int64_t kLeastValues = 4096;  // of a part
  const RowRange rows = call.rows;
  const int threads = weighted::thread_count(call);
  if (threads == 1) return body(rows);
  const RowView& out = call.outputs[0].view;
  const std::int64_t values = rows.size() * out.pixels * out.channels;
  const std::int64_t parts = std::clamp<std::int64_t>(std::min(values / kLeastValues, rows.size()), 1, 4 * threads);
  weighted::for_each_unit(call, parts, [&](std::int64_t part, int) noexcept { body(weighted::even_part(rows, part, parts)); });
}

}  // namespace sluice::kernels::integer
