#include "sluice/plan/plan_file.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>

#include "schema/plan_generated.h"
#include "sluice/core/file.h"
#include "sluice/core/hash.h"
#include "src/core/out_of_memory.h"
#include "src/model/built_features.h"

namespace sluice::plan {
namespace {

static_assert(std::endian::native == std::endian::little, "fields are copied as they lie in memory");

constexpr std::array<char, 8> kMagic = {'S', 'L', 'U', 'P', 'L', 'A', 'N', '\n'};
constexpr std::uint32_t kEndiannessMark = 0x01020304;
constexpr std::uint32_t kFormatVersion =
    4;  // 1 had no transforms and no loads for the prologue alone, 2 no parts of sums, 3 no passing tensors
constexpr Bytes kMaxFileBytes{256u << 20};  // two million steps
constexpr int kBufferKindCount = 8;
constexpr int kPassageCount = 5;
// A plan with sub-plans, as deep as subgraphs lie in each other.
constexpr flatbuffers::uoffset_t kMaxDepth = model::kMaxNested + 4;
constexpr flatbuffers::uoffset_t kMaxPlans = 1 << 12;

struct Prefix {
  std::array<char, 8> magic;
  std::uint32_t endianness;
  std::uint32_t version;
  std::uint64_t body_size;
  std::uint64_t body_hash;
};
static_assert(sizeof(Prefix) == 32);

/// Makes a FlatBuffers vector of structs, one `make(item)` each.
template <class Struct, class Items, class Make>
auto structs(flatbuffers::FlatBufferBuilder& builder, const Items& items, Make make) {
  return builder.CreateVectorOfStructs<Struct>(items.size(), [&](std::size_t i, Struct* out) { *out = make(items[i]); });
}

schema::PlanBuffer encode(const Buffer& b) {
  return {b.size.count(), b.alignment, b.offset.count(), b.lifetime.begin, b.lifetime.end, static_cast<std::uint8_t>(b.kind),
          b.whole_period};
}

schema::PlanTensor encode(const TensorPlacement& t) { return {t.offset.count(), t.row_pitch, t.pixel_pitch, t.ring_rows, t.buffer.raw()}; }

schema::PlanStep encode(const Step& s) {
  return {s.rows.begin,
          s.rows.end,
          s.channels.begin,
          s.channels.end,
          s.node.raw(),
          s.workspace.raw(),
          s.first_operand,
          s.operand_count,
          s.loads_needed,
          static_cast<std::uint16_t>(s.kernel),
          s.prepare,
          s.derived.buffer.raw(),
          s.derived.panels.begin,
          s.derived.panels.end,
          s.sums.raw(),
          s.alone ? 1u : 0u,
          s.reduction.begin,
          s.reduction.end};
}

schema::PlanOperand encode(const WeightOperand& o) { return {o.panels.begin, o.panels.end, o.weight.raw(), o.load.raw()}; }

schema::PlanLoad encode(const Load& l) {
  return {l.file.offset.count(),
          l.file.size.count(),
          l.gate,
          l.uses.begin,
          l.uses.end,
          l.target.raw(),
          l.first_stretch,
          l.stretch_count,
          l.resident,
          l.prologue_only,
          static_cast<std::uint8_t>(l.form)};
}

schema::PlanPassing encode(const PassingTensor& t) { return {t.file_offset.count(), t.tensor.raw(), t.spilled}; }

schema::PlanPassingBlock encode(const PassingBlock& b) {
  return {b.rows.begin,     b.rows.end, b.channels.begin, b.channels.end,
          b.offset.count(), b.step,     b.tensor.raw(),   static_cast<std::uint8_t>(b.passage)};
}

flatbuffers::Offset<schema::Plan> encode(flatbuffers::FlatBufferBuilder& builder, const Plan& plan) {
  const auto as_struct = [](const auto& item) { return encode(item); };
  std::vector<flatbuffers::Offset<schema::Plan>> nested;
  for (const Plan& subplan : plan.subplans) nested.push_back(encode(builder, subplan));
  const auto policy = builder.CreateString(plan.policy);
  const auto buffers = structs<schema::PlanBuffer>(builder, plan.buffers, as_struct);
  const auto tensors = structs<schema::PlanTensor>(builder, plan.tensors, as_struct);
  const auto steps = structs<schema::PlanStep>(builder, plan.steps, as_struct);
  const auto operands = structs<schema::PlanOperand>(builder, plan.operands, as_struct);
  const auto loads = structs<schema::PlanLoad>(builder, plan.loads, as_struct);
  const auto subplans = builder.CreateVector(nested);
  const auto passing = structs<schema::PlanPassing>(builder, plan.passing, as_struct);
  const auto blocks = structs<schema::PlanPassingBlock>(builder, plan.blocks, as_struct);
  const Prediction& p = plan.prediction;
  const schema::PlanPrediction prediction(p.cold_ms, p.period_ms, p.bound_ms, p.pipe_bound_ms, p.compute_ms, p.unbounded_ms);
  return schema::CreatePlan(builder, policy, plan.model_hash, plan.threads, plan.block, plan.repeat, plan.capacity.count(),
                            plan.arena_bytes.count(), plan.resident_bytes.count(), plan.streamed_bytes.count(),
                            plan.minimum_capacity.count(), buffers, tensors, steps, operands, loads, &prediction, subplans, passing,
                            blocks);
}

std::vector<std::byte> encode_body(const Plan& plan) {
  flatbuffers::FlatBufferBuilder builder;
  schema::FinishPlanBuffer(builder, encode(builder, plan));
  const auto* data = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  return {data, data + builder.GetSize()};
}

/// The builder's own limit of 2 GiB is an assertion, so a plan that comes near it is refused before.
std::uint64_t size_bound(const Plan& plan) {
  std::uint64_t bound = 1024 + plan.policy.size() + plan.buffers.size() * sizeof(schema::PlanBuffer) +
                        plan.tensors.size() * sizeof(schema::PlanTensor) + plan.steps.size() * sizeof(schema::PlanStep) +
                        plan.operands.size() * sizeof(schema::PlanOperand) + plan.loads.size() * sizeof(schema::PlanLoad) +
                        plan.passing.size() * sizeof(schema::PlanPassing) + plan.blocks.size() * sizeof(schema::PlanPassingBlock);
  for (const Plan& subplan : plan.subplans) bound += size_bound(subplan);
  return bound;
}

/// Turns a verified FlatBuffer into a Plan in which every id leads somewhere and no sum of two numbers overflows.
class PlanDecoder {
 public:
  PlanDecoder(std::size_t size, std::string_view path) : allowance_(size), path_(path) {}

  /// A plan and its sub-plans, which have those of the subgraphs that theirs run.
  Result<Plan> decode(const schema::Plan& from, int depth = 0) {
    if (depth > model::kMaxNested) return invalid("sub-plans lie too deep in each other");
    SLUICE_ASSIGN_OR_RETURN(Plan plan, decode_one(from));
    if (from.subplans() == nullptr || from.subplans()->size() == 0) return plan;
    if constexpr (!model::kRunsSubgraphs) return invalid("it has sub-plans, and this build was trimmed to models without subgraphs");
    for (const schema::Plan* nested : *from.subplans()) {
      if (sizeof(schema::PlanPrediction) > allowance_) return invalid("parts of the plan are used more than once");
      allowance_ -= sizeof(schema::PlanPrediction);  // each takes that much in the file
      SLUICE_ASSIGN_OR_RETURN(Plan subplan, decode(*nested, depth + 1));
      plan.subplans.push_back(std::move(subplan));
    }
    return plan;
  }

 private:
  Result<Plan> decode_one(const schema::Plan& from) {
    Plan plan;
    SLUICE_RETURN_IF_ERROR(scalars(from, plan));
    SLUICE_RETURN_IF_ERROR(list(from.buffers(), plan.buffers));
    buffer_count_ = plan.buffers.size();
    SLUICE_RETURN_IF_ERROR(list(from.tensors(), plan.tensors));
    SLUICE_RETURN_IF_ERROR(list(from.loads(), plan.loads));
    load_count_ = plan.loads.size();
    SLUICE_RETURN_IF_ERROR(list(from.operands(), plan.operands));
    operand_count_ = plan.operands.size();
    SLUICE_RETURN_IF_ERROR(list(from.steps(), plan.steps));
    SLUICE_RETURN_IF_ERROR(list(from.passing(), plan.passing));
    SLUICE_RETURN_IF_ERROR(list(from.blocks(), plan.blocks));
    return plan;
  }

  // Far above real plans, so that sums and products of a few of these stay inside 63 bits.
  static constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 60;
  static constexpr std::int64_t kMaxExtent = std::int64_t{1} << 40;

  tl::unexpected<Error> invalid(const char* reason) const { return fail(ErrorCode::kInvalidPlan, path_, reason); }

  Status scalars(const schema::Plan& from, Plan& to) {
    if (from.policy() != nullptr) to.policy = from.policy()->str();
    to.model_hash = from.model_hash();
    to.threads = from.threads();
    to.block = from.block();
    to.repeat = from.repeat();
    constexpr std::uint32_t kMaxThreads = 4096;
    constexpr std::uint32_t kMaxBlock = 1u << 20;
    if (to.threads == 0 || to.threads > kMaxThreads) return invalid("the number of threads is out of range");
    if (!std::has_single_bit(to.block) || to.block > kMaxBlock) return invalid("the direct-I/O block is not a power of two up to 1 MiB");
    for (const std::uint64_t size :
         {from.capacity(), from.arena_bytes(), from.resident_bytes(), from.streamed_bytes(), from.minimum_capacity()}) {
      if (size > kUnlimitedBytes.count()) return invalid("a total of bytes is out of range");
    }
    to.capacity = Bytes(from.capacity());
    to.arena_bytes = Bytes(from.arena_bytes());
    to.resident_bytes = Bytes(from.resident_bytes());
    to.streamed_bytes = Bytes(from.streamed_bytes());
    to.minimum_capacity = Bytes(from.minimum_capacity());
    return prediction(from.prediction(), to.prediction);
  }

  Status prediction(const schema::PlanPrediction* from, Prediction& to) {
    if (from == nullptr) return {};
    to = {from->cold_ms(), from->period_ms(), from->bound_ms(), from->pipe_bound_ms(), from->compute_ms(), from->unbounded_ms()};
    for (const double ms : {to.cold_ms, to.period_ms, to.bound_ms, to.pipe_bound_ms, to.compute_ms, to.unbounded_ms}) {
      if (!std::isfinite(ms)) return invalid("a prediction is not a finite number");
    }
    return {};
  }

  template <class Struct, class Item>
  Status list(const flatbuffers::Vector<const Struct*>* from, std::vector<Item>& to) {
    if (from == nullptr) return {};
    // The verifier looks at the alignment of a vector's length only, and an empty one has no more.
    if (from->size() > 0 && reinterpret_cast<std::uintptr_t>(from->Data()) % alignof(Struct) != 0) return invalid("a list is not aligned");
    // Sub-plans may share a list in the file: each is paid for, so that memory stays in proportion to the file.
    const std::size_t cost = from->size() * sizeof(Struct);
    if (cost > allowance_) return invalid("parts of the plan are used more than once");
    allowance_ -= cost;
    to.resize(from->size());
    for (flatbuffers::uoffset_t i = 0; i < from->size(); ++i) SLUICE_RETURN_IF_ERROR(item(*from->Get(i), to[i]));
    return {};
  }

  Status range(std::int64_t begin, std::int64_t end, std::int64_t least, Interval<std::int64_t>& to) {
    if (begin < least || end < begin || end > kMaxExtent) return invalid("a range ends before it begins or is out of range");
    to = {begin, end};
    return {};
  }

  Status bytes(std::uint64_t count, Bytes& to) {
    if (count > kMaxBytes) return invalid("a size or an offset is out of range");
    to = Bytes(count);
    return {};
  }

  template <class IdType>
  Status id(std::uint32_t raw, std::size_t count, bool optional, IdType& to) {
    to = IdType(raw);
    if (to.valid() ? raw < count : optional) return {};
    return invalid("a number names no buffer or load of this plan");
  }

  Status item(const schema::PlanBuffer& from, Buffer& to) {
    if (from.kind() >= kBufferKindCount) return invalid("a buffer is of a kind that this build does not know");
    if (!std::has_single_bit(from.alignment()) || from.alignment() > kMaxBytes) return invalid("an alignment is not a power of two");
    to.kind = static_cast<BufferKind>(from.kind());
    to.alignment = from.alignment();
    to.whole_period = from.whole_period();
    SLUICE_RETURN_IF_ERROR(bytes(from.size(), to.size));
    SLUICE_RETURN_IF_ERROR(bytes(from.offset(), to.offset));
    return range(from.begin(), from.end(), -kMaxExtent, to.lifetime);
  }

  Status item(const schema::PlanTensor& from, TensorPlacement& to) {
    SLUICE_RETURN_IF_ERROR(id(from.buffer(), buffer_count_, true, to.buffer));
    for (const std::int64_t pitch : {from.row_pitch(), from.pixel_pitch(), from.ring_rows()}) {
      if (pitch < 0 || pitch > kMaxExtent) return invalid("a pitch or a ring is out of range");
    }
    to.row_pitch = from.row_pitch();
    to.pixel_pitch = from.pixel_pitch();
    to.ring_rows = from.ring_rows();
    return bytes(from.offset(), to.offset);
  }

  Status item(const schema::PlanLoad& from, Load& to) {
    SLUICE_RETURN_IF_ERROR(id(from.target(), buffer_count_, false, to.target));
    if (from.gate() < -kMaxExtent || from.gate() > kMaxExtent) return invalid("a gate is out of range");
    to.first_stretch = from.first_stretch();
    to.stretch_count = from.stretch_count();
    to.resident = from.resident();
    to.prologue_only = from.prologue_only();
    if ((from.form() & ~model::kKnownStretchForms) != 0) return invalid("a load is of a form that this build does not know");
    to.form = static_cast<model::StretchForm>(from.form());
    to.gate = from.gate();
    SLUICE_RETURN_IF_ERROR(bytes(from.file_offset(), to.file.offset));
    SLUICE_RETURN_IF_ERROR(bytes(from.file_size(), to.file.size));
    return range(from.first_use(), from.end_of_use(), -kMaxExtent, to.uses);
  }

  Status item(const schema::PlanOperand& from, WeightOperand& to) {
    SLUICE_RETURN_IF_ERROR(id(from.load(), load_count_, true, to.load));
    to.weight = WeightId(from.weight());
    if (!to.weight.valid()) return invalid("an operand names no weight");
    return range(from.panel_begin(), from.panel_end(), 0, to.panels);
  }

  Status item(const schema::PlanPassing& from, PassingTensor& to) {
    to.tensor = TensorId(from.tensor());
    to.spilled = from.spilled();
    if (!to.tensor.valid()) return invalid("what passes is no tensor");
    return bytes(from.file_offset(), to.file_offset);
  }

  Status item(const schema::PlanPassingBlock& from, PassingBlock& to) {
    if (from.passage() >= kPassageCount) return invalid("a block passes in a way that this build does not know");
    to.step = from.step();
    to.tensor = TensorId(from.tensor());
    to.passage = static_cast<Passage>(from.passage());
    if (!to.tensor.valid()) return invalid("what passes is no tensor");
    SLUICE_RETURN_IF_ERROR(bytes(from.offset(), to.offset));
    SLUICE_RETURN_IF_ERROR(range(from.row_begin(), from.row_end(), 0, to.rows));
    return range(from.channel_begin(), from.channel_end(), 0, to.channels);
  }

  Status item(const schema::PlanStep& from, Step& to) {
    SLUICE_RETURN_IF_ERROR(id(from.workspace(), buffer_count_, true, to.workspace));
    to.node = NodeId(from.node());
    if (!to.node.valid()) return invalid("a step names no node");
    if (from.operand_count() > operand_count_ || from.first_operand() > operand_count_ - from.operand_count()) {
      return invalid("a step's operands do not exist");
    }
    if (from.loads_needed() > load_count_) return invalid("a step waits for more loads than there are");
    to.kernel = static_cast<KernelId>(from.kernel());
    to.first_operand = from.first_operand();
    to.operand_count = from.operand_count();
    to.loads_needed = from.loads_needed();
    to.prepare = from.prepare();
    SLUICE_RETURN_IF_ERROR(id(from.derived(), buffer_count_, true, to.derived.buffer));
    if (from.alone() > 1) return invalid("a step's flag is neither 0 nor 1");
    to.alone = from.alone() == 1;
    SLUICE_RETURN_IF_ERROR(id(from.sums(), buffer_count_, true, to.sums));
    to.reduction = {from.reduction_begin(), from.reduction_end()};
    if (to.reduction != kWholeReduction) SLUICE_RETURN_IF_ERROR(range(from.reduction_begin(), from.reduction_end(), 0, to.reduction));
    SLUICE_RETURN_IF_ERROR(range(from.derived_begin(), from.derived_end(), 0, to.derived.panels));
    SLUICE_RETURN_IF_ERROR(range(from.row_begin(), from.row_end(), 0, to.rows));
    return range(from.channel_begin(), from.channel_end(), 0, to.channels);
  }

  std::size_t allowance_;
  std::string_view path_;
  std::size_t buffer_count_ = 0;
  std::size_t load_count_ = 0;
  std::size_t operand_count_ = 0;
};

Status check_prefix(const Prefix& prefix, std::span<const std::byte> body, std::string_view path) {
  if (prefix.magic != kMagic) return fail(ErrorCode::kInvalidPlan, path, "not a Sluice plan: its first bytes are others");
  if (prefix.endianness == __builtin_bswap32(kEndiannessMark)) {
    return fail(ErrorCode::kUnsupportedVersion, path, "a big-endian plan; this build reads little-endian ones");
  }
  if (prefix.endianness != kEndiannessMark) return fail(ErrorCode::kInvalidPlan, path, "the endianness mark is neither of the two");
  if (prefix.version != kFormatVersion) {
    return fail(make_error(ErrorCode::kUnsupportedVersion, path, "a plan of another format version; make it again", kFormatVersion,
                           prefix.version));
  }
  if (prefix.body_size != body.size()) {
    return fail(make_error(ErrorCode::kInvalidPlan, path, "the plan is not as long as its prefix says", prefix.body_size, body.size()));
  }
  if (xxh3_64(body) != prefix.body_hash) return fail(ErrorCode::kInvalidPlan, path, "the plan is not the one that was written");
  return {};
}

/// A file that is no plan at all is not an argument error of the caller.
Result<std::vector<std::byte>> read_plan_bytes(const std::string& path) {
  auto bytes = read_file(path, kMaxFileBytes);
  if (!bytes && bytes.error().code == ErrorCode::kInvalidArgument) bytes.error().code = ErrorCode::kInvalidPlan;
  return bytes;
}

Status encode_and_save(const Plan& plan, const std::string& path) {
  if (size_bound(plan) > kMaxFileBytes.count()) {
    return fail(make_error(ErrorCode::kUnsupported, path, "the plan is too large for a file", kMaxFileBytes.count(), size_bound(plan)));
  }
  const std::vector<std::byte> body = encode_body(plan);
  const Prefix prefix{kMagic, kEndiannessMark, kFormatVersion, body.size(), xxh3_64(body)};
  SLUICE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::create(path));
  SLUICE_RETURN_IF_ERROR(file.write_at(Bytes(0), std::as_bytes(std::span(&prefix, 1))));
  SLUICE_RETURN_IF_ERROR(file.write_at(Bytes(sizeof prefix), body));
  return file.commit();
}

Result<Plan> read_and_decode(const std::string& path) {
  SLUICE_ASSIGN_OR_RETURN(const auto bytes, read_plan_bytes(path));
  if (bytes.size() < sizeof(Prefix)) {
    return fail(make_error(ErrorCode::kInvalidPlan, path, "the file is too short for a plan", sizeof(Prefix), bytes.size()));
  }
  Prefix prefix;
  std::memcpy(&prefix, bytes.data(), sizeof prefix);
  const auto body = std::span(bytes).subspan(sizeof prefix);
  SLUICE_RETURN_IF_ERROR(check_prefix(prefix, body, path));
  const auto* data = reinterpret_cast<const std::uint8_t*>(body.data());
  flatbuffers::Verifier verifier(data, body.size(), kMaxDepth, kMaxPlans);
  if (!schema::VerifyPlanBuffer(verifier)) return fail(ErrorCode::kInvalidPlan, path, "not a well-formed FlatBuffer of a plan");
  return PlanDecoder(body.size(), path).decode(*schema::GetPlan(data));
}

}  // namespace

Status save_plan(const Plan& plan, const std::string& path) {
  return or_out_of_memory(path, [&] { return encode_and_save(plan, path); });
}

Result<Plan> load_plan(const std::string& path) {
  return or_out_of_memory(path, [&] { return read_and_decode(path); });
}

}  // namespace sluice::plan
