#include "sim/workload.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <format>

#include "crds/nearest.h"

namespace bsp::sim {
namespace {

// "name, name (value), name": an application's parameters and their defaults.
std::string parameters_of(const Application& application) {
  std::string text;
  for (const Parameter& parameter : application.parameters)
    text += std::format("{}{}{}", text.empty() ? "" : ", ", parameter.name,
                        parameter.value.empty() ? "" : std::format(" ({})", parameter.value));
  return text.empty() ? "it has no parameters" : "its parameters (with defaults): " + text;
}

Result<std::map<std::string, std::string>> read_parameters(const Application& application, std::string_view text) {
  std::map<std::string, std::string> values;
  std::vector<std::string_view> known;
  for (const Parameter& parameter : application.parameters) known.push_back(parameter.name);
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    const std::size_t equals = part.find('=');
    const std::string name(part.substr(0, equals));
    if (equals == std::string_view::npos)
      return fail(ErrorCode::kInvalid,
                  std::format("--application: {}: \"{}\" has no '='; write {}:NAME=VALUE,…; {}", application.name, part,
                              application.name, parameters_of(application)));
    if (std::ranges::find(known, name) == known.end())
      return fail(ErrorCode::kInvalid, std::format("--application: {} has no parameter {}{}; {}", application.name,
                                                   name, crds::suggestion(name, known), parameters_of(application)));
    if (!values.emplace(name, part.substr(equals + 1)).second)
      return fail(ErrorCode::kInvalid, std::format("--application: {}: {} is given twice", application.name, name));
  }
  for (const Parameter& parameter : application.parameters) {
    const auto [value, not_given] = values.emplace(parameter.name, parameter.value);
    if (value->second.empty())
      return fail(ErrorCode::kInvalid,
                  std::format("--application: {} needs {}: {}; write {}:{}=VALUE", application.name, parameter.name,
                              parameter.meaning, application.name, parameter.name));
  }
  return values;
}

template <class Number>
Result<Number> number_between(const std::string& where, const std::string& text, Number least, Number most) {
  Number value{};
  const auto end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec != std::errc{} || read.ptr != end || !(value >= least && value <= most))
    return fail(ErrorCode::kInvalid, std::format("--application: {} must be a {}number from {} to {}, is \"{}\"", where,
                                                 std::is_integral_v<Number> ? "whole " : "", least, most, text));
  return value;
}

}  // namespace

Result<double> Parameters::number(const std::string& name, double least, double most) const {
  return number_between<double>(application_ + ":" + name, text(name), least, most);
}

Result<std::uint64_t> Parameters::whole(const std::string& name, std::uint64_t least, std::uint64_t most) const {
  return number_between<std::uint64_t>(application_ + ":" + name, text(name), least, most);
}

std::string describe(std::span<const Application> table) {
  std::string text = "applications:\n";
  for (const Application& application : table) {
    text += std::format("  {:<18} {}\n", application.name, application.summary);
    for (const Parameter& parameter : application.parameters)
      text += std::format("    {:<24} {}\n",
                          parameter.value.empty() ? std::format("{}=…", parameter.name)
                                                  : std::format("{}={}", parameter.name, parameter.value),
                          parameter.meaning);
  }
  return text;
}

Result<std::unique_ptr<Workload>> make_workload(std::span<const Application> table, std::string_view choice,
                                                std::uint32_t ranks) {
  const std::string_view name = choice.substr(0, choice.find(':'));
  const auto found = std::ranges::find(table, name, &Application::name);
  if (found == table.end()) {
    std::vector<std::string_view> known;
    for (const Application& application : table) known.push_back(application.name);
    return fail(ErrorCode::kInvalid,
                std::format("--application: unknown application \"{}\"{}", name, crds::suggestion(name, known)));
  }
  BSP_TRY(auto values, read_parameters(*found, choice.substr(std::min(name.size() + 1, choice.size()))));
  return found->make(ranks, Parameters(std::string(name), std::move(values)));
}

}  // namespace bsp::sim
