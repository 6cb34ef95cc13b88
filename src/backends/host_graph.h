// Shared by backends that compute on the host: memory for tensors, weights from the model file, and conversion of a port's values between
// ONNX order and the order in memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <span>

#include "sluice/core/hash.h"
#include "sluice/model/graph.h"
#include "sluice/model/weight_source.h"

namespace sluice::backends {

inline constexpr std::size_t kAlignment = 64;
/// Bytes that a backend may read past the end of a tensor.
inline constexpr std::size_t kTail = 64;

inline std::size_t size(std::int64_t value) noexcept { return static_cast<std::size_t>(value); }

struct FreeAligned {
  void operator()(float* data) const noexcept { ::operator delete[](data, std::align_val_t(kAlignment)); }
};
using Floats = std::unique_ptr<float[], FreeAligned>;

/// `bytes` zeros, and the tail.
inline Floats make_floats(std::size_t bytes) {
  const std::size_t room = (bytes + kTail + kAlignment - 1) / kAlignment * kAlignment;
  Floats floats(static_cast<float*>(::operator new[](room, std::align_val_t(kAlignment))));
  std::memset(floats.get(), 0, room);
  return floats;
}

inline constexpr std::size_t kFileBlock = 4096;

struct FreeBlocks {
  void operator()(std::byte* data) const noexcept { ::operator delete[](data, std::align_val_t(kFileBlock)); }
};
using Blocks = std::unique_ptr<std::byte[], FreeBlocks>;
inline Blocks make_blocks(std::size_t bytes) {
  return Blocks(static_cast<std::byte*>(::operator new[](bytes, std::align_val_t(kFileBlock))));
}

/// Gives `take(offset, bytes)` the stretches of a weight in order, read and verified one at a time; the offset counts from the weight's
/// begin. What `take` returns ends the reading where it is an error.
template <class Take>
Status read_stretches(const model::Graph& graph, model::WeightSource& source, WeightId id, const Take& take) {
  const model::Weight& weight = graph.weight(id);
  const auto stretches = graph.stretches_of(weight);
  std::uint64_t largest = 0;
  for (const model::Stretch& stretch : stretches) largest = std::max(largest, stretch.stored_size.count());
  const Blocks room = make_blocks(largest + 2 * kFileBlock);
  for (const model::Stretch& stretch : stretches) {
    const std::uint64_t offset = stretch.offset.count(), bytes = stretch.stored_size.count();
    const std::uint64_t begin = offset / kFileBlock * kFileBlock;
    const std::uint64_t end = std::min((offset + bytes + kFileBlock - 1) / kFileBlock * kFileBlock, source.size().count());
    SLUICE_RETURN_IF_ERROR(source.read({Bytes(begin), Bytes(end - begin)}, room.get()));
    const std::span<const std::byte> there(room.get() + (offset - begin), bytes);
    if (xxh3_64(there) != stretch.xxh3) return fail(ErrorCode::kChecksumMismatch, weight.name, "the bytes are not those that were written");
    SLUICE_RETURN_IF_ERROR(take(static_cast<std::size_t>(offset - weight.offset.count()), there));
  }
  return {};
}

/// A weight's panels, read and verified.
class Panels {
 public:
  static Result<Panels> read(const model::Graph& graph, model::WeightSource& source, WeightId id) {
    Panels panels;
    panels.room_ = make_blocks(graph.weight(id).bytes.count());
    SLUICE_RETURN_IF_ERROR(read_stretches(graph, source, id, [&](std::size_t offset, std::span<const std::byte> bytes) -> Status {
      std::memcpy(panels.room_.get() + offset, bytes.data(), bytes.size());
      return {};
    }));
    return panels;
  }
  /// The value that output n multiplies its i-th input by, i counting taps and then channels.
  float at(std::size_t n, std::size_t i, std::size_t values) const noexcept {
    float value = 0;
    std::memcpy(&value, data() + sizeof(float) * (n / kPanelLanes * panel(values) + i * kPanelLanes + n % kPanelLanes), sizeof value);
    return value;
  }
  const std::byte* data() const noexcept { return room_.get(); }

 private:
  /// Floats of a panel; each starts on 64 bytes, and 16 lanes of f32 are as many.
  static std::size_t panel(std::size_t values) noexcept { return values * kPanelLanes; }
  Blocks room_;
};

/// Converts a port's values between ONNX order and the order in memory.
class PortOrder {
 public:
  PortOrder(const model::Port& port, const Shape& physical) : rank_(port.onnx_shape.rank()) {
    std::array<std::size_t, Shape::kMaxRank> onnx{};
    std::size_t stride = 1;
    for (int axis = rank_ - 1; axis >= 0; --axis) {
      onnx[static_cast<std::size_t>(axis)] = stride;
      stride *= size(port.onnx_shape[axis]);
    }
    count_ = stride;
    for (int i = 0; i < rank_; ++i) {
      const auto at = static_cast<std::size_t>(i);
      same_ = same_ && port.perm[at] == i;
      extents_[at] = physical.rank() == rank_ ? size(physical[i]) : size(port.onnx_shape[i]);
      strides_[at] = onnx[static_cast<std::size_t>(port.perm[at])];
    }
  }
  void in(const std::byte* onnx, float* physical) const noexcept {
    if (same_) return void(std::memcpy(physical, onnx, count_ * sizeof(float)));
    walk([&](std::size_t p, std::size_t o) { std::memcpy(physical + p, onnx + o * sizeof(float), sizeof(float)); });
  }
  void out(const float* physical, std::byte* onnx) const noexcept {
    if (same_) return void(std::memcpy(onnx, physical, count_ * sizeof(float)));
    walk([&](std::size_t p, std::size_t o) { std::memcpy(onnx + o * sizeof(float), physical + p, sizeof(float)); });
  }
  std::size_t bytes() const noexcept { return count_ * sizeof(float); }

 private:
  template <class Copy>
  void walk(const Copy& copy) const noexcept {
    std::array<std::size_t, Shape::kMaxRank> index{};
    std::size_t at = 0;
    for (std::size_t p = 0; p < count_; ++p) {
      copy(p, at);
      for (auto axis = static_cast<std::size_t>(rank_); axis-- > 0;) {
        at += strides_[axis];
        if (++index[axis] < extents_[axis]) break;
        at -= strides_[axis] * extents_[axis];
        index[axis] = 0;
      }
    }
  }

  int rank_;
  std::size_t count_ = 1;
  bool same_ = true;
  std::array<std::size_t, Shape::kMaxRank> extents_{}, strides_{};
};

}  // namespace sluice::backends
