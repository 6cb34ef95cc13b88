// Parts of a concatenation that are made in its ring.
#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "sluice/plan/verify.h"
#include "tests/plan/verify_fixture.h"

namespace sluice::plan {
namespace {

using model::OpKind;

/// x -> relu a -> pool 3x3 b; a and b are put together, and a pool 3x3 reads that. One row at a time, a one ahead: when it makes row 4, row 1
/// of the whole is still to be read.
///
///     a     0  1        2           3           4
///     b           0        1           2           3       a ring of 4 rows of 16 channels: a has the first 8 of them, b the others
///     whole          0        1           2           3
///     out                        0           1           2
struct JoinedSample : HandMade {
  enum : std::size_t { kX, kA, kB, kWhole, kOut };

  JoinedSample() : HandMade("joined") {
    const Shape half{1, 8, 4, 8}, full{1, 8, 4, 16};
    add_tensors({half, half, half, full, full});
    add_input("x", kX);
    add_output("out", kOut);
    model::PoolAttributes pool;
    pool.window = {8, 4, 8, 4, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1};
    add_node(OpKind::kUnary, {kX}, kA);
    add_node(OpKind::kPool, {kA}, kB, pool);
    add_node(OpKind::kConcat, {kA, kB}, kWhole, model::AxisAttributes{3});
    add_node(OpKind::kPool, {kWhole}, kOut, pool);
    add_row(0, 0, 8);
    for (std::int64_t row = 0; row < 9; ++row) {
      add_row(0, row + 1, 8);
      add_row(1, row, 8);
      add_row(2, row, 16);
      add_row(3, row - 1, 16);
    }
    const auto steps = static_cast<std::int64_t>(plan.steps.size());
    add_buffer(BufferKind::kInput, 8 * 128 + 64, steps);
    add_buffer(BufferKind::kActivation, 4 * 256 + 64, steps);
    add_buffer(BufferKind::kOutput, 8 * 256 + 64, steps);
    plan.capacity = plan.arena_bytes;
    plan.tensors = {{BufferId(0), Bytes(), 128, 32, 0},
                    {BufferId(1), Bytes(), 256, 64, 4},
                    {BufferId(1), Bytes(32), 256, 64, 4},
                    {BufferId(1), Bytes(), 256, 64, 4},
                    {BufferId(2), Bytes(), 256, 64, 0}};
  }

  void set_rings(std::int64_t rows) {
    for (const std::size_t t : {kA, kB, kWhole}) plan.tensors[t].ring_rows = rows;
  }

 private:
  void add_row(std::size_t node, std::int64_t row, std::int64_t channels) {
    if (row >= 0 && row < 8) add_step(node, {row, row + 1}, {0, channels});
  }
  void add_buffer(BufferKind kind, std::uint64_t bytes, std::int64_t steps) {
    plan.buffers.push_back({kind, Bytes(bytes), 64, plan.arena_bytes, {0, steps}, false});
    plan.arena_bytes += Bytes(bytes);
  }
};

const std::vector<BreakageOf<JoinedSample>>& breakages() {
  using J = JoinedSample;
  static const std::vector<BreakageOf<J>> all = {
      {"I6", "a part whose next row lies over one of the whole that is still to be read", [](J& s) { s.set_rings(3); }},
      {"I6", "a part of a ring of another length", [](J& s) { s.plan.tensors[J::kB].ring_rows = 3; }},
      {"I6", "parts in each other's place", [](J& s) { std::swap(s.plan.tensors[J::kA].offset, s.plan.tensors[J::kB].offset); }},
      {"I6", "a part beside its place", [](J& s) { s.plan.tensors[J::kB].offset = Bytes(28); }},
      {"I6", "a part that lies dense in a whole that does not", [](J& s) { s.plan.tensors[J::kA].pixel_pitch = 32; }},
      {"I6", "a part whose rows are farther apart", [](J& s) { s.plan.tensors[J::kA].row_pitch = 260; }},
      {"I6", "a tensor that is two parts at once", [](J& s) { s.graph.nodes[2].inputs[1] = TensorId(J::kA); }},
      {"I6", "what is put together along another axis", [](J& s) { s.graph.nodes[2].attributes = model::AxisAttributes{2}; }},
      {"I6", "a part in the ring of what is no concatenation of it",
       [](J& s) {
         s.graph.nodes[2].op = OpKind::kBinary;
         s.graph.nodes[2].attributes = model::BinaryAttributes{model::BinaryFunction::kAdd};
       }},
      {"I6", "a part that is made behind the whole", [](J& s) { std::swap(s.plan.steps[2], s.plan.steps[3]); }},
  };
  return all;
}

}  // namespace

TEST_CASE("parts of a concatenation may be made in its ring, if the whole's row on a part's bytes is read before that") {
  check_passes(JoinedSample());
  JoinedSample longer;
  longer.set_rings(5);
  longer.plan.buffers[1].size = longer.plan.buffers[1].size + Bytes(256);
  longer.plan.buffers[2].offset = longer.plan.buffers[2].offset + Bytes(256);
  longer.plan.arena_bytes += Bytes(256);
  longer.plan.capacity = longer.plan.arena_bytes;
  check_passes(longer);
}

TEST_CASE("a part in a ring that is not at its place, or over a row that is still to be read, is refused") { check_refused(breakages()); }

}  // namespace sluice::plan
