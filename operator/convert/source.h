// A job as it was written: its fields, and their lines for messages. Paths are those of YamlLines.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/error.h"
#include "base/json/yaml.h"

namespace bsp::convert {

std::string text_of(const nlohmann::json& scalar);

class Source {
 public:
  // Where the job stands: in a document, at `prefix` such as items[2]; if that is a text within another document, at the field `text`
  // of it, with so many lines of the file before.
  struct Place {
    const YamlLines& lines;
    std::string_view file;
    std::string prefix, text;
    int lines_before = 0;
  };
  Source(nlohmann::json job, Place place) : root_(std::move(job)), place_(std::move(place)) {}

  // From the beginning of a field's path to what it is in the file.
  using Origins = std::vector<std::pair<std::string, std::string>>;
  // The job becomes an MPIJob; messages go on to name the fields of the file.
  void reshape(nlohmann::json mpi_job, Origins origins);

  // nullptr if it isn't there or null.
  [[nodiscard]] const nlohmann::json* field(std::string_view path) const;
  [[nodiscard]] const nlohmann::json& root() const { return root_; }
  [[nodiscard]] std::string where(std::string_view path) const;
  [[nodiscard]] std::unexpected<Error> wrong(std::string_view path, std::string_view what) const;
  void note(std::string_view path, std::string_view what);
  // Without it the program doesn't run, or not as it is meant to.
  void must_rebuild(std::string_view path, std::string_view what);

  std::vector<std::string> notes, rebuild;

 private:
  nlohmann::json root_;
  Place place_;
  Origins origins_;
};

}  // namespace bsp::convert
