// Tensors of one buffer by the bytes that they span, so that a tensor meets only those that it may overlap: a Scan that gathers ten
// thousand results has as many tensors in one buffer, side by side.
//
// Spans are kept in classes of length (powers of two): one that meets [b, e) begins after b less the length of its class and before e.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <map>

#include "sluice/core/interval.h"

namespace sluice::plan {

class SpanIndex {
 public:
  using Span = Interval<std::uint64_t>;

  void clear() {
    for (auto& spans : classes_) spans.clear();
  }
  /// `span` is not empty.
  void add(Span span, std::size_t tensor) { classes_[class_of(span)].emplace(span.begin, Entry{span.end, tensor}); }

  /// Calls `visit(tensor)` for each tensor whose span meets `span`, in no order of meaning; those for which it returns false are removed.
  template <class Visit>
  void visit_meeting(Span span, const Visit& visit) {
    for (std::size_t c = 0; c < classes_.size(); ++c) {
      const std::uint64_t longest = c + 1 < classes_.size() ? std::uint64_t{1} << c : span.begin;
      auto at = classes_[c].lower_bound(span.begin - std::min(span.begin, longest));
      while (at != classes_[c].end() && at->first < span.end)
        at = at->second.end <= span.begin || visit(at->second.tensor) ? std::next(at) : classes_[c].erase(at);
    }
  }

 private:
  struct Entry {
    std::uint64_t end;
    std::size_t tensor;
  };

  /// Class c: lengths of at most 2^c.
  static std::size_t class_of(Span span) noexcept { return static_cast<std::size_t>(std::bit_width(span.end - span.begin - 1)); }

  std::array<std::multimap<std::uint64_t, Entry>, 65> classes_;
};

}  // namespace sluice::plan
