// Runs small models of every kind with any bytes as their inputs: indices far outside, NaN, infinities, lengths that are none. The first
// byte chooses the model, the second the budget. A run gives outputs, or says that the values are at fault.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/converted_models.h"

namespace {

using namespace sluice;

struct Sessions {
  std::unique_ptr<Session> least, whole;
};

std::vector<Sessions> make_sessions(const test::Folder& folder) {
  std::vector<Sessions> made;
  for (const std::shared_ptr<const Model>& model : test::converted_models(folder)) {
    const auto least = minimum_budget(*model, {});
    auto narrow = Session::create(model, {.budget = *least, .max_turns = 1000});
    auto wide = Session::create(model, {.repeat = true, .max_turns = 1000});
    if (!narrow || !wide) std::abort();
    made.push_back({*std::move(narrow), *std::move(wide)});
  }
  return made;
}

[[noreturn]] void fail_with(const char* what, const Error& error) {
  std::fprintf(stderr, "%s: %s\n", what, error.to_string().c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const test::Folder folder;
  static const std::vector<Sessions> sessions = make_sessions(folder);
  if (size < 3) return 0;
  const Sessions& chosen = sessions[data[0] % sessions.size()];
  Session& session = data[1] % 2 == 0 ? *chosen.least : *chosen.whole;
  const model::Graph& graph = session.model().graph();
  std::size_t at = 2;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const model::Tensor& tensor = graph.tensor(graph.inputs[i].tensor);
    std::vector<std::byte> values(tensor.bytes().count());
    for (std::byte& value : values) {
      value = static_cast<std::byte>(data[at]);
      at = at + 1 == size ? 2 : at + 1;
    }
    if (const Status set = session.set_input(i, tensor.dtype, values); !set) fail_with("an input", set.error());
  }
  const Status run = session.run();
  if (!run && run.error().code != ErrorCode::kInvalidArgument) fail_with("a run", run.error());
  for (std::size_t o = 0; o < graph.outputs.size(); ++o) {
    const auto count = static_cast<std::size_t>(session.output_shape(o).element_count());
    std::vector<std::byte> values(count * size_of(graph.tensor(graph.outputs[o].tensor).dtype));
    const Status got = session.get_output(o, values);
    if (run && !got) fail_with("an output", got.error());
  }
  return 0;
}
