#include "operator/arguments.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <format>
#include <optional>
#include <string_view>

#include "crds/nearest.h"

namespace bsp {

namespace option {

Option text(std::string& into) {
  return {.set = [&into](const std::string& value) {
    into = value;
    return std::string(value.empty() ? "must not be empty" : "");
  }};
}

Option flag(bool& into) {
  return {.set =
              [&into](const std::string& value) {
                into = value == "true";
                return std::string(value == "true" || value == "false" ? "" : "is true or false");
              },
          .flag = true};
}

Option number(unsigned& into, unsigned least, unsigned most) {
  return {.set = [&into, least, most](const std::string& value) -> std::string {
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), into);
    if (error == std::errc{} && end == value.data() + value.size() && into >= least && into <= most) return "";
    return std::format("is a number from {} to {}", least, most);
  }};
}

}  // namespace option

Result<std::vector<std::string>> read_arguments(std::span<const std::string> args,
                                                const std::map<std::string, Option>& options, const char* usage,
                                                const std::string& more_help) {
  auto wrong = [&](const std::string& what) { return fail(ErrorCode::kInvalid, std::format("{}\n{}", what, usage)); };
  std::vector<std::string> words;
  for (std::size_t i = 0; i < args.size(); ++i) {
    std::string name = args[i];
    if (name.size() < 2 || name.front() != '-') {
      words.push_back(name);
      continue;
    }
    std::optional<std::string> value;
    // -oyaml, unless it is all of an option's name; --output=yaml.
    const std::size_t equals = name.find('=');
    const std::size_t end = name.starts_with("--") ? equals : 2;
    if (end < name.size() && !options.contains(name)) {
      value = name.substr(end == equals ? end + 1 : end);
      name.resize(end);
    }
    const auto option = options.find(name);
    if (option == options.end() && (name == "--help" || name == "-h")) {
      std::puts(usage);
      std::fputs(more_help.c_str(), stdout);
      std::exit(0);
    }
    if (option == options.end()) {
      std::vector<std::string_view> known;
      for (const auto& [one, sets] : options) known.push_back(one);
      return wrong(std::format("unknown option {}{}", name, crds::suggestion(name, known)));
    }
    if (!value && option->second.flag) value = "true";
    if (!value && ++i < args.size()) value = args[i];
    if (!value) return wrong(std::format("{} needs a value", name));
    if (const std::string bad = option->second.set(*value); !bad.empty())
      return wrong(std::format("{}: \"{}\" {}", name, *value, bad));
  }
  return words;
}

std::string Args::get(const std::string& name, const std::string& otherwise) const {
  const auto it = options.find(name);
  return it == options.end() ? otherwise : it->second;
}

Result<Args> parse_arguments(std::span<const std::string> args, const Syntax& syntax) {
  Args out;
  std::map<std::string, Option> options;
  auto add = [&](const std::map<std::string, std::string>& named, auto option_for) {
    for (const auto& [name, field] : named) options[name] = options["--" + field] = option_for(field);
  };
  add(syntax.valued, [&](const std::string& field) {
    return Option{.set = [&out, field](const std::string& value) { return out.options[field] = value, std::string(); }};
  });
  add(syntax.flags, [&](const std::string& field) {
    return Option{.set =
                      [&out, field](const std::string& value) {
                        if (value == "true")
                          out.options[field] = value;
                        else
                          out.options.erase(field);
                        return std::string(value == "true" || value == "false" ? "" : "is true or false");
                      },
                  .flag = true};
  });
  BSP_TRY(out.words, read_arguments(args, options, syntax.usage, syntax.more_help));
  return out;
}

int told(const Error& error) {
  std::fflush(stdout);
  std::fprintf(stderr, "bsp-operator: %s\n", error.message.c_str());
  return error.code == ErrorCode::kInvalid ? 2 : 1;
}

}  // namespace bsp
