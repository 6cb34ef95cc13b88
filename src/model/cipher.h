// Encryption of model files: AES-256-GCM of the header and of each stretch, under a key of the file's own.
//
//     file key   = HKDF-SHA256(key, salt of the prefix, "sluice model file, version 2")
//     header     nonce 0       associated data: the prefix, its hash and tag zero
//     stretch i  nonce i + 1   associated data: salt | i | stored size | raw size, 64 bits each
//
// A nonce is 96 bits, little-endian. The salt is random, so no two files have a key in common; within a file each nonce is used once, so
// none is ever used twice. Numbers and sizes in the associated data tie a stretch to its place, the salt to its file: a stretch that was
// swapped, taken from another file or kept from an older one has another tag. The tags of stretches lie in the header, whose own tag lies
// in the prefix.
//
// Invariants: a FileKey and what a Cipher keeps of it are overwritten when they go; a Cipher allocates nothing after `make`. Bytes that
// `open` did not accept are not plaintext and must not be used. One thread at a time uses a Cipher.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "sluice/core/error.h"
#include "sluice/model/key.h"
#include "sluice/model/weight.h"
#include "src/model/evp.h"
#include "src/model/wide_gcm.h"

namespace sluice::model {

/// The salt of the prefix.
using Salt = std::array<std::byte, 32>;
Result<Salt> random_salt() noexcept;

/// The key of one file.
class FileKey {
 public:
  /// Errors: kUnsupported where OpenSSL cannot be loaded; kInternal when it refuses its work.
  static Result<std::shared_ptr<const FileKey>> derive(const Key& key, const Salt& salt, std::string_view subject);

  const Salt& salt() const noexcept { return salt_; }

 private:
  friend class Cipher;
  Key key_;
  Salt salt_{};
};

struct FreeCipherContext {
  const Evp* evp = nullptr;
  void operator()(void* context) const noexcept { evp->cipher_ctx_free(context); }  // which overwrites the key's schedule
};

enum class Direction : int { kDecrypt = 0, kEncrypt = 1 };

class Cipher {
 public:
  /// Errors: kUnsupported, kOutOfMemory.
  static Result<Cipher> make(const FileKey& key, Direction direction, std::string_view subject) noexcept;

  /// Begins stretch `index`, or the header with this prefix.
  bool begin_stretch(std::uint32_t index, Bytes stored_size, Bytes raw_size) noexcept;
  bool begin_header(std::span<const std::byte> prefix) noexcept;
  /// En- or decrypts in place. Pieces of any size.
  bool update(std::span<std::byte> bytes) noexcept;
  /// Decrypting, at the end: whether all of it is what was encrypted, here, with this key.
  bool agrees_with(const StretchTag& tag) noexcept;
  /// Encrypting, at the end.
  bool take_tag(StretchTag& tag) noexcept;
  /// Decrypts stretch `index`, all that was stored of it, in place. False: it is not the one that was encrypted.
  bool open_stretch(std::uint32_t index, Bytes raw_size, const StretchTag& tag, std::span<std::byte> bytes) noexcept;

 private:
  bool begin(std::uint64_t nonce, std::span<const std::byte> associated) noexcept;
  static bool opens_what_openssl_encrypts(const WideGcm& wide, const FileKey& key, std::string_view subject) noexcept;

  const Evp* evp_ = nullptr;
  Salt salt_{};
  Direction direction_ = Direction::kDecrypt;
  std::unique_ptr<void, FreeCipherContext> context_;
  std::unique_ptr<const WideGcm> wide_;  // for stretches; null: OpenSSL
};

/// Decrypts a whole stretch of `graph` in place. False: it is not the one that was encrypted.
bool open_stretch(Cipher& cipher, const Stretch& stretch, std::uint32_t index, const StretchTag& tag, std::span<std::byte> bytes) noexcept;

}  // namespace sluice::model
