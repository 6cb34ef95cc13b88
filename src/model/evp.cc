#include "src/model/evp.h"

#include <dlfcn.h>

#include "src/core/static_program.h"

namespace sluice::model {
namespace {

constexpr const char* kLibrary = "libcrypto.so.3";

enum class Outcome : std::uint8_t { kLoaded, kNoLoader, kNoLibrary, kNoFunction };

struct Loaded {
  Evp evp{};
  Outcome outcome = Outcome::kNoLoader;
};

template <class Function>
bool find(void* library, const char* name, Function& function) noexcept {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

bool find_all(void* library, Evp& evp) noexcept {
  return find(library, "EVP_CIPHER_CTX_new", evp.cipher_ctx_new) && find(library, "EVP_CIPHER_CTX_free", evp.cipher_ctx_free) &&
         find(library, "EVP_CIPHER_CTX_ctrl", evp.cipher_ctx_ctrl) && find(library, "EVP_aes_256_gcm", evp.aes_256_gcm) &&
         find(library, "EVP_CipherInit_ex", evp.cipher_init_ex) && find(library, "EVP_CipherUpdate", evp.cipher_update) &&
         find(library, "EVP_CipherFinal_ex", evp.cipher_final_ex) && find(library, "EVP_sha256", evp.sha256) &&
         find(library, "HMAC", evp.hmac);
}

Loaded load() noexcept {
  Loaded loaded;
  if (statically_linked()) return loaded;  // its dlopen would bring a second C library
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    loaded.outcome = Outcome::kNoLibrary;
    return loaded;
  }
  // No configuration file is read and nothing is done at exit: this library is a guest in its program.
  constexpr std::uint64_t kNoLoadConfig = 0x80, kNoAtExit = 0x80000;
  int (*init)(std::uint64_t options, const void* settings) = nullptr;
  const bool found = find(library, "OPENSSL_init_crypto", init) && init(kNoLoadConfig | kNoAtExit, nullptr) == 1;
  loaded.outcome = found && find_all(library, loaded.evp) ? Outcome::kLoaded : Outcome::kNoFunction;
  return loaded;
}

const char* reason_of(Outcome outcome) noexcept {
  if (outcome == Outcome::kNoLoader) return "the model is encrypted, and this program is static: it cannot load OpenSSL, which decrypts";
  if (outcome == Outcome::kNoLibrary) return "the model is encrypted, and OpenSSL's libcrypto.so.3, which decrypts, cannot be loaded";
  return "the model is encrypted, and OpenSSL's libcrypto.so.3 is not as it should be";
}

}  // namespace

Result<const Evp*> load_evp(std::string_view subject) noexcept {
  static const Loaded loaded = load();
  if (loaded.outcome == Outcome::kLoaded) return &loaded.evp;
  return fail(ErrorCode::kUnsupported, subject, reason_of(loaded.outcome));
}

}  // namespace sluice::model
