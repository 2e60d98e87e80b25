#include "operator/cli/input.h"

#include <iostream>
#include <iterator>

#include "base/core/read_file.h"

namespace bsp::cli {

Result<Input> read_input(const std::string& path) {
  if (path != "-") return read_file(path).transform([&](std::string text) { return Input{std::move(text), path}; });
  Input input{.text = std::string(std::istreambuf_iterator<char>(std::cin), {}), .name = "standard input"};
  if (std::cin.bad()) return fail_errno("reading standard input");
  return input;
}

}  // namespace bsp::cli
