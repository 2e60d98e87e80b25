#include "operator/arguments.h"

#include <cstdio>
#include <format>
#include <string_view>

#include "crds/nearest.h"

namespace bsp {

std::string Args::get(const std::string& name, const std::string& otherwise) const {
  const auto it = options.find(name);
  return it == options.end() ? otherwise : it->second;
}

Result<Args> parse_arguments(std::span<const std::string> args, const Syntax& syntax) {
  std::map<std::string, std::string> valued = syntax.valued, flags = syntax.flags;
  for (auto* map : {&valued, &flags})
    for (const auto& [name, field] : std::map(*map)) map->emplace("--" + field, field);
  auto wrong = [&](const std::string& what) { return fail(ErrorCode::kInvalid, std::format("{}\n{}", what, syntax.usage)); };
  Args out;
  for (std::size_t i = 0; i < args.size(); ++i) {
    std::string name = args[i];
    if (name.size() < 2 || name.front() != '-') {
      out.words.push_back(name);
      continue;
    }
    if (const auto flag = flags.find(name); flag != flags.end()) {
      out.options[flag->second] = "true";
      continue;
    }
    std::string value;
    const std::size_t equals = name.starts_with("--") ? name.find('=') : std::string::npos;
    if (equals != std::string::npos) {
      value = name.substr(equals + 1);
      name.resize(equals);
    } else if (!name.starts_with("--") && name.size() > 2 && valued.contains(name.substr(0, 2))) {
      value = name.substr(2);  // -oyaml
      name.resize(2);
    }
    const auto option = valued.find(name);
    if (option == valued.end()) {
      std::vector<std::string_view> known;
      for (const auto* map : {&valued, &flags})
        for (const auto& [option_name, field] : *map) known.push_back(option_name);
      return wrong(std::format("unknown option {}{}", name, crds::suggestion(name, known)));
    }
    if (value.empty() && equals == std::string::npos) {
      if (++i == args.size()) return wrong(std::format("{} needs a value", name));
      value = args[i];
    }
    out.options[option->second] = value;
  }
  return out;
}

int told(const Error& error) {
  std::fflush(stdout);
  std::fprintf(stderr, "bsp-operator: %s\n", error.message.c_str());
  return error.code == ErrorCode::kInvalid ? 2 : 1;
}

}  // namespace bsp
