// What becomes of a model's outputs: the largest values with their labels, .npy files, the comparison with expected ones.
#pragma once

#include <string>
#include <vector>

#include "sluice/core/file.h"
#include "sluice/model/graph.h"
#include "src/cli/compare.h"
#include "src/cli/pieces.h"

namespace sluice::cli {

struct TopEntry {
  std::size_t index = 0;
  double score = 0;
};

/// The `count` largest values, largest first; equal ones in order of index; what is not a number comes last.
std::vector<TopEntry> top_values(const Pieces& tensor, std::size_t count);

/// One label a line; a file of the tool's own or the model's. Throws Failure (kIo).
std::vector<std::string> read_labels(const std::string& path);

/// A file name for an output: letters, digits, `.`, `_` and `-` stay, the rest becomes `_`; never empty, never hidden.
std::string file_name_of(const std::string& output);

/// The path of each output, NAME.npy in `directory`, which is made if it is missing. Two names that become equal get a number. Throws
/// Failure.
std::vector<std::string> output_paths(const std::string& directory, const std::vector<model::Port>& ports);

/// Writes each output as NAME.npy into `directory`.
void write_outputs(const std::string& directory, const std::vector<model::Port>& ports, const std::vector<Pieces>& outputs);

/// Opens the same files before there are outputs, for a run that may open none afterwards. They have their names and are empty from the
/// start; a run that fails leaves them so.
class OutputFiles {
 public:
  /// Throws Failure (kIo).
  OutputFiles(const std::string& directory, const std::vector<model::Port>& ports);
  void write(const std::vector<Pieces>& outputs) const;
  std::vector<int> descriptors() const;

 private:
  std::vector<std::string> paths_;
  std::vector<FileDescriptor> files_;
};

/// What `--expect` found for one output.
struct Verdict {
  std::size_t port = 0;
  Comparison comparison;
  std::string text;
};

/// One verdict for each argument of `--expect`. Throws Failure when a file cannot be read.
std::vector<Verdict> compare_outputs(const std::vector<std::string>& arguments, double tolerance, const std::vector<model::Port>& ports,
                                     const std::vector<Pieces>& outputs);

}  // namespace sluice::cli
