// Kernels of the long tail whose run is to end: they look after a stretch of their work, counted in operations, and leave the rest undone.
#include <atomic>
#include <bit>
#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "sluice/kernels/kernel.h"
#include "sluice/kernels/plain.h"
#include "sluice/kernels/turns.h"

using namespace sluice;
using namespace sluice::kernels;

namespace {

using Lists = std::vector<std::vector<std::int64_t>>;

constexpr DType kF32 = DType::kF32, kI64 = DType::kI64, kU8 = DType::kU8;

std::int64_t bits(double value) { return std::bit_cast<std::int64_t>(value); }

struct Input {
  Shape shape;
  DType dtype = kF32;
};

/// A node of some million operations and more, which are some stretches.
struct Case {
  std::string_view name;
  std::vector<Input> inputs;
  Lists arguments = {};
  std::uint8_t result = 0;
};

/// The lists of an operator's arguments where a case states none: what an ONNX node means that does not name them.
Lists defaults_of(std::string_view text) {
  Lists lists;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (word.empty()) continue;
    const std::size_t kind = word.find(':'), value = word.find('=');
    lists.emplace_back();
    if (kind == std::string_view::npos || value == std::string_view::npos) continue;
    const std::string stated(word.substr(value + 1));
    if (word[kind + 1] == 'i') lists.back().push_back(std::stoll(stated));
    if (word[kind + 1] == 'f') lists.back().push_back(bits(std::stod(stated)));
    if (word[kind + 1] == 's') lists.back().push_back(0);
  }
  return lists;
}

/// Reals are between a half and one and a half, all integers one.
std::vector<std::byte> values_of(const Input& input) {
  const auto count = static_cast<std::size_t>(input.shape.element_count());
  std::vector<std::byte> values(count * size_of(input.dtype));
  for (std::size_t i = 0; i < count; ++i) {
    const float real = 0.5f + static_cast<float>(i * 2654435761u >> 8 & 1023u) / 1024.0f;
    const std::int64_t whole = 1;
    std::memcpy(values.data() + i * size_of(input.dtype), input.dtype == kF32 ? static_cast<const void*>(&real) : &whole,
                size_of(input.dtype));
  }
  return values;
}

struct Made {
  std::vector<std::byte> values;
  PlainRefusal refusal = nullptr;
};

class Runner {
 public:
  explicit Runner(const Case& c) : op_(find_plain(c.name)) {
    REQUIRE(op_ != nullptr);
    attributes_.op = op_->number;
    attributes_.result = c.result;
    Lists arguments = defaults_of(op_->arguments);
    for (std::size_t i = 0; i < c.arguments.size(); ++i)
      if (!c.arguments[i].empty()) arguments.at(i) = c.arguments[i];
    for (const auto& list : arguments) {
      attributes_.arguments.push_back(static_cast<std::int64_t>(list.size()));
      attributes_.arguments.insert(attributes_.arguments.end(), list.begin(), list.end());
    }
    for (std::size_t i = 0; i < c.inputs.size(); ++i) {
      attributes_.present |= 1u << i;
      values_.push_back(values_of(c.inputs[i]));
      tensors_.push_back({c.inputs[i].dtype, c.inputs[i].shape, values_.back().data()});
    }
  }

  Made run() {
    const PlainNode node(*op_, form_of(attributes_), tensors_);
    PlainTensor out;
    const PlainRefusal refused = infer_plain(node, out);
    INFO(op_->name << ": " << (refused == nullptr ? "" : refused));
    REQUIRE(refused == nullptr);
    const GenericKernel& kernel = generic_kernel(*op_);
    Made made;
    made.values.resize(static_cast<std::size_t>(out.count()) * size_of(out.dtype), std::byte{0x5a});
    std::vector<std::byte> scratch((kernel.scratch == nullptr ? 0 : kernel.scratch(node)) + 64);
    std::byte* const aligned = scratch.data() + (64 - reinterpret_cast<std::uintptr_t>(scratch.data()) % 64) % 64;
    out.data = made.values.data();
    made.refusal = kernel.run_sized != nullptr ? kernel.run_sized(node, out, aligned) : kernel.run(node, out, aligned);
    return made;
  }

 private:
  const PlainOperator* op_;
  model::PlainAttributes attributes_;
  std::vector<std::vector<std::byte>> values_;
  std::vector<PlainTensor> tensors_;
};

std::vector<Case> long_kernels() {
  const Lists window_of_4000 = {{4000}}, none = {};
  return {
      {"ConvTranspose", {{{1, 1, 4000}}, {{1, 1, 4000}}}},
      {"Conv", {{{1, 16, 20000}}, {{16, 16, 64}}}},
      {"Conv", {{{1, 16, 400000}}, {{64, 16, 500}}}, {{}, {2000}}},
      {"ConvInteger", {{{1, 1, 6000}, kU8}, {{1, 1, 3000}, kU8}}},
      {"Col2Im", {{{1, 3000, 3001}}}, {{}, {}, {}, {}, {}, {}, {6000}, {3000}}},
      {"DeformConv", {{{1, 8, 64, 64}}, {{8, 8, 9, 9}}, {{1, 162, 56, 56}}}},
      {"MatMul", {{{1000, 1000}}, {{1000, 1000}}}},
      {"MatMul", {{{300, 300}, kI64}, {{300, 300}, kI64}}},
      {"MatMulInteger", {{{300, 300}, kU8}, {{300, 300}, kU8}}},
      {"Det", {{{4, 200, 200}}}},
      {"Attention", {{{1, 4, 512, 64}}, {{1, 4, 512, 64}}, {{1, 4, 512, 64}}}},
      {"LinearAttention", {{{1, 2000, 64}}, {{1, 2000, 64}}, {{1, 2000, 64}}}, {{1}, {1}, {1}}},
      {"CausalConvWithState", {{{1, 1, 9000}}, {{1, 1, 1000}}}},
      {"MaxPool", {{{1, 1, 20000}}}, window_of_4000},
      {"MaxPool", {{{1, 1, 20000}}}, window_of_4000, 1},
      {"AveragePool", {{{1, 1, 20000}}}, window_of_4000},
      {"LpPool", {{{1, 1, 8000}}}, window_of_4000},
      {"GlobalMaxPool", {{{64, 16, 4096}}}},
      {"LpNormalization", {{{2048, 2048}}}},
      {"ReduceMean", {{{2048, 2048}}}, {{1}}},
      {"ArgMax", {{{2048, 2048}}}, {{1}}},
      {"CumSum", {{{2048, 2048}}}, {{1}}},
      {"TopK", {{{4096, 1024}}}, {{4}}},
      {"Hardmax", {{{4096, 1024}}}, {{1}, {13}}},
      {"DFT", {{{1, 4001, 1}}}, {{}, {1}}},
      {"TfIdfVectorizer", {{{1, 20000}, kI64}}, {{2}, {1000}, {2}, {0}, {0, 0}, {0}, {1, 1}}},
      {"NonMaxSuppression", {{{1, 4000, 4}}, {{1, 1, 4000}}}, {{4000}, {bits(2.0)}}},
      {"GRU", {{{2000, 1, 64}}, {{1, 192, 64}}, {{1, 192, 64}}}, {{64}, {}, {}, {}, {}, {}, {0, 1}, {0, 0}, {0, 0}}},
      {"GridSample", {{{1, 8, 64, 64}}, {{1, 512, 512, 2}}}},
      {"RoiAlign", {{{2, 16, 32, 32}}, {{8, 4}}, {{8}, kI64}}, {{0}, {8}, {8}, {64}}},
      {"AffineGrid", {{{1, 2, 3}}}, {{1, 1, 1024, 1024}}},
      {"Add", {{{4'000'003}}, {{4'000'003}}}},
      {"Pow", {{{4'000'003}}, {{4'000'003}}}},
      {"Add", {{{2000, 2001}}, {{2000, 1}}}},
  };
}

}  // namespace

TEST_CASE("work is counted between two glances, and what has ended has ended") {
  std::atomic<bool> stop{false};
  const TurnsScope scope(stop, 1);
  Glances glances;
  CHECK_FALSE(glances.over(10 * Glances::kWork));
  stop = true;
  std::int64_t done = 0;
  while (!glances.over(1)) ++done;
  CHECK(done < Glances::kWork);
  CHECK(glances.over(1));
  CHECK(glances.over(0));
}

TEST_CASE("without a scope nothing ends") {
  Glances glances;
  for (int i = 0; i < 100; ++i) CHECK_FALSE(glances.over(Glances::kWork));
}

TEST_CASE("long kernels end where their run does") {
  for (const Case& c : long_kernels()) {
    INFO(c.name << ", result " << int{c.result});
    Runner runner(c);
    const Made whole = runner.run();
    CHECK(whole.refusal == nullptr);
    const std::atomic<bool> stop{true};
    const TurnsScope scope(stop, 1);
    const Made ended = runner.run();
    CHECK((ended.refusal != nullptr || ended.values != whole.values));
  }
}
