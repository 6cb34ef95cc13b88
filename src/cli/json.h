// JSON as the tool prints it: one object, keys in the order of writing.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>

#include "sluice/core/shape.h"

namespace sluice::cli {

using Json = nlohmann::ordered_json;

inline Json json_of(const Shape& shape) {
  Json extents = Json::array();
  for (const std::int64_t extent : shape.dims()) extents.push_back(extent);
  return extents;
}

/// Names from files may be no valid UTF-8; what is not is replaced.
inline void print_json(const Json& json) {
  const std::string text = json.dump(2, ' ', false, Json::error_handler_t::replace);
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fputc('\n', stdout);
}

}  // namespace sluice::cli
