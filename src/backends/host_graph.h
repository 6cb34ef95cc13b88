// What a backend that computes on the host shares with others: rooms for tensors, weights out of the model file, and a port's values
// between ONNX order and the order in which they lie.
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
/// That a backend may read past the end of a tensor.
inline constexpr std::size_t kTail = 64;

inline std::size_t size(std::int64_t value) noexcept { return static_cast<std::size_t>(value); }

struct FreeAligned {
  void operator()(float* data) const noexcept { ::operator delete[](data, std::align_val_t(kAlignment)); }
};
using Floats = std::unique_ptr<float[], FreeAligned>;

/// Zeros, `bytes` of them and the tail.
inline Floats make_floats(std::size_t bytes) {
  const std::size_t room = (bytes + kTail + kAlignment - 1) / kAlignment * kAlignment;
  Floats floats(static_cast<float*>(::operator new[](room, std::align_val_t(kAlignment))));
  std::memset(floats.get(), 0, room);
  return floats;
}

/// A weight's panels, read and verified.
class Panels {
 public:
  static Result<Panels> read(const model::Graph& graph, model::WeightSource& source, WeightId id) {
    const model::Weight& weight = graph.weight(id);
    const std::uint64_t block = 4096, begin = weight.offset.count() / block * block;
    const std::uint64_t end = (weight.offset.count() + weight.bytes.count() + block - 1) / block * block;
    Panels panels;
    panels.room_.reset(static_cast<std::byte*>(::operator new[](end - begin, std::align_val_t(4096))));
    panels.data_ = panels.room_.get() + (weight.offset.count() - begin);
    const std::uint64_t stop = std::min(end, source.size().count());
    SLUICE_RETURN_IF_ERROR(source.read({Bytes(begin), Bytes(stop - begin)}, panels.room_.get()));
    for (const model::Stretch& stretch : graph.stretches_of(weight)) {
      const std::byte* const at = panels.data_ + (stretch.offset.count() - weight.offset.count());
      if (xxh3_64({at, size(static_cast<std::int64_t>(stretch.stored_size.count()))}) != stretch.xxh3)
        return fail(ErrorCode::kChecksumMismatch, weight.name, "the bytes are not those that were written");
    }
    return panels;
  }
  /// The value that output n multiplies its i-th input by, i counting taps and then channels.
  float at(std::size_t n, std::size_t i, std::size_t values) const noexcept {
    float value = 0;
    std::memcpy(&value, data_ + sizeof(float) * (n / kPanelLanes * panel(values) + i * kPanelLanes + n % kPanelLanes), sizeof value);
    return value;
  }
  const std::byte* data() const noexcept { return data_; }

 private:
  /// Floats of a panel; each starts on 64 bytes, and 16 lanes of f32 are as many.
  static std::size_t panel(std::size_t values) noexcept { return values * kPanelLanes; }
  struct FreeBlock {
    void operator()(std::byte* data) const noexcept { ::operator delete[](data, std::align_val_t(4096)); }
  };
  std::unique_ptr<std::byte[], FreeBlock> room_;
  const std::byte* data_ = nullptr;
};

/// A port's values between ONNX order and the order in which they lie.
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
