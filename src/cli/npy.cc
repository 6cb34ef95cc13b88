#include "src/cli/npy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>

#include "sluice/core/units.h"
#include "src/cli/failure.h"
#include "src/cli/file.h"
#include "src/cli/text.h"

namespace sluice::cli {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMaxHeader = 65536;  // numpy writes 128 bytes for a plain array

struct NumpyType {
  std::string_view code;  // without the byte order
  DType dtype;
};
constexpr NumpyType kNumpyTypes[] = {{"f4", DType::kF32}, {"f2", DType::kF16}, {"f8", DType::kF64}, {"i1", DType::kI8},
                                     {"i2", DType::kI16}, {"i4", DType::kI32}, {"i8", DType::kI64}, {"u1", DType::kU8},
                                     {"u2", DType::kU16}, {"u4", DType::kU32}, {"u8", DType::kU64}, {"b1", DType::kBool},
                                     {"V2", DType::kBF16}};  // as numpy saves the bfloat16 of ml_dtypes

/// A reader of the one form numpy writes: {'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  NpyHeader read() {
    std::optional<std::string_view> descr;
    std::optional<bool> fortran;
    std::optional<Shape> shape;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr" && !descr) {
        descr = quoted();
      } else if (key == "fortran_order" && !fortran) {
        fortran = boolean();
      } else if (key == "shape" && !shape) {
        shape = tuple();
      } else {
        malformed();
      }
      if (!accept(',') && peek() != '}') malformed();
    }
    skip_space();
    if (at_ != text_.size() || !descr || !fortran || !shape) malformed();
    if (*fortran) raise(make_error(ErrorCode::kUnsupported, path_, "the array is in Fortran order; save it with numpy.ascontiguousarray"));
    return {type_of(*descr), *shape};
  }

 private:
  [[noreturn]] void malformed() const { raise(make_error(ErrorCode::kInvalidArgument, path_, "the .npy header is malformed")); }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  char peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) malformed();
  }

  std::string_view quoted() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') malformed();
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) malformed();
    const std::string_view word = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return word;
  }

  bool boolean() {
    skip_space();
    for (const std::string_view word : {std::string_view("True"), std::string_view("False")}) {
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      return word == "True";
    }
    malformed();
  }

  Shape tuple() {
    std::array<std::int64_t, Shape::kMaxRank> extents{};
    std::size_t rank = 0;
    expect('(');
    while (!accept(')')) {
      if (rank == extents.size()) malformed();
      skip_space();
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), extents[rank]);
      if (error != std::errc() || extents[rank] < 0) malformed();
      at_ = static_cast<std::size_t>(end - text_.data());
      ++rank;
      if (!accept(',') && peek() != ')') malformed();
    }
    const std::optional<Shape> shape = Shape::make({extents.data(), rank});
    if (!shape) malformed();
    return *shape;
  }

  DType type_of(std::string_view descr) const {
    if (descr.size() == 3) {
      const bool one_byte = descr[2] == '1';
      const bool order_known = descr[0] == '<' || (one_byte && (descr[0] == '|' || descr[0] == '>'));
      for (const NumpyType& row : kNumpyTypes)
        if (order_known && descr.substr(1) == row.code) return row.dtype;
    }
    raise(make_error(ErrorCode::kUnsupported, path_,
                     "the .npy element type is not one of f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1 and V2 (bf16), little-endian"));
  }

  std::string_view text_;
  const std::string& path_;
  std::size_t at_ = 0;
};

std::string_view code_of(DType dtype) {
  for (const NumpyType& row : kNumpyTypes)
    if (row.dtype == dtype) return row.code;
  return "f4";
}

}  // namespace

NpyHeader parse_npy_header(std::string_view dictionary, const std::string& path) { return HeaderReader(dictionary, path).read(); }

namespace {

/// The header before the values.
struct NpyStart {
  NpyHeader header;
  std::uint64_t data_offset = 0;
};

/// Reads it through `read(offset, bytes)`, of a file of `size` bytes.
template <class Read>
NpyStart read_start(const std::string& path, std::uint64_t size, const Read& read) {
  std::array<std::byte, 8> start{};
  read(0, std::span<std::byte>(start));
  if (std::memcmp(start.data(), kMagic.data(), kMagic.size()) != 0) {
    raise(make_error(ErrorCode::kInvalidArgument, path, "is not a .npy file"));
  }
  const auto version = static_cast<unsigned>(start[6]);
  if (version < 1 || version > 3) raise(make_error(ErrorCode::kUnsupported, path, "is a .npy file of an unknown version"));
  std::array<std::byte, 4> length_bytes{};
  const std::size_t length_size = version == 1 ? 2 : 4;
  read(start.size(), std::span(length_bytes).first(length_size));
  std::size_t header_size = 0;
  for (std::size_t i = 0; i < length_size; ++i) header_size |= static_cast<std::size_t>(length_bytes[i]) << (8 * i);
  if (header_size > kMaxHeader) raise(make_error(ErrorCode::kInvalidArgument, path, "the .npy header is malformed"));
  std::string dictionary(header_size, '\0');
  read(start.size() + length_size, std::as_writable_bytes(std::span(dictionary)));
  const NpyStart found{parse_npy_header(dictionary, path), start.size() + length_size + header_size};
  const std::size_t bytes = checked_size(found.header.dtype, found.header.shape, path);
  if (size - found.data_offset != bytes) {
    raise(make_error(ErrorCode::kInvalidArgument, path, "the shape in the header does not match the bytes in the file", bytes,
                     size - found.data_offset));
  }
  return found;
}

}  // namespace

Pieces open_npy(const std::string& path) {
  const auto file = std::make_shared<const FileDescriptor>(unwrap(open_for_reading(path)));
  const NpyStart start = read_start(path, size_of_file(*file, path),
                                    [&](std::uint64_t offset, std::span<std::byte> out) { read_exactly(*file, offset, out, path); });
  const DType dtype = start.header.dtype;
  return {dtype, start.header.shape, [=, offset = start.data_offset, size = size_of(dtype)](std::size_t first, std::span<std::byte> out) {
            read_exactly(*file, offset + first * size, out, path);
          }};
}

HostTensor parse_npy(std::span<const std::byte> file, const std::string& path) {
  const NpyStart start = read_start(path, file.size(), [&](std::uint64_t offset, std::span<std::byte> out) {
    if (offset > file.size() || out.size() > file.size() - offset)
      raise(make_error(ErrorCode::kInvalidArgument, path, "ends before its .npy header does"));
    std::copy_n(file.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
  });
  HostTensor tensor = make_host_tensor(start.header.dtype, start.header.shape);
  std::copy(file.begin() + static_cast<std::ptrdiff_t>(start.data_offset), file.end(), tensor.data.begin());
  return tensor;
}

HostTensor read_npy(const std::string& path) {
  const Pieces pieces = open_npy(path);
  HostTensor tensor = make_host_tensor(pieces.dtype, pieces.shape);
  pieces.read(0, tensor.data);
  return tensor;
}

std::string npy_start(DType dtype, const Shape& shape) {
  std::string extents;
  for (const std::int64_t extent : shape.dims()) extents += fmt::format("{},", extent);
  if (shape.rank() > 1) extents.pop_back();
  const std::string dictionary =
      fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}", size_of(dtype) == 1 ? '|' : '<', code_of(dtype), extents);
  // Magic, version and length take 10 bytes; the data starts on a multiple of 64, after a newline.
  const std::size_t total = align_up(10 + dictionary.size() + 1, 64);
  const std::size_t length = total - 10;
  std::string head(kMagic);
  head += '\x01';
  head += '\x00';
  head += static_cast<char>(length & 0xff);
  head += static_cast<char>(length >> 8);
  head += dictionary;
  head.resize(total - 1, ' ');
  head += '\n';
  return head;
}

namespace {

/// Calls write(offset, bytes) with all of the file, from its first byte to its last.
template <class Write>
void write_with(const Pieces& tensor, const Write& write) {
  const std::string head = npy_start(tensor.dtype, tensor.shape);
  write(0, std::as_bytes(std::span(head)));
  for_each_piece(tensor,
                 [&](std::size_t first, std::span<const std::byte> bytes) { write(head.size() + first * size_of(tensor.dtype), bytes); });
}

}  // namespace

void write_npy(const std::string& path, const Pieces& tensor) {
  AtomicFile file = unwrap(AtomicFile::create(path));
  write_with(tensor, [&](std::uint64_t offset, std::span<const std::byte> bytes) { unwrap(file.write_at(Bytes(offset), bytes)); });
  unwrap(file.commit());
}

void write_npy(const FileDescriptor& file, const std::string& path, const Pieces& tensor) {
  write_with(tensor, [&](std::uint64_t offset, std::span<const std::byte> bytes) { write_exactly(file, offset, bytes, path); });
  if (file_ops().fsync(file.get()) != 0) raise(make_io_error(path, "cannot be written to the disk", errno));
}

}  // namespace sluice::cli
