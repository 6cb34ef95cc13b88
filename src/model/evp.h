// OpenSSL's libcrypto, as far as encrypted models need it: loaded by the first of them, never before.
//
// A program that opens no encrypted model neither links nor loads OpenSSL, and is built without it: this file declares the part of its
// stable interface (EVP and HMAC of version 3) that is used. A program without shared libraries cannot load it, and says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sluice/core/error.h"

namespace sluice::model {

/// OpenSSL's functions by their own names, less the prefix. Opaque types are void.
struct Evp {
  void* (*cipher_ctx_new)();
  void (*cipher_ctx_free)(void* context);
  int (*cipher_ctx_ctrl)(void* context, int type, int argument, void* pointer);
  const void* (*aes_256_gcm)();
  int (*cipher_init_ex)(void* context, const void* cipher, void* engine, const unsigned char* key, const unsigned char* iv, int encrypt);
  int (*cipher_update)(void* context, unsigned char* out, int* out_size, const unsigned char* in, int in_size);
  int (*cipher_final_ex)(void* context, unsigned char* out, int* out_size);
  const void* (*sha256)();
  unsigned char* (*hmac)(const void* digest, const void* key, int key_size, const unsigned char* data, std::size_t size, unsigned char* out,
                         unsigned* out_size);
};

inline constexpr int kEvpGetTag = 0x10;
inline constexpr int kEvpSetTag = 0x11;

/// The library, loaded once for the process and kept. `subject` is the model that wants it. Errors: kUnsupported. Thread-safe.
Result<const Evp*> load_evp(std::string_view subject) noexcept;

}  // namespace sluice::model
