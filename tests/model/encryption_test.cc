// Encrypted model files: what opens them, and that nothing does which somebody has changed.
#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <random>

#include "sluice/core/hash.h"
#include "sluice/model/model_file.h"
#include "sluice/operators/validate.h"
#include "src/model/header.h"
#include "tests/core/fake_file_ops.h"
#include "tests/core/temporary_files.h"
#include "tests/model/libcrypto.h"
#include "tests/model/sample_graph.h"

namespace sluice::model {
namespace {

Key key_of(int seed) {
  Key key;
  for (std::size_t i = 0; i < kKeyBytes; ++i) key.bytes()[i] = static_cast<std::byte>(seed + 31 * static_cast<int>(i));
  return key;
}

KeyCallback give(int seed) {
  return [seed](std::span<std::byte, kKeyBytes> out) -> Status {
    const Key key = key_of(seed);
    std::memcpy(out.data(), key.bytes().data(), out.size());
    return {};
  };
}

/// The sample, and a hundred weights of the same size, a stretch each.
Graph graph_of_many() {
  Graph graph = sample_graph();
  GraphBuilder b;
  b.graph = std::move(graph);
  for (int i = 0; i < 100; ++i) b.plain("many." + std::to_string(i), {512});
  return b.graph;
}

/// An encrypted file and what it was made of.
struct EncryptedFile {
  Graph graph = graph_of_many();
  std::string bytes;
  std::size_t header_end = 0;

  explicit EncryptedFile(int seed) {
    const TemporaryDirectory directory;
    PatternProducer producer(graph);
    const Key key = key_of(seed);
    const Status written = write_model(graph, producer, directory.file("m"), operators::validate_node, {.key = &key});
    INFO((written ? "" : written.error().to_string()));
    REQUIRE(written);
    bytes = read_text(directory.file("m"));
    std::uint64_t header_size = 0;
    std::memcpy(&header_size, bytes.data() + 24, sizeof header_size);
    header_end = kPrefixSize + header_size;
  }

  std::string_view stretch(std::size_t index) const {
    const Stretch& s = graph.stretches[index];
    return std::string_view(bytes).substr(s.offset.count(), s.stored_size.count());
  }
};

Result<ModelFile> open_memory(const KeyCallback& key) { return ModelFile::open("memory", operators::validate_node, {}, key); }

Result<ModelFile> open_bytes(const std::string& bytes, const KeyCallback& key) {
  MemoryFile::bytes() = bytes;
  return open_memory(key);
}

/// Somebody who changes a header can change its hash, too.
void rehash(std::string& bytes, std::size_t header_end) {
  const std::uint64_t hash = xxh3_64(std::as_bytes(std::span(bytes)).subspan(kPrefixSize, header_end - kPrefixSize));
  std::memcpy(bytes.data() + 32, &hash, sizeof hash);
}

void flip(std::string& bytes, std::size_t bit) { bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8))); }

/// Puts stretches of `from` into the places that they have in `bytes`.
void put(std::string& bytes, const EncryptedFile& from, std::size_t index, std::size_t place) {
  const std::string_view stretch = from.stretch(index);
  std::copy(stretch.begin(), stretch.end(), bytes.begin() + static_cast<std::ptrdiff_t>(from.graph.stretches[place].offset.count()));
}

/// Whether the bytes that MemoryFile has now are found to be others. They are changed where they lie: a copy of the whole file takes longer
/// than opening it.
bool refuses(const ModelFile& model) {
  const Status status = verify_weights(model);
  return !status && status.error().code == ErrorCode::kChecksumMismatch;
}

// Each of them where the suite runs as it is; with a sanitizer or an emulator, where opening a file takes ten times as long, each seventh.
#if defined(SLUICE_FOREIGN_MEMORY)
constexpr int kStep = 7;
#else
constexpr int kStep = 1;
#endif

}  // namespace

TEST_CASE("an encrypted file gives back the graph and the weights, and says nothing without its key") {
  if (test::without_libcrypto()) return;
  const EncryptedFile file(1);
  const ScopedFileOps memory(MemoryFile::ops());
  const auto model = open_bytes(file.bytes, give(1));
  INFO((model ? "" : model.error().to_string()));
  REQUIRE(model);
  CHECK(model->key() != nullptr);
  CHECK(model->graph().weights.size() == file.graph.weights.size());
  CHECK(verify_weights(*model));
  CHECK(model->with_extents({}));

  Graph plain = graph_of_many();
  const TemporaryDirectory directory;
  PatternProducer producer(plain);
  std::string plain_bytes;
  {
    const ScopedFileOps system(system_file_ops());
    REQUIRE(write_model(plain, producer, directory.file("m"), operators::validate_node));
    plain_bytes = read_text(directory.file("m"));
  }
  for (const char* secret : {"stem", "many.99", "labels"}) CHECK(file.bytes.find(secret) == std::string::npos);
  REQUIRE(plain_bytes.find("many.99") != std::string::npos);
  for (const Stretch& stretch : plain.stretches) {
    const std::string_view raw = std::string_view(plain_bytes).substr(stretch.offset.count(), stretch.stored_size.count());
    CHECK(file.bytes.find(raw.substr(0, 64)) == std::string::npos);
  }
}

TEST_CASE("a missing key, a wrong one and one that cannot be had each say so") {
  if (test::without_libcrypto()) return;
  const EncryptedFile file(1);
  const ScopedFileOps memory(MemoryFile::ops());
  const auto missing = open_bytes(file.bytes, {});
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == ErrorCode::kWrongKey);
  CHECK(exit_status(missing.error().code) == 8);
  CHECK(missing.error().to_string().find("no key was given") != std::string::npos);
  const auto wrong = open_bytes(file.bytes, give(2));
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().code == ErrorCode::kWrongKey);
  CHECK(wrong.error().to_string().find("not the one") != std::string::npos);
  const auto refused = open_bytes(file.bytes, [](auto) -> Status { return fail(ErrorCode::kCancelled, "key", "not today"); });
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kCancelled);
}

TEST_CASE("a key is not asked for where nothing is encrypted") {
  Graph graph = sample_graph();
  const TemporaryDirectory directory;
  PatternProducer producer(graph);
  REQUIRE(write_model(graph, producer, directory.file("m"), operators::validate_node));
  bool asked = false;
  const auto model = ModelFile::open(directory.file("m"), operators::validate_node, {}, [&](auto) -> Status {
    asked = true;
    return {};
  });
  REQUIRE(model);
  CHECK(model->key() == nullptr);
  CHECK_FALSE(asked);
}

TEST_CASE("no two files of one key have a salt or a byte of ciphertext in common") {
  if (test::without_libcrypto()) return;
  const EncryptedFile a(1), b(1);
  CHECK(a.bytes.substr(64, 32) != b.bytes.substr(64, 32));
  for (std::size_t s = 0; s < a.graph.stretches.size(); ++s) CHECK(a.stretch(s) != b.stretch(s));
}

TEST_CASE("every bit of prefix and header that is flipped is refused") {
  if (test::without_libcrypto()) return;
  const EncryptedFile file(1);
  const ScopedFileOps memory(MemoryFile::ops());
  const KeyCallback key = give(1);
  REQUIRE(open_bytes(file.bytes, key));
  std::string& bytes = MemoryFile::bytes();
  std::size_t accepted = 0, mistaken = 0;
  for (std::size_t bit = 0; bit < 8 * file.header_end; bit += kStep) {
    flip(bytes, bit);
    accepted += open_memory(key).has_value();
    if (bit / 8 >= kPrefixSize) {
      rehash(bytes, file.header_end);
      const auto forged = open_memory(key);
      mistaken += forged.has_value() || forged.error().code != ErrorCode::kWrongKey;
    }
    flip(bytes, bit);
    if (bit / 8 >= kPrefixSize) rehash(bytes, file.header_end);
  }
  CHECK(accepted == 0);
  CHECK(mistaken == 0);
  CHECK(bytes == file.bytes);
  CHECK(open_memory(key));
}

TEST_CASE("ten thousand flipped bits of weights are refused") {
  if (test::without_libcrypto()) return;
  const EncryptedFile file(1);
  const ScopedFileOps memory(MemoryFile::ops());
  const auto model = open_bytes(file.bytes, give(1));
  REQUIRE(model);
  std::mt19937 random(7);
  std::size_t accepted = 0;
  std::string& bytes = MemoryFile::bytes();
  for (int i = 0; i < 10'000; i += kStep) {
    const Stretch& stretch = file.graph.stretches[random() % file.graph.stretches.size()];
    const std::size_t bit = 8 * stretch.offset.count() + random() % (8 * stretch.stored_size.count());
    flip(bytes, bit);
    accepted += !refuses(*model);
    flip(bytes, bit);
  }
  CHECK(accepted == 0);
  CHECK_FALSE(refuses(*model));
}

#if !defined(SLUICE_FOREIGN_MEMORY)
TEST_CASE("checking a small file takes pages for that file, and none for a larger one") {
  if (test::without_libcrypto()) return;
  constexpr int kTimes = 20;
  constexpr std::size_t kPage = 4096;
  const EncryptedFile file(1);
  const ScopedFileOps memory(MemoryFile::ops());
  const auto model = open_bytes(file.bytes, give(1));
  REQUIRE(model);
  const auto pages_given = [] {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    return used.ru_minflt;
  };
  REQUIRE(verify_weights(*model));
  const long before = pages_given();
  for (int i = 0; i < kTimes; ++i) CHECK(verify_weights(*model));
  constexpr std::size_t kOthers = 16;  // of the list of weights, and where the heap begins anew
  CHECK(static_cast<std::size_t>(pages_given() - before) <= kTimes * (file.bytes.size() / kPage + kOthers));
}
#endif

TEST_CASE("all pairs of a hundred stretches that are swapped are refused") {
  if (test::without_libcrypto()) return;
  const EncryptedFile file(1);
  const ScopedFileOps memory(MemoryFile::ops());
  const auto model = open_bytes(file.bytes, give(1));
  REQUIRE(model);
  std::vector<std::size_t> many;
  for (const Weight& weight : model->graph().weights)
    if (weight.name.starts_with("many.")) many.push_back(weight.first_stretch);
  REQUIRE(many.size() == 100);
  std::size_t accepted = 0;
  std::string& bytes = MemoryFile::bytes();
  for (std::size_t i = 0; i < many.size(); ++i)
    for (std::size_t j = i + 1; j < many.size(); j += kStep) {
      put(bytes, file, many[i], many[j]);
      put(bytes, file, many[j], many[i]);
      accepted += !refuses(*model);
      put(bytes, file, many[i], many[i]);
      put(bytes, file, many[j], many[j]);
    }
  CHECK(accepted == 0);
  CHECK(bytes == file.bytes);
}

TEST_CASE("stretches of an old file of the same key, and of a file of another key, are refused") {
  if (test::without_libcrypto()) return;
  const EncryptedFile now(1);
  const ScopedFileOps memory(MemoryFile::ops());
  const auto model = open_bytes(now.bytes, give(1));
  REQUIRE(model);
  for (const int seed : {1, 2}) {
    const ScopedFileOps system(system_file_ops());
    const EncryptedFile other(seed);
    const ScopedFileOps again(MemoryFile::ops());
    std::string& bytes = MemoryFile::bytes();
    std::size_t accepted = 0;
    for (std::size_t s = 0; s < now.graph.stretches.size(); ++s) {
      put(bytes, other, s, s);
      accepted += !refuses(*model);
      put(bytes, now, s, s);
    }
    CHECK(bytes == now.bytes);
    CHECK(accepted == 0);
  }
}

TEST_CASE("parts of two files do not make a file") {
  if (test::without_libcrypto()) return;
  const EncryptedFile a(1), b(2), old(1);
  const ScopedFileOps memory(MemoryFile::ops());
  REQUIRE(a.header_end == b.header_end);
  for (const EncryptedFile* other : {&b, &old})
    for (const int seed : {1, 2}) {
      // Another file's header behind this prefix, also with its hash, its tag or its salt.
      for (const std::size_t taken : {std::size_t{0}, std::size_t{16}, std::size_t{48}}) {
        std::string bytes = a.bytes;
        std::copy_n(other->bytes.begin() + kPrefixSize, a.header_end - kPrefixSize, bytes.begin() + kPrefixSize);
        rehash(bytes, a.header_end);
        if (taken == 16) std::copy_n(other->bytes.begin() + 96, 16, bytes.begin() + 96);
        if (taken == 48) std::copy_n(other->bytes.begin() + 64, 32, bytes.begin() + 64);
        const auto opened = open_bytes(bytes, give(seed));
        REQUIRE_FALSE(opened);
        CHECK(opened.error().code == ErrorCode::kWrongKey);
      }
      // All that opens of another file, with this one's weights.
      std::string bytes = other->bytes.substr(0, a.header_end) + a.bytes.substr(a.header_end);
      const auto opened = open_bytes(bytes, give(seed));
      if (opened) CHECK(verify_weights(*opened).error().code == ErrorCode::kChecksumMismatch);
    }
}

}  // namespace sluice::model
