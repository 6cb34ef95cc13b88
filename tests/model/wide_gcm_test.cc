// The wide decryption beside OpenSSL's encryption: every size up to four turns of its loop, and what nobody has encrypted.
#include "src/model/wide_gcm.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "src/model/evp.h"
#include "tests/model/libcrypto.h"

namespace sluice::model {
namespace {

using ByteVector = std::vector<std::byte>;

struct Text {
  Key key;
  WideGcm::Nonce nonce{};
  ByteVector associated, plain, stored;
  StretchTag tag{};

  Text(std::mt19937& random, std::size_t size, std::size_t associated_size) : associated(associated_size), plain(size) {
    const auto fill = [&](auto& bytes) {
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    };
    const auto key_bytes = key.bytes();
    fill(key_bytes);
    fill(nonce);
    fill(associated);
    fill(plain);
    stored = plain;
    encrypt(**load_evp("a test"));
  }

  void encrypt(const Evp& evp) {
    const auto chars = [](auto& bytes) { return reinterpret_cast<unsigned char*>(bytes.data()); };
    void* const context = evp.cipher_ctx_new();
    int size = 0;
    REQUIRE(evp.cipher_init_ex(context, evp.aes_256_gcm(), nullptr, reinterpret_cast<const unsigned char*>(key.bytes().data()),
                               chars(nonce), 1) == 1);
    if (!associated.empty()) REQUIRE(evp.cipher_update(context, nullptr, &size, chars(associated), static_cast<int>(associated.size())));
    if (!stored.empty()) REQUIRE(evp.cipher_update(context, chars(stored), &size, chars(stored), static_cast<int>(stored.size())));
    std::array<std::byte, 16> rest{};
    REQUIRE(evp.cipher_final_ex(context, chars(rest), &size) == 1);
    REQUIRE(evp.cipher_ctx_ctrl(context, kEvpGetTag, static_cast<int>(tag.size()), tag.data()) == 1);
    evp.cipher_ctx_free(context);
  }

  /// What becomes of `bytes`, between bytes that nobody may touch; nothing if they were refused.
  std::optional<ByteVector> open(const WideGcm& gcm, const ByteVector& bytes, const StretchTag& with) const {
    constexpr std::byte kGuard{0xa5};
    ByteVector guarded(bytes.size() + 2, kGuard);
    std::copy(bytes.begin(), bytes.end(), guarded.begin() + 1);
    const bool opened = gcm.open(nonce, associated, std::span(guarded).subspan(1, bytes.size()), with);
    CHECK(guarded.front() == kGuard);
    CHECK(guarded.back() == kGuard);
    if (!opened) return std::nullopt;
    return ByteVector(guarded.begin() + 1, guarded.end() - 1);
  }
};

template <class Bytes>
Bytes with_a_bit_flipped(Bytes bytes, std::size_t bit) {
  bytes[bit / 8 % bytes.size()] ^= std::byte{1} << bit % 8;
  return bytes;
}

}  // namespace

TEST_CASE("wide decryption opens what OpenSSL has encrypted, and nothing else") {
  if (test::without_libcrypto()) return;
  std::mt19937 random(25);
  for (std::size_t size = 0; size < 1100; ++size) {
    CAPTURE(size);
    Text text(random, size < 1090 ? size : 64 * 1024 + size, size % 3 == 0 ? size % (WideGcm::kMostAssociated + 1) : 56);
    const std::unique_ptr<WideGcm> gcm = WideGcm::make(text.key.bytes());
    if (!gcm) return;  // this CPU has no such instructions
    REQUIRE(text.open(*gcm, text.stored, text.tag) == text.plain);
    REQUIRE_FALSE(text.open(*gcm, text.stored, with_a_bit_flipped(text.tag, random())));
    if (size > 0) REQUIRE_FALSE(text.open(*gcm, with_a_bit_flipped(text.stored, random()), text.tag));
    const WideGcm::Nonce nonce = std::exchange(text.nonce, with_a_bit_flipped(text.nonce, random()));
    REQUIRE_FALSE(text.open(*gcm, text.stored, text.tag));
    text.nonce = nonce;
    if (text.associated.empty()) continue;
    text.associated = with_a_bit_flipped(text.associated, random());
    REQUIRE_FALSE(text.open(*gcm, text.stored, text.tag));
    text.associated.resize(WideGcm::kMostAssociated + 1);
    REQUIRE_FALSE(text.open(*gcm, text.stored, text.tag));
  }
}

}  // namespace sluice::model
