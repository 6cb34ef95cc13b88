// Ports that lie with the caller for a while, in place of the arena: what makes handing a tensor from one session to another free.
//
//     arena   [.....|input|.....|output|...]        place(input, theirs)      steps read and write `theirs`; the bytes in the arena rest
//                      \___ operands ____/
//
// A port moves with its whole buffer: all operands that view it. So it may move only where the buffer is the port's alone: nothing lies
// in it beyond the tensor, no other port does, and no step writes to that of an input. A plan that keeps its inputs has inputs like that.
#pragma once

#include <cstdint>
#include <vector>

#include "src/executor/bind.h"

namespace sluice::executor {

class MovablePorts {
 public:
  MovablePorts() = default;
  MovablePorts(const model::Graph& graph, const plan::Plan& plan, const BoundPlan& bound);

  /// `data`: as many bytes as the tensor has, 64-byte aligned, and kernels::kReadTail more that may be read; null: in the arena again.
  /// False where the port does not move. Between runs.
  bool place_input(BoundPlan& bound, std::size_t port, std::byte* data) const noexcept;
  bool place_output(BoundPlan& bound, std::size_t port, std::byte* data) const noexcept;

 private:
  struct Place {
    std::byte* home = nullptr;              // in the arena; null: it does not move
    std::vector<std::uint32_t> operands{};  // of BoundPlan::operands
  };
  static bool move(BoundPlan& bound, const std::vector<Place>& places, std::vector<RowView>& views, std::size_t port,
                   std::byte* data) noexcept;

  std::vector<Place> inputs_, outputs_;
};

}  // namespace sluice::executor
