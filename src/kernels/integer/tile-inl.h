// Tiles over a set of vector operations `V` (avx2-inl.h, avx512-inl.h, neon-inl.h, portable-inl.h). Included once for each instruction set,
// in a namespace without external names and behind SLUICE_BEGIN_TARGET.

/// Rows of one panel run, kept in registers: as many vectors as the panels have.
template <int kRows, int kPanels>
struct Tile {
  static constexpr int kOfPanel = static_cast<int>(kPanelLanes) / V::kLanes;  // vectors
  static constexpr int kVectors = kPanels * kOfPanel;
  static constexpr std::int64_t kNextStep = kPanels * kPanelLanes * 4 / kTilesOfPrefetch;  // bytes that each k fetches

  /// Where this tile's part of the panels begins that it fetches; where there is nothing to fetch, at what is in use.
  static SLUICE_INLINE const std::int8_t* next_of(const TileJob& job, std::int64_t panel) {
    const std::int64_t part = job.next_part * (kPanels * job.panel_bytes / kTilesOfPrefetch);
    return job.next_panels == nullptr ? job.panels + panel * job.panel_bytes : job.next_panels + panel * job.panel_bytes + part;
  }

  static SLUICE_INLINE void run(const TileRows& rows, const TileJob& job, std::int64_t panel) {
    const std::int8_t* const panels = job.panels + panel * job.panel_bytes;
    const std::int64_t first = panel * kPanelLanes;
    V::Sums sums[kRows][kVectors];
    SLUICE_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const V::Sums start = V::load(job.finish.bias + first + v * V::kLanes);
      SLUICE_UNROLL
      for (int m = 0; m < kRows; ++m) sums[m][v] = start;
    }
    if (rows.starts != nullptr) {
      SLUICE_UNROLL
      for (int m = 0; m < kRows; ++m) {
        const V::Sums start = V::set_sum(rows.starts[m]);
        SLUICE_UNROLL
        for (int v = 0; v < kVectors; ++v) sums[m][v] = V::plus(sums[m][v], start);
      }
    }
    if constexpr (V::kFetches) {  // the residual comes while the sums are formed
      if (job.finish.epilogue != nullptr && job.finish.epilogue->has_residual) {
        SLUICE_UNROLL
        for (int m = 0; m < kRows; ++m) __builtin_prefetch(rows.residual[m] + first, 0, 3);
      }
    }
    V::Correction correction[kVectors];
    SLUICE_UNROLL
    for (int v = 0; v < kVectors; ++v) correction[v] = V::no_correction();
    const std::int8_t* w = panels;
    const std::int8_t* next = next_of(job, panel);
    for (std::int64_t s = 0; s < job.segments; ++s) {
      const std::int64_t offset = job.segment_offsets[s];
      const std::uint8_t* a[kRows];
      SLUICE_UNROLL
      for (int m = 0; m < kRows; ++m) a[m] = rows.a[m] + offset;
      for (std::int64_t k = 0; k < 4 * job.depth; k += 4, w += kPanelLanes * 4, next += kNextStep) {
        if constexpr (V::kFetches) __builtin_prefetch(next, 0, 2);
        V::Weights weights[kVectors];
        SLUICE_UNROLL
        for (int v = 0; v < kVectors; ++v) {
          weights[v] = V::weights(w + v / kOfPanel * job.panel_bytes + v % kOfPanel * V::kLanes * 4);
          V::correct(correction[v], weights[v]);
        }
        SLUICE_UNROLL
        for (int m = 0; m < kRows; ++m) {
          const std::uint8_t* from = V::kReadsPointers ? const_cast<const std::uint8_t* const volatile&>(rows.a[m]) + offset : a[m];
          const V::Values values = V::values(from + k);
          SLUICE_UNROLL
          for (int v = 0; v < kVectors; ++v) sums[m][v] = V::dot(sums[m][v], values, weights[v]);
        }
      }
    }
    SLUICE_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      SLUICE_UNROLL
      for (int m = 0; m < kRows; ++m) sums[m][v] = V::corrected(sums[m][v], correction[v]);
    }
    const std::int64_t left = (job.panel_count - panel) * kPanelLanes - kPanelLanes + job.last_lanes;
    finish<kRows, kVectors>(sums, rows, job.finish, first, left < kPanels * kPanelLanes ? left : kPanels * kPanelLanes);
  }
};

template <int kRows>
void rows_of(const TileRows& rows, const TileJob& job) {
  std::int64_t panel = 0;
  if constexpr (kRows <= V::kFewRows)
    for (; panel + 4 <= job.panel_count; panel += 4) Tile<kRows, 4>::run(rows, job, panel);
  if constexpr (V::kPairs)
    for (; panel + 2 <= job.panel_count; panel += 2) Tile<kRows, 2>::run(rows, job, panel);
  for (; panel < job.panel_count; ++panel) Tile<kRows, 1>::run(rows, job, panel);
}

template <int kRows>
void choose_rows(const TileRows& rows, const TileJob& job) {
  if constexpr (kRows > 1) {
    if (rows.count < kRows) return choose_rows<kRows - 1>(rows, job);
  }
  rows_of<kRows>(rows, job);
}

void run_tile(const TileRows& rows, const TileJob& job) noexcept { choose_rows<V::kRows>(rows, job); }
