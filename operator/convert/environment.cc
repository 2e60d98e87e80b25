#include "operator/convert/environment.h"

#include <algorithm>
#include <format>
#include <nlohmann/json.hpp>

#include "base/json/fields.h"
#include "operator/convert/names.h"

namespace bsp::convert {
namespace {

using nlohmann::json;

// What mpirun passes on to the ranks: what -x names, and MPI's own parameters. What the launcher's pod or shell has put into
// the program's arguments, a rank's puts there.
bool is_passed_on(const std::string& name, const LauncherContainer& from, const Launcher& launcher) {
  const auto names_it = [&](const auto& text) { return names_variable(text, name); };
  return !is_launch_variable(name) &&
         (from.passes_everything || name.starts_with("OMPI_MCA_") ||
          std::ranges::contains(launcher.run.exported, name) ||
          std::ranges::any_of(launcher.run.program, names_it, &Word::source) ||
          std::ranges::any_of(launcher.run.environment, [&](const auto& v) { return names_it(v.second); }) ||
          std::ranges::any_of(launcher.run.assignments, [&](const auto& v) { return names_it(v.second.source); }) ||
          std::ranges::any_of(launcher.launch.steps, names_it, &Step::text));
}

void set_entry(json& env, const std::string& name, json entry) {
  entry["name"] = name;
  const auto known = std::ranges::find_if(env, [&](const json& e) { return text_at(e, "name") == name; });
  if (known != env.end())
    *known = std::move(entry);
  else
    env.push_back(std::move(entry));
}

std::string name_of(const json& entry) {
  return entry.is_object() && entry.contains("name") ? text_of(entry["name"]) : "";
}

std::string not_carried(const std::string& name) {
  return name + (is_launch_variable(name) ? " is not carried over: the operator starts and connects the ranks"
                                          : " is not carried over: mpirun passes on only what -x names");
}

}  // namespace

std::vector<std::string> carry_environment(Source& job, json& container, const std::string& container_path,
                                           const LauncherContainer& from, const Launcher& launcher) {
  json env = json::array();
  const json& own = part_at(container, "env");
  for (std::size_t i = 0; own.is_array() && i < own.size(); ++i)
    if (is_launch_variable(name_of(own[i])))
      job.note(std::format("{}.env[{}]", container_path, i), not_carried(name_of(own[i])));
    else
      env.push_back(own[i]);
  const json& launchers = part_at(from.container, "env");
  for (std::size_t i = 0; !from.is_template && launchers.is_array() && i < launchers.size(); ++i) {
    const json& entry = launchers[i];
    const std::string name = name_of(entry);
    if (!name.empty() && is_passed_on(name, from, launcher))
      set_entry(env, name, entry);
    else if (!std::ranges::contains(env, entry) && !std::ranges::contains(own, entry))
      job.note(std::format("{}.env[{}]", from.path, i), not_carried(name));
  }
  std::vector<std::string> in_shell;
  for (const auto& [name, variable] : launcher.launch.variables.script) {
    const bool passes = variable.exported && (from.passes_everything || name.starts_with("OMPI_MCA_"));
    if (is_launch_variable(name)) continue;
    if (!passes && !std::ranges::contains(launcher.run.exported, name)) {
      if (variable.exported) job.note(launcher.path, not_carried(name));
    } else if (variable.text && !launcher.launch.is_set_up) {
      set_entry(env, name, {{"value", *variable.text}});
    } else {
      in_shell.push_back(name);
    }
  }
  for (const auto& [name, value] : launcher.run.environment)  // NAME=$(NAME) is the launcher's own
    if (value != "$(" + name + ")") set_entry(env, name, {{"value", value}});
  if (env.empty())
    container.erase("env");
  else
    container["env"] = std::move(env);
  return in_shell;
}

}  // namespace bsp::convert
