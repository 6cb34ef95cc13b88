// Which rows of a ring are held, and by whom: parts of a concatenation that a region makes may lie in the concatenation's ring from the start.
//
//     ring of 3   |a6 b3|a4 b4|a5 b5|       row r of a, of b and of the whole is one slot, r mod 3: whoever makes a part puts it where the
//                  ^ a is ahead              whole has it, and the concatenation's step finds it there, so that nothing is copied
//
// Parts have no bytes in common, so that only the whole stands between them: row 6 of a may lie where row 3 of the whole was, once nobody
// reads that row any more. What a pair needs is its *window*: from the oldest row that either still holds to the newest that either has.
//
//     window of a and the whole    whole: rows 4 5 held     a: rows 4 5 6 made     3 rows
//
// Invariant: a ring is as long as the longest window of its pairs, so that no two rows of different numbers are held in one slot.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "sluice/core/interval.h"
#include "sluice/core/sort.h"
#include "sluice/planner/bands/banded.h"
#include "sluice/planner/bands/shared_rows.h"
#include "sluice/planner/order/row_needs.h"

namespace sluice::planner {

/// Adds the parts of a concatenation along the last axis that the same chain makes, each of them once: they may lie in its ring. `at`: its
/// position; `maker(tensor)`: that of whoever makes it, `at` or more if it is none before.
template <class Maker>
void list_parts(const model::Graph& graph, const model::Node& node, std::size_t at, const Maker& maker, ChainLinks& links) {
  if (node.op != model::OpKind::kConcat) return;
  const model::Tensor& whole = graph.tensor(node.outputs[0]);
  if (node.as<model::AxisAttributes>().axis + 1 != whole.shape.rank()) return;
  for_each_part(graph, node, [&](TensorId in, std::uint64_t offset) {
    const std::size_t by = maker(in);
    const bool once = std::count(node.inputs.begin(), node.inputs.end(), in) == 1;
    if (by >= at || !once || graph.tensor(in).dtype != whole.dtype || links.places[by].joins_parts) return;
    links.joins.push_back({by, at, offset, links.places[by].joined, 0});
    links.places[by].joined = links.joins.size() - 1;
  });
}

/// Which of them lie in the ring of their whole: `ring_rows` are those of each position alone, and then those of the rings that remain. A
/// part's are those of its whole. `row_bytes`: by position, of its own ring. Lists what it took.
///
/// Of each concatenation, the last first, parts in the order of their windows, as many as make the fewest bytes: a part that runs far ahead of
/// the rest would make the ring long for all channels.
inline std::vector<JoinedPart> join_rings(std::vector<JoinedPart> candidates, const std::vector<std::uint64_t>& row_bytes,
                                          std::vector<std::int64_t>& ring_rows) {
  std::vector<JoinedPart> joined;
  std::vector<bool> taken(ring_rows.size(), false);
  sluice::stable_sort(candidates.begin(), candidates.end(), [](const JoinedPart& a, const JoinedPart& b) {
    return a.whole != b.whole ? a.whole > b.whole : a.window < b.window;
  });
  for (auto first = candidates.begin(), end = first; first != candidates.end(); first = end) {
    const std::size_t whole = first->whole;
    end = std::find_if(first, candidates.end(), [&](const JoinedPart& other) { return other.whole != whole; });
    if (ring_rows[whole] == 0) continue;
    const auto free = [&](const JoinedPart& c) { return ring_rows[c.part] > 0 && !taken[c.part]; };
    std::int64_t rows = ring_rows[whole], best_rows = rows, saved = 0, most_saved = 0;
    auto last = first;  // behind the last one that is taken
    for (auto c = first; c != end; ++c) {
      if (!free(*c)) continue;
      const std::int64_t longer = std::max(rows, c->window) - rows;
      rows += longer;
      saved += ring_rows[c->part] * static_cast<std::int64_t>(row_bytes[c->part]) - longer * static_cast<std::int64_t>(row_bytes[whole]);
      if (saved < most_saved) continue;
      most_saved = saved;
      best_rows = rows;
      last = c + 1;
    }
    for (auto c = first; c != last; ++c) {
      if (!free(*c)) continue;
      taken[c->part] = true;
      joined.push_back(*c);
    }
    ring_rows[whole] = best_rows;
  }
  for (const JoinedPart& j : joined) ring_rows[j.part] = ring_rows[j.whole];
  return joined;
}

/// A chain's steps from the last to the first, and what is held of each position's rows between them.
class HeldRows {
 public:
  HeldRows(ChainLinks& links, const Chain& chain) : links_(links), chain_(chain) {}

  /// Rows of each position that must be there at once, as if each were a ring: from the oldest that some later step reads to the newest. Notes
  /// when they are needed, and the windows of parts and wholes.
  std::vector<std::int64_t> alone() {
    std::vector<std::int64_t> most(links_.places.size(), 0);
    begin();
    for (JoinedPart& join : links_.joins) join.window = 0;
    walk([&](std::int64_t step, std::size_t at, RowRange rows) {
      const ChainLinks::Place& place = links_.places[at];
      most[at] = std::max(most[at], rows.end - std::min(links_.oldest[at], rows.begin));
      for (std::size_t j = place.joins; j < place.joins_end; ++j) widen(links_.joins[j], rows);
      for (std::size_t j = place.joined; j != JoinedPart::kNone; j = links_.joins[j].next_of_part) widen(links_.joins[j], rows);
      for (std::size_t l = place.links; l < place.links_end; ++l) {
        const std::size_t maker = links_.links[l].maker;
        links_.uses[maker].add(step, links_.oldest[maker] < links_.made[maker]);
      }
      links_.uses[at].add(step, links_.oldest[at] < rows.begin);
    });
    return most;
  }

  /// When rings are needed some of which others lie in: those have no use of their own.
  void together(const std::vector<JoinedPart>& joined) {
    begin();
    std::vector<std::size_t> home(links_.places.size());
    for (std::size_t r = 0; r < home.size(); ++r) home[r] = r;
    for (const JoinedPart& join : joined) home[join.part] = join.whole;
    walk([&](std::int64_t step, std::size_t at, RowRange rows) {
      const ChainLinks::Place& place = links_.places[at];
      links_.made[at] = rows.begin;
      const auto add = [&](std::size_t r) {
        const auto held = [&](std::size_t one) { return links_.oldest[one] < links_.made[one]; };
        const bool parts_held =
            std::any_of(joined.begin(), joined.end(), [&](const JoinedPart& j) { return j.whole == r && held(j.part); });
        links_.uses[r].add(step, parts_held || held(r));
      };
      for (std::size_t l = place.links; l < place.links_end; ++l) add(home[links_.links[l].maker]);
      add(home[at]);
    });
  }

 private:
  void begin() {
    links_.uses.resize(links_.places.size());
    for (RingUse& use : links_.uses) use.clear();
    links_.oldest.clear();
    for (const ChainLinks::Place& place : links_.places) links_.oldest.push_back(place.rows);
    links_.made = links_.oldest;
  }

  /// `visit(step, position, rows)`: with the oldest row of each position that this step or a later one reads, and the rows made by it and before.
  template <class Visit>
  void walk(const Visit& visit) {
    for (std::size_t s = chain_.steps.size(); s-- > 0;) {
      const BandStep& step = chain_.steps[s];
      const std::size_t at = step.position - chain_.first;
      const ChainLinks::Place& place = links_.places[at];
      for (std::size_t l = place.links; l < place.links_end; ++l) {
        const auto [maker, by] = links_.links[l];
        links_.oldest[maker] = std::min(links_.oldest[maker], by == nullptr ? 0 : rows_read(*by, place.granule, step.rows).begin);
      }
      visit(static_cast<std::int64_t>(s), at, step.rows);
      links_.made[at] = step.rows.begin;
    }
  }

  /// A step makes `rows` of one of the two.
  void widen(JoinedPart& join, RowRange rows) const noexcept {
    std::int64_t oldest = rows.begin, newest = rows.end;
    for (const std::size_t r : {join.part, join.whole}) {
      if (links_.oldest[r] < links_.made[r]) oldest = std::min(oldest, links_.oldest[r]);
      newest = std::max(newest, links_.made[r]);
    }
    join.window = std::max(join.window, newest - oldest);
  }

  ChainLinks& links_;
  const Chain& chain_;
};

/// From when to when each row of each position is needed: from the step that makes it to the last that reads it.
inline std::vector<std::vector<Interval<std::int64_t>>> lives_of_rows(const ChainLinks& links, const Chain& chain) {
  std::vector<std::vector<Interval<std::int64_t>>> lives;
  for (const ChainLinks::Place& place : links.places) lives.emplace_back(static_cast<std::size_t>(place.rows));
  for (std::size_t s = 0; s < chain.steps.size(); ++s) {
    const auto now = static_cast<std::int64_t>(s);
    const BandStep& step = chain.steps[s];
    const std::size_t at = step.position - chain.first;
    for (std::int64_t r = step.rows.begin; r < step.rows.end; ++r) lives[at][static_cast<std::size_t>(r)] = {now, now + 1};
    for (std::size_t l = links.places[at].links; l < links.places[at].links_end; ++l) {
      const auto [maker, by] = links.links[l];
      const RowRange read = by ? rows_read(*by, links.places[at].granule, step.rows) : RowRange{0, links.places[maker].rows};
      for (std::int64_t r = read.begin; r < read.end; ++r) lives[maker][static_cast<std::size_t>(r)].end = now + 1;
    }
  }
  return lives;
}

/// Places the rings of a chain, by their uses. `row_bytes`: by position. Their bytes.
inline std::uint64_t share_rings_of(Banded& banded, ChainLinks& links, const std::vector<std::uint64_t>& row_bytes) {
  std::uint64_t apart = 0;
  for (std::size_t r = 0; r < links.uses.size(); ++r) {
    links.uses[r].bytes = 0;
    if (!banded.has_ring(r)) continue;
    const std::uint64_t bytes = static_cast<std::uint64_t>(banded.ring_rows[r]) * row_bytes[r];
    apart += bytes;
    links.uses[r].bytes = align_up(bytes + kernels::kReadTail.count(), kernels::kReadTail.count());
  }
  SharedRings shared = share_rings(links.uses, kernels::kReadTail.count());
  banded.shared.reset();
  if (shared.bytes >= apart) return apart;
  banded.shared = std::move(shared);
  return banded.shared->bytes;
}

/// The same with parts in the rings of their concatenations, where that needs no more: a longer ring takes turns with fewer others.
inline void lay_out_rings(Banded& banded, ChainLinks& links, const std::vector<std::uint64_t>& row_bytes) {
  const std::uint64_t bytes = share_rings_of(banded, links, row_bytes);
  if (links.joins.empty()) return;
  const std::vector<std::int64_t> alone = banded.ring_rows;
  banded.joined = join_rings(links.joins, row_bytes, banded.ring_rows);
  if (banded.joined.empty()) return;
  const std::vector<RingUse> uses = links.uses;
  HeldRows(links, banded.chain).together(banded.joined);
  std::optional<SharedRings> shared = banded.shared;
  if (share_rings_of(banded, links, row_bytes) <= bytes) return;
  links.uses = uses;
  banded.joined.clear();
  banded.ring_rows = alone;
  banded.shared = std::move(shared);
}

/// What a concatenation's steps find in place.
inline void note_there_bytes(Banded& banded, const model::Graph& graph, const Views& views) {
  std::vector<std::uint64_t> there(banded.ring_rows.size(), 0);
  for (const JoinedPart& join : banded.joined)
    there[join.whole] += ring_bytes(graph, graph.node(views.order[banded.chain.first + join.part]).outputs[0], 1);
  for (BandStep& step : banded.chain.steps)
    step.there_bytes = there[step.position - banded.chain.first] * static_cast<std::uint64_t>(step.rows.size());
}

/// When each slot of a ring of `rows` slots holds something, from when each row does: ranges of steps, rising and disjoint.
inline std::vector<std::vector<Interval<std::int64_t>>> slots_of_rows(const std::vector<Interval<std::int64_t>>& lives, std::int64_t rows) {
  std::vector<std::vector<Interval<std::int64_t>>> slots(static_cast<std::size_t>(rows));
  for (std::size_t row = 0; row < lives.size(); ++row) {
    std::vector<Interval<std::int64_t>>& slot = slots[row % slots.size()];
    if (!slot.empty() && slot.back().end > lives[row].begin)  // two parts, each with a row of its own there
      slot.back().end = std::max(slot.back().end, lives[row].end);
    else
      slot.push_back(lives[row]);
  }
  return slots;
}

}  // namespace sluice::planner
