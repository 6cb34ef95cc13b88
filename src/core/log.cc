#include "sluice/core/log.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace sluice {

void tell(const LogHook& hook, LogLevel level, const char* format, ...) noexcept {
  if (!hook.wants(level)) return;
  char text[kLogTextBytes + 1];
  va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (length < 0) return;
  hook.call(hook.context, level, {text, std::min(static_cast<std::size_t>(length), kLogTextBytes)});
}

}  // namespace sluice
