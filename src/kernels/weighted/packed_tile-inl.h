// Tiles of few rows over panels of scales and integers, which become floats in registers (narrow.h).
#if defined(SLUICE_WEIGHTED_PACKED_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_WEIGHTED_PACKED_TILE_INL_H_
#undef SLUICE_WEIGHTED_PACKED_TILE_INL_H_
#else
#define SLUICE_WEIGHTED_PACKED_TILE_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "src/kernels/weighted/epilogue-inl.h"
#include "src/kernels/weighted/tile_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::weighted {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
HWY_INLINE const T* as(const std::byte* from) {
  return reinterpret_cast<const T*>(from);
}

/// Two values of 16 lanes are a line: how many values ahead lines are fetched, each once. Memory is some hundred products away.
constexpr std::int64_t kValuesAhead = 64;

/// Panels [p, p + kPanels) of scales and integers as they lie: each value is the float that widening gives, in a register.
template <int kBits, bool kHalfScales, int kRows, int kPanels>
class PackedTile {
 public:
  PackedTile(const TileRows& rows, const TileJob& job, int p) : rows_(rows), job_(job), panel_bytes_(job.panel_floats * 4) {
    panels_ = reinterpret_cast<const std::byte*>(job.panels) + p * panel_bytes_;
    clear(acc_);
  }

  void run(int p) {
    for (std::int64_t s = 0; s < job_.segments; ++s) {
      offset_ = job_.segment_offsets[s];
      const std::int64_t first = job_.first_value + s * job_.depth;
      for (std::int64_t k = 0; k < job_.depth;) k += of_group(k, first + k);
    }
    finish(acc_, rows_, job_, std::int64_t{p} * 16);
  }

 private:
  static constexpr int kVectors = kPanels * kPanelVectors;
  static constexpr std::int64_t kEach = 8 / kBits;
  static constexpr std::int64_t kHead = kHalfScales ? 32 : 80;  // bytes of scales and zeros before a group

  using Bytes = std::conditional_t<kBits == 8, std::int8_t, std::uint8_t>;
  static HWY_INLINE auto load(const std::byte* at) {
    return hn::PromoteTo(hn::Rebind<std::int32_t, D>(), hn::LoadU(hn::Rebind<Bytes, D>(), as<Bytes>(at)));
  }
  HWY_INLINE std::int64_t place(int v) const { return v / kPanelVectors * panel_bytes_; }
  static constexpr int lane(int v) { return v % kPanelVectors * kVectorLanes; }

  /// Product `k` of this segment is value `i` of a lane: it, and those behind it that have the same scales. How many they were.
  std::int64_t of_group(std::int64_t k, std::int64_t i) {
    const std::int64_t group = job_.k_group, within = group == 0 ? i : i % group;
    const std::int64_t count = group == 0 ? job_.depth - k : std::min(job_.depth - k, group - within);
    const std::byte* const head = panels_ + (group == 0 ? 0 : i / group * (kHead + group / kEach * 16));
    load_scales(head, group == 0);
    const std::byte* q = head + (group == 0 ? 128 : kHead) + within / kEach * 16;
    std::int64_t done = 0;
    const std::int64_t skipped = within % kEach;  // values of the first byte
    if (skipped != 0) {
      done = std::min(count, kEach - skipped);
      multiply(q, k, skipped, skipped + done);
      q += 16;
    }
    for (; done + kEach <= count; done += kEach, q += 16) {
      HWY_UNROLL(4)
      for (int panel = 0; panel < kPanels; ++panel) __builtin_prefetch(q + panel * panel_bytes_ + kValuesAhead * 32, 0, 3);
      multiply(q, k + done, 0, kEach);
    }
    if (done < count) multiply(q, k + done, 0, count - done);
    return count;
  }

  HWY_INLINE void load_scales(const std::byte* head, bool one_scale) {
    const D d;
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v) {
      const std::byte* const at = head + place(v);
      if constexpr (kHalfScales) {
        scale_[v] = hn::PromoteTo(d, hn::LoadU(hn::Rebind<hwy::float16_t, D>(), as<hwy::float16_t>(at) + lane(v)));
        zero_[v] = hn::Set(d, static_cast<float>(1 << (kBits - 1)));
      } else {
        scale_[v] = hn::LoadU(d, as<float>(at) + lane(v));
        zero_[v] = one_scale ? hn::LoadU(d, as<float>(at) + 16 + lane(v)) : hn::ConvertTo(d, load(at + 64 + lane(v)));
      }
    }
  }

  /// Values [first, end) of the bytes at `q` times the inputs from `k` on.
  HWY_INLINE void multiply(const std::byte* q, std::int64_t k, std::int64_t first, std::int64_t end) {
    const D d;
    const hn::Rebind<std::int32_t, D> whole;
    hn::Vec<hn::Rebind<std::int32_t, D>> rest[kVectors];
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v) rest[v] = load(q + place(v) + lane(v));
    HWY_UNROLL(4)
    for (std::int64_t n = 0; n < kEach; ++n) {
      const bool last = n + 1 == kEach;  // of the byte: nothing is left above it
      V weights[kVectors];
      HWY_UNROLL(8)
      for (int v = 0; v < kVectors; ++v) {
        const V value = hn::ConvertTo(d, last ? rest[v] : hn::And(rest[v], hn::Set(whole, (1 << kBits) - 1)));
        weights[v] = hn::Mul(hn::Sub(value, zero_[v]), scale_[v]);
        if (!last) rest[v] = hn::ShiftRight<kBits % 8>(rest[v]);
      }
      if (n < first || n >= end) continue;
      HWY_UNROLL(4)
      for (int m = 0; m < kRows; ++m) {
        const V input = hn::Set(d, rows_.a[m][offset_ + k + n - first]);
        HWY_UNROLL(8)
        for (int v = 0; v < kVectors; ++v) acc_[m][v] = functions::fused(input, weights[v], acc_[m][v]);
      }
    }
  }

  const TileRows& rows_;
  const TileJob& job_;
  const std::int64_t panel_bytes_;
  const std::byte* panels_;
  std::int64_t offset_ = 0;
  V acc_[kRows][kVectors];
  V scale_[kVectors], zero_[kVectors];
};

}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels::weighted
HWY_AFTER_NAMESPACE();

#endif  // SLUICE_WEIGHTED_PACKED_TILE_INL_H_
