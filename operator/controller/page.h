// What an HTTP port answers.
#pragma once

#include <string>

namespace bsp::controller {

struct Page {
  int status = 200;
  std::string text;
  std::string type = "text/plain; version=0.0.4; charset=utf-8";
};

}  // namespace bsp::controller
