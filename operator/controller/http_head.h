// The head of an HTTP/1 request, as far as it is read here. Pure.
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>

#include "operator/controller/page.h"

namespace bsp::controller {

struct HttpHead {
  std::string method, path;  // without the query
  std::size_t size = 0;      // bytes up to the body
  std::size_t body = 0;      // bytes; 0: none is announced
};
bool is_whole(std::string_view request);
// Parses a whole head; else the page that says what is wrong. A body must have a Content-Length of at most `most`.
std::expected<HttpHead, Page> parse_head(std::string_view request, std::size_t most);

// The answer: the head, and the text unless `with_body` is false.
std::string response(const Page& page, bool with_body);

}  // namespace bsp::controller
