// The inner loops. Compiled once for each target of targets.h by including itself; start reading at `turn`.
#include "src/kernels/movement/loops.h"

#include <algorithm>
#include <cstring>

#include "sluice/core/interval.h"
#include "src/core/build_list.h"
#include "src/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/movement/loops.cc"
#include "hwy/foreach_target.h"
#if SLUICE_BUILDS_TARGET
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::movement {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
inline constexpr auto kSize = static_cast<std::int64_t>(sizeof(T));

/// Tensors may begin anywhere: elements are read and written as bytes.
template <class T>
HWY_INLINE void copy_one(const std::byte* from, std::byte* to) {
  std::memcpy(to, from, sizeof(T));
}

template <class T>
HWY_INLINE void copy_line(const Line& line) noexcept {
  const std::byte* from = line.from;
  std::byte* to = line.to;
  for (std::int64_t i = 0; i < line.count; ++i, from += line.from_step, to += line.to_step) copy_one<T>(from, to);
}

/// The simple equivalent of `turn`: along the longer side, so that short sides cost no loop each.
template <class T>
void turn_simply(const Turn& t) noexcept {
  if (t.p >= t.q) {
    for (std::int64_t q = 0; q < t.q; ++q) copy_line<T>({t.from + q * kSize<T>, t.to + q * t.to_step, t.from_step, kSize<T>, t.p});
  } else {
    for (std::int64_t p = 0; p < t.p; ++p) copy_line<T>({t.from + p * t.from_step, t.to + p * kSize<T>, kSize<T>, t.to_step, t.q});
  }
}

#if HWY_TARGET == HWY_SCALAR

template <class T>
void turn(const Turn& t) noexcept {
  turn_simply<T>(t);
}

template <class T>
void line(const Line& l) noexcept {
  copy_line<T>(l);
}

#else

/// One block of 16 bytes: what Highway's interleaving works within.
template <class T>
using Block = hn::FixedTag<T, 16 / sizeof(T)>;
template <class T>
inline constexpr auto kLanes = static_cast<std::int64_t>(16 / sizeof(T));

template <class T>
HWY_INLINE const T* elements(const std::byte* from) {
  return reinterpret_cast<const T*>(from);
}
template <class T>
HWY_INLINE T* elements(std::byte* to) {
  return reinterpret_cast<T*>(to);
}

/// Where vectors have two blocks, a tile is two square ones side by side: rows i and i + kLanes share a vector, and every store is whole.
inline constexpr int kWideBlocks = HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 ? 2 : 1;
/// The same for whole cache lines, which are then written once.
inline constexpr int kLineBlocks = HWY_TARGET == HWY_AVX3 ? 4 : 1;
template <class T, int kBlocks>
using Wide = hn::FixedTag<T, 16 / sizeof(T) * kBlocks>;

template <class T, int kBlocks>
HWY_INLINE hn::Vec<Wide<T, kBlocks> > load_rows(const std::byte* from, std::int64_t from_step) {
  if constexpr (kBlocks == 1) {
    return hn::LoadU(Block<T>(), elements<T>(from));
  } else {
    constexpr int kHalf = kBlocks / 2;
    const auto upper = load_rows<T, kHalf>(from + kHalf * kLanes<T> * from_step, from_step);
    return hn::Combine(Wide<T, kBlocks>(), upper, load_rows<T, kHalf>(from, from_step));
  }
}

/// kLanes * kBlocks rows of the source, kLanes of the target. Each round shuffles the vectors as a pack of cards; after log2(kLanes) rounds
/// rows are columns.
template <class T, int kBlocks>
HWY_INLINE void turn_tile(const std::byte* from, std::int64_t from_step, std::byte* to, std::int64_t to_step) {
  constexpr int kCount = 16 / sizeof(T);
  const Wide<T, kBlocks> d;
  hn::Vec<Wide<T, kBlocks> > a[kCount], b[kCount];
  HWY_UNROLL(16)
  for (int i = 0; i < kCount; ++i) a[i] = load_rows<T, kBlocks>(from + i * from_step, from_step);
  HWY_UNROLL(4)
  for (int round = kCount; round > 1; round /= 2) {
    HWY_UNROLL(8)
    for (int i = 0; i < kCount / 2; ++i) {
      b[2 * i] = hn::InterleaveLower(d, a[i], a[i + kCount / 2]);
      b[2 * i + 1] = hn::InterleaveUpper(d, a[i], a[i + kCount / 2]);
    }
    HWY_UNROLL(16)
    for (int i = 0; i < kCount; ++i) a[i] = b[i];
  }
  HWY_UNROLL(16)
  for (int i = 0; i < kCount; ++i) hn::StoreU(a[i], d, elements<T>(to + i * to_step));
}

/// kLanes columns of the source from `q` on, rows [begin, end), of which there are kLanes or more. The last tile may overlap the one
/// before.
template <class T>
HWY_INLINE void turn_columns(const Turn& t, std::int64_t q, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t kWideRows = kLanes<T> * kWideBlocks;
  const std::byte* const from = t.from + q * kSize<T>;
  std::byte* const to = t.to + q * t.to_step;
  std::int64_t p = begin;
  for (; p + kWideRows <= end; p += kWideRows) turn_tile<T, kWideBlocks>(from + p * t.from_step, t.from_step, to + p * kSize<T>, t.to_step);
  for (; p < end; p += kLanes<T>) {
    p = std::min(p, end - kLanes<T>);
    turn_tile<T, 1>(from + p * t.from_step, t.from_step, to + p * kSize<T>, t.to_step);
  }
}

/// Rows and columns of a strip, tile by tile, whole lines of the source at once, and of the target where a vector is one: for rows so far
/// apart that they share few sets of the first cache, which would lose a line between two visits.
template <class T>
HWY_INLINE void turn_lines(const Turn& t, Interval<std::int64_t> rows, Interval<std::int64_t> columns) {
  constexpr std::int64_t kLine = kLanes<T> * kLineBlocks;
  for (; kLineBlocks > 1 && rows.begin + kLine <= rows.end; rows.begin += kLine)
    for (std::int64_t q = columns.begin; q < columns.end; q += kLanes<T>) {
      q = std::min(q, t.q - kLanes<T>);
      const std::byte* const from = t.from + rows.begin * t.from_step + q * kSize<T>;
      turn_tile<T, kLineBlocks>(from, t.from_step, t.to + q * t.to_step + rows.begin * kSize<T>, t.to_step);
    }
  for (std::int64_t p = rows.begin; p < rows.end; p += kLanes<T>) {
    p = std::min(p, rows.end - kLanes<T>);
    for (std::int64_t q = columns.begin; q < columns.end; q += kLanes<T>) {
      q = std::min(q, t.q - kLanes<T>);
      turn_tile<T, 1>(t.from + p * t.from_step + q * kSize<T>, t.from_step, t.to + q * t.to_step + p * kSize<T>, t.to_step);
    }
  }
}

/// Squares of a cache line a side, so that each line is read and written once: strips of rows, along which the source is read on.
template <class T>
HWY_INLINE void turn_tiles(const Turn& t) {
  constexpr std::int64_t kStrip = 64 / kSize<T>;
  constexpr std::int64_t kSetsApart = 2048;
  const bool same_sets = t.from_step % kSetsApart == 0 || (kLineBlocks > 1 && t.to_step % kSetsApart == 0);
  for (std::int64_t begin = 0; begin < t.p;) {
    const std::int64_t end = t.p - begin < kStrip + kLanes<T> ? t.p : begin + kStrip;  // no rest of fewer rows than a tile has
    for (std::int64_t q = 0; same_sets && q < t.q; q += kStrip) turn_lines<T>(t, {begin, end}, {q, std::min(q + kStrip, t.q)});
    for (std::int64_t q = 0; !same_sets && q < t.q; q += kLanes<T>) {
      q = std::min(q, t.q - kLanes<T>);
      turn_columns<T>(t, q, begin, end);
    }
    begin = end;
  }
}

/// Two to four rows of the source become neighbours: whole vectors, the last one overlapping the one before.
template <class T, int kRows>
HWY_INLINE void interleave(const Turn& t) {
  const Block<T> d;
  for (std::int64_t q = 0; q < t.q; q += kLanes<T>) {
    q = std::min(q, t.q - kLanes<T>);
    const std::byte* const from = t.from + q * kSize<T>;
    const auto row = [&](int p) { return hn::LoadU(d, elements<T>(from + p * t.from_step)); };
    T* const to = elements<T>(t.to + q * t.to_step);
    if constexpr (kRows == 2) hn::StoreInterleaved2(row(0), row(1), d, to);
    if constexpr (kRows == 3) hn::StoreInterleaved3(row(0), row(1), row(2), d, to);
    if constexpr (kRows == 4) hn::StoreInterleaved4(row(0), row(1), row(2), row(3), d, to);
  }
}

/// Of groups of two to four neighbours that lie behind each other from `from` on: vector `v` of member `first` and those behind it, each in
/// a row of its own of the target.
template <class T, int kParts>
HWY_INLINE void load_parts(const std::byte* from, hn::Vec<Block<T> > (&v)[4]) {
  const Block<T> d;
  if constexpr (kParts == 2) hn::LoadInterleaved2(d, elements<T>(from), v[0], v[1]);
  if constexpr (kParts == 3) hn::LoadInterleaved3(d, elements<T>(from), v[0], v[1], v[2]);
  if constexpr (kParts == 4) hn::LoadInterleaved4(d, elements<T>(from), v[0], v[1], v[2], v[3]);
}

template <class T, int kColumns>
HWY_INLINE void deinterleave(const Turn& t) {
  const Block<T> d;
  for (std::int64_t p = 0; p < t.p; p += kLanes<T>) {
    p = std::min(p, t.p - kLanes<T>);
    hn::Vec<Block<T> > v[4];
    load_parts<T, kColumns>(t.from + p * t.from_step, v);
    HWY_UNROLL(4)
    for (int q = 0; q < kColumns; ++q) hn::StoreU(v[q], d, elements<T>(t.to + q * t.to_step + p * kSize<T>));
  }
}

template <class T>
void turn(const Turn& t) noexcept {
  const bool rows_meet = t.to_step == t.p * kSize<T>, columns_meet = t.from_step == t.q * kSize<T>;
  if (t.q >= kLanes<T> && rows_meet && t.p == 2) return interleave<T, 2>(t);
  if (t.q >= kLanes<T> && rows_meet && t.p == 3) return interleave<T, 3>(t);
  if (t.q >= kLanes<T> && rows_meet && t.p == 4) return interleave<T, 4>(t);
  if (t.p >= kLanes<T> && columns_meet && t.q == 2) return deinterleave<T, 2>(t);
  if (t.p >= kLanes<T> && columns_meet && t.q == 3) return deinterleave<T, 3>(t);
  if (t.p >= kLanes<T> && columns_meet && t.q == 4) return deinterleave<T, 4>(t);
  if (t.p >= kLanes<T> && t.q >= kLanes<T>) return turn_tiles<T>(t);
  turn_simply<T>(t);
}

/// Every second, third or fourth element of the source, one behind the other. The last vector's groups would be read beyond the last
/// element, so its elements are copied one by one.
template <class T, int kParts>
HWY_INLINE void pick(Line l) {
  const Block<T> d;
  while (l.count > kLanes<T>) {
    hn::Vec<Block<T> > v[4];
    load_parts<T, kParts>(l.from, v);
    hn::StoreU(v[0], d, elements<T>(l.to));
    l.from += kLanes<T> * l.from_step;
    l.to += 16;
    l.count -= kLanes<T>;
  }
  copy_line<T>(l);
}

/// One value again and again.
template <class T>
HWY_INLINE void fill(Line l) {
  T value;
  std::memcpy(&value, l.from, sizeof value);
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (; l.count >= lanes; l.count -= lanes, l.to += lanes * kSize<T>) hn::StoreU(hn::Set(d, value), d, elements<T>(l.to));
  copy_line<T>(l);
}

template <class T>
void line(const Line& l) noexcept {
  if (l.to_step != kSize<T>) return copy_line<T>(l);
  if (l.from_step == 0) return fill<T>(l);
  if (l.from_step == 2 * kSize<T>) return pick<T, 2>(l);
  if (l.from_step == 3 * kSize<T>) return pick<T, 3>(l);
  if (l.from_step == 4 * kSize<T>) return pick<T, 4>(l);
  copy_line<T>(l);
}

#endif

/// Element by element where this build was trimmed to models without such elements (core/build_list.h).
template <class T>
inline constexpr auto kTurn = has_element_bytes(sizeof(T)) && !kSmallCode ? turn<T> : turn_simply<T>;
template <class T>
inline constexpr auto kLine = has_element_bytes(sizeof(T)) ? line<T> : copy_line<T>;

constexpr LoopTable kTable = {{kTurn<std::uint8_t>, kTurn<std::uint16_t>, kTurn<std::uint32_t>, kTurn<std::uint64_t>},
                              {kLine<std::uint8_t>, kLine<std::uint16_t>, kLine<std::uint32_t>, kLine<std::uint64_t>}};

}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels::movement
HWY_AFTER_NAMESPACE();
#endif  // SLUICE_BUILDS_TARGET

#if HWY_ONCE
#include "src/kernels/for_isa.h"

namespace sluice::kernels::movement {

const LoopTable& loop_table(Isa isa) noexcept { SLUICE_RETURN_FOR_ISA(isa, kTable) }

}  // namespace sluice::kernels::movement
#endif  // HWY_ONCE
