// What the verifier of contents notes while it goes through the steps: how far a node has come, and who reads last.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sluice/plan/plan.h"

namespace sluice::plan {

/// How far the steps of one node have come, while they follow the rows.
struct Progress {
  RowRange band;              // of the latest step
  std::int64_t channels = 0;  // of the band that are written
  bool in_order = true;
  bool begun = false;

  void add(const Step& step, std::int64_t all_channels) noexcept {
    if (!begun || step.rows != band) {
      in_order = in_order && step.rows.begin == band.end && (!begun || channels == all_channels);
      band = step.rows;
      channels = 0;
    }
    begun = true;
    channels += step.channels.size();
  }
  /// Rows [0, whole) are written, all channels of them.
  std::int64_t whole(std::int64_t all_channels) const noexcept {
    if (!begun || !in_order) return 0;
    return channels == all_channels ? band.end : band.begin;
  }
};

/// The last reads of some bytes: by which node, and by any other node.
struct LastReads {
  std::int64_t last = -1;
  NodeId node;  // of the last one; invalid: the caller
  std::int64_t by_other = -1;

  void add(std::int64_t at, NodeId by) noexcept {
    if (at < 0) return;
    if (last >= 0 && by == node) {
      last = std::max(last, at);
    } else if (at > last) {
      by_other = last;
      last = at;
      node = by;
    } else {
      by_other = std::max(by_other, at);
    }
  }
  void add(const LastReads& reads) noexcept {
    add(reads.last, reads.node);
    // It is not known which the other was; assuming none can only make the rule stricter.
    by_other = std::max(by_other, reads.by_other);
  }
};

}  // namespace sluice::plan
