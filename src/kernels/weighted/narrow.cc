// Compiled once for each target of targets.h by including itself; start reading at `widen_bf16`.
#include "src/kernels/weighted/narrow.h"

#include <algorithm>
#include <array>

#include "src/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/weighted/narrow.cc"
#include "hwy/foreach_target.h"
#if SLUICE_BUILDS_TARGET
#include "hwy/highway.h"
#include "src/kernels/weighted/epilogue-inl.h"
#include "src/kernels/weighted/packed_tile-inl.h"
#include "src/kernels/weighted/tile_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::weighted {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// The upper halves of floats.
void widen_bf16(const std::byte* panel, std::int64_t, std::int64_t first, std::int64_t count, float* HWY_RESTRICT to) noexcept {
  const hn::Rebind<std::uint16_t, D> halves;
  const hn::Rebind<std::uint32_t, D> words;
  const auto* from = as<std::uint16_t>(panel) + first * 16;
  for (std::int64_t i = 0; i < count * 16; i += kVectorLanes)
    hn::StoreU(hn::BitCast(D(), hn::ShiftLeft<16>(hn::PromoteTo(words, hn::LoadU(halves, from + i)))), D(), to + i);
}

void widen_f16(const std::byte* panel, std::int64_t, std::int64_t first, std::int64_t count, float* HWY_RESTRICT to) noexcept {
  const hn::Rebind<hwy::float16_t, D> halves;
  const auto* from = as<hwy::float16_t>(panel) + first * 16;
  for (std::int64_t i = 0; i < count * 16; i += kVectorLanes) hn::StoreU(hn::PromoteTo(D(), hn::LoadU(halves, from + i)), D(), to + i);
}

void widen_eight_bits(const std::byte* panel, std::int64_t group, std::int64_t first, std::int64_t count, float* HWY_RESTRICT to) noexcept {
  const D d;
  const hn::Rebind<std::int8_t, D> bytes;
  const hn::Rebind<std::int32_t, D> whole;
  const auto widen = [&](const std::int8_t* at) HWY_ATTR { return hn::ConvertTo(d, hn::PromoteTo(whole, hn::LoadU(bytes, at))); };
  const auto run = [&](const std::byte* scales, const auto& zero_of, const std::int8_t* q, std::int64_t begin, std::int64_t end) HWY_ATTR {
    for (int v = 0; v < 16; v += kVectorLanes) {
      const V scale = hn::LoadU(d, as<float>(scales) + v), zero = zero_of(v);
      for (std::int64_t k = begin; k < end; ++k)
        hn::StoreU(hn::Mul(hn::Sub(widen(q + (k - begin) * 16 + v), zero), scale), d, to + k * 16 + v);
    }
  };
  if (group == 0) {
    const auto zero_of = [&](int v) HWY_ATTR { return hn::LoadU(d, as<float>(panel) + 16 + v); };
    return run(panel, zero_of, as<std::int8_t>(panel) + 128 + first * 16, 0, count);
  }
  for (std::int64_t k = 0; k < count;) {
    const std::int64_t within = (first + k) % group, end = std::min(count, k + group - within);
    const std::byte* at = panel + (first + k) / group * (80 + group * 16);
    const auto zero_of = [&](int v) HWY_ATTR { return widen(as<std::int8_t>(at) + 64 + v); };
    run(at, zero_of, as<std::int8_t>(at) + 80 + within * 16, k, end);
    k = end;
  }
}

/// 4 or 2 bits, `kEach` of them a byte. kHalfScales: f16 scales, and the middle is zero.
template <int kBits, bool kHalfScales = false>
void widen_few_bits(const std::byte* panel, std::int64_t group, std::int64_t first, std::int64_t count, float* HWY_RESTRICT to) noexcept {
  constexpr std::int64_t kEach = 8 / kBits;
  const D d;
  const hn::Rebind<std::uint8_t, D> bytes;
  const hn::Rebind<std::int32_t, D> whole;
  const hn::Rebind<hwy::float16_t, D> halves;
  constexpr std::int64_t kHead = kHalfScales ? 32 : 80;
  const std::int64_t group_bytes = kHead + group / kEach * 16;
  for (std::int64_t k = 0; k < count;) {
    const std::int64_t within = (first + k) % group, end = std::min(count, k + group - within);
    const std::byte* at = panel + (first + k) / group * group_bytes;
    for (int v = 0; v < 16; v += kVectorLanes) {
      V scale, zero;
      if constexpr (kHalfScales) {
        scale = hn::PromoteTo(d, hn::LoadU(halves, as<hwy::float16_t>(at) + v));
        zero = hn::Set(d, static_cast<float>(1 << (kBits - 1)));
      } else {
        scale = hn::LoadU(d, as<float>(at) + v);
        zero = hn::ConvertTo(d, hn::PromoteTo(whole, hn::LoadU(bytes, as<std::uint8_t>(at) + 64 + v)));
      }
      const auto* q = as<std::uint8_t>(at) + kHead + within / kEach * 16 + v;
      // The values of a byte are those from i on; of the first and the last byte some may lie outside of [k, end).
      const auto widen = [&](std::int64_t i, const auto& wanted) HWY_ATTR {
        auto rest = hn::PromoteTo(whole, hn::LoadU(bytes, q));
        HWY_UNROLL(4)
        for (std::int64_t n = 0; n < kEach; ++n) {
          const bool last = n + 1 == kEach;  // of the byte: nothing is left above it
          const V value = hn::ConvertTo(d, last ? rest : hn::And(rest, hn::Set(whole, (1 << kBits) - 1)));
          if (wanted(i + n)) hn::StoreU(hn::Mul(hn::Sub(value, zero), scale), d, to + (i + n) * 16 + v);
          if (!last) rest = hn::ShiftRight<kBits>(rest);
        }
        q += 16;
      };
      const auto inside = [&](std::int64_t j) { return j >= k && j < end; };
      std::int64_t i = k - within % kEach;
      if (i < k) widen(i, inside), i += kEach;
      for (; i + kEach <= end; i += kEach) widen(i, [](std::int64_t) { return true; });
      if (i < end) widen(i, inside);
    }
    k = end;
  }
}

struct LoadBf16 {
  HWY_INLINE V operator()(const std::uint16_t* at) const {
    const hn::Rebind<std::uint16_t, D> halves;
    const hn::Rebind<std::uint32_t, D> words;
    return hn::BitCast(D(), hn::ShiftLeft<16>(hn::PromoteTo(words, hn::LoadU(halves, at))));
  }
};
struct LoadF16 {
  HWY_INLINE V operator()(const std::uint16_t* at) const {
    const hn::Rebind<hwy::float16_t, D> halves;
    return hn::PromoteTo(D(), hn::LoadU(halves, reinterpret_cast<const hwy::float16_t*>(at)));
  }
};

/// Panels [p, p + kPanels) of 16 bits as they lie.
template <class Load, int kRows, int kPanels>
HWY_NOINLINE void stored_tile(const TileRows& rows, const TileJob& job, int p) {
  constexpr int kVectors = kPanels * kPanelVectors;
  const Load load;
  const std::int64_t panel_halves = job.panel_floats * 2;
  const auto* from = reinterpret_cast<const std::uint16_t*>(job.panels) + p * panel_halves + job.first_value * 16;
  V acc[kRows][kVectors];
  clear(acc);
  for (std::int64_t s = 0; s < job.segments; ++s) {
    const std::int64_t offset = job.segment_offsets[s];
    const auto multiply = [&](std::int64_t k) HWY_ATTR {
      V weights[kVectors];
      HWY_UNROLL(8)
      for (int v = 0; v < kVectors; ++v) weights[v] = load(from + v / kPanelVectors * panel_halves + v % kPanelVectors * kVectorLanes);
      HWY_UNROLL(4)
      for (int m = 0; m < kRows; ++m) {
        const V input = hn::Set(D(), rows.a[m][offset + k]);
        HWY_UNROLL(8)
        for (int v = 0; v < kVectors; ++v) acc[m][v] = functions::fused(input, weights[v], acc[m][v]);
      }
      from += 16;
    };
    std::int64_t k = 0;
    for (; k + 2 <= job.depth; k += 2) {
      HWY_UNROLL(4)
      for (int panel = 0; panel < kPanels; ++panel) __builtin_prefetch(from + panel * panel_halves + kValuesAhead * 16, 0, 3);
      multiply(k);
      multiply(k + 1);
    }
    if (k < job.depth) multiply(k);
  }
  finish(acc, rows, job, std::int64_t{p} * 16);
}

/// As many chains as hide the latency of an FMA, where there are registers for them.
constexpr int kStoredPanels = 4;
constexpr int kStoredRows = kVectorLanes < 16 ? 1 : 4;

template <class Load>
struct StoredTiles {
  static constexpr int kPanels = kStoredPanels;
  template <int kRows, int kCount>
  static void run(const TileRows& rows, const TileJob& job, int p) {
    stored_tile<Load, kRows, kCount>(rows, job, p);
  }
};
template <int kBits, bool kHalfScales = false>
struct PackedTiles {
  static constexpr int kPanels = kVectorLanes < 16 ? 1 : 4;  // scales and zeros lie in registers, too
  template <int kRows, int kCount>
  static HWY_NOINLINE void run(const TileRows& rows, const TileJob& job, int p) {
    PackedTile<kBits, kHalfScales, kRows, kCount>(rows, job, p).run(p);
  }
};

template <class Tiles, int kRows>
void run_stored_rows(const TileRows& rows, const TileJob& job) {
  int p = 0;
  for (; p + Tiles::kPanels <= job.panel_count; p += Tiles::kPanels) Tiles::template run<kRows, Tiles::kPanels>(rows, job, p);
  for (; p < job.panel_count; ++p) Tiles::template run<kRows, 1>(rows, job, p);
}

template <class Tiles>
void run_stored(const TileRows& rows, const TileJob& job) noexcept {
  if constexpr (kStoredRows > 1) {
    if (rows.count == 2) return run_stored_rows<Tiles, 2>(rows, job);
    if (rows.count == 3) return run_stored_rows<Tiles, 3>(rows, job);
    if (rows.count == 4) return run_stored_rows<Tiles, 4>(rows, job);
  }
  run_stored_rows<Tiles, 1>(rows, job);
}

/// By NarrowForm.
constexpr std::array<decltype(TileTable::stored), kNarrowForms> kStored{run_stored<PackedTiles<8>>,       run_stored<PackedTiles<4>>,
                                                                        run_stored<PackedTiles<2>>,       run_stored<StoredTiles<LoadBf16>>,
                                                                        run_stored<StoredTiles<LoadF16>>, run_stored<PackedTiles<4, true>>};

/// By NarrowForm.
constexpr std::array<Widen, kNarrowForms> kWiden{widen_eight_bits, widen_few_bits<4>, widen_few_bits<2>,
                                                 widen_bf16,       widen_f16,         widen_few_bits<4, true>};

}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels::weighted
HWY_AFTER_NAMESPACE();
#endif  // SLUICE_BUILDS_TARGET

#if HWY_ONCE
#include "src/kernels/for_isa.h"

namespace sluice::kernels::weighted {
namespace {

constexpr std::size_t kIsas = 4;

const std::array<Widen, kNarrowForms>& widens(Isa isa) noexcept { SLUICE_RETURN_FOR_ISA(isa, kWiden) }

const std::array<decltype(TileTable::stored), kNarrowForms>& stored_tiles(Isa isa) noexcept { SLUICE_RETURN_FOR_ISA(isa, kStored) }
int stored_rows(Isa isa) noexcept {SLUICE_RETURN_FOR_ISA(isa, kStoredRows)}

std::array<TileTable, kNarrowForms * kIsas> narrow_tables() noexcept {
  std::array<TileTable, kNarrowForms * kIsas> tables;
  const Isa best = best_isa();
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const auto isa = static_cast<Isa>(i / kNarrowForms);
    if (isa > best && isa != Isa::kScalar) continue;  // code that this CPU has not
    tables[i] = tile_table(isa);
    tables[i].short_products = 0;  // short sums are formed as others are
    tables[i].widen = widens(isa)[i % kNarrowForms];
    tables[i].stored = stored_tiles(isa)[i % kNarrowForms];
    if (tables[i].stored != nullptr) tables[i].stored_rows = stored_rows(isa);
  }
  return tables;
}

/// Four panels of a tile with few rows are widened together, else a pair: as many as the tiles take at once.
int panels_at_once(const TileTable& tiles, const TileRows* held, int count) noexcept {
  const auto few = [&](const TileRows& rows) { return rows.count <= tiles.few_rows; };
  return std::all_of(held, held + count, few) ? 4 : 2;
}

/// A step of so few pixels multiplies by panels as they lie on every instruction set, and widens nothing.
constexpr std::int64_t kAlwaysStored = 1;

/// The parts of a room.
struct RoomSizes {
  std::int64_t floats = 0;
  std::int64_t sums = 0;
  int tiles = 0;

  explicit RoomSizes(const NarrowStep& step) noexcept {
    if (step.pixels <= kAlwaysStored) return;
    const std::int64_t whole = step.geometry.values * kMostGranule * kPanelLanes;
    floats = std::min(whole, kWidenedFloats);
    // Tiles wait where panels are widened in turn: parts of them, or all of a few of a larger block, whose sums are finished at once.
    if (whole <= kWidenedFloats && step.block_panels <= kMostGranule) return;
    tiles = static_cast<int>(std::min<std::int64_t>(kHeldTiles, step.pixels));
    if (whole > kWidenedFloats) sums = std::min<std::int64_t>(kHeldTiles * kTileSums, step.pixels * kMostGranule * kPanelLanes);
  }
  std::uint64_t bytes() const noexcept {
    const std::uint64_t values = static_cast<std::uint64_t>(floats + sums) * sizeof(float);
    return align_up(sizeof(NarrowRoom) + values + static_cast<std::uint64_t>(tiles) * sizeof(TileRows), kWeightAlignment);
  }
};

}  // namespace

Widen widen_of(Isa isa, NarrowForm form) noexcept { return widens(isa)[static_cast<std::size_t>(form)]; }

const TileTable& narrow_tile_table(Isa isa, NarrowForm form) noexcept {
  static const std::array<TileTable, kNarrowForms* kIsas> kTables = narrow_tables();
  return kTables[static_cast<std::size_t>(isa) * kNarrowForms + static_cast<std::size_t>(form)];
}

Bytes NarrowRooms::bytes_if_narrow(const NarrowStep& step) noexcept {
  return is_narrow(step.geometry.layout) ? Bytes(RoomSizes(step).bytes() * static_cast<std::uint64_t>(step.threads)) : Bytes();
}

void NarrowRooms::make(const TileTable& tiles, const NarrowStep& step) noexcept {
  const RoomSizes sizes(step);
  each_ = sizes.bytes();
  for (int thread = 0; thread < step.threads; ++thread) {
    NarrowRoom& made = *room(thread);
    made.held_panel = -1;
    made.held_panels = 0;
    made.floats = sizes.floats;
    made.stored = tiles.stored != nullptr && step.pixels <= tiles.stored_rows;
    made.widened = reinterpret_cast<float*>(reinterpret_cast<std::byte*>(&made) + sizeof(NarrowRoom));
    made.sums = made.widened + sizes.floats;
    made.tiles = reinterpret_cast<TileRows*>(made.sums + sizes.sums);
    made.most_tiles = sizes.tiles;
  }
}

void TileRunner::widen_whole(TileJob& job, std::int64_t first_panel) noexcept {
  const std::int64_t products = job.segments * job.depth, panel_bytes = job.panel_floats * std::int64_t{sizeof(float)};
  const std::int64_t stored = std::max<std::int64_t>(1, panel_bytes);
  for (shift_ = 0; shift_ < 3 && (job.values * 16 * std::int64_t{sizeof(float)} >> (shift_ + 1)) >= stored; ++shift_) {
  }
  job.next_shift = shift_;
  if (room_->stored) return;
  whole_ = products * 16 * job.panel_count <= room_->floats;
  if (!whole_ || products == 0) return;
  const bool held = room_->held_panel == first_panel && room_->held_panels >= job.panel_count && room_->held_value == job.first_value;
  if (!held) {
    for (int p = 0; p < job.panel_count; ++p) {
      const std::byte* panel = reinterpret_cast<const std::byte*>(job.panels) + p * panel_bytes;
      tiles_.widen(panel, job.k_group, job.first_value, products, room_->widened + p * products * 16);
    }
    room_->held_panel = first_panel;
    room_->held_panels = job.panel_count;
    room_->held_value = job.first_value;
  }
  job.panels = room_->widened;
  job.panel_floats = products * 16;
}

void TileRunner::run_narrow(const TileRows& rows, const TileJob& job) noexcept {
  if (room_->stored) return tiles_.stored(rows, job);
  if (whole_) return tiles_.panels(rows, job);
  room_->tiles[count_++] = rows;
  if (count_ == room_->most_tiles) run_held(job);
}

void TileRunner::run_held(const TileJob& job) noexcept {
  room_->held_panel = -1;
  const int step = panels_at_once(tiles_, room_->tiles, count_);
  for (int p = 0; p < job.panel_count; p += step) run_panels(job, p, std::min(step, job.panel_count - p));
  count_ = 0;
}

/// All products of panels [first, first + count), as many at a time as there is room for: whole segments, or parts of one.
void TileRunner::run_panels(const TileJob& job, int first, int count) noexcept {
  const std::int64_t most = room_->floats / (16 * count);
  TileJob part = job;
  part.panel_count = count;
  part.last_lanes = first + count == job.panel_count ? job.last_lanes : 16;
  if (job.bias != nullptr) part.bias = job.bias + first * 16;
  if (job.depth <= most) {
    const std::int64_t parts = ceil_div(job.segments, std::max<std::int64_t>(1, most / std::max<std::int64_t>(1, job.depth)));
    for (std::int64_t i = 0; i < parts; ++i) {
      const std::int64_t begin = job.segments * i / parts, end = job.segments * (i + 1) / parts;
      part.segment_offsets = job.segment_offsets + begin;
      part.segments = end - begin;
      part.begins = begin == 0;
      part.ends = end == job.segments;
      run_part(job, part, first, begin * job.depth);
    }
    return;
  }
  part.segments = 1;
  const std::int64_t parts = ceil_div(job.depth, most);
  for (std::int64_t s = 0; s < job.segments; ++s)
    for (std::int64_t i = 0; i < parts; ++i) {
      const std::int64_t begin = job.depth * i / parts, end = job.depth * (i + 1) / parts;
      const std::int64_t offset = job.segment_offsets[s] + begin;
      part.segment_offsets = &offset;
      part.depth = end - begin;
      part.begins = s == 0 && begin == 0;
      part.ends = s + 1 == job.segments && end == job.depth;
      run_part(job, part, first, s * job.depth + begin);
    }
}

/// `value`: the job's products before the part's.
void TileRunner::run_part(const TileJob& job, TileJob part, int first, std::int64_t value) noexcept {
  const std::int64_t values = part.segments * part.depth, panel_bytes = job.panel_floats * std::int64_t{sizeof(float)};
  const auto* const panels = reinterpret_cast<const std::byte*>(job.panels) + first * panel_bytes;
  for (int p = 0; p < part.panel_count; ++p)
    tiles_.widen(panels + p * panel_bytes, job.k_group, job.first_value + value, values, room_->widened + p * values * 16);
  // What follows the part in the same panels, or the beginning of those behind them: the tiles bring it to L2.
  const std::int64_t behind = (job.first_value + value + values) * panel_bytes / std::max<std::int64_t>(1, job.values);
  const auto* const next = panels + (part.ends ? part.panel_count * panel_bytes : behind);
  part.next_panel_floats = job.panel_floats;
  part.next_shift = shift_;
  if (count_ < kTilesOfPrefetch) {
    for (int p = 0; p < part.panel_count; ++p)
      for (std::int64_t at = 0; at < (values * 64 >> shift_); at += 64) __builtin_prefetch(next + p * panel_bytes + at, 0, 2);
  }
  part.panels = room_->widened;
  part.panel_floats = values * 16;
  part.sums = room_->sums;
  for (int tile = 0; tile < count_; ++tile) {
    TileRows rows = room_->tiles[tile];
    for (int m = 0; m < rows.count; ++m) {
      rows.out[m] += first * 16;
      if (job.has_residual) rows.residual[m] += first * 16;
    }
    const bool fetches = count_ >= kTilesOfPrefetch && tile < kTilesOfPrefetch;
    part.next_panels = fetches ? reinterpret_cast<const float*>(next) : nullptr;
    part.next_part = tile;
    part.next_parts = kTilesOfPrefetch;
    tiles_.panels(rows, part);
    part.sums += rows.count * part.panel_count * 16;
  }
}

}  // namespace sluice::kernels::weighted
#endif
