// Groups of 16 outputs, a panel each: their strips are short, and their sums too, so that what is done for each group counts. Pixels are
// copied 16 floats at a time, and tiles are pairs of runs of pixels, the same pixels of two rows where there are two:
//
//     row 0:  a a a a a a a  b b b b b b b       tile a, tile b
//     row 1:  a a a a a a a  b b b b b b b
//     row 2:  c c c c c c c  c c c c c c c       tile c
#include <algorithm>
#include <cstring>

#include "src/kernels/weighted/direct.h"
#include "src/kernels/weighted/strip.h"

namespace sluice::kernels::weighted {
namespace {

template <std::int64_t kDepth>
void copy_pixels(const std::byte* from, std::int64_t pitch, std::int64_t count, float* to) noexcept {
  for (std::int64_t i = 0; i < count; ++i, from += pitch, to += kDepth) {
    __builtin_prefetch(from + kDepth * sizeof(float), 0, 2);  // of the group that follows
    std::memcpy(to, from, kDepth * sizeof(float));
  }
}

/// As fill_strip, of an area without gaps.
void fill_group(const RowView& in, const Window& w, const StripArea& area, std::int64_t first_channel, const StripPlan& plan,
                float* strip) noexcept {
  constexpr std::int64_t kDepth = kPanelLanes;
  const std::int64_t left = std::clamp<std::int64_t>(-area.column, 0, area.columns);
  const std::int64_t end = std::clamp<std::int64_t>(in.pixels - area.column, left, area.columns);
  const auto clear = [](float* to, std::int64_t pixels) {
    for (float* const last = to + pixels * kDepth; to < last; to += kDepth) std::memset(to, 0, kDepth * sizeof(float));
  };
  for (std::int64_t r = 0; r < area.rows; ++r) {
    float* const to = strip + r * plan.in_columns * kDepth;
    const std::int64_t row = area.row + r;
    const bool inside = row >= 0 && row < w.in_h && left < end;
    clear(to, inside ? left : area.columns);
    if (!inside) continue;
    const float* const from = in.at<float>(area.image * w.in_h + row, area.column + left) + first_channel;
    copy_pixels<kDepth>(reinterpret_cast<const std::byte*>(from), in.pixel_pitch, end - left, to + left * kDepth);
    clear(to + end * kDepth, area.columns - end);
  }
}

/// One unit: a group, an area.
class GroupUnit {
 public:
  GroupUnit(const KernelCall& call, const StripPlan& plan, const OutArea& area, const Block& block, const float* strip) noexcept
      : w_(call.parameters<ConvolutionParameters>().window),
        area_(area),
        out_(call.outputs[0].view),
        residual_(weighted_of(call).epilogue.has_residual ? &call.inputs.back().view : nullptr),
        channel_(block.channel),
        strip_(strip),
        row_floats_((plan.rows_apart ? 1 : w_.stride_h) * plan.in_columns * plan.depth),
        pieces_(ceil_div(area.columns.size(), kMostRunPixels)) {
    constexpr auto kFloat = static_cast<std::int64_t>(sizeof(float));
    runs_.a_pixel = (plan.columns_apart ? 1 : w_.stride_w) * plan.depth;
    runs_.out_pixel = out_.pixel_pitch / kFloat;
    if (residual_ != nullptr) runs_.residual_pixel = residual_->pixel_pitch / kFloat;
  }

  void run(const TileTable& tiles, TileJob& job) noexcept {
    const std::int64_t rows = area_.rows.size();
    for (std::int64_t y = 0; y < rows; y += 2)
      for (std::int64_t i = 0; i < pieces_; ++i) {
        runs_.count = 0;
        add(y, i);
        if (y + 1 < rows) {
          add(y + 1, i);
        } else if (i + 1 < pieces_ && piece(i + 1).size() == runs_.pixels) {
          add(y, ++i);
        }
        tiles.pair(runs_, job);
        job.next_panels = nullptr;
      }
  }

 private:
  Interval<std::int64_t> piece(std::int64_t i) const noexcept { return even_part({0, area_.columns.size()}, i, pieces_); }
  void add(std::int64_t y, std::int64_t i) noexcept {
    const Interval<std::int64_t> columns = piece(i);
    const std::int64_t row = area_.image * w_.out_h + area_.rows.begin + y, column = area_.columns.begin + columns.begin;
    runs_.pixels = static_cast<int>(columns.size());
    runs_.a[runs_.count] = strip_ + y * row_floats_ + columns.begin * runs_.a_pixel;
    runs_.out[runs_.count] = out_.at<float>(row, column) + channel_;
    if (residual_ != nullptr) runs_.residual[runs_.count] = residual_->at<float>(row, column) + channel_;
    ++runs_.count;
  }

  const Window& w_;
  const OutArea& area_;
  const RowView& out_;
  const RowView* const residual_;
  const std::int64_t channel_;
  const float* const strip_;
  const std::int64_t row_floats_;
  const std::int64_t pieces_;
  RunPair runs_;
};

/// What is fetched meanwhile: the panel of the group that follows, or a part of the next step's weights that is as long.
const float* panel_after(const KernelCall& call, const Blocks& blocks, const UnitPlace& place) noexcept {
  if (place.units_before > 0) return nullptr;
  if (place.next_block != place.block) return make_job(call, blocks[place.next_block]).panels;
  const bool next_step = place.last && call.next_weights.size() >= weighted_of(call).panels.panel_bytes.count();
  return next_step ? reinterpret_cast<const float*>(call.next_weights.data()) : nullptr;
}

}  // namespace

bool has_groups_of_panels(const ConvolutionParameters& conv) noexcept {
  const Window& w = conv.window;
  return conv.groups > 1 && conv.group_outputs() == kPanelLanes && conv.group_depth() == kPanelLanes && w.dilation_h == 1 &&
         w.dilation_w == 1 && !is_narrow(conv.weighted.panels.layout);
}

void run_group_runs(const KernelCall& call, const TileTable& tiles) noexcept {
  const auto& conv = call.parameters<ConvolutionParameters>();
  const int threads = thread_count(call);
  const StripCut cut = cut_strips(conv, {call.rows, call.channels, threads}, Direction::kForward);
  const StripPlan& plan = cut.strip;
  const OutAreas areas(call.rows, conv.window, plan);
  const Strips strips(call.workspace, plan, threads);
  set_segments(conv.window, plan, strips.segment_offsets(0));
  for_each_unit(call, cut.units.count(), [&](std::int64_t unit, int thread) noexcept {
    const UnitPlace place = cut.units[unit];
    const OutArea area = areas[place.run];
    const Block block = cut.blocks[place.block];
    float* const strip = strips.strip(thread);
    for_each_area(conv.window, area, plan, [&](const StripArea& part, std::int64_t first) {
      fill_group(call.inputs[0].view, conv.window, part, block.group * plan.depth, plan, strip + first * plan.depth);
    });
    TileJob job = make_job(call, block);
    job.segment_offsets = strips.segment_offsets(0);
    job.segments = plan.segments;
    job.depth = conv.window.taps() / plan.segments * plan.depth;
    job.next_panels = panel_after(call, cut.blocks, place);
    GroupUnit(call, plan, area, block, strip).run(tiles, job);
  });
}

}  // namespace sluice::kernels::weighted
