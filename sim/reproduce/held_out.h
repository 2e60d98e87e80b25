// Whether the chosen values (calibration::Choice) predict cells that they were not chosen by: each half of every table's
// rows chooses them anew, from all candidates, and predicts the other half.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <span>
#include <vector>

#include "sim/reproduce/cells.h"

namespace bsp::sim {

// The candidates, the calibration's own choice first: whole combinations of all values.
std::vector<calibration::Choice> choices();

// The rows of even index, or of odd index, of every table.
enum class Half { kEven, kOdd };

// The run behind the cell with that choice. On the five Sets, Suno's speed doesn't matter and stays the calibration's.
RunKey chosen(const Cell& cell, const calibration::Choice& choice);
// All runs of the tables' cells of scenario iii, with every candidate.
std::vector<RunKey> held_out_runs(std::span<const Table> tables);

// How far scenario iii is off with one choice in one half: the mean over the tables of their medians of |difference|, %.
// Tables without a published iii in that half don't count.
double error_of(std::span<const Table> tables, const Results& results, const calibration::Choice& choice, Half half);
// The candidate with the least error in that half; among equals the first.
calibration::Choice choose(std::span<const Table> tables, const Results& results, Half half);

// For each half: what it chooses, its own error and the other's, and the calibration's in the other; by table, too.
nlohmann::json held_out_json(std::span<const Table> tables, const Results& results);

}  // namespace bsp::sim
