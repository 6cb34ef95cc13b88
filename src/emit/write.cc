#include "src/emit/write.h"

#include <algorithm>
#include <set>

#include "src/emit/kernels.h"
#include "src/emit/portable_text.h"
#include "src/emit/text.h"

namespace sluice::emit {
namespace {

constexpr std::string_view kIncludePrefix = "#include \"sluice/portable/";

/// Headers that `name` includes, itself last, each once.
void add_headers(std::string_view name, std::vector<std::string_view>& names) {
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  for (const PortableHeader& header : portable_headers()) {
    if (header.name != name) continue;
    for (std::size_t at = header.text.find(kIncludePrefix); at != std::string_view::npos; at = header.text.find(kIncludePrefix, at + 1)) {
      const std::size_t begin = at + kIncludePrefix.size();
      add_headers(header.text.substr(begin, header.text.find('"', begin) - begin), names);
    }
    names.push_back(header.name);
  }
}

std::string view_of(const Network& network, const MemoryPlan& plan, std::size_t storage, const RowExtents& view) {
  const StoragePlace& place = plan.storages[storage];
  const std::uint64_t pixel = static_cast<std::uint64_t>(view.channels) * size_of(network.storages[storage].dtype);
  const std::int64_t row_pixels = place.row_pixels != 0 ? place.row_pixels : view.pixels;
  return braced(unsigned_num(place.offset), unsigned_num(place.ring), unsigned_num(pixel * static_cast<std::uint64_t>(row_pixels)),
                unsigned_num(pixel));
}

std::string along_of(const Along& along) { return braced(num(along.stride), num(along.ahead), num(along.divisor), num(along.extent)); }

const Region& region_of(const MemoryPlan& plan, std::size_t stage) {
  return *std::find_if(plan.regions.begin(), plan.regions.end(), [&](const Region& region) { return stage < region.last; });
}

/// A region in strips stands there once for each, with the columns that its stages make in it.
std::string region_table(const Network& network, const MemoryPlan& plan) {
  std::string columns;
  std::string table =
      "/* Stages that run together: the first, how many, where they keep their places, and which columns they make; NULL: all. */\n"
      "static const struct {\n  uint16_t first, count;\n  uint32_t places;\n  const sluice_columns *columns;\n} regions[] = {\n";
  for (std::size_t r = 0; r < plan.regions.size(); ++r) {
    const Region& region = plan.regions[r];
    const std::size_t count = region.last - region.first;
    const Strips strips(network, region);
    if (region.strips > 1) columns += "static const sluice_columns columns_" + std::to_string(r) + "[] = {\n";
    for (std::int64_t strip = 0; strip < region.strips; ++strip) {
      table +=
          "  " +
          braced(num(static_cast<std::int64_t>(region.first)), num(static_cast<std::int64_t>(count)), unsigned_num(plan.places[r]),
                 region.strips == 1 ? std::string("NULL")
                                    : "columns_" + std::to_string(r) + " + " + std::to_string(static_cast<std::size_t>(strip) * count)) +
          ",\n";
      if (region.strips == 1) continue;
      for (std::size_t i = region.first; i < region.last; ++i)
        columns += (i == region.first ? "  " : " ") + braced(num(strips.columns(strip, i).begin), num(strips.columns(strip, i).end)) + ",";
      columns += "\n";
    }
    if (region.strips > 1) columns += "};\n";
  }
  return columns + table + "};\n";
}

/// Replaces each NAME by the emission's name.
std::string named(std::string text, const std::string& name) {
  constexpr std::string_view kMark = "NAME";
  for (std::size_t at = text.find(kMark); at != std::string::npos; at = text.find(kMark, at + name.size()))
    text.replace(at, kMark.size(), name);
  return text;
}

constexpr const char* kChecks = R"(
/* What the tables count on. */
typedef char NAME_place_is_packed[sizeof(sluice_place) == 4 ? 1 : -1];
typedef char NAME_float_has_32_bits[sizeof(float) == 4 ? 1 : -1];
#if defined(NAME_ARENA_LIMIT) && NAME_ARENA_BYTES > NAME_ARENA_LIMIT
#error "the arena of NAME is larger than NAME_ARENA_LIMIT"
#endif

#if !defined(NAME_CALLERS_ARENA)
static union {
  uint8_t bytes[NAME_ARENA_BYTES];
  float alignment;
  uint32_t words;
  sluice_place place;
} own_arena;
#endif
)";

/// Signed bytes of these ports become unsigned ones in place, or the reverse; a storage is flipped once.
std::string flips_of(const Network& network, const MemoryPlan& plan, const std::vector<NetworkPort>& ports) {
  std::set<std::size_t> storages;
  for (const NetworkPort& port : ports)
    if (port.flips) storages.insert(port.storage);
  std::string text;
  for (const std::size_t s : storages)
    text +=
        "  sluice_flip_signs(base + " + unsigned_num(plan.storages[s].offset) + ", " + unsigned_num(network.storages[s].bytes()) + ");\n";
  return text;
}

constexpr const char* kRunBody = R"(  uint8_t *base = (uint8_t *)arena;
  sluice_source source;
  uint32_t r;
#if !defined(NAME_CALLERS_ARENA)
  if (base == NULL) base = own_arena.bytes;
#endif
  source.read = read;
  source.user = user;
  for (r = 0; r < sizeof regions / sizeof *regions; ++r)
    sluice_run_region(stages + regions[r].first, regions[r].count, regions[r].columns, (sluice_place *)(void *)(base + regions[r].places),
                      base, &source);
)";

std::string run_function(const EmitOptions& options, const Network& network, const MemoryPlan& plan) {
  const bool streamed = options.network.input == InputForm::kStreamed;
  std::string text;
  if (!streamed)
    text +=
        "\nvoid *NAME_input_in(void *arena, unsigned port) {\n"
        "  static const uint32_t offsets[] = {";
  if (!streamed) {
    for (std::size_t i = 0; i < network.inputs.size(); ++i)
      text += std::string(i == 0 ? "" : ", ") + unsigned_num(plan.storages[network.inputs[i].storage].offset);
    text +=
        "};\n  uint8_t *base = (uint8_t *)arena;\n"
        "#if !defined(NAME_CALLERS_ARENA)\n  if (base == NULL) base = own_arena.bytes;\n#endif\n"
        "  return base + offsets[port];\n}\n";
  }
  text += std::string("\nconst NAME_output *NAME_run(void *arena") + (streamed ? ", NAME_read_row read, void *user" : "") + ") {\n";
  std::string body = kRunBody;
  if (!streamed)
    body.replace(body.find("  source.read"), body.find("  for (r") - body.find("  source.read"),
                 "  source.read = NULL;\n  source.user = NULL;\n" + flips_of(network, plan, network.inputs));
  text += body + flips_of(network, plan, network.outputs);
  text += std::string("  return (const NAME_output *)(const void *)(base + ") +
          unsigned_num(plan.storages[network.outputs[0].storage].offset) + ");\n}\n";
  return text;
}

std::string padded(std::string text, std::size_t width) {
  if (text.size() > width) text = text.substr(0, width - 2) + "..";
  return text + std::string(width - text.size(), ' ');
}

std::string layer_table(const model::Graph& graph, const Network& network, const MemoryPlan& plan) {
  std::string text =
      " * stage  region  " + padded("name", 34) + padded("operator", 12) + padded("output", 16) + padded("multiply-adds", 15) + "bytes\n";
  for (std::size_t i = 0; i < network.stages.size(); ++i) {
    const Stage& stage = network.stages[i];
    const Storage& storage = network.storages[stage.storage];
    const bool from_outside = reads_rows(stage.kernel);
    const auto region = static_cast<std::int64_t>(&region_of(plan, i) - plan.regions.data());
    const std::uint64_t held = plan.storages[stage.storage].ring;
    text += " * " + padded(num(static_cast<std::int64_t>(i)), 7) + padded(num(region), 8) + padded(comment_text(storage.name), 34) +
            padded(from_outside ? "input" : std::string(model::name_of(graph.node(stage.node).op)), 12) +
            padded(num(stage.out.rows) + "x" + num(stage.out.pixels) + "x" + num(stage.out.channels), 16) +
            padded(num(static_cast<std::int64_t>(stage.macs)), 15) + num(static_cast<std::int64_t>(held)) +
            (held < storage.bytes() ? " of " + num(static_cast<std::int64_t>(storage.bytes())) : std::string()) + "\n";
  }
  return text;
}

/// The C type of the values as the caller has them.
const char* c_type_of(const Network& network, const NetworkPort& port) {
  const DType type = network.storages[port.storage].dtype;
  if (port.flips || type == DType::kI8) return "int8_t";
  return type == DType::kU8 ? "uint8_t" : type == DType::kF32 ? "float" : "int32_t";
}

std::string port_macros(const model::Graph& graph, const NetworkPort& port, const std::string& prefix, std::uint64_t offset) {
  const model::Tensor& tensor = graph.tensor(port.tensor);
  std::string text = "#define " + prefix + "_ROWS " + num(port.view.rows) + "\n#define " + prefix + "_PIXELS " + num(port.view.pixels) +
                     "\n#define " + prefix + "_CHANNELS " + num(port.view.channels) + "\n#define " + prefix + "_OFFSET " +
                     unsigned_num(offset) + "\n";
  if (tensor.quantisation == model::kNoQuantisation) return text;
  const model::Quantisation& q = graph.quantisations[tensor.quantisation];
  if (!q.scales.empty()) text += "#define " + prefix + "_SCALE " + c_decimal(q.scales[0]) + "\n";
  constexpr std::int64_t kSign = 128;
  if (!q.zero_points.empty()) text += "#define " + prefix + "_ZERO " + num(q.zero_points[0] - (port.flips ? kSign : 0)) + "\n";
  return text;
}

/// Tables of what stages read, and of the stages.
std::string stage_tables(const Network& network, const MemoryPlan& plan) {
  std::string reaches, inputs = "static const sluice_input stage_inputs[] = {\n", stages = "static const sluice_stage stages[] = {\n";
  std::size_t input_count = 0;
  for (std::size_t i = 0; i < network.stages.size(); ++i) {
    const Stage& stage = network.stages[i];
    const Region& region = region_of(plan, i);
    for (std::size_t k = 0; k < stage.inputs.size(); ++k) {
      const StageInput& input = stage.inputs[k];
      const auto maker = network.storages[input.storage].maker;
      const bool inside = maker && *maker >= region.first;
      const std::string reach = "reach_" + std::to_string(i) + "_" + std::to_string(k);
      if (input.reach && inside)
        reaches += "static const sluice_reach " + reach + " = " + braced(along_of(input.reach->row), along_of(input.reach->pixel)) + ";\n";
      inputs += "  " +
                braced(view_of(network, plan, input.storage, input.view), input.reach && inside ? "&" + reach : std::string("NULL"),
                       inside ? num(static_cast<std::int64_t>(*maker - region.first)) : std::string("-1")) +
                ",\n";
    }
    const KernelCode& code = code_of(stage.kernel);
    stages += "  " +
              braced(code.run, *code.type == '\0' ? std::string("NULL") : "&parameters_" + std::to_string(i),
                     "stage_inputs + " + std::to_string(input_count),  // without inputs, too: C has no NULL + 0
                     view_of(network, plan, stage.storage, stage.out), num(stage.walked.rows), num(stage.walked.pixels),
                     num(granule_of(stage, region)), num(static_cast<std::int64_t>(stage.inputs.size())), num(stage.folds ? 1 : 0),
                     num(outlives(network, region, stage.storage) ? 1 : 0)) +
              ",\n";
    input_count += stage.inputs.size();
  }
  if (input_count == 0) inputs += "  {{0, 1, 0, 0}, NULL, -1},\n";
  return reaches + inputs + "};\n" + stages + "};\n";
}

}  // namespace

/// Their text, without the includes that it replaces.
std::string copied_headers(const Network& network, std::string_view walk) {
  std::vector<std::string_view> names;
  add_headers(walk, names);
  for (const Stage& stage : network.stages) add_headers(code_of(stage.kernel).header, names);
  std::string text;
  for (const PortableHeader& header : portable_headers()) {
    if (std::find(names.begin(), names.end(), header.name) == names.end()) continue;
    for (std::size_t at = 0; at < header.text.size();) {
      const std::size_t end = std::min(header.text.find('\n', at), header.text.size() - 1) + 1;
      const std::string_view line = header.text.substr(at, end - at);
      if (!line.starts_with(kIncludePrefix)) text += line;
      at = end;
    }
    text += "\n";
  }
  return text;
}

std::int64_t input_passes(const MemoryPlan& plan) { return plan.regions[0].strips; }

std::string write_source(const model::Graph&, const EmitOptions& options, const Network& network, const MemoryPlan& plan,
                         const std::string& parameters) {
  std::string text = "/* Emitted by sluice; NAME.h says how it is used. C99. */\n#include \"NAME.h\"\n\n";
  text += copied_headers(network, "rows.h");
  text += kChecks;
  text += "\n" + parameters + stage_tables(network, plan) + region_table(network, plan) + run_function(options, network, plan);
  return named(std::move(text), options.name);
}

std::string write_header(const model::Graph& graph, const EmitOptions& options, const Network& network, const MemoryPlan& plan,
                         const StackBytes& stack) {
  const bool streamed = options.network.input == InputForm::kStreamed;
  const auto offset_of = [&](const NetworkPort& port) { return plan.storages[port.storage].offset; };
  std::string text = "/* NAME: a network as C99, without a heap, a library call but memcpy and memset, or recursion.\n *\n";
  text += layer_table(graph, network, plan);
  text += " *\n * " + num(static_cast<std::int64_t>(network.macs)) + " multiply-adds" +
          (plan.macs == network.macs ? std::string(", none of them twice.")
                                     : "; " + num(static_cast<std::int64_t>(plan.macs)) + " in strips, which share columns.") +
          "\n */\n";
  text += "#ifndef NAME_H\n#define NAME_H\n\n#include <stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";
  text +=
      "/* RAM: one arena, whose address is a multiple of 4, and the stack of NAME_run and what it calls, at most, on 32-bit ARM and on "
      "64-bit\n"
      " * processors as GCC compiles it with -O1 to -O3 and -Os. What an interrupt pushes and what a row callback takes come on top. */\n";
  text += "#define NAME_ARENA_BYTES " + num(static_cast<std::int64_t>(plan.arena_bytes)) +
          "\n#if UINTPTR_MAX > 0xffffffffu\n#define NAME_STACK_BYTES " + num(static_cast<std::int64_t>(stack.wide)) +
          "\n#else\n#define NAME_STACK_BYTES " + num(static_cast<std::int64_t>(stack.narrow)) + "\n#endif\n\n";
  text += "/* Ports: rows of pixels of channels, which are neighbours. A byte stands for SCALE * (byte - ZERO). */\n";
  for (std::size_t i = 0; i < network.inputs.size(); ++i)
    text +=
        port_macros(graph, network.inputs[i], "NAME_INPUT" + (i == 0 ? std::string() : std::to_string(i)), offset_of(network.inputs[i]));
  for (std::size_t i = 0; i < network.outputs.size(); ++i)
    text +=
        port_macros(graph, network.outputs[i], "NAME_OUTPUT" + (i == 0 ? std::string() : std::to_string(i)), offset_of(network.outputs[i]));
  text += std::string("typedef ") + c_type_of(network, network.inputs[0]) + " NAME_input;\ntypedef " +
          c_type_of(network, network.outputs[0]) + " NAME_output;\n\n";
  if (streamed) {
    text +=
        "/* Writes row `row` of the input, NAME_INPUT_PIXELS * NAME_INPUT_CHANNELS values of type NAME_input, to `to`. Rows are asked\n"
        " * for in order when they are wanted, each once" +
        std::string(input_passes(plan) == 1 ? "" : ", and from the first one again for each of the NAME_INPUT_PASSES strips") +
        ". */\n#define NAME_INPUT_PASSES " + num(input_passes(plan)) + "\n" +
        "typedef void (*NAME_read_row)(void *user, uint32_t row, void *to);\n\n"
        "/* Runs the network. `arena` may be NULL: then it is one of NAME's own, which NAME_CALLERS_ARENA leaves out when NAME.c is\n"
        " * compiled. Gives the first output, in the arena, until the next run. */\n"
        "const NAME_output *NAME_run(void *arena, NAME_read_row read, void *user);\n";
  } else {
    text +=
        "/* Where an input is to be written before each run, which writes over it. */\nvoid *NAME_input_in(void *arena, unsigned port);\n\n"
        "/* Runs the network. `arena` may be NULL: then it is one of NAME's own, which NAME_CALLERS_ARENA leaves out when NAME.c is\n"
        " * compiled. Gives the first output, in the arena, until the next run. */\n"
        "const NAME_output *NAME_run(void *arena);\n";
  }
  text += "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
  return named(std::move(text), options.name);
}

}  // namespace sluice::emit
