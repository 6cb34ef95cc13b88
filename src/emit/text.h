// Numbers and names as C writes them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace sluice::emit {

/// A float, exactly: in hexadecimal, as C99 has it. Infinities and NaN have names there.
inline std::string c_float(float value) {
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value)) return value < 0 ? "-INFINITY" : "INFINITY";
  char text[40];
  std::snprintf(text, sizeof text, "%af", static_cast<double>(value));
  return text;
}

/// Writes the value in decimal, for headers: C++ before 17 has no hexadecimal floats. Nine digits tell all floats apart.
inline std::string c_decimal(float value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.8ef", static_cast<double>(value));
  return text;
}

inline std::string num(std::int64_t value) { return std::to_string(value); }
inline std::string unsigned_num(std::uint64_t value) { return std::to_string(value) + "u"; }

template <class T>
std::string c_number(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    return c_float(value);
  } else if constexpr (std::is_signed_v<T> && sizeof(T) == 4) {
    return value == INT32_MIN ? std::string("(-2147483647 - 1)") : std::to_string(value);
  } else {
    return std::to_string(value) + (std::is_unsigned_v<T> && sizeof(T) == 4 ? "u" : "");
  }
}

/// "{a, b, ...}".
template <class... Parts>
std::string braced(const Parts&... parts) {
  std::string text = "{";
  const char* between = "";
  ((text += between, text += parts, between = ", "), ...);
  return text + "}";
}

template <class T>
constexpr const char* c_type() {
  if constexpr (std::is_same_v<T, float>) return "float";
  if constexpr (std::is_same_v<T, std::int8_t>) return "int8_t";
  if constexpr (std::is_same_v<T, std::uint8_t>) return "uint8_t";
  if constexpr (std::is_same_v<T, std::uint16_t>) return "uint16_t";
  if constexpr (std::is_same_v<T, std::int16_t>) return "int16_t";
  if constexpr (std::is_same_v<T, std::int32_t>) return "int32_t";
  return "uint32_t";
}

/// "static const TYPE NAME[N] = {...};", in lines of some hundred characters.
template <class T>
std::string c_array(const std::string& name, const std::vector<T>& values) {
  std::string text = std::string("static const ") + c_type<T>() + " " + name + "[" + std::to_string(values.size()) + "] = {";
  std::size_t line = text.size();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::string number = c_number(values[i]) + (i + 1 < values.size() ? "," : "");
    if (line + number.size() > 110) text += "\n ", line = 1;
    text += " " + number;
    line += number.size() + 1;
  }
  return text + "};\n";
}

/// A comment cannot be ended by a name in it, nor a line.
inline std::string comment_text(std::string_view text) {
  std::string clean;
  for (const char c : text)
    clean += c < ' ' || c > '~' || ((c == '/' || c == '*') && !clean.empty() && (clean.back() == '/' || clean.back() == '*')) ? '_' : c;
  return clean;
}

/// What a C name cannot have becomes `_`; in front of what it cannot begin with or be, too.
inline std::string c_name(std::string_view stem) {
  std::string name;
  for (const char c : stem) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_', digit = c >= '0' && c <= '9';
    if (digit && name.empty()) name = "_";
    name += letter || digit ? c : '_';
  }
  // The portable headers have types of that name already. NAME.h must not be the name of a header that emitted code includes.
  constexpr std::string_view kTaken[] = {"sluice", "float", "math",    "stddef",   "stdint", "string",
                                         "stdio",  "time",  "arm_mve", "arm_acle", "measure"};
  if (std::find(std::begin(kTaken), std::end(kTaken), name) != std::end(kTaken)) name = "_" + name;
  return name.empty() ? "_" : name;
}

}  // namespace sluice::emit
