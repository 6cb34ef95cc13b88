#include "src/model/cipher.h"

#include <errno.h>
#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "src/core/wipe.h"

namespace sluice::model {
namespace {

constexpr std::string_view kPurpose = "sluice model file, version 2";
constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;  // OpenSSL counts bytes in an int

static_assert(std::endian::native == std::endian::little, "nonces and associated data are written as they lie in memory");

unsigned char* chars(std::byte* bytes) noexcept { return reinterpret_cast<unsigned char*>(bytes); }
const unsigned char* chars(const std::byte* bytes) noexcept { return reinterpret_cast<const unsigned char*>(bytes); }

/// Little-endian.
WideGcm::Nonce nonce_of(std::uint64_t number) noexcept {
  WideGcm::Nonce nonce{};
  std::memcpy(nonce.data(), &number, sizeof number);
  return nonce;
}
constexpr std::uint64_t nonce_of_stretch(std::uint32_t index) noexcept { return std::uint64_t{index} + 1; }

struct AssociatedWithStretch {
  Salt salt;
  std::uint64_t index;
  std::uint64_t stored_size;
  std::uint64_t raw_size;
};
static_assert(sizeof(AssociatedWithStretch) <= WideGcm::kMostAssociated);

bool hmac_sha256(const Evp& evp, std::span<const std::byte> key, std::span<const std::byte> data,
                 std::span<std::byte, kKeyBytes> out) noexcept {
  unsigned size = kKeyBytes;
  return evp.hmac(evp.sha256(), key.data(), static_cast<int>(key.size()), chars(data.data()), data.size(), chars(out.data()), &size) !=
             nullptr &&
         size == kKeyBytes;
}

/// HKDF (RFC 5869) of one block, which is as long as the key that is wanted.
bool derive_key(const Evp& evp, const Key& key, const Salt& salt, Key& out) noexcept {
  Key extracted;
  std::array<std::byte, kPurpose.size() + 1> info;
  std::memcpy(info.data(), kPurpose.data(), kPurpose.size());
  info.back() = std::byte{1};
  return hmac_sha256(evp, salt, key.bytes(), extracted.bytes()) && hmac_sha256(evp, extracted.bytes(), info, out.bytes());
}

}  // namespace

Key::Key(Key&& other) noexcept : bytes_(other.bytes_) { wipe(other.bytes_); }

Key& Key::operator=(Key&& other) noexcept {
  if (this == &other) return *this;
  bytes_ = other.bytes_;
  wipe(other.bytes_);
  return *this;
}

Key::~Key() { wipe(bytes_); }

Result<Salt> random_salt() noexcept {
  Salt salt;
  for (std::size_t done = 0; done < salt.size();) {
    const ssize_t got = ::getrandom(salt.data() + done, salt.size() - done, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return fail(make_io_error("salt", "the system gives no random bytes", errno));
    done += static_cast<std::size_t>(got);
  }
  return salt;
}

Result<std::shared_ptr<const FileKey>> FileKey::derive(const Key& key, const Salt& salt, std::string_view subject) {
  SLUICE_ASSIGN_OR_RETURN(const Evp* const evp, load_evp(subject));
  auto file_key = std::make_shared<FileKey>();
  file_key->salt_ = salt;
  if (!derive_key(*evp, key, salt, file_key->key_)) return fail(ErrorCode::kInternal, subject, "OpenSSL derived no key");
  return std::shared_ptr<const FileKey>(std::move(file_key));
}

Result<Cipher> Cipher::make(const FileKey& key, Direction direction, std::string_view subject) noexcept {
  SLUICE_ASSIGN_OR_RETURN(const Evp* const evp, load_evp(subject));
  Cipher cipher;
  cipher.evp_ = evp;
  cipher.salt_ = key.salt_;
  cipher.direction_ = direction;
  cipher.context_ = {evp->cipher_ctx_new(), FreeCipherContext{evp}};
  const bool made =
      cipher.context_ != nullptr && evp->cipher_init_ex(cipher.context_.get(), evp->aes_256_gcm(), nullptr, chars(key.key_.bytes().data()),
                                                        nullptr, static_cast<int>(direction)) == 1;
  if (!made) return fail(ErrorCode::kOutOfMemory, subject, "OpenSSL has no memory for a key");
  if (direction == Direction::kDecrypt) {
    std::unique_ptr<const WideGcm> wide = WideGcm::make(key.key_.bytes());
    if (wide && opens_what_openssl_encrypts(*wide, key, subject)) cipher.wide_ = std::move(wide);
  }
  return cipher;
}

/// A text that uses all of its paths, under a nonce that no part of a file has.
bool Cipher::opens_what_openssl_encrypts(const WideGcm& wide, const FileKey& key, std::string_view subject) noexcept {
  constexpr std::uint64_t kNobodys = ~std::uint64_t{0};
  Result<Cipher> openssl = make(key, Direction::kEncrypt, subject);
  std::array<std::byte, 2 * 256 + 3 * 64 + 21> text{};
  const std::span<const std::byte> associated = std::as_bytes(std::span(kPurpose));
  StretchTag tag;
  if (!openssl || !openssl->begin(kNobodys, associated) || !openssl->update(text) || !openssl->take_tag(tag)) return false;
  const bool opened = wide.open(nonce_of(kNobodys), associated, text, tag);
  return opened && std::all_of(text.begin(), text.end(), [](std::byte byte) { return byte == std::byte{}; });
}

bool Cipher::begin_stretch(std::uint32_t index, Bytes stored_size, Bytes raw_size) noexcept {
  const AssociatedWithStretch associated{salt_, index, stored_size.count(), raw_size.count()};
  return begin(nonce_of_stretch(index), std::as_bytes(std::span(&associated, 1)));
}

bool Cipher::open_stretch(std::uint32_t index, Bytes raw_size, const StretchTag& tag, std::span<std::byte> bytes) noexcept {
  if (!wide_) return begin_stretch(index, Bytes(bytes.size()), raw_size) && update(bytes) && agrees_with(tag);
  const AssociatedWithStretch associated{salt_, index, bytes.size(), raw_size.count()};
  return wide_->open(nonce_of(nonce_of_stretch(index)), std::as_bytes(std::span(&associated, 1)), bytes, tag);
}

bool Cipher::begin_header(std::span<const std::byte> prefix) noexcept { return begin(0, prefix); }

bool Cipher::begin(std::uint64_t nonce, std::span<const std::byte> associated) noexcept {
  const WideGcm::Nonce iv = nonce_of(nonce);
  int size = 0;
  return evp_->cipher_init_ex(context_.get(), nullptr, nullptr, nullptr, chars(iv.data()), static_cast<int>(direction_)) == 1 &&
         evp_->cipher_update(context_.get(), nullptr, &size, chars(associated.data()), static_cast<int>(associated.size())) == 1;
}

bool Cipher::update(std::span<std::byte> bytes) noexcept {
  for (; !bytes.empty();) {
    const std::span now = bytes.first(std::min(bytes.size(), kMostAtOnce));
    int size = 0;
    if (evp_->cipher_update(context_.get(), chars(now.data()), &size, chars(now.data()), static_cast<int>(now.size())) != 1) return false;
    bytes = bytes.subspan(now.size());
  }
  return true;
}

bool Cipher::agrees_with(const StretchTag& tag) noexcept {
  StretchTag expected = tag;  // OpenSSL asks for bytes that it could write
  std::array<unsigned char, sizeof(StretchTag)> nothing;
  int size = 0;
  return evp_->cipher_ctx_ctrl(context_.get(), kEvpSetTag, static_cast<int>(expected.size()), expected.data()) == 1 &&
         evp_->cipher_final_ex(context_.get(), nothing.data(), &size) == 1;
}

bool Cipher::take_tag(StretchTag& tag) noexcept {
  std::array<unsigned char, sizeof(StretchTag)> nothing;
  int size = 0;
  return evp_->cipher_final_ex(context_.get(), nothing.data(), &size) == 1 &&
         evp_->cipher_ctx_ctrl(context_.get(), kEvpGetTag, static_cast<int>(tag.size()), tag.data()) == 1;
}

bool open_stretch(Cipher& cipher, const Stretch& stretch, std::uint32_t index, const StretchTag& tag, std::span<std::byte> bytes) noexcept {
  return bytes.size() == stretch.stored_size.count() && cipher.open_stretch(index, stretch.raw_size, tag, bytes);
}

}  // namespace sluice::model
