// Templates: {{ … }} of Helm, Jinja and Argo, {% … %}, ${NAME} of envsubst, %NAME% and @NAME@ of sed. A template isn't YAML until they
// are filled in, so they are hidden behind words while it is read, and shown again in what is printed.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/error.h"
#include "base/json/yaml.h"

namespace bsp::convert {

class Placeholders {
 public:
  // `notes`: what of the template isn't kept, with its line.
  struct Note {
    int line;
    std::string text;
  };

  // Like bsp::read_yaml, of a template.
  std::expected<std::vector<nlohmann::json>, YamlError> read(std::string_view text, std::vector<YamlLines>* lines,
                                                             std::vector<Note>& notes);
  // A word that show() replaces by `text`, without quotes: for a number.
  [[nodiscard]] std::string number(const std::string& text);
  [[nodiscard]] std::string show(std::string_view text) const;

 private:
  struct Hidden {
    std::string text;
    bool quoted = false;  // the value stood in quotes
  };
  std::string hide_actions(std::string_view text, std::vector<Note>& notes);
  std::string hide_variables(std::string_view text);
  void show_variables(nlohmann::json& value) const;
  std::string word_for(Hidden hidden, std::string_view kind);

  std::vector<Hidden> hidden_;
};

// Whether the whole text is one, hidden or not.
[[nodiscard]] bool is_placeholder(std::string_view text);
// The placeholders in the text; in a shell's script only what no shell reads itself.
[[nodiscard]] std::vector<std::string> placeholders_in(std::string_view text, bool is_script);
// The text with the placeholder `by` instead of each of them.
[[nodiscard]] std::string without_placeholders(std::string_view text, std::string_view by);

}  // namespace bsp::convert
