#include "src/kernels/integer/matmul.h"

#include <algorithm>
#include <cstring>

#include "src/kernels/integer/generic.h"
#include "src/kernels/integer/interleave.h"
#include "src/kernels/reference/matrix_lines.h"

namespace sluice::kernels::integer {
namespace {

using operators::IntegerMatMulParameters;

/// Panels of a block at most: with 64 values a line, what they take stays in the first cache beside the lines.
constexpr std::int64_t kBlockBytes = 16 * 1024;

/// How columns are cut into blocks, each of which a thread packs and multiplies by all lines of a batch.
struct Columns {
  std::int64_t panel_bytes = 0;
  std::int64_t panels = 0;  // of a block
  std::int64_t blocks = 0;

  std::int64_t lanes() const noexcept { return panels * kPanelLanes; }
};

Columns columns_of(const IntegerMatMulParameters& p) noexcept {
  Columns made;
  made.panel_bytes = ceil_div(p.depth, 4) * 4 * kPanelLanes;
  const std::int64_t all = ceil_div(p.columns, kPanelLanes);
  made.panels = std::clamp<std::int64_t>(kBlockBytes / made.panel_bytes, std::min<std::int64_t>(4, all), all);
  made.blocks = ceil_div(all, made.panels);
  made.panels = ceil_div(all, made.blocks);
  return made;
}

/// The workspace of a thread: panels, bias, multipliers, and a line of ones.
struct Room {
  std::int8_t* panels = nullptr;
  std::int32_t* bias = nullptr;
  float* multipliers = nullptr;
  std::uint8_t* ones = nullptr;

  static std::int64_t bytes(const IntegerMatMulParameters& p, const Columns& columns) noexcept {
    const std::int64_t used = columns.panels * columns.panel_bytes + columns.lanes() * 8 + ceil_div(p.depth, 4) * 4;
    return ceil_div(used, 64) * 64;
  }
  Room(const IntegerMatMulParameters& p, const Columns& columns, std::byte* workspace, int thread) noexcept {
    std::byte* const begin = workspace + thread * bytes(p, columns);
    panels = reinterpret_cast<std::int8_t*>(begin);
    bias = reinterpret_cast<std::int32_t*>(begin + columns.panels * columns.panel_bytes);
    multipliers = reinterpret_cast<float*>(bias + columns.lanes());
    ones = reinterpret_cast<std::uint8_t*>(multipliers + columns.lanes());
  }
};

/// Sixteen bytes of a line less 128, of which `live` are there; zeros for the others.
Sixteen shifted(const std::byte* line, std::int64_t live) noexcept {
  std::uint8_t bytes[kPanelLanes];
  std::memset(bytes, 128, sizeof bytes);
  std::memcpy(bytes, line, static_cast<std::size_t>(live < kPanelLanes ? live : kPanelLanes));
  Sixteen lanes;
  std::memcpy(&lanes, bytes, sizeof lanes);
  return lanes ^ static_cast<std::uint8_t>(128);
}

/// Columns from `column` on of a right matrix, as one panel.
void pack_panel(const reference::MatrixLines& lines, std::int64_t line, const IntegerMatMulParameters& p, std::int64_t column,
                std::int8_t* to) noexcept {
  const std::byte* from = lines.right(line) + column;
  for (std::int64_t k = 0; k < p.depth; k += 4, to += 4 * kPanelLanes) {
    Sixteen four[4] = {};
    for (std::int64_t i = 0; i < 4 && k + i < p.depth; ++i, from += lines.right_pitch()) four[i] = shifted(from, p.columns - column);
    auto* const bytes = reinterpret_cast<std::byte*>(to);
    interleave(four, {bytes, bytes + 16, bytes + 32, bytes + 48});
  }
}

std::uint32_t sum_of(const std::uint8_t* values, std::int64_t n) noexcept {
  std::uint32_t sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += values[i];
  return sum;
}

/// One block of columns, for lines of one batch.
class ColumnBlock {
 public:
  ColumnBlock(const KernelCall& call, const TileTable& table, const Columns& columns, Interval<std::int64_t> of_batch, std::int64_t block,
              int thread) noexcept
      : call_(call),
        table_(table),
        p_(call.parameters<IntegerMatMulParameters>()),
        lines_(call),
        zeros_(zeros_of(call)),
        rest_(static_cast<std::uint32_t>(zeros_.b) - 128u),
        of_batch_(of_batch),
        column_(block * columns.lanes()),
        room_(p_, columns, call.workspace, thread) {
    job_.panels = room_.panels;
    job_.panel_bytes = columns.panel_bytes;
    const std::int64_t live = std::min(columns.lanes(), p_.columns - column_);
    job_.panel_count = ceil_div(live, kPanelLanes);
    job_.last_lanes = static_cast<int>(live - (job_.panel_count - 1) * kPanelLanes);
    job_.segment_offsets = &kNoOffset;
    job_.depth = ceil_div(p_.depth, 4);
    epilogue_.range = p_.range;
    job_.finish.epilogue = &epilogue_;
  }

  void run() noexcept {
    for (std::int64_t i = 0; i < job_.panel_count; ++i)
      pack_panel(lines_, of_batch_.begin, p_, column_ + i * kPanelLanes, room_.panels + i * job_.panel_bytes);
    set_terms();
    job_.finish.bias = room_.bias;
    job_.finish.multipliers = call_.outputs[0].view.dtype == DType::kI32 ? nullptr : room_.multipliers;
    job_.finish.out = call_.outputs[0].view.dtype;
    const std::int64_t count = ceil_div(of_batch_.size(), table_.rows);
    for (std::int64_t tile = 0; tile < count; ++tile) run_tile(weighted::even_part(of_batch_, tile, count));
  }

 private:
  static constexpr std::int64_t kNoOffset = 0;

  void set_terms() noexcept {
    const std::int64_t lanes = job_.panel_count * kPanelLanes;
    std::fill_n(room_.bias, lanes, 0);
    if (zeros_.a != 0) add_column_sums();
    for (std::int64_t n = 0; n < lanes; ++n) room_.multipliers[n] = p_.multiplier;
    if (p_.run_time < 3) return;
    const Operand& scale = call_.inputs[4];
    const std::int64_t step = scale.shape.element_count() == 1 ? 0 : 1;
    for (std::int64_t n = 0; n < lanes && column_ + n < p_.columns; ++n)
      room_.multipliers[n] = scale.view.at<const float>(0)[(column_ + n) * step];
  }
  /// A line of ones gives the columns' sums.
  void add_column_sums() noexcept {
    std::memset(room_.ones, 1, static_cast<std::size_t>(job_.depth * 4));
    TileRows rows;
    rows.count = 1;
    rows.a[0] = room_.ones;
    rows.out[0] = reinterpret_cast<std::byte*>(room_.multipliers);  // where there is room; what belongs there comes later
    TileJob sums = job_;
    sums.last_lanes = static_cast<int>(kPanelLanes);
    sums.finish = {.bias = room_.bias, .epilogue = &epilogue_, .out = DType::kI32};
    table_.tile(rows, sums);
    const std::uint32_t all = static_cast<std::uint32_t>(p_.depth) * zeros_.a * rest_;
    for (std::int64_t n = 0; n < job_.panel_count * kPanelLanes; ++n) {
      std::uint32_t sum = 0;
      std::memcpy(&sum, room_.multipliers + n, sizeof sum);
      room_.bias[n] = static_cast<std::int32_t>(all - zeros_.a * sum);
    }
  }

  void run_tile(Interval<std::int64_t> part) const noexcept {
    const auto size = static_cast<std::int64_t>(size_of(call_.outputs[0].view.dtype));
    TileRows rows;
    rows.count = static_cast<int>(part.size());
    std::int32_t starts[kMaxTileRows];
    if (rest_ != 0) rows.starts = starts;
    for (int m = 0; m < rows.count; ++m) {
      const std::int64_t line = part.begin + m;
      rows.a[m] = reinterpret_cast<const std::uint8_t*>(lines_.left(line));
      rows.out[m] = lines_.out(line) + column_ * size;
      if (rest_ != 0) starts[m] = static_cast<std::int32_t>(0u - rest_ * sum_of(rows.a[m], p_.depth));
    }
    table_.tile(rows, job_);
  }

  const KernelCall& call_;
  const TileTable& table_;
  const IntegerMatMulParameters& p_;
  const reference::MatrixLines lines_;
  const MatMulZeros zeros_;
  const std::uint32_t rest_;               // the zero point of what the panels hold
  const Interval<std::int64_t> of_batch_;  // lines
  const std::int64_t column_;
  const Room room_;
  IntegerEpilogue epilogue_;
  TileJob job_;
};

}  // namespace

MatMulZeros zeros_of(const KernelCall& call) noexcept {
  const auto& p = call.parameters<IntegerMatMulParameters>();
  if (p.run_time == 0) return {p.zero_a, p.zero_b};
  return {*call.inputs[2].view.at<const std::uint8_t>(0), *call.inputs[3].view.at<const std::uint8_t>(0)};
}

Bytes matmul_workspace(const IntegerMatMulParameters& p, const StepExtent& extent) noexcept {
  return Bytes(static_cast<std::uint64_t>(Room::bytes(p, columns_of(p)) * std::max(1, extent.threads)));
}

void run_matmul(const KernelCall& call, const TileTable& table) noexcept {
  if (call.inputs[1].view.ring_rows != 0) return generic::matmul(call);  // whose lines do not lie at one distance
  const Columns columns = columns_of(call.parameters<IntegerMatMulParameters>());
  const std::int64_t batch = reference::MatrixLines(call).batch();
  const std::int64_t pixels = call.outputs[0].view.pixels;
  const Interval<std::int64_t> lines{call.rows.begin * pixels, call.rows.end * pixels};
  if (lines.size() == 0 || batch == 0) return;
  const std::int64_t first = lines.begin / batch;
  for_each_unit(call, (ceil_div(lines.end, batch) - first) * columns.blocks, [&](std::int64_t unit, int thread) noexcept {
    const std::int64_t begin = (first + unit / columns.blocks) * batch;
    const Interval<std::int64_t> of_batch{std::max(lines.begin, begin), std::min(lines.end, begin + batch)};
    ColumnBlock(call, table, columns, of_batch, unit % columns.blocks, thread).run();
  });
}

}  // namespace sluice::kernels::integer
