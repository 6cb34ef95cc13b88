#include "src/cli/tensor_proto.h"

#include <cstring>
#include <optional>
#include <vector>

#include "sluice/core/file.h"
#include "sluice/core/units.h"
#include "src/cli/failure.h"

namespace sluice::cli {
namespace {

using ByteSpan = std::span<const std::byte>;

enum class WireType : unsigned { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

/// One field of a message: `bytes` for kBytes, kFixed32 and kFixed64, `number` for kVarint.
struct Field {
  std::uint64_t id = 0;
  WireType type = WireType::kVarint;
  std::uint64_t number = 0;
  ByteSpan bytes;
};

class WireReader {
 public:
  WireReader(ByteSpan bytes, const std::string& path) : rest_(bytes), path_(path) {}

  bool done() const noexcept { return rest_.empty(); }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<std::uint64_t>(take(1)[0]);
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    malformed();
  }

  Field field() {
    const std::uint64_t key = varint();
    Field field{key >> 3, static_cast<WireType>(key & 7), 0, {}};
    switch (field.type) {
      case WireType::kVarint:
        field.number = varint();
        return field;
      case WireType::kFixed64:
        field.bytes = take(8);
        return field;
      case WireType::kFixed32:
        field.bytes = take(4);
        return field;
      case WireType::kBytes:
        field.bytes = take(varint());
        return field;
    }
    malformed();
  }

  [[noreturn]] void malformed() const { raise(make_error(ErrorCode::kInvalidArgument, path_, "is not a readable TensorProto")); }

 private:
  ByteSpan take(std::uint64_t count) {
    if (count > rest_.size()) malformed();
    const ByteSpan taken = rest_.first(static_cast<std::size_t>(count));
    rest_ = rest_.subspan(static_cast<std::size_t>(count));
    return taken;
  }

  ByteSpan rest_;
  const std::string& path_;
};

struct TypeRow {
  std::uint64_t number;  // onnx.TensorProto.DataType
  DType dtype;
  std::uint64_t typed_field;  // where values stand that are not raw
};
constexpr TypeRow kTypes[] = {{1, DType::kF32, 4},  {2, DType::kU8, 5},    {3, DType::kI8, 5},    {4, DType::kU16, 5},
                              {5, DType::kI16, 5},  {6, DType::kI32, 5},   {7, DType::kI64, 7},   {9, DType::kBool, 5},
                              {10, DType::kF16, 5}, {11, DType::kF64, 10}, {12, DType::kU32, 11}, {13, DType::kU64, 11}};

/// What a message says, before it is believed.
struct Message {
  std::vector<std::int64_t> dims;
  std::uint64_t type = 0;
  std::optional<ByteSpan> raw;
  std::vector<Field> typed;  // fields 4, 5, 7, 10, 11
};

Message read_message(ByteSpan bytes, const std::string& path) {
  Message message;
  WireReader reader(bytes, path);
  while (!reader.done()) {
    const Field field = reader.field();
    switch (field.id) {
      case 1:
        if (field.type == WireType::kBytes) {
          WireReader packed(field.bytes, path);
          while (!packed.done()) message.dims.push_back(static_cast<std::int64_t>(packed.varint()));
        } else {
          message.dims.push_back(static_cast<std::int64_t>(field.number));
        }
        if (message.dims.size() > static_cast<std::size_t>(Shape::kMaxRank)) reader.malformed();
        break;
      case 2:
        message.type = field.number;
        break;
      case 4:
      case 5:
      case 7:
      case 10:
      case 11:
        message.typed.push_back(field);
        break;
      case 9:
        message.raw = field.bytes;
        break;
      case 14:
        if (field.number != 0) raise(make_error(ErrorCode::kUnsupported, path, "keeps its data in another file"));
        break;
      default:
        break;  // names, documentation
    }
  }
  return message;
}

/// Appends the values of one typed field to `tensor` from element `at` on; gives the new end.
std::size_t append_typed(const Field& field, HostTensor& tensor, std::size_t at, const WireReader& owner, const std::string& path) {
  const std::size_t element = size_of(tensor.dtype);
  const auto put = [&](const void* value) {
    if ((at + 1) * element > tensor.data.size()) owner.malformed();
    std::memcpy(tensor.data.data() + at * element, value, element);
    ++at;
  };
  if (field.id == 4 || field.id == 10) {
    if (field.type == WireType::kVarint || field.bytes.size() % element != 0) owner.malformed();
    for (std::size_t i = 0; i < field.bytes.size(); i += element) put(field.bytes.data() + i);
    return at;
  }
  // Little-endian: the low bytes of a varint are the value in every narrower type.
  if (field.type == WireType::kVarint) {
    put(&field.number);
    return at;
  }
  WireReader packed(field.bytes, path);
  while (!packed.done()) {
    const std::uint64_t value = packed.varint();
    put(&value);
  }
  return at;
}

}  // namespace

HostTensor parse_tensor_proto(ByteSpan bytes, const std::string& path) {
  const WireReader owner({}, path);
  const Message message = read_message(bytes, path);
  const TypeRow* type = nullptr;
  for (const TypeRow& row : kTypes)
    if (row.number == message.type) type = &row;
  if (type == nullptr) raise(make_error(ErrorCode::kUnsupported, path, "the TensorProto has an element type that is not read"));
  const std::optional<Shape> shape = Shape::make(message.dims);
  if (!shape) owner.malformed();
  const std::size_t size = checked_size(type->dtype, *shape, path);
  // Every value takes at least one byte on the wire, so a shape beyond the file is refused before it costs memory.
  if (size / size_of(type->dtype) > bytes.size()) owner.malformed();
  if (message.raw) {
    if (message.raw->size() != size) owner.malformed();
    return {type->dtype, *shape, {message.raw->begin(), message.raw->end()}};
  }
  HostTensor tensor = make_host_tensor(type->dtype, *shape);
  std::size_t filled = 0;
  for (const Field& field : message.typed) {
    if (field.id != type->typed_field) owner.malformed();
    filled = append_typed(field, tensor, filled, owner, path);
  }
  if (filled * size_of(type->dtype) != size) owner.malformed();
  return tensor;
}

HostTensor read_tensor_proto(const std::string& path) {
  constexpr Bytes kMostBytes{std::uint64_t{1} << 31};  // protobuf's own limit
  return parse_tensor_proto(unwrap(read_file(path, kMostBytes)), path);
}

}  // namespace sluice::cli
