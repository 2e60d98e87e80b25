#include "operator/convert/mpirun.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <format>

#include "operator/convert/names.h"

namespace bsp::convert {
namespace {

enum class Meaning {
  kRanks,
  kRanksPerWorker,
  kMapping,
  kExport,
  kEnvironment,
  kParameter,
  kDirectory,
  kSeconds,
  kNothing,
  kPlacement,
  kTool
};
struct Option {
  std::string_view name;  // without dashes: mpirun takes one or two
  std::size_t values;
  Meaning means;
};

constexpr auto kOptions = std::to_array<Option>({
    {"n", 1, Meaning::kRanks},
    {"np", 1, Meaning::kRanks},
    {"c", 1, Meaning::kRanks},
    {"x", 1, Meaning::kExport},
    {"genv", 2, Meaning::kEnvironment},
    {"env", 2, Meaning::kEnvironment},
    {"mca", 2, Meaning::kParameter},
    {"gmca", 2, Meaning::kParameter},
    {"omca", 2, Meaning::kParameter},
    {"prtemca", 2, Meaning::kTool},
    {"pmixmca", 2, Meaning::kTool},
    {"wdir", 1, Meaning::kDirectory},
    {"wd", 1, Meaning::kDirectory},
    {"timeout", 1, Meaning::kSeconds},
    {"allow-run-as-root", 0, Meaning::kNothing},
    {"bind-to", 1, Meaning::kNothing},
    {"bind-to-core", 0, Meaning::kNothing},
    {"bind-to-none", 0, Meaning::kNothing},
    {"map-by", 1, Meaning::kMapping},
    {"rank-by", 1, Meaning::kNothing},
    {"report-bindings", 0, Meaning::kNothing},
    {"oversubscribe", 0, Meaning::kNothing},
    {"nooversubscribe", 0, Meaning::kNothing},
    {"use-hwthread-cpus", 0, Meaning::kNothing},
    {"tag-output", 0, Meaning::kNothing},
    {"timestamp-output", 0, Meaning::kNothing},
    {"merge-stderr-to-stdout", 0, Meaning::kNothing},
    {"quiet", 0, Meaning::kNothing},
    {"q", 0, Meaning::kNothing},
    {"verbose", 0, Meaning::kNothing},
    {"v", 0, Meaning::kNothing},
    {"display", 1, Meaning::kNothing},
    {"display-map", 0, Meaning::kNothing},
    {"display-allocation", 0, Meaning::kNothing},
    {"launch-agent", 1, Meaning::kNothing},
    {"host", 1, Meaning::kPlacement},
    {"H", 1, Meaning::kPlacement},
    {"hosts", 1, Meaning::kPlacement},
    {"hostfile", 1, Meaning::kPlacement},
    {"machinefile", 1, Meaning::kPlacement},
    {"f", 1, Meaning::kPlacement},
    {"N", 1, Meaning::kRanksPerWorker},
    {"perhost", 1, Meaning::kRanksPerWorker},
    {"npernode", 1, Meaning::kRanksPerWorker},
    {"ppn", 1, Meaning::kRanksPerWorker},
    {"prefix", 1, Meaning::kTool},
    {"path", 1, Meaning::kTool},
    {"output", 1, Meaning::kTool},
    {"output-filename", 1, Meaning::kTool},
    {"tune", 1, Meaning::kTool},
    {"am", 1, Meaning::kTool},
});

// How processes are started and reach each other: the operator's task.
bool belongs_to_mpirun(std::string_view parameter) {
  constexpr auto kPrefixes =
      std::to_array<std::string_view>({"btl", "pml", "mtl", "oob", "plm", "rsh", "orte", "prte", "prrte", "rmaps",
                                       "ras", "hwloc", "routed", "ess", "odls", "state"});
  return std::ranges::any_of(kPrefixes, [&](std::string_view prefix) {
    return parameter.starts_with(prefix) && (parameter.size() == prefix.size() || parameter[prefix.size()] == '_');
  });
}

Result<std::uint32_t> number(const std::string& option, const std::string& text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value == 0)
    return fail(ErrorCode::kInvalid, std::format("{} is \"{}\": write a number that is at least 1", option, text));
  return value;
}

Result<void> apply(const Option& option, const std::string& written, std::span<const Word> values, MpiRun& run) {
  const auto value = [&](std::size_t i) { return values[i].text; };
  const auto drop = [&](const char* why) {
    std::string text = written;
    for (const Word& word : values) text += " " + word.text;
    run.dropped.emplace_back(std::move(text), why);
  };
  switch (option.means) {
    case Meaning::kRanks: {
      BSP_TRY(run.ranks, number(written, value(0)));
      break;
    }
    case Meaning::kRanksPerWorker: {
      BSP_TRY(run.ranks_per_worker, number(written, value(0)));
      break;
    }
    case Meaning::kMapping: {  // ppr:4:node:pe=2, say
      const std::string text = value(0);
      if (!text.starts_with("ppr:") || !text.substr(4).contains(":node")) break;
      BSP_TRY(run.ranks_per_worker, number(written, text.substr(4, text.find(':', 4) - 4)));
      break;
    }
    case Meaning::kExport: {
      const std::string text = value(0);
      if (auto variable = assignment(text))
        run.environment.push_back(std::move(*variable));
      else
        run.exported.push_back(text);
      break;
    }
    case Meaning::kEnvironment: {
      auto variable = assignment(value(0));  // MPICH takes NAME=VALUE too
      if (values.size() == 2)
        run.environment.emplace_back(value(0), value(1));
      else
        run.environment.push_back(std::move(*variable));
      break;
    }
    case Meaning::kParameter:
      if (belongs_to_mpirun(value(0)))
        drop("the operator starts and connects the ranks");
      else
        run.environment.emplace_back("OMPI_MCA_" + value(0), value(1));
      break;
    case Meaning::kDirectory:
      run.directory = value(0);
      break;
    case Meaning::kSeconds: {
      BSP_TRY(run.seconds, number(written, value(0)));
      break;
    }
    case Meaning::kNothing:
      break;
    case Meaning::kPlacement:
      drop("spec.sets and spec.initialMapping place the ranks");
      break;
    case Meaning::kTool:
      drop("it concerns mpirun, which doesn't run");
      break;
  }
  return {};
}

}  // namespace

bool is_mpirun(const std::string& word) {
  const std::string name = word.substr(word.rfind('/') + 1);
  return name == "mpirun" || name == "mpiexec" || name == "orterun" || name == "prterun" || name == "mpiexec.hydra" ||
         name == "mpirun.openmpi" || name == "mpiexec.openmpi";
}

Result<MpiRun> read_mpirun(std::span<const Word> words) {
  MpiRun run;
  std::size_t at = 0;
  while (at < words.size() && words[at].text.starts_with('-')) {
    const std::string& written = words[at].text;
    const std::string_view bare = std::string_view(written).substr(written.starts_with("--") ? 2 : 1);
    const std::string_view name = bare.substr(0, bare.find('='));
    const auto option = std::ranges::find(kOptions, name, &Option::name);
    if (option == kOptions.end())
      return fail(ErrorCode::kInvalid,
                  std::format("mpirun's option {} isn't known: remove it if the program needn't have it", written));
    std::vector<Word> values;
    if (name.size() < bare.size())
      values.push_back({.text = std::string(bare.substr(name.size() + 1)), .source = "", .expanded = false});
    const auto is_whole = [&] {
      return values.size() == option->values ||
             (option->means == Meaning::kEnvironment && values.size() == 1 && assignment(values[0].text));
    };
    while (!is_whole() && ++at < words.size()) values.push_back(words[at]);
    if (!is_whole()) return fail(ErrorCode::kInvalid, std::format("{} has no value", written));
    for (const Word& value : values)
      if (value.expanded && option->means != Meaning::kNothing)
        return fail(ErrorCode::kInvalid,
                    std::format("{} is {}, which only a shell can expand: write its value", written, value.source));
    BSP_CHECK_OK(apply(*option, written, values, run));
    ++at;
  }
  run.program.assign(words.begin() + static_cast<std::ptrdiff_t>(at), words.end());
  if (run.program.empty())
    return fail(ErrorCode::kInvalid, "mpirun has no program to run: append it and its arguments");
  if (std::ranges::contains(run.program, std::string(":"), &Word::text))
    return fail(ErrorCode::kInvalid, "mpirun runs several programs (\":\"): all ranks of a BSPJob run the same one");
  return run;
}

}  // namespace bsp::convert
