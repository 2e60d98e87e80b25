#include <nlohmann/json.hpp>

#include <charconv>
#include <filesystem>
#include <format>
#include <regex>

#include "base/core/read_file.h"
#include "crds/nearest.h"
#include "sim/child.h"
#include "sim/inside.h"
#include "sim/platform.h"

namespace bsp::sim {
namespace {

using nlohmann::json;

template <class Number>
Result<Number> number_of(const std::string& text, const std::string& where, const std::string& rule) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec != std::errc{} || read.ptr != end || !(value >= 0))
    return fail(ErrorCode::kInvalid, std::format("{} is \"{}\"; write {}", where, text, rule));
  return value;
}

// The property, or `otherwise` if it isn't set.
template <class Number>
Result<Number> property(const json& properties, const std::string& name, Number otherwise, const std::string& whose,
                        const std::string& rule) {
  if (!properties.contains(name)) return otherwise;
  return number_of<Number>(properties.at(name).get<std::string>(), std::format("{}: property {}", whose, name), rule);
}

// RANKS=SECONDS,…
Result<std::vector<CallCost::Point>> call_points(const std::string& text, const std::string& whose) {
  const std::string rule = "RANKS=SECONDS,… with increasing numbers of ranks, for example 10=0.33,50=0.79";
  std::vector<CallCost::Point> points;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin), where = whose + ": property call";
    const std::size_t equals = std::min(part.find('='), part.size());
    BSP_TRY(const auto ranks, number_of<std::uint32_t>(part.substr(0, equals), where, rule));
    BSP_TRY(const double seconds, number_of<double>(part.substr(std::min(equals + 1, part.size())), where, rule));
    points.push_back({ranks, seconds});
    begin = end + 1;
  }
  return points;
}

Result<void> add_host(const json& host, const std::string& file, Set& set) {
  const std::string name = host.at("name");
  const std::string whose = std::format("{}: host {}", file, name);
  const json& properties = host.at("properties");
  Node node{.name = name, .speed = host.at("speed"), .host = name};
  const std::vector<std::string_view> known{"slots", "load"};  // other names may belong to other tools
  for (const auto& [key, value] : properties.items())
    if (const std::string meant = crds::nearest(key, known); !meant.empty() && meant != key)
      return fail(ErrorCode::kInvalid, std::format("{}: property {}; did you mean {}?", whose, key, meant));
  BSP_TRY(node.load, property(properties, "load", 0.0, whose, "a share of at least 0 and below 1"));
  BSP_TRY(node.slots, property(properties, "slots", 0u, whose, "a number of ranks; 0: any number"));
  const int cores = host.at("cores");
  if (cores == 1) {
    set.nodes.push_back(std::move(node));
    return {};
  }
  if (properties.contains("slots"))
    return fail(ErrorCode::kInvalid,
                std::format("{} has {} cores, each with one slot; remove the property slots", whose, cores));
  node.slots = 1;
  for (int core = 0; core < cores; ++core) {
    node.name = std::format("{}-{}", name, core);
    set.nodes.push_back(node);
  }
  return {};
}

std::string without_comments(std::string text) {
  for (std::size_t from = text.find("<!--"); from != std::string::npos; from = text.find("<!--", from))
    text.erase(from, std::min(text.find("-->", from), text.size() - 3) + 3 - from);
  return text;
}

// The simulation doesn't support changes over time: it simulates a superstep once for each mapping, and the decision
// knows one speed of each node.
Result<void> check_nothing_changes(const std::string& path, const std::string& text) {
  for (const char* what : {"speed_file", "state_file", "availability_file", "bandwidth_file", "latency_file", "<trace"})
    if (text.find(what) != std::string::npos)
      return fail(
          ErrorCode::kInvalid,
          std::format("--platform {}: {} is not supported, because hosts and links can't change during a simulation; "
                      "remove it, and describe external load by the host's property load",
                      path, what));
  return {};
}

std::vector<std::string> matches(const std::string& text, const std::string& pattern) {
  const std::regex quoted(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator m(text.begin(), text.end(), quoted), end; m != end; ++m) found.push_back((*m)[1]);
  return found;
}

// SimGrid reports a route from or to an unknown place by a list of all hosts and routers, without the place. "": the
// message isn't that list, or every end is known.
std::string unknown_end_of_route(const std::string& text, const std::string& message) {
  const std::size_t list = message.find(": '");
  if (list == std::string::npos) return "";
  const std::vector<std::string> places = matches(message.substr(list), "'([^']*)'");
  const std::vector<std::string> ids = matches(text, R"(\bid=["']([^"']*)["'])");
  std::vector<std::string_view> known(places.begin(), places.end());
  known.insert(known.end(), ids.begin(), ids.end());
  for (const char* end : {"gw_src", "gw_dst", "src", "dst"})
    for (const std::string& name : matches(text, std::format(R"(\b{}=["']([^"']*)["'])", end))) {
      if (std::ranges::find(known, name) != known.end()) continue;
      const std::string meant = crds::nearest(name, known);
      return std::format("{}=\"{}\" is no host, router or zone of it{}", end, name,
                         meant.empty() ? "" : std::format("; did you mean {}?", meant));
    }
  return "";
}

Result<json> described(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    return fail(
        ErrorCode::kNotFound,
        std::format("--platform: {}; write a SimGrid platform file (examples/platform.xml is one), or use --pools",
                    std::filesystem::exists(path, error) ? path + " is not a file" : path + " does not exist"));
  BSP_TRY(const std::string written, read_file(path));
  const std::string xml = without_comments(written);
  BSP_CHECK_OK(check_nothing_changes(path, xml));
  BSP_TRY(Child child, Child::start([&path](int channel) {
            const std::string text = describe_platform_file(path);
            const std::uint64_t size = text.size();
            if (write_fully(channel, std::as_bytes(std::span(&size, 1))))
              write_fully(channel, std::as_bytes(std::span(text)));
          }));
  auto text = child.read_all();
  if (!text) {
    const std::string& message = text.error().message;
    const std::string unknown = unknown_end_of_route(xml, message);
    return fail(ErrorCode::kInvalid, std::format("--platform {}: {} (for a working example, see examples/platform.xml)",
                                                 path, unknown.empty() ? message : unknown));
  }
  json file = json::parse(*text);
  if (file.contains("unusable"))
    return fail(ErrorCode::kInvalid, std::format("--platform {}: {}", path, file.at("unusable").get<std::string>()));
  return file;
}

}  // namespace

Result<Platform> read_platform_file(const std::string& path) {
  BSP_TRY(const json file, described(path));
  Platform platform;
  platform.file = path;
  const std::size_t sets = file.at("sets").size();
  if (sets == 0)
    return fail(ErrorCode::kInvalid,
                std::format("--platform {}: it has no hosts: add a <cluster>, or a <host> for each node (for a working "
                            "example, see examples/platform.xml)",
                            path));
  platform.file_T = decide::Grid<double>(sets, sets);
  for (std::size_t a = 0; a < sets; ++a) {
    const json& from = file.at("sets").at(a);
    Set& set = platform.sets.emplace_back();
    set.name = from.at("name");
    for (const json& host : from.at("hosts")) BSP_CHECK_OK(add_host(host, path, set));
    for (std::size_t b = 0; b < sets; ++b) platform.file_T[a, b] = file.at("T").at(a).at(b);
  }
  const json& properties = file.at("properties");
  const std::string seconds = "seconds of at least 0";
  BSP_TRY(platform.mig_seconds, property(properties, "mig", 0.0, path, seconds));
  BSP_TRY(platform.barrier.constant, property(properties, "barrier", 0.0, path, seconds));
  BSP_TRY(platform.barrier.per_outsider, property(properties, "barrier_per_outsider", 0.0, path, seconds));
  if (properties.contains("call")) {
    BSP_TRY(platform.call.points, call_points(properties.at("call").get<std::string>(), path));
  }
  if (auto valid = validate(platform); !valid) return std::unexpected(valid.error().in(path));
  return platform;
}

}  // namespace bsp::sim
