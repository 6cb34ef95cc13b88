// Scan: one step that runs its body (body.h) for each place of an axis of its sequences (operators/generic/scan.h).
#include "sluice/operators/generic/scan.h"

#include "sluice/kernels/turns.h"
#include "src/kernels/plain/body.h"
#include "src/kernels/plain/packed.h"
#include "src/kernels/plain/table.h"

namespace sluice::kernels::plain {
using namespace operators::generic::scan;
namespace {

using Scan = operators::generic::scan::Scan<Body>;

std::int64_t scan_turns(const PlainNode& node, const PlainWeights& weights) noexcept {
  Scan scan;
  std::int64_t length = 0;
  const Body* const bodies[] = {&scan.body};
  return read_scan(node, scan, length) == nullptr && weights_fit(bodies, weights) ? std::max<std::int64_t>(scan.most, 1) : -1;
}

std::uint64_t scan_scratch(const PlainNode& node) noexcept {
  Scan scan;
  std::int64_t length = 0;
  return read_scan(node, scan, length) != nullptr ? 0 : scan.body.workspace();
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

PlainRefusal run_scan(const PlainNode& node, const PlainTensor& out, std::byte* scratch) noexcept {
  Scan scan;
  std::int64_t length = 0;
  if (const PlainRefusal refusal = read_scan(node, scan, length)) return refusal;
  const Body& body = scan.body;
  const auto inputs = node.inputs();
  const std::span<PlainTensor> tensors = body.begin(scratch);
  const BodyWeights weights(node.call(), 0, body.weights(), true);
  if (!weights.given()) return kWrongWeights;
  for (std::size_t i = 0; i < body.given(); ++i) {
    PlainTensor& to = tensors[body.input(i)];
    if (i < scan.states)
      copy_elements(to.data, inputs[i].data, to.count(), to.dtype);
    else if (i >= scan.states + scan.sequences())
      to = inputs[i];
  }
  const Packed packed(scan, out.data);
  for (std::size_t i = scan.states; i < scan.results(); ++i) {
    Planned planned;
    scan.result(i, planned);
    planned.shape[scan.of_result(i).axis] = length;
    packed.set_extents(i, planned.shape);
  }
  for (std::int64_t step = 0; step < length; ++step) {
    if (const PlainRefusal none = take_counted_turn()) return none;
    const auto place = [&](const Course& course) { return course.backward ? length - 1 - step : step; };
    for (std::size_t i = 0; i < scan.sequences(); ++i) {
      const PlainTensor &from = inputs[scan.states + i], &to = tensors[body.input(scan.states + i)];
      const Course course = Scan::course(scan.inputs, i);
      copy_slice(Copy::kOut, axis_view(from.shape, course.axis), place(course), from.data, to.data, to.dtype);
    }
    if (const PlainRefusal fault = body.run(tensors, scratch, weights)) return fault;
    for (std::size_t i = scan.states; i < scan.results(); ++i) {
      const PlainTensor& value = tensors[body.output(i)];
      const Course course = scan.of_result(i);
      const AxisView view{value.shape.count(0, course.axis), length, value.shape.count(course.axis, value.shape.rank())};
      copy_slice(Copy::kIn, view, place(course), packed.values(i), value.data, value.dtype);
    }
    for (std::size_t i = 0; i < scan.states; ++i) {
      const PlainTensor& value = tensors[body.output(i)];
      copy_elements(tensors[body.input(i)].data, value.data, value.count(), value.dtype);
    }
  }
  for (std::size_t i = 0; i < scan.states; ++i) packed.put(i, tensors[body.input(i)]);
  return nullptr;
}

constexpr GenericKernel kKernels[] = {
    {"ScanControl", run_scan, scan_scratch, nullptr, scan_turns},
};

}  // namespace

std::span<const GenericKernel> scan_kernels() noexcept { return kKernels; }

}  // namespace sluice::kernels::plain
