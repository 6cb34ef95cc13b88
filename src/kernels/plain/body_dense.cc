#include "src/kernels/plain/body.h"
#include "src/kernels/weighted/blocks.h"

namespace sluice::kernels::plain {
namespace {

using weighted::TileJob;
using weighted::TileRows;

/// Sums of fewer bytes of weights are formed by one thread: the others would take longer to come.
constexpr std::int64_t kWorthThreads = 64 * 1024;
constexpr std::int64_t kGranule = 4;  // panels that a tile of few rows takes at once

struct Product {
  const float* x;
  float* out;
  std::int64_t rows, k, n;
};

/// The outputs of some panels, of which `panels.begin` lies at `data`.
void form(const Product& p, const float* data, PanelRange panels) noexcept {
  static constexpr std::int64_t kNoOffset = 0;
  const weighted::TileTable& tiles = weighted::tile_table(active_isa());
  TileJob job;
  job.panels = data;
  job.panel_floats = p.k * kPanelLanes;
  job.panel_count = static_cast<int>(panels.size());
  job.last_lanes = static_cast<int>(std::min(p.n, panels.end * kPanelLanes) - (panels.end - 1) * kPanelLanes);
  job.segment_offsets = &kNoOffset;
  job.depth = p.k;
  for (std::int64_t r = 0; r < p.rows; r += tiles.rows) {
    TileRows rows;
    rows.count = static_cast<int>(std::min<std::int64_t>(tiles.rows, p.rows - r));
    for (int m = 0; m < rows.count; ++m) {
      rows.a[m] = p.x + (r + m) * p.k;
      rows.out[m] = p.out + (r + m) * p.n + panels.begin * kPanelLanes;
      rows.residual[m] = nullptr;
    }
    tiles.panels(rows, job);
  }
}

void form_piece(const Product& p, const WeightPiece& piece, ThreadPool* pool) noexcept {
  const auto* data = reinterpret_cast<const float*>(piece.data);
  const std::int64_t panel_floats = p.k * kPanelLanes;
  // Blocks that stay in the cache while all rows pass by.
  const std::int64_t most = std::max<std::int64_t>(1, weighted::kBlockBytes / (panel_floats * static_cast<std::int64_t>(sizeof(float))));
  const std::int64_t granules = ceil_div(piece.panels.size(), kGranule);
  const bool alone = pool == nullptr || piece.panels.size() * panel_floats * static_cast<std::int64_t>(sizeof(float)) < kWorthThreads;
  const std::int64_t units =
      std::min(granules, std::max(ceil_div(piece.panels.size(), most), alone ? 1 : 2 * std::int64_t{pool->thread_count()}));
  const auto part = [&](std::int64_t unit, int) noexcept {
    const auto g = weighted::even_part({0, granules}, unit, units);
    const PanelRange own{piece.panels.begin + g.begin * kGranule, std::min(piece.panels.end, piece.panels.begin + g.end * kGranule)};
    if (!own.empty()) form(p, data + (own.begin - piece.panels.begin) * panel_floats, own);
  };
  if (!alone) return parallel_for(*pool, units, part);
  for (std::int64_t unit = 0; unit < units; ++unit) part(unit, 0);
}

}  // namespace

PlainRefusal run_body_dense(const PlainTensor& x, const PlainTensor& out, const BodyWeights& weights, std::size_t weight) noexcept {
  const std::int64_t k = x.shape.back(), n = out.shape.back();
  if (out.count() == 0) return nullptr;
  const Product product{x.as<const float>(), out.as<float>(), out.count() / n, k, n};
  const std::int64_t panels = ceil_div(n, kPanelLanes);
  for (WeightPiece piece; piece.panels.end < panels;) {
    piece = weights.take(weight, piece.panels.end);
    if (piece.data == nullptr) return kUnreadWeight;
    weights.expect_after(weight, piece);
    form_piece(product, piece, weights.pool());
  }
  return nullptr;
}

}  // namespace sluice::kernels::plain
