// JSON as the tool prints it: one object, keys in the order of writing.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>

#include "sluice/core/shape.h"
#include "sluice/core/units.h"

namespace sluice::cli {

using Json = nlohmann::ordered_json;

inline Json json_of(const Shape& shape) {
  Json extents = Json::array();
  for (const std::int64_t extent : shape.dims()) extents.push_back(extent);
  return extents;
}

/// Prints `json`, an object, behind the words that say what it is: docs/json.md has the keys of each schema. Names from files may be no
/// valid UTF-8; what is not is replaced.
inline void print_json(const char* schema, const Json& json) {
  constexpr int kVersion = 1;  // rises when a key changes its meaning or type, or goes; new keys come without
  Json whole = {{"schema", schema}, {"schema_version", kVersion}};
  whole.update(json);
  const std::string text = whole.dump(2, ' ', false, Json::error_handler_t::replace);
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fputc('\n', stdout);
}

/// `budget_bytes` is a number always: of an unlimited budget, what the plan takes.
inline void add_budget(Json& json, Bytes budget, Bytes taken) {
  const bool limited = budget < kUnlimitedBytes;
  json["budget_bytes"] = (limited ? budget : taken).count();
  json["budget_limited"] = limited;
}

}  // namespace sluice::cli
