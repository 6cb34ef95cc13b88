// Cuts a run of positions into bands, so that what passes between them is never whole (docs/planner.md, Bands).
//
//     project   |0 1 2 3|4 5 6 7|         a band of the last node asks for rows of the one before, and so on up
//     depthwise |0 1 2 3|4 5 6 7|
//     expand    |0 1 2 3 4|5 6 7 8|       rows that two bands read are kept, not made again:
//     ring      |5 6 2 3 4|               row r lies in slot r mod 5
//
// A tensor that only the chain reads becomes a ring of as many rows as must be there at once. Others stay whole, and may be replaced in
// place: the bands of the reader must then stay ahead of those of the writer.
// Invariants: bands of a position rise and tile its rows; rows are read when they are made and before they are overwritten.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sluice/planner/bands/banded.h"
#include "sluice/planner/bands/ring_rows.h"
#include "sluice/planner/order/chain.h"
#include "sluice/planner/order/row_needs.h"
#include "sluice/planner/order/select_kernels.h"
#include "sluice/planner/order/views.h"

namespace sluice::planner {

class BandCutter {
 public:
  BandCutter(const model::Graph& graph, const KernelChoice& kernels, const Views& views, Connected connected = Connected::kListed)
      : graph_(graph), kernels_(kernels), views_(views), connected_(connected), of_position_(views.order.size()), in_(graph, views) {
    maker_.assign(graph.tensors.size(), kNobody);
    for (const model::Port& port : graph.inputs) maker_[port.tensor.index()] = kCaller;
    for (std::size_t p = 0; p < views.order.size(); ++p) {
      const TensorId out = node(p).outputs[0];
      maker_[out.index()] = p;
      if (!placement(out).buffer.valid()) continue;  // it passes
      const Block& block = views.blocks[placement(out).buffer.index()];
      of_position_[p].alone = in_.tensors[placement(out).buffer.index()] == 1 && !block.to_end && !block.whole_period;
    }
    for (std::size_t p = 0; p < views.order.size(); ++p) {
      of_position_[p].image_rows = rows_of_image(graph, node(p), connected);
      for (std::size_t i = 0; i < node(p).inputs.size(); ++i) {
        of_position_[p].inputs.push_back(row_relation(graph, node(p), i, connected));
        if (const std::size_t by = maker_[node(p).inputs[i].index()]; by < kCaller) of_position_[by].readers.push_back({p, i});
      }
    }
    has_views_.assign(graph.tensors.size(), false);
    for (const model::Node& n : graph.nodes)
      if (maker_[n.outputs[0].index()] == kNobody)
        for (const TensorId in : n.inputs) has_views_[in.index()] = true;
  }

  bool takes_bands(std::size_t p) const {  // see Uses::takes_bands
    const kernels::KernelDescriptor& kernel = *kernels_[views_.order[p].index()];
    return kernel.slices_rows && kernel.takes_pitches && node(p).outputs.size() == 1 && model::rows_of_turn(graph_, node(p)) == 0;
  }

  /// Does the output of `p` go nowhere but to positions before `end`, row by row?
  bool stays_inside(std::size_t p, std::size_t end) const {
    const Position& position = of_position_[p];
    return position.alone && !position.readers.empty() && std::all_of(position.readers.begin(), position.readers.end(), [&](Reader r) {
             return r.position < end && takes_bands(r.position) && read_by(r, {0, 1}).has_value();
           });
  }

  std::uint64_t output_bytes(std::size_t p) const {
    const BufferId block = placement(node(p).outputs[0]).buffer;
    return block.valid() ? views_.blocks[block.index()].bytes : 0;
  }

  std::uint64_t row_bytes(std::size_t p) const { return static_cast<std::uint64_t>(placement(node(p).outputs[0]).row_pitch); }
  RowRange all_rows(std::size_t p) const noexcept { return {0, rows_of(p)}; }
  BufferId block_of(std::size_t p) const noexcept { return placement(node(p).outputs[0]).buffer; }
  /// What a step of those rows reads of an input; nothing: all.
  std::optional<RowRange> reads(std::size_t p, std::size_t input, RowRange rows) const noexcept { return read_by({p, input}, rows); }

  /// A block whose tensors take each other's place, all of them made by steps, the first of them here.
  BufferId growing_in(const Banded& banded) const {
    BufferId largest;
    for (std::size_t p = banded.chain.first; p < banded.chain.end; ++p) {
      if (banded.ring_rows[p - banded.chain.first] > 0 || !block_of(p).valid()) continue;
      const std::size_t b = block_of(p).index();
      const Block& block = views_.blocks[b];
      const bool whole = block.bytes == static_cast<std::uint64_t>(rows_of(p)) * row_bytes(p) && in_.alike[b] == in_.tensors[b];
      if (!whole || block.to_end || block.whole_period || block.first < static_cast<std::int64_t>(banded.chain.first)) continue;
      if (!largest.valid() || block.bytes > views_.blocks[largest.index()].bytes) largest = block_of(p);
    }
    return largest;
  }

  /// Positions [first, end) in `bands` bands of the last one's rows; nothing where they cannot run so.
  std::optional<Banded> cut(std::size_t first, std::size_t end, std::int64_t bands) const {
    for (std::size_t p = first; p < end; ++p)
      if (!takes_bands(p) || rows_of(p) < 1) return std::nullopt;
    Banded banded{{first, end, {}, {}}, {}, {}, bands, {}, {}, {}};
    std::vector<std::int64_t> made(end - first, 0);  // rows of each position so far
    const std::int64_t rows = rows_of(end - 1);
    for (std::int64_t band = 1; band <= bands; ++band) {
      const std::int64_t until = round_row(of_position_[end - 1].image_rows, granule(end - 1), rows * band / bands);
      if (until == made.back()) continue;
      const std::vector<std::int64_t> wanted = rows_wanted(banded.chain, made, until);
      for (std::size_t p = first; p < end; ++p) {
        if (made[p - first] == wanted[p - first]) continue;
        const BandStep step{p, {made[p - first], wanted[p - first]}};
        if (!stays_ahead(banded.chain, step, made)) return std::nullopt;
        banded.chain.steps.push_back(step);
        made[p - first] = step.rows.end;
      }
    }
    link(banded.chain);
    finish(banded);
    note_round_bytes(banded, graph_, views_);
    return banded;
  }

  /// The same run of positions, each making rows in steps of one of `bands` parts of its own, and only when somebody asks for them: what
  /// stands between a maker and its reader is then as little as windows and granules leave. `storage`: of steps that nobody needs any more.
  ///
  ///     cut             [a 0-85][b 0-84][c 0-41]...      the first band asks each position for all that lies behind it
  ///     cut_on_demand   [a 0-6][b 0-4][a 6-10][b 4-8][c 0-4]...
  std::optional<Banded> cut_on_demand(std::size_t first, std::size_t end, std::int64_t bands, std::vector<BandStep> storage = {}) const {
    for (std::size_t p = first; p < end; ++p)
      if (!takes_bands(p) || rows_of(p) < 1) return std::nullopt;
    // One after the other: g++ 12 frees what a nested initialiser holds twice where a later one throws.
    Demand demand;
    demand.made.assign(end - first, 0);
    demand.banded.chain = {first, end, std::move(storage), {}};
    demand.banded.chain.steps.clear();
    demand.banded.bands = bands;
    const ChainLinks& links = link(demand.banded.chain);
    const std::int64_t rows = rows_of(end - 1);
    while (demand.fits && demand.made.back() < rows) {
      advance(demand, end - 1 - first);
      const std::int64_t last = demand.made.back();
      if (last == rows) {
        for (std::size_t r = 0; r + 1 < links.places.size(); ++r) make_until(demand, r, links.places[r].rows);
      } else {
        for (const std::size_t r : links.unread) make_until(demand, r, links.places[r].rows * last / rows);  // it keeps pace with the last
      }
    }
    if (!demand.fits) return std::nullopt;
    finish(demand.banded);
    share(demand.banded);
    return std::move(demand.banded);
  }

  /// When each slot of each ring holds a row that matters, by position - first; of those that have no ring of their own there are none.
  std::vector<SlotUse> slots_of(const Banded& banded) const {
    std::vector<std::vector<Interval<std::int64_t>>> lives = lives_of_rows(link(banded.chain), banded.chain);
    for (const JoinedPart& join : banded.joined)
      for (std::size_t row = 0; row < lives[join.whole].size(); ++row) {
        Interval<std::int64_t>& life = lives[join.whole][row];
        life = {std::min(life.begin, lives[join.part][row].begin), std::max(life.end, lives[join.part][row].end)};
      }
    std::vector<SlotUse> slots(lives.size());
    for (std::size_t r = 0; r < slots.size(); ++r)
      if (banded.has_ring(r)) slots[r] = {row_bytes(banded.chain.first + r), slots_of_rows(lives[r], banded.ring_rows[r])};
    return slots;
  }

  /// What a chain makes of blocks: rings become smaller, and what lives in a part of it lives through all of it.
  void apply(const Banded& banded, std::vector<Block>& blocks) const {
    const auto first = static_cast<std::int64_t>(banded.chain.first);
    const auto end = static_cast<std::int64_t>(banded.chain.end);
    for (Block& block : blocks) {
      if (block.first >= first && block.first < end) block.first = first;
      if (block.last >= first && block.last < end) block.last = end - 1;
    }
    for (std::size_t p = banded.chain.first; p < banded.chain.end; ++p)
      if (const std::int64_t ring = banded.ring_rows[p - banded.chain.first]; ring > 0)
        blocks[block_of(p).index()].bytes = banded.shared ? 0 : static_cast<std::uint64_t>(ring) * row_bytes(p);
    for (const JoinedPart& join : banded.joined)
      if (!banded.shared) blocks[block_of(banded.chain.first + join.part).index()].bytes = 0;
    if (banded.shared) blocks[block_of(banded.home()).index()].bytes = banded.shared->bytes;
    if (!banded.overlaid) return;
    Block& dying = blocks[placement(banded.overlaid->dying).buffer.index()];
    Block& growing = blocks[banded.overlaid->block.index()];
    growing.bytes = banded.overlaid->bytes;
    growing.first = std::min(growing.first, dying.first);
    if (dying.kind == plan::BufferKind::kInput) growing.kind = dying.kind;
    dying.bytes = 0;
  }

  /// Writes a chain into views. Chains come in order. Empty blocks stay until `drop_empty`.
  void apply(const Banded& banded, Views& views) const {
    apply(banded, views.blocks);
    for (std::size_t p = banded.chain.first; p < banded.chain.end; ++p) {
      const std::int64_t ring = banded.ring_rows[p - banded.chain.first];
      if (ring == 0) continue;
      plan::TensorPlacement& tensor = views.tensors[node(p).outputs[0].index()];
      tensor.ring_rows = ring;
      if (!banded.shared) continue;
      const std::uint64_t under = banded.under ? banded.under->offsets[p - banded.chain.first] : UnderOutput::kNowhere;
      tensor.buffer = under == UnderOutput::kNowhere ? block_of(banded.home()) : banded.under->block;
      tensor.offset = Bytes(under == UnderOutput::kNowhere ? banded.shared->offsets[p - banded.chain.first] : under);
    }
    for (const JoinedPart& join : banded.joined) {
      plan::TensorPlacement& part = views.tensors[node(banded.chain.first + join.part).outputs[0].index()];
      part = views.tensors[node(banded.chain.first + join.whole).outputs[0].index()];
      part.offset += Bytes(join.offset);
    }
    if (banded.overlaid) {
      views.tensors[banded.overlaid->dying.index()].buffer = banded.overlaid->block;
      views.tensors[banded.overlaid->dying.index()].offset = Bytes(banded.overlaid->offset);
    }
    views.chains.push_back(banded.chain);
    if (banded.shared) views.chains.back().rings = block_of(banded.home());
  }

 private:
  static constexpr std::size_t kNobody = ~std::size_t{0};  // a constant or a view
  static constexpr std::size_t kCaller = kNobody - 1;

  struct Reader {
    std::size_t position;
    std::size_t input;
  };
  struct Position {
    bool alone = false;  // nothing else lies in the block of its output
    std::int64_t image_rows = 1;
    std::vector<std::optional<RowRelation>> inputs;
    std::vector<Reader> readers;
  };

  /// A chain as far as its steps are listed.
  struct Demand {
    Banded banded;
    std::vector<std::int64_t> made;    // rows, by position - first
    std::vector<std::size_t> waiting;  // for each other
    bool fits = true;                  // false: a step would read what is overwritten
  };

  const ChainLinks& link(const Chain& chain) const {
    links_.places.clear();
    links_.links.clear();
    links_.joins.clear();
    links_.unread.clear();
    for (std::size_t p = chain.first; p < chain.end; ++p) {
      const Position& position = of_position_[p];
      ChainLinks::Place place{.rows = rows_of(p), .image_rows = position.image_rows, .granule = granule(p)};
      place.links = links_.links.size();
      place.joins = links_.joins.size();
      place.joins_parts = node(p).op == model::OpKind::kConcat;
      for (std::size_t i = 0; i < position.inputs.size(); ++i) {
        const TensorId in = node(p).inputs[i];
        if (placement(in).buffer.valid() && in_.tensors[placement(in).buffer.index()] != 1) place.shares_bytes = true;
        const std::size_t by = maker_[in.index()];
        if (by >= chain.first && by < chain.end)
          links_.links.push_back({by - chain.first, position.inputs[i] ? &*position.inputs[i] : nullptr});
      }
      place.links_end = links_.links.size();
      const auto maker = [&](TensorId t) { return maker_[t.index()] - chain.first; };
      if (connected_ == Connected::kDeclared) list_parts(graph_, node(p), p - chain.first, maker, links_);
      place.joins_end = links_.joins.size();
      links_.places.push_back(place);
      const bool read = std::any_of(position.readers.begin(), position.readers.end(), [&](Reader r) { return r.position < chain.end; });
      if (!read && p + 1 < chain.end) links_.unread.push_back(p - chain.first);
    }
    return links_;
  }

  /// Makes the next rows of a position, and before them what they read of the chain.
  void advance(Demand& demand, std::size_t r) const {
    Chain& chain = demand.banded.chain;
    demand.waiting.assign(1, r);
    while (!demand.waiting.empty() && demand.fits) {
      const std::size_t at = demand.waiting.back();
      const BandStep step{chain.first + at, next_rows(demand, at)};
      if (const std::size_t maker = missing(demand, at, step.rows); maker != kNobody) {
        demand.waiting.push_back(maker);
        continue;
      }
      demand.fits = !links_.places[at].shares_bytes || stays_ahead(chain, step, demand.made);
      chain.steps.push_back(step);
      demand.made[at] = step.rows.end;
      demand.waiting.pop_back();
    }
  }
  void make_until(Demand& demand, std::size_t r, std::int64_t rows) const {
    while (demand.fits && demand.made[r] < rows) advance(demand, r);
  }

  RowRange next_rows(const Demand& demand, std::size_t r) const {
    const ChainLinks::Place& place = links_.places[r];
    const std::int64_t begin = demand.made[r];
    // A last band of a row or two would cost more than it saves.
    const std::int64_t until = begin + ceil_div(place.rows, demand.banded.bands);
    return {begin, std::min(place.rows, place.granule == 1 ? until : round_row(place.image_rows, place.granule, until))};
  }

  /// The position that must advance before a step can run; kNobody: everything that it reads is there. The last rows of a position ask for
  /// all rows of others, because rows that are not read must be made too.
  std::size_t missing(const Demand& demand, std::size_t r, RowRange rows) const {
    const ChainLinks::Place& place = links_.places[r];
    for (std::size_t l = place.links; l < place.links_end; ++l) {
      const auto [maker, by] = links_.links[l];
      const std::int64_t all = links_.places[maker].rows;
      if (demand.made[maker] == all) continue;
      const bool whole = by == nullptr || rows.end == place.rows;
      if (demand.made[maker] < (whole ? all : rows_read(*by, place.granule, rows).end)) return maker;
    }
    return kNobody;
  }

  /// Figures that follow from the steps. Behind `link`.
  void finish(Banded& banded) const {
    banded.ring_rows = rings_of(banded.chain);
    add_far_bytes(banded);
  }

  /// Rings that take turns lie on the same bytes, parts of concatenations in the rings of these, and what dies under what grows. Behind `finish`.
  void share(Banded& banded) const {
    std::vector<std::uint64_t> rows;
    for (std::size_t p = banded.chain.first; p < banded.chain.end; ++p) rows.push_back(row_bytes(p));
    lay_out_rings(banded, links_, rows);
    note_there_bytes(banded, graph_, views_);
    note_round_bytes(banded, graph_, views_);
    banded.overlaid = overlay(banded);
  }

  /// The largest tensor that only this chain reads, row by row, and the largest that it makes whole.
  std::optional<Overlaid> overlay(const Banded& banded) const {
    const TensorId dying = dying_in(banded.chain);
    const BufferId growing = growing_in(banded);
    if (!dying.valid() || !growing.valid()) return std::nullopt;
    const std::int64_t rows = row_extents(graph_.tensor(dying).shape).rows, pitch = placement(dying).row_pitch;
    std::int64_t oldest = rows, offset = 0;
    for (auto step = banded.chain.steps.rbegin(); step != banded.chain.steps.rend(); ++step) {
      for (std::size_t i = 0; i < node(step->position).inputs.size(); ++i)
        if (node(step->position).inputs[i] == dying) oldest = std::min(oldest, read_by({step->position, i}, step->rows)->begin);
      if (block_of(step->position) != growing || oldest == rows) continue;
      offset = std::max(offset, step->rows.end * static_cast<std::int64_t>(row_bytes(step->position)) - oldest * pitch);
    }
    const std::uint64_t under = views_.blocks[placement(dying).buffer.index()].bytes, over = views_.blocks[growing.index()].bytes;
    const std::uint64_t at = align_up(static_cast<std::uint64_t>(offset), kernels::kReadTail.count());
    if (at >= over) return std::nullopt;
    return Overlaid{dying, growing, at, std::max(over, at + under)};
  }

  TensorId dying_in(const Chain& chain) const {
    TensorId largest;
    std::uint64_t bytes = 0;
    for (std::size_t p = chain.first; p < chain.end; ++p)
      for (std::size_t i = 0; i < node(p).inputs.size(); ++i) {
        const TensorId in = node(p).inputs[i];
        if (!placement(in).buffer.valid() || in_.tensors[placement(in).buffer.index()] != 1) continue;
        const Block& block = views_.blocks[placement(in).buffer.index()];
        const auto first = static_cast<std::int64_t>(chain.first), end = static_cast<std::int64_t>(chain.end);
        const bool made_here = maker_[in.index()] != kCaller;
        if (made_here || block.first < first || block.last >= end || block.whole_period || block.to_end) continue;
        if (block.bytes > bytes && dies_by_rows(chain, in)) {
          largest = in;
          bytes = block.bytes;
        }
      }
    return largest;
  }

  bool dies_by_rows(const Chain& chain, TensorId t) const {
    for (std::size_t p = chain.first; p < chain.end; ++p)
      for (std::size_t i = 0; i < node(p).inputs.size(); ++i)
        if (node(p).inputs[i] == t && !read_by({p, i}, {0, 1})) return false;
    return true;
  }

  const model::Node& node(std::size_t p) const noexcept { return graph_.node(views_.order[p]); }
  const plan::TensorPlacement& placement(TensorId t) const noexcept { return views_.tensors[t.index()]; }
  std::int64_t granule(std::size_t p) const noexcept { return kernels_[views_.order[p].index()]->row_granule; }
  std::int64_t rows_of(std::size_t p) const noexcept { return row_extents(graph_.tensor(node(p).outputs[0]).shape).rows; }
  std::optional<RowRange> read_by(Reader r, RowRange rows) const noexcept {
    const std::optional<RowRelation>& by = of_position_[r.position].inputs[r.input];
    return by ? std::optional(rows_read(*by, granule(r.position), rows)) : std::nullopt;
  }

  /// Rows that each position must have made for the last one to make `until`, by position - first.
  std::vector<std::int64_t> rows_wanted(const Chain& chain, const std::vector<std::int64_t>& made, std::int64_t until) const {
    std::vector<std::int64_t> wanted = made;
    const std::int64_t all = rows_of(chain.end - 1);
    wanted.back() = until;
    for (std::size_t p = chain.end - 1; p-- > chain.first;) {
      std::int64_t& want = wanted[p - chain.first];
      bool asked = false;
      for (const Reader& reader : of_position_[p].readers) {
        if (reader.position >= chain.end) continue;
        const std::size_t r = reader.position - chain.first;
        asked = true;
        if (wanted[r] > made[r]) want = std::max(want, read_by(reader, {made[r], wanted[r]}).value_or(RowRange{0, rows_of(p)}).end);
      }
      if (!asked) want = std::max(want, rows_of(p) * until / all);
      want = std::max<std::int64_t>(want, 1);  // all begin in the first band: loads come in the order of positions
      want = until == all ? rows_of(p) : want;
      if (want > made[p - chain.first] && want < rows_of(p)) want = round_row(of_position_[p].image_rows, granule(p), want);
    }
    return wanted;
  }

  /// Does a step read no row that the chain has overwritten already? What takes a tensor's place row by row reads each row first, so that
  /// tensors that had the place before it are no danger.
  bool stays_ahead(const Chain& chain, const BandStep& step, const std::vector<std::int64_t>& made) const {
    for (std::size_t i = 0; i < node(step.position).inputs.size(); ++i) {
      const TensorId in = node(step.position).inputs[i];
      if (!placement(in).buffer.valid() || in_.tensors[placement(in).buffer.index()] == 1) continue;
      const RowRange need = read_by({step.position, i}, step.rows).value_or(RowRange{});
      const std::size_t maker = maker_[in.index()];
      for (std::size_t w = chain.first; w < chain.end; ++w) {
        const TensorId out = node(w).outputs[0];
        if (out == in || placement(out).buffer != placement(in).buffer) continue;
        const bool same_place = placement(out).offset == placement(in).offset && graph_.tensor(out).shape == graph_.tensor(in).shape;
        const bool from_outside = maker == kCaller || maker < chain.first;
        const bool here = !from_outside && maker != kNobody && in_turn(placement(in).buffer);
        if (!same_place || need.empty() || !(from_outside || here)) return false;
        const std::int64_t gone = made[w - chain.first];
        if (from_outside && gone > 0 && has_views_[in.index()]) return false;
        if ((from_outside || w > maker) && need.begin < gone) return false;
      }
    }
    return true;
  }

  /// Do the tensors of a block take each other's place in a region, none of them seen through a view?
  bool in_turn(BufferId b) const noexcept { return connected_ == Connected::kDeclared && in_.made[b.index()] == in_.tensors[b.index()]; }

  /// Rows of each position that must be there at once; 0: all, or it is no ring. Notes when they are needed, too.
  std::vector<std::int64_t> rings_of(const Chain& chain) const {
    std::vector<std::int64_t> most = HeldRows(links_, chain).alone();
    for (std::size_t r = 0; r < most.size(); ++r)
      if (r + 1 == most.size() || most[r] >= links_.places[r].rows || !stays_inside(chain.first + r, chain.end)) most[r] = 0;
    return most;
  }

  /// Notes for each step the rows that it reads or writes of large tensors that are not rings.
  void add_far_bytes(Banded& banded) const {
    struct Far {
      std::uint64_t row_bytes;
      std::int64_t rows;
      const RowRelation* by;
    };
    std::vector<Far> fars;
    std::vector<std::size_t> first;
    for (std::size_t p = banded.chain.first; p < banded.chain.end; ++p) {
      first.push_back(fars.size());
      static constexpr RowRelation kSame{operators::same(0)};
      const auto add = [&](TensorId t, const RowRelation* by) {
        if (const std::uint64_t row = far_row_bytes(banded, t); row > 0)
          fars.push_back({row, row_extents(graph_.tensor(t).shape).rows, by});
      };
      add(node(p).outputs[0], &kSame);
      for (std::size_t i = 0; i < node(p).inputs.size(); ++i)
        add(node(p).inputs[i], of_position_[p].inputs[i] ? &*of_position_[p].inputs[i] : nullptr);
    }
    first.push_back(fars.size());
    for (BandStep& step : banded.chain.steps) {
      const std::size_t at = step.position - banded.chain.first;
      step.far_bytes = 0;
      for (std::size_t f = first[at]; f < first[at + 1]; ++f) {
        const std::int64_t rows = fars[f].by ? rows_read(*fars[f].by, links_.places[at].granule, step.rows).size() : fars[f].rows;
        step.far_bytes += fars[f].row_bytes * static_cast<std::uint64_t>(rows);
      }
    }
  }

  /// Of a large tensor that is not a ring; else 0.
  std::uint64_t far_row_bytes(const Banded& banded, TensorId t) const {
    const model::Tensor& tensor = graph_.tensor(t);
    if (tensor.weight.valid() || tensor.bytes().count() <= kNearTensor) return 0;
    const std::size_t maker = maker_[t.index()];
    if (maker >= banded.chain.first && maker < banded.chain.end && banded.ring_rows[maker - banded.chain.first] > 0) return 0;
    return tensor.bytes().count() / static_cast<std::uint64_t>(row_extents(tensor.shape).rows);
  }

  const model::Graph& graph_;
  const KernelChoice& kernels_;
  const Views& views_;
  const Connected connected_;
  std::vector<Position> of_position_;
  std::vector<std::size_t> maker_;  // by tensor: the position that makes it
  std::vector<bool> has_views_;     // by tensor: a node without steps shows it to others, whose readers then read it, too
  const InBlocks in_;
  mutable ChainLinks links_;  // of the chain that is being cut: kept for its memory
};

}  // namespace sluice::planner
