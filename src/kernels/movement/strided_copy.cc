#include "src/kernels/movement/strided_copy.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "src/kernels/movement/loops.h"

namespace sluice::kernels::movement {
namespace {

// A task that moves fewer bytes costs more to hand out than to do.
constexpr std::int64_t kTaskBytes = 64 * 1024;

CopyAxis& axis(StridedCopy& copy, int i) noexcept { return copy.axes[static_cast<std::size_t>(i)]; }
const CopyAxis& axis(const StridedCopy& copy, int i) noexcept { return copy.axes[static_cast<std::size_t>(i)]; }

void remove(StridedCopy& copy, int i) noexcept {
  for (int next = i + 1; next < copy.rank; ++next) axis(copy, next - 1) = axis(copy, next);
  --copy.rank;
}

/// Do the elements along an axis lie where they should be already?
bool stays(const StridedCopy& copy) noexcept {
  const auto all = std::span(copy.axes).first(static_cast<std::size_t>(copy.rank));
  return copy.from == copy.to && std::all_of(all.begin(), all.end(), [](const CopyAxis& a) { return a.from == a.to; });
}

// ---- runs of any number of bytes: two or four overlapping moves of a fixed size, or the library's

template <std::size_t kMove>
void copy_twice(const Line& line, std::int64_t bytes) noexcept {
  const std::int64_t last = bytes - static_cast<std::int64_t>(kMove);
  const std::byte* from = line.from;
  std::byte* to = line.to;
  for (std::int64_t i = 0; i < line.count; ++i, from += line.from_step, to += line.to_step) {
    std::array<std::byte, kMove> head, tail;
    std::memcpy(head.data(), from, kMove);
    std::memcpy(tail.data(), from + last, kMove);
    std::memcpy(to, head.data(), kMove);
    std::memcpy(to + last, tail.data(), kMove);
  }
}

void copy_runs(const Line& line, std::int64_t bytes) noexcept {
  if (bytes <= 4) return copy_twice<2>(line, bytes);  // three: one byte has a loop of its own
  if (bytes <= 8) return copy_twice<4>(line, bytes);
  if (bytes <= 16) return copy_twice<8>(line, bytes);
  if (bytes <= 32) return copy_twice<16>(line, bytes);
  if (bytes <= 64) return copy_twice<32>(line, bytes);
  const std::byte* from = line.from;
  std::byte* to = line.to;
  for (std::int64_t i = 0; i < line.count; ++i, from += line.from_step, to += line.to_step)
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

bool has_loops(std::int64_t element) noexcept { return element <= 8 && std::has_single_bit(static_cast<std::uint64_t>(element)); }
std::size_t loops_of(std::int64_t element) noexcept {
  return static_cast<std::size_t>(std::countr_zero(static_cast<std::uint64_t>(element)));
}

/// Calls body(from, to) at every place of the axes of `copy`, the last axis fastest.
template <class Body>
void for_each_place(const StridedCopy& copy, const Body& body) noexcept {
  std::array<std::int64_t, kMaxAxes> index{};
  const std::byte* from = copy.from;
  std::byte* to = copy.to;
  for (;;) {
    body(from, to);
    int i = copy.rank - 1;
    for (; i >= 0; --i) {
      const CopyAxis& a = axis(copy, i);
      auto& at = index[static_cast<std::size_t>(i)];
      from += a.from;
      to += a.to;
      if (++at < a.extent) break;
      from -= a.extent * a.from;
      to -= a.extent * a.to;
      at = 0;
    }
    if (i < 0) return;
  }
}

/// The axis to copy along: the target's innermost, unless it is too short to be worth a loop.
int line_axis(const StridedCopy& copy) noexcept {
  constexpr std::int64_t kLongEnough = 16;
  int best = copy.rank - 1;
  for (int i = copy.rank - 2; i >= 0 && axis(copy, best).extent < kLongEnough; --i)
    if (axis(copy, i).extent > axis(copy, best).extent) best = i;
  return best;
}

void copy_lines(StridedCopy copy, const LoopTable& loops) noexcept {
  const int along = line_axis(copy);
  const CopyAxis a = axis(copy, along);
  remove(copy, along);
  for_each_place(copy, [&](const std::byte* from, std::byte* to) {
    const Line line{from, to, a.from, a.to, a.extent};
    has_loops(copy.element) ? loops.line[loops_of(copy.element)](line) : copy_runs(line, copy.element);
  });
}

/// The axis along which the source's elements are neighbours, if the target's are along another: or -1.
int turned_axis(const StridedCopy& copy) noexcept {
  if (!has_loops(copy.element) || axis(copy, copy.rank - 1).to != copy.element) return -1;
  for (int i = 0; i < copy.rank - 1; ++i)
    if (axis(copy, i).from == copy.element) return i;
  return -1;
}

/// Is one of the two sides so short, and not the whole of its row, that a longer axis is the better one to copy along?
bool worth_turning(const CopyAxis& p, const CopyAxis& q, std::int64_t element) noexcept {
  const std::int64_t lanes = 16 / element;
  const bool pairs = (p.extent <= 4 && q.to == p.extent * element) || (q.extent <= 4 && p.from == q.extent * element);
  return pairs ? std::max(p.extent, q.extent) >= lanes : std::min(p.extent, q.extent) >= lanes;
}

void copy_turned(StridedCopy copy, int q_axis, const LoopTable& loops) noexcept {
  const CopyAxis p = axis(copy, copy.rank - 1), q = axis(copy, q_axis);
  --copy.rank;
  remove(copy, q_axis);
  for_each_place(copy, [&](const std::byte* from, std::byte* to) {
    loops.turn[loops_of(copy.element)]({from, to, p.from, q.to, p.extent, q.extent});
  });
}

}  // namespace

std::int64_t StridedCopy::bytes() const noexcept {
  // Beside an extent of 0, others may be anything: their product is never formed.
  for (int i = 0; i < rank; ++i)
    if (axes[static_cast<std::size_t>(i)].extent == 0) return 0;
  std::int64_t all = element;
  for (int i = 0; i < rank; ++i) all *= axes[static_cast<std::size_t>(i)].extent;
  return all;
}

StridedCopy normalised(const StridedCopy& copy) noexcept {
  StridedCopy made = copy;
  made.rank = 0;
  for (int i = 0; i < copy.rank; ++i)
    if (axis(copy, i).extent != 1) made.axes[static_cast<std::size_t>(made.rank++)] = axis(copy, i);
  // An insertion sort, stable: there are few axes, and most come in order.
  for (int i = 1; i < made.rank; ++i)
    for (int at = i; at > 0 && axis(made, at - 1).to < axis(made, at).to; --at) std::swap(axis(made, at - 1), axis(made, at));
  for (int i = made.rank - 1; i > 0; --i) {
    const CopyAxis inner = axis(made, i);
    CopyAxis& outer = axis(made, i - 1);
    if (outer.from != inner.extent * inner.from || outer.to != inner.extent * inner.to) continue;
    outer = {outer.extent * inner.extent, inner.from, inner.to};
    remove(made, i);
  }
  if (made.rank > 0) {
    const CopyAxis& last = axis(made, made.rank - 1);
    if (last.from == made.element && last.to == made.element) {
      made.element *= last.extent;
      --made.rank;
    }
  }
  return made;
}

StridedCopy part_of(const StridedCopy& copy, std::int64_t part, std::int64_t parts) noexcept {
  StridedCopy made = copy;
  int cut = 0;
  for (int i = 0; i < copy.rank && axis(copy, cut).extent < parts; ++i)
    if (axis(copy, i).extent > axis(copy, cut).extent) cut = i;
  if (copy.rank == 0) {  // one run: cut into bytes
    made.element = 1;
    made.add(copy.element, 1, 1);
  }
  CopyAxis& a = axis(made, cut);
  const std::int64_t begin = a.extent * part / parts, end = a.extent * (part + 1) / parts;
  made.from += begin * a.from;
  made.to += begin * a.to;
  a.extent = end - begin;
  return made;
}

void run(const StridedCopy& copy, Isa isa) noexcept {
  if (copy.bytes() == 0 || stays(copy)) return;
  const StridedCopy c = normalised(copy);
  if (c.rank == 0) {
    std::memcpy(c.to, c.from, static_cast<std::size_t>(c.element));
    return;
  }
  const LoopTable& loops = loop_table(isa);
  const int turned = turned_axis(c);
  if (turned >= 0 && worth_turning(axis(c, c.rank - 1), axis(c, turned), c.element)) return copy_turned(c, turned, loops);
  copy_lines(c, loops);
}

void run(std::span<const StridedCopy> copies, ThreadPool* pool, Isa isa) noexcept {
  std::int64_t bytes = 0;
  for (const StridedCopy& copy : copies) bytes += stays(copy) ? 0 : copy.bytes();
  const std::int64_t parts = pool == nullptr ? 1 : std::min<std::int64_t>(2 * pool->thread_count(), bytes / kTaskBytes);
  if (parts <= 1) {
    for (const StridedCopy& copy : copies) run(copy, isa);
    return;
  }
  parallel_for(*pool, parts, [&](std::int64_t part, int) {
    for (const StridedCopy& copy : copies)
      if (!stays(copy) && copy.bytes() > 0) run(part_of(normalised(copy), part, parts), isa);
  });
}

}  // namespace sluice::kernels::movement
