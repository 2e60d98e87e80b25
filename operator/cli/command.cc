#include "operator/cli/command.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>

#include "crds/nearest.h"
#include "operator/cli/exit_code.h"

namespace bsp::cli {
namespace {

constexpr std::size_t kNameColumns = 30;
constexpr std::size_t kColumns = 110;

std::string wrapped(const std::string& text, std::size_t columns) {
  std::string out;
  std::size_t used = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    if (used > 0 && used + 1 + end - at > columns) {
      out += '\n';
      used = 0;
    } else if (used > 0) {
      out += ' ';
      ++used;
    }
    out.append(text, at, end - at);
    used += end - at;
    at = end + 1;
  }
  return out;
}

// CLI11's lines, without its remarks about types and defaults.
class Lines : public CLI::Formatter {
 public:
  Lines() {
    column_width(kNameColumns);
    label("Positionals", "Arguments");
  }
  std::string make_option_opts(const CLI::Option* option) const override { return option->get_option_text(); }
  std::string make_option_desc(const CLI::Option* option) const override {
    return wrapped(option->get_description(), kColumns - kNameColumns);
  }
};

struct Entry {
  std::string name;   // the first
  std::string value;  // "" for flags and arguments
  Setter set;
  CLI::Option* option = nullptr;
  bool required = false;
};

}  // namespace

struct Command::Impl {
  Impl(std::string purpose, std::string name) : app(std::move(purpose), std::move(name)) {
    app.allow_extras();
    app.formatter(std::make_shared<Lines>());
    app.set_help_flag("-h,--help", "print this help");
  }

  CLI::App app;
  std::deque<Entry> entries;          // callbacks refer to its elements
  std::string mistake;                // the first value that a setter refused
  const CLI::Option* rest = nullptr;  // see Command::rest
  std::vector<std::string>* rest_into = nullptr;

  Entry& add(const std::string& name, Setter set) {
    return entries.emplace_back(name.substr(0, name.find(',')), "", std::move(set));
  }

  [[nodiscard]] CLI::callback_t callback(const Entry& entry) {
    return [this, &entry](const CLI::results_t& values) {
      const std::string& value = values.back();
      if (const std::string must = entry.set(value); !must.empty() && mistake.empty())
        mistake = std::format("{} \"{}\": {}", entry.name, value, must);
      return true;
    };
  }

  // "usage: bsp-operator local migrate RANK [OPTION…]"
  [[nodiscard]] std::string usage() const {
    std::string arguments, required, optional;
    for (const Entry& e : entries) {
      if (e.option->get_positional())
        arguments += e.required ? " " + e.name : " [" + e.name + "]";
      else if (e.required)
        required += " " + e.name + " " + e.value;
      else
        optional = " [OPTION…]";
    }
    return "usage: " + app.get_name() + arguments + required + optional;
  }

  [[nodiscard]] std::string help() const {
    const auto lines = app.get_formatter();
    return usage() + "\n" + wrapped(app.get_description(), kColumns) + "\n" +
           dynamic_cast<const Lines&>(*lines).make_positionals(&app) +
           dynamic_cast<const Lines&>(*lines).make_groups(&app, CLI::AppFormatMode::Normal) + app.get_footer();
  }

  [[nodiscard]] std::string unexpected(const std::string& word) const {
    if (word.size() < 2 || word.front() != '-') return std::format("unexpected argument \"{}\"", word);
    const std::string name = word.substr(0, word.find('='));
    std::vector<std::string> known;
    for (const CLI::Option* option : app.get_options()) {
      for (const std::string& one : option->get_snames()) known.push_back("-" + one);
      for (const std::string& one : option->get_lnames()) known.push_back("--" + one);
    }
    return std::format("unknown option {}{}", name, crds::suggestion(name, {known.begin(), known.end()}));
  }

  // CLI11 takes the word after "--name=" for its value, and "=VALUE" for that of "-o=VALUE". So give it the value as a
  // word of its own.
  [[nodiscard]] std::vector<std::string> separated(std::span<const std::string> words) const {
    std::vector<std::string> out;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::string& word = words[i];
      const std::size_t equals = word.find('=');
      const std::string name = word.substr(0, equals);
      const CLI::Option* const option = name.starts_with('-') ? app.get_option_no_throw(name) : nullptr;
      const bool has_value = equals != std::string::npos;
      const bool takes_value = option != nullptr && option->get_items_expected_max() > 0;
      if (option != nullptr && has_value && takes_value) {
        out.insert(out.end(), {name, word.substr(equals + 1)});
      } else if (option != nullptr && has_value && !option->get_lnames().empty()) {
        out.push_back("--" + option->get_lnames().front() + word.substr(equals));
      } else {
        out.push_back(word);
        if (takes_value && i + 1 < words.size()) out.push_back(words[++i]);
      }
    }
    return out;
  }

  // How many of the words come before the rest.
  [[nodiscard]] std::size_t before_rest(std::span<const std::string> words) const {
    auto arguments = static_cast<std::size_t>(std::ranges::count_if(
        entries, [this](const Entry& e) { return e.option->get_positional() && e.option != rest; }));
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (words[i].starts_with('-')) {
        const CLI::Option* const option = app.get_option_no_throw(words[i]);
        if (option != nullptr && option->get_items_expected_max() > 0) ++i;
      } else if (arguments-- == 0) {
        return i;
      }
    }
    return words.size();
  }

  // What is wrong with the words; "" if nothing is.
  [[nodiscard]] std::string read(std::span<const std::string> words) {
    if (rest != nullptr) {
      const std::size_t before = before_rest(words);
      rest_into->assign(words.begin() + static_cast<std::ptrdiff_t>(before), words.end());
      words = words.first(before);
    }
    std::vector<std::string> reversed = separated(words);
    std::ranges::reverse(reversed);
    try {
      app.parse(std::move(reversed));
    } catch (const CLI::CallForHelp&) {
      std::fputs(help().c_str(), stdout);
      std::exit(ended(kDone, app.get_name().c_str()));
    } catch (const CLI::ArgumentMismatch&) {
      return words.back() + " needs a value";  // only the last word can lack one
    } catch (const CLI::ParseError& error) {
      return error.what();
    }
    if (const auto left = app.remaining(); !left.empty()) return unexpected(left.front());
    if (!mistake.empty()) return mistake;
    for (const Entry& e : entries)
      if (e.required && e.option->count() == 0)
        return std::format("{} is missing: {}", e.name, e.option->get_description());
    return "";
  }
};

Command::Command(std::string name, std::string purpose)
    : impl_(std::make_unique<Impl>(std::move(purpose), std::move(name))) {}

Command::~Command() = default;

Command::Declared Command::option(const std::string& names, const std::string& value, const std::string& help,
                                  Setter set) {
  Entry& entry = impl_->add(names, std::move(set));
  entry.value = value;
  entry.option = impl_->app.add_option(names, impl_->callback(entry), help)->expected(1)->take_last();
  entry.option->option_text(" " + value);
  return {&entry.required};
}

Command::Declared Command::text(const std::string& names, const std::string& value, const std::string& help,
                                std::string& into) {
  return option(names, value, help, [&into](const std::string& given) -> std::string {
    into = given;
    return given.empty() ? "must not be empty" : "";
  });
}

void Command::flag(const std::string& names, const std::string& help, bool& into) {
  Entry& entry = impl_->add(names, one_of(into, {{"true", true}, {"false", false}}));
  entry.option = impl_->app.add_option(names, impl_->callback(entry), help)->expected(0)->take_last();
}

Command::Declared Command::argument(const std::string& name, const std::string& help, Setter set) {
  Entry& entry = impl_->add(name, std::move(set));
  entry.option = impl_->app.add_option(name, impl_->callback(entry), help)->expected(1)->take_last();
  return {&entry.required};
}

Command::Declared Command::argument(const std::string& name, const std::string& help, std::string& into) {
  return argument(name, help, [&into](const std::string& given) -> std::string {
    into = given;
    return given.empty() ? "must not be empty" : "";
  });
}

void Command::arguments(const std::string& name, const std::string& help, std::vector<std::string>& into) {
  Entry& entry = impl_->add(name + "…", {});
  entry.option = impl_->app.add_option(
      name,
      [&into](const CLI::results_t& values) {
        into = values;
        return true;
      },
      help);
  entry.option->expected(0, CLI::detail::expected_max_vector_size)->allow_extra_args();
}

void Command::rest(const std::string& name, const std::string& help, std::vector<std::string>& into) {
  arguments(name, help, into);
  impl_->rest = impl_->entries.back().option;
  impl_->rest_into = &into;
}

void Command::footer(const std::string& text) { impl_->app.footer(text); }

Result<void> Command::parse(std::span<const std::string> words) {
  if (const std::string what = impl_->read(words); !what.empty()) return wrong(what);
  return {};
}

std::unexpected<Error> Command::wrong(const std::string& what) const {
  return fail(ErrorCode::kInvalid,
              std::format("{}\n{}\n{} --help lists all options", what, impl_->usage(), impl_->app.get_name()));
}

}  // namespace bsp::cli
