#include "operator/convert/mpirun.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <format>
#include <ranges>

#include "operator/convert/names.h"

namespace bsp::convert {
namespace {

enum class Meaning {
  kRanks,
  kRanksPerWorker,
  kOneRankPerWorker,
  kHosts,
  kHostfile,
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
    {"display-topo", 0, Meaning::kNothing},
    {"launch-agent", 1, Meaning::kNothing},
    {"cpus-per-proc", 1, Meaning::kNothing},
    {"cpus-per-rank", 1, Meaning::kNothing},
    {"cpu-set", 1, Meaning::kNothing},
    {"cpu-list", 1, Meaning::kNothing},
    {"bycore", 0, Meaning::kNothing},
    {"bynode", 0, Meaning::kNothing},
    {"byslot", 0, Meaning::kNothing},
    {"nolocal", 0, Meaning::kNothing},
    {"enable-recovery", 0, Meaning::kNothing},
    {"disable-recovery", 0, Meaning::kNothing},
    {"leave-session-attached", 0, Meaning::kNothing},
    {"debug-daemons", 0, Meaning::kNothing},
    {"genvall", 0, Meaning::kNothing},
    {"envall", 0, Meaning::kNothing},
    {"l", 0, Meaning::kNothing},
    {"prepend-rank", 0, Meaning::kNothing},
    {"print-rank-map", 0, Meaning::kNothing},
    {"launcher", 1, Meaning::kNothing},
    {"bootstrap", 1, Meaning::kNothing},
    {"rmk", 1, Meaning::kNothing},
    {"iface", 1, Meaning::kNothing},
    {"launcher-exec", 1, Meaning::kNothing},
    {"host", 1, Meaning::kHosts},
    {"H", 1, Meaning::kHosts},
    {"hosts", 1, Meaning::kHosts},
    {"hostfile", 1, Meaning::kHostfile},
    {"machinefile", 1, Meaning::kHostfile},
    {"default-hostfile", 1, Meaning::kHostfile},
    {"f", 1, Meaning::kHostfile},
    {"rankfile", 1, Meaning::kPlacement},
    {"rf", 1, Meaning::kPlacement},
    {"pernode", 0, Meaning::kOneRankPerWorker},
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

std::uint32_t count_of(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : 0;
}

Result<std::uint32_t> number(const std::string& option, const std::string& text) {
  const std::uint32_t value = count_of(text);
  if (value == 0)
    return fail(ErrorCode::kInvalid, std::format("{} is \"{}\": write a number that is at least 1", option, text));
  return value;
}

// How many ranks: a number, or what a person fills in.
Result<Count> count(const std::string& option, const Word& word, const Variables& variables) {
  if (variables.is_placeholder(word)) return Count{.text = word.text};
  BSP_TRY(const std::uint32_t value, number(option, word.text));
  return Count{.number = value};
}

// -host a,b:2 has three slots; of a host with :* only its pod knows how many.
void add_hosts(const std::string& list, MpiRun& run) {
  for (const auto part : list | std::views::split(',')) {
    const std::string_view host(part.begin(), part.end());
    const std::size_t colon = host.find(':');
    const std::uint32_t slots = colon == std::string_view::npos ? 1 : count_of(host.substr(colon + 1));
    if (slots == 0) run.unclear = std::format("-host {}", list);
    run.hosts = run.hosts.value_or(0) + 1;
    run.slots = run.slots.value_or(0) + slots;
  }
}

void set_variable(const std::string& name, const Word& value, MpiRun& run) {
  if (!value.expanded) {
    run.environment.emplace_back(name, value.text);
    return;
  }
  Word whole = value;
  whole.source = std::format("{}={}", name, value.source);
  run.assignments.emplace_back(name, std::move(whole));
}

// The word without its beginning, which no shell expands.
Word behind(const Word& word, std::size_t begin) {
  Word rest = word;
  rest.text.erase(0, begin);
  rest.source.erase(0, std::min(begin, rest.source.size()));
  if (!rest.pieces.empty()) rest.pieces.front().text.erase(0, begin);
  return rest;
}

Result<void> apply(const Option& option, const std::string& written, std::span<const Word> values,
                   const Variables& variables, MpiRun& run) {
  const auto value = [&](std::size_t i) { return values[i].text; };
  const auto drop = [&](const char* why) {
    std::string text = written;
    for (const Word& word : values) text += " " + word.text;
    run.dropped.emplace_back(std::move(text), why);
  };
  constexpr const char* kOperators = "the operator starts and connects the ranks";
  constexpr const char* kPlaced = "spec.sets and spec.initialMapping place the ranks";
  switch (option.means) {
    case Meaning::kRanks: {
      BSP_TRY(run.ranks, count(written, values[0], variables));
      break;
    }
    case Meaning::kRanksPerWorker: {
      BSP_TRY(run.ranks_per_worker, count(written, values[0], variables));
      break;
    }
    case Meaning::kOneRankPerWorker:
      run.ranks_per_worker = Count{};
      break;
    case Meaning::kMapping: {  // ppr:4:node:pe=2, say
      const std::string text = value(0);
      if (!text.starts_with("ppr:")) break;
      if (!text.substr(4).contains(":node")) {
        run.unclear = std::format("{} {}", written, text);
        break;
      }
      BSP_TRY(const std::uint32_t each, number(written, text.substr(4, text.find(':', 4) - 4)));
      run.ranks_per_worker = Count{.number = each};
      break;
    }
    case Meaning::kExport:
    case Meaning::kEnvironment: {
      if (values.size() == 2) {
        set_variable(value(0), values[1], run);
        break;
      }
      const auto parts = assignment(value(0));  // MPICH takes NAME=VALUE, too
      if (is_launch_variable(parts ? parts->first : value(0)))
        drop(kOperators);
      else if (!parts)
        run.exported.push_back(value(0));
      else if (values[0].expanded)
        run.assignments.emplace_back(parts->first, values[0]);
      else
        run.environment.emplace_back(parts->first, parts->second);
      break;
    }
    case Meaning::kParameter:
      if (belongs_to_mpirun(value(0)))
        drop(kOperators);
      else
        set_variable("OMPI_MCA_" + value(0), values[1], run);
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
    case Meaning::kHosts:
      if (!values[0].expanded)
        add_hosts(value(0), run);
      else if (!variables.is_host_list(values[0]))
        run.unclear = std::format("{} {}", written, value(0));
      drop(kPlaced);
      break;
    case Meaning::kHostfile:  // the operator's has all workers with their slots
      if (!is_hostfile_of_operator(value(0))) run.unclear = std::format("{} {}", written, value(0));
      [[fallthrough]];
    case Meaning::kPlacement:
      drop(kPlaced);
      break;
    case Meaning::kTool:
      drop("it concerns mpirun, which doesn't run");
      break;
  }
  return {};
}

// Whether the option's $(NAME) of the container is filled in here: the others go on to a container that has it, too.
bool is_filled_in(const Option& option) {
  return option.means == Meaning::kRanks || option.means == Meaning::kRanksPerWorker ||
         option.means == Meaning::kMapping || option.means == Meaning::kSeconds || option.means == Meaning::kHosts ||
         option.means == Meaning::kHostfile;
}

// Whether the value may be a placeholder, or the names of the workers.
bool may_be_filled_in(const Option& option, const Word& value, const Variables& variables) {
  if (option.means == Meaning::kHosts) return variables.is_host_list(value) || variables.is_placeholder(value);
  return (option.means == Meaning::kRanks || option.means == Meaning::kRanksPerWorker) &&
         variables.is_placeholder(value);
}

// Whether the value of an option must be known here, or it passes through a rank's shell, or is left out.
bool needs_value(const Option& option, std::span<const Word> values) {
  switch (option.means) {
    case Meaning::kNothing:
    case Meaning::kPlacement:
    case Meaning::kHostfile:
    case Meaning::kTool:
      return false;
    case Meaning::kExport:
    case Meaning::kEnvironment:
      return values.size() == 1 ? !shell_assignment(values[0].source.substr(values[0].source.starts_with('"')))
                                : values[0].expanded;
    case Meaning::kParameter:
      return values[0].expanded;
    default:
      return true;
  }
}

}  // namespace

bool is_mpirun(const std::string& word) {
  const std::string name = word.substr(word.rfind('/') + 1);
  return name == "mpirun" || name == "mpiexec" || name == "orterun" || name == "prterun" || name == "mpiexec.hydra" ||
         name == "mpirun.openmpi" || name == "mpiexec.openmpi" || name == "mpirun.mpich" || name == "mpiexec.mpich";
}

bool is_hostfile_option(std::string_view word) {
  word.remove_prefix(std::min(word.find_first_not_of('-'), word.size()));
  const auto option = std::ranges::find(kOptions, word, &Option::name);
  return option != kOptions.end() && option->means == Meaning::kHostfile;
}

bool is_hydra(const std::string& word) { return word.ends_with(".hydra") || word.ends_with(".mpich"); }

bool is_launch_variable(std::string_view name) {
  constexpr std::string_view kParameter = "OMPI_MCA_";
  if (name.starts_with(kParameter)) return belongs_to_mpirun(name.substr(kParameter.size()));
  constexpr auto kPrefixes =
      std::to_array<std::string_view>({"PRTE_MCA_", "PMIX_MCA_", "OMPI_ALLOW_RUN_AS_ROOT", "HYDRA_", "I_MPI_HYDRA_"});
  return std::ranges::any_of(kPrefixes, [&](std::string_view prefix) { return name.starts_with(prefix); });
}

Result<MpiRun> read_mpirun(std::span<const Word> words, const Variables& variables) {
  MpiRun run;
  std::size_t at = 0;
  while (at < words.size() && words[at].text.starts_with('-')) {
    const std::string& written = words[at].text;
    const std::string_view bare = std::string_view(written).substr(written.starts_with("--") ? 2 : 1);
    const std::string_view name = bare.substr(0, bare.find('='));
    const auto option = std::ranges::find(kOptions, name, &Option::name);
    if (option == kOptions.end() && written.contains(' '))
      return fail(ErrorCode::kInvalid,
                  std::format("mpirun's \"{}\" is one word: write the option and its value as two", written));
    if (option == kOptions.end())
      return fail(ErrorCode::kInvalid,
                  std::format("mpirun's option {} isn't known: remove it if the program needn't have it", written));
    std::vector<Word> values;
    if (name.size() < bare.size()) values.push_back(behind(words[at], written.size() - bare.size() + name.size() + 1));
    const auto is_whole = [&] {
      return values.size() == option->values ||
             (option->means == Meaning::kEnvironment && values.size() == 1 && values[0].text.contains('='));
    };
    while (!is_whole() && ++at < words.size()) values.push_back(words[at]);
    if (!is_whole()) return fail(ErrorCode::kInvalid, std::format("{} has no value", written));
    if (is_filled_in(*option))
      for (Word& value : values) value.text = variables.value(value).value_or(value.text);
    for (const Word& value : values)
      if (value.expanded && needs_value(*option, values) && !may_be_filled_in(*option, value, variables))
        return fail(ErrorCode::kInvalid,
                    std::format("{} is {}, which only a shell can expand: write its value", written, value.source));
    BSP_CHECK_OK(apply(*option, written, values, variables, run));
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
