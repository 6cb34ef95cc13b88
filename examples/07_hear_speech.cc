// Tells a voice from silence with Silero VAD: 07_hear_speech silero_vad_16k_op15.sluice
//
// Two signals are made here, 16 kHz: a humming voice (harmonics of a pitch that glides, shaped by two moving formants, in syllables), and
// faint noise. The model hears 512 samples at a time, with the 64 before them, and carries a state from one piece to the next.
#include "picture.h"

namespace {

constexpr int kRate = 16000, kPiece = 512;

std::vector<float> noise(int samples, float volume) {
  std::vector<float> signal;
  unsigned state = 1;
  for (int i = 0; i < samples; ++i) {
    state = state * 1103515245u + 12345u;
    signal.push_back(volume * (static_cast<float>(state >> 16 & 0x7fff) / 16384.0f - 1.0f));
  }
  return signal;
}

std::vector<float> voice(int samples) {
  std::vector<float> signal = noise(samples, 0.002f);
  double phase = 0;
  for (int i = 0; i < samples; ++i) {
    const double t = static_cast<double>(i) / kRate;
    const double pitch = 130 + 25 * std::sin(2 * 3.14159265 * 0.8 * t), open = 600 + 250 * std::sin(2 * 3.14159265 * 2.1 * t);
    const double front = 1500 + 500 * std::sin(2 * 3.14159265 * 1.7 * t + 1);
    phase += 2 * 3.14159265 * pitch / kRate;
    const double syllable = std::pow(std::max(0.0, std::sin(2 * 3.14159265 * 2.0 * t)), 0.5);
    double sum = 0;
    for (int h = 1; h * pitch < 4000; ++h) {
      const double f = h * pitch;
      const auto resonance = [&](double centre, double width) { return 1 / (1 + (f - centre) * (f - centre) / (width * width)); };
      sum += (resonance(open, 90) + 0.6 * resonance(front, 120) + 0.25 * resonance(2600, 200) + 0.02) / std::sqrt(h) * std::sin(h * phase);
    }
    signal[static_cast<std::size_t>(i)] += static_cast<float>(0.25 * syllable * sum);
  }
  return signal;
}

/// The mean and the largest probability that somebody speaks.
void listen(example::Runner& model, const char* name, const std::vector<float>& signal) {
  const auto window = static_cast<int>(model.input_shape(0)[1]);
  const int context = window - kPiece;
  std::vector<float> state(static_cast<std::size_t>(model.input_shape(1).element_count()), 0.0f);
  std::vector<float> piece(static_cast<std::size_t>(window), 0.0f);
  const std::vector<std::int64_t> rate = {kRate};
  double sum = 0, most = 0;
  int count = 0;
  for (std::size_t at = 0; at + kPiece <= signal.size(); at += kPiece, ++count) {
    std::copy(piece.end() - context, piece.end(), piece.begin());
    std::copy_n(signal.begin() + static_cast<std::ptrdiff_t>(at), kPiece, piece.begin() + context);
    model.set<float>(0, piece);
    model.set<float>(1, state);
    model.set<std::int64_t>(2, rate, sluice::DType::kI64);
    model.run();
    const double speaks = model.output(0)[0];
    state = model.output(1);
    sum += speaks;
    most = std::max(most, speaks);
  }
  std::printf("%-8s mean %.3f, most %.3f\n", name, sum / count, most);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 1;
  example::Runner model(argv[1]);
  listen(model, "voice", voice(3 * kRate));
  listen(model, "silence", noise(3 * kRate, 0.002f));
}
