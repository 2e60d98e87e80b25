// A table as an SVG figure: scenarios ii and iii of every row relative to i, published and ours.
#pragma once

#include <string>

#include "sim/reproduce/cells.h"

namespace bsp::sim {

// Two panels, ii above iii, in % of scenario i (published: of the published i, ours: of ours); rows from left to right.
// Tables without a scenario i get one panel with the values themselves. Published values are hollow circles on dashed
// lines, ours full on solid ones.
std::string picture_of(const Table& table, const Results& results);

}  // namespace bsp::sim
