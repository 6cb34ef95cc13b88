#include "src/cli/tensor_proto.h"

#include <cstring>
#include <optional>
#include <protozero/pbf_reader.hpp>
#include <vector>

#include "sluice/core/file.h"
#include "sluice/core/units.h"
#include "src/cli/failure.h"

namespace sluice::cli {
namespace {

using ByteSpan = std::span<const std::byte>;
using protozero::pbf_reader;
using protozero::pbf_wire_type;
using protozero::tag_and_type;

// onnx.TensorProto
enum Tag : std::uint32_t {
  kDims = 1,
  kDataType = 2,
  kFloats = 4,
  kInt32s = 5,
  kInt64s = 7,
  kRaw = 9,
  kDoubles = 10,
  kUint64s = 11,
  kLocation = 14
};

struct ProtoType {
  std::uint64_t number;  // onnx.TensorProto.DataType
  DType dtype;
  Tag values;  // the field with the values if they are not raw
};
constexpr ProtoType kProtoTypes[] = {{1, DType::kF32, kFloats},   {2, DType::kU8, kInt32s},    {3, DType::kI8, kInt32s},
                                     {4, DType::kU16, kInt32s},   {5, DType::kI16, kInt32s},   {6, DType::kI32, kInt32s},
                                     {7, DType::kI64, kInt64s},   {9, DType::kBool, kInt32s},  {10, DType::kF16, kInt32s},
                                     {11, DType::kF64, kDoubles}, {12, DType::kU32, kUint64s}, {13, DType::kU64, kUint64s},
                                     {16, DType::kBF16, kInt32s}};

[[noreturn]] void malformed(const std::string& path) {
  raise(make_error(ErrorCode::kInvalidArgument, path, "is not a readable TensorProto"));
}

pbf_reader reader_of(ByteSpan bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

/// What a message says of its tensor, before it is believed.
struct Head {
  std::vector<std::int64_t> dims;
  std::uint64_t type = 0;
  std::optional<ByteSpan> raw;
};

Head read_head(ByteSpan bytes, const std::string& path) {
  Head head;
  const auto add = [&](std::int64_t extent) {
    if (head.dims.size() == static_cast<std::size_t>(Shape::kMaxRank)) malformed(path);
    head.dims.push_back(extent);
  };
  for (pbf_reader reader = reader_of(bytes); reader.next();) {
    switch (reader.tag_and_type()) {
      case tag_and_type(Tag::kDims, pbf_wire_type::varint):
        add(reader.get_int64());
        break;
      case tag_and_type(Tag::kDims, pbf_wire_type::length_delimited):
        for (const std::int64_t extent : reader.get_packed_int64()) add(extent);
        break;
      case tag_and_type(Tag::kDataType, pbf_wire_type::varint):
        head.type = reader.get_uint64();
        break;
      case tag_and_type(Tag::kRaw, pbf_wire_type::length_delimited): {
        const protozero::data_view view = reader.get_view();
        head.raw = std::as_bytes(std::span(view.data(), view.size()));
        break;
      }
      case tag_and_type(Tag::kLocation, pbf_wire_type::varint):
        if (reader.get_uint64() != 0) raise(make_error(ErrorCode::kUnsupported, path, "keeps its data in another file"));
        break;
      default:
        reader.skip();  // values, which come second; names, documentation
    }
  }
  return head;
}

/// Fills a tensor with values that stand in fields of their type.
class ValueReader {
 public:
  ValueReader(HostTensor& tensor, const std::string& path) : tensor_(tensor), path_(path), element_(size_of(tensor.dtype)) {}

  void read(ByteSpan bytes, Tag values) {
    for (pbf_reader reader = reader_of(bytes); reader.next();) {
      const auto tag = static_cast<Tag>(reader.tag());
      const bool holds_values = tag == kFloats || tag == kInt32s || tag == kInt64s || tag == kDoubles || tag == kUint64s;
      if (holds_values && tag != values) malformed(path_);
      if (tag != values)
        reader.skip();
      else if (reader.wire_type() == pbf_wire_type::length_delimited)
        read_packed(reader);
      else
        read_one(reader);
    }
    if (filled_ != tensor_.data.size()) malformed(path_);
  }

 private:
  void read_packed(pbf_reader& reader) {
    if (reader.tag() == kFloats)
      put_all(reader.get_packed_float());
    else if (reader.tag() == kDoubles)
      put_all(reader.get_packed_double());
    else
      put_all(reader.get_packed_uint64());
  }

  void read_one(pbf_reader& reader) {
    if (reader.tag() == kFloats && reader.wire_type() == pbf_wire_type::fixed32)
      put(reader.get_float());
    else if (reader.tag() == kDoubles && reader.wire_type() == pbf_wire_type::fixed64)
      put(reader.get_double());
    else if (reader.tag() != kFloats && reader.tag() != kDoubles && reader.wire_type() == pbf_wire_type::varint)
      put(reader.get_uint64());
    else
      malformed(path_);
  }

  template <class Range>
  void put_all(const Range& range) {
    for (const auto value : range) put(value);
  }

  /// Little-endian: the low bytes of a varint are the value in every narrower type.
  template <class T>
  void put(T value) {
    if (element_ > tensor_.data.size() - filled_) malformed(path_);
    std::memcpy(tensor_.data.data() + filled_, &value, element_);
    filled_ += element_;
  }

  HostTensor& tensor_;
  const std::string& path_;
  const std::size_t element_;
  std::size_t filled_ = 0;  // bytes
};

HostTensor parse(ByteSpan bytes, const std::string& path) {
  const Head head = read_head(bytes, path);
  const ProtoType* type = nullptr;
  for (const ProtoType& row : kProtoTypes)
    if (row.number == head.type) type = &row;
  if (type == nullptr) raise(make_error(ErrorCode::kUnsupported, path, "the TensorProto has an element type that is not read"));
  const std::optional<Shape> shape = Shape::make(head.dims);
  if (!shape) malformed(path);
  const std::size_t size = checked_size(type->dtype, *shape, path);
  // Every value takes at least one byte on the wire, so a shape beyond the file is refused before it costs memory.
  if (size / size_of(type->dtype) > bytes.size()) malformed(path);
  if (head.raw) {
    if (head.raw->size() != size) malformed(path);
    return {type->dtype, *shape, {head.raw->begin(), head.raw->end()}};
  }
  HostTensor tensor = make_host_tensor(type->dtype, *shape);
  ValueReader(tensor, path).read(bytes, type->values);
  return tensor;
}

}  // namespace

HostTensor parse_tensor_proto(ByteSpan bytes, const std::string& path) {
  try {
    return parse(bytes, path);
  } catch (const protozero::exception&) {
    malformed(path);
  }
}

HostTensor read_tensor_proto(const std::string& path) {
  constexpr Bytes kMostBytes{std::uint64_t{1} << 31};  // protobuf's own limit
  return parse_tensor_proto(unwrap(read_file(path, kMostBytes)), path);
}

}  // namespace sluice::cli
