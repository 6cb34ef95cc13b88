// Inner loops of the class int8: those of every instruction set that this processor has beside the scalar ones, bit by bit. Kernels choose
// one set a process; here all of them run, those too that no SLUICE_ISA names.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <vector>

#include "src/kernels/integer/tile.h"

namespace sluice::kernels::integer {
namespace {

std::vector<const TileTable*> tables() {
  std::vector<const TileTable*> found;
  for (int i = 0; i < kDotIsaCount; ++i)
    if (has_dot_isa(static_cast<DotIsa>(i))) found.push_back(&tile_table(static_cast<DotIsa>(i)));
  return found;
}

template <class T>
std::vector<T> drawn(std::size_t count, std::mt19937& random) {
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(random());
  return values;
}

/// Pixels, weights and ends of a tile with two segments.
struct TileProblem {
  TileProblem(std::int64_t depth_of_segment, std::int64_t panel_count, int last_lanes, DType out_type)
      : depth(depth_of_segment), panels(panel_count), live(16 * panel_count - 16 + last_lanes), out(out_type) {
    std::mt19937 random(static_cast<unsigned>(depth * 64 + live));
    values = drawn<std::uint8_t>(static_cast<std::size_t>(kMaxTileRows * kPitch), random);
    weights = drawn<std::int8_t>(static_cast<std::size_t>(panels * 2 * depth * 64), random);
    bias = drawn<std::int32_t>(static_cast<std::size_t>(panels * 16), random);
    for (std::int32_t& b : bias) b %= 5000;
    for (std::int64_t i = 0; i < panels * 16; ++i) multipliers.push_back(2e-4f + 1e-5f * static_cast<float>(random() % 30));
  }

  std::vector<std::byte> run(const TileTable& table, int count) const {
    const std::size_t width = static_cast<std::size_t>(panels * 16) * 4 + 64;
    std::vector<std::byte> results(static_cast<std::size_t>(kMaxTileRows) * width, std::byte{0x5a});
    const std::int64_t offsets[] = {3, 257};
    const IntegerEpilogue epilogue{.range = {.zero = 100, .low = 20, .high = 240}};
    TileJob job;
    job.panels = weights.data();
    job.panel_bytes = 2 * depth * 64;
    job.panel_count = panels;
    job.last_lanes = static_cast<int>(live - (panels - 1) * 16);
    job.segment_offsets = offsets;
    job.segments = 2;
    job.depth = depth;
    job.finish = {bias.data(), multipliers.data(), &epilogue, out};
    // More pixels than a tile has rows come in turns.
    for (int first = 0; first < count; first += table.rows) {
      TileRows rows;
      rows.count = std::min(table.rows, count - first);
      for (int m = 0; m < rows.count; ++m) {
        rows.a[m] = values.data() + (first + m) * kPitch;
        rows.out[m] = results.data() + static_cast<std::size_t>(first + m) * width;
      }
      table.tile(rows, job);
    }
    return results;
  }

  static constexpr std::int64_t kPitch = 600;
  std::int64_t depth, panels, live;
  DType out;
  std::vector<std::uint8_t> values;
  std::vector<std::int8_t> weights;
  std::vector<std::int32_t> bias;
  std::vector<float> multipliers;
};

/// Multipliers as weights of any scale may give: sums times them leave 32 bits, on both sides of zero.
void make_large(std::vector<float>& multipliers) {
  for (std::size_t i = 0; i < multipliers.size(); ++i) multipliers[i] *= i % 3 == 0 ? -1e11f : i % 3 == 1 ? 1e11f : -1.0f;
}

}  // namespace

TEST_CASE("the way of an instruction set to sum four products is one that this processor has, and no more than SLUICE_ISA says") {
  CHECK(has_dot_isa(DotIsa::kScalar));
  CHECK(dot_isa_of(Isa::kScalar) == DotIsa::kScalar);
  CHECK(has_dot_isa(dot_isa_of(active_isa())));
  CHECK(tile_table(dot_isa_of(active_isa())).isa == dot_isa_of(active_isa()));
#if defined(__aarch64__)
  CHECK(has_dot_isa(DotIsa::kNeon));
#endif
  if (active_isa_name() == "avx2") CHECK(dot_isa_of(Isa::kAvx2) == DotIsa::kAvx2);
  if (active_isa_name() == "avx512-novnni") CHECK(dot_isa_of(Isa::kAvx512) == DotIsa::kAvx512);
}

TEST_CASE("tiles of all instruction sets: rows, panels, lanes, types of outputs") {
  const TileTable& scalar = tile_table(DotIsa::kScalar);
  for (DType out : {DType::kU8, DType::kF32, DType::kI32})
    for (std::int64_t depth : {1, 2, 37})
      for (std::int64_t panels = 1; panels <= 6; ++panels)
        for (int lanes : {1, 8, 11, 16}) {
          const TileProblem problem(depth, panels, lanes, out);
          for (int count = 1; count <= kMaxTileRows; ++count) {
            const std::vector<std::byte> want = problem.run(scalar, count);
            for (const TileTable* table : tables()) {
              INFO(name_of(table->isa) << ", depth " << depth << ", panels " << panels << ", lanes " << lanes << ", rows " << count);
              const bool same = problem.run(*table, count) == want;
              CHECK(same);
            }
          }
        }
}

TEST_CASE("tiles of all instruction sets: multipliers that are negative, and large") {
  for (const bool large : {false, true})
    for (DType out : {DType::kU8, DType::kF32}) {
      TileProblem problem(5, 3, 16, out);
      large ? make_large(problem.multipliers) : void(problem.multipliers.assign(problem.multipliers.size(), -3e7f));
      const std::vector<std::byte> want = problem.run(tile_table(DotIsa::kScalar), kMaxTileRows);
      for (const TileTable* table : tables()) {
        INFO(name_of(table->isa) << ", large " << large);
        const bool same = problem.run(*table, kMaxTileRows) == want;
        CHECK(same);
      }
    }
}

TEST_CASE("windows of all instruction sets") {
  std::mt19937 random(4);
  const auto values = drawn<std::uint8_t>(8 * 1024, random);
  for (std::int64_t channels : {1, 15, 16, 33, 49, 64, 65, 130})
    for (std::int64_t columns : {1, 3, 4, 6})
      for (const bool whole : {true, false}) {
        const std::uint8_t* rows[] = {values.data(), values.data() + 2000, values.data() + 4100};
        WindowRun run{.rows = rows, .row_count = 3, .columns = columns, .column_step = 140, .values = channels, .whole = whole};
        run.range = {.zero = 9, .low = 15, .high = 230};
        run.zero_in = 77;
        run.count = static_cast<float>(3 * columns);
        run.multiplier = 0.9f / run.count;
        run.scale_in = 0.9f;
        for (const auto kind : {&TileTable::largest, &TileTable::mean}) {
          std::vector<std::uint8_t> want(200, 1);
          (tile_table(DotIsa::kScalar).*kind)(run, want.data());
          CHECK(std::all_of(want.begin() + channels, want.end(), [](std::uint8_t beyond) { return beyond == 1; }));
          for (const TileTable* table : tables()) {
            std::vector<std::uint8_t> got(200, 1);
            (table->*kind)(run, got.data());
            CHECK(got == want);
          }
        }
      }
}

TEST_CASE("lanes of all instruction sets: nine taps in even rows, any taps, taps of padding") {
  std::mt19937 random(6);
  const auto values = drawn<std::uint8_t>(16 * 1024, random);
  for (std::int64_t fours : {1, 3, 7})
    for (bool even_rows : {false, true}) {
      if (even_rows && fours != 3) continue;
      // All widths read the same prepared bytes only where all lanes are alike, so each sum is of one weight a tap.
      std::vector<std::int32_t> prepared(static_cast<std::size_t>(fours + 2) * 4 * 64);
      const std::uint8_t* taps[28];
      std::int64_t steps[28];
      for (std::int64_t t = 0; t < fours * 4; ++t) {
        const bool padded = t < 3;
        taps[t] = values.data() + (padded ? 0 : 500 * (t / 3) + 70 * (t % 3));
        steps[t] = padded ? 0 : 75;
      }
      const auto run_on = [&](const TileTable& table, std::uint8_t* out) {
        const auto bytes = static_cast<std::size_t>(table.lane_bytes);
        auto* at = reinterpret_cast<std::byte*>(prepared.data());
        for (std::int64_t t = 0; t < fours; ++t)
          for (std::size_t i = 0; i < 4 * bytes; ++i, ++at)
            *at = static_cast<std::byte>(t == 2 && even_rows && i % 4 != 0 ? 0 : -128 + (t * 4 + static_cast<std::int64_t>(i % 4)) * 19);
        for (std::size_t i = 0; i < bytes; ++i, at += 4) {
          const std::int32_t bias = -7000;
          std::memcpy(at, &bias, 4);
        }
        for (std::size_t i = 0; i < bytes; ++i, at += 4) {
          const float multiplier = 0.003f;
          std::memcpy(at, &multiplier, 4);
        }
        LaneRun run{.taps = taps,
                    .steps = steps,
                    .fours = fours,
                    .even_rows = even_rows,
                    .count = 5,
                    .out = reinterpret_cast<std::byte*>(out),
                    .out_step = 90};
        run.prepared = reinterpret_cast<const std::byte*>(prepared.data());
        run.channels = table.lane_bytes - 3;  // one group: those of wider vectors are compared as far as the narrowest goes
        run.range = {.zero = 120};
        table.lane_run(run);
      };
      std::vector<std::uint8_t> want(1000, 1);
      run_on(tile_table(DotIsa::kScalar), want.data());
      for (const TileTable* table : tables()) {
        std::vector<std::uint8_t> got(1000, 1);
        run_on(*table, got.data());
        bool same = true;
        for (std::size_t i = 0; i < 5; ++i) same = same && std::memcmp(&got[i * 90], &want[i * 90], 13) == 0;
        INFO(name_of(table->isa));
        CHECK(same);
      }
    }
}

TEST_CASE("runs of all instruction sets") {
  std::mt19937 random(5);
  const auto a = drawn<std::uint8_t>(300, random), b = drawn<std::uint8_t>(300, random), results = drawn<std::uint8_t>(256, random);
  std::vector<float> reals;
  for (int i = 0; i < 300; ++i) reals.push_back(static_cast<float>(static_cast<int>(random() % 4000) - 2000) * 0.0037f);
  operators::IntegerBinaryParameters join{.range = {.zero = 50},
                                          .zero_a = 3,
                                          .zero_b = 200,
                                          .scale_a = 0.03f,
                                          .scale_b = 0.05f,
                                          .scale = 0.07f,
                                          .addition = {0.41f, 0.72f, -33.7f, 0}};
  const operators::IntegerBorderParameters border{0.021f, 130};
  for (std::int64_t n : {1, 7, 16, 31, 64, 65, 300})
    for (const TileTable* table : tables()) {
      INFO(name_of(table->isa) << ", " << n << " values");
      const TileTable& scalar = tile_table(DotIsa::kScalar);
      const auto same = [&](const auto& run) {
        std::vector<std::uint8_t> want(1300, 9), got = want;
        run(scalar, want.data());
        run(*table, got.data());
        CHECK(got == want);
      };
      for (BinaryFunction function : {BinaryFunction::kAdd, BinaryFunction::kMul, BinaryFunction::kDiv, BinaryFunction::kMin}) {
        join.function = function;
        same([&](const TileTable& t, std::uint8_t* out) { t.binary(join, {a.data(), 1}, {b.data(), 1}, out, n); });
        same([&](const TileTable& t, std::uint8_t* out) { t.binary(join, {a.data(), 1}, {b.data(), 0}, out, n); });
      }
      same([&](const TileTable& t, std::uint8_t* out) { t.look_up(results.data(), a.data(), out, n); });
      same([&](const TileTable& t, std::uint8_t* out) { t.quantize(border, reals.data(), out, n); });
      same([&](const TileTable& t, std::uint8_t* out) { t.dequantize(border, a.data(), reinterpret_cast<float*>(out), n); });
    }
}

}  // namespace sluice::kernels::integer
