// AES-256-GCM where the CPU has it in registers of 512 bits (VAES, VPCLMULQDQ): decrypts stretches three times as fast as OpenSSL 3.0, which
// knows no such instructions, and leaves the time to the threads that compute (docs/adr/0029-encryption.md).
//
//     bytes    | 256: four registers of four blocks | 256 | ... | rest, masked |      xor with AES of the counters
//     hash     ((y + c1) H^16 + c2 H^15 + ... + c16 H), reduced once in 16 blocks     products without carries
//
// Everything else stays OpenSSL's: deriving keys, encrypting, headers, and stretches elsewhere. `make` compares its own work with OpenSSL's
// before any is used (Cipher::make).
//
// Invariants: no branch and no address depends on a key or on what was encrypted; the key's schedule and the powers of the hash key are
// overwritten when it goes. One thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "sluice/model/key.h"
#include "sluice/model/weight.h"

namespace sluice::model {

class WideGcm {
 public:
  using Nonce = std::array<std::byte, 12>;
  /// The most that may be associated.
  static constexpr std::size_t kMostAssociated = 256;

  /// nullptr where the CPU lacks it, SLUICE_ISA forbids it, or there is no memory.
  static std::unique_ptr<WideGcm> make(std::span<const std::byte, kKeyBytes> key) noexcept;
  WideGcm(const WideGcm&) = delete;
  WideGcm& operator=(const WideGcm&) = delete;
  ~WideGcm();

  /// Decrypts in place. False: it is not what was encrypted, and must not be used.
  bool open(const Nonce& nonce, std::span<const std::byte> associated, std::span<std::byte> bytes, const StretchTag& tag) const noexcept;

 private:
  WideGcm() = default;

  static constexpr std::size_t kRounds = 14, kLanes = 4, kBlock = 16, kPowers = 16;
  // Each round's key in all lanes; H^16 to H, then zeros for the lanes that a shorter run of blocks leaves empty.
  struct Schedule {
    std::array<std::byte, (kRounds + 1) * kLanes * kBlock> rounds;
    std::array<std::byte, (kPowers + kLanes) * kBlock> powers;
  };
  alignas(64) Schedule schedule_{};

  friend struct WideGcmWork;
};

}  // namespace sluice::model
