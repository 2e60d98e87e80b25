// bsp-reproduce: runs every cell of the published tables, or of your own tables, and writes the results beside the
// published values.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <print>
#include <set>
#include <thread>

#include "sim/reproduce/pictures.h"
#include "sim/reproduce/report.h"
#include "sim/reproduce/workers.h"

namespace {

using namespace bsp;
using namespace bsp::sim;
namespace fs = std::filesystem;

constexpr const char* kUsage =
    "bsp-reproduce [--jobs N] [--source DIR] [--out FILE.md] [TABLE.csv …]\n"
    "  without tables: runs all of DIR/published (DIR: sim/reproduce) and writes docs/reproduction.md and its "
    "pictures\n"
    "  with tables: runs those, with the same calibration, and writes the comparison to standard output, or to FILE.md "
    "and its pictures to figures/ beside it\n"
    "  (DIR/published/README.md has the format)\n";

struct Options {
  unsigned jobs = std::max(1u, std::thread::hardware_concurrency());
  fs::path source = "sim/reproduce";
  fs::path out{};
  std::vector<std::string> tables{};
};

Result<Options> options_of(int argc, char** argv) {
  Options options;
  for (int k = 1; k < argc; ++k) {
    const std::string word = argv[k];
    if (!word.starts_with("--")) {
      options.tables.push_back(word);
      continue;
    }
    if (word == "--help" || word == "-h") {
      std::print("{}", kUsage);
      std::exit(0);
    }
    if (k + 1 == argc) return fail(ErrorCode::kInvalid, word + " needs a value");
    const std::string value = argv[++k];
    if (word == "--out") {
      options.out = value;
    } else if (word == "--source") {
      options.source = value;
    } else if (word == "--jobs") {
      char* end = nullptr;
      const unsigned long jobs = std::strtoul(value.c_str(), &end, 10);
      if (*end != '\0' || jobs < 1 || jobs > 1024) return fail(ErrorCode::kInvalid, "--jobs must be 1 to 1024");
      options.jobs = static_cast<unsigned>(jobs);
    } else {
      return fail(ErrorCode::kInvalid, std::format("unknown option {}\n{}", word, kUsage));
    }
  }
  return options;
}

// In the order of the report.
constexpr const char* kPublished[] = {
    "lattice_boltzmann", "lattice_boltzmann_barrier", "smith_waterman", "lu", "fractal", "migcube", "mighull"};

Result<std::vector<Table>> read_tables(const Options& options) {
  std::vector<std::string> paths = options.tables;
  if (paths.empty())
    for (const char* name : kPublished) paths.push_back((options.source / "published" / name).string() + ".csv");
  std::vector<Table> tables;
  for (const std::string& path : paths) {
    BSP_TRY(const Csv csv, read_csv(path));
    BSP_TRY(Table table, table_of(csv));
    tables.push_back(std::move(table));
  }
  return tables;
}

Result<void> write_file(const fs::path& path, const std::string& text) {
  std::error_code ignored;  // the write tells
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), ignored);
  std::ofstream file(path);
  if (!(file << text << std::flush)) return fail(ErrorCode::kFailed, path.string() + " cannot be written");
  return {};
}

void tell(const Progress& progress) {
  std::println(stderr, "[{:3}/{}] {:4.0f} s  {}", progress.done, progress.of, progress.seconds, progress.run.name());
}

Result<void> reproduce(const Options& options) {
  const bool published = options.tables.empty();
  if (fs::is_directory(options.out))
    return fail(ErrorCode::kInvalid, std::format("--out: {} is a directory; name a file in it", options.out.string()));
  BSP_TRY(const std::vector<Table> tables, read_tables(options));
  std::set<std::string> names;
  for (const Table& table : tables)
    if (!names.insert(table.name).second)
      return fail(ErrorCode::kInvalid, std::format("two tables are called {}.csv: rename one, as a table's picture is "
                                                   "called like it",
                                                   table.name));
  std::vector<Statement> statements;
  std::string assumptions;
  std::vector<RunKey> keys;
  for (const Table& table : tables)
    for (const Cell& cell : table.cells) keys.push_back(cell.run);
  if (published) {
    BSP_TRY(const Csv moves, read_csv((options.source / "published" / "moves.csv").string()));
    BSP_TRY(statements, statements_of(moves));
    for (const Statement& statement : statements) keys.push_back(statement.run);
    for (const RunKey& key : yardstick_runs()) keys.push_back(key);
    std::ifstream prose(options.source / "assumptions.md");
    assumptions.assign(std::istreambuf_iterator<char>(prose), {});
  }
  BSP_TRY(const Results results, run_all(keys, options.jobs, tell));
  if (published)
    for (Statement& statement : implied_statements(tables, results)) statements.push_back(std::move(statement));

  ReportParts parts{.tables = tables,
                    .statements = statements,
                    .results = results,
                    .assumptions = assumptions,
                    .yardsticks = published};
  const fs::path out = options.out.empty() && published ? fs::path("docs/reproduction.md") : options.out;
  if (out.empty()) {
    std::print("{}", report_of(parts));
    return {};
  }
  parts.pictures = "figures";
  for (const Table& table : tables)
    BSP_CHECK_OK(write_file(out.parent_path() / "figures" / (table.name + ".svg"), picture_of(table, results)));
  BSP_CHECK_OK(write_file(out, report_of(parts)));
  std::println(stderr, "{} written", out.string());
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const auto options = options_of(argc, argv);
  const Result<void> done = options ? reproduce(*options) : std::unexpected(options.error());
  if (done) return 0;
  std::println(stderr, "bsp-reproduce: {}", done.error().message);
  return 1;
}
