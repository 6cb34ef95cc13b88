// A fuzzer without libFuzzer: its corpus, and a number of changes of each file that are the same each time. So any compiler runs what the
// fuzzers found once, at the gate.
//
//     NAME_replay ROUNDS FOLDER
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" {
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
__attribute__((weak)) std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned int random);
std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);
}

namespace {

std::mt19937_64 numbers(7);

std::size_t below(std::size_t end) { return end == 0 ? 0 : static_cast<std::size_t>(numbers() % end); }

/// What parsers trip over: ends of ranges.
std::uint8_t telling_byte() {
  constexpr std::uint8_t kBytes[] = {0x00, 0x01, 0x7f, 0x80, 0xff, 0x40};
  return kBytes[below(std::size(kBytes))];
}

}  // namespace

std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size) {
  for (std::size_t changes = 1 + below(4); changes > 0; --changes) {
    const std::size_t at = below(size);
    switch (below(5)) {
      case 0:
        if (size > 0) data[at] = static_cast<std::uint8_t>(data[at] ^ (1u << below(8)));
        break;
      case 1:
        if (size > 0) data[at] = telling_byte();
        break;
      case 2:  // a run goes
        if (size > 1) {
          const std::size_t length = 1 + below(std::min<std::size_t>(16, size - at));
          std::copy(data + at + length, data + size, data + at);
          size -= length;
        }
        break;
      case 3:  // a byte comes
        if (size < max_size) {
          std::copy_backward(data + at, data + size, data + size + 1);
          data[at] = telling_byte();
          ++size;
        }
        break;
      default:  // a run comes again elsewhere
        if (size > 8) {
          const std::size_t length = 1 + below(8), from = below(size - length), to = below(size - length);
          std::copy_n(std::vector<std::uint8_t>(data + from, data + from + length).begin(), length, data + to);
        }
    }
  }
  return size;
}

int main(int argc, char** argv) {
  if (argc != 3) return 1;
  const long rounds = std::strtol(argv[1], nullptr, 10);
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(argv[2])) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  long inputs = 0;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    const std::vector<std::uint8_t> seed{std::istreambuf_iterator<char>(file), {}};
    LLVMFuzzerTestOneInput(seed.data(), seed.size());
    for (long round = 0; round < rounds; ++round) {
      std::vector<std::uint8_t> changed = seed;
      const std::size_t most = std::max<std::size_t>(2 * seed.size(), 1u << 16);
      changed.resize(most);
      const std::size_t size = LLVMFuzzerCustomMutator != nullptr
                                   ? LLVMFuzzerCustomMutator(changed.data(), seed.size(), most, static_cast<unsigned>(numbers()))
                                   : LLVMFuzzerMutate(changed.data(), seed.size(), most);
      changed.resize(size);
      changed.shrink_to_fit();  // so that a read beyond is seen
      LLVMFuzzerTestOneInput(changed.data(), changed.size());
      ++inputs;
    }
  }
  std::printf("%zu files and %ld changed ones\n", paths.size(), inputs);
  return paths.empty() ? 1 : 0;
}
