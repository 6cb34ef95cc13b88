// A recurrent node reads in each turn what it made in the turn before, though that is none of its inputs.
#include <catch2/catch.hpp>
#include <string>

#include "tests/plan/verify_fixture.h"

namespace sluice::plan {
namespace {

using model::OpKind;

constexpr std::int64_t kTurns = 4, kHidden = 16, kRowBytes = kHidden * 4;

/// x -> RNN -> unary, a turn of each after the other. The RNN's output has a buffer of its own.
struct Turns : HandMade {
  Turns() : HandMade("turns") {
    const Shape shape{kTurns, 1, kHidden};
    add_tensors({shape, shape, shape});
    add_input("x", 0);
    add_output("y", 2);
    model::RecurrentAttributes rnn;
    rnn.cell = model::Cell::kRnn;
    rnn.hidden = kHidden;
    add_node(OpKind::kRecurrent, {0}, 1, rnn);
    add_node(OpKind::kUnary, {1}, 2);
    for (std::int64_t turn = 0; turn < kTurns; ++turn)
      for (std::size_t node = 0; node < 2; ++node) add_step(node, {turn, turn + 1}, {0, kHidden});
    constexpr std::uint64_t kBytes = kTurns * kRowBytes + 64;
    const BufferKind kinds[] = {BufferKind::kInput, BufferKind::kActivation, BufferKind::kOutput};
    for (std::uint32_t b = 0; b < 3; ++b) {
      plan.buffers.push_back({kinds[b], Bytes(kBytes), 64, Bytes(b * kBytes), {0, 8}, false});
      plan.tensors.push_back({BufferId(b), Bytes(), kRowBytes, kRowBytes, 0});
    }
    plan.arena_bytes = plan.capacity = Bytes(3 * kBytes);
  }
  std::string verdict() const {
    const Status status = verify(plan, graph, context);
    return status ? std::string() : status.error().to_string();
  }
};

TEST_CASE("what a recurrent node reads again of its own output is neither replaced nor in a ring") {
  CHECK(Turns().verdict().empty());
  Turns replaced;
  replaced.plan.tensors[1] = replaced.plan.tensors[2];
  CHECK(replaced.verdict().find("I6") != std::string::npos);
  for (const std::int64_t rows : {1, 2}) {
    Turns ring;
    ring.plan.tensors[1].ring_rows = rows;
    CHECK(ring.verdict().find("I6: a ring of what each turn reads again") != std::string::npos);
  }
}

}  // namespace
}  // namespace sluice::plan
