// "Did you mean …?": the known name nearest to a misspelt one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bsp::crds {

// Empty if none is near: within a third of the length (at least 2 edits), case ignored. An edit is an
// insertion, deletion, replacement or swap of neighbours (optimal string alignment distance).
std::string nearest(std::string_view name, const std::vector<std::string_view>& known);

// "; did you mean X?" or, with no near name, "; known: a, b, c".
std::string suggestion(std::string_view name, const std::vector<std::string_view>& known);

}  // namespace bsp::crds
