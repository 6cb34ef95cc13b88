// A tensor whose values are read a part at a time: an output in the arena, a file, a tensor in memory. What is written,
// compared or searched needs no copy of the whole, and so counts in no budget.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <span>

#include "src/cli/host_tensor.h"

namespace sluice::cli {

struct Pieces {
  DType dtype = DType::kF32;
  Shape shape;
  /// Elements from `first` on, as many as fit `out`. Throws Failure.
  std::function<void(std::size_t first, std::span<std::byte> out)> read;

  std::size_t count() const noexcept { return static_cast<std::size_t>(shape.element_count()); }
};

/// Gives the values of a tensor in memory.
Pieces pieces_of(HostTensor tensor);

/// On the caller's stack, so that it is small.
inline constexpr std::size_t kPieceBytes = 16 * 1024;
using PieceBuffer = std::array<std::byte, kPieceBytes>;

/// Calls `body(first, bytes)` with all of it, in order.
template <class Body>
void for_each_piece(const Pieces& pieces, const Body& body) {
  alignas(8) PieceBuffer buffer;
  const std::size_t most = kPieceBytes / size_of(pieces.dtype);
  for (std::size_t first = 0, all = pieces.count(); first < all; first += most) {
    const std::span<std::byte> bytes = std::span(buffer).first(std::min(most, all - first) * size_of(pieces.dtype));
    pieces.read(first, bytes);
    body(first, std::span<const std::byte>(bytes));
  }
}

/// Calls `body(index, value)` with each element, in order.
template <class Body>
void for_each_value(const Pieces& pieces, const Body& body) {
  for_each_piece(pieces, [&](std::size_t first, std::span<const std::byte> bytes) {
    const std::size_t count = bytes.size() / size_of(pieces.dtype);
    for (std::size_t i = 0; i < count; ++i) body(first + i, value_at(pieces.dtype, bytes.data(), i));
  });
}

}  // namespace sluice::cli
