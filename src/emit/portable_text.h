// The headers of include/sluice/portable as they are copied into emitted files. The text is made at configure time.
#pragma once

#include <span>
#include <string_view>

namespace sluice::emit {

struct PortableHeader {
  std::string_view name;
  std::string_view text;
};
/// Each comes after those that it includes.
std::span<const PortableHeader> portable_headers();

}  // namespace sluice::emit
