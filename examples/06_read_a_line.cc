// Reads a line of text: 06_read_a_line en_number_mobile_v2.0_rec.sluice PICTURE DICTIONARY LEFT TOP RIGHT BOTTOM
//
// The model was converted for one width (--dim). Each of its time steps names a character or none; repeats and nones are left out.
#include "picture.h"

int main(int argc, char** argv) {
  if (argc != 8) return 1;
  const int left = std::atoi(argv[4]), top = std::atoi(argv[5]), right = std::atoi(argv[6]), bottom = std::atoi(argv[7]);
  std::vector<std::string> characters = example::read_lines(argv[3]);
  characters.emplace_back(" ");
  example::Runner model(argv[1]);
  const sluice::Shape in = model.input_shape(0);  // [1, 3, 32, width]
  const int height = static_cast<int>(in[2]), width = static_cast<int>(in[3]);
  const example::Picture line = example::cut(example::read_picture(argv[2]), left, top, right - left, bottom - top);
  const int scaled = std::min(width, (right - left) * height / (bottom - top));
  const example::Picture text = example::resize(line, scaled, height);
  // What the line does not fill is zero, the grey between black and white.
  std::vector<float> input(static_cast<std::size_t>(in.element_count()), 0.0f);
  for (int c = 0; c < 3; ++c)
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < scaled; ++x)
        input[static_cast<std::size_t>((c * height + y) * width + x)] = (text.at(x, y, 2 - c) / 255.0f - 0.5f) / 0.5f;
  model.set<float>(0, input);
  model.run();

  const std::vector<float> scores = model.output(0);  // [1, steps, characters and none]
  const auto classes = static_cast<std::size_t>(model.shape(0)[2]);
  std::size_t last = 0;
  for (std::size_t step = 0; step < scores.size() / classes; ++step) {
    const float* s = scores.data() + step * classes;
    const auto best = static_cast<std::size_t>(std::max_element(s, s + classes) - s);
    if (best != 0 && best != last && best <= characters.size()) std::fputs(characters[best - 1].c_str(), stdout);
    last = best;
  }
  std::fputc('\n', stdout);
}
