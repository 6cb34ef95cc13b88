#include "src/kernels/weighted/sparse.h"

#include "src/kernels/weighted/sparse_panels.h"
#include "src/kernels/weighted/strip.h"

namespace sluice::kernels::weighted {
namespace {

/// Panels whose lists a thread keeps at once: as many as tiles take, fewer where their places would fill the second cache.
constexpr std::int64_t kMostPlaces = 32 * 1024;
std::int64_t panels_of_room(std::int64_t values) noexcept {
  return std::clamp<std::int64_t>(kMostPlaces / std::max<std::int64_t>(1, values), 1, kMostSparsePanels);
}
/// Blocks of strips are pairs (strip.cc).
constexpr std::int64_t kPanelsOfStrips = 2;

/// A thread's part of the workspace: this, then the places.
struct alignas(64) ListRoom {
  std::int64_t held;  // the first panel of those listed; -1: none
  BlockList lists[kMostSparsePanels];

  std::uint32_t* places() noexcept { return reinterpret_cast<std::uint32_t*>(this + 1); }
};

std::uint64_t room_bytes(std::int64_t values, std::int64_t panels) noexcept {
  return sizeof(ListRoom) + align_up(static_cast<std::uint64_t>(values * panels + kPlacesBehind) * sizeof(std::uint32_t), kWeightAlignment);
}

/// The rooms of a step's threads, and what lies in them.
class ListRooms {
 public:
  ListRooms(const KernelCall& call, const SparseTiles& tiles, const std::uint32_t* ends, std::int64_t panels, int threads) noexcept
      : call_(call), tiles_(tiles), ends_(ends), each_(room_bytes(weighted_of(call).panels.values, panels)) {
    for (int thread = 0; thread < threads; ++thread) room(thread).held = -1;
  }

  /// Lists the blocks of values [products) of a block's panels. `first_place(segment)` says where the input of the first of `depth` values
  /// lies. The lists stay until another block's are wanted: segments and products are the same for all units of a step.
  template <class FirstPlace>
  const BlockList* lists(int thread, const Block& block, Interval<std::int64_t> products, std::int64_t depth,
                         const FirstPlace& first_place) const noexcept {
    ListRoom& room = this->room(thread);
    if (room.held == block.first_panel) return room.lists;
    room.held = block.first_panel;
    const operators::PanelGeometry& geometry = weighted_of(call_).panels;
    for (std::int64_t p = 0; p < block.panels; ++p) {
      const SparsePanel panel = sparse_panel(call_.weights[0], geometry, ends_, block.first_panel + p);
      std::uint32_t* const places = room.places() + p * geometry.values;
      const std::int64_t before = panel.count_before(products.begin);
      std::int64_t count = 0;
      for (std::int64_t segment = products.begin / depth; segment * depth < products.end; ++segment) {
        const std::int64_t place = first_place(segment) - segment * depth;
        const Interval<std::int64_t> values{std::max(products.begin, segment * depth), std::min(products.end, (segment + 1) * depth)};
        count += tiles_.list(panel, values, before + count, place, places + count);
      }
      room.lists[p] = {places, panel.block(before), count};
    }
    return room.lists;
  }

  /// Of a block's panels.
  std::int64_t bytes_of(const Block& block) const noexcept {
    const auto end_of = [&](std::int64_t panel) { return panel == 0 ? 0 : std::int64_t{ends_[panel - 1]}; };
    return (end_of(block.first_panel + block.panels) - end_of(block.first_panel)) * static_cast<std::int64_t>(kWeightAlignment);
  }

 private:
  ListRoom& room(int thread) const noexcept {
    return *reinterpret_cast<ListRoom*>(call_.workspace + static_cast<std::uint64_t>(thread) * each_);
  }

  const KernelCall& call_;
  const SparseTiles& tiles_;
  const std::uint32_t* ends_;
  std::uint64_t each_;
};

// ---- dense layers and 1x1 convolutions, whose pixels are read in place

/// Which input pixel an output pixel reads.
struct SparseReading {
  std::int64_t in_rows = 1;  // of an image
  std::int64_t out_rows = 1;
  std::int64_t stride_h = 1;
  std::int64_t stride_w = 1;
};

/// How a step is cut: runs of tiles, and for each run block after block, whose lists are made anew; a run's inputs stay in the second
/// cache. Threads share the pixels or the blocks (shares_pixels).
struct SparseCut {
  Blocks blocks;
  std::int64_t pixels;
  std::int64_t tiles;
  UnitGrid units;
};

SparseCut cut_step(const KernelCall& call, const SparseTiles& tiles, int threads) noexcept {
  const WeightedParameters& weighted = weighted_of(call);
  const std::int64_t pixels = call.rows.size() * call.outputs[0].view.pixels, outputs = weighted.panels.outputs_per_group;
  std::int64_t count = ceil_div(pixels, std::int64_t{tiles.rows});
  const bool by_pixels = threads > 1 && count >= threads && shares_pixels(weighted, {call.rows, call.channels, threads});
  if (by_pixels) count = std::min(pixels, ceil_div(count, threads) * threads);
  const std::int64_t panels = panels_of_channels(call.channels, outputs).size();
  const std::int64_t share = by_pixels ? panels : ceil_div(panels, threads);
  const std::int64_t granule = std::clamp<std::int64_t>(share, 1, panels_of_room(weighted.panels.values));
  Blocks blocks(weighted.panels, call.channels, outputs, outputs, 1, granule);
  UnitGrid units{.parts = by_pixels ? threads : 1, .blocks = blocks.count(), .runs_outside = true};
  const std::int64_t part_bytes = pixels / units.parts * weighted.panels.values * static_cast<std::int64_t>(sizeof(float));
  units.runs = std::clamp<std::int64_t>(part_bytes / kStripBytes, 1, count / units.parts);
  return {blocks, pixels, count, units};
}

void run_unit(const KernelCall& call, const SparseTiles& tiles, const SparseReading& reading, const SparseCut& cut, std::int64_t unit,
              const ListRooms& rooms, int thread) noexcept {
  const UnitPlace place = cut.units[unit];
  const Block block = cut.blocks[place.block];
  const std::int64_t values = weighted_of(call).panels.values;
  const Interval<std::int64_t> products =
      call.part == nullptr ? Interval<std::int64_t>{0, values} : Interval<std::int64_t>{call.part->products.begin, call.part->products.end};
  const BlockList* const lists = rooms.lists(thread, block, products, values, [](std::int64_t) { return 0; });
  TileJob job = make_job(call, block);
  const auto run = even_part({0, cut.tiles}, place.run, cut.units.parts * cut.units.runs);
  const std::int64_t first = even_part({0, cut.pixels}, run.begin, cut.tiles).begin;
  if (call.part != nullptr) {
    job.begins = products.begin == 0;
    job.ends = products.end == values;
    // Sums lie block after block, in a block pixel after pixel.
    const std::int64_t panels_before = block.first_panel - cut.blocks[0].first_panel;
    job.sums = call.part->sums + (panels_before * cut.pixels + first * block.panels) * kPanelLanes;
  }
  const RowView& in = call.inputs[0].view;
  const std::int64_t out_w = call.outputs[0].view.pixels;
  const std::int64_t step = reading.stride_w * in.pixel_pitch / static_cast<std::int64_t>(sizeof(float));
  OutputWalk walk(call, call.rows.begin + first / out_w, first % out_w, {0, out_w}, block.channel);
  const auto input = [&] {
    const std::int64_t row = walk.row() / reading.out_rows * reading.in_rows + walk.row() % reading.out_rows * reading.stride_h;
    return in.at<float>(row, walk.x() * reading.stride_w);
  };
  const auto* const next = reinterpret_cast<const float*>(reinterpret_cast<const std::byte*>(job.panels) + rooms.bytes_of(block));
  const float* a = input();
  for (std::int64_t tile = run.begin; tile < run.end; ++tile) {
    TileRows rows;
    rows.count = static_cast<int>(even_part({0, cut.pixels}, tile, cut.tiles).size());
    a = walk.set_tile(a, step, input, rows);
    // The first tile brings the next block, which lies behind this one, from memory: that alone would be slower than a tile.
    job.next_panels = tile == run.begin ? next : nullptr;
    tiles.run(rows, job, lists);
    if (job.sums != nullptr) job.sums += rows.count * block.panels * kPanelLanes;
  }
}

void run_in_place(const KernelCall& call, const SparseTiles& tiles, const SparseReading& reading, const std::uint32_t* ends) noexcept {
  const int threads = thread_count(call);
  const SparseCut cut = cut_step(call, tiles, threads);
  const ListRooms rooms(call, tiles, ends, panels_of_room(weighted_of(call).panels.values), threads);
  for_each_unit(call, cut.units.count(),
                [&](std::int64_t unit, int thread) noexcept { run_unit(call, tiles, reading, cut, unit, rooms, thread); });
}

Bytes rooms_workspace(const WeightedParameters& weighted, std::int64_t panels, const StepExtent& extent) noexcept {
  return Bytes(room_bytes(weighted.panels.values, panels) * static_cast<std::uint64_t>(extent.threads));
}

}  // namespace

Bytes sparse_dense_workspace(const SparseDenseParameters& dense, const StepExtent& extent) noexcept {
  const WeightedParameters& weighted = dense.dense.weighted;
  return rooms_workspace(weighted, panels_of_room(weighted.panels.values), extent);
}

void run_sparse_dense(const KernelCall& call, const SparseTiles& tiles) noexcept {
  run_in_place(call, tiles, {}, call.parameters<SparseDenseParameters>().panel_ends);
}

Bytes sparse_pointwise_workspace(const SparseConvolutionParameters& conv, const StepExtent& extent) noexcept {
  return rooms_workspace(conv.weighted, panels_of_room(conv.weighted.panels.values), extent);
}

void run_sparse_pointwise(const KernelCall& call, const SparseTiles& tiles) noexcept {
  const auto& conv = call.parameters<SparseConvolutionParameters>();
  const Window& w = conv.window;
  run_in_place(call, tiles, {w.in_h, w.out_h, w.stride_h, w.stride_w}, conv.panel_ends);
}

Bytes sparse_direct_workspace(const SparseConvolutionParameters& conv, const StepExtent& extent) noexcept {
  return rooms_workspace(conv.weighted, kPanelsOfStrips, extent) +
         strip_workspace(cut_strips(conv.dense(), extent, Direction::kForward).strip, extent.threads);
}

void run_sparse_direct(const KernelCall& call, const SparseTiles& tiles) noexcept {
  const auto& parameters = call.parameters<SparseConvolutionParameters>();
  const ConvolutionParameters conv = parameters.dense();
  const Window& w = conv.window;
  const StepExtent extent{call.rows, call.channels, thread_count(call)};
  const StripCut cut = cut_strips(conv, extent, Direction::kForward);
  const StripPlan& plan = cut.strip;
  const OutAreas areas(call.rows, w, plan);
  const ListRooms rooms(call, tiles, parameters.panel_ends, kPanelsOfStrips, extent.threads);
  const Strips strips(call.workspace + rooms_workspace(conv.weighted, kPanelsOfStrips, extent).count(), plan, extent.threads);
  const std::int64_t* const offsets = strips.segment_offsets(0);
  set_segments(w, plan, strips.segment_offsets(0));
  const std::int64_t depth = w.taps() / plan.segments * plan.depth;

  for_each_unit(call, cut.units.count(), [&](std::int64_t unit, int thread) noexcept {
    const UnitPlace place = cut.units[unit];
    const OutArea area = areas[place.run];
    const Block block = cut.blocks[place.block];
    float* const strip = strips.strip(thread);
    if (!strips.holds(thread, place.run)) {
      for_each_area(w, area, plan, [&](const StripArea& part, std::int64_t first) {
        fill_strip(call.inputs[0].view, w, part, 0, plan, strip + first * plan.depth);
      });
    }
    const auto first_place = [&](std::int64_t segment) { return offsets[segment]; };
    const BlockList* const lists = rooms.lists(thread, block, {0, conv.weighted.panels.values}, depth, first_place);
    for_each_tile({call, w, plan, area, strip, cut.blocks, place}, make_job(call, block), tiles.rows,
                  [&](const TileRows& rows, const TileJob& job) { tiles.run(rows, job, lists); });
  });
}

CostFeatures sparse_cost(const WeightedParameters& weighted, const std::uint32_t* panel_ends, const StepExtent& extent) noexcept {
  const operators::PanelGeometry& geometry = weighted.panels;
  const PanelRange panels = panels_of_channels(extent.channels, geometry.outputs_per_group);
  CostFeatures cost = weighted_cost(weighted, extent);
  const std::uint64_t begin = panels.begin == 0 ? 0 : panel_ends[panels.begin - 1];
  cost.weight_bytes = (panel_ends[panels.end - 1] - begin) * kWeightAlignment;
  // A panel has its bitmap and its blocks, of which each is as many products for an output as it has lanes for all.
  const auto all = static_cast<std::uint64_t>(geometry.values);
  const auto bitmaps = static_cast<std::uint64_t>(panels.size() * SparsePanel::bitmap_bytes_of(geometry.values));
  const std::uint64_t blocks = (cost.weight_bytes - std::min(cost.weight_bytes, bitmaps)) / (kPanelLanes * size_of(geometry.layout.dtype));
  const auto count = static_cast<std::uint64_t>(std::max<std::int64_t>(1, panels.size()));
  const auto outputs = static_cast<std::uint64_t>(extent.rows.size() * weighted.out_pixels * extent.channels.size());
  cost.flops = outputs * std::min(all, blocks / count) * 2;
  return cost;
}

}  // namespace sluice::kernels::weighted
