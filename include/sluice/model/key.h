// The key of an encrypted model, and how a program gives it.
//
//     program --KeyCallback--> Key --HKDF with the file's salt--> key of this file (src/model/cipher.h) --> header, stretches
//
// The library asks for a key only when it opens an encrypted file, once for each opening, keeps it as long as it takes to derive the file's
// own key from it, and overwrites it then. docs/security.md says against whom this helps.
//
// Invariants: a Key is in one place: it is not copied, and what it moved from or held is overwritten.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <span>

#include "sluice/core/error.h"

namespace sluice::model {

inline constexpr std::size_t kKeyBytes = 32;

class Key {
 public:
  Key() noexcept = default;
  Key(Key&& other) noexcept;
  Key& operator=(Key&& other) noexcept;
  Key(const Key&) = delete;
  Key& operator=(const Key&) = delete;
  ~Key();

  std::span<std::byte, kKeyBytes> bytes() noexcept { return bytes_; }
  std::span<const std::byte, kKeyBytes> bytes() const noexcept { return bytes_; }

 private:
  std::array<std::byte, kKeyBytes> bytes_{};
};

/// Fills in the key of the file that is being opened. An error of its own ends the opening. Empty: there is no key, and an encrypted model
/// is refused with kWrongKey. May throw nothing.
using KeyCallback = std::function<Status(std::span<std::byte, kKeyBytes> key)>;

}  // namespace sluice::model
