// Reads any bytes as what inputs and expected outputs come from: an .npy, a TensorProto, a picture. The first byte says which.
#include <cstdint>

#include "src/cli/failure.h"
#include "src/cli/image.h"
#include "src/cli/npy.h"
#include "src/cli/tensor_proto.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice;
  if (size == 0) return 0;
  const std::span<const std::uint8_t> bytes(data + 1, size - 1);
  constexpr std::uint64_t kMemoryForPictures = 16u << 20;
  try {
    if (data[0] % 4 == 1) {
      static_cast<void>(cli::parse_tensor_proto(std::as_bytes(bytes), "input"));
      return 0;
    }
    const test::MemoryFile file(bytes);
    if (data[0] % 4 == 0) {
      static_cast<void>(cli::read_npy(file.path()));
      static_cast<void>(cli::open_npy(file.path()));
    } else {
      const model::Preprocess rule =
          data[0] % 4 == 2 ? model::Preprocess{} : model::Preprocess{true, 16, 8, true, 0.5f, {1.0f, 2.0f, 3.0f}, {1.0f, 1.0f, 1.0f}};
      static_cast<void>(cli::load_image(file.path(), {Shape{1, 3, 8, 8}, DType::kF32, rule, cli::ImageFit::kCrop, kMemoryForPictures}));
    }
  } catch (const cli::Failure&) {
  }
  return 0;
}
