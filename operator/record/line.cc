#include "operator/record/line.h"

#include <cmath>
#include <format>
#include <nlohmann/json.hpp>

#include "base/json/bounded.h"
#include "crds/names.h"
#include "crds/reflect.h"
#include "operator/record/reader.h"
#include "operator/record/writer.h"

namespace bsp::record {
namespace {

using nlohmann::json;

constexpr std::string_view kSchemaField = "schema";
constexpr std::string_view kRemedy =
    "; the line is not as bsp-operator writes it: take it out, or record the run again";
constexpr std::size_t kDeepest = 16;
// Grid entries per byte of a line: a rank that received nothing new in a superstep still has a time in it, and a cell
// for every Set.
constexpr std::size_t kCellsPerByte = 64, kCellsOfAnyLine = 1 << 16;

// JSON's words where a manifest's would be vague.
std::string_view type_name(const json& j) {
  if (j.is_null()) return "null";
  if (j.is_number_integer() && !j.is_number_unsigned()) return "a negative number";
  return reflect::type_name(j);
}

Result<void> check_schema(const json& j) {
  const auto schema = j.find(kSchemaField);
  if (schema == j.end())
    return fail(ErrorCode::kInvalid, std::format("schema: is required; a recorded call begins with {{\"schema\":\"{}\"",
                                                 names::kRecordSchema));
  if (*schema == names::kRecordSchema) return {};
  const std::string name =
      schema->is_string() ? std::format("\"{}\"", schema->get<std::string>()) : std::string(type_name(*schema));
  return fail(ErrorCode::kInvalid,
              std::format("schema: is {}, and this bsp-operator reads {}; use the one that wrote it, or a newer one",
                          name, names::kRecordSchema));
}

}  // namespace

// Escaped for JSON; invalid UTF-8 (in a tool's message) is replaced.
void Writer::write_text(std::string_view text) {
  out_ += json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

void Reader::wrong(const Path& at, std::string_view wanted, const json& j) {
  refuse(at, std::format("must be {}, not {}", wanted, type_name(j)));
}

void Reader::finish(const json& object, const std::vector<std::string_view>& known, const Path& at) {
  if (failed()) return;
  for (const auto& [name, value] : object.items())
    if (std::ranges::find(known, name) == known.end())
      return refuse({&at, name}, "unknown field" + crds::suggestion(name, known));
}

void Reader::read_number(const json& j, double& out, const Path& at) {
  if (j.is_number()) {
    out = j.get<double>();
  } else if (j == "Infinity") {
    out = std::numeric_limits<double>::infinity();
  } else if (j == "-Infinity") {
    out = -std::numeric_limits<double>::infinity();
  } else if (j == "NaN") {
    out = std::numeric_limits<double>::quiet_NaN();
  } else {
    wrong(at, "a number", j);
  }
}

// The field "schema", which has no member, comes first.
std::string to_line(const Call& call) {
  std::string line = std::format("{{\"{}\":\"{}\"", kSchemaField, names::kRecordSchema);
  Writer writer(line);
  writer.write_fields(call);
  line += '}';
  return line;
}

Result<Call> from_line(std::string_view line) {
  // A record is as large as its job, but flat.
  if (const JsonSize size = measure(line); size.depth > kDeepest)
    return fail(ErrorCode::kInvalid,
                std::format("JSON has {} levels, more than the limit of {}{}", size.depth, kDeepest, kRemedy));
  json j;
  try {
    j = json::parse(line);
  } catch (const json::parse_error& error) {
    if (error.byte > line.size())
      return fail(ErrorCode::kInvalid,
                  std::format("not valid JSON: the line was cut after {} bytes; take it out", line.size()));
    return fail(ErrorCode::kInvalid,
                std::format("not valid JSON at byte {} of {}{}", error.byte, line.size(), kRemedy));
  } catch (const json::exception&) {  // a number that overflows a double
    return fail(ErrorCode::kInvalid, std::format("a number is out of range{}", kRemedy));
  }
  if (!j.is_object())
    return fail(ErrorCode::kInvalid, std::format("must be an object, not {}{}", type_name(j), kRemedy));
  BSP_CHECK_OK(check_schema(j));
  Call call;
  Reader reader(kCellsPerByte * line.size() + kCellsOfAnyLine);
  reader.read_fields(j, call, Path{}, {kSchemaField});
  if (!reader.problem().empty()) return fail(ErrorCode::kInvalid, reader.problem() + std::string(kRemedy));
  if (auto good = validate(call); !good) return fail(ErrorCode::kInvalid, good.error().message + std::string(kRemedy));
  return call;
}

}  // namespace bsp::record
