#include <string_view>

#include "src/cli/report/report.h"

namespace sluice::cli::report_detail {

extern const std::string_view kPage;  // page.html, made into a source file by CMake

namespace {

/// Escapes text for an HTML page.
std::string as_html(const std::string& text) {
  std::string html;
  for (const char c : text) {
    switch (c) {
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '&':
        html += "&amp;";
        break;
      default:
        html += c;
    }
  }
  return html;
}

/// JSON inside a script element: no text in it can end the element.
std::string as_script(const Json& data) {
  std::string script;
  for (const char c : data.dump(-1, ' ', true, Json::error_handler_t::replace)) {
    if (c == '<')
      script += "\\u003c";
    else
      script += c;
  }
  return script;
}

std::string with(std::string page, std::string_view mark, const std::string& text) {
  page.replace(page.find(mark), mark.size(), text);
  return page;
}

}  // namespace

std::string page_of(const std::string& title, const Json& data) {
  // The title comes first in the page, and is put in last: a mark inside either text stays what it is.
  return with(with(std::string(kPage), "{{data}}", as_script(data)), "{{title}}", as_html(title));
}

}  // namespace sluice::cli::report_detail
