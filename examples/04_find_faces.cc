// Finds faces with UltraFace: 04_find_faces ultraface_RFB_320.sluice PICTURE. Boxes are shares of the picture.
#include "picture.h"

int main(int argc, char** argv) {
  if (argc != 3) return 1;
  example::Runner model(argv[1]);
  const sluice::Shape in = model.input_shape(0);
  const example::Picture picture = example::resize(example::read_picture(argv[2]), static_cast<int>(in[3]), static_cast<int>(in[2]));
  model.set<float>(0, example::planes(picture, false, [](float v) { return (v - 127.0f) / 128.0f; }));
  model.run();

  const std::vector<float> scores = model.output(0), corners = model.output(1);  // [1, n, 2] background and face, [1, n, 4]
  std::vector<example::Box> boxes;
  for (std::size_t i = 0; i < scores.size() / 2; ++i)
    if (scores[2 * i + 1] > 0.7f)
      boxes.push_back({corners[4 * i], corners[4 * i + 1], corners[4 * i + 2], corners[4 * i + 3], scores[2 * i + 1]});
  for (const example::Box& box : example::best_boxes(boxes, 0.3f))
    std::printf("face %.3f  [%.2f, %.2f, %.2f, %.2f]\n", box.score, box.left, box.top, box.right, box.bottom);
}
