// Enlarges a picture three times and compares with bicubic interpolation: 08_enlarge super_resolution.sluice PICTURE
//
// The picture is shrunk to 224 x 224 by averaging, enlarged again in both ways, and each result compared with what it was (luminance,
// PSNR).
#include "picture.h"

namespace {

/// Luminance, 0 to 1.
std::vector<float> luminance(const example::Picture& picture) {
  std::vector<float> y;
  for (std::size_t i = 0; i < picture.rgb.size(); i += 3)
    y.push_back((0.299f * picture.rgb[i] + 0.587f * picture.rgb[i + 1] + 0.114f * picture.rgb[i + 2]) / 255.0f);
  return y;
}

double cubic(double d) {
  d = std::fabs(d);
  constexpr double a = -0.5;
  return d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

/// A third of the size, with the kernel widened to the pixels that one stands for.
std::vector<float> shrunk(const std::vector<float>& large, int side, int factor) {
  std::vector<float> small;
  for (int y = 0; y < side / factor; ++y)
    for (int x = 0; x < side / factor; ++x) {
      const double cy = (y + 0.5) * factor - 0.5, cx = (x + 0.5) * factor - 0.5;
      double sum = 0, weights = 0;
      for (int r = std::max(0, static_cast<int>(cy) - 2 * factor); r <= std::min(side - 1, static_cast<int>(cy) + 2 * factor + 1); ++r)
        for (int c = std::max(0, static_cast<int>(cx) - 2 * factor); c <= std::min(side - 1, static_cast<int>(cx) + 2 * factor + 1); ++c) {
          const double weight = cubic((r - cy) / factor) * cubic((c - cx) / factor);
          sum += weight * large[static_cast<std::size_t>(r * side + c)];
          weights += weight;
        }
      small.push_back(static_cast<float>(sum / weights));
    }
  return small;
}

std::vector<float> bicubic(const std::vector<float>& small, int side, int factor) {
  std::vector<float> large;
  for (int y = 0; y < side * factor; ++y)
    for (int x = 0; x < side * factor; ++x) {
      const double sy = (y + 0.5) / factor - 0.5, sx = (x + 0.5) / factor - 0.5;
      double sum = 0;
      for (int r = static_cast<int>(std::floor(sy)) - 1; r <= std::floor(sy) + 2; ++r)
        for (int c = static_cast<int>(std::floor(sx)) - 1; c <= std::floor(sx) + 2; ++c)
          sum += cubic(r - sy) * cubic(c - sx) *
                 small[static_cast<std::size_t>(std::clamp(r, 0, side - 1) * side + std::clamp(c, 0, side - 1))];
      large.push_back(static_cast<float>(sum));
    }
  return large;
}

/// Against `truth`, a border of `edge` pixels left out.
double psnr(const std::vector<float>& found, const std::vector<float>& truth, int side, int edge) {
  double squares = 0;
  int count = 0;
  for (int y = edge; y < side - edge; ++y)
    for (int x = edge; x < side - edge; ++x, ++count) {
      const auto i = static_cast<std::size_t>(y * side + x);
      const double d = std::clamp(found[i], 0.0f, 1.0f) - truth[i];
      squares += d * d;
    }
  return -10 * std::log10(squares / count);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 1;
  example::Runner model(argv[1]);
  const int side = static_cast<int>(model.input_shape(0)[2]), factor = static_cast<int>(model.shape(0)[2]) / side, large = side * factor;
  const example::Picture picture = example::read_picture(argv[2]);
  const int small = std::min({picture.width / factor, picture.height / factor, side}), square = small * factor;
  const std::vector<float> truth =
      luminance(example::cut(picture, (picture.width - square) / 2, (picture.height - square) / 2, square, square));
  const std::vector<float> third = shrunk(truth, square, factor);
  std::vector<float> input;
  for (int y = 0; y < side; ++y)
    for (int x = 0; x < side; ++x)
      input.push_back(third[static_cast<std::size_t>(std::min(y, small - 1) * small + std::min(x, small - 1))]);
  model.set<float>(0, input);
  model.run();
  const std::vector<float> output = model.output(0);
  std::vector<float> found;
  for (int y = 0; y < square; ++y) found.insert(found.end(), output.begin() + y * large, output.begin() + y * large + square);
  std::printf("model   %.2f dB\nbicubic %.2f dB\n", psnr(found, truth, square, 8), psnr(bicubic(third, small, factor), truth, square, 8));
}
