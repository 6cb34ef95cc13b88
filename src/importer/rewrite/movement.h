// Which nodes only move values about, so that they do the same to bytes as to the reals that these stand for.
#pragma once

#include "src/importer/draft.h"

namespace sluice::importer {

/// Copies of elements, the largest of some among them (rounding keeps their order).
bool moves(const Draft& draft, const DraftNode& node);

/// Changes a copying node to move 8-bit quantised values of this scale. False: what it fills in is no value that the bytes have.
bool move_bytes(DraftNode& node, const ByteScale& scale, DType dtype);

/// May `view` be read where `from` lies? A scale that is known of one of them is then of both; where they stand for different reals, no.
bool share_bytes(Value& from, const Value& view);

}  // namespace sluice::importer
