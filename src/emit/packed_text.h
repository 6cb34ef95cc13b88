// Text in byte pairs, for devices whose flash is scarce: a byte from 96 on stands for two others, each of which may stand for two again.
// portable/measure.h prints it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::emit {

struct PackedText {
  std::vector<std::uint8_t> bytes;  // the pieces one after another, each with a zero behind it
  std::vector<std::uint8_t> pairs;  // two bytes for each code from 96 on
  std::uint32_t most_waiting = 1;   // bytes that are put off while a code is taken apart
  std::uint32_t longest = 0;        // of the pieces, with its zero
};

/// Packs pieces of visible ASCII text.
PackedText pack_text(const std::vector<std::string>& pieces);

}  // namespace sluice::emit
