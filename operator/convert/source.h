// An MPIJob as it was written: its fields, and their lines for messages. Paths are those of YamlLines.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/error.h"
#include "base/json/yaml.h"

namespace bsp::convert {

std::string text_of(const nlohmann::json& scalar);

class Source {
 public:
  // `prefix`: of the job in its document, such as items[2].
  Source(const nlohmann::json& job, const YamlLines& lines, std::string_view file, std::string prefix)
      : root_(job), lines_(lines), file_(file), prefix_(std::move(prefix)) {}

  // nullptr if it isn't there or null.
  [[nodiscard]] const nlohmann::json* field(std::string_view path) const;
  [[nodiscard]] std::string where(std::string_view path) const;
  [[nodiscard]] std::unexpected<Error> wrong(std::string_view path, std::string_view what) const;
  void note(std::string_view path, std::string_view what);

  std::vector<std::string> notes;

 private:
  const nlohmann::json& root_;
  const YamlLines& lines_;
  std::string_view file_;
  std::string prefix_;
};

}  // namespace bsp::convert
