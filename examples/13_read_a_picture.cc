// Reads a word or a line from a picture that you drew or photographed, with the reader that this repository trained (examples/training):
//
//     sluice convert examples/models/reader.onnx -o reader.sluice --dim W=32..1024:8
//     13_read_a_picture reader.sluice examples/models/reader_characters.txt PICTURE.png [--box 20,8,200,30] [--budget 1MiB]
//
// Any size, dark on light or light on dark, one line of text. `--box` says where the text lies: left, top, right, bottom.
#include "reader.h"

namespace {

constexpr const char* kUsage =
    "usage: 13_read_a_picture READER.sluice CHARACTERS.txt PICTURE.png|.jpg [--box LEFT,TOP,RIGHT,BOTTOM] [--budget SIZE]";

example::Picture part_of(const example::Picture& picture, const std::string& box) {
  if (box.empty()) return picture;
  int left = 0, top = 0, right = 0, bottom = 0, end = 0;
  const int found = std::sscanf(box.c_str(), "%d,%d,%d,%d%n", &left, &top, &right, &bottom, &end);
  if (found != 4 || static_cast<std::size_t>(end) != box.size()) example::complain("--box " + box + ": not LEFT,TOP,RIGHT,BOTTOM");
  if (left < 0 || top < 0 || right > picture.width || bottom > picture.height || left >= right || top >= bottom)
    example::complain("--box " + box + " does not lie in the picture of " + std::to_string(picture.width) + " x " +
                      std::to_string(picture.height));
  return example::cut(picture, left, top, right - left, bottom - top);
}

}  // namespace

int main(int argc, char** argv) {
  const example::Words words(argc, argv, 3, {"box", "budget"}, kUsage);
  const sluice::SessionOptions options{.budget = words.bytes("budget")};
  example::Reader reader(words[0], words[1], [&](const sluice::Model&) { return options; });
  const example::Picture picture = part_of(example::read_picture(words[2].c_str()), words.text("box", ""));
  const example::Line line = example::line_of(picture, reader.most_columns());
  const std::string text = reader.text_of(reader.logits(line));
  if (text.empty()) example::complain(words[2] + ": no text was found", 2);
  std::printf("%s\n", text.c_str());
}
