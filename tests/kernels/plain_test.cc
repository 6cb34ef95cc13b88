// Plain operators: the table is sound, no arguments or values make an operator touch what is not its own, and the walk of
// docs/adding-an-operator.md works as it stands there.
#include "sluice/kernels/plain.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <random>
#include <set>
#include <string_view>
#include <vector>

#include "sluice/kernels/kernel.h"
#include "src/kernels/plain/elements.h"
#include "src/kernels/plain/kernel.h"

using namespace sluice;
using namespace sluice::kernels;

namespace walk_through {
using namespace sluice::kernels::plain;
#include "adding_an_operator.inc"
}  // namespace walk_through

namespace {

std::vector<std::int64_t> pack(const std::vector<std::vector<std::int64_t>>& lists) {
  std::vector<std::int64_t> packed;
  for (const auto& list : lists) {
    packed.push_back(static_cast<std::int64_t>(list.size()));
    packed.insert(packed.end(), list.begin(), list.end());
  }
  return packed;
}

/// Bytes on the heap, no more than are there: the address sanitizer sees each byte beside them.
struct Block {
  explicit Block(std::size_t size) : bytes(std::max<std::size_t>(size, 1)) {}
  std::byte* data() { return bytes.data(); }
  std::vector<std::byte> bytes;
};

std::size_t words(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < text.size(); ++i) count += text[i] != ' ' && (i == 0 || text[i - 1] == ' ') ? 1 : 0;
  return count;
}

class Hostile {
 public:
  explicit Hostile(unsigned seed) : random_(seed) {}

  std::int64_t pick(std::int64_t low, std::int64_t high) { return std::uniform_int_distribution<std::int64_t>(low, high)(random_); }

  std::int64_t argument() {
    constexpr std::int64_t kEdges[] = {INT64_MIN, INT64_MAX, -1, 1 << 30, INT32_MIN, 0, 1};
    switch (pick(0, 9)) {
      case 0:
        return kEdges[pick(0, 6)];
      case 1:
        return std::bit_cast<std::int64_t>(static_cast<double>(pick(-8, 8)) / 4);
      default:
        return pick(-2, 5);
    }
  }

  Shape shape() {
    const auto rank = pick(0, 5);
    std::vector<std::int64_t> dims;
    for (std::int64_t axis = 0; axis < rank; ++axis) dims.push_back(pick(1, 4));
    return *Shape::make(dims);
  }

  void fill(std::vector<std::byte>& bytes, DType dtype) {
    for (std::byte& b : bytes) b = static_cast<std::byte>(pick(0, 255));
    if (pick(0, 2) == 0) return;
    // Small numbers, so that indices are often right.
    const std::size_t size = size_of(dtype);
    for (std::size_t at = 0; at + size <= bytes.size(); at += size) {
      const std::int64_t whole = pick(-1, 3);
      const auto real = static_cast<float>(whole);
      std::memcpy(bytes.data() + at, dtype == DType::kF32 ? static_cast<const void*>(&real) : static_cast<const void*>(&whole), size);
    }
  }

 private:
  std::mt19937 random_;
};

/// Whether infer took the node; if so it has been run.
bool try_one(const PlainOperator& op, Hostile& hostile, const Shape& common) {
  model::PlainAttributes attributes;
  attributes.op = op.number;
  attributes.result = static_cast<std::uint8_t>(hostile.pick(0, op.outputs - 1));
  std::vector<std::vector<std::int64_t>> arguments(words(op.arguments));
  for (auto& list : arguments) {
    const std::int64_t count = hostile.pick(0, 3) == 0 ? hostile.pick(0, 6) : hostile.pick(0, 1) + (hostile.pick(0, 1) == 0 ? 1 : 0);
    for (std::int64_t i = 0; i < count; ++i) list.push_back(hostile.argument());
  }
  attributes.arguments = pack(arguments);
  constexpr DType kTypes[] = {DType::kF32, DType::kF32, DType::kF32, DType::kU8, DType::kI8, DType::kI64, DType::kI32, DType::kBool};
  const DType main_type = kTypes[hostile.pick(0, 7)];
  std::vector<PlainTensor> inputs;
  const std::int64_t count = hostile.pick(0, 5);
  for (std::int64_t i = 0; i < count; ++i) {
    if (hostile.pick(0, 9) == 0) continue;
    attributes.present |= 1u << i;
    inputs.push_back(
        {hostile.pick(0, 3) == 0 ? kTypes[hostile.pick(0, 7)] : main_type, hostile.pick(0, 1) == 0 ? common : hostile.shape(), nullptr});
  }
  const PlainNode shapes(op, form_of(attributes), inputs);
  PlainTensor out;
  if (infer_plain(shapes, out) != nullptr || out.count() > 100000) return false;
  const GenericKernel& kernel = generic_kernel(op);
  const std::uint64_t scratch_bytes = kernel.scratch == nullptr ? 0 : kernel.scratch(shapes);
  if (scratch_bytes > (1u << 24)) return false;
  std::vector<Block> blocks;
  for (PlainTensor& input : inputs) {
    blocks.emplace_back(static_cast<std::size_t>(input.count()) * size_of(input.dtype));
    hostile.fill(blocks.back().bytes, input.dtype);
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i].data = blocks[i].data();
  Block result(static_cast<std::size_t>(out.count()) * size_of(out.dtype)), scratch(scratch_bytes);
  out.data = result.data();
  if (op.sized_by_values)
    kernel.run_sized(PlainNode(op, form_of(attributes), inputs), out, scratch.data());
  else
    kernel.run(PlainNode(op, form_of(attributes), inputs), out, scratch.data());
  return true;
}

}  // namespace

TEST_CASE("every line of the table has a number and a name of its own, and a kernel") {
  std::set<std::uint16_t> numbers;
  std::set<std::string_view> names;
  for (const PlainOperator* line : plain_operators()) {
    INFO(line->name);
    CHECK(numbers.insert(line->number).second);
    CHECK(names.insert(line->name).second);
    CHECK(line->infer != nullptr);
    CHECK((!line->sized_by_values || line->bound != nullptr));
    const GenericKernel* kernel = &generic_kernel(*line);
    REQUIRE(kernel != nullptr);
    CHECK(kernel->name == line->name);
    CHECK((kernel->run != nullptr) == !line->sized_by_values);
    CHECK((kernel->run_sized != nullptr) == line->sized_by_values);
    CHECK(find_plain(line->number) == line);
    CHECK(find_plain(line->name) == line);
  }
  CHECK(find_plain(std::uint16_t{65535}) == nullptr);
  CHECK(find_plain("NoSuchOperator") == nullptr);
}

TEST_CASE("no arguments, shapes or values make a plain operator leave its own bytes") {
  // The sanitizers see what goes wrong; here it is enough to come back.
  std::size_t ran = 0;
  for (const PlainOperator* line : plain_operators()) {
    Hostile hostile(line->number);
    for (int i = 0; i < 400; ++i) ran += try_one(*line, hostile, hostile.shape()) ? 1 : 0;
  }
  CHECK(ran > 1000);
}

TEST_CASE("a plain operator with other arguments than its list is refused") {
  const PlainOperator& op = *find_plain("TopK");
  model::PlainAttributes attributes;
  attributes.present = 1;
  const PlainTensor x{DType::kF32, Shape{4}, nullptr};
  PlainTensor out;
  CHECK(infer_plain(PlainNode(op, form_of(attributes), {&x, 1}), out) != nullptr);
  attributes.arguments = pack({{2}, {-1}, {1}, {1}});
  CHECK(infer_plain(PlainNode(op, form_of(attributes), {&x, 1}), out) == nullptr);
  CHECK(out.shape == Shape{2});
  attributes.result = 2;  // TopK has two outputs
  CHECK(infer_plain(PlainNode(op, form_of(attributes), {&x, 1}), out) != nullptr);
}

TEST_CASE("an index outside the table is a fault, not an address") {
  const PlainOperator& op = *find_plain("Gather");
  model::PlainAttributes attributes;
  attributes.present = 3;
  attributes.arguments = pack({{0}});
  float table[] = {1, 2, 3};
  std::int64_t indices[] = {2, 3, -4};
  float result[] = {9, 9, 9};
  const PlainTensor inputs[] = {{DType::kF32, Shape{3}, reinterpret_cast<std::byte*>(table)},
                                {DType::kI64, Shape{3}, reinterpret_cast<std::byte*>(indices)}};
  const PlainTensor out{DType::kF32, Shape{3}, reinterpret_cast<std::byte*>(result)};
  CHECK(generic_kernel(op).run(PlainNode(op, form_of(attributes), inputs), out, nullptr) != nullptr);
  CHECK(result[0] == 3.0f);
  CHECK(result[1] == 0.0f);
}

TEST_CASE("the operator of docs/adding-an-operator.md") {
  const PlainOperator& op = walk_through::kOperators[0];
  model::PlainAttributes attributes;
  attributes.op = op.number;
  attributes.present = 1;
  attributes.arguments = pack({{std::bit_cast<std::int64_t>(0.5)}});
  float x[] = {1, -2, 3};
  float y[3] = {};
  const PlainTensor input{DType::kF32, Shape{3}, reinterpret_cast<std::byte*>(x)};
  const PlainNode node(op, form_of(attributes), {&input, 1});
  PlainTensor out;
  REQUIRE(infer_plain(node, out) == nullptr);
  CHECK(out.shape == Shape{3});
  out.data = reinterpret_cast<std::byte*>(y);
  REQUIRE(walk_through::kKernels[0].run(node, out, nullptr) == nullptr);
  CHECK(y[0] == 0.5f);
  CHECK(y[1] == -4.0f);
  CHECK(y[2] == 13.5f);
}

TEST_CASE("what a file states of a result is no room where the values decide less than it says") {
  // NonZero gives [rank, how many]: a file may state how many there are at the most, but not the rank.
  std::vector<float> values(4 * 4, 1.0f);
  const PlainTensor x{DType::kF32, Shape{1, 2, 2, 4}, reinterpret_cast<std::byte*>(values.data())};
  const model::PlainAttributes attributes{540, 0, 1, {}};
  const PlainNode node(*find_plain(540), form_of(attributes), std::span(&x, 1));
  for (const Shape& stated : {Shape{1, 16}, Shape{0, 16}, Shape{4, 15}, Shape{16}}) {
    Block room(static_cast<std::size_t>(stated.element_count()) * sizeof(std::int64_t));
    const std::vector<std::byte> before = room.bytes;
    PlainTensor out{DType::kI64, stated, room.data()};
    const PlainRefusal refusal = plain::run_within(node, {DType::kI64, stated, 0b11, 0}, out, nullptr);
    REQUIRE(refusal != nullptr);
    CHECK(std::string_view(refusal) == kOverBound);
    CHECK(room.bytes == before);
  }
  Block room(4 * 16 * sizeof(std::int64_t));
  PlainTensor out{DType::kI64, Shape{4, 16}, room.data()};
  CHECK(plain::run_within(node, {DType::kI64, Shape{4, 16}, 0b10, 0}, out, nullptr) == nullptr);
}
