// Tests of encrypted models want OpenSSL's libcrypto, which a cross build's emulator may not find: they are then skipped by name, since ctest
// takes a program that says "SKIPPED:" for skipped.
#pragma once

#include <cstdio>

#include "src/model/evp.h"

namespace sluice::test {

/// Whether the test case that asks can do nothing. Says so.
inline bool without_libcrypto() {
  if (model::load_evp("a test")) return false;
  std::puts("SKIPPED: libcrypto.so.3 cannot be loaded");
  return true;
}

}  // namespace sluice::test
