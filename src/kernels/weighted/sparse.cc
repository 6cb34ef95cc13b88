#include "src/kernels/weighted/sparse.h"

#include <array>

#include "src/core/build_list.h"
#include "src/kernels/weighted/sparse_rooms.h"
#include "src/kernels/weighted/strip.h"

namespace sluice::kernels::weighted {
namespace {

/// Blocks of strips are pairs (strip.cc).
constexpr std::int64_t kPanelsOfStrips = 2;

// A strip of so many bytes leaves a second cache of 1 MiB room for lists and weights. Turning costs as much as four panels gain.
constexpr std::int64_t kMostStripBytes = 384 * 1024;
constexpr std::int64_t kLeastPanelsOfColumns = 4;
/// Of fewer, the end of a tile's sums takes longer than they do, and turning pixels back is a part of it.
constexpr std::int64_t kLeastValuesOfColumns = 64;
/// With fewer pixels behind the last whole vector, a tile of rows takes less time than another vector.
constexpr std::int64_t kLeastPixelsOfVector = 12;

/// Vectors of pixels of a strip, where a step of so many pixels and panels gains by tiles of columns; else 0. CPUs that have no such tiles
/// have the strip in their workspace too, for a plan may move from one to another.
std::int64_t column_vectors(const WeightedParameters& weighted, std::int64_t pixels, std::int64_t panels) noexcept {
  if (pixels < 16 + kLeastPixelsOfVector || panels < kLeastPanelsOfColumns || weighted.panels.values < kLeastValuesOfColumns) return 0;
  const std::int64_t vector_bytes = weighted.panels.values * 16 * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t most = std::min<std::int64_t>(kMostColumnVectors, kMostStripBytes / vector_bytes);
  if (most < 2) return 0;
  const std::int64_t all = ceil_div(pixels - kLeastPixelsOfVector + 1, std::int64_t{16});
  return ceil_div(all, ceil_div(all, most));  // no strip is much smaller than another
}

/// Is a packed strip of a step of so many pixels and panels small enough for the first cache, and used often enough?
bool may_pack(const WeightedParameters& weighted, std::int64_t pixels, std::int64_t panels) noexcept {
  constexpr std::int64_t kMostBytes = 28 * 1024, kLeastPanels = 8;
  const std::int64_t bytes = kPackedRows * weighted.panels.values * static_cast<std::int64_t>(sizeof(float));
  // The last pixels are filled up to a whole part of a tile, whose other rows are computed for nothing: a twentieth at most.
  const bool fills = 20 * (ceil_div(pixels, std::int64_t{kPackedStep}) * kPackedStep - pixels) <= pixels;
  return pixels >= kPackedTileRows && panels >= kLeastPanels && bytes <= kMostBytes && fills;
}

/// Of either strip.
std::uint64_t strip_bytes(const WeightedParameters& weighted, std::int64_t pixels, std::int64_t panels) noexcept {
  const std::int64_t values = weighted.panels.values;
  const std::int64_t columns = column_vectors(weighted, pixels, panels) * 16 * values;
  const std::int64_t packed = may_pack(weighted, pixels, panels) ? ceil_div(values, std::int64_t{16}) * kPackedPitch : 0;
  return static_cast<std::uint64_t>(std::max(columns, packed)) * sizeof(float);
}

// ---- dense layers and 1x1 convolutions, whose pixels are read in place

/// Which input pixel an output pixel reads.
struct SparseReading {
  std::int64_t in_rows = 1;  // of an image
  std::int64_t out_rows = 1;
  std::int64_t stride_h = 1;
  std::int64_t stride_w = 1;
};

/// How a step is cut: runs of tiles, and for each run block after block, whose lists are made anew; a run's inputs stay in the second
/// cache. Threads share the pixels or the blocks (shares_pixels). Where the inputs of a tile would fill the first cache, all tiles of a run
/// first meet one part of the depth, then the next.
struct SparseCut {
  Blocks blocks;
  std::int64_t pixels;
  std::int64_t tiles;  // of columns: strips
  UnitGrid units;
  std::int64_t vectors = 0;  // of a strip of columns; 0: it is none
  bool packed = false;       // strips are packed
  std::int64_t depths = 1;   // of tiles of rows
};

/// Blocks of these panels, by their bytes.
std::int64_t count_blocks(const operators::PanelGeometry& geometry, const std::uint32_t* ends, PanelRange panels) noexcept {
  const std::int64_t begin = panels.begin == 0 ? 0 : std::int64_t{ends[panels.begin - 1]};
  const std::int64_t bytes = (std::int64_t{ends[panels.end - 1]} - begin) * static_cast<std::int64_t>(kWeightAlignment);
  const std::int64_t bitmaps = panels.size() * SparsePanel::bitmap_bytes_of(geometry.values);
  return (bytes - bitmaps) / (kPanelLanes * static_cast<std::int64_t>(size_of(geometry.layout.dtype)));
}

/// Of 100 inputs of a step, how many blocks they meet.
std::int64_t blocks_of_inputs(const KernelCall& call, const std::uint32_t* ends) noexcept {
  const operators::PanelGeometry& geometry = weighted_of(call).panels;
  return count_blocks(geometry, ends, panels_of_channels(call.channels, geometry.outputs_per_group)) * 100 / geometry.values;
}

/// Are strips packed? Copying an input pays if it meets two blocks. Sums that a step begins and another ends lie as tiles of rows hold them.
bool packs(const KernelCall& call, const SparseTiles& tiles, const std::uint32_t* ends) noexcept {
  constexpr std::int64_t kLeastBlocksOfInputs = 200;
  if (tiles.run_packed == nullptr || call.part != nullptr || blocks_of_inputs(call, ends) < kLeastBlocksOfInputs) return false;
  const WeightedParameters& weighted = weighted_of(call);
  const PanelRange panels = panels_of_channels(call.channels, weighted.panels.outputs_per_group);
  return may_pack(weighted, call.rows.size() * call.outputs[0].view.pixels, panels.size());
}

/// Do the pixels of a step lie one behind the other?
bool pixels_follow(const KernelCall& call, const SparseReading& reading) noexcept {
  const RowView& in = call.inputs[0].view;
  const bool follow = in.row_pitch == in.pixels * in.pixel_pitch && in.ring_rows == 0;
  return follow && reading.stride_h == 1 && reading.stride_w == 1 && reading.in_rows == reading.out_rows;
}

int rows_of_tile(const KernelCall& call, const SparseTiles& tiles) noexcept {
  return call.part == nullptr ? tiles.rows : tiles.rows_of_part;
}

/// Do tiles take pixels that lie evenly, and are those of a step such?
bool lie_evenly(const KernelCall& call, const SparseTiles& tiles, const SparseReading& reading) noexcept {
  return rows_of_tile(call, tiles) > tiles.rows_of_part && pixels_follow(call, reading);
}

/// Vectors of a strip of columns; 0: tiles of rows take the step. Those of columns save less than turning an input costs if it meets fewer
/// than 0.7 blocks, or four where tiles of pixels that lie evenly have their inputs in the first cache.
std::int64_t vectors_of(const KernelCall& call, const SparseTiles& tiles, const SparseReading& reading,
                        const std::uint32_t* ends) noexcept {
  constexpr std::int64_t kLeastBlocksOfInputs = 70, kLeastOfEvenPixels = 400, kMostTileBytes = 36 * 1024, kSameLines = 4096;
  if (tiles.run_columns == nullptr || call.part != nullptr) return 0;
  const std::int64_t pixel_bytes = call.inputs[0].view.pixel_pitch;
  const bool even = lie_evenly(call, tiles, reading) && tiles.rows * pixel_bytes <= kMostTileBytes && pixel_bytes % kSameLines != 0;
  if (blocks_of_inputs(call, ends) < (even ? kLeastOfEvenPixels : kLeastBlocksOfInputs)) return 0;
  const WeightedParameters& weighted = weighted_of(call);
  const PanelRange panels = panels_of_channels(call.channels, weighted.panels.outputs_per_group);
  return column_vectors(weighted, call.rows.size() * call.outputs[0].view.pixels, panels.size());
}

/// On average.
std::int64_t blocks_of_panel(const operators::PanelGeometry& geometry, const std::uint32_t* ends, PanelRange panels) noexcept {
  return std::max<std::int64_t>(1, count_blocks(geometry, ends, panels) / panels.size());
}

/// Panels of a block. Tiles of rows read all of them, so that they stay in the first cache; and a lone tile has the next few come meanwhile.
/// Tiles of pixels that lie evenly take pairs, and read their inputs again for each block.
std::int64_t panels_at_once(const KernelCall& call, const std::uint32_t* ends, bool strips, bool even) noexcept {
  constexpr std::int64_t kBlocksInFirstCache = 256, kLeastOfEven = 8;
  const operators::PanelGeometry& geometry = weighted_of(call).panels;
  const PanelRange panels = panels_of_channels(call.channels, geometry.outputs_per_group);
  const std::int64_t most = panels_of_room(geometry.values, panels.size());
  if (strips) return most;
  const std::int64_t in_cache = kBlocksInFirstCache / blocks_of_panel(geometry, ends, panels);
  return std::min(most, even ? std::max(kLeastOfEven, in_cache / 2 * 2) : std::max<std::int64_t>(kMostSparsePanels, in_cache));
}

/// The sums between the parts of a depth lie on the stack: those of a run of tiles with `kMostSparsePanels` panels.
constexpr std::int64_t kSumsOfRun = 9 * 1024;
std::int64_t tiles_with_sums(const SparseTiles& tiles) noexcept { return kSumsOfRun / (tiles.rows * kMostSparsePanels * kPanelLanes); }

/// Parts of the depth, for so many tiles of rows. To take up sums and leave them must cost little beside their products.
std::int64_t depths_of(const KernelCall& call, const SparseTiles& tiles, const std::uint32_t* ends, std::int64_t tile_count) noexcept {
  constexpr std::int64_t kInputBytes = 24 * 1024, kLeastBlocks = 128, kLeastTiles = 4;
  const operators::PanelGeometry& geometry = weighted_of(call).panels;
  if (!kKeepsSums || call.part != nullptr || tile_count < kLeastTiles) return 1;
  const std::int64_t depths = ceil_div(geometry.values, kInputBytes / (tiles.rows * static_cast<std::int64_t>(sizeof(float))));
  const PanelRange panels = panels_of_channels(call.channels, geometry.outputs_per_group);
  return std::clamp<std::int64_t>(blocks_of_panel(geometry, ends, panels) / kLeastBlocks, 1, depths);
}

SparseCut cut_step(const KernelCall& call, const SparseTiles& tiles, const SparseReading& reading, const std::uint32_t* ends,
                   int threads) noexcept {
  const WeightedParameters& weighted = weighted_of(call);
  const std::int64_t pixels = call.rows.size() * call.outputs[0].view.pixels, outputs = weighted.panels.outputs_per_group;
  const bool packed = packs(call, tiles, ends);
  const std::int64_t vectors = packed ? 0 : vectors_of(call, tiles, reading, ends);
  const bool strips = packed || vectors > 0;
  // The last strip of columns takes a tile of rows, too, for pixels that are no vector.
  std::int64_t count = vectors > 0 ? ceil_div(pixels - kLeastPixelsOfVector + 1, vectors * 16)
                                   : ceil_div(pixels, std::int64_t{packed ? kPackedRows : rows_of_tile(call, tiles)});
  const bool by_pixels = threads > 1 && count >= threads && shares_pixels(weighted, {call.rows, call.channels, threads});
  if (by_pixels && !strips) count = std::min(pixels, ceil_div(count, threads) * threads);
  const std::int64_t panels = panels_of_channels(call.channels, outputs).size();
  const std::int64_t share = by_pixels ? panels : ceil_div(panels, threads);
  const std::int64_t depths = strips ? 1 : depths_of(call, tiles, ends, count);
  const std::int64_t most = panels_at_once(call, ends, strips, count > 1 && lie_evenly(call, tiles, reading));
  const std::int64_t at_once = depths > 1 ? std::min<std::int64_t>(most, kMostSparsePanels) : most;
  std::int64_t granule = std::clamp<std::int64_t>(share, 1, at_once);
  if (granule == 3 && most == 3 && panels > 3) granule = 2;  // a panel that threes leave would be the fourth of a block (Blocks)
  Blocks blocks(weighted.panels, call.channels, outputs, outputs, 1, granule);
  UnitGrid units{.parts = by_pixels ? threads : 1, .blocks = blocks.count(), .runs_outside = true};
  const std::int64_t part_bytes = pixels / units.parts * weighted.panels.values * static_cast<std::int64_t>(sizeof(float));
  units.runs = strips ? ceil_div(count, units.parts) : std::clamp<std::int64_t>(part_bytes / kStripBytes, 1, count / units.parts);
  if (depths > 1) units.runs = std::max(units.runs, ceil_div(ceil_div(count, units.parts), tiles_with_sums(tiles)));
  return {blocks, pixels, count, units, vectors, packed, depths};
}

/// The pixels of a step one after another, from pixel `first` on.
class PixelWalk {
 public:
  PixelWalk(const KernelCall& call, const SparseReading& reading, std::int64_t first, std::int64_t channel) noexcept
      : in_(call.inputs[0].view),
        reading_(reading),
        step_(reading.stride_w * in_.pixel_pitch / static_cast<std::int64_t>(sizeof(float))),
        out_w_(call.outputs[0].view.pixels),
        walk_(call, call.rows.begin + first / out_w_, first % out_w_, {0, out_w_}, channel),
        a_(input()) {}

  /// The pointers of the next `rows.count` pixels.
  void set(TileRows& rows) noexcept {
    a_ = walk_.set_tile(
        a_, step_, [this] { return input(); }, rows);
  }

 private:
  const float* input() const noexcept {
    const std::int64_t row = walk_.row() / reading_.out_rows * reading_.in_rows + walk_.row() % reading_.out_rows * reading_.stride_h;
    return in_.at<float>(row, walk_.x() * reading_.stride_w);
  }

  const RowView& in_;
  const SparseReading& reading_;
  std::int64_t step_;
  std::int64_t out_w_;
  OutputWalk walk_;
  const float* a_;
};

/// Of the next block beside a lone tile: with more of them the hardware, which fetches long runs by itself, is faster alone.
constexpr std::int64_t kMostFetchedBytes = 256 * 1024;

/// Inputs of a step that do not stay in L2 beside its outputs: tiles that lie evenly have those of the next one come from further away.
constexpr std::int64_t kFarBytes = 1024 * 1024;

/// Tiles of rows with a block of panels, whose lists, and sums if it has some, are the job's. `next`: the block that follows, or null.
void run_tiles(const KernelCall& call, const SparseTiles& tiles, const SparseReading& reading, const SparseCut& cut,
               Interval<std::int64_t> run, std::int64_t channel, TileJob job, const BlockList* lists, const float* next) noexcept {
  PixelWalk walk(call, reading, even_part({0, cut.pixels}, run.begin, cut.tiles).begin, channel);
  const std::int64_t bytes = call.inputs[0].view.pixel_pitch;
  job.next_parts = 1;
  const bool fetches = job.sums == nullptr && cut.pixels * bytes > kFarBytes && lie_evenly(call, tiles, reading);
  for (std::int64_t tile = run.begin; tile < run.end; ++tile) {
    TileRows rows;
    rows.count = static_cast<int>(even_part({0, cut.pixels}, tile, cut.tiles).size());
    walk.set(rows);
    // The first tile brings the next block, which lies behind this one, from memory: that alone would be slower than a tile.
    job.next_panels = tile == run.begin ? next : nullptr;
    NextInputs ahead;
    if (fetches && tile + 1 < run.end) {
      const auto* const end = reinterpret_cast<const std::byte*>(rows.a[rows.count - 1]) + bytes;
      ahead = {end, end + bytes * even_part({0, cut.pixels}, tile + 1, cut.tiles).size()};
    }
    tiles.run(rows, job, lists, ahead);
    if (job.sums != nullptr) job.sums += rows.count * job.panel_count * kPanelLanes;
  }
}

/// The blocks of `list` whose places are below `end`, which are taken from it.
BlockList take_below(std::int64_t end, std::int64_t block_bytes, BlockList& list) noexcept {
  const auto* const place = std::lower_bound(list.places, list.places + list.count, static_cast<std::uint32_t>(end));
  const BlockList taken{list.places, list.values, place - list.places};
  list = {place, list.values + taken.count * block_bytes, list.count - taken.count};
  return taken;
}

/// As run_tiles, one part of the depth after the other; the part that follows, of this block of `bytes` or the next, comes meanwhile. Not a
/// part of its caller, whose frame would always have its sums.
[[gnu::noinline]] void run_depths(const KernelCall& call, const SparseTiles& tiles, const SparseReading& reading, const SparseCut& cut,
                                  Interval<std::int64_t> run, const Block& block, std::int64_t bytes, TileJob job,
                                  const BlockList* lists) noexcept {
  const operators::PanelGeometry& geometry = weighted_of(call).panels;
  const auto block_bytes = kPanelLanes * static_cast<std::int64_t>(size_of(geometry.layout.dtype));
  std::array<BlockList, kMostSparsePanels> left, now;
  std::copy_n(lists, block.panels, left.begin());
  alignas(64) float sums[kSumsOfRun];
  job.sums = sums;
  const std::int64_t part_bytes = bytes / (block.panels * cut.depths);
  for (std::int64_t i = 0; i < cut.depths; ++i) {
    const auto depth = even_part({0, geometry.values}, i, cut.depths);
    for (std::size_t p = 0; p < static_cast<std::size_t>(block.panels); ++p) now[p] = take_below(depth.end, block_bytes, left[p]);
    job.begins = i == 0;
    job.ends = i + 1 == cut.depths;
    const std::int64_t ahead = job.ends ? bytes - part_bytes * i : part_bytes;
    run_tiles(call, tiles, reading, cut, run, block.channel, job, now.data(),
              job.panels + ahead / static_cast<std::int64_t>(sizeof(float)));
  }
}

void run_unit(const KernelCall& call, const SparseTiles& tiles, const SparseReading& reading, const SparseCut& cut, std::int64_t unit,
              const ListRooms& rooms, int thread) noexcept {
  const UnitPlace place = cut.units[unit];
  const Block block = cut.blocks[place.block];
  const operators::PanelGeometry& geometry = weighted_of(call).panels;
  const Interval<std::int64_t> products = call.part == nullptr ? Interval<std::int64_t>{0, geometry.values}
                                                               : Interval<std::int64_t>{call.part->products.begin, call.part->products.end};
  const BlockList* const lists = rooms.lists(thread, block, products, geometry.values, [](std::int64_t) { return 0; });
  TileJob job = make_job(call, block);
  const auto run = even_part({0, cut.tiles}, place.run, cut.units.parts * cut.units.runs);
  if (call.part != nullptr) {
    job.begins = products.begin == 0;
    job.ends = products.end == geometry.values;
    // Sums lie block after block, in a block pixel after pixel.
    const std::int64_t panels_before = block.first_panel - cut.blocks[0].first_panel;
    const std::int64_t first = even_part({0, cut.pixels}, run.begin, cut.tiles).begin;
    job.sums = call.part->sums + (panels_before * cut.pixels + first * block.panels) * kPanelLanes;
  }
  const std::int64_t bytes = rooms.bytes_of(block);
  const bool fetches = cut.tiles > 1 || bytes <= kMostFetchedBytes;
  const auto* const next = fetches ? reinterpret_cast<const float*>(reinterpret_cast<const std::byte*>(job.panels) + bytes) : nullptr;
  if (!kKeepsSums || cut.depths == 1) return run_tiles(call, tiles, reading, cut, run, block.channel, job, lists, next);
  run_depths(call, tiles, reading, cut, run, block, bytes, job, lists);
}

/// The tiles of a strip: whole vectors, and a tile of rows, which may be empty.
struct ColumnTiles {
  std::array<TileRows, kMostColumnVectors> vectors;
  int count = 0;
  TileRows rest;
};

/// Pixels that are missing to `count` are the tile's first one again, and what becomes of them goes to `beside`.
void fill_up(TileRows& tile, int count, float* beside) noexcept {
  for (; tile.count < count; ++tile.count) {
    tile.a[tile.count] = tile.a[0];
    tile.residual[tile.count] = tile.residual[0];
    tile.out[tile.count] = beside;
  }
}

/// Inputs of strip `i`, if they lie one behind the other.
NextInputs inputs_of_strip(const KernelCall& call, const SparseReading& reading, const SparseCut& cut, std::int64_t i,
                           std::int64_t block_bytes) noexcept {
  const RowView& in = call.inputs[0].view;
  const std::int64_t pixel_bytes = weighted_of(call).panels.values * static_cast<std::int64_t>(sizeof(float));
  if (i >= cut.tiles || in.pixel_pitch != pixel_bytes || !pixels_follow(call, reading)) return {};
  const std::int64_t first = i * cut.vectors * 16, end = i + 1 == cut.tiles ? cut.pixels : first + cut.vectors * 16;
  const auto* const begin = reinterpret_cast<const std::byte*>(in.at<float>(call.rows.begin, 0));
  return {begin + first * pixel_bytes, begin + end * pixel_bytes, block_bytes <= kMostFetchedBytes};
}

/// A strip times a block of panels.
void run_strip(const KernelCall& call, const SparseTiles& tiles, const SparseReading& reading, const SparseCut& cut, std::int64_t unit,
               const ListRooms& rooms, int thread) noexcept {
  const UnitPlace place = cut.units[unit];
  const Block block = cut.blocks[place.block];
  const std::int64_t values = weighted_of(call).panels.values, strip_pixels = cut.vectors * 16;
  const TileJob job = make_job(call, block);
  const BlockList* const lists = rooms.lists(thread, block, {0, values}, values, [](std::int64_t) { return 0; });
  const std::int64_t bytes = rooms.bytes_of(block);
  const auto strips = even_part({0, cut.tiles}, place.run, cut.units.parts * cut.units.runs);
  for (std::int64_t i = strips.begin; i < strips.end; ++i) {
    const std::int64_t first = i * strip_pixels;
    std::int64_t left = i + 1 == cut.tiles ? cut.pixels - first : strip_pixels;
    PixelWalk walk(call, reading, first, block.channel);
    ColumnTiles columns;
    float beside[kMostListedPanels * kPanelLanes];
    for (; left >= kLeastPixelsOfVector; left -= std::min<std::int64_t>(16, left)) {
      TileRows& tile = columns.vectors[static_cast<std::size_t>(columns.count++)];
      tile.count = static_cast<int>(std::min<std::int64_t>(16, left));
      walk.set(tile);
      fill_up(tile, 16, beside);
    }
    columns.rest.count = static_cast<int>(left);
    if (left > 0) walk.set(columns.rest);
    const bool lone = left == 1 && columns.count == kMostColumnVectors;
    if (columns.count > 0) {
      const float* const strip = rooms.strip(thread, i, [&](float* to) { tiles.turn(columns.vectors.data(), columns.count, values, to); });
      const bool last = place.block + 1 == cut.blocks.count();
      const NextInputs next = last ? inputs_of_strip(call, reading, cut, i + 1, bytes) : NextInputs();
      tiles.run_columns(columns.vectors.data(), columns.count, lone ? columns.rest : TileRows(), job, lists, strip, next);
    }
    if (left > 0 && !lone) tiles.run(columns.rest, job, lists, {});
  }
}

/// A packed strip times a block of panels.
void run_packed(const KernelCall& call, const SparseTiles& tiles, const SparseReading& reading, const SparseCut& cut, std::int64_t unit,
                const ListRooms& rooms, int thread) noexcept {
  const UnitPlace place = cut.units[unit];
  const Block block = cut.blocks[place.block];
  const std::int64_t values = weighted_of(call).panels.values;
  const TileJob job = make_job(call, block);
  const BlockList* const lists = rooms.lists(
      thread, block, {0, values}, values, [](std::int64_t) { return 0; }, kPackedPitch - 16);
  const auto strips = even_part({0, cut.tiles}, place.run, cut.units.parts * cut.units.runs);
  for (std::int64_t i = strips.begin; i < strips.end; ++i) {
    const std::int64_t first = i * kPackedRows, end = std::min(first + kPackedRows, cut.pixels);
    PixelWalk walk(call, reading, first, block.channel);
    std::array<TileRows, kPackedRows / kPackedTileRows> pixels;
    float beside[kMostListedPanels * kPanelLanes];
    int count = 0;
    for (TileRows* tile = pixels.data(); first + count < end; ++tile) {
      tile->count = static_cast<int>(std::min<std::int64_t>(end - first - count, kPackedTileRows));
      walk.set(*tile);
      fill_up(*tile, static_cast<int>(ceil_div(tile->count, kPackedStep)) * kPackedStep, beside);
      count += tile->count;
    }
    const float* const strip = rooms.strip(thread, i, [&](float* to) { tiles.pack(pixels.data(), count, values, to); });
    tiles.run_packed(pixels.data(), count, job, lists, strip);
  }
}

void run_in_place(const KernelCall& call, const SparseTiles& tiles, const SparseReading& reading, const std::uint32_t* ends) noexcept {
  const int threads = thread_count(call);
  const WeightedParameters& weighted = weighted_of(call);
  const SparseCut cut = cut_step(call, tiles, reading, ends, threads);
  const std::int64_t panels = panels_of_channels(call.channels, weighted.panels.outputs_per_group).size();
  const std::uint64_t strip = cut.packed || cut.vectors > 0 ? strip_bytes(weighted, cut.pixels, panels) : 0;
  const ListRooms rooms(call, tiles, ends, panels_of_room(weighted.panels.values, panels), threads, strip);
  const auto run = cut.packed ? run_packed : cut.vectors > 0 ? run_strip : run_unit;
  for_each_unit(call, cut.units.count(),
                [&](std::int64_t unit, int thread) noexcept { run(call, tiles, reading, cut, unit, rooms, thread); });
}

Bytes rooms_workspace(const WeightedParameters& weighted, std::int64_t panels, const StepExtent& extent, std::uint64_t strip = 0) noexcept {
  return Bytes((list_bytes(weighted.panels.values, panels) + strip) * static_cast<std::uint64_t>(extent.threads));
}

Bytes in_place_workspace(const WeightedParameters& weighted, const StepExtent& extent) noexcept {
  const std::int64_t panels = panels_of_channels(extent.channels, weighted.panels.outputs_per_group).size();
  const std::uint64_t strip = strip_bytes(weighted, extent.rows.size() * weighted.out_pixels, panels);
  return rooms_workspace(weighted, panels_of_room(weighted.panels.values, panels), extent, strip);
}

}  // namespace

Bytes sparse_dense_workspace(const SparseDenseParameters& dense, const StepExtent& extent) noexcept {
  return in_place_workspace(dense.dense.weighted, extent);
}

void run_sparse_dense(const KernelCall& call, const SparseTiles& tiles) noexcept {
  run_in_place(call, tiles, {}, call.parameters<SparseDenseParameters>().panel_ends);
}

Bytes sparse_pointwise_workspace(const SparseConvolutionParameters& conv, const StepExtent& extent) noexcept {
  return in_place_workspace(conv.weighted, extent);
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
  const std::int64_t taps_in_segment = w.taps() / plan.segments;

  for_each_unit(call, cut.units.count(), [&](std::int64_t unit, int thread) noexcept {
    const UnitPlace place = cut.units[unit];
    const OutArea area = areas[place.run];
    const Block block = cut.blocks[place.block];
    float* const strip = strips.strip(thread);
    if (!strips.holds(thread, place.run)) {
      for_each_area(w, area, plan, [&](const StripArea& part, std::int64_t first) {
        fill_strip(call.inputs[0].view, w, part, 0, plan, strip + first * plan.pitch());
      });
    }
    const auto first_place = [&](std::int64_t tap) { return offsets[tap / taps_in_segment] + tap % taps_in_segment * plan.pitch(); };
    const BlockList* const lists = rooms.lists(thread, block, {0, conv.weighted.panels.values}, plan.depth, first_place);
    for_each_tile({call, w, plan, area, strip, cut.blocks, place}, make_job(call, block), tiles.rows,
                  [&](const TileRows& rows, const TileJob& job) { tiles.run(rows, job, lists, {}); });
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
