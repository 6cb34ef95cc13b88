#include "sluice/core/log.h"

#include <catch2/catch.hpp>
#include <string>

namespace sluice {
namespace {

struct Heard {
  int lines = 0;
  LogLevel level = LogLevel::kDebug;
  std::string text;
};
void hear(void* context, LogLevel level, std::string_view text) noexcept {
  Heard& heard = *static_cast<Heard*>(context);
  ++heard.lines;
  heard.level = level;
  heard.text = text;
}

}  // namespace

TEST_CASE("a hook is told what it wants to hear, and no more than fits") {
  Heard heard;
  const LogHook hook{&hear, &heard, LogLevel::kWarning};
  tell(hook, LogLevel::kInfo, "%d", 1);
  CHECK(heard.lines == 0);
  tell(hook, LogLevel::kWarning, "%s: %d of %d", "threads", 3, 2);
  CHECK(heard.text == "threads: 3 of 2");
  CHECK(heard.level == LogLevel::kWarning);
  tell(hook, LogLevel::kError, "%s", std::string(2 * kLogTextBytes, 'x').c_str());
  CHECK(heard.text == std::string(kLogTextBytes, 'x'));
  CHECK(heard.lines == 2);
  tell({}, LogLevel::kError, "nobody hears %s", "this");
}

}  // namespace sluice
