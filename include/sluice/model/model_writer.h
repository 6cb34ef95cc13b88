// Writes a model file: the graph and its weights, one run of panels at a time.
//
// The writer asks a `WeightProducer` for packed bytes in file order and keeps one stretch in memory, so that a 400 MB weight costs 64 KiB
// (or one panel). The file is written under a temporary name, synced and renamed: a reader sees the old file or the whole new one.
// The same graph and bytes give the same file, byte for byte. With a `StretchCoder` it asks for all bytes twice: a table comes before what
// is coded with it, in the header, whose size decides where weights begin. Encrypted files are the exception: each has a random salt.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sluice/core/error.h"
#include "sluice/model/graph.h"
#include "sluice/model/key.h"
#include "sluice/model/variants.h"

namespace sluice::model {

/// Gives the packed bytes of weights; implemented by the importer and by tests.
class WeightProducer {
 public:
  virtual ~WeightProducer() = default;
  /// Fills `out` with panels [p.begin, p.end) of weight `id`; out.size() = panels * panel_bytes. Called once for each panel, rising
  /// within a weight; with a coder, twice so. For kPlain, p is [0, 1) and `out` the padded values.
  virtual Status produce(WeightId id, PanelRange p, std::span<std::byte> out) = 0;
};

/// Makes stretches smaller (model/code.h); implemented by the importer, whose encoder no device needs.
class StretchCoder {
 public:
  virtual ~StretchCoder() = default;
  /// A weight begins. False: it is not to be coded.
  virtual bool begin(const Weight& weight) = 0;
  /// Its stretches, raw, in their order.
  virtual void look(std::span<const std::byte> raw) = 0;
  /// After the last one: its table; nothing: it is not worth coding.
  virtual std::optional<Code> end() = 0;
  /// A stretch, coded, in fewer bytes; nothing: it stays raw.
  virtual std::optional<std::vector<std::byte>> encode(const Code& code, std::span<const std::byte> raw) = 0;
};

struct WriteOptions {
  /// Called with (bytes written, bytes in all); may be empty.
  std::function<void(Bytes, Bytes)> progress;
  /// Called when all is written, before the file gets its name; an error discards it. May be empty.
  std::function<Status()> before_commit;
  /// The graphs of other extents; their weights are among those of `graph`, which is the graph of the bound. Null: a file of one shape.
  const Variants* variants = nullptr;
  /// Null: all stretches are stored raw.
  StretchCoder* coder = nullptr;
  /// Null: the file is not encrypted. Nothing that is not encrypted is written then.
  const Key* key = nullptr;
  /// False: the file ends after its header, and the producer is not called. Such a file can be planned, not run.
  bool weights = true;
};

/// Writes `graph` to `path`. Of each Weight the caller has filled name, panel_layout, shape, panels and panel_bytes; the writer assigns
/// offset, bytes, always_resident and the stretches (into `graph`, too). Weights come in the order of the nodes that first read them, those
/// that only variants read last.
/// Errors: kInvalidArgument (`validate` with `rules` fails), kIo, kUnsupported (a key, and OpenSSL cannot be loaded), and whatever
/// `producer` returns; on any of them nothing is left at `path` that was not there before.
Status write_model(Graph& graph, WeightProducer& producer, const std::string& path, NodeRules rules, const WriteOptions& options = {});

}  // namespace sluice::model
