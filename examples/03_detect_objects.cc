// Finds things in a picture with YOLOX: 03_detect_objects yolox_nano.sluice PICTURE LABELS
//
// The picture is fitted into 416 x 416, grey round it, blue first, not scaled. The output has a row for each cell of three grids (strides
// 8, 16, 32): centre and size in cells, a score that something is there, a score for each class.
#include "picture.h"

int main(int argc, char** argv) {
  if (argc != 4) return 1;
  const example::Picture picture = example::read_picture(argv[2]);
  const std::vector<std::string> labels = example::read_lines(argv[3]);
  example::Runner model(argv[1]);

  const int side = static_cast<int>(model.input_shape(0)[2]);
  const float ratio =
      std::min(static_cast<float>(side) / static_cast<float>(picture.width), static_cast<float>(side) / static_cast<float>(picture.height));
  const example::Picture small = example::resize(picture, static_cast<int>(static_cast<float>(picture.width) * ratio),
                                                 static_cast<int>(static_cast<float>(picture.height) * ratio));
  example::Picture fitted = example::blank(side, side, 114);
  for (int y = 0; y < small.height; ++y)
    for (int x = 0; x < small.width; ++x)
      for (int c = 0; c < 3; ++c) fitted.at(x, y, c) = small.at(x, y, c);
  model.set<float>(0, example::planes(fitted, true, [](float v) { return v; }));
  model.run();

  const std::vector<float> rows = model.output(0);
  const auto width = static_cast<std::size_t>(model.shape(0)[2]);
  std::vector<example::Box> boxes;
  std::size_t row = 0;
  for (const int stride : {8, 16, 32})
    for (int gy = 0; gy < side / stride; ++gy)
      for (int gx = 0; gx < side / stride; ++gx, ++row) {
        const float* r = rows.data() + row * width;
        const auto best = std::max_element(r + 5, r + width);
        const float score = r[4] * *best;
        if (score < 0.3f) continue;
        const auto s = static_cast<float>(stride);
        const float x = (r[0] + static_cast<float>(gx)) * s, y = (r[1] + static_cast<float>(gy)) * s, w = std::exp(r[2]) * s,
                    h = std::exp(r[3]) * s;
        boxes.push_back(
            {(x - w / 2) / ratio, (y - h / 2) / ratio, (x + w / 2) / ratio, (y + h / 2) / ratio, score, static_cast<int>(best - (r + 5))});
      }
  for (const example::Box& box : example::best_boxes(boxes, 0.45f))
    std::printf("%-14s %.2f  [%.0f, %.0f, %.0f, %.0f]\n", labels.at(static_cast<std::size_t>(box.label)).c_str(), box.score, box.left,
                box.top, box.right, box.bottom);
}
