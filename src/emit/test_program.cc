// NAME_test.c: the network on one input, compared bit by bit with what the engine gave.
#include <cstring>

#include "sluice/emit/emit.h"
#include "src/emit/text.h"
#include "src/emit/write.h"

namespace sluice::emit {
namespace {

template <class T>
std::string array_of(const std::string& name, const std::vector<std::byte>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return c_array(name, values);
}

/// Floats are compared by their bits, so they are written as such.
std::string typed_array(const std::string& name, DType type, const std::vector<std::byte>& bytes) {
  return size_of(type) == 1 ? array_of<std::uint8_t>(name, bytes) : array_of<std::uint32_t>(name, bytes);
}

}  // namespace

std::string test_program(const Emission& emission, const EmitOptions& options, const TestVector& vector) {
  const Network& network = emission.network;
  const std::string& name = options.name;
  const bool streamed = options.network.input == InputForm::kStreamed;
  std::string text = "/* Runs " + name + " on one input and compares the outputs with the engine's, bit by bit. */\n#include \"" + name +
                     ".h\"\n\n#include <stdio.h>\n#include <string.h>\n\n";
  for (std::size_t i = 0; i < network.inputs.size(); ++i)
    text += typed_array("input_" + std::to_string(i), network.storages[network.inputs[i].storage].dtype, vector.inputs[i]);
  for (std::size_t i = 0; i < network.outputs.size(); ++i)
    text += typed_array("expected_" + std::to_string(i), network.storages[network.outputs[i].storage].dtype, vector.outputs[i]);
  text += "\nstatic union {\n  uint8_t bytes[" + name + "_ARENA_BYTES];\n  float alignment;\n} arena;\n\n";
  if (streamed) {
    const std::string row = name + "_INPUT_PIXELS * " + name + "_INPUT_CHANNELS";
    text += "static void read_row(void *user, uint32_t row, void *to) {\n  (void)user;\n  memcpy(to, input_0 + row * (" + row +
            "), sizeof(" + name + "_input) * " + row + ");\n}\n\n";
  }
  text += "int main(void) {\n  int differ = 0;\n";
  if (!streamed)
    for (std::size_t i = 0; i < network.inputs.size(); ++i)
      text += "  memcpy(" + name + "_input_in(arena.bytes, " + std::to_string(i) + "), input_" + std::to_string(i) + ", sizeof input_" +
              std::to_string(i) + ");\n";
  text += "  " + name + "_run(arena.bytes" + (streamed ? ", read_row, NULL" : "") + ");\n";
  for (std::size_t i = 0; i < network.outputs.size(); ++i) {
    const std::string number = std::to_string(i);
    text += "  differ |= memcmp(arena.bytes + " + name + "_OUTPUT" + (i == 0 ? "" : number) + "_OFFSET, expected_" + number +
            ", sizeof expected_" + number + ");\n";
  }
  text += "  puts(differ != 0 ? \"" + name + ": outputs differ\" : \"" + name +
          ": outputs are equal, bit by bit\");\n  return differ != 0;\n}\n";
  return text;
}

}  // namespace sluice::emit
