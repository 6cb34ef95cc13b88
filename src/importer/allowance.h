// What a file may make the importer make out of nothing.
//
// An ONNX file of 181 bytes can ask for gigabytes: a fill, a range, a constant doubled thirty times, a body unrolled a thousand times. So
// what convert makes beyond what lies in the file is counted, and refused where it is out of proportion:
//
//     work    bytes of constants while they are computed, scratch included, and a KiB for each turn, node and constant of an
//             unrolled body: memory
//     file    bytes of weights that are written beyond what the ONNX file accounts for: the model file's size
//
// Both are kSmallFileAllowance for a file of at most a KiB, so that converting it takes no more than 16 MiB of memory and 4 MiB of disk. A
// larger one may make 64 KiB for each of its bytes, up to a bound: the densest published file, light_vgg19 of 9 KB, fills 575 MB.
// ConvertOptions::max_constants (--max-constants) replaces both.
//
// Invariants: constants are counted where they get their bytes (constant.cc and its like), so that no operator can forget it, and before
// they get them; what is counted is never given back, so that doing it a thousand times is no way round.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sluice/core/units.h"

namespace sluice::importer {

inline constexpr Bytes kSmallFile{1024};
inline constexpr Bytes kSmallFileAllowance{std::uint64_t{3} << 20};

class Allowance {
 public:
  /// `source`: bytes of the ONNX file and its external data.
  Allowance(Bytes source, std::optional<Bytes> stated);

  bool covers(std::uint64_t bytes) const noexcept { return bytes <= work_left_; }
  /// Takes bytes of the work; refuses (refusal.h) where they are not there.
  void take(std::uint64_t bytes);
  /// What the weights of the model file may take in all, and one panel or constant among them, which is in memory at once.
  Bytes of_file() const noexcept { return file_; }
  Bytes of_panel() const noexcept { return panel_; }
  /// For refusals: what the limit is and how it is raised.
  std::string limit_text() const;

 private:
  Bytes source_, allowed_, file_, panel_;
  std::uint64_t work_left_;
};

/// While it lives, this thread's constants count against `allowance`.
class AllowanceScope {
 public:
  explicit AllowanceScope(Allowance& allowance) noexcept;
  ~AllowanceScope();
  AllowanceScope(const AllowanceScope&) = delete;
  AllowanceScope& operator=(const AllowanceScope&) = delete;

 private:
  Allowance* before_;
};

/// Counts bytes that are about to be made, and refuses where they are too many. Without a scope nothing is counted.
void count_made(std::uint64_t bytes);
void count_made(std::uint64_t elements, std::uint64_t bytes_each);
/// Would it take them?
bool may_make(std::uint64_t elements, std::uint64_t bytes_each) noexcept;

/// What an element of arithmetic on constants takes: two operands and a result as doubles, and the result as it is kept.
inline constexpr std::uint64_t kFoldedElementBytes = 40;
/// A node of an unrolled body, with its value, name and tensor; what a turn keeps beside its nodes.
inline constexpr std::uint64_t kUnrolledNodeBytes = 1024;

}  // namespace sluice::importer
