// The sources' statements about migrations, compared with ours (published/moves.csv, described in published/README.md).
//
//   exact           the named process moved at the named superstep to the named Set
//   Set and count   at that call the stated number of processes moved from that Set to that Set, whichever they were
// A statement that nothing moved is right in both senses or in neither.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/core/error.h"
#include "sim/reproduce/cells.h"
#include "sim/reproduce/csv.h"
#include "sim/reproduce/runs.h"

namespace bsp::sim {

enum class Claim { kMove, kGroup, kNone, kSome };

struct Statement {
  RunKey run{};
  std::optional<std::uint64_t> superstep{};  // of the call; nullopt: any
  Claim claim = Claim::kNone;
  std::uint32_t process = 0;  // kMove
  std::uint32_t count = 1;    // kGroup
  std::string from{}, to{};   // Sets; kMove, kGroup
  std::string node{};         // kMove, if the text names it
  std::uint32_t weight = 1;   // the number of statements that it counts as
  bool implied = false;       // derived from a printed iii that equals its ii

  [[nodiscard]] std::string text() const;  // "p21: Corisco → Aquario (A1) at superstep 4"
};

struct Verdict {
  bool exact = false;
  bool set_and_count = false;
  std::string ours{};  // what happened in our run
};

Result<std::vector<Statement>> statements_of(const Csv& csv);
// Statements implied by printed cells whose iii equals their ii, without runs that make no call.
std::vector<Statement> implied_statements(std::span<const Table> tables, const Results& results);

// `all`: all statements, because those about the same call count together.
Verdict judge(const Statement& statement, std::span<const Statement> all, const RunResult& result);

}  // namespace bsp::sim
