// Converts any bytes as an ONNX file. What is converted opens; what is not is refused for a reason that is the file's.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "sluice/importer/importer.h"
#include "sluice/model/model_file.h"
#include "sluice/operators/validate.h"
#include "tests/fuzz/memory_file.h"

namespace {

/// The model file's place, which every input replaces.
const std::string& model_path() {
  static const std::string path = [] {
    std::string folder = "/tmp/sluice-fuzz-XXXXXX";
    if (::mkdtemp(folder.data()) == nullptr) std::abort();
    return folder + "/m.sluice";
  }();
  return path;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice;
  const test::MemoryFile file({data, size});
  importer::ConvertOptions options;
  options.dims = {{"N", 2}, {"S", 3}};
  options.max_constants = Bytes(std::uint64_t{4} << 20);
  importer::ConvertReport report;
  const Status converted = importer::convert(file.path(), model_path(), options, report);
  if (converted ? !model::ModelFile::open(model_path(), operators::validate_node).has_value()
                : converted.error().code == ErrorCode::kInternal)
    std::abort();
  static_cast<void>(::unlink(model_path().c_str()));
  return 0;
}
