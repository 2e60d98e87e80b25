// Names of environment variables, in text that assigns or uses them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace bsp::convert {

// The length of the name that the text begins with; 0 if it begins with none.
[[nodiscard]] std::size_t name_length(std::string_view text);

[[nodiscard]] bool is_name(std::string_view text);

// NAME=VALUE. Of a shell's assignments, the name is one or ends with '+'.
[[nodiscard]] std::optional<std::pair<std::string, std::string>> assignment(std::string_view text);
[[nodiscard]] std::optional<std::pair<std::string, std::string>> shell_assignment(std::string_view text);

// Whether the text uses the variable: as the container's $(NAME), or as a shell's $NAME, ${NAME} or ${NAME...}.
[[nodiscard]] bool names_variable(std::string_view text, std::string_view name);

}  // namespace bsp::convert
