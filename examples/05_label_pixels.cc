// Says what each pixel belongs to, with DeepLab: 05_label_pixels deeplab_v3_dm05.sluice PICTURE. Prints the share of each class.
#include "picture.h"

int main(int argc, char** argv) {
  if (argc != 3) return 1;
  constexpr const char* kClasses[] = {"background", "aeroplane", "bicycle", "bird",  "boat",  "bottle", "bus",
                                      "car",        "cat",       "chair",   "cow",   "table", "dog",    "horse",
                                      "motorbike",  "person",    "plant",   "sheep", "sofa",  "train",  "monitor"};
  example::Runner model(argv[1]);
  const sluice::Shape in = model.input_shape(0);  // [1, height, width, 3]
  const example::Picture picture = example::resize(example::read_picture(argv[2]), static_cast<int>(in[2]), static_cast<int>(in[1]));
  std::vector<float> input = picture.rgb;
  for (float& v : input) v = v / 127.5f - 1.0f;
  model.set<float>(0, input);
  model.run();

  const std::vector<float> scores = model.output(0);  // [1, height, width, 21]
  std::vector<int> count(std::size(kClasses));
  const std::size_t pixels = scores.size() / count.size();
  for (std::size_t p = 0; p < pixels; ++p) {
    const float* s = scores.data() + p * count.size();
    ++count[static_cast<std::size_t>(std::max_element(s, s + count.size()) - s)];
  }
  for (std::size_t c = 0; c < count.size(); ++c)
    if (count[c] > 0) std::printf("%-12s %4.1f %%\n", kClasses[c], 100.0 * count[c] / static_cast<double>(pixels));
}
