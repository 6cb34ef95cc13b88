// sluice-make-family FAMILY NUMBER FILE [--qdq]: writes a variant of a family as an ONNX file of shapes without data; with --qdq one of
// integers, with QuantizeLinear and DequantizeLinear and weights of 8 bits.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/importer/onnx_builder.h"
#include "tests/prediction/families.h"

int main(int argc, char** argv) {
  using sluice::test::Arithmetic;
  const bool integers = argc == 5 && std::strcmp(argv[4], "--qdq") == 0;
  std::string bytes;
  if (argc == 4 || integers) {
    const auto number = static_cast<std::uint32_t>(std::strtoul(argv[2], nullptr, 10));
    bytes = sluice::test::variant_of(argv[1], number, integers ? Arithmetic::kIntegers : Arithmetic::kFloats);
  }
  if (bytes.empty()) {
    std::fputs("usage: sluice-make-family FAMILY NUMBER FILE.onnx [--qdq], families:", stderr);
    for (const std::string_view name : sluice::test::family_names()) std::fprintf(stderr, " %s", std::string(name).c_str());
    std::fputs("\n", stderr);
    return 1;
  }
  sluice::test::write_file(argv[3], bytes);
  return 0;
}
