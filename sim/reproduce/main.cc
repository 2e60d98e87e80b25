// bsp-reproduce: runs every cell of the published tables, or of your own, and prints the results beside the published
// values as JSON. page.py makes docs/reproduction.md and its figures of them.
#include <cstdio>
#include <filesystem>
#include <format>
#include <nlohmann/json.hpp>
#include <print>
#include <set>
#include <span>
#include <thread>

#include "operator/cli/command.h"
#include "operator/cli/exit_code.h"
#include "sim/reproduce/comparison.h"
#include "sim/reproduce/held_out.h"
#include "sim/reproduce/workers.h"

namespace {

using namespace bsp;
using namespace bsp::sim;
namespace fs = std::filesystem;

struct Options {
  unsigned jobs = std::max(1u, std::thread::hardware_concurrency());
  std::string source = "sim/reproduce";
  std::vector<std::string> tables{};
  bool held_out = false;
};

Result<Options> options_of(std::span<const std::string> words) {
  Options options;
  cli::Command command(
      "bsp-reproduce",
      "Run the published tables, or your own, and print the comparison with the published values as JSON.");
  command.option("--jobs", "N", std::format("processes to run with (default: {})", options.jobs),
                 cli::number(options.jobs, 1u, 1024u));
  command.text("--source", "DIR", std::format("directory of published/ (default: {})", options.source), options.source);
  command.flag("--held-out",
               "choose what scenario iii determines by one half of each table's rows, and predict the other half",
               options.held_out);
  command.arguments("TABLE.csv",
                    "your own tables, instead of the published ones; DIR/published/README.md has the format",
                    options.tables);
  BSP_CHECK_OK(command.parse(words));
  return options;
}

// In the order of the report.
constexpr const char* kPublished[] = {"lattice_boltzmann",
                                      "lattice_boltzmann_100",
                                      "lattice_boltzmann_barrier",
                                      "smith_waterman",
                                      "lu",
                                      "fractal",
                                      "migcube",
                                      "migcube_cpu",
                                      "mighull",
                                      "mighull_cpu"};

Result<std::vector<Table>> read_tables(const Options& options) {
  std::vector<std::string> paths = options.tables;
  if (paths.empty())
    for (const char* name : kPublished)
      paths.push_back((fs::path(options.source) / "published" / name).string() + ".csv");
  std::vector<Table> tables;
  for (const std::string& path : paths) {
    BSP_TRY(const Csv csv, read_csv(path));
    BSP_TRY(Table table, table_of(csv));
    tables.push_back(std::move(table));
  }
  return tables;
}

void print_progress(const Progress& progress) {
  std::println(stderr, "[{:3}/{}] {:4.0f} s  {}", progress.done, progress.of, progress.seconds, progress.run.name());
}

Result<void> reproduce(const Options& options) {
  const bool published = options.tables.empty();
  BSP_TRY(const std::vector<Table> tables, read_tables(options));
  std::set<std::string> names;
  for (const Table& table : tables)
    if (!names.insert(table.name).second)
      return fail(ErrorCode::kInvalid,
                  std::format("two tables are called {}.csv; rename one, because figures have their tables' names",
                              table.name));
  if (options.held_out) {
    BSP_TRY(const Results results, run_all(held_out_runs(tables), options.jobs, print_progress));
    std::puts(held_out_json(tables, results).dump(1).c_str());
    return {};
  }
  std::vector<Statement> statements;
  std::vector<RunKey> keys;
  for (const Table& table : tables)
    for (const Cell& cell : table.cells) keys.push_back(cell.run);
  if (published) {
    BSP_TRY(const Csv moves, read_csv((fs::path(options.source) / "published" / "moves.csv").string()));
    BSP_TRY(statements, statements_of(moves));
    for (const Statement& statement : statements) keys.push_back(statement.run);
    for (const RunKey& key : yardstick_runs()) keys.push_back(key);
  }
  BSP_TRY(const Results results, run_all(keys, options.jobs, print_progress));
  if (published)
    for (Statement& statement : implied_statements(tables, results)) statements.push_back(std::move(statement));

  const Comparison comparison{.tables = tables, .statements = statements, .results = results, .yardsticks = published};
  std::puts(to_json(comparison).dump(1).c_str());
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const auto options = options_of(words);
  const Result<void> done = options ? reproduce(*options) : std::unexpected(options.error());
  return done ? cli::kDone : cli::report_error(done.error(), "bsp-reproduce");
}
