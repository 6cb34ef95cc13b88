// control::Scan: one step that runs its subgraph for each place of an axis of its sequences (operators/generic/control.h).
#include "sluice/kernels/turns.h"
#include "sluice/operators/generic/control.h"
#include "src/kernels/plain/packed.h"
#include "src/kernels/plain/table.h"

namespace sluice::kernels::plain {
using namespace operators::generic::control;
namespace {

std::int64_t scan_turns(const PlainNode& node) noexcept {
  control::Scan scan;
  return read_scan(node, scan) != nullptr ? 1 : std::max<std::int64_t>(scan.most, 1);
}

/// Copies between a tensor's place on an axis and a dense slice.
enum class Copy : std::uint8_t { kOut, kIn };
void copy_slice(Copy way, const AxisView& view, std::int64_t place, std::byte* whole, std::byte* slice, DType dtype) noexcept {
  const auto size = static_cast<std::int64_t>(size_of(dtype)) * view.inner;
  for (std::int64_t o = 0; o < view.outer; ++o) {
    std::byte* const at = whole + (o * view.extent + place) * size;
    if (way == Copy::kOut)
      copy_elements(slice + o * size, at, view.inner, dtype);
    else
      copy_elements(at, slice + o * size, view.inner, dtype);
  }
}

/// The places of a scan. States lie among the results between two turns, as the carried values of a loop do.
class Places {
 public:
  Places(const control::Scan& scan, std::span<const PlainTensor> inputs, BodyRunner& body, const Packed& packed) noexcept
      : scan_(scan), inputs_(inputs), body_(body), packed_(packed) {}

  /// All sequences are of one length in this run, which is no more than planned.
  PlainRefusal measure() noexcept {
    for (std::size_t i = 0; i < scan_.sequences(); ++i) {
      const int axis = control::Scan::course(scan_.inputs, i).axis;
      const PlainTensor& sequence = inputs_[scan_.states + i];
      if (!is_slice(body_.input(0, scan_.states + i).shape, axis, sequence.shape)) return kWrongShape;
      const std::int64_t extent = sequence.shape[axis];
      if (extent > scan_.most || (extent < scan_.most && !scan_.bounded) || (i > 0 && extent != length_)) return kWrongShape;
      length_ = extent;
    }
    return nullptr;
  }

  PlainRefusal run() noexcept {
    for (std::int64_t turn = 0; turn < length_; ++turn) {
      if (const PlainRefusal none = take_counted_turn()) return none;
      hand_in(turn);
      if (const PlainRefusal fault = body_.run(0)) return fault;
      take_out(turn);
    }
    for (std::size_t i = scan_.states; i < scan_.results.results(); ++i) {
      Planned stacked = scan_.results.planned(i);
      stacked.shape[scan_.of_result(i).axis] = length_;
      packed_.set_extents(i, stacked.shape);
    }
    return nullptr;
  }

 private:
  std::int64_t place(const Course& course, std::int64_t turn) const noexcept { return course.backward ? length_ - 1 - turn : turn; }

  void hand_in(std::int64_t turn) const noexcept {
    for (std::size_t i = 0; i < scan_.states; ++i) {
      const PlainTensor to = value_of(body_.input(0, i));
      copy_elements(to.data, packed_.values(i), to.count(), to.dtype);
    }
    for (std::size_t i = 0; i < scan_.sequences(); ++i) {
      const PlainTensor &from = inputs_[scan_.states + i], to = value_of(body_.input(0, scan_.states + i));
      const Course course = control::Scan::course(scan_.inputs, i);
      copy_slice(Copy::kOut, axis_view(from.shape, course.axis), place(course, turn), from.data, to.data, to.dtype);
    }
  }

  void take_out(std::int64_t turn) const noexcept {
    for (std::size_t i = 0; i < scan_.results.results(); ++i) {
      const PlainTensor value = value_of(body_.output(0, i));
      if (i < scan_.states) {
        copy_elements(packed_.values(i), value.data, value.count(), value.dtype);
        continue;
      }
      const Course course = scan_.of_result(i);
      const AxisView view{value.shape.count(0, course.axis), length_, value.shape.count(course.axis, value.shape.rank())};
      copy_slice(Copy::kIn, view, place(course, turn), packed_.values(i), value.data, value.dtype);
    }
  }

  const control::Scan& scan_;
  const std::span<const PlainTensor> inputs_;
  BodyRunner& body_;
  const Packed& packed_;
  std::int64_t length_ = 0;
};

PlainRefusal run_scan(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  control::Scan scan;
  if (const PlainRefusal refusal = read_scan(node, scan)) return refusal;
  BodyRunner* const bodies = runner_of(node);
  if (bodies == nullptr) return kNoRunner;
  const Packed packed(scan.results, out.data);
  Places places(scan, node.inputs(), *bodies, packed);
  if (const PlainRefusal refusal = places.measure()) return refusal;
  for (std::size_t i = 0; i < scan.states; ++i) packed.put(i, node.inputs()[i]);
  return places.run();
}

constexpr GenericKernel kScanKernels[] = {
    {"RunScan", run_scan, nullptr, nullptr, scan_turns},
};

}  // namespace

std::span<const GenericKernel> scan_kernels() noexcept { return kScanKernels; }

}  // namespace sluice::kernels::plain
