#include "operator/convert/launcher.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <format>
#include <nlohmann/json.hpp>

#include "base/json/fields.h"
#include "operator/convert/commands.h"

namespace bsp::convert {
namespace {

using nlohmann::json;

constexpr std::string_view kDollar = "${DOLLAR}";  // how templates keep a shell's $ from envsubst

Result<std::vector<std::string>> words_of(const Source& job, const json& container, const std::string& path,
                                          const char* field) {
  std::vector<std::string> words;
  const json& list = part_at(container, field);
  if (list.is_null()) return words;
  if (!list.is_array()) return job.wrong(path + "." + field, "must be a list");
  for (const json& word : list) words.push_back(text_of(word));
  return words;
}

std::map<std::string, std::optional<std::string>> environment_of(const json& container) {
  std::map<std::string, std::optional<std::string>> all;
  for (const json& entry : part_at(container, "env")) {
    const json& value = part_at(entry, "value");
    const std::string name = text_at(entry, "name");
    const bool is_known = value.is_string() && !value.get<std::string>().contains("$(");
    if (!name.empty()) all[name] = is_known ? std::optional(value.get<std::string>()) : std::nullopt;
  }
  return all;
}

bool has_option_letter(const std::vector<std::string>& words, std::size_t end, char letter) {
  return std::any_of(words.begin() + 1, words.begin() + static_cast<std::ptrdiff_t>(end), [&](const std::string& word) {
    return word.starts_with('-') && !word.starts_with("--") && word.contains(letter);
  });
}

// 90, 1.5m, 2h, as timeout reads it.
std::optional<std::uint32_t> seconds_of(const std::string& duration) {
  double value = 0;
  const auto [end, error] = std::from_chars(duration.data(), duration.data() + duration.size(), value);
  const std::string_view unit(end, static_cast<std::size_t>(duration.data() + duration.size() - end));
  const double times = unit.empty() || unit == "s" ? 1
                       : unit == "m"               ? 60
                       : unit == "h"               ? 3600
                       : unit == "d"               ? 86400
                                                   : 0;
  const double seconds = std::ceil(value * times);
  if (error != std::errc() || !(seconds >= 1 && seconds < 0x1p31)) return std::nullopt;
  return static_cast<std::uint32_t>(seconds);
}

}  // namespace

bool is_shell(const std::string& word) {
  const std::string name = base_name(word);
  return name == "sh" || name == "bash" || name == "ash" || name == "dash";
}

std::size_t script_place(const std::vector<std::string>& words) {
  bool is_script = false;
  std::size_t at = 1;
  for (; at < words.size() && (words[at].starts_with('-') || words[at].starts_with('+')); ++at) {
    if (words[at].starts_with("--")) continue;
    is_script = is_script || (words[at].starts_with('-') && words[at].contains('c'));
    if ((words[at].ends_with('o') || words[at].ends_with('O')) && at + 1 < words.size()) ++at;
  }
  return is_script ? at : words.size();
}

Result<Launcher> read_launcher(Source& job, const json& container, const std::string& container_path,
                               const Count& hosts, std::size_t run_place) {
  BSP_TRY(std::vector<std::string> words, words_of(job, container, container_path, "command"));
  BSP_TRY(const std::vector<std::string> arguments, words_of(job, container, container_path, "args"));
  const std::size_t commands = words.size();
  words.insert(words.end(), arguments.begin(), arguments.end());
  Launcher result;
  result.path = container_path + (commands == 0 ? ".args" : ".command");
  if (words.empty())
    return job.wrong(container_path + ".command",
                     "is missing: without mpirun and its program there is nothing to convert");
  Variables variables(environment_of(container), hosts.is_known() ? hosts.number : 0);
  Result<Launch> launch;
  if (is_shell(words[0])) {
    const std::size_t script = script_place(words);
    if (script >= words.size())
      return job.wrong(result.path,
                       "starts a shell without a command line (-c \"mpirun ...\"): write mpirun and the program here");
    result.path = container_path + (script >= commands ? ".args" : ".command");
    const bool is_login = has_option_letter(words, script, 'l') || std::ranges::contains(words, "--login");
    result.shell = {words[0], is_login ? "-lc" : "-c"};
    std::string text = words[script];
    for (std::size_t at = 0; (at = text.find(kDollar, at)) != std::string::npos; ++at)
      text.replace(at, kDollar.size(), "$");
    if (text != words[script])
      job.note(result.path, "${DOLLAR} is written as $: envsubst would replace what follows it");
    launch = read_script(text, has_option_letter(words, script, 'e'), std::move(variables), run_place);
  } else {
    launch = read_plain(words, std::move(variables));
  }
  if (!launch) return job.wrong(result.path, launch.error().message);
  result.launch = std::move(*launch);
  auto run = read_mpirun(result.launch.words, result.launch.variables);
  if (!run) return job.wrong(result.path, run.error().message);
  result.run = std::move(*run);
  if (const std::string& timeout = result.launch.timeout; !timeout.empty()) {
    const auto seconds = seconds_of(timeout);
    if (!seconds) return job.wrong(result.path, std::format("timeout is \"{}\": write a number of seconds", timeout));
    result.run.seconds = std::min(result.run.seconds.value_or(*seconds), *seconds);
  }
  for (const std::string& note : result.launch.notes) job.note(result.path, note);
  for (const auto& [option, why] : result.run.dropped)
    job.note(result.path, std::format("{} is not carried over: {}", option, why));
  return result;
}

}  // namespace bsp::convert
