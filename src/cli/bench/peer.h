// `sluice bench --peer onnxruntime`: another engine's runs of the ONNX file that a model was made from, in turn with ours.
//
//     find_peer (before anything is measured) -> a block of our runs, a block of its runs, and so on (measure.h) -> Row::peer
//
// The peer is npm's onnxruntime-node where it is found: nothing of it is linked, and nothing is fetched. Each of its blocks is a process of
// its own, as each of ours is, on the processors that ours compute on; its peak is that of the process, Node.js included.
#pragma once

#include <string>
#include <vector>

#include "src/cli/json.h"

namespace sluice::cli::bench_detail {

struct Peer {
  std::string modules;  // the folder from which Node.js finds the package
};

/// `text` as `--peer` takes it: onnxruntime, or onnxruntime=FOLDER. Throws Failure that says where it was looked for and what to do.
Peer find_peer(const std::string& text);

/// The ONNX file of each model: the named ones, in order, else M.onnx in the folder of M.sluice. Throws Failure where one is not there.
std::vector<std::string> onnx_files_of(const std::vector<std::string>& models, const std::vector<std::string>& named);

/// Measures one block of runs, after `warmup` runs that do not count: `version`, `latency_ms`, `cpu_ms`, `peak_rss_bytes`. `inputs`: name,
/// shape, dtype, as `sluice inspect --json` has them. Throws Failure (kUnsupported) with the peer's words where it does not run the file.
struct PeerBlock {
  std::string onnx;
  Json inputs;
  int threads = 1;
  int warmup = 0;
  int runs = 1;
};
Json run_peer(const Peer& peer, const PeerBlock& block);

}  // namespace sluice::cli::bench_detail
