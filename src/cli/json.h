// JSON as the tool prints it: one object, keys in the order of writing.
#pragma once

#include <nlohmann/json.hpp>

#include "sluice/core/shape.h"
#include "sluice/core/units.h"

// Compiled once, in json.cc: the members of a document are half of what a file that writes one would compile.
extern template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace sluice::cli {

using Json = nlohmann::ordered_json;

inline Json json_of(const Shape& shape) {
  Json extents = Json::array();
  for (const std::int64_t extent : shape.dims()) extents.push_back(extent);
  return extents;
}

/// Prints `json`, an object, after the keys that identify it: docs/json.md has the keys of each schema. Names from files may be no
/// valid UTF-8; what is not is replaced.
void print_json(const char* schema, const Json& json);

/// `budget_bytes` is a number always: of an unlimited budget, what the plan takes.
inline void add_budget(Json& json, Bytes budget, Bytes taken) {
  const bool limited = budget < kUnlimitedBytes;
  json["budget_bytes"] = (limited ? budget : taken).count();
  json["budget_limited"] = limited;
}

}  // namespace sluice::cli
