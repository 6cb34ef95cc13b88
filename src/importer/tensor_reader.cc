#include "src/importer/tensor_reader.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <protozero/pbf_reader.hpp>

#include "sluice/core/units.h"
#include "src/importer/quantised.h"
#include "src/importer/refusal.h"
#include "src/importer/sparse_tensor.h"

namespace sluice::importer {
namespace {

using protozero::pbf_wire_type;
using protozero::tag_and_type;

// Typed integers are decoded into memory, and convert promises to stay below 128 MiB of it.
constexpr std::uint64_t kMaxDecodedBytes = 64u << 20;
constexpr std::uint64_t kMostDrawnBytes = std::uint64_t{8} << 30;  // they lie in memory
constexpr std::size_t kMaxLooseValues = 2u << 20;                  // of one tensor, 8 bytes each while it is read

std::string_view view(protozero::data_view data) noexcept { return {data.data(), data.size()}; }
const std::byte* bytes_of(std::string_view text) noexcept { return reinterpret_cast<const std::byte*>(text.data()); }

std::uint64_t parse_count(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) refuse_malformed("external data has an offset or length that is no number");
  return value;
}

/// What is malformed ends the reading; what is sound but cannot be used is a problem of the node that wants the tensor.
void note(const Refusal& refusal, std::string_view name, std::string& problem) {
  if (refusal.code() == ErrorCode::kInvalidModel) refuse_malformed("tensor `" + std::string(name) + "`: " + refusal.what());
  problem = refusal.what();
}

/// Types of values that lie several to a byte.
struct NarrowType {
  int bits;
  bool is_signed;
};
std::optional<NarrowType> narrow_type_of(std::int64_t onnx_type) noexcept {
  switch (onnx_type) {
    case 21:
      return NarrowType{4, false};
    case 22:
      return NarrowType{4, true};
    case 25:
      return NarrowType{2, false};
    case 26:
      return NarrowType{2, true};
    default:
      return std::nullopt;
  }
}

}  // namespace

std::string type_text(std::int64_t onnx_type) {
  constexpr std::string_view kNames[] = {
      "undefined",      "float",      "uint8",          "int8",   "uint16", "int16",      "int32",      "int64",    "string",
      "bool",           "float16",    "double",         "uint32", "uint64", "complex64",  "complex128", "bfloat16", "float8e4m3fn",
      "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "uint4",  "int4",   "float4e2m1", "float8e8m0", "uint2",    "int2"};
  if (onnx_type >= 0 && onnx_type < static_cast<std::int64_t>(std::size(kNames))) return std::string(kNames[onnx_type]);
  return "number " + std::to_string(onnx_type);
}

std::optional<DType> dtype_of(std::int64_t onnx_type) noexcept {
  switch (onnx_type) {
    case 1:
      return DType::kF32;
    case 2:
      return DType::kU8;
    case 3:
      return DType::kI8;
    case 4:
      return DType::kU16;
    case 5:
      return DType::kI16;
    case 6:
      return DType::kI32;
    case 7:
      return DType::kI64;
    case 9:
      return DType::kBool;
    case 10:
      return DType::kF16;
    case 11:
      return DType::kF64;
    case 12:
      return DType::kU32;
    case 13:
      return DType::kU64;
    case 16:
      return DType::kBF16;
    default:
      return std::nullopt;
  }
}

std::int64_t onnx_type_of(DType dtype) noexcept {
  constexpr std::int64_t kTypes[kDTypeCount] = {1, 10, 3, 2, 6, 7, 9, 11, 5, 4, 12, 13, 16};
  return kTypes[static_cast<int>(dtype)];
}

/// The fields of a TensorProto, values still on the wire.
struct TensorReader::Wire {
  std::vector<std::int64_t> dims;
  std::int64_t data_type = 0;
  bool external = false;
  bool has_raw = false;
  std::string_view raw;
  std::vector<std::string_view> packed;  // runs of packed typed values
  pbf_wire_type typed = pbf_wire_type::unknown;
  std::vector<std::uint64_t> loose;  // typed values that came one at a time, as bits
  std::string_view location, offset, length;

  void add_dim(std::int64_t dim) {
    if (dims.size() == Shape::kMaxRank) refuse_unsupported("a tensor has more than 8 axes");
    dims.push_back(dim);
  }
  void add_packed(std::string_view run, pbf_wire_type type) {
    typed = type;
    packed.push_back(run);
  }
  void add_loose(std::uint64_t bits, pbf_wire_type type) {
    typed = type;
    if (loose.size() >= kMaxLooseValues) refuse_unsupported("too many unpacked tensor values; export the model with raw_data");
    loose.push_back(bits);
  }
};

void TensorReader::read(protozero::pbf_reader message, std::string_view& name, Constant& tensor, std::string& problem) {
  Wire wire;
  const auto varint = [](auto tag) { return tag_and_type(static_cast<unsigned>(tag), pbf_wire_type::varint); };
  const auto text = [](auto tag) { return tag_and_type(static_cast<unsigned>(tag), pbf_wire_type::length_delimited); };
  try {
    while (message.next()) {
      const std::uint32_t field = message.tag_and_type();
      if (field == varint(1)) {
        wire.add_dim(message.get_int64());
      } else if (field == text(1)) {
        for (const std::int64_t dim : message.get_packed_int64()) wire.add_dim(dim);
      } else if (field == varint(2)) {
        wire.data_type = message.get_int64();
      } else if (field == text(8)) {
        name = view(message.get_view());
      } else if (field == text(9)) {
        wire.raw = view(message.get_view());
        wire.has_raw = true;
      } else if (field == text(4)) {
        wire.add_packed(view(message.get_view()), pbf_wire_type::fixed32);
      } else if (field == text(10)) {
        wire.add_packed(view(message.get_view()), pbf_wire_type::fixed64);
      } else if (field == text(5) || field == text(7) || field == text(11)) {
        wire.add_packed(view(message.get_view()), pbf_wire_type::varint);
      } else if (field == tag_and_type(4u, pbf_wire_type::fixed32)) {
        wire.add_loose(message.get_fixed32(), pbf_wire_type::fixed32);
      } else if (field == tag_and_type(10u, pbf_wire_type::fixed64)) {
        wire.add_loose(message.get_fixed64(), pbf_wire_type::fixed64);
      } else if (field == varint(5) || field == varint(7) || field == varint(11)) {
        wire.add_loose(message.get_uint64(), pbf_wire_type::varint);
      } else if (field == varint(14)) {
        wire.external = message.get_int64() == 1;
      } else if (field == text(13)) {
        protozero::pbf_reader entry = message.get_message();
        std::string_view key, value;
        while (entry.next()) {
          if (entry.tag_and_type() == text(1))
            key = view(entry.get_view());
          else if (entry.tag_and_type() == text(2))
            value = view(entry.get_view());
          else
            entry.skip();
        }
        if (key == "location") wire.location = value;
        if (key == "offset") wire.offset = value;
        if (key == "length") wire.length = value;
      } else {
        message.skip();
      }
    }
    locate(wire, tensor);
  } catch (const Refusal& refusal) {
    note(refusal, name, problem);
  }
}

void TensorReader::read_sparse(protozero::pbf_reader message, std::string_view& name, Constant& tensor, std::string& problem) {
  Constant values, indices;
  std::string_view unnamed;
  std::vector<std::int64_t> dims;
  const auto add_dim = [&](std::int64_t dim) {
    if (dims.size() == Shape::kMaxRank) refuse_malformed("a sparse tensor has more than 8 axes");
    dims.push_back(dim);
  };
  while (message.next()) {
    const std::uint32_t field = message.tag_and_type();
    if (field == tag_and_type(1u, pbf_wire_type::length_delimited)) {
      read(message.get_message(), name, values, problem);
    } else if (field == tag_and_type(2u, pbf_wire_type::length_delimited)) {
      read(message.get_message(), unnamed, indices, problem);
    } else if (field == tag_and_type(3u, pbf_wire_type::varint)) {
      add_dim(message.get_int64());
    } else if (field == tag_and_type(3u, pbf_wire_type::length_delimited)) {
      for (const std::int64_t dim : message.get_packed_int64()) add_dim(dim);
    } else {
      message.skip();
    }
  }
  if (!problem.empty()) return;
  try {
    const Shape shape = shape_of_sparse(values, indices, dims);
    const std::uint64_t each = size_of(values.dtype), count = static_cast<std::uint64_t>(values.elements());
    const auto bytes = checked_mul(static_cast<std::uint64_t>(shape.element_count()), each);
    if (!bytes) refuse_malformed("a tensor's size overflows");
    if (count > 0 && *bytes / kMostSparseGain > count * each) refuse_unsupported("it is too large for so few values that are not zero");
    if (count > 0) take_allowance(*bytes);
    tensor = dense_of(values, indices, shape);
  } catch (const Refusal& refusal) {
    note(refusal, name, problem);
  }
}

void TensorReader::locate(const Wire& wire, Constant& tensor) {
  const auto shape = Shape::make(wire.dims);
  if (!shape) refuse_malformed("a tensor has a negative or overflowing extent");
  if (const auto narrow = narrow_type_of(wire.data_type)) {
    // Several to a byte, in whatever field they stand: bytes first, then values of a byte each.
    const std::int64_t each = 8 / narrow->bits, count = shape->element_count();
    Constant bytes;
    locate_bytes(wire, DType::kU8, Shape{count / each + (count % each == 0 ? 0 : 1)}, bytes);
    tensor = unpacked(bytes, *shape, count, narrow->bits, narrow->is_signed);
    return;
  }
  const auto dtype = dtype_of(wire.data_type);
  if (!dtype) refuse_unsupported("a tensor's values are of type " + type_text(wire.data_type) + ", which is not supported");
  locate_bytes(wire, *dtype, *shape, tensor);
}

void TensorReader::locate_bytes(const Wire& wire, DType dtype, const Shape& shape, Constant& tensor) {
  const auto size_bytes = checked_mul(static_cast<std::uint64_t>(shape.element_count()), size_of(dtype));
  if (!size_bytes) refuse_malformed("a tensor's size overflows");
  // Readers of the one and of the other would run different models.
  const bool typed = !wire.loose.empty() || std::any_of(wire.packed.begin(), wire.packed.end(), [](auto run) { return !run.empty(); });
  if (typed && (wire.external || !wire.raw.empty())) refuse_malformed("its values stand in two places, in a typed field and beside it");
  if (wire.external && !wire.raw.empty()) refuse_malformed("its values stand in two places, in the file and outside");
  if (wire.external) return locate_external(wire, dtype, shape, *size_bytes, tensor);
  if (absent_ != AbsentData::kRefused && !typed && wire.raw.empty() && *size_bytes > 0) {
    tensor = without_data(dtype, shape);
    return;
  }
  if (wire.has_raw) {
    if (wire.raw.size() != *size_bytes)
      refuse_malformed("raw_data has " + std::to_string(wire.raw.size()) + " bytes, shape " + shape.to_string() + " needs " +
                       std::to_string(*size_bytes));
    tensor = make_view(dtype, shape, bytes_of(wire.raw), file_);
    return;
  }
  const bool in_place =
      wire.packed.size() == 1 && wire.loose.empty() &&
      ((wire.typed == pbf_wire_type::fixed32 && dtype == DType::kF32) || (wire.typed == pbf_wire_type::fixed64 && dtype == DType::kF64));
  if (in_place && wire.packed[0].size() == *size_bytes) {
    tensor = make_view(dtype, shape, bytes_of(wire.packed[0]), file_);
    return;
  }
  decode(wire, dtype, shape, tensor);
}

Constant TensorReader::without_data(DType dtype, const Shape& shape) {
  if (absent_ != AbsentData::kMadeUp || dtype != DType::kF32) return make_absent(dtype, shape);
  const auto bytes = static_cast<std::uint64_t>(shape.element_count()) * sizeof(float);
  if (bytes > kMostDrawnBytes - drawn_bytes_)
    refuse_unsupported("more than " + std::to_string(kMostDrawnBytes >> 30) + " GiB of weights would have to be made up");
  drawn_bytes_ += bytes;
  return make_drawn(shape, drawn_++);
}

void TensorReader::locate_external(const Wire& wire, DType dtype, const Shape& shape, std::uint64_t size_bytes, Constant& tensor) {
  auto& file = external_[std::string(wire.location)];
  if (!file) {
    auto opened = MappedFile::open_beneath(directory_, std::string(wire.location));
    if (!opened && absent_ != AbsentData::kRefused && opened.error().code == ErrorCode::kIo) {
      tensor = without_data(dtype, shape);
      return;
    }
    if (!opened) refuse_malformed(opened.error().to_string());
    file = *opened;
  }
  const std::uint64_t offset = wire.offset.empty() ? 0 : parse_count(wire.offset);
  const std::uint64_t length = wire.length.empty() ? size_bytes : parse_count(wire.length);
  const std::uint64_t available = file->bytes().size();
  if (length != size_bytes) refuse_malformed("the length of external data does not match the tensor's shape");
  if (length > available || offset > available - length) refuse_malformed("external data lies beyond the end of its file");
  tensor = make_view(dtype, shape, file->bytes().data() + offset, file);
}

void TensorReader::take_allowance(std::uint64_t bytes) {
  if (bytes > kMaxDecodedBytes - decoded_bytes_)
    refuse_unsupported("too many tensor values in typed fields or sparse; export the model with raw_data");
  decoded_bytes_ += bytes;
}

void TensorReader::decode(const Wire& wire, DType dtype, const Shape& shape, Constant& tensor) {
  const auto count = static_cast<std::uint64_t>(shape.element_count());
  // A value takes at least one byte on the wire, so a shape that promises more than the file has is refused before anything is allocated.
  std::uint64_t on_wire = wire.loose.size();
  for (const std::string_view run : wire.packed) on_wire += run.size();
  if (count > on_wire) refuse_malformed("a tensor of shape " + shape.to_string() + " has too few values");
  const std::uint64_t size_bytes = count * size_of(dtype);
  take_allowance(size_bytes);

  auto bytes = std::make_shared<std::vector<std::byte>>(size_bytes);
  const std::size_t size = size_of(dtype);
  std::uint64_t filled = 0;
  // The low bytes of the wire's bits are the element, for integers, f16 and bf16 bits (in int32_data) and reals alike.
  const auto put = [&](std::uint64_t bits) {
    if (filled == count) refuse_malformed("a tensor of shape " + shape.to_string() + " has too many values");
    std::memcpy(bytes->data() + filled++ * size, &bits, size);
  };
  const bool fits = is_float(dtype) && size > 2 ? (dtype == DType::kF32) == (wire.typed == pbf_wire_type::fixed32) &&
                                                      (dtype == DType::kF64) == (wire.typed == pbf_wire_type::fixed64)
                                                : wire.typed == pbf_wire_type::varint;
  if (count > 0 && !fits) refuse_malformed("a tensor's values stand in a field of another type");
  for (const std::string_view run : wire.packed) {
    const char* at = run.data();
    const char* const end = at + run.size();
    while (at != end) {
      if (wire.typed == pbf_wire_type::varint) {
        put(protozero::decode_varint(&at, end));
        continue;
      }
      std::uint64_t bits = 0;
      if (static_cast<std::size_t>(end - at) < size) refuse_malformed("a tensor's values end in the middle of one");
      std::memcpy(&bits, at, size);
      at += size;
      put(bits);
    }
  }
  for (const std::uint64_t bits : wire.loose) put(bits);
  if (filled != count) refuse_malformed("a tensor of shape " + shape.to_string() + " has too few values");
  tensor = make_view(dtype, shape, bytes->data(), bytes);
}

}  // namespace sluice::importer
