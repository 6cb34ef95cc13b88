#include "src/cli/serve/job_log.h"

#include "src/cli/failure.h"
#include "src/cli/json.h"

namespace sluice::cli::serve_detail {
namespace {

constexpr std::size_t kFlushed = 16 * 1024;

}  // namespace

JobLog::JobLog(const std::string& path) : wanted_(!path.empty()) {
  if (wanted_) file_ = unwrap(AtomicFile::create(path));
}

void JobLog::add(const std::string& graph, const scheduler::JobResult& result) {
  if (!wanted_) return;
  Json job = {{"model", graph},
              {"app", result.app},
              {"outcome", std::string(name_of(result.outcome))},
              {"submitted_us", result.submitted / 1000},
              {"ended_us", result.ended / 1000}};
  if (result.predicted < scheduler::kNever) job["predicted_us"] = result.predicted / 1000;
  text_ += (written_ == Bytes() && text_.empty() ? "[\n " : ",\n ") + job.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text_.size() >= kFlushed) flush();
}

void JobLog::flush() {
  if (status_) status_ = file_.write_at(written_, std::as_bytes(std::span(text_)));
  written_ += Bytes(text_.size());
  text_.clear();
}

void JobLog::finish() {
  if (!wanted_) return;
  text_ += written_ == Bytes() && text_.empty() ? "[]\n" : "\n]\n";
  flush();
  unwrap(status_);
  unwrap(file_.commit());
}

}  // namespace sluice::cli::serve_detail
