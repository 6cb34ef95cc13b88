// Runs a plan that `sluice plan M.sluice --budget 16MiB --save M.plan` wrote, and makes none: 17_run_a_plan M.sluice M.plan < IN > OUT
//
// IN and OUT are the values of the model's inputs and outputs, one behind the other, as the ONNX file has them. This is the program whose
// size docs/small-binaries.md states: a runtime trimmed to one model and built without a planner needs no more.
#include <sluice/plan.h>
#include <sluice/session.h>

#include <cstdio>
#include <vector>

namespace {

bool take(std::vector<std::byte>& values) { return std::fread(values.data(), 1, values.size(), stdin) == values.size(); }

sluice::Status run(const char* model_path, const char* plan_path) {
  SLUICE_ASSIGN_OR_RETURN(const auto model, sluice::Model::open(model_path));
  SLUICE_ASSIGN_OR_RETURN(const sluice::plan::Plan plan, sluice::plan::load_plan(plan_path));
  SLUICE_ASSIGN_OR_RETURN(const auto session,
                          sluice::Session::create(model, {.threads = static_cast<int>(plan.threads), .keep_inputs = false, .plan = &plan}));
  const sluice::model::Graph& graph = model->graph();
  const auto bytes_of = [&](const sluice::model::Port& port) {
    return static_cast<std::size_t>(port.onnx_shape.element_count()) * sluice::size_of(graph.dtype_of(port));
  };
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    std::vector<std::byte> values(bytes_of(graph.inputs[i]));
    if (!take(values))
      return sluice::fail(sluice::ErrorCode::kInvalidArgument, graph.inputs[i].name, "the input ends before its last value");
    SLUICE_RETURN_IF_ERROR(session->set_input(i, graph.dtype_of(graph.inputs[i]), values));
  }
  SLUICE_RETURN_IF_ERROR(session->run());
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    std::vector<std::byte> values(static_cast<std::size_t>(session->output_shape(i).element_count()) *
                                  sluice::size_of(graph.dtype_of(graph.outputs[i])));
    SLUICE_RETURN_IF_ERROR(session->get_output(i, values));
    if (std::fwrite(values.data(), 1, values.size(), stdout) != values.size())
      return sluice::fail(sluice::ErrorCode::kIo, graph.outputs[i].name, "the output cannot be written");
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::fputs("17_run_a_plan MODEL PLAN < INPUTS > OUTPUTS\n", stderr), 1;
  const sluice::Status done = run(argv[1], argv[2]);
  if (done && std::fflush(stdout) == 0) return 0;
  std::fprintf(stderr, "%s\n", done ? "the outputs cannot be written" : done.error().to_string().c_str());
  return 2;
}
