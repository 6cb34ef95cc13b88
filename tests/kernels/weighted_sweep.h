// Runs one problem in many ways and compares each with the plain loop, bit for bit.
#pragma once

#include <catch2/catch.hpp>
#include <string>

#include "tests/kernels/weighted_harness.h"

namespace sluice::kernels::test {

/// A way to run a node.
struct Way {
  const char* name;
  std::int64_t band_rows;     // 0: all rows in one step
  std::int64_t slice_panels;  // 0: all channels in one step
  Form form;
  int threads = 1;
  bool in_place = false;
  bool alone = false;  // one thread does what is cut for all
};

inline std::vector<Way> ways() {
  return {
      {"whole", 0, 0, {}},
      {"pitches, slices", 0, 1, {.pixel_gap = 5, .row_gap = 3}, 1, true},
      {"bands in rings, two threads", 3, 0, {.pixel_gap = 0, .row_gap = 7, .in_ring = -1, .out_ring = 5}, 2},
      {"bands and slices, three threads", 2, 2, {.pixel_gap = 1}, 3, true},
      {"whole, two threads, of which one does all", 0, 0, {}, 2, false, true},
  };
}

inline ThreadPool* pool_of(int threads) {
  static const auto two = make_thread_pool(2).value();
  static const auto three = make_thread_pool(3).value();
  return threads == 1 ? nullptr : threads == 2 ? two.get() : three.get();
}

inline std::vector<RowRange> bands_of(const Case& c, std::int64_t rows) {
  std::vector<RowRange> bands;
  const std::int64_t all = c.out_rows();
  for (std::int64_t r = 0; r < all; r += rows == 0 ? all : rows) bands.push_back({r, rows == 0 ? all : std::min(r + rows, all)});
  return bands;
}

inline std::vector<ChannelRange> slices_of(const Case& c, std::int64_t panels) {
  const std::int64_t outputs = c.problem().conv.out_channels;
  if (panels == 0) return {{0, outputs}};
  std::vector<ChannelRange> slices;
  const std::int64_t per_group = c.problem().conv.depthwise() ? 1 : c.per_group();
  const std::int64_t count = model::panel_count(outputs, per_group);
  for (std::int64_t p = 0; p < count; p += panels)
    slices.push_back(model::channels_of_panels({p, std::min(p + panels, count)}, per_group, outputs));
  return slices;
}

inline void sweep(const Problem& problem, Run run, Workspace workspace,
                  const weighted::TileTable& (*tiles)(Isa) noexcept = weighted::tile_table, const std::vector<std::int64_t>& cuts = {}) {
  const Case c(problem);
  const std::vector<float> expected = c.expected();
  for (Isa isa : instruction_sets())
    for (const Way& way : ways()) {
      const auto bands = bands_of(c, way.band_rows);
      Form form = way.form;
      if (form.in_ring < 0) {
        form.in_ring = 1;
        for (const RowRange& band : bands) form.in_ring = std::max(form.in_ring, c.input_rows(band).size());
      }
      bool clean = true;
      ThreadPool* const pool = pool_of(way.threads);
      if (pool != nullptr) pool->keep_to_caller(way.alone);
      const auto out = c.run(run, workspace, tiles(isa), bands, slices_of(c, way.slice_panels), form, pool, way.in_place, clean, cuts);
      const bool same = std::memcmp(out.data(), expected.data(), out.size() * sizeof(float)) == 0;
      if (same && clean) continue;
      std::size_t at = 0;
      while (at < out.size() && std::memcmp(&out[at], &expected[at], sizeof(float)) == 0) ++at;
      const auto& w = problem.conv.window;
      FAIL(name_of(isa) << ", " << way.name << ": " << problem.images << "x" << w.in_h << "x" << w.in_w << "x" << problem.conv.in_channels
                        << " -> " << problem.conv.out_channels << ", kernel " << w.kernel_h << "x" << w.kernel_w << " stride " << w.stride_w
                        << " dilation " << w.dilation_w << " pad " << w.pad_top << " groups " << problem.conv.groups << " function "
                        << static_cast<int>(problem.activation.function)
                        << (same ? ": something beside the output changed" : ": differs first at element ") << at);
    }
  SUCCEED();
}

}  // namespace sluice::kernels::test
