#include "src/cli/tensor_proto.h"

#include <catch2/catch.hpp>
#include <cstring>

#include "src/cli/failure.h"

using namespace sluice;
using namespace sluice::cli;

namespace {

/// Writes wire-format fields, as protobuf would.
class Proto {
 public:
  Proto& varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
    return *this;
  }
  Proto& number(unsigned id, std::uint64_t value) { return varint(id << 3).varint(value); }
  Proto& bytes(unsigned id, const std::string& value) {
    varint(id << 3 | 2).varint(value.size());
    bytes_ += value;
    return *this;
  }
  Proto& fixed32(unsigned id, float value) {
    varint(id << 3 | 5);
    bytes_.append(reinterpret_cast<const char*>(&value), 4);
    return *this;
  }
  std::string text() const { return bytes_; }
  HostTensor parse() const { return parse_tensor_proto(std::as_bytes(std::span(bytes_)), "tensor.pb"); }
  ErrorCode code() const {
    try {
      parse();
    } catch (const Failure& failure) {
      return failure.code();
    }
    FAIL("parsing succeeded");
    return ErrorCode::kInternal;
  }

 private:
  std::string bytes_;
};

std::string raw(std::initializer_list<float> values) { return {reinterpret_cast<const char*>(values.begin()), values.size() * 4}; }

}  // namespace

TEST_CASE("raw, packed and single floats give the same tensor") {
  const Proto forms[] = {
      Proto().number(1, 1).number(1, 2).number(2, 1).bytes(9, raw({1.5f, -2.0f})),
      Proto().bytes(1, "\x01\x02").number(2, 1).bytes(4, raw({1.5f, -2.0f})).bytes(8, "name"),
      Proto().number(1, 1).number(1, 2).number(2, 1).fixed32(4, 1.5f).fixed32(4, -2.0f),
  };
  for (const Proto& form : forms) {
    const HostTensor tensor = form.parse();
    CHECK(tensor.dtype == DType::kF32);
    CHECK(tensor.shape == Shape{1, 2});
    CHECK(tensor.as<float>()[0] == 1.5f);
    CHECK(tensor.as<float>()[1] == -2.0f);
  }
}

TEST_CASE("typed integers keep their sign and width") {
  const HostTensor wide = Proto().number(1, 2).number(2, 7).bytes(7, Proto().varint(~0ull).varint(1ull << 40).text()).parse();
  CHECK(wide.as<std::int64_t>()[0] == -1);
  CHECK(wide.as<std::int64_t>()[1] == (std::int64_t{1} << 40));
  const HostTensor narrow = Proto().number(1, 1).number(2, 3).bytes(5, Proto().varint(~0ull - 4).text()).parse();
  CHECK(narrow.dtype == DType::kI8);
  CHECK(narrow.as<std::int8_t>()[0] == -5);
}

TEST_CASE("malformed tensors are refused before they cost memory") {
  const auto dims = [] { return Proto().number(1, 2).number(2, 1); };
  CHECK(dims().code() == ErrorCode::kInvalidArgument);                           // no values
  CHECK(dims().bytes(9, raw({1.0f})).code() == ErrorCode::kInvalidArgument);     // too few
  CHECK(dims().bytes(9, raw({1, 2, 3})).code() == ErrorCode::kInvalidArgument);  // too many
  CHECK(dims().bytes(4, raw({1, 2, 3})).code() == ErrorCode::kInvalidArgument);
  CHECK(dims().bytes(4, "abc").code() == ErrorCode::kInvalidArgument);       // not whole floats
  CHECK(dims().bytes(7, "\x01\x02").code() == ErrorCode::kInvalidArgument);  // integers of a float tensor
  CHECK(Proto().number(1, 1ull << 40).number(2, 1).bytes(9, raw({1})).code() == ErrorCode::kInvalidArgument);
  CHECK(Proto().number(1, ~0ull).number(2, 1).bytes(9, raw({1})).code() == ErrorCode::kInvalidArgument);  // -1
  CHECK(Proto().number(1, 1).number(2, 8).bytes(6, "text").code() == ErrorCode::kUnsupported);            // strings
  CHECK(Proto().number(1, 1).number(2, 1).number(14, 1).code() == ErrorCode::kUnsupported);               // external data
  Proto many;
  for (int i = 0; i < 9; ++i) many.number(1, 1);
  CHECK(many.number(2, 1).bytes(9, raw({1})).code() == ErrorCode::kInvalidArgument);
}

TEST_CASE("every truncation of a tensor is refused") {
  const std::string whole = Proto().number(1, 2).number(2, 1).bytes(9, raw({1, 2})).text();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CHECK_THROWS_AS(parse_tensor_proto(std::as_bytes(std::span(whole).first(size)), "cut.pb"), Failure);
  }
}
