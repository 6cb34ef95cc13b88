// sluice-make-family FAMILY NUMBER FILE: writes a variant of a family as an ONNX file of shapes without data.
#include <cstdio>
#include <cstdlib>

#include "tests/importer/onnx_builder.h"
#include "tests/prediction/families.h"

int main(int argc, char** argv) {
  const std::string bytes =
      argc == 4 ? sluice::test::variant_of(argv[1], static_cast<std::uint32_t>(std::strtoul(argv[2], nullptr, 10))) : "";
  if (bytes.empty()) {
    std::fputs("usage: sluice-make-family FAMILY NUMBER FILE.onnx, families:", stderr);
    for (const std::string_view name : sluice::test::family_names()) std::fprintf(stderr, " %s", std::string(name).c_str());
    std::fputs("\n", stderr);
    return 1;
  }
  sluice::test::write_file(argv[3], bytes);
  return 0;
}
