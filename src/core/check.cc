#include "sluice/core/check.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace sluice {
namespace {

void default_handler(const char* file, int line, const char* condition, const char* reason) {
  std::fprintf(stderr, "%s:%d: broken contract: %s (%s)\n", file, line, reason, condition);
}

std::atomic<CheckHandler> g_handler{&default_handler};

}  // namespace

CheckHandler set_check_handler(CheckHandler handler) noexcept {
  return g_handler.exchange(handler != nullptr ? handler : &default_handler);
}

void detail::check_failed(const char* file, int line, const char* condition, const char* reason) noexcept {
  g_handler.load()(file, line, condition, reason);
  std::abort();
}

}  // namespace sluice
