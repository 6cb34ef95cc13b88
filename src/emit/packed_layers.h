// The layers of a measurer in little flash: one stage at a time is in RAM, and what tells one layer from the next is narrow numbers.
//
//     parameters {{28, 28, 3, 3, ...}, any_floats, ...}   one struct of each kernel in RAM, as of its first layer
//                  |   |   |  |
//                  |   |   +--+--> row {3}                columns of numbers that differ; equal ones share a row's number
//                  +---+---------> in->rows, in->pixels   those that follow from what a layer reads and makes are kept nowhere else
//
// What a layer reads and makes are extents, of which many layers share the same; addresses follow from them (portable/measure.h).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sluice/emit/memory_plan.h"
#include "sluice/emit/network.h"

namespace sluice::emit {

/// One stage of each region is a layer, alone in the arena.
struct Layer {
  const Stage* stage = nullptr;
  std::string parameters;     // its initialiser in C; empty: its kernel has none
  std::uint64_t behind = 0;   // address of what follows its tensors
  bool in_one_pixel = false;  // its tensors lie in one pixel each
  std::string cut;            // an initialiser of sluice_cut; empty: it is not cut
};

struct PackedLayers {
  std::string text;                // tables and functions
  std::vector<std::size_t> order;  // by position in the tables: the number of the layer
  bool wide = false;               // with the wide numbers of portable/measure.h
};

PackedLayers pack_layers(const Network& network, const std::vector<Layer>& layers);

/// A member of a struct of the portable headers, and its type; empty: a pointer.
struct Member {
  std::string name;
  std::string type;
};
/// The members of inner structs stand in their place, so that all are the numbers of an initialiser in order.
std::vector<Member> members_of(std::string_view type);

}  // namespace sluice::emit
