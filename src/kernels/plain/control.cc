// If and Loop whose course is known at run only: one step that runs its subgraphs. Of an If, only the branch that is taken.
#include "sluice/operators/generic/control.h"

#include "sluice/kernels/turns.h"
#include "src/kernels/plain/packed.h"
#include "src/kernels/plain/table.h"

namespace sluice::kernels::plain {
using namespace operators::generic::control;
namespace {

std::int64_t if_turns(const PlainNode&) noexcept { return 1; }

std::int64_t loop_turns(const PlainNode& node) noexcept {
  constexpr std::int64_t kGuess = 16;
  Loop loop;
  return read_loop(node, loop) != nullptr || loop.most == 0 ? kGuess : loop.most;
}

PlainRefusal run_if(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  Results results;
  if (const PlainRefusal refusal = read_results(node, 0, results)) return refusal;
  BodyRunner* const bodies = runner_of(node);
  if (bodies == nullptr) return kNoRunner;
  const std::size_t branch = node.in(0).as<const std::uint8_t>()[0] != 0 ? 0 : 1;
  if (const PlainRefusal fault = bodies->run(branch)) return fault;
  const Packed packed(results, out.data);
  for (std::size_t i = 0; i < results.results(); ++i) {
    const PlainTensor value = value_of(bodies->output(branch, i));
    const Planned most = results.planned(i);
    for (int axis = 0; axis < most.shape.rank(); ++axis)
      if (value.shape[axis] > most.shape[axis]) return kOverBound;
    packed.put(i, value);
  }
  return nullptr;
}

/// The turns of a loop. Carried values lie among the results between two turns, so that a body may use the bytes of its inputs for others.
class Turns {
 public:
  Turns(const Loop& loop, BodyRunner& body, const Packed& packed, bool goes_on) noexcept
      : loop_(loop), body_(body), packed_(packed), goes_on_(goes_on) {}

  PlainRefusal run(std::int64_t limit) noexcept {
    for (; done_ < limit && goes_on_; ++done_) {
      if (const PlainRefusal none = take_turn()) return none;
      if (loop_.stacks() && done_ >= loop_.most) return kOverBound;
      hand_in();
      if (const PlainRefusal fault = body_.run(0)) return fault;
      take_out();
    }
    for (std::size_t i = loop_.carried; i < loop_.results.results(); ++i) {
      Planned stacked = loop_.results.planned(i);
      stacked.shape[0] = done_;
      packed_.set_extents(i, stacked.shape);
    }
    return nullptr;
  }

 private:
  void hand_in() const noexcept {
    *value_of(body_.input(0, 0)).as<std::int64_t>() = done_;
    *value_of(body_.input(0, 1)).as<std::uint8_t>() = 1;
    for (std::size_t i = 0; i < loop_.carried; ++i) {
      const PlainTensor to = value_of(body_.input(0, 2 + i));
      copy_elements(to.data, packed_.values(i), to.count(), to.dtype);
    }
  }

  void take_out() noexcept {
    goes_on_ = *value_of(body_.output(0, 0)).as<const std::uint8_t>() != 0;
    for (std::size_t i = 0; i < loop_.results.results(); ++i) {
      const PlainTensor value = value_of(body_.output(0, 1 + i));
      const std::int64_t size = value.count() * static_cast<std::int64_t>(size_of(value.dtype));
      copy_elements(packed_.values(i) + (i < loop_.carried ? 0 : done_ * size), value.data, value.count(), value.dtype);
    }
  }

  const Loop& loop_;
  BodyRunner& body_;
  const Packed& packed_;
  bool goes_on_;
  std::int64_t done_ = 0;
};

PlainRefusal run_loop(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  Loop loop;
  if (const PlainRefusal refusal = read_loop(node, loop)) return refusal;
  BodyRunner* const bodies = runner_of(node);
  if (bodies == nullptr) return kNoRunner;
  const auto inputs = node.inputs();
  const std::size_t own = loop.own_inputs();
  const Packed packed(loop.results, out.data);
  for (std::size_t i = 0; i < loop.carried; ++i) packed.put(i, inputs[own + i]);
  const bool begins = !loop.has_condition || inputs[own - 1].as<const std::uint8_t>()[0] != 0;
  return Turns(loop, *bodies, packed, begins).run(loop.has_count ? integer_at(inputs[0], 0) : INT64_MAX);
}

// ---- TakeResult: one result, by its number

PlainRefusal run_take(const PlainNode& node, PlainTensor& out, std::byte*) noexcept {
  const PlainTensor& packed = node.in(0);
  const std::int64_t bytes = packed.count(), number = node.integer(kNumber);
  if ((number + 1) * static_cast<std::int64_t>(sizeof(std::int64_t)) > bytes) return kWrongIndex;
  const std::int64_t at = packed.as<const std::int64_t>()[number];
  if (at < 0 || at % 64 != 0 || at > bytes - kExtentBytes) return kWrongIndex;
  Shape extents = out.shape;
  for (int axis = 0; axis < extents.rank(); ++axis) {
    extents[axis] = reinterpret_cast<const std::int64_t*>(packed.data + at)[axis];
    if (extents[axis] < 0 || extents[axis] > out.shape[axis]) return kOverBound;
  }
  const std::int64_t values = extents.element_count() * static_cast<std::int64_t>(size_of(out.dtype));
  if (values > bytes - at - kExtentBytes) return kWrongIndex;
  out.shape = extents;
  copy_elements(out.data, packed.data + at + kExtentBytes, extents.element_count(), out.dtype);
  return nullptr;
}

// ---- Choose: what is not taken may not have been computed, so nothing of it is looked at

PlainRefusal run_choose(const PlainNode& node, PlainTensor& out, std::byte*) noexcept {
  const PlainTensor& taken = node.in(node.in(0).as<const std::uint8_t>()[0] != 0 ? 1 : 2);
  for (int axis = 0; axis < taken.shape.rank(); ++axis)
    if (taken.shape[axis] > out.shape[axis]) return kOverBound;
  out.shape = taken.shape;
  copy_elements(out.data, taken.data, taken.count(), out.dtype);
  return nullptr;
}

constexpr GenericKernel kControlKernels[] = {
    {"RunIf", run_if, nullptr, nullptr, if_turns},
    {"RunLoop", run_loop, nullptr, nullptr, loop_turns},
    {"TakeResult", nullptr, nullptr, run_take},
    {"Choose", nullptr, nullptr, run_choose},
};

}  // namespace

std::span<const GenericKernel> control_kernels() noexcept { return kControlKernels; }

}  // namespace sluice::kernels::plain
