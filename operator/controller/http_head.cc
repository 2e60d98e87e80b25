#include "operator/controller/http_head.h"

#include <algorithm>
#include <charconv>
#include <format>
#include <optional>

namespace bsp::controller {
namespace {

const char* reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 411:
      return "Length Required";
    case 413:
      return "Content Too Large";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    default:
      return "Service Unavailable";
  }
}

bool same_name(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return (x >= 'A' && x <= 'Z' ? x - 'A' + 'a' : x) == y; });
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  return first == std::string_view::npos ? "" : text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace

bool is_whole(std::string_view request) { return request.contains("\r\n\r\n"); }

std::expected<HttpHead, Page> parse_head(std::string_view request, std::size_t most) {
  const auto wrong = [](int status, std::string text) { return std::unexpected(Page{status, std::move(text)}); };
  HttpHead head;
  head.size = request.find("\r\n\r\n") + 4;
  std::string_view left = request.substr(0, head.size - 2);
  const auto next_line = [&] {
    const std::string_view line = left.substr(0, left.find("\r\n"));
    left.remove_prefix(line.size() + 2);
    return line;
  };
  const std::string_view line = next_line();
  const std::size_t method_end = line.find(' '), path_end = line.find(' ', method_end + 1);
  if (method_end == std::string_view::npos || path_end == std::string_view::npos ||
      !line.substr(path_end + 1).starts_with("HTTP/1."))
    return wrong(400, "not an HTTP/1 request\n");
  head.method = line.substr(0, method_end);
  const std::string_view path = line.substr(method_end + 1, path_end - method_end - 1);
  head.path = path.substr(0, path.find('?'));
  std::optional<std::size_t> length;
  while (!left.empty()) {
    const std::string_view header = next_line();
    const std::string_view name = header.substr(0, header.find(':'));
    const std::string_view value = name.size() < header.size() ? trimmed(header.substr(name.size() + 1)) : "";
    if (same_name(name, "transfer-encoding")) return wrong(411, "a body needs a Content-Length\n");
    if (!same_name(name, "content-length")) continue;
    std::size_t bytes = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), bytes);
    if (error != std::errc{} || end != value.data() + value.size() || length)
      return wrong(400, "Content-Length must be one number\n");
    length = bytes;
  }
  head.body = length.value_or(0);
  if (head.body > most) return wrong(413, std::format("body too large; the limit is {} bytes\n", most));
  return head;
}

std::string response(const Page& page, bool with_body) {
  std::string text =
      std::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", page.status,
                  reason_of(page.status), page.type, page.text.size());
  if (with_body) text += page.text;
  return text;
}

}  // namespace bsp::controller
