// sluice._runtime: models, sessions and plans for Python.
//
// `Session.run` is the hot path: an input that is a C-contiguous array of the port's type is copied once, into the arena; everything else
// is converted by numpy first. `input_view` and `output_view` are the arena itself, as arrays without a copy: they keep the session, and
// while one lives the session's budget, which would move the arena, cannot be changed. The interpreter's lock is released while the model
// runs. A call costs some microseconds beside the run itself.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "python/src/arrays.h"
#include "python/src/errors.h"
#include "sluice/engine/engine.h"
#include "sluice/plan/picture.h"
#include "sluice/plan/plan_file.h"
#include "sluice/profiler/profile_file.h"

namespace sluice::python {
namespace {

namespace py = pybind11;
using Dims = std::map<std::string, std::int64_t>;

model::Extents extents_of(const std::optional<Dims>& dims) {
  model::Extents extents;
  if (dims)
    for (const auto& [name, extent] : *dims) extents[name] = extent;
  return extents;
}

/// What a session is made with; the keyword arguments of Session and plan.
struct Wishes {
  py::object budget;
  std::string scope = "library";
  int threads = 1;
  std::string policy = "sluice";
  bool repeat = true;
  py::object profile = py::none();
};

/// What `sluice profile` wrote, at a path or, for True, where it keeps it.
std::optional<profiler::DeviceProfile> profile_of(const py::object& profile, int threads) {
  if (profile.is_none() || profile.is(py::bool_(false))) return std::nullopt;
  const bool own = profile.is(py::bool_(true));
  const std::string path = own ? profiler::default_profile_path() : py::module_::import("os").attr("fspath")(profile).cast<std::string>();
  return profiler::profile_for_threads(unwrap(profiler::load_profiles(path)), threads);
}

/// `profile` outlives the options.
SessionOptions options_of(const Wishes& wishes, std::optional<profiler::DeviceProfile>& profile) {
  SessionOptions options;
  profile = profile_of(wishes.profile, wishes.threads);
  if (profile) options.profile = &*profile;
  options.budget = Bytes(bytes_of(wishes.budget, "budget"));
  if (wishes.scope != "library" && wishes.scope != "process") throw py::value_error("scope: is 'library' or 'process'");
  options.scope = wishes.scope == "process" ? BudgetScope::kProcess : BudgetScope::kLibrary;
  options.threads = wishes.threads;
  options.repeat = wishes.repeat;
  using planner::Policy;
  for (const Policy policy : {Policy::kSluice, Policy::kResident, Policy::kOnDemand, Policy::kFlexnn})
    if (wishes.policy == planner::name_of(policy)) {
      options.tuning.policy = policy;
      return options;
    }
  throw py::value_error("policy: is one of sluice, resident, on_demand and flexnn");
}

py::dict dict_of(const model::Graph& graph, const model::Port& port) {
  py::dict info;
  info["name"] = port.name;
  info["shape"] = tuple_of(port.onnx_shape);
  info["dtype"] = dtype_of(graph.dtype_of(port));
  return info;
}

py::list list_of(const model::Graph& graph, const std::vector<model::Port>& ports) {
  py::list list;
  for (const model::Port& port : ports) list.append(dict_of(graph, port));
  return list;
}

class PyModel {
 public:
  PyModel(const std::string& path, const std::optional<Dims>& dims) : model_(unwrap(Model::open(path, extents_of(dims)))) {}
  explicit PyModel(std::shared_ptr<const Model> model) : model_(std::move(model)) {}

  const std::shared_ptr<const Model>& get() const { return model_; }
  py::list inputs() const { return list_of(model_->graph(), model_->graph().inputs); }
  py::list outputs() const { return list_of(model_->graph(), model_->graph().outputs); }
  py::dict dimensions() const {
    py::dict all;
    for (const model::Dimension& dimension : model_->file().dimensions()) all[py::str(dimension.name)] = dimension.extents;
    return all;
  }
  py::dict dims() const {
    py::dict all;
    for (const model::Dimension& dimension : model_->file().dimensions()) all[py::str(dimension.name)] = dimension.extent;
    return all;
  }
  PyModel with_dims(const Dims& dims) const { return PyModel(unwrap(model_->with_dims(extents_of(dims)))); }
  std::uint64_t minimum_budget(const Wishes& wishes) const {
    std::optional<profiler::DeviceProfile> profile;
    return unwrap(sluice::minimum_budget(*model_, options_of(wishes, profile))).count();
  }
  std::string path() const { return model_->file().path(); }

 private:
  std::shared_ptr<const Model> model_;
};

/// A model, or the path of one.
PyModel model_of(const py::object& model, const std::optional<Dims>& dims) {
  if (py::isinstance<PyModel>(model)) {
    const auto& opened = model.cast<const PyModel&>();
    return dims ? opened.with_dims(*dims) : opened;
  }
  return PyModel(py::module_::import("os").attr("fspath")(model).cast<std::string>(), dims);
}

class PyPlan {
 public:
  PyPlan(PyModel model, PlannedBudget planned) : model_(std::move(model)), planned_(std::move(planned)) {}

  py::dict facts() const {
    const plan::Plan& plan = planned_.plan;
    py::dict facts;
    facts["policy"] = plan.policy;
    facts["threads"] = plan.threads;
    facts["arena_bytes"] = plan.arena_bytes.count();
    facts["overhead_bytes"] = planned_.overhead.count();
    facts["minimum_budget_bytes"] = planned_.minimum_budget.count();
    facts["resident_bytes"] = plan.resident_bytes.count();
    facts["streamed_bytes"] = plan.streamed_bytes.count();
    facts["predicted_ms"] = plan.repeat ? plan.prediction.period_ms : plan.prediction.cold_ms;
    facts["bound_ms"] = plan.prediction.bound_ms;
    facts["compute_ms"] = plan.prediction.compute_ms;
    facts["steps"] = plan.steps.size();
    facts["loads"] = plan.loads.size();
    return facts;
  }
  std::string svg() const { return plan::picture_of(planned_.plan, model_.get()->graph()); }
  void save(const std::string& path) const { unwrap(plan::save_plan(planned_.plan, path)); }

 private:
  PyModel model_;
  PlannedBudget planned_;
};

class PySession {
 public:
  PySession(const py::object& model, const std::optional<Dims>& dims, const Wishes& wishes) : model_(model_of(model, dims)) {
    std::optional<profiler::DeviceProfile> profile;
    session_ = unwrap(Session::create(model_.get(), options_of(wishes, profile)));
  }

  const PyModel& model() const { return model_; }

  py::dict run(const py::object& given) {
    if (!given.is_none()) set_inputs(given);
    Status status;
    {
      const py::gil_scoped_release released;
      status = session_->run();
    }
    unwrap(status);
    py::dict outputs;
    const std::vector<model::Port>& ports = graph().outputs;
    for (std::size_t i = 0; i < ports.size(); ++i) outputs[py::str(ports[i].name)] = output(i);
    return outputs;
  }

  void cancel() noexcept { session_->cancel(); }
  void set_budget(const py::object& budget) {
    const Bytes bytes(bytes_of(budget, "budget"));
    if (views_ > 0) throw py::value_error("set_budget: " + std::to_string(views_) + " views of inputs or outputs still refer to the arena");
    Status status;
    {
      const py::gil_scoped_release released;
      status = session_->set_budget(bytes);
    }
    unwrap(status);
  }

  /// An input or output where it lies. `self` is this session, which the array keeps.
  static py::array input_view(const py::object& self, const py::object& name) {
    auto& session = self.cast<PySession&>();
    return session.view(self, unwrap(session.session_->input_in_place(session.port_of(name, session.graph().inputs, "input"))), true);
  }
  static py::array output_view(const py::object& self, const py::object& name) {
    auto& session = self.cast<PySession&>();
    return session.view(self, unwrap(session.session_->output_in_place(session.port_of(name, session.graph().outputs, "output"))), false);
  }

  py::dict stats() const {
    const executor::RunStats& run = session_->stats();
    py::dict stats;
    stats["wall_ms"] = static_cast<double>(run.wall_ns) / 1e6;
    stats["cpu_ms"] = static_cast<double>(run.cpu_ns) / 1e6;
    stats["stall_ms"] = static_cast<double>(run.stall_ns) / 1e6;
    stats["bytes_read"] = run.bytes_read.count();
    return stats;
  }
  py::dict memory() const {
    const MemoryReport report = session_->memory();
    py::dict memory;
    memory["budget_bytes"] = report.budget >= kUnlimitedBytes ? py::object(py::none()) : py::object(py::int_(report.budget.count()));
    memory["overhead_bytes"] = report.overhead.count();
    memory["arena_bytes"] = report.arena.count();
    memory["peak_rss_bytes"] = report.peak_resident.count();
    return memory;
  }

 private:
  const model::Graph& graph() const { return session_->model().graph(); }

  void set_inputs(const py::object& given) {
    const std::vector<model::Port>& ports = graph().inputs;
    if (py::isinstance<py::dict>(given)) {
      for (const auto& [name, value] : given.cast<py::dict>()) set_input(port_of(name.cast<std::string>(), ports, "input"), value);
      return;
    }
    if (ports.size() != 1) throw py::type_error("run: the model has " + std::to_string(ports.size()) + " inputs; give a dict of them");
    set_input(0, given);
  }

  /// None: the only one.
  std::size_t port_of(const py::object& name, const std::vector<model::Port>& ports, const char* kind) const {
    if (!name.is_none()) return port_of(name.cast<std::string>(), ports, kind);
    if (ports.size() == 1) return 0;
    throw py::type_error("the model has " + std::to_string(ports.size()) + " " + kind + "s; name one");
  }

  std::size_t port_of(const std::string& name, const std::vector<model::Port>& ports, const char* kind) const {
    std::string names;
    for (std::size_t i = 0; i < ports.size(); ++i) {
      if (ports[i].name == name) return i;
      names += (i == 0 ? "'" : ", '") + ports[i].name + "'";
    }
    throw py::key_error(std::string("the model has no ") + kind + " '" + name + "'; it has " + names);
  }

  py::array view(const py::object& self, const TensorInPlace& tensor, bool writable) {
    /// What an array keeps while it lives.
    struct Held {
      py::object session;
      std::size_t* views;
    };
    const py::capsule held(new Held{self, &views_}, [](void* pointer) {
      const std::unique_ptr<Held> ended(static_cast<Held*>(pointer));
      --*ended->views;
    });
    ++views_;
    const auto rank = static_cast<std::size_t>(tensor.shape.rank());
    py::array array(dtype_of(tensor.dtype), std::vector<py::ssize_t>(tensor.shape.dims().begin(), tensor.shape.dims().end()),
                    std::vector<py::ssize_t>(tensor.strides.begin(), tensor.strides.begin() + static_cast<std::ptrdiff_t>(rank)),
                    tensor.data, held);
    if (!writable) array.attr("flags").attr("writeable") = false;
    return array;
  }

  /// An array of the port's type whose elements follow each other; a copy where `value` is none. Floats narrow and widen, integers become
  /// wider ones and floats; whatever would lose a value is refused.
  py::array array_of(const py::handle& value, DType dtype, const std::string& name) const {
    const py::module_ numpy = py::module_::import("numpy");
    py::object array = py::reinterpret_borrow<py::object>(value);
    if (!py::isinstance<py::array>(value)) {
      array = py::hasattr(value, "__dlpack__") ? numpy.attr("from_dlpack")(value) : numpy.attr("asarray")(value);
    }
    const py::dtype wanted = dtype_of(dtype);
    const py::object from = array.attr("dtype");
    const bool both_float = from.attr("kind").cast<std::string>() == "f" && wanted.kind() == 'f';
    if (!both_float && !numpy.attr("can_cast")(from, wanted, py::arg("casting") = "safe").cast<bool>() &&
        !numpy.attr("can_cast")(from, wanted, py::arg("casting") = "same_kind").cast<bool>()) {
      throw py::type_error("input '" + name + "': wants " + py::str(py::handle(wanted)).cast<std::string>() + ", and an array of " +
                           py::str(py::handle(from)).cast<std::string>() + " does not become that without loss");
    }
    return numpy.attr("ascontiguousarray")(array, wanted).cast<py::array>();
  }

  void set_input(std::size_t port, const py::handle& value) {
    const model::Port& info = graph().inputs[port];
    // numpy has no bf16 of its own; f32 holds every value of it.
    const DType dtype = graph().dtype_of(info) == DType::kBF16 ? DType::kF32 : graph().dtype_of(info);
    py::array array;
    if (py::isinstance<py::array>(value)) array = py::reinterpret_borrow<py::array>(value);
    if (!array || !array.dtype().is(dtype_of(dtype)) || (array.flags() & py::array::c_style) == 0)
      array = array_of(value, dtype, info.name);
    check_shape(array, info);
    unwrap(session_->set_input(port, dtype, {static_cast<const std::byte*>(array.data()), static_cast<std::size_t>(array.nbytes())}));
  }

  static void check_shape(const py::array& array, const model::Port& info) {
    bool same = array.ndim() == info.onnx_shape.rank();
    for (int axis = 0; same && axis < info.onnx_shape.rank(); ++axis) same = array.shape(axis) == info.onnx_shape[axis];
    if (same) return;
    throw py::value_error("input '" + info.name + "': wants shape " + py::str(tuple_of(info.onnx_shape)).cast<std::string>() +
                          ", the array has " + py::str(array.attr("shape")).cast<std::string>());
  }

  py::array output(std::size_t port) {
    const Shape shape = session_->output_shape(port);
    std::vector<py::ssize_t> extents(shape.dims().begin(), shape.dims().end());
    py::array array(dtype_of(graph().dtype_of(graph().outputs[port])), extents);
    unwrap(session_->get_output(port, {static_cast<std::byte*>(array.mutable_data()), static_cast<std::size_t>(array.nbytes())}));
    return array;
  }

  PyModel model_;
  std::unique_ptr<Session> session_;
  std::size_t views_ = 0;
};

Wishes wishes_of(py::object budget, std::string scope, int threads, std::string policy, bool repeat, py::object profile = py::none()) {
  return {std::move(budget), std::move(scope), threads, std::move(policy), repeat, std::move(profile)};
}

PyPlan make_plan(const py::object& model, const std::optional<Dims>& dims, const Wishes& wishes) {
  PyModel opened = model_of(model, dims);
  std::optional<profiler::DeviceProfile> profile;
  PlannedBudget planned = unwrap(plan_session(*opened.get(), options_of(wishes, profile)));
  return PyPlan(std::move(opened), std::move(planned));
}

}  // namespace
}  // namespace sluice::python

PYBIND11_MODULE(_runtime, module) {
  using namespace sluice::python;
  namespace py = pybind11;
  module.doc() = "Models, sessions and plans; use the package `sluice`.";
  module.attr("__version__") = SLUICE_VERSION;

  py::class_<PyModel>(module, "Model", "An opened model file; several sessions may share it.")
      .def(py::init([](const py::object& path, const std::optional<Dims>& dims) { return model_of(path, dims); }), py::arg("path"),
           py::kw_only(), py::arg("dims") = py::none())
      .def_property_readonly("path", &PyModel::path)
      .def_property_readonly("inputs", &PyModel::inputs)
      .def_property_readonly("outputs", &PyModel::outputs)
      .def_property_readonly("dimensions", &PyModel::dimensions)
      .def_property_readonly("dims", &PyModel::dims)
      .def("with_dims", &PyModel::with_dims, py::arg("dims"))
      .def(
          "minimum_budget",
          [](const PyModel& model, std::string scope, int threads, bool repeat) {
            return model.minimum_budget(wishes_of(py::none(), std::move(scope), threads, "sluice", repeat));
          },
          py::kw_only(), py::arg("scope") = "library", py::arg("threads") = 1, py::arg("repeat") = true);

  py::class_<PySession>(module, "Session", "Runs a model inside a budget.")
      .def(py::init([](const py::object& model, py::object budget, const std::optional<Dims>& dims, std::string scope, int threads,
                       std::string policy, bool repeat, py::object profile) {
             return std::make_unique<PySession>(
                 model, dims, wishes_of(std::move(budget), std::move(scope), threads, std::move(policy), repeat, std::move(profile)));
           }),
           py::arg("model"), py::arg("budget") = py::none(), py::kw_only(), py::arg("dims") = py::none(), py::arg("scope") = "library",
           py::arg("threads") = 1, py::arg("policy") = "sluice", py::arg("repeat") = true, py::arg("profile") = py::none())
      .def("run", &PySession::run, py::arg("inputs") = py::none())
      .def("input_view", &PySession::input_view, py::arg("name") = py::none())
      .def("output_view", &PySession::output_view, py::arg("name") = py::none())
      .def("cancel", &PySession::cancel)
      .def("set_budget", &PySession::set_budget, py::arg("budget"))
      .def_property_readonly("model", &PySession::model)
      .def_property_readonly("stats", &PySession::stats)
      .def_property_readonly("memory", &PySession::memory);

  py::class_<PyPlan>(module, "Plan", "What would happen in a budget.")
      .def_property_readonly("facts", &PyPlan::facts)
      .def("svg", &PyPlan::svg)
      .def("save", &PyPlan::save, py::arg("path"))
      .def("_repr_svg_", &PyPlan::svg);

  module.def(
      "plan",
      [](const py::object& model, py::object budget, const std::optional<Dims>& dims, std::string scope, int threads, std::string policy,
         bool repeat, py::object profile) {
        return make_plan(model, dims,
                         wishes_of(std::move(budget), std::move(scope), threads, std::move(policy), repeat, std::move(profile)));
      },
      py::arg("model"), py::arg("budget") = py::none(), py::kw_only(), py::arg("dims") = py::none(), py::arg("scope") = "library",
      py::arg("threads") = 1, py::arg("policy") = "sluice", py::arg("repeat") = true, py::arg("profile") = py::none());
}
