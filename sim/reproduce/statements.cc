#include "sim/reproduce/statements.h"

#include <algorithm>
#include <format>
#include <map>
#include <set>

namespace bsp::sim {
namespace {

Result<Claim> claim_at(const Csv& csv, std::size_t row) {
  static const std::map<std::string_view, Claim> names{
      {"move", Claim::kMove}, {"group", Claim::kGroup}, {"none", Claim::kNone}, {"some", Claim::kSome}};
  const auto found = names.find(csv.at(row, "kind"));
  if (found != names.end()) return found->second;
  return fail(ErrorCode::kInvalid, std::format("{}, column kind: '{}' must be move, group, none or some",
                                               csv.where(row), csv.at(row, "kind")));
}

bool same_call(const Statement& a, const RunMove& move) { return !a.superstep || *a.superstep == move.superstep; }

std::string brief(const RunMove& move) { return std::format("p{}→{} at {}", move.process, move.node, move.superstep); }

// Describes the moves at the call, or of the whole run: "5 from Corisco to Aquario at 11; 1 …".
std::string summary(const Statement& statement, const RunResult& result) {
  std::map<std::tuple<std::uint64_t, std::string, std::string>, int> groups;
  for (const RunMove& move : result.moves)
    if (same_call(statement, move)) ++groups[{move.superstep, move.from, move.to}];
  if (groups.empty()) return "none moved";
  std::string text;
  std::size_t named = 0;
  for (const auto& [where, count] : groups) {
    if (++named == 4) return text + "; …";
    const auto& [superstep, from, to] = where;
    text += std::format("{}{} {} → {} at {}", text.empty() ? "" : "; ", count, from, to, superstep);
  }
  return text;
}

// The number that all statements about this call and these two Sets give together.
std::uint32_t count_said(const Statement& statement, std::span<const Statement> all) {
  std::uint32_t count = 0;
  for (const Statement& s : all)
    if (s.run == statement.run && s.superstep == statement.superstep && s.from == statement.from &&
        s.to == statement.to)
      count += s.claim == Claim::kMove ? 1 : s.claim == Claim::kGroup ? s.count : 0;
  return count;
}

std::uint32_t count_done(const Statement& statement, const RunResult& result) {
  return static_cast<std::uint32_t>(std::ranges::count_if(result.moves, [&](const RunMove& m) {
    return same_call(statement, m) && m.from == statement.from && m.to == statement.to;
  }));
}

Verdict judge_move(const Statement& s, std::span<const Statement> all, const RunResult& result) {
  Verdict verdict{.set_and_count = count_done(s, result) == count_said(s, all)};
  const auto same_process =
      std::ranges::find_if(result.moves, [&](const RunMove& m) { return m.process == s.process && same_call(s, m); });
  verdict.exact = same_process != result.moves.end() && same_process->to == s.to;
  verdict.ours = same_process != result.moves.end() ? brief(*same_process) : summary(s, result);
  return verdict;
}

}  // namespace

std::string Statement::text() const {
  const std::string when = superstep ? std::format(" at superstep {}", *superstep) : "";
  switch (claim) {
    case Claim::kMove:
      return std::format("p{}: {} → {}{}{}", process, from, to, node.empty() ? "" : " (" + node + ")", when);
    case Claim::kGroup:
      return std::format("{} processes: {} → {}{}", count, from, to, when);
    case Claim::kNone:
      return "nothing moves" + when;
    case Claim::kSome:
      return "something moves" + when;
  }
  check(false, "every claim has a text");
  return {};
}

Result<std::vector<Statement>> statements_of(const Csv& csv) {
  std::vector<Statement> statements;
  for (std::size_t row = 0; row < csv.rows.size(); ++row) {
    Statement s;
    s.run.application = csv.at(row, "application");
    s.run.heuristic = csv.at(row, "heuristic");
    BSP_TRY(const std::uint64_t processes, whole_at(csv, row, "processes", 1));
    s.run.processes = static_cast<std::uint32_t>(processes);
    BSP_TRY(s.run.size, number_at(csv, row, "size", 1));
    BSP_TRY(s.run.alpha, whole_at(csv, row, "alpha", 1));
    if (!csv.at(row, "superstep").empty()) {
      BSP_TRY(s.superstep, whole_at(csv, row, "superstep", 1));
    }
    BSP_TRY(s.claim, claim_at(csv, row));
    BSP_TRY(const std::uint64_t weight, whole_at(csv, row, "weight", 1));
    s.weight = static_cast<std::uint32_t>(weight);
    if (s.claim == Claim::kMove || s.claim == Claim::kGroup) {
      const bool move = s.claim == Claim::kMove;
      BSP_TRY(const std::uint64_t number, whole_at(csv, row, move ? "process" : "count", 1));
      (move ? s.process : s.count) = static_cast<std::uint32_t>(number);
      s.from = csv.at(row, "from");
      s.to = csv.at(row, "to");
      s.node = csv.at(row, "node");
      if (s.from.empty() || s.to.empty())
        return fail(ErrorCode::kInvalid, std::format("{}: columns from and to must name the Sets", csv.where(row)));
    }
    if (const auto valid = validate(s.run); !valid) return std::unexpected(valid.error().in(csv.where(row)));
    statements.push_back(std::move(s));
  }
  return statements;
}

std::vector<Statement> implied_statements(std::span<const Table> tables, const Results& results) {
  std::vector<Statement> statements;
  for (const Table& table : tables) {
    std::map<std::pair<std::size_t, RunKey>, std::pair<std::optional<double>, std::optional<double>>>
        printed;  // ii, iii
    for (const Cell& cell : table.cells) {
      auto& [ii, iii] = printed[{cell.row, cell.run}];
      if (cell.quantity == Quantity::kDeciding) ii = cell.published;
      if (cell.quantity == Quantity::kMigrating) iii = cell.published;
    }
    for (const auto& [where, values] : printed) {
      const auto& [ii, iii] = values;
      if (!ii || !iii || *ii != *iii || results.at(where.second).calls.empty()) continue;
      statements.push_back({.run = where.second, .claim = Claim::kNone, .implied = true});
    }
  }
  return statements;
}

Verdict judge(const Statement& s, std::span<const Statement> all, const RunResult& result) {
  const bool moved = std::ranges::any_of(result.moves, [&](const RunMove& m) { return same_call(s, m); });
  switch (s.claim) {
    case Claim::kMove:
      return judge_move(s, all, result);
    case Claim::kGroup: {
      const bool right = count_done(s, result) == count_said(s, all);
      return {right, right, summary(s, result)};
    }
    case Claim::kNone: {
      // If the statement names a call, our run must have made it.
      const bool made =
          !s.superstep || std::ranges::find(result.calls, *s.superstep, &RunCall::superstep) != result.calls.end();
      return {!moved && made, !moved && made, made ? summary(s, result) : "no call there"};
    }
    case Claim::kSome:
      return {moved, moved, summary(s, result)};
  }
  check(false, "every claim is judged");
  return {};
}

}  // namespace bsp::sim
