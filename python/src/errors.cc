#include "python/src/errors.h"

#include "sluice/core/units.h"

namespace sluice::python {

namespace py = pybind11;

void raise(const Error& error) {
  const py::object type = py::module_::import("sluice").attr("Error");
  const std::string_view code = name_of(error.code);
  py::object numbers = py::none();
  if (error.has_numbers) numbers = py::make_tuple(error.needed, error.available);
  const py::object value = type(error.to_string(), py::str(code.data(), code.size()), numbers);
  PyErr_SetObject(type.ptr(), value.ptr());
  throw py::error_already_set();
}

std::uint64_t bytes_of(const py::object& size, const char* what) {
  if (size.is_none()) return kUnlimitedBytes.count();
  if (py::isinstance<py::str>(size)) {
    const auto text = size.cast<std::string>();
    if (const auto bytes = parse_bytes(text)) return bytes->count();
    throw py::value_error(std::string(what) + ": '" + text + "' is not a size such as '48MiB'");
  }
  if (!py::isinstance<py::int_>(size))
    throw py::type_error(std::string(what) + ": wants a number of bytes, a size such as '48MiB', or None");
  const py::int_ number = size;
  const auto bytes = number.cast<std::int64_t>();
  if (bytes < 0) throw py::value_error(std::string(what) + ": is below 0");
  return static_cast<std::uint64_t>(bytes);
}

}  // namespace sluice::python
