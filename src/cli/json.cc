#include "src/cli/json.h"

#include <cstdio>
#include <string>

template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace sluice::cli {

void print_json(const char* schema, const Json& json) {
  constexpr int kVersion = 1;  // rises when a key changes its meaning or type or is removed, but not for new keys
  Json whole = {{"schema", schema}, {"schema_version", kVersion}};
  whole.update(json);
  const std::string text = whole.dump(2, ' ', false, Json::error_handler_t::replace);
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fputc('\n', stdout);
}

}  // namespace sluice::cli
