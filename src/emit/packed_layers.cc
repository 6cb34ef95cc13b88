#include "src/emit/packed_layers.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <string_view>

#include "sluice/core/check.h"
#include "src/emit/kernels.h"
#include "src/emit/portable_text.h"
#include "src/emit/text.h"

namespace sluice::emit {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \n";
  const std::size_t first = text.find_first_not_of(kBlank);
  return first == std::string_view::npos ? std::string_view() : text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    if (const std::string_view part = trimmed(text.substr(at, end - at)); !part.empty()) parts.push_back(part);
    at = end + 1;
  }
  return parts;
}

std::string without_comments(std::string_view text) {
  std::string clean;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = std::min(text.find("/*", at), text.size());
    clean += text.substr(at, begin - at);
    at = begin == text.size() ? begin : text.find("*/", begin) + 2;
  }
  return clean;
}

/// Between its braces.
std::string body_of(std::string_view type) {
  const std::string head = "typedef struct " + std::string(type) + " {", tail = "} " + std::string(type) + ";";
  for (const PortableHeader& header : portable_headers()) {
    const std::size_t begin = header.text.find(head), end = header.text.find(tail);
    if (begin != std::string_view::npos && end != std::string_view::npos)
      return without_comments(header.text.substr(begin + head.size(), end - begin - head.size()));
  }
  SLUICE_CHECK(false, "parameters are of a struct of the portable headers");
  return {};
}

void add_members(std::string_view type, const std::string& prefix, std::vector<Member>& members) {
  const std::string body = body_of(type);
  for (const std::string_view declaration : parts_of(body, ';')) {
    constexpr std::string_view kFunction = "(*";
    if (const std::size_t at = declaration.find(kFunction); at != std::string_view::npos) {
      const std::size_t begin = at + kFunction.size();
      members.push_back({prefix + std::string(declaration.substr(begin, declaration.find(')', begin) - begin)), ""});
      continue;
    }
    const bool pointer = declaration.find('*') != std::string_view::npos;
    const std::size_t end = declaration.find_first_of(pointer ? "*" : " ");
    for (std::string_view name : parts_of(declaration.substr(end), ',')) {
      if (pointer) name = trimmed(name.substr(name.find('*') + 1));
      const std::string_view own_type = declaration.substr(0, end);
      if (!pointer && own_type.starts_with("sluice_"))
        add_members(own_type, prefix + std::string(name) + ".", members);
      else
        members.push_back({prefix + std::string(name), pointer ? "" : std::string(own_type)});
    }
  }
}

/// The values of an initialiser, in their order.
std::vector<std::string> values_of(const std::string& initialiser) {
  std::string flat;
  for (const char c : initialiser)
    if (c != '{' && c != '}') flat += c;
  std::vector<std::string> values;
  for (const std::string_view value : parts_of(flat, ',')) values.emplace_back(value);
  return values;
}

/// The initialiser with other values.
std::string with_values(const std::string& initialiser, const std::vector<std::string>& values) {
  std::string text;
  std::size_t next = 0;
  for (std::size_t at = 0; at < initialiser.size();) {
    constexpr std::string_view kBetween = "{}, ";
    if (kBetween.find(initialiser[at]) != std::string_view::npos) {
      text += initialiser[at++];
    } else {
      text += values[next++];
      at = std::min(initialiser.find_first_of(",}", at), initialiser.size());
    }
  }
  return text;
}

/// Zero points and bounds of bytes.
bool takes_no_time(const std::string& member) {
  constexpr std::string_view kEnds[] = {"zero", "zero_in", "zero_a", "zero_b", "low", "high"};
  return std::any_of(std::begin(kEnds), std::end(kEnds), [&](std::string_view end) { return member.ends_with(end); });
}

bool is_number(const std::string& value) {
  const std::size_t digit = value[0] == '-' ? 1 : 0;
  return value.size() > digit && value[digit] >= '0' && value[digit] <= '9';
}
bool is_float(const std::string& value) { return is_number(value) && value.find('x') != std::string::npos; }
std::int64_t integer_of(const std::string& value) { return std::strtoll(value.c_str(), nullptr, 10); }

/// The narrowest type that holds all of them.
template <class Numbers>
std::string type_for(const Numbers& numbers) {
  const auto [least, most] = std::minmax_element(numbers.begin(), numbers.end());
  for (const int bits : {8, 16}) {
    const std::string name = "int" + std::to_string(bits) + "_t";
    if (*least >= 0 && *most < std::int64_t{1} << bits) return "u" + name;
    if (*least >= -(std::int64_t{1} << (bits - 1)) && *most < std::int64_t{1} << (bits - 1)) return name;
  }
  return *least < 0 ? "int32_t" : "uint32_t";
}

struct Extents {
  std::int64_t rows = 0, pixels = 0, bytes = 0;
  friend auto operator<=>(const Extents&, const Extents&) = default;
};

/// Layers of one kernel whose parameters point at the same things.
struct Group {
  std::vector<std::size_t> layers;
};

/// One struct in RAM for all layers of a group: its name, its type and its initialisers, by layer.
struct Struct {
  std::string name;
  std::string type;
  std::vector<std::string> initialisers;
};

/// What differs from layer to layer.
struct Differences {
  std::vector<std::vector<std::int64_t>> columns;  // of the rows
  std::vector<std::string> assignments;
};

class Packer {
 public:
  Packer(const Network& network, const std::vector<Layer>& layers) : network_(network), layers_(layers) {}

  PackedLayers pack() {
    std::string groups;
    for (Group& group : grouped()) groups += pack(group);
    constexpr std::int64_t kMostOfWord = 65535;
    packed_.wide = extents_.size() > kMarkOfByte ||
                   std::any_of(extents_.begin(), extents_.end(), [](const Extents& e) { return e.bytes > kMostOfWord; });
    std::string extents = "static const sluice_extents extents[] = {";
    for (const Extents& e : extents_)
      extents += "\n  " + braced(std::to_string(e.rows), std::to_string(e.pixels), std::to_string(e.bytes) + "u") + ",";
    packed_.text +=
        "\n/* Rows, pixels and bytes of a pixel of tensors; and, layer by layer, which it reads and which, marked, it makes. */\n" +
        extents + "\n};\n" +
        (packed_.wide ? c_array("ports", marked<std::uint16_t>(kMarkOfWord)) : c_array("ports", marked<std::uint8_t>(kMarkOfByte)));
    packed_.text += "static const sluice_layers groups[] = {\n" + groups + "};\n";
    return std::move(packed_);
  }

 private:
  static constexpr std::size_t kMarkOfByte = 128, kMarkOfWord = 32768;

  Extents extents_of(std::size_t storage, const RowExtents& view) const {
    return {view.rows, view.pixels, view.channels * static_cast<std::int64_t>(size_of(network_.storages[storage].dtype))};
  }
  Extents read_by(const Layer& layer) const { return extents_of(layer.stage->inputs[0].storage, layer.stage->inputs[0].view); }
  Extents made_by(const Layer& layer) const { return extents_of(layer.stage->storage, layer.stage->out); }

  /// Regions in one pixel come last.
  std::vector<Group> grouped() const {
    std::map<std::string, std::size_t> seen;
    std::vector<Group> groups;
    for (const bool in_one_pixel : {false, true})
      for (std::size_t i = 0; i < layers_.size(); ++i) {
        if (layers_[i].in_one_pixel != in_one_pixel) continue;
        std::string key = code_of(layers_[i].stage->kernel).run + std::string(layers_[i].cut.empty() ? "" : ", cut");
        for (const std::string& value : values_of(layers_[i].parameters))
          if (!is_number(value)) key += "," + value;
        const auto [found, added] = seen.emplace(key, groups.size());
        if (added) groups.emplace_back();
        groups[found->second].layers.push_back(i);
      }
    return groups;
  }

  void add_port(const Extents& extents, bool made) {
    const auto found = std::find(extents_.begin(), extents_.end(), extents);
    ports_.emplace_back(static_cast<std::size_t>(found - extents_.begin()), made);
    if (found == extents_.end()) extents_.push_back(extents);
  }
  template <class T>
  std::vector<T> marked(std::size_t mark) const {
    std::vector<T> numbers;
    for (const auto& [port, made] : ports_) numbers.push_back(static_cast<T>(port + (made ? mark : 0)));
    return numbers;
  }

  /// Its line in the table of groups; its parameters, rows and function become text.
  std::string pack(const Group& group) {
    const KernelCode& code = code_of(layers_[group.layers[0]].stage->kernel);
    for (const std::size_t layer : group.layers) {
      packed_.order.push_back(layer);
      for (const StageInput& input : layers_[layer].stage->inputs) add_port(extents_of(input.storage, input.view), false);
      add_port(made_by(layers_[layer]), true);
    }
    const std::string number = std::to_string(groups_++);
    const Layer& first = layers_[group.layers[0]];
    const auto of_all = [&](const std::string Layer::*initialiser) {
      std::vector<std::string> all;
      for (const std::size_t layer : group.layers) all.push_back(layers_[layer].*initialiser);
      return all;
    };
    Differences differences;
    if (!first.parameters.empty()) add_struct(group, {"parameters_" + number, code.type, of_all(&Layer::parameters)}, differences);
    if (!first.cut.empty()) add_struct(group, {"cut_" + number, "sluice_cut", of_all(&Layer::cut)}, differences);
    const std::string set = differences.assignments.empty() ? "NULL" : add_function(number, differences);
    const auto whole =
        std::count_if(group.layers.begin(), group.layers.end(), [&](std::size_t layer) { return !layers_[layer].in_one_pixel; });
    return "  " +
           braced(code.run, first.parameters.empty() ? "NULL" : "&parameters_" + number, first.cut.empty() ? "NULL" : "&cut_" + number, set,
                  std::to_string(group.layers.size()), std::to_string(whole), first.stage->folds ? "1" : "0") +
           ",\n";
  }

  /// The values of its first layer, except those that are 0 there and not in others: a scale of 0 would take another time.
  void add_struct(const Group& group, const Struct& made, Differences& differences) {
    const std::vector<Member> members = members_of(made.type);
    std::vector<std::vector<std::string>> values;
    for (const std::string& initialiser : made.initialisers) values.push_back(values_of(initialiser));
    std::vector<std::string> first = values[0];
    const std::size_t before = differences.assignments.size();
    SLUICE_CHECK(first.size() == members.size(), "an initialiser has a value for each member");
    for (std::size_t m = 0; m < members.size(); ++m) {
      for (std::size_t k = 1; is_float(first[m]) && first[m].starts_with("0x0p") && k < values.size(); ++k) first[m] = values[k][m];
      if (!is_number(first[m]) || is_float(first[m]) || takes_no_time(members[m].name)) continue;
      std::vector<std::int64_t> column;
      for (const std::vector<std::string>& of_layer : values) column.push_back(integer_of(of_layer[m]));
      if (std::all_of(column.begin(), column.end(), [&](std::int64_t value) { return value == column[0]; })) continue;
      std::string source = followed(group, column);
      if (source.empty()) {
        auto& columns = differences.columns;
        const auto found = std::find(columns.begin(), columns.end(), column);
        source = "row->n" + std::to_string(found - columns.begin());
        if (found == columns.end()) columns.push_back(std::move(column));
      }
      differences.assignments.push_back("  " + made.name + "." + members[m].name + " = (" + members[m].type + ")" + source + ";\n");
    }
    packed_.text += std::string("static ") + (differences.assignments.size() == before ? "const " : "") + made.type + " " + made.name +
                    " = " + with_values(made.initialisers[0], first) + ";\n";
  }

  /// Gives the name of the function that sets what differs.
  std::string add_function(const std::string& number, const Differences& differences) {
    const std::vector<std::vector<std::int64_t>>& columns = differences.columns;
    std::string function = "static void set_" + number + "(const sluice_layer *layer) {\n";
    if (!columns.empty()) {
      std::vector<std::size_t> by_width(columns.size());
      for (std::size_t i = 0; i < columns.size(); ++i) by_width[i] = i;
      const auto width = [&](std::size_t i) {
        return type_for(columns[i]).find("32") != std::string::npos ? 4 : type_for(columns[i]).find("16") != std::string::npos ? 2 : 1;
      };
      std::stable_sort(by_width.begin(), by_width.end(), [&](std::size_t a, std::size_t b) { return width(a) > width(b); });
      std::string fields;
      for (const std::size_t i : by_width) fields += " " + type_for(columns[i]) + " n" + std::to_string(i) + ";";
      packed_.text += "typedef struct row_" + number + " {" + fields + " } row_" + number + ";\nstatic const row_" + number +
                      " packed_rows_" + number + "[] = {";
      for (std::size_t layer = 0; layer < columns[0].size(); ++layer) {
        std::string row;
        for (const std::size_t i : by_width) row += (row.empty() ? "{" : ", ") + std::to_string(columns[i][layer]);
        packed_.text += (layer % 8 == 0 ? "\n  " : " ") + row + "},";
      }
      packed_.text += "\n};\n";
      function += "  const row_" + number + " *row = &packed_rows_" + number + "[layer->number];\n";
    }
    for (const std::string& assignment : differences.assignments) function += assignment;
    packed_.text += function + "}\n";
    return "set_" + number;
  }

  /// What says of each layer the same as the column.
  std::string followed(const Group& group, const std::vector<std::int64_t>& column) const {
    const auto size = [&](std::size_t storage) { return static_cast<std::int64_t>(size_of(network_.storages[storage].dtype)); };
    const Stage& first = *layers_[group.layers[0]].stage;
    const std::int64_t read = size(first.inputs[0].storage), made = size(first.storage);
    const auto channels = [](const char* of, std::int64_t bytes) {
      return std::string("(") + of + "->bytes / " + std::to_string(bytes) + "u)";
    };
    struct Source {
      std::string text;
      std::int64_t (*value)(const Extents& in, const Extents& out, std::int64_t read, std::int64_t made);
    };
    const Source sources[] = {
        {"layer->in->rows", [](const Extents& in, const Extents&, std::int64_t, std::int64_t) { return in.rows; }},
        {"layer->in->pixels", [](const Extents& in, const Extents&, std::int64_t, std::int64_t) { return in.pixels; }},
        {channels("layer->in", read), [](const Extents& in, const Extents&, std::int64_t bytes, std::int64_t) { return in.bytes / bytes; }},
        {"layer->out->rows", [](const Extents&, const Extents& out, std::int64_t, std::int64_t) { return out.rows; }},
        {"layer->out->pixels", [](const Extents&, const Extents& out, std::int64_t, std::int64_t) { return out.pixels; }},
        {channels("layer->out", made),
         [](const Extents&, const Extents& out, std::int64_t, std::int64_t bytes) { return out.bytes / bytes; }}};
    const auto same = [&](const auto& value_of) {
      for (std::size_t k = 0; k < column.size(); ++k)
        if (value_of(layers_[group.layers[k]]) != column[k]) return false;
      return true;
    };
    for (const Source& source : sources)
      if (same([&](const Layer& layer) { return source.value(read_by(layer), made_by(layer), read, made); })) return source.text;
    if (same([](const Layer& layer) { return static_cast<std::int64_t>(layer.behind); })) return "layer->behind";
    return {};
  }

  const Network& network_;
  const std::vector<Layer>& layers_;
  PackedLayers packed_;
  std::vector<Extents> extents_;
  std::vector<std::pair<std::size_t, bool>> ports_;  // place in extents_; is it made?
  std::size_t groups_ = 0;
};

}  // namespace

std::vector<Member> members_of(std::string_view type) {
  std::vector<Member> members;
  add_members(type, "", members);
  return members;
}

PackedLayers pack_layers(const Network& network, const std::vector<Layer>& layers) { return Packer(network, layers).pack(); }

}  // namespace sluice::emit
