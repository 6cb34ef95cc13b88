#include "src/executor/read_engine.h"

#include <time.h>

#include <algorithm>
#include <cerrno>

#include "src/executor/clock.h"

namespace sluice::executor {
namespace {

void system_sleep(std::int64_t ns) noexcept {
  const timespec rest{ns / 1'000'000'000, static_cast<long>(ns % 1'000'000'000)};
  nanosleep(&rest, nullptr);
}

}  // namespace

ReadClock ReadClock::system() noexcept { return {&wall_now_ns, &system_sleep}; }

Bytes region_bytes(const model::FileRange& range, Bytes raw, bool in_place) noexcept {
  return in_place ? range.size : Bytes(align_up(raw.count(), kPlanBlock) + 2 * kPlanBlock);
}

ReadRequest lay_out(const model::Graph& graph, const model::FileRange& range, std::uint32_t first_stretch, std::uint32_t stretch_count,
                    std::byte* region) noexcept {
  ReadRequest request{range, region, region, first_stretch, stretch_count, true};
  Bytes raw;
  for (std::uint32_t s = first_stretch; s < first_stretch + stretch_count; ++s) {
    raw += graph.stretches[s].raw_size;
    request.in_place = request.in_place && graph.stretches[s].raw_size.count() == graph.stretches[s].stored_size.count();
  }
  if (request.in_place) {
    if (stretch_count > 0) request.raw = region + (graph.stretches[first_stretch].offset - range.offset).count();
  } else {
    request.stored = region + region_bytes(range, raw, false).count() - align_up(range.size.count(), kPlanBlock);
  }
  return request;
}

void ReadEngine::push(const ReadRequest& request) noexcept {
  requests_[pushed_ % model::kReadSlots] = request;
  ++pushed_;
  fed_to_ = request.range.offset;
  feeding_ = true;
  fill();
}

void ReadEngine::fill() noexcept {
  while (feeding_ && status_ && may_start()) start_piece();
}

void ReadEngine::start_piece() noexcept {
  const auto place = static_cast<std::uint32_t>((pushed_ - 1) % model::kReadSlots);
  const ReadRequest& request = requests_[place];
  const std::uint32_t slot = end_ % model::kReadSlots;
  Piece& piece = pieces_[slot];
  piece = {{fed_to_, std::min(options_.size, request.range.end() - fed_to_)}, place, 0, false};
  if (request.range.size == Bytes()) {  // its turn is all that there is to it
    piece.arrived = true;
    feeding_ = false;
    ++end_;
    return;
  }
  if (options_.bytes_per_second_limit > 0) {
    const double seconds = static_cast<double>(piece.range.size.count()) / options_.bytes_per_second_limit;
    device_free_ns_ = std::max(device_free_ns_, clock_.now_ns()) + static_cast<std::int64_t>(seconds * 1e9);
    piece.due_ns = device_free_ns_;
  }
  ++end_;
  ++in_flight_;
  fed_to_ += piece.range.size;
  feeding_ = fed_to_ < request.range.end();
  reads_->start(static_cast<int>(slot), piece.range, request.stored + (piece.range.offset - request.range.offset).count());
}

bool ReadEngine::take_ended(std::int64_t patience_ns) noexcept {
  const model::ReadQueue::Ended ended = reads_->wait(patience_ns);
  if (ended.slot < 0) return false;
  --in_flight_;
  pieces_[static_cast<std::size_t>(ended.slot)].arrived = true;
  static_cast<void>(give_up(ended.status));
  return true;
}

/// Decodes what the front piece completes, and publishes its request when that is whole.
Status ReadEngine::decode_front() noexcept {
  const Piece& piece = pieces_[front_ % model::kReadSlots];
  const ReadRequest& request = requests_[piece.request];
  if (piece.range.offset == request.range.offset) {
    next_stretch_ = request.first_stretch;
    next_raw_ = request.raw;
  }
  SLUICE_RETURN_IF_ERROR(timed_decode(request, piece.range.end()));
  bytes_read_ += piece.range.size;
  ++front_;
  if (piece.range.end() < request.range.end()) return {};
  if (next_stretch_ != request.first_stretch + request.stretch_count)
    return fail(ErrorCode::kInvalidPlan, graph_.name, "a load ends before its weights do");
  ++published_;
  return {};
}

Status ReadEngine::timed_decode(const ReadRequest& request, Bytes arrived) noexcept {
  if (!times_decoding_) return decode_until(request, arrived);
  const std::int64_t start = clock_.now_ns();
  Status status = decode_until(request, arrived);
  decode_ns_ += clock_.now_ns() - start;
  return status;
}

/// Decodes the stretches of `request` that lie whole below file offset `arrived`, from the last one decoded on.
Status ReadEngine::decode_until(const ReadRequest& request, Bytes arrived) noexcept {
  for (; next_stretch_ < request.first_stretch + request.stretch_count; ++next_stretch_) {
    const model::Stretch& stretch = graph_.stretches[next_stretch_];
    const Bytes end = stretch.offset + stretch.stored_size;
    if (end > arrived) return {};
    std::byte* const stored = request.stored + (stretch.offset - request.range.offset).count();
    std::byte* const raw = request.in_place ? stored : next_raw_;
    next_raw_ = raw + stretch.raw_size.count();
    if (next_raw_ > stored + stretch.stored_size.count())
      return fail(ErrorCode::kInvalidModel, graph_.name, "weights would expand over stored bytes that are still to be read");
    Decoder* const decoder = decoders_[index_of(stretch.form)].get();
    if (decoder == nullptr)
      return fail(ErrorCode::kUnsupported, graph_.name, "weights are stored in a form that this build does not decode");
    SLUICE_RETURN_IF_ERROR(
        decoder->decode({graph_, next_stretch_, {stored, stretch.stored_size.count()}, {raw, stretch.raw_size.count()}}));
  }
  return {};
}

Status ReadEngine::give_up(const Status& status) noexcept {
  if (status_) status_ = status;
  return status_;
}

bool ReadEngine::settle(std::int64_t patience_ns) noexcept {
  for (std::int64_t waited_ns = 0; in_flight_ > 0;) {
    if (take_ended(std::min(patience_ns - waited_ns, kGlanceNs))) continue;
    waited_ns += kGlanceNs;
    if (waited_ns >= patience_ns) return false;
  }
  return true;
}

void ReadEngine::forget() noexcept {
  front_ = end_ = 0;
  pushed_ = published_;
  feeding_ = false;
  status_ = Status();
}

std::int64_t ReadEngine::timeout_ns() const noexcept {
  constexpr std::int64_t kNsInMs = 1'000'000;
  return options_.timeout_ms > 0 && options_.timeout_ms < kForever / kNsInMs ? options_.timeout_ms * kNsInMs : kForever;
}

tl::unexpected<Error> ReadEngine::cancelled() const noexcept {
  return fail(ErrorCode::kCancelled, graph_.name, "the run was called off while its weights were read");
}

tl::unexpected<Error> ReadEngine::timed_out(const char* reason) const noexcept {
  return fail(make_io_error(graph_.name, reason, ETIMEDOUT));
}

}  // namespace sluice::executor
