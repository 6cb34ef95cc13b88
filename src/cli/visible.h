// Names and words that others chose, as a terminal may show them: nothing in them ends a line or moves its cursor.
#pragma once

#include <algorithm>
#include <string>

namespace sluice::cli {

inline bool moves_cursor(char c) noexcept { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

/// A name from a file as a table shows it, with a question mark for each such character.
inline std::string visible(std::string name) {
  std::replace_if(name.begin(), name.end(), moves_cursor, '?');
  return name;
}

}  // namespace sluice::cli
