#include "src/cli/validators.h"

#include <cmath>
#include <filesystem>
#include <string>

namespace sluice::cli {

CLI::Validator share() {
  const auto check = [](const std::string& text) -> std::string {
    double value = 0;
    const bool sound = CLI::detail::lexical_cast(text, value) && std::isfinite(value) && value >= 0;
    return sound ? "" : text + " is not a finite number of 0 or more";
  };
  return {check, "SHARE"};
}

CLI::Validator folder() {
  const auto check = [](const std::string& text) -> std::string {
    const bool array = text.ends_with(".npy") || text.ends_with(".npz");
    return array && !std::filesystem::is_directory(text) ? text + " is the name of a file; outputs go into a folder, each as NAME.npy" : "";
  };
  return {check, "FOLDER"};
}

}  // namespace sluice::cli
