// Encrypted weights are the same weights for whoever has the key; and when a session and its model are closed, neither is left in memory.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>

#include "sluice/engine/shared_arena.h"
#include "sluice/sluice_c.h"
#include "tests/importer/streaming.h"
#include "tests/model/libcrypto.h"

using namespace sluice;
using namespace sluice::test;

namespace {

using KeyBytes = std::span<std::byte, model::kKeyBytes>;

// Secrets of this test are kept with these bits flipped, so that a search of the memory does not find the test's own copies.
constexpr std::uint32_t kMask = 0xa5a5a5a5u;

std::uint32_t masked_key_word(std::uint32_t i) { return (i + 1) * 2654435761u; }

Status give_key(KeyBytes key) {
  for (std::uint32_t i = 0; i < key.size() / 4; ++i) {
    const std::uint32_t word = masked_key_word(i) ^ kMask;
    std::memcpy(key.data() + 4 * i, &word, 4);
  }
  return {};
}

/// Noise between 2^-7 and 2^-5; each bit of it is known from its index.
std::uint32_t lower_bits_of(std::uint32_t i) {
  i = (i ^ (i >> 15)) * 2246822519u;
  i = (i ^ (i >> 13)) * 3266489917u;
  return (i ^ (i >> 16)) & 0xffffffu;
}
constexpr std::uint32_t kUpperBits = 0x3c000000u;

Floats noise(std::uint32_t count, std::uint32_t first = 0) {
  Floats values(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t bits = kUpperBits | lower_bits_of(first + i);
    std::memcpy(&values[i], &bits, 4);
  }
  return values;
}

constexpr std::uint32_t kWide = 700;  // features of the dense layer of `net`

/// Convolutions, of which one is Winograd's, a recurrent layer, a lookup and a dense layer of known values.
OnnxBuilder net() {
  OnnxBuilder b(14);
  b.input("x", {1, 32, 12, 12});
  b.initializer(tensor("w0", {96, 32, 3, 3}, noise(96 * 32 * 9, 1u << 20)))
      .initializer(tensor("w1", {80, 96, 1, 1}, noise(80 * 96, 2u << 20)));
  b.initializer(tensor("w2", {kWide, 80 * 144}, noise(kWide * 80 * 144)));
  b.node("Conv", {"x", "w0"}, {"a"}, {attribute("pads", Ints{1, 1, 1, 1})});
  b.node("Relu", {"a"}, {"b"});
  b.node("Conv", {"b", "w1"}, {"c"});
  b.node("Flatten", {"c"}, {"d"});
  b.node("Gemm", {"d", "w2"}, {"y"}, {attribute("transB", std::int64_t{1})});
  b.output("y");
  return b;
}

/// A table of which a step reads a few rows by itself, and matrices that are read again each turn.
OnnxBuilder language_net() {
  OnnxBuilder b(14);
  b.input("x", {5, 1, 128});
  b.initializer(tensor("w", {1, 4 * 160, 128}, noise(4 * 160 * 128)))
      .initializer(tensor("r", {1, 4 * 160, 160}, noise(4 * 160 * 160, 1u << 20)));
  b.initializer(tensor("table", {6000, 160}, noise(6000 * 160, 2u << 20))).initializer(tensor("rows", {5, 1}, Ints{3, 5999, 0, 77, 4100}));
  b.node("LSTM", {"x", "w", "r"}, {"h", "last"}, {attribute("hidden_size", std::int64_t{160})});
  b.initializer(tensor("axis", {1}, Ints{1}));
  b.node("Squeeze", {"h", "axis"}, {"s"});
  b.node("Gather", {"table", "rows"}, {"g"});
  b.node("Add", {"s", "g"}, {"a"});
  b.initializer(tensor("turned", {160, 900}, noise(160 * 900, 4u << 20)));
  b.node("MatMul", {"a", "turned"}, {"y"});
  b.output("y");
  return b;
}

std::shared_ptr<const Model> encrypted(const TemporaryFolder& folder, const OnnxBuilder& builder, importer::Coding code) {
  write_file(folder.path("m.onnx"), builder.bytes());
  model::Key key;
  REQUIRE(give_key(key.bytes()));
  importer::ConvertOptions options;
  options.code = code;
  options.key = &key;
  importer::ConvertReport report;
  REQUIRE(importer::convert(folder.path("m.onnx"), folder.path("m.sluice"), options, report));
  auto model = Model::open(folder.path("m.sluice"), {}, &give_key);
  INFO((model ? "" : model.error().to_string()));
  REQUIRE(model);
  return *model;
}

std::uint64_t weight_bytes(const Model& model) {
  std::uint64_t sum = 0;
  for (const model::Weight& weight : model.graph().weights) sum += weight.bytes.count();
  return sum;
}

void check_same(const OnnxBuilder& builder, std::uint32_t inputs) {
  const TemporaryFolder folder;
  const auto plain = converted(folder, builder, "plain");
  const Values x{noise(inputs)};
  const Values want = outputs(plain, x, {});
  for (const importer::Coding code : {importer::Coding::kNone, importer::Coding::kSmall}) {
    const auto model = encrypted(folder, builder, code);
    REQUIRE(model->graph().tags.size() == model->graph().stretches.size());
    REQUIRE(model->graph().codes.empty() == (code == importer::Coding::kNone));
    CHECK(check_budgets(model, x, Bytes(weight_bytes(*plain)), true) == want);
    CHECK(model::verify_weights(model->file()));
  }
}

/// Whether this process's memory has `size` bytes that are these with the mask's bits flipped.
bool memory_has(std::span<const std::uint8_t> masked) {
  std::ifstream maps("/proc/self/maps");
  std::FILE* const memory = std::fopen("/proc/self/mem", "rb");
  REQUIRE(memory != nullptr);
  constexpr std::size_t kPiece = 1 << 16;
  static std::array<std::uint8_t, kPiece> piece;  // is searched like all else, and holds what was found unmasked
  bool found = false;
  for (std::string line; std::getline(maps, line) && !found;) {
    std::uint64_t begin = 0, end = 0;
    char writable = '-';
    if (std::sscanf(line.c_str(), "%lx-%lx %*c%c", &begin, &end, &writable) != 3 || writable != 'w') continue;
    for (std::uint64_t at = begin; at < end && !found; at += kPiece - masked.size()) {
      const auto here = reinterpret_cast<std::uint64_t>(piece.data());
      if (at < here + kPiece && at + kPiece > here) continue;
      const auto size = std::min<std::uint64_t>(kPiece, end - at);
      if (::pread(::fileno(memory), piece.data(), size, static_cast<off_t>(at)) != static_cast<ssize_t>(size)) break;
      for (std::size_t i = 0; i + masked.size() <= size && !found; ++i) {
        std::size_t same = 0;
        while (same < masked.size() && static_cast<std::uint8_t>(piece[i + same] ^ 0xa5) == masked[same]) ++same;
        found = same == masked.size();
      }
      piece.fill(0);
    }
  }
  std::fclose(memory);
  return found;
}

/// Sixteen bytes of the dense layer of `net` as they lie in a panel: four neighbouring outputs of one input.
std::array<std::uint8_t, 16> masked_weights(std::uint32_t input, std::uint32_t output) {
  std::array<std::uint8_t, 16> bytes;
  for (std::uint32_t lane = 0; lane < 4; ++lane) {
    // The layout of the file decides where a feature of the ONNX file lies; its values are found by index all the same.
    const std::uint32_t masked = lower_bits_of((output + lane) * 80 * 144 + input) ^ (kUpperBits ^ kMask);
    std::memcpy(bytes.data() + 4 * lane, &masked, 4);
  }
  return bytes;
}

bool memory_has_weights() {
  for (const std::uint32_t input : {0u, 1u, 77u, 4000u, 80 * 144 - 1u})
    for (const std::uint32_t output : {0u, 16u, 160u, 640u})
      if (memory_has(masked_weights(input, output))) return true;
  return false;
}

bool memory_has_key() {
  std::array<std::uint32_t, model::kKeyBytes / 4> masked;
  for (std::uint32_t i = 0; i < masked.size(); ++i) masked[i] = masked_key_word(i);
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(masked.data());
  return memory_has({bytes, 16}) || memory_has({bytes + 16, 16});
}

/// Converts in a process of its own: this one never has the weights but by decrypting them.
void convert_elsewhere(const TemporaryFolder& folder, importer::Coding code) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    encrypted(folder, net(), code);
    ::_exit(0);
  }
  int status = 1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
}

}  // namespace

TEST_CASE("encrypted weights of convolutions and dense layers give the same bits at every budget") {
  if (without_libcrypto()) return;
  check_same(net(), 32 * 144);
}

TEST_CASE("encrypted weights of recurrent layers and tables give the same bits at every budget") {
  if (without_libcrypto()) return;
  check_same(language_net(), 5 * 128);
}

TEST_CASE("encryption takes no more of an arena than 64 KiB") {
  if (without_libcrypto()) return;
  const TemporaryFolder folder;
  const auto plain = converted(folder, net(), "plain");
  const auto model = encrypted(folder, net(), importer::Coding::kNone);
  for (const std::uint64_t budget : {3u << 20, 8u << 20, 64u << 20}) {
    CAPTURE(budget);
    const auto want = plan_session(*plain, {.budget = Bytes(budget)}),
               got = plan_session(*model, {.budget = Bytes(budget) + Bytes(4u << 20)});
    REQUIRE(want);
    REQUIRE(got);
    const auto least_plain = minimum_budget(*plain, {}), least = minimum_budget(*model, {});
    CHECK((*least - got->overhead).count() <= (*least_plain - want->overhead).count() + (64u << 10));
    CHECK(got->overhead.count() - want->overhead.count() <= (4u << 20) + 24 * model->graph().stretches.size());
  }
}

TEST_CASE("a flipped bit of an encrypted stretch is found before a step uses it") {
  if (without_libcrypto()) return;
  for (const importer::Coding code : {importer::Coding::kNone, importer::Coding::kSmall}) {
    const TemporaryFolder folder;
    const auto sound = encrypted(folder, net(), code);
    const model::Stretch& stretch = sound->graph().stretches[sound->graph().stretches.size() / 2];
    {
      std::fstream file(folder.path("m.sluice"), std::ios::in | std::ios::out | std::ios::binary);
      const auto at = static_cast<std::streamoff>(stretch.offset.count() + stretch.stored_size.count() / 2);
      file.seekg(at);
      const int byte = file.get();
      file.seekp(at);
      file.put(static_cast<char>(byte ^ 4));
    }
    const auto model = Model::open(folder.path("m.sluice"), {}, &give_key);
    REQUIRE(model);
    const auto session = Session::create(*model, {});
    REQUIRE(session);
    const Floats x = noise(32 * 144);
    REQUIRE((*session)->set_input(0, DType::kF32, std::as_bytes(std::span(x))));
    const Status run = (*session)->run();
    REQUIRE_FALSE(run);
    CHECK(run.error().code == ErrorCode::kChecksumMismatch);
  }
}

TEST_CASE("a closed session leaves neither the key nor a weight in memory") {
  if (without_libcrypto()) return;
  for (const importer::Coding code : {importer::Coding::kNone, importer::Coding::kSmall}) {
    const TemporaryFolder folder;
    convert_elsewhere(folder, code);
    CHECK_FALSE(memory_has_weights());
    auto model = Model::open(folder.path("m.sluice"), {}, &give_key);
    REQUIRE(model);
    CHECK_FALSE(memory_has_key());  // only what was derived from it is kept
    for (const bool streamed : {false, true}) {
      SessionOptions options{.threads = 2, .repeat = true};
      if (streamed) options.budget = *minimum_budget(**model, options);
      auto session = Session::create(*model, options);
      REQUIRE(session);
      const Floats x(32 * 144, 0.5f);
      for (int run = 0; run < 2; ++run) {
        REQUIRE((*session)->set_input(0, DType::kF32, std::as_bytes(std::span(x))));
        REQUIRE((*session)->run());
      }
      if (!streamed) CHECK(memory_has_weights());  // the search finds what is there
      session->reset();
      CHECK_FALSE(memory_has_weights());
    }
    REQUIRE(model::verify_weights((*model)->file()));
    model->reset();
    CHECK_FALSE(memory_has_weights());
    CHECK_FALSE(memory_has_key());
  }
}

TEST_CASE("sessions in one arena run on when one of an encrypted model is closed") {
  if (without_libcrypto()) return;
  const TemporaryFolder folder;
  const auto model = encrypted(folder, net(), importer::Coding::kNone);
  const auto other = converted(folder, language_net(), "other");
  const Values x{noise(5 * 128)};
  const Values want = outputs(other, x, {});
  auto arena = SharedArena::create({.budget = Bytes(256u << 20)});
  REQUIRE(arena);
  auto stays = Session::create(other, {.arena = *arena});
  auto goes = Session::create(model, {.arena = *arena});
  REQUIRE(stays);
  REQUIRE(goes);
  const auto run = [&] {
    REQUIRE((*stays)->set_input(0, DType::kF32, std::as_bytes(std::span(x[0]))));
    REQUIRE((*stays)->run());
    Floats got(want[0].size());
    REQUIRE((*stays)->get_output(0, std::as_writable_bytes(std::span(got))));
    CHECK(got == want[0]);
  };
  run();
  const Floats image = noise(32 * 144);
  REQUIRE((*goes)->set_input(0, DType::kF32, std::as_bytes(std::span(image))));
  REQUIRE((*goes)->run());
  goes->reset();
  run();
}

TEST_CASE("C: a key comes from a function of the program's") {
  if (without_libcrypto()) return;
  const TemporaryFolder folder;
  encrypted(folder, net(), importer::Coding::kNone);
  const std::string path = folder.path("m.sluice");
  sluice_model* model = nullptr;
  CHECK(sluice_model_open(path.c_str(), &model) == SLUICE_WRONG_KEY);
  const sluice_key refuses{nullptr, [](void*, std::uint8_t*) -> std::int32_t { return 1; }};
  CHECK(sluice_model_open_with_key(path.c_str(), &refuses, &model) == SLUICE_WRONG_KEY);
  CHECK(std::string(sluice_last_error()).find("gave no key") != std::string::npos);
  const sluice_key gives{nullptr, [](void*, std::uint8_t* key) -> std::int32_t {
                           return give_key(KeyBytes(reinterpret_cast<std::byte*>(key), model::kKeyBytes)) ? 0 : 1;
                         }};
  REQUIRE(sluice_model_open_with_key(path.c_str(), &gives, &model) == SLUICE_OK);
  CHECK(sluice_input_count(model) == 1);
  sluice_model_close(model);
  CHECK(sluice_model_open_with_key(path.c_str(), nullptr, &model) == SLUICE_INVALID_ARGUMENT);
}
