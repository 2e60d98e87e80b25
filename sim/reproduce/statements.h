// What the sources say about migrations, and whether ours were the same (published/moves.csv, described in
// published/README.md).
//
//   exact           the process that the statement names moved at the superstep that it names, to the Set that it names
//   Set and count   at that call as many processes moved from that Set to that Set as the statements about it say,
//                   whichever they were
// A statement that nothing moved is right in both senses, or in neither.
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
  std::optional<std::uint64_t> superstep{};  // of the call; nothing: any
  Claim claim = Claim::kNone;
  std::uint32_t process = 0;  // kMove
  std::uint32_t count = 1;    // kGroup
  std::string from{}, to{};   // Sets; kMove, kGroup
  std::string node{};         // kMove, if the text names it
  std::uint32_t weight = 1;   // how many statements it counts as
  bool implied = false;       // by a printed iii that equals its ii

  [[nodiscard]] std::string text() const;  // "p21: Corisco → Aquario (A1) at superstep 4"
};

struct Verdict {
  bool exact = false;
  bool set_and_count = false;
  std::string ours{};  // what happened instead, or as well
};

Result<std::vector<Statement>> statements_of(const Csv& csv);
// Printed cells whose iii equals their ii. Runs in which no call is made say nothing and are left out.
std::vector<Statement> implied_statements(std::span<const Table> tables, const Results& results);

// `all` are all statements: those about the same call count together.
Verdict judge(const Statement& statement, std::span<const Statement> all, const RunResult& result);

}  // namespace bsp::sim
