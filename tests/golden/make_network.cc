// make_network NAME OUT.onnx: one of the networks of made_networks.h.
#include <cstdio>

#include "tests/golden/made_networks.h"

int main(int argc, char** argv) {
  if (argc == 3 && sluice::test::write_made_network(argv[1], argv[2])) return 0;
  std::fputs("usage: make_network mobilenet_v2|resnet152|vit_b_16|gpt2|many_kinds OUT.onnx, in a folder that can be written\n", stderr);
  return 1;
}
