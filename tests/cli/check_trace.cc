// check_trace FILE: is this what trace viewers read (Chrome's Trace Event Format, the form of an object)? Says the first thing that is not.
//
//  - `traceEvents` is a list of objects, each with a name, a phase, whole numbers `pid` and (but what is of a process) `tid`; all but
//    metadata have a time `ts`
//  - X, a span: a duration; the spans of a thread lie beside or within each other, as a stack would have them
//  - s and f, the ends of an arrow: of one name, category and `id` one of each, the second not before the first, each within a span of its
//    thread
//  - C, a counter: numbers and nothing else in its `args`, its times never falling; M, metadata: of the kinds that there are; i, a moment: a
//    scope
//  - each thread with spans has a name
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <vector>

namespace {

using nlohmann::json;
using Thread = std::pair<std::int64_t, std::int64_t>;
struct Span {
  double begin = 0, end = 0;
};

void require(bool holds, const std::string& what, const json& event) {
  if (!holds) throw std::runtime_error(what + ": " + event.dump());
}

double time_of(const json& event, const char* key) {
  require(event.contains(key) && event.at(key).is_number() && event.at(key).get<double>() >= 0, std::string("no time `") + key + "`",
          event);
  return event.at(key).get<double>();
}

class Checker {
 public:
  void check(const json& event) {
    require(event.is_object(), "no object", event);
    require(event.contains("name") && event.at("name").is_string(), "no name", event);
    require(event.contains("ph") && event.at("ph").is_string(), "no phase", event);
    const std::string phase = event.at("ph").get<std::string>();
    const bool of_process = phase == "C" || (phase == "M" && event.at("name").get<std::string>().starts_with("process_"));
    for (const char* key : {"pid", "tid"}) {
      const bool there = event.contains(key);
      require(there ? event.at(key).is_number_integer() : of_process && *key == 't', "no whole number pid, tid", event);
    }
    require(!event.contains("args") || event.at("args").is_object(), "args are no object", event);
    const Thread thread{event.at("pid").get<std::int64_t>(), event.value("tid", std::int64_t{0})};
    if (phase == "M") return check_metadata(event, thread);
    const double begin = time_of(event, "ts");
    if (phase == "X") {
      spans_[thread].push_back({begin, begin + time_of(event, "dur")});
    } else if (phase == "C") {
      require(event.contains("args") && !event.at("args").empty(), "a counter without numbers", event);
      for (const json& value : event.at("args")) require(value.is_number(), "a counter of something else than numbers", event);
      double& last = counted_[{thread.first, event.at("name").get<std::string>()}];
      require(begin >= last, "a counter goes back in time", event);
      last = begin;
    } else if (phase == "s" || phase == "f") {
      check_flow(event, thread, begin, phase == "s");
    } else {
      require(phase == "i" && event.contains("s") && (event.at("s") == "g" || event.at("s") == "p" || event.at("s") == "t"),
              "a phase that is none of X, C, M, s, f and i with a scope", event);
    }
  }

  void finish() {
    constexpr double kRounding = 1e-3;  // microseconds: what is written has three digits behind the point
    for (auto& [thread, spans] : spans_) {
      require(named_.contains(thread), "a thread with spans has no name", thread.second);
      std::sort(spans.begin(), spans.end(),
                [](const Span& a, const Span& b) { return a.begin != b.begin ? a.begin < b.begin : a.end > b.end; });
      std::vector<Span> open;
      for (const Span& span : spans) {
        while (!open.empty() && open.back().end <= span.begin + 2 * kRounding) open.pop_back();
        require(open.empty() || span.end <= open.back().end + 2 * kRounding, "spans of a thread overlap",
                {thread.second, span.begin, span.end});
        open.push_back(span);
      }
    }
    for (const auto& [key, arrow] : arrows_) finish_arrow(key, arrow);
  }

  std::size_t spans() const {
    std::size_t count = 0;
    for (const auto& [thread, spans] : spans_) count += spans.size();
    return count;
  }

 private:
  void check_metadata(const json& event, Thread thread) {
    const std::string kind = event.at("name").get<std::string>();
    const bool name = kind == "process_name" || kind == "thread_name" || kind == "process_labels";
    const bool index = kind == "process_sort_index" || kind == "thread_sort_index";
    const char* const key = index ? "sort_index" : kind == "process_labels" ? "labels" : "name";
    require(name || index, "metadata of an unknown kind", event);
    require(event.contains("args") && event.at("args").contains(key), "metadata without what it says", event);
    require(index ? event.at("args").at(key).is_number_integer() : event.at("args").at(key).is_string(), "metadata of another type", event);
    if (kind == "thread_name") named_.insert(thread);
  }

  struct End {
    Thread thread;
    double at = -1;  // negative: there is none
  };
  struct Arrow {
    End from, to;
  };

  void check_flow(const json& event, Thread thread, double at, bool begins) {
    require(event.contains("cat") && event.contains("id"), "an arrow without a category or an id", event);
    require(begins || event.value("bp", "") == "e", "an arrow ends at whatever comes next", event);
    Arrow& arrow = arrows_[event.at("cat").dump() + event.at("name").dump() + event.at("id").dump()];
    End& end = begins ? arrow.from : arrow.to;
    require(end.at < 0, "an arrow has this end twice", event);
    end = {thread, at};
  }

  void finish_arrow(const std::string& key, const Arrow& arrow) {
    require(arrow.from.at >= 0 && arrow.to.at >= arrow.from.at, "an arrow without a beginning, without an end, or backwards", key);
    for (const End& end : {arrow.from, arrow.to}) {
      const std::vector<Span>& spans = spans_[end.thread];
      const auto around = [&](const Span& span) { return span.begin <= end.at && end.at <= span.end; };
      require(std::any_of(spans.begin(), spans.end(), around), "an end of an arrow lies in no span", key);
    }
  }

  std::map<Thread, std::vector<Span>> spans_;
  std::map<std::pair<std::int64_t, std::string>, double> counted_;
  std::map<std::string, Arrow> arrows_;
  std::set<Thread> named_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: check_trace FILE\n"), 1;
  try {
    std::ifstream file(argv[1]);
    const json trace = json::parse(file);
    require(trace.is_object() && trace.contains("traceEvents") && trace.at("traceEvents").is_array(), "no list of events", {});
    if (const auto unit = trace.find("displayTimeUnit"); unit != trace.end())
      require(*unit == "ms" || *unit == "ns", "another unit of time", *unit);
    Checker checker;
    for (const json& event : trace.at("traceEvents")) checker.check(event);
    checker.finish();
    std::printf("%zu events, %zu spans\n", trace.at("traceEvents").size(), checker.spans());
  } catch (const std::exception& error) {
    return std::fprintf(stderr, "%s: %s\n", argv[1], error.what()), 1;
  }
  return 0;
}
