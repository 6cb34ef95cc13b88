// Makes coded stretches (sluice/model/code.h): the tools' side, plain code, 100 to 200 MB/s.
//
//     raw bytes of a weight --count--> how often each symbol comes --make_code--> its table --encode--> stretch after stretch
//
// The same bytes give the same table and stretches on every machine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sluice/model/code.h"

namespace sluice::importer::coding {

/// How often each symbol comes.
using Counts = std::array<std::uint64_t, 256>;

/// Adds the symbols of `raw`, whole values, to `counts`.
void count_symbols(model::CodePlane plane, std::span<const std::byte> raw, Counts& counts) noexcept;

/// The table that codes so many symbols best, or nearly. Precondition: there are some.
model::Code make_code(model::CodePlane plane, const Counts& counts);

/// Bytes that the symbols take, coded, with the bytes that are not coded but without the heads of blocks.
double coded_bytes(const model::Code& code, const Counts& counts) noexcept;

/// The stretch, coded. Nothing: that would not make it smaller, or not in a way that a decoder can expand in place.
std::optional<std::vector<std::byte>> encode(const model::Code& code, std::span<const std::byte> raw);

}  // namespace sluice::importer::coding
