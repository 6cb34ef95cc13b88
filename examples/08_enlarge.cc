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
  const int square = std::min(picture.width, picture.height);
  const std::vector<float> truth = luminance(
      example::resize(example::cut(picture, (picture.width - square) / 2, (picture.height - square) / 2, square, square), large, large));
  std::vector<float> small;
  for (int y = 0; y < side; ++y)
    for (int x = 0; x < side; ++x) {
      float sum = 0;
      for (int r = 0; r < factor; ++r)
        for (int c = 0; c < factor; ++c) sum += truth[static_cast<std::size_t>((y * factor + r) * large + x * factor + c)];
      small.push_back(sum / static_cast<float>(factor * factor));
    }
  model.set<float>(0, small);
  model.run();
  std::printf("model   %.2f dB\nbicubic %.2f dB\n", psnr(model.output(0), truth, large, 8),
              psnr(bicubic(small, side, factor), truth, large, 8));
}
