#include "src/cli/bench/peer.h"

#include <filesystem>
#include <string_view>

#include "sluice/core/affinity.h"
#include "src/cli/child.h"
#include "src/cli/failure.h"
#include "src/cli/text.h"

namespace sluice::cli::bench_detail {

extern const std::string_view kPeerScript;  // peer_script.cjs, made into a source file by CMake

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kName = "onnxruntime";
constexpr const char* kPackage = "onnxruntime-node";
constexpr int kNoSuchProgram = 127;  // env's exit status

bool holds_package(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / "node_modules" / kPackage / "package.json", ignored);
}

/// The folder itself, the one whose node_modules it is, or one of those above it, as Node.js looks for a package.
std::string folder_with_package(fs::path folder) {
  if (folder.filename().empty()) folder = folder.parent_path();
  if (folder.filename() == "node_modules") folder = folder.parent_path();
  for (;; folder = folder.parent_path()) {
    if (holds_package(folder)) return folder.string();
    if (folder == folder.parent_path()) return {};
  }
}

[[noreturn]] void refuse_missing(const std::string& where) {
  throw Failure(
      ErrorCode::kUnsupported,
      fmt::format("--peer {}: no {} {}; `npm install {}` there, or name the folder that has it in its node_modules: --peer {}=FOLDER",
                  kName, kPackage, where, kPackage, kName));
}

}  // namespace

Peer find_peer(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (text.substr(0, equals) != kName)
    throw Failure(ErrorCode::kInvalidArgument, fmt::format("--peer {}: the one peer is {}", text, kName));
  std::error_code error;
  if (equals != std::string::npos) {
    const fs::path named = fs::absolute(text.substr(equals + 1), error);
    if (!fs::is_directory(named, error)) raise(make_io_error(named.string(), "--peer: is no folder", ENOTDIR));
    const std::string folder = folder_with_package(named);
    if (folder.empty()) refuse_missing("in " + named.string());
    return {folder};
  }
  const fs::path here = fs::current_path(error);
  if (const std::string folder = folder_with_package(here); !folder.empty()) return {folder};
  if (holds_package(here / "build" / "peer")) return {(here / "build" / "peer").string()};  // where scripts/bench puts it
  refuse_missing("in this folder, one above it or build/peer");
}

std::vector<std::string> onnx_files_of(const std::vector<std::string>& models, const std::vector<std::string>& named) {
  if (!named.empty() && named.size() != models.size())
    throw Failure(
        ErrorCode::kInvalidArgument,
        fmt::format("--onnx: {} files are named for {} models; it wants one for each, in their order", named.size(), models.size()));
  std::vector<std::string> files;
  for (std::size_t i = 0; i < models.size(); ++i) {
    const fs::path file = named.empty() ? fs::path(models[i]).replace_extension(".onnx") : fs::path(named[i]);
    std::error_code error;
    if (!fs::exists(file, error))
      raise(make_io_error(file.string(), "--peer wants the ONNX file that the model was made from (--onnx FILE)", ENOENT));
    files.push_back(file.string());
  }
  return files;
}

Json run_peer(const Peer& peer, const PeerBlock& block) {
  const Json asked = {{"modules", peer.modules}, {"onnx", block.onnx}, {"threads", block.threads},
                      {"warmup", block.warmup},  {"runs", block.runs}, {"inputs", block.inputs}};
  // The process inherits the processors: those that ours keeps for threads that compute.
  const ScopedAffinity as_ours(processors_to_compute_on(block.threads));
  const std::string words = asked.dump(-1, ' ', false, Json::error_handler_t::replace);
  const ChildResult result = run_program("/usr/bin/env", "env", {"node", "-e", std::string(kPeerScript), "--", words});
  if (result.status == kNoSuchProgram)
    throw Failure(ErrorCode::kUnsupported, fmt::format("--peer {}: Node.js (node) is not on the path; it runs {}", kName, kPackage));
  Json json = Json::parse(result.output, nullptr, false);
  if (result.status != 0 || json.is_discarded()) {
    std::string why = result.error.substr(0, result.error.find('\n'));
    if (why.empty()) why = fmt::format("it ended with status {}", result.status);
    throw Failure(ErrorCode::kUnsupported, fmt::format("{}: {}", kName, why));
  }
  return json;
}

}  // namespace sluice::cli::bench_detail
