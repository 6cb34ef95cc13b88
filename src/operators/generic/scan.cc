// Scan whose sequences come at run.
#include "sluice/operators/generic/scan.h"

#include "src/operators/generic/table.h"

namespace sluice::operators::generic {
using namespace scan;
namespace {

PlainRefusal infer_scan(const PlainNode& node, PlainTensor& out) noexcept {
  Scan<BodyForm> scan;
  std::int64_t length = 0;
  if (const PlainRefusal refusal = read_scan(node, scan, length)) return refusal;
  return infer_packed(scan, out);
}

constexpr PlainOperator kOperators[] = {
    {570, "ScanControl", "what:I inputs:I outputs:I body:I", infer_scan, nullptr, 1, nullptr, false, true},
};

}  // namespace

std::span<const PlainOperator> scan_operators() noexcept { return kOperators; }

}  // namespace sluice::operators::generic
