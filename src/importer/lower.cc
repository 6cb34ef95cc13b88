#include <algorithm>
#include <deque>
#include <set>

#include "src/importer/allowance.h"
#include "src/importer/check_inputs.h"
#include "src/importer/fold.h"
#include "src/importer/lower_plain.h"
#include "src/importer/lower_sequence.h"
#include "src/importer/lowering.h"
#include "src/importer/unsupported.h"

namespace sluice::importer {
namespace {

class Walk final : public BodyLowering {
 public:
  Walk(const OnnxGraph& onnx, const ConvertOptions& options, Draft& draft, std::vector<Problem>& problems)
      : onnx_(onnx), options_(options), dims_(options.dims), bound_(options.values), draft_(draft), problems_(problems) {
    draft_.exact = options.exact;
  }

  void run() {
    draft_.name = std::string(onnx_.name);
    add_initializers(onnx_);
    add_inputs();
    check_dims_were_used();
    check_values_were_used();
    for (const OnnxNode& node : onnx_.nodes) lower_node(node);
    add_outputs();
    check_bounds_were_used();
  }

  std::vector<ValueId> lower_body(const OnnxGraph& body, const std::vector<ValueId>& inputs) override {
    inlined_ += body.nodes.size();
    // A turn takes memory even where it computes nothing: its number, its constants.
    count_made(1 + body.nodes.size() + body.initializers.size(), kUnrolledNodeBytes);
    if (inlined_ > kMaxInlined) refuse_unsupported("its bodies unroll to more than " + std::to_string(kMaxInlined) + " nodes");
    const std::size_t first_change = changes_.size();
    ++depth_;
    add_initializers(body);
    for (std::size_t i = 0; i < body.inputs.size() && i < inputs.size(); ++i) set_value(body.inputs[i].name, inputs[i]);
    for (const OnnxNode& node : body.nodes) lower_node(node);
    std::vector<ValueId> outputs;
    for (const OnnxPort& port : body.outputs) {
      outputs.push_back(find_value(port.name));
      if (!outputs.back().valid() && problems_.empty())
        refuse_malformed("output `" + std::string(port.name) + "` of a body is made by nothing");
    }
    --depth_;
    // The names of the body end with it; those that they hid come back.
    for (; changes_.size() > first_change; changes_.pop_back()) {
      if (changes_.back().second.valid())
        values_[changes_.back().first] = changes_.back().second;
      else
        values_.erase(changes_.back().first);
    }
    return outputs;
  }

  bool try_in_place(const std::function<bool()>& lower) override {
    const std::size_t nodes = draft_.nodes.size(), problems = problems_.size();
    try {
      if (lower() && problems_.size() == problems) return true;
    } catch (const Refusal&) {  // whoever asks goes another way, or lowers again to see why
    }
    draft_.nodes.resize(nodes);
    problems_.resize(problems);
    return false;
  }

  std::vector<ValueId> lower_as(NodeContext& c, std::string_view op, std::vector<ValueId> inputs, std::vector<OnnxAttribute> attributes,
                                std::size_t results) override {
    constexpr int kOpset = 13;
    OnnxNode node;
    node.op_type = op;
    node.outputs.assign(results, "result");
    node.attributes = std::move(attributes);
    NodeContext context(draft_, node, kOpset, std::move(inputs), c.name());
    if (!fold(context)) lower_fast_or_plain(context, find(op), kernels::find_plain(op));
    return context.outputs();
  }

  bool lower_apart(const OnnxGraph& body, const std::vector<Value>& inputs, ApartBody& out) override {
    out.draft.in_body = true;
    out.draft.fails_at_run = out.draft.fails_at_run || draft_.fails_at_run;
    std::vector<Problem> problems;
    Walk inner(onnx_, options_, out.draft, problems);
    inner.outer_ = this;
    inner.apart_ = &out;
    inner.inlined_ = inlined_ + body.nodes.size();
    count_made(body.nodes.size(), kUnrolledNodeBytes);
    if (inner.inlined_ > kMaxInlined) refuse_unsupported("its bodies unroll to more than " + std::to_string(kMaxInlined) + " nodes");
    inner.add_initializers(body);
    for (std::size_t i = 0; i < inputs.size() && i < body.inputs.size(); ++i) {
      const ValueId id = out.draft.add_value(inputs[i]);
      inner.values_[body.inputs[i].name] = id;
      out.draft.inputs.push_back({std::string(body.inputs[i].name), id});
    }
    for (const OnnxNode& node : body.nodes) inner.lower_node(node);
    for (const OnnxPort& port : body.outputs) out.outputs.push_back(inner.find_value(port.name));
    inlined_ = inner.inlined_;
    if (!problems.empty()) out.problem = (problems[0].op_type.empty() ? "" : problems[0].op_type + ": ") + problems[0].message;
    for (const ValueId output : out.outputs) {
      if (!out.problem.empty()) break;
      if (!output.valid())
        out.problem = "an output of a body is made by nothing";
      else if (is_list(out.draft.value(output)))
        out.problem = "it gives a sequence or an optional without a value";
    }
    return out.problem.empty();
  }

 private:
  // Far more than the unrolled bodies of real models, few enough to stay a matter of seconds.
  static constexpr std::size_t kMaxInlined = 1u << 16;

  /// The value of a name; a body apart takes what it does not know from outside: constants as they are, others as inputs of its own.
  ValueId find_value(std::string_view name) {
    const auto found = values_.find(name);
    if (found != values_.end()) return found->second;
    const ValueId outside = outer_ == nullptr ? ValueId() : outer_->find_value(name);
    if (!outside.valid()) return {};
    Value taken = outer_->draft_.value(outside);
    if (is_list(taken)) {
      report(ErrorCode::kUnsupported, std::string(name), "", "a body that is run as often as values say reads a sequence from outside");
      return {};
    }
    taken.layout = kIdentityPerm;
    if (is_float(taken.dtype) && !taken.constant) taken.dtype = DType::kF32;
    const bool constant = taken.constant.has_value();
    const ValueId id = draft_.add_value(std::move(taken));
    values_[name] = id;
    named_.insert(id);
    if (!constant) {
      draft_.inputs.push_back({std::string(name), id});
      apart_->captured.push_back(outside);
    }
    return id;
  }

  void set_value(std::string_view name, ValueId value) {
    ValueId& place = values_[name];
    if (depth_ > 0) changes_.emplace_back(name, place);
    place = value;
  }

  void add_initializers(const OnnxGraph& graph) {
    for (const OnnxInitializer& initializer : graph.initializers) {
      if (!initializer.problem.empty()) {
        unusable_.emplace(initializer.name, &initializer.problem);
        continue;
      }
      Value value;
      value.name = std::string(initializer.name);
      value.dtype = initializer.tensor.dtype;
      value.shape = initializer.tensor.shape;
      value.constant = initializer.tensor;
      set_value(initializer.name, draft_.add_value(std::move(value)));
    }
  }

  void add_inputs() {
    for (const OnnxPort& port : onnx_.inputs) {
      if (values_.contains(port.name) || unusable_.contains(port.name)) continue;  // older files list initialisers as inputs
      try {
        add_input(port);
      } catch (const Refusal& refusal) {
        report(refusal.code(), "", "", "input `" + std::string(port.name) + "`: " + refusal.what());
      }
    }
  }

  void add_input(const OnnxPort& port) {
    if (const auto bound = bound_.find(std::string(port.name)); bound != bound_.end()) return bind_input(port, bound->second);
    if (port.form == PortForm::kSequence || port.form == PortForm::kOptionalSequence) return add_sequence_input(port);
    if (port.form == PortForm::kOptional && is_left_out(port)) return set_value(port.name, draft_.add_value(absent_value()));
    if (port.form == PortForm::kOther) refuse_unsupported("it is neither a tensor nor a sequence of tensors");
    if (port.elem_type == 0 && !port.has_shape) refuse_unsupported("only tensors with a declared type and shape can be inputs");
    const auto dtype = dtype_of(port.elem_type);
    if (!dtype) refuse_unsupported("its values are of type " + type_text(port.elem_type) + ", which is not supported");
    std::vector<std::int64_t> extents;
    std::string unbound;
    if (!port.has_shape && !has_dim(port, 0)) unbound = "--dim " + place_of(port, 0) + "=... and so on, as its shape is not declared";
    for (std::size_t axis = 0; port.has_shape ? axis < port.dims.size() : has_dim(port, axis); ++axis)
      extents.push_back(extent_of(port, axis, unbound));
    if (!unbound.empty()) throw Refusal(ErrorCode::kInvalidArgument, "free dimensions must be bound: " + unbound);
    const auto shape = Shape::make(extents);
    if (!shape || shape->element_count() > (std::int64_t{1} << 56)) refuse_malformed("its shape is negative or overflows");
    Value value;
    value.name = std::string(port.name);
    value.dtype = is_float(*dtype) ? DType::kF32 : *dtype;
    value.shape = *shape;
    if (shape->element_count() == 0) {
      const std::int64_t zero = 0;
      value.constant = broadcast(make_constant(Shape{}, std::span(&zero, 1), value.dtype), *shape);
    }
    const ValueId id = draft_.add_value(std::move(value));
    values_[port.name] = id;
    named_.insert(id);
    draft_.inputs.push_back({std::string(port.name), id, dtype});
  }

  /// An optional tensor is there unless `--dim NAME=0` says that it is not.
  bool is_left_out(const OnnxPort& port) {
    const auto stated = dims_.find(std::string(port.name));
    if (stated == dims_.end()) return false;
    used_dims_.insert(stated->first);
    return stated->second == 0;
  }

  /// Makes as many inputs as `--dim NAME=COUNT` says, NAME.0 and so on, each with the shape of the items.
  void add_sequence_input(const OnnxPort& port) {
    constexpr std::int64_t kMostItems = 1024;
    const std::string name(port.name);
    const auto stated = dims_.find(name);
    if (stated == dims_.end() || options_.open_dims.contains(name))
      throw Refusal(ErrorCode::kInvalidArgument, "it is a sequence; how many tensors it has must be bound: --dim " + name + "=COUNT");
    if (stated->second < 0 || stated->second > kMostItems)
      throw Refusal(ErrorCode::kInvalidArgument, "--dim " + name + ": a sequence has 0 to " + std::to_string(kMostItems) + " tensors");
    used_dims_.insert(name);
    std::vector<ValueId> items;
    for (std::int64_t i = 0; i < stated->second; ++i) {
      OnnxPort item = port;
      item.form = PortForm::kTensor;
      item.name = item_names_.emplace_back(name + "." + std::to_string(i));
      add_input(item);
      items.push_back(values_.at(item.name));
    }
    set_value(port.name, draft_.add_value(sequence_of(std::move(items))));
  }

  /// An input that the caller gave a value is a constant like any initialiser.
  void bind_input(const OnnxPort& port, const InputValue& given) {
    if (dtype_of(port.elem_type) != given.dtype) throw Refusal(ErrorCode::kInvalidArgument, "its bound value has another type");
    if (given.data.size() != static_cast<std::size_t>(given.shape.element_count()) * size_of(given.dtype))
      throw Refusal(ErrorCode::kInvalidArgument, "its bound value has not the size of its shape");
    auto bytes = std::make_shared<std::vector<std::byte>>(given.data);
    Value value;
    value.name = std::string(port.name);
    value.dtype = given.dtype;
    value.shape = given.shape;
    value.constant = make_view(given.dtype, given.shape, bytes->data(), bytes);
    values_[port.name] = draft_.add_value(std::move(value));
  }

  static std::string place_of(const OnnxPort& port, std::size_t axis) { return std::string(port.name) + "." + std::to_string(axis); }
  bool has_dim(const OnnxPort& port, std::size_t axis) const { return dims_.contains(place_of(port, axis)); }

  /// A free dimension is bound by its name, or by INPUT.AXIS where it has none; so is one that the file states, to replace it.
  std::int64_t extent_of(const OnnxPort& port, std::size_t axis, std::string& unbound) {
    const OnnxDim dim = axis < port.dims.size() ? port.dims[axis] : OnnxDim{};
    const std::string by_place = place_of(port, axis);
    if (dim.param.empty() && dim.value > 0 && !dims_.contains(by_place)) return dim.value;
    const std::string key = dim.param.empty() ? by_place : std::string(dim.param);
    for (const std::string& name : {key, by_place}) {
      const auto bound = dims_.find(name);
      if (bound == dims_.end()) continue;
      used_dims_.insert(name);
      if (bound->second < 0) throw Refusal(ErrorCode::kInvalidArgument, "--dim " + name + " must not be negative");
      return bound->second;
    }
    if (dim.param.empty() && dim.stated && dim.value == 0) return 0;
    unbound += (unbound.empty() ? "--dim " : " --dim ") + key + "=...";
    return 1;
  }

  void check_dims_were_used() {
    for (const auto& [name, value] : dims_)
      if (!used_dims_.contains(name) && !is_term(name))
        report(ErrorCode::kInvalidArgument, "", "",
               "--dim " + name + "=" + std::to_string(value) + ": no input has such a dimension; there are " + names_of_dims(true));
  }

  /// The names that extent_of() looks for: of free dimensions, or of each axis where none is free.
  std::string names_of_dims(bool free) const {
    std::string names;
    for (const OnnxPort& port : onnx_.inputs)
      for (std::size_t axis = 0; axis < port.dims.size() && !is_initialiser(onnx_, port.name); ++axis)
        if (const OnnxDim& dim = port.dims[axis]; !free || !dim.stated || !dim.param.empty())
          names += (names.empty() ? "" : ", ") + (dim.param.empty() ? place_of(port, axis) : std::string(dim.param));
    if (!names.empty()) return names;
    return free ? names_of_dims(false) : "none";
  }

  /// Does another dimension follow from this one?
  bool is_term(const std::string& name) const {
    return std::any_of(options_.dim_sums.begin(), options_.dim_sums.end(),
                       [&](const auto& sum) { return std::find(sum.second.begin(), sum.second.end(), name) != sum.second.end(); });
  }

  void check_values_were_used() {
    for (const auto& [name, value] : bound_)
      if (std::none_of(onnx_.inputs.begin(), onnx_.inputs.end(), [&wanted = name](const OnnxPort& port) { return port.name == wanted; }))
        report(ErrorCode::kInvalidArgument, "", "", "--value " + name + ": the model has no input of that name");
  }

  void check_bounds_were_used() {
    if (!problems_.empty()) return;
    for (const auto& [name, bound] : draft_.bounds)
      if (!draft_.used_bounds.contains(name))
        report(ErrorCode::kInvalidArgument, "", "", "--bound " + name + ": no value of that name has extents that come at run time");
  }

  static std::string name_of_node(const OnnxNode& node) {
    if (!node.name.empty()) return std::string(node.name);
    for (const std::string_view output : node.outputs)
      if (!output.empty()) return std::string(output);
    return std::string(node.op_type);
  }

  void lower_node(const OnnxNode& node) {
    const std::string op = node.domain.empty() ? std::string(node.op_type) : std::string(node.domain) + "::" + std::string(node.op_type);
    const OperatorEntry* const entry = find(op);
    const kernels::PlainOperator* const plain = kernels::find_plain(op);
    const bool control = node.domain.empty() && (node.op_type == "If" || node.op_type == "Loop" || node.op_type == "Scan");
    const bool sequence = node.domain.empty() && is_sequence_operator(node.op_type);
    const bool known = control || sequence || entry != nullptr || plain != nullptr || (node.domain.empty() && folds_only(node.op_type));
    if (!known) {
      report(ErrorCode::kUnsupported, name_of_node(node), op, unsupported_message(op));
      return;
    }
    std::vector<ValueId> inputs;
    for (const std::string_view input : node.inputs) {
      if (input.empty()) {
        inputs.emplace_back();
        continue;
      }
      if (const auto bad = unusable_.find(input); bad != unusable_.end()) {
        report(ErrorCode::kUnsupported, name_of_node(node), op, "initialiser `" + std::string(input) + "`: " + *bad->second);
        return;
      }
      inputs.push_back(find_value(input));
      if (!inputs.back().valid()) return;  // its maker has a problem, which is reported there
    }
    NodeContext context(draft_, node, onnx_.opset, std::move(inputs), name_of_node(node));
    try {
      check_narrow_inputs(context, op);
      check_no_sequences(context, op);
      check_cast_type(context, op);
      if (control)
        lower_control(context, *this);
      else if (sequence)
        lower_sequence(context, *this);
      else if (!fold(context))
        lower_fast_or_plain(context, entry, plain);
      bind_outputs(node, context);
    } catch (const Refusal& refusal) {
      report(refusal.code(), name_of_node(node), op, refusal.what());
    }
  }

  static bool has_bounded_input(const NodeContext& c) {
    for (std::size_t i = 0; i < c.input_count(); ++i)
      if (c.has_input(i) && c.bounded(c.input(i))) return true;
    return false;
  }

  /// The form with the fast kernels; where it does not take the node, the plain one.
  void lower_fast_or_plain(NodeContext& context, const OperatorEntry* entry, const kernels::PlainOperator* plain) {
    const auto otherwise = [&] {
      if (entry != nullptr && entry->otherwise != nullptr) return entry->otherwise(context);
      lower_plain(context, *plain);
    };
    const bool bounded = has_bounded_input(context), to_plain = bounded || draft_.fails_at_run;
    if (plain != nullptr && (entry == nullptr || (to_plain && !entry->any_extents))) return lower_plain(context, *plain);
    if (to_plain && entry != nullptr && !entry->any_extents && entry->otherwise != nullptr) return entry->otherwise(context);
    if (bounded && (entry == nullptr || !entry->any_extents))
      refuse_unsupported("the extents of an input are known at run only, and its kernels take fixed ones");
    if (entry == nullptr) {
      for (std::size_t i = 0; i < context.input_count(); ++i)
        if (context.has_input(i) && context.input_constant(i) == nullptr) context.note_value_inputs(context.input(i));
      const std::string_view advice = advice_for(context.node().op_type);
      refuse_unsupported("its inputs are computed at run time, and it runs at convert only" +
                         (advice.empty() ? "" : ": " + std::string(advice)));
    }
    if (plain == nullptr && entry->otherwise == nullptr) return entry->lower(context);
    const std::size_t values = draft_.values.size(), nodes = draft_.nodes.size();
    const std::set<std::string> value_inputs = draft_.value_inputs;
    try {
      return entry->lower(context);
    } catch (const Refusal& refusal) {
      if (refusal.code() != ErrorCode::kUnsupported) throw;
      draft_.values.resize(values);
      draft_.nodes.resize(nodes);
      draft_.value_inputs = value_inputs;
      context.forget_outputs();
    }
    otherwise();
  }

  void bind_outputs(const OnnxNode& node, const NodeContext& context) {
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i].empty()) continue;
      const ValueId value = context.outputs()[i];
      if (!value.valid()) continue;
      set_value(node.outputs[i], value);
      // The first name a computed value gets in the file is its name; later ones (Identity, Dropout) are aliases.
      if (named_.insert(value).second && !draft_.value(value).constant) draft_.value(value).name = std::string(node.outputs[i]);
    }
  }

  void add_outputs() {
    if (onnx_.outputs.empty()) report(ErrorCode::kInvalidModel, "", "", "the graph has no output");
    std::set<ValueId> taken;
    for (const DraftPort& input : draft_.inputs) taken.insert(input.value);
    for (const OnnxPort& port : onnx_.outputs) {
      const auto found = values_.find(port.name);
      if (found == values_.end()) {
        if (problems_.empty())
          report(ErrorCode::kUnsupported, "", "", "output `" + std::string(port.name) + "` is an optional result that we do not make");
        continue;
      }
      if (!is_list(draft_.value(found->second))) {
        add_output(port, found->second, taken);
        continue;
      }
      const auto items = draft_.value(found->second).items;
      if (items == nullptr || items->empty())
        report(ErrorCode::kUnsupported, "", "",
               "output `" + std::string(port.name) + "` is a sequence without tensors, or an optional without a value");
      for (std::size_t i = 0; items != nullptr && i < items->size(); ++i) {
        OnnxPort item = port;
        item.name = item_names_.emplace_back(std::string(port.name) + "." + std::to_string(i));
        add_output(item, (*items)[i], taken);
      }
    }
  }

  void add_output(const OnnxPort& port, ValueId value, std::set<ValueId>& taken) {
    if (is_list(draft_.value(value)))
      return report(ErrorCode::kUnsupported, "", "", "output `" + std::string(port.name) + "` is a sequence in a sequence");
    if (draft_.value(value).shape.element_count() == 0) {
      // No node makes or reads it; only its shape and type are of interest.
      Value empty = draft_.value(value);
      empty.name = std::string(port.name);
      draft_.outputs.push_back({std::string(port.name), draft_.add_value(std::move(empty)), dtype_of(port.elem_type)});
      return;
    }
    // An output that is an input, a constant or another output as well needs bytes of its own.
    if (draft_.value(value).constant || !taken.insert(value).second) value = add_copy(value, port.name);
    draft_.outputs.push_back({std::string(port.name), value, dtype_of(port.elem_type)});
  }

  ValueId add_copy(ValueId value, std::string_view name) {
    Value copy;
    copy.name = std::string(name);
    copy.dtype = draft_.value(value).dtype;
    copy.shape = draft_.value(value).shape;
    if (is_float(copy.dtype)) copy.dtype = DType::kF32;
    copy.bounded = draft_.value(value).bounded;
    DraftNode node;
    node.name = copy.name + ":copy";
    node.op = model::OpKind::kReshape;
    if (copy.bounded != 0) {
      node.op = model::OpKind::kPlain;
      node.attributes = model::PlainAttributes{kernels::find_plain("Identity")->number, 0, 1, {}};
    }
    node.inputs = {value};
    node.output = draft_.add_value(std::move(copy));
    draft_.nodes.push_back(std::move(node));
    return draft_.nodes.back().output;
  }

  void report(ErrorCode code, std::string node, std::string op, std::string message) {
    problems_.push_back({code, std::move(node), std::move(op), onnx_.opset, std::move(message)});
  }

  static const OperatorEntry* find(std::string_view op) noexcept {
    for (const auto table : {operator_table(), contrib_table()})
      for (const OperatorEntry& entry : table)
        if (entry.op_type == op) return &entry;
    return nullptr;
  }

  const OnnxGraph& onnx_;
  const ConvertOptions& options_;
  const std::map<std::string, std::int64_t>& dims_;
  const std::map<std::string, InputValue>& bound_;
  Draft& draft_;
  std::vector<Problem>& problems_;
  std::unordered_map<std::string_view, ValueId> values_;
  std::vector<std::pair<std::string_view, ValueId>> changes_;  // what names meant before a body gave them a meaning
  Walk* outer_ = nullptr;                                      // of a body apart: where other names are known
  ApartBody* apart_ = nullptr;                                 // that body
  int depth_ = 0;                                              // of bodies
  std::size_t inlined_ = 0;
  std::unordered_map<std::string_view, const std::string*> unusable_;
  std::set<ValueId> named_;
  std::set<std::string> used_dims_;
  std::deque<std::string> item_names_;  // of the tensors of sequences: what the views above refer to
};

}  // namespace

void lower(const OnnxGraph& onnx, const ConvertOptions& options, Draft& draft, std::vector<Problem>& problems) {
  Walk(onnx, options, draft, problems).run();
}

}  // namespace sluice::importer
