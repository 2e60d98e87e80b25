// YAML to JSON, with the line of each field, and back. Scalars follow YAML 1.2's core schema.
//
// A field's path is written as in the error messages of crds/: "spec.sets.names[1]"; the document
// itself is "".
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/error.h"

namespace bsp {

struct YamlError {
  int line = 0;  // 1-based; 0: none in particular
  std::string message;
};

// Lines (1-based) of a document's fields: the key's line, or that of a list's item.
using YamlLines = std::map<std::string, int, std::less<>>;

// The documents of a text in their order; empty ones (only comments) are left out. Duplicate keys, keys
// that are no scalars and unknown tags are errors.
std::expected<std::vector<nlohmann::json>, YamlError> read_yaml(std::string_view text,
                                                                std::vector<YamlLines>* lines = nullptr);

// As kubectl -o yaml: keys in alphabetical order, lists not indented, ends with a newline.
std::string write_yaml(const nlohmann::json& value);

// What a plain (unquoted) scalar means: null, true, 17, 0.5 or the text itself.
nlohmann::json yaml_scalar(std::string_view text);

}  // namespace bsp
