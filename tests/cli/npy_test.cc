#include "src/cli/npy.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>

#include "src/cli/failure.h"
#include "tests/cli/temporary.h"

using namespace sluice;
using namespace sluice::cli;

namespace {

std::string file_with_header(const TemporaryFolder& folder, const std::string& dictionary, std::size_t data_bytes, char version = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += version;
  bytes += '\0';
  bytes += static_cast<char>(dictionary.size() & 0xff);
  bytes += static_cast<char>(dictionary.size() >> 8);
  if (version > 1) bytes += std::string(2, '\0');
  bytes += dictionary + std::string(data_bytes, '\0');
  const std::string path = folder.path("array.npy");
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

ErrorCode code_of_reading(const std::string& path) {
  try {
    read_npy(path);
  } catch (const Failure& failure) {
    return failure.code();
  }
  FAIL("reading succeeded");
  return ErrorCode::kInternal;
}

}  // namespace

TEST_CASE("a written array reads back, whatever its type and rank") {
  const TemporaryFolder folder;
  const Shape shapes[] = {Shape{}, Shape{0}, Shape{5}, Shape{2, 3}, Shape{1, 2, 3, 4}, Shape{1, 1, 1, 1, 1, 1, 1, 2}, Shape{3, 5001}};
  for (int type = 0; type < kDTypeCount; ++type) {
    if (static_cast<DType>(type) == DType::kBF16) continue;  // numpy has no such type
    for (const Shape& shape : shapes) {
      HostTensor tensor = make_host_tensor(static_cast<DType>(type), shape);
      for (std::size_t i = 0; i < tensor.data.size(); ++i) tensor.data[i] = static_cast<std::byte>(i * 7 + 1);
      write_npy(folder.path("a.npy"), pieces_of(tensor));
      const HostTensor back = read_npy(folder.path("a.npy"));
      CHECK(back.dtype == tensor.dtype);
      CHECK(back.shape == shape);
      CHECK(back.data == tensor.data);
    }
  }
}

TEST_CASE("the data of a written array starts on a multiple of 64") {
  const TemporaryFolder folder;
  write_npy(folder.path("a.npy"), pieces_of(make_host_tensor(DType::kF32, Shape{1, 1000})));
  std::ifstream stream(folder.path("a.npy"), std::ios::binary | std::ios::ate);
  CHECK((static_cast<std::size_t>(stream.tellg()) - 4000) % 64 == 0);
}

TEST_CASE("headers as numpy writes them in versions 1, 2 and 3 are read") {
  const TemporaryFolder folder;
  for (const char version : {1, 2, 3}) {
    const std::string path = file_with_header(folder, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n", 24, version);
    CHECK(read_npy(path).shape == Shape{2, 3});
  }
  CHECK(parse_npy_header("{'descr': '|u1', 'fortran_order': False, 'shape': (7,), }", "a").shape == Shape{7});
  CHECK(parse_npy_header("{'descr': '<i8', 'fortran_order': False, 'shape': (), }", "a").shape == Shape{});
}

TEST_CASE("hostile headers are refused") {
  const TemporaryFolder folder;
  const char* malformed[] = {
      "",
      "{",
      "{}",
      "{'descr'",
      "{'descr': '<f4",
      "{'descr': '<f4', 'fortran_order': False}",
      "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,), }",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } trailing",
      "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,), }",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1 1), }",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 4294967296), }",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }",              // 8 bytes, not 4
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }",  // declared beyond the file
  };
  for (const char* dictionary : malformed) {
    INFO(dictionary);
    CHECK(code_of_reading(file_with_header(folder, dictionary, 4)) == ErrorCode::kInvalidArgument);
  }
  const char* unsupported[] = {
      "{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }",
      "{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }",
      "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
      "{'descr': '<f4', 'fortran_order': True, 'shape': (1,), }",
  };
  for (const char* dictionary : unsupported) {
    INFO(dictionary);
    CHECK(code_of_reading(file_with_header(folder, dictionary, 4)) == ErrorCode::kUnsupported);
  }
}

TEST_CASE("every truncation of an array is refused") {
  const TemporaryFolder folder;
  write_npy(folder.path("a.npy"), pieces_of(make_host_tensor(DType::kF32, Shape{3})));
  std::ifstream stream(folder.path("a.npy"), std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(stream)), {});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    std::ofstream(folder.path("cut.npy"), std::ios::binary) << whole.substr(0, size);
    CHECK(code_of_reading(folder.path("cut.npy")) == ErrorCode::kInvalidArgument);
  }
  CHECK(code_of_reading(folder.path("absent.npy")) == ErrorCode::kIo);
}
