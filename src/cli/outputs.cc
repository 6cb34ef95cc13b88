#include "src/cli/outputs.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <numeric>
#include <set>

#include "sluice/core/file.h"
#include "src/cli/failure.h"
#include "src/cli/inputs.h"
#include "src/cli/npy.h"
#include "src/cli/text.h"

namespace sluice::cli {

std::vector<TopEntry> top_values(const Pieces& tensor, std::size_t count) {
  const auto larger = [](const TopEntry& a, const TopEntry& b) {
    if (std::isnan(a.score) || std::isnan(b.score))
      return std::isnan(a.score) < std::isnan(b.score) || (std::isnan(a.score) && std::isnan(b.score) && a.index < b.index);
    return a.score > b.score || (a.score == b.score && a.index < b.index);
  };
  // A heap of the best so far: an output may be far larger than `count`, and its indices alone would count in a budget.
  std::vector<TopEntry> best;
  for_each_value(tensor, [&](std::size_t i, double value) {
    const TopEntry entry{i, value};
    if (count == 0 || (best.size() == count && !larger(entry, best.front()))) return;
    if (best.size() == count) {
      std::pop_heap(best.begin(), best.end(), larger);
      best.pop_back();
    }
    best.push_back(entry);
    std::push_heap(best.begin(), best.end(), larger);
  });
  std::sort_heap(best.begin(), best.end(), larger);
  return best;
}

std::vector<std::string> read_labels(const std::string& path) {
  constexpr Bytes kMostBytes{std::uint64_t{1} << 26};
  const std::vector<std::byte> bytes = unwrap(read_file(path, kMostBytes));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::vector<std::string> labels;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string label(text.substr(at, end - at));
    if (!label.empty() && label.back() == '\r') label.pop_back();
    labels.push_back(std::move(label));
    at = end + 1;
  }
  return labels;
}

std::string file_name_of(const std::string& output) {
  std::string name;
  for (const char c : output.substr(0, 200)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
    name += plain ? c : '_';
  }
  if (name.empty() || name.front() == '.') name.insert(name.begin(), '_');
  return name;
}

std::vector<std::string> output_paths(const std::string& directory, const std::vector<model::Port>& ports) {
  if (::mkdir(directory.c_str(), 0777) != 0) {
    if (errno != EEXIST) raise(make_io_error(directory, "this folder for outputs cannot be made", errno));
    struct stat state {};
    if (::stat(directory.c_str(), &state) == 0 && !S_ISDIR(state.st_mode))
      raise(make_io_error(directory, "is a file, and outputs go into a folder", ENOTDIR));
  }
  std::set<std::string> used;
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    std::string name = file_name_of(ports[i].name);
    if (!used.insert(name).second) name = fmt::format("{}.{}", name, i);
    paths.push_back(fmt::format("{}/{}.npy", directory, name));
  }
  return paths;
}

void write_outputs(const std::string& directory, const std::vector<model::Port>& ports, const std::vector<Pieces>& outputs) {
  const std::vector<std::string> paths = output_paths(directory, ports);
  for (std::size_t i = 0; i < outputs.size(); ++i) write_npy(paths[i], outputs[i]);
}

OutputFiles::OutputFiles(const std::string& directory, const std::vector<model::Port>& ports) : paths_(output_paths(directory, ports)) {
  for (const std::string& path : paths_) {
    files_.emplace_back(file_ops().open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (files_.back().get() < 0) raise(make_io_error(path, "cannot be opened for writing", errno));
  }
}

void OutputFiles::write(const std::vector<Pieces>& outputs) const {
  for (std::size_t i = 0; i < outputs.size(); ++i) write_npy(files_[i], paths_[i], outputs[i]);
}

std::vector<int> OutputFiles::descriptors() const {
  std::vector<int> numbers;
  for (const FileDescriptor& file : files_) numbers.push_back(file.get());
  return numbers;
}

std::vector<Verdict> compare_outputs(const std::vector<std::string>& arguments, double tolerance, const std::vector<model::Port>& ports,
                                     const std::vector<Pieces>& outputs) {
  std::vector<Verdict> verdicts;
  for (const PortArgument& argument : assign_ports(arguments, ports, "--expect")) {
    const Pieces expected = open_tensor_file(argument.value);
    const Pieces& actual = outputs[argument.port];
    const Comparison comparison = compare(actual, expected, tolerance);
    verdicts.push_back({argument.port, comparison, comparison_text(comparison, actual.shape, expected.shape)});
  }
  return verdicts;
}

}  // namespace sluice::cli
