#include "operator/check/report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <format>
#include <string_view>

namespace bsp::checking {
namespace {

using nlohmann::json;

constexpr std::array<const char*, 4> kThreadLevels{"MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED",
                                                   "MPI_THREAD_MULTIPLE"};

double mebibytes(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

// What the program calls, not its language: a library may make all of a Fortran program's calls.
std::string bindings(const Program& program) { return program.fortran ? "Fortran" : "C"; }
const char* threads(const Program& program) { return kThreadLevels[static_cast<std::size_t>(program.thread_level)]; }

std::string ordinal(std::uint64_t number) {
  const std::uint64_t last = number / 10 % 10 == 1 ? 0 : number % 10;
  return std::format("{}{}", number, last == 1 ? "st" : last == 2 ? "nd" : last == 3 ? "rd" : "th");
}

std::string duration(double seconds) {
  return seconds < 1 ? std::format("{:.3g} ms", 1000 * seconds) : std::format("{:.3g} s", seconds);
}

std::string mpi(const Program& program) {
  if (program.open_mpi.empty()) return "not initialised";
  return std::format("Open MPI {}, {} bindings, {}", program.open_mpi, bindings(program), threads(program));
}

std::string supersteps(const Report& report) {
  const Program& program = report.program;
  if (program.open_mpi.empty()) return "not known";
  if (program.edge_call.empty()) return "none: no blocking collective of all ranks recurs";
  const std::string stride = program.edge_stride == 1 ? "" : ordinal(program.edge_stride) + " ";
  const std::string often = report.superstep_seconds > 0 ? ", every " + duration(report.superstep_seconds) : "";
  return std::format("end at every {}{}{}", stride, program.edge_call, often);
}

struct Call {
  std::string_view name;
  std::uint64_t count = 0;
};
std::vector<Call> calls_of(const Program& program) {
  std::vector<Call> calls;
  for (std::size_t i = 0; i < program.collectives.size(); ++i)
    if (program.collectives[i] > 0) calls.push_back({names::kEdgeCalls[i], program.collectives[i]});
  std::ranges::stable_sort(calls, std::ranges::greater{}, &Call::count);
  return calls;
}

double per_second(const Report& report, const Call& call) {
  return report.watched_seconds > 0 ? static_cast<double>(call.count) / report.watched_seconds : 0;
}

std::string collectives(const Report& report) {
  if (report.program.open_mpi.empty()) return "not known";
  std::string text;
  for (const Call& call : calls_of(report.program))
    text +=
        std::format("{}{} {} ({:.3g}/s)", text.empty() ? "" : ", ", call.name, call.count, per_second(report, call));
  return text.empty() ? "none that is blocking and of all ranks" : text;
}

std::string move_line(const Move& move) {
  if (!move.succeeded) return std::format("rank {}: not moved: {}", move.rank, move.message);
  const crds::PauseParts& p = move.pause;
  return std::format(
      "rank {}: pause {:.0f} ms (gate {:.0f}, close {:.0f}, dump {:.0f}, transfer {:.0f}, restore {:.0f}, commit "
      "{:.0f}, open "
      "{:.0f}), checkpoint {:.1f} MiB",
      move.rank, p.total_ms, p.gate_ms, p.close_ms, p.dump_ms, p.transfer_ms, p.restore_ms, p.commit_ms, p.open_ms,
      mebibytes(move.bytes));
}

// The features of the CPU that its level doesn't ask for.
std::vector<std::string> beyond_level(CpuFeatures cpu) {
  std::vector<std::string> names;
  for (std::size_t bit = 0; bit < 64; ++bit) {
    const CpuFeatures one(1ull << bit);
    if (cpu.has_all(one) && cpu.without(one).level() == cpu.level()) names.push_back(one.text());
  }
  std::ranges::sort(names);
  return names;
}

std::string cpu_line(CpuFeatures cpu) {
  std::string text(cpu.level());
  for (const std::string& feature : beyond_level(cpu)) text += " " + feature;
  return text + "; a rank moves only to CPUs that have all that it selected code by at its start";
}

// "Moves   first\n        second".
void add(std::vector<std::string>& lines, std::string_view title, const std::vector<std::string>& values) {
  for (std::size_t i = 0; i < values.size(); ++i)
    lines.push_back(std::format("{:<18}{}", i == 0 ? title : "", values[i]));
}

}  // namespace

std::vector<std::string> lines_of(const Report& report) {
  std::vector<std::string> moves, holds, lines;
  for (const Move& move : report.moves) moves.push_back(move_line(move));
  for (const Hold& hold : report.holds) holds.push_back(std::format("rank {}: {}", hold.rank, hold.reason));
  if (moves.empty()) moves.emplace_back("none tried");
  if (holds.empty()) holds.emplace_back(report.moves.empty() ? "not tried" : "nothing");
  add(lines, "MPI", {mpi(report.program)});
  add(lines, "Supersteps", {supersteps(report)});
  add(lines, "Collectives", {collectives(report)});
  add(lines, "Moves", moves);
  add(lines, "Held back by", holds);
  add(lines, "CPU features", {cpu_line(report.cpu)});
  add(lines, "Outcome", {report.failure.empty() ? "its ranks move" : report.failure});
  return lines;
}

json json_of(const Report& report) {
  json moves = json::array(), holds = json::array(), calls = json::array();
  for (const Move& m : report.moves)
    moves.push_back({{"rank", m.rank},
                     {"succeeded", m.succeeded},
                     {"message", m.message},
                     {"checkpointBytes", m.bytes},
                     {"pauseMs",
                      {{"total", m.pause.total_ms},
                       {"gate", m.pause.gate_ms},
                       {"close", m.pause.close_ms},
                       {"dump", m.pause.dump_ms},
                       {"transfer", m.pause.transfer_ms},
                       {"restore", m.pause.restore_ms},
                       {"commit", m.pause.commit_ms},
                       {"open", m.pause.open_ms}}}});
  for (const Hold& hold : report.holds) holds.push_back({{"rank", hold.rank}, {"reason", hold.reason}});
  for (const Call& call : calls_of(report.program))
    calls.push_back({{"call", call.name}, {"count", call.count}, {"perSecond", per_second(report, call)}});
  const Program& program = report.program;
  const json mpi = program.open_mpi.empty() ? json()
                                            : json{{"library", "Open MPI"},
                                                   {"version", program.open_mpi},
                                                   {"bindings", bindings(program)},
                                                   {"threadLevel", threads(program)}};
  const json edge =
      program.edge_call.empty()
          ? json()
          : json{{"call", program.edge_call}, {"stride", program.edge_stride}, {"seconds", report.superstep_seconds}};
  return {{"apiVersion", names::kApiVersion},
          {"kind", "ProgramCheck"},
          {"image", report.image},
          {"command", report.command},
          {"movable", report.failure.empty()},
          {"failure", report.failure},
          {"mpi", mpi},
          {"superstepEnds", edge},
          {"watchedSeconds", report.watched_seconds},
          {"collectives", calls},
          {"moves", moves},
          {"heldBackBy", holds},
          {"cpu", {{"level", report.cpu.level()}, {"features", beyond_level(report.cpu)}}}};
}

}  // namespace bsp::checking
