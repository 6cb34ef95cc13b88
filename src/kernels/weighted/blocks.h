// How a step is cut into units of work for the compute threads, and what all weighted kernels share in setting up tiles.
//
// A unit is a *block* (a run of panels of one group) times a run of output pixels. Blocks are small enough to stay in the L2 cache while
// all pixels pass by; neither blocks nor units change a result.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sluice/core/work.h"
#include "sluice/kernels/call.h"
#include "sluice/operators/parameters/weighted.h"
#include "src/kernels/weighted/tile.h"

namespace sluice::kernels::weighted {

using operators::ConvolutionParameters;
using operators::DenseParameters;
using operators::PanelGeometry;
using operators::WeightedParameters;

/// What the parameters of all kernels of this family begin with.
inline const WeightedParameters& weighted_of(const KernelCall& call) noexcept { return call.parameters<WeightedParameters>(); }

/// Weights that stay in L2 beside a strip: half of the smallest L2 we care for (1 MiB).
inline constexpr std::int64_t kBlockBytes = 512 * 1024;
/// The same where few tiles share a block: the next block is fetched while this one is used, but the first makes its first tile wait.
inline constexpr std::int64_t kSmallBlockBytes = 128 * 1024;
inline constexpr std::int64_t kFewTiles = 16;
/// Tensors up to here may lie in L2 from the step before.
inline constexpr std::int64_t kNearBytes = 1024 * 1024;
inline bool is_far(const RowView& view) noexcept { return view.ring_rows == 0 && view.rows * view.row_pitch > kNearBytes; }
/// Inputs of a unit: 58 KB already give 97 % of the speed of unlimited strips; 192 KB hold a padded 7x7x512 whole and still leave L2 to
/// the weights.
inline constexpr std::int64_t kStripBytes = 192 * 1024;
/// A strip that holds a step's whole input may be so large where smaller ones would give too few tiles to earn their copies.
inline constexpr std::int64_t kWholeStripBytes = 512 * 1024;

/// Part i of [begin, end) cut evenly into n.
constexpr Interval<std::int64_t> even_part(Interval<std::int64_t> whole, std::int64_t i, std::int64_t n) noexcept {
  return {whole.begin + whole.size() * i / n, whole.begin + whole.size() * (i + 1) / n};
}

/// How much longer than with even shares `threads` threads take for `units` units of work in `tasks` tasks: 1 is as good as it gets.
constexpr double unevenness(std::int64_t units, std::int64_t tasks, std::int64_t threads) noexcept {
  return static_cast<double>(ceil_div(tasks, threads) * ceil_div(units, tasks) * threads) / static_cast<double>(units);
}
/// Shares that differ by less than this are even: finding better ones costs as much.
inline constexpr double kEven = 1.1;

/// How many panels should stay together, `most` or fewer down to `least`, so that threads that share `panels` of them have even shares: a slice
/// of a dense layer may have four, which one tile would take.
std::int64_t granule_for_threads(std::int64_t panels, std::int64_t most, std::int64_t least, int threads) noexcept;

/// A run of panels of one group.
struct Block {
  std::int64_t first_panel = 0;  // of the whole weight
  std::int64_t panels = 0;
  std::int64_t group = 0;
  std::int64_t channel = 0;  // first output channel
  int last_lanes = 16;
};

/// A step's output channels, cut into blocks.
class Blocks {
 public:
  /// `block_bytes` bounds the weights of a block; `granule` panels stay together. A single panel that three would leave stays with the last.
  Blocks(const PanelGeometry& geometry, ChannelRange channels, std::int64_t outputs, std::int64_t outputs_per_group,
         std::int64_t block_bytes, std::int64_t granule) noexcept;

  std::int64_t count() const noexcept { return count_; }
  std::int64_t panels() const noexcept { return panels_.size(); }
  bool are_granules() const noexcept { return count_ == granules_; }
  /// As many blocks as panels allow, up to `count`. Blocks of grouped nodes are the groups, whatever is asked.
  void set_count(std::int64_t count) noexcept;
  /// Makes as few more blocks as give `threads` threads even shares, or the most even ones that there are.
  void share(int threads) noexcept;
  /// Of the threads' shares (see above).
  double unevenness(int threads) const noexcept { return weighted::unevenness(are_groups() ? count_ : granules_, count_, threads); }
  Block operator[](std::int64_t i) const noexcept;

 private:
  /// Of grouped nodes, which fill whole panels.
  bool are_groups() const noexcept { return per_group_ < outputs_ && per_group_ >= kPanelLanes; }

  ChannelRange channels_;
  PanelRange panels_;
  std::int64_t outputs_;
  std::int64_t per_group_;
  std::int64_t granule_;
  std::int64_t granules_;
  std::int64_t count_;
};

/// The parts of a tile job that do not depend on how inputs are read.
TileJob make_job(const KernelCall& call, const Block& block) noexcept;

/// The place of a unit. Runs are counted over all parts.
struct UnitPlace {
  std::int64_t block = 0;
  std::int64_t run = 0;
  std::int64_t next_block = 0;    // of this thread; `block` when it has no other
  std::int64_t units_before = 0;  // of this thread, since it came to `block`
  bool last = false;              // of this thread, most likely
};

/// The order of a step's units. Pixels are cut into parts, one a thread, or they are one part and threads share the blocks. In a part,
/// block follows block, and in a block one run of pixels the other:
///
///     part 0: block 0: run 0, run 1; block 1: run 0, run 1 | part 1: block 0: run 2, run 3; block 1: ...
///
/// or, where a run's inputs are copied first, the blocks take turns at each run (`runs_outside`). A thread takes neighbouring units, so
/// with parts it reads what it wrote in the step before.
struct UnitGrid {
  std::int64_t parts = 1;
  std::int64_t blocks = 1;
  std::int64_t runs = 1;  // of a part
  bool runs_outside = false;

  std::int64_t count() const noexcept { return parts * blocks * runs; }
  UnitPlace operator[](std::int64_t unit) const noexcept {
    const std::int64_t part = unit / (blocks * runs), i = unit % (blocks * runs);
    const bool last = i + 1 == blocks * runs;
    if (runs_outside) return {i % blocks, part * runs + i / blocks, last ? i % blocks : (i + 1) % blocks, 0, last};
    const std::int64_t block = i / runs, run = i % runs;
    return {block, part * runs + run, std::min(block + 1, blocks - 1), run, last};
  }
};

/// Should threads share a step by pixels rather than by blocks? Then each reads all weights; else each reads all inputs, and half of them,
/// like half of what it writes, is in another core's cache. That costs 4 times as much a byte, measured on 14x14 and 7x7 maps.
bool shares_pixels(const WeightedParameters& weighted, const StepExtent& extent) noexcept;

/// Should they, where blocks would be the better share, because blocks cannot be shared evenly? Over so many pixels as this asks for, reading
/// the weights twice costs less than a thread that waits for the other.
bool blocks_are_uneven(Blocks blocks, std::int64_t pixels, int threads) noexcept;

/// The weights that a thread will most likely want next: those of its next block, fetched by the first tiles of this one, for memory alone
/// is slower than the first tile of a block; or those of the next step, fetched by the last tiles.
class NextPanels {
 public:
  /// A unit has `tiles` tiles. Of another block of the step what lies `offset` floats behind its begin is wanted.
  NextPanels(const KernelCall& call, const Blocks& blocks, const UnitPlace& place, std::int64_t tiles, std::int64_t offset = 0) noexcept
      : parts_(parts_of(tiles)), first_part_(place.units_before * tiles) {
    if (place.next_block != place.block) {
      panels_ = make_job(call, blocks[place.next_block]).panels + offset;
    } else if (place.last && !call.next_weights.empty()) {
      panels_ = reinterpret_cast<const float*>(call.next_weights.data());
      first_part_ = std::min<std::int64_t>(0, parts_ - tiles);
    }
  }

  /// The unit goes on in its block, in as many tiles, with other weights of it.
  NextPanels(const float* panels, std::int64_t tiles) noexcept : panels_(panels), parts_(parts_of(tiles)) {}

  /// Gives tile `tile` of the unit its part to fetch.
  void set(std::int64_t tile, TileJob& job) const noexcept {
    job.next_part = first_part_ + tile;
    job.next_parts = parts_;
    job.next_panels = job.next_part >= 0 && job.next_part < parts_ ? panels_ : nullptr;
  }
  /// The same for a run of which that is the first tile.
  void set_run(std::int64_t tile, TileJob& job) const noexcept {
    job.next_part = first_part_ + tile;
    job.next_panels = panels_;
  }

 private:
  static std::int64_t parts_of(std::int64_t tiles) noexcept {
    return std::clamp<std::int64_t>(tiles, kTilesOfPrefetch, kMostTilesOfPrefetch);
  }

  const float* panels_ = nullptr;  // null: none
  std::int64_t parts_ = kTilesOfPrefetch;
  std::int64_t first_part_ = 0;  // of the unit's first tile
};

/// Writes the pointers of one pixel after another, along the rows of an area `columns` wide.
class OutputWalk {
 public:
  /// Starts at pixel `x` of output row `row`; `channel` is the block's first, rows begin at `columns.begin`.
  OutputWalk(const KernelCall& call, std::int64_t row, std::int64_t x, Interval<std::int64_t> columns, std::int64_t channel) noexcept
      : out_view_(call.outputs[0].view),
        residual_view_(weighted_of(call).epilogue.has_residual ? &call.inputs.back().view : nullptr),
        row_(row),
        x_(x),
        columns_(columns),
        channel_(channel) {
    find();
  }

  std::int64_t row() const noexcept { return row_; }
  std::int64_t x() const noexcept { return x_; }
  /// Pixels of this row that are left.
  std::int64_t left() const noexcept { return columns_.end - x_; }

  /// Sets the pointers of the next `rows.count` pixels and goes behind them. Their inputs lie `step` floats apart along a row, the first at
  /// `a`; `begin_of_row()` is where the first pixel of a new row reads. Returns where the pixel behind them does.
  template <class BeginOfRow>
  const float* set_tile(const float* a, std::int64_t step, const BeginOfRow& begin_of_row, TileRows& rows) noexcept {
    for (int m = 0; m < rows.count;) {
      const int end = m + static_cast<int>(std::min<std::int64_t>(rows.count - m, left()));
      set_run(m, end, a, step, rows);
      a += (end - m) * step;
      m = end;
      if (x_ < columns_.end) continue;
      x_ = columns_.begin;
      ++row_;
      find();
      a = begin_of_row();
    }
    return a;
  }

  /// The next `count` pixels of this row, and goes behind them. Their inputs lie `step` floats apart, the first at `a`.
  PixelRun run(const float* a, std::int64_t step, std::int64_t count) noexcept {
    constexpr auto kFloat = static_cast<std::int64_t>(sizeof(float));
    PixelRun run{.count = count, .a = a, .a_pixel = step, .out = out_, .out_pixel = out_view_.pixel_pitch / kFloat};
    if (residual_view_ != nullptr) {
      run.residual = residual_;
      run.residual_pixel = residual_view_->pixel_pitch / kFloat;
    }
    x_ += count;
    if (x_ == columns_.end) {
      x_ = columns_.begin;
      ++row_;
    }
    find();
    return run;
  }

  /// Sets the output pointers `m` of `rows` to this pixel.
  void set(int m, TileRows& rows) const noexcept {
    rows.out[m] = out_;
    rows.residual[m] = residual_;
  }

 private:
  /// Pixels [m, end) of a tile, all of this row. Loops of their own: short sums take no longer than finding pointers pixel by pixel.
  void set_run(int m, int end, const float* a, std::int64_t step, TileRows& rows) noexcept {
    x_ += end - m;
    const std::int64_t out_pitch = out_view_.pixel_pitch;
    float* out = out_;
    for (int i = m; i < end; ++i, a += step, out = forward(out, out_pitch)) {
      rows.a[i] = a;
      rows.out[i] = out;
    }
    out_ = out;
    if (residual_view_ == nullptr) return;
    for (int i = m; i < end; ++i, residual_ = forward(residual_, residual_view_->pixel_pitch)) rows.residual[i] = residual_;
  }
  static float* forward(float* p, std::int64_t bytes) noexcept { return reinterpret_cast<float*>(reinterpret_cast<std::byte*>(p) + bytes); }
  void find() noexcept {
    out_ = out_view_.at<float>(row_, x_) + channel_;
    if (residual_view_ != nullptr) residual_ = residual_view_->at<float>(row_, x_) + channel_;
  }

  const RowView& out_view_;
  const RowView* residual_view_;
  std::int64_t row_;
  std::int64_t x_;
  Interval<std::int64_t> columns_;
  std::int64_t channel_;
  float* out_ = nullptr;
  float* residual_ = nullptr;
};

/// For how many threads the step is cut, and its workspace laid out, whoever does the parts.
inline int thread_count(const KernelCall& call) noexcept { return call.pool == nullptr ? 1 : call.pool->thread_count(); }

/// Inside a long unit, where it could be cut: the caller may be wanted elsewhere, as it is asked before each unit (ThreadPool::pause_when).
inline void pause_inside(const KernelCall& call, int thread) noexcept {
  if (call.pool != nullptr && thread == 0) call.pool->pause_if_wanted();
}

/// Runs body(unit, thread) for all units, on the pool if there is one.
template <class Body>
void for_each_unit(const KernelCall& call, std::int64_t units, const Body& body) noexcept {
  if (call.pool == nullptr) {
    for (std::int64_t unit = 0; unit < units; ++unit) body(unit, 0);
  } else {
    parallel_for(*call.pool, units, body);
  }
}

/// One group, or groups that fill whole panels each.
inline bool groups_fill_panels(const ConvolutionParameters& conv) noexcept {
  return conv.groups == 1 || conv.out_channels / conv.groups >= kPanelLanes;
}
/// How much work a part of a node is, for all kernels of this family.
CostFeatures weighted_cost(const WeightedParameters& weighted, const StepExtent& extent) noexcept;

}  // namespace sluice::kernels::weighted
