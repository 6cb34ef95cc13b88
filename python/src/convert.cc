// sluice._convert: the importer for Python, an extension of its own.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <charconv>
#include <string>

#include "python/src/errors.h"
#include "sluice/importer/importer.h"

namespace sluice::python {
namespace {

namespace py = pybind11;

/// A number binds a dimension, a list of numbers leaves it open for these extents.
void add_dim(const std::string& name, const py::handle& extent, importer::ConvertOptions& options) {
  if (py::isinstance<py::int_>(extent))
    options.dims[name] = extent.cast<std::int64_t>();
  else
    options.open_dims[name] = extent.cast<std::vector<std::int64_t>>();
}

/// Every problem of the file, one a line, in place of the first one alone.
std::string text_of(const importer::ConvertReport& report) {
  std::string text;
  for (const importer::Problem& problem : report.problems)
    text += "\n  " + (problem.node.empty() ? std::string() : "node '" + problem.node + "' (" + problem.op_type + "): ") + problem.message;
  return text;
}

py::dict convert(const py::object& onnx, const py::object& model, const py::dict& dims, const std::string& numerics) {
  const py::object path = py::module_::import("os").attr("fspath");
  importer::ConvertOptions options;
  for (const auto& [name, extent] : dims) add_dim(name.cast<std::string>(), extent, options);
  if (numerics != "fast" && numerics != "exact") throw py::value_error("numerics: is 'fast' or 'exact'");
  options.exact = numerics == "exact";
  const auto from = path(onnx).cast<std::string>(), to = path(model).cast<std::string>();
  importer::ConvertReport report;
  Status status;
  {
    const py::gil_scoped_release released;
    status = importer::convert(from, to, options, report);
  }
  if (!status) {
    Error error = status.error();
    if (report.problems.empty()) raise(error);
    const py::object type = py::module_::import("sluice").attr("Error");
    const std::string_view code = name_of(error.code);
    PyErr_SetObject(type.ptr(), type(from + ":" + text_of(report), py::str(code.data(), code.size()), py::none()).ptr());
    throw py::error_already_set();
  }
  py::dict facts;
  facts["onnx_nodes"] = report.onnx_nodes;
  facts["nodes"] = report.nodes;
  facts["weight_bytes"] = report.weight_bytes.count();
  facts["file_bytes"] = report.file_bytes.count();
  return facts;
}

}  // namespace
}  // namespace sluice::python

PYBIND11_MODULE(_convert, module) {
  namespace py = pybind11;
  module.doc() = "The importer; use sluice.convert.";
  module.def("convert", &sluice::python::convert, py::arg("onnx"), py::arg("model"), py::kw_only(), py::arg("dims") = py::dict(),
             py::arg("numerics") = "fast");
}
