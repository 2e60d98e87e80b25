// YAML to JSON, with the line of each field, and back. Scalars follow YAML 1.2's core schema, except that 0400 is octal: kubectl
// reads it so, and in a manifest it is the mode of a file.
//
// A field's path is written as in the error messages of crds/: "spec.sets.names[1]".
// The path of the document itself is "".
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/error.h"

namespace bsp {

struct YamlError {
  int line = 0;  // 1-based; 0 if the error isn't tied to a line
  std::string message;
};

// Lines (1-based) of a document's fields: the line of the key, or of the list item.
using YamlLines = std::map<std::string, int, std::less<>>;

// The documents of a text, in order, without empty ones (only comments). Duplicate keys, keys that aren't scalars and
// unknown tags are errors.
std::expected<std::vector<nlohmann::json>, YamlError> read_yaml(std::string_view text,
                                                                std::vector<YamlLines>* lines = nullptr);

// Like kubectl -o yaml: keys in alphabetical order, lists not indented, a newline at the end.
std::string write_yaml(const nlohmann::json& value);

// The value of a plain (unquoted) scalar: null, true, 17, 0.5 or the text itself.
nlohmann::json yaml_scalar(std::string_view text);

}  // namespace bsp
