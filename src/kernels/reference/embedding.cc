#include "src/kernels/reference/embedding.h"

#include <algorithm>
#include <atomic>

#include "sluice/operators/parameters/transformer.h"
#include "src/kernels/reference/kernels.h"
#include "src/kernels/reference/panels.h"
#include "src/kernels/reference/quantised.h"
#include "src/kernels/reference/walk.h"

namespace sluice::kernels::reference {
namespace {

/// Threads that meet it at once say the same.
void report_outside(const KernelCall& call) noexcept {
  if (call.fault != nullptr) std::atomic_ref(call.fault->reason).store("an index lies outside the table", std::memory_order_relaxed);
}

/// The indices of the call's pixels.
class Indices {
 public:
  explicit Indices(const KernelCall& call) noexcept : call_(call), rows_(call.parameters<operators::EmbeddingParameters>().table_rows) {}

  bool exists(std::int64_t index) const noexcept { return index >= 0 && index < rows_; }

  /// Calls body(index, output) for each pixel, shared out over the threads.
  template <class Body>
  void for_each(const Body& body) const noexcept {
    const RowView& out = call_.outputs[0].view;
    for_pixels(call_, [&](std::int64_t row, std::int64_t pixel) {
      body(table_row(call_.inputs[0].view, out, row, pixel, rows_), out.at<float>(row, pixel));
    });
  }

  /// The least one from `first` on; the table's rows if there is none. By one thread: it is one number.
  std::int64_t least_from(std::int64_t first) const noexcept {
    const RowView& out = call_.outputs[0].view;
    std::int64_t least = rows_;
    for (std::int64_t row = call_.rows.begin; row < call_.rows.end; ++row)
      for (std::int64_t pixel = 0; pixel < out.pixels; ++pixel) {
        const std::int64_t index = table_row(call_.inputs[0].view, out, row, pixel, rows_);
        if (index >= first) least = std::min(least, index);
      }
    return least;
  }

 private:
  const KernelCall& call_;
  std::int64_t rows_;
};

/// A step holds the table's rows call.channels; it writes the output rows that ask for one of them. Those that ask for none that exists are
/// written by the step with the table's first row: zeros, and the run is an error.
/// `copy(table, row, to)` writes one from the panels of `table`.
template <class Copy>
void look_up_held(const KernelCall& call, const Copy& copy) noexcept {
  const auto features = call.parameters<operators::EmbeddingParameters>().features;
  const Indices indices(call);
  indices.for_each([&](std::int64_t index, float* to) {
    if (call.channels.contains(index)) {
      copy(call.weights[0], index, to);
    } else if (call.channels.begin == 0 && !indices.exists(index)) {
      std::fill_n(to, features, 0.0f);
      report_outside(call);
    }
  });
}

/// The first panel of the piece that holds a row of the table.
std::int64_t first_panel_of(const KernelCall& call, std::int64_t index) noexcept {
  const std::int64_t each = call.parameters<operators::EmbeddingParameters>().panels_of_piece;
  return index / kPanelLanes / each * each;
}

/// The same of a table that the step does not hold: it reads the pieces that its indices ask for, in rising order, each once. Where one
/// cannot be read it stops: the run is an error then.
template <class Copy>
void look_up_in_pieces(const KernelCall& call, const Copy& copy) noexcept {
  const auto& a = call.parameters<operators::EmbeddingParameters>();
  const Indices indices(call);
  indices.for_each([&](std::int64_t index, float* to) {
    std::fill_n(to, a.features, 0.0f);
    if (!indices.exists(index)) report_outside(call);
  });
  WeightOperand piece = call.weights[0];
  for (std::int64_t next = indices.least_from(0); next < a.table_rows;) {
    const WeightPiece taken = call.reader->take(0, first_panel_of(call, next));
    if (taken.data == nullptr) return;
    piece.data = taken.data;
    piece.panels = taken.panels;
    const ChannelRange rows = channels_of_panels(taken.panels, a.table_rows, a.table_rows);
    next = indices.least_from(rows.end);
    if (next < a.table_rows) call.reader->expect(0, first_panel_of(call, next));
    indices.for_each([&](std::int64_t index, float* to) {
      if (rows.contains(index)) copy(piece, index, to);
    });
  }
}

template <class Copy>
void look_up(const KernelCall& call, const Copy& copy) noexcept {
  call.weights[0].data == nullptr ? look_up_in_pieces(call, copy) : look_up_held(call, copy);
}

}  // namespace

/// [...] indices x panels [rows of the table, features] -> [..., features].
void embedding(const KernelCall& call) noexcept {
  const auto& a = call.parameters<operators::EmbeddingParameters>();
  look_up(call, [&](const WeightOperand& table, std::int64_t index, float* to) {
    const float* lane = PanelReader(table, a.table_rows, 1, a.features).channel(index);
    for (std::int64_t c = 0; c < a.features; ++c) to[c] = lane[c * kPanelLanes];
  });
}

/// The same of a table in narrow panels.
void quantised_embedding(const KernelCall& call) noexcept {
  const auto& a = call.parameters<operators::EmbeddingParameters>();
  look_up(call, [&](const WeightOperand& table, std::int64_t index, float* to) {
    const std::int64_t panel = index / kPanelLanes - table.panels.begin;
    const std::byte* const at = table.data + panel * static_cast<std::int64_t>(a.panels.panel_bytes.count());
    for (std::int64_t c = 0; c < a.features; ++c) to[c] = narrow_value(a.panels.layout, at, c, index % kPanelLanes);
  });
}

}  // namespace sluice::kernels::reference
