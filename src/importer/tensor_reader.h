// Finds a TensorProto's values on the wire: raw, typed or external.
//
// raw_data, packed float_data and double_data and external files are left where they are; typed integers (varints) and unpacked reals are
// decoded, under one allowance for the whole file, because a varint cannot be indexed; sparse tensors become dense under the same.
#pragma once

#include <map>
#include <string>

#include "src/importer/onnx_graph.h"

namespace protozero {
class pbf_reader;
}

namespace sluice::importer {

class TensorReader {
 public:
  TensorReader(std::string directory, std::shared_ptr<const MappedFile> file, AbsentData absent)
      : directory_(std::move(directory)), file_(std::move(file)), absent_(absent) {}

  /// Reads a TensorProto. Malformed data (on the wire, or bytes that do not match the shape) throws; a tensor that is sound but cannot be
  /// used, such as one of a type we do not know, leaves its reason in `problem`.
  void read(protozero::pbf_reader message, std::string_view& name, Constant& tensor, std::string& problem);

  /// The same of a SparseTensorProto, whose name is that of its values. Zeros are written out, under the allowance.
  void read_sparse(protozero::pbf_reader message, std::string_view& name, Constant& tensor, std::string& problem);

  /// The files of external data that were opened, by their locations.
  const std::map<std::string, std::shared_ptr<const MappedFile>>& external_files() const noexcept { return external_; }

 private:
  struct Wire;
  void locate(const Wire& wire, Constant& tensor);
  void locate_bytes(const Wire& wire, DType dtype, const Shape& shape, Constant& tensor);
  void locate_external(const Wire& wire, DType dtype, const Shape& shape, std::uint64_t size_bytes, Constant& tensor);
  Constant without_data(DType dtype, const Shape& shape);
  void decode(const Wire& wire, DType dtype, const Shape& shape, Constant& tensor);
  void take_allowance(std::uint64_t bytes);

  std::string directory_;
  std::shared_ptr<const MappedFile> file_;
  AbsentData absent_;
  std::map<std::string, std::shared_ptr<const MappedFile>> external_;
  std::uint64_t decoded_bytes_ = 0;
  std::uint64_t drawn_bytes_ = 0;  // of the tensors that were made up
  std::uint32_t drawn_ = 0;        // so many
};

}  // namespace sluice::importer
