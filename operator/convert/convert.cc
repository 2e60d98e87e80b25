#include "operator/convert/convert.h"

#include <algorithm>
#include <format>
#include <nlohmann/json.hpp>

#include "base/json/fields.h"
#include "base/json/yaml.h"
#include "operator/convert/kinds.h"
#include "operator/convert/mpijob.h"
#include "operator/convert/placeholders.h"
#include "operator/convert/source.h"

namespace bsp::convert {
namespace {

using nlohmann::json;

// The objects of a file, and of texts within them.
class File {
 public:
  explicit File(std::string_view name) : name_(name) {}

  Result<Converted> convert(std::string_view text) {
    const auto done = read(text, "", 0);
    if (done && jobs_ == 0)
      return fail(
          ErrorCode::kInvalid,
          std::format("{} holds no MPIJob, nor a Job of Volcano or a TrainJob that runs MPI: kind must be one of them",
                      name_));
    if (!done) return fail(done.error().code, placeholders_.show(done.error().message));
    converted_.yaml = placeholders_.show(converted_.yaml);
    for (auto* list : {&converted_.notes, &converted_.rebuild})
      for (std::string& note : *list) note = placeholders_.show(note);
    return std::move(converted_);
  }

 private:
  // `within`: the field that holds the text, if it is one of an object.
  Result<void> read(std::string_view text, const std::string& within, int lines_before) {
    std::vector<YamlLines> lines;
    std::vector<Placeholders::Note> notes;
    const auto documents = placeholders_.read(text, &lines, notes);
    if (!documents)
      return fail(ErrorCode::kInvalid, std::format("{}:{}: {}{}{}", name_, documents.error().line + lines_before,
                                                   within, within.empty() ? "" : ": ", documents.error().message));
    for (const Placeholders::Note& note : notes)
      converted_.notes.push_back(std::format("{}:{}: {}", name_, note.line + lines_before, note.text));
    for (std::size_t i = 0; i < documents->size(); ++i) {
      const json& document = (*documents)[i];
      const json& items = part_at(document, "items");
      const bool is_list = text_at(document, "kind").ends_with("List") && items.is_array();
      if (!is_list) BSP_CHECK_OK(add(document, {lines[i], name_, "", within, lines_before}, *documents));
      for (std::size_t item = 0; is_list && item < items.size(); ++item)
        BSP_CHECK_OK(
            add(items[item], {lines[i], name_, std::format("items[{}].", item), within, lines_before}, *documents));
    }
    return {};
  }

  Result<void> add(const json& object, const Source::Place& place, const std::vector<json>& file) {
    Source source(object, place);
    BSP_TRY(const bool is_job, as_mpi_job(source, file));
    if (is_job) {
      ++jobs_;
      BSP_TRY(const std::vector<json> converted, convert_job(source, placeholders_));
      for (const json& job : converted) print(job);
      append(converted_.notes, source.notes);
      append(converted_.rebuild, source.rebuild);
      return {};
    }
    if (!place.text.empty()) return {};
    const int before = jobs_;
    BSP_CHECK_OK(add_texts(object, "", source, place));
    if (jobs_ == before) print(object);
    return {};
  }

  // An Argo Workflow's step, or a ConfigMap, holds a manifest as text.
  Result<void> add_texts(const json& value, const std::string& path, Source& source, const Source::Place& place) {
    if (value.is_object())
      for (const auto& [name, part] : value.items())
        BSP_CHECK_OK(add_texts(part, path.empty() ? name : path + "." + name, source, place));
    if (value.is_array())
      for (std::size_t i = 0; i < value.size(); ++i)
        BSP_CHECK_OK(add_texts(value[i], std::format("{}[{}]", path, i), source, place));
    if (!value.is_string() || !may_hold_job(value.get<std::string>())) return {};
    const std::string field = place.prefix + path;
    const auto line = place.lines.find(field);
    const int before = jobs_;
    // A block's text begins on the line behind its key's.
    BSP_CHECK_OK(read(value.get<std::string>(), field, line == place.lines.end() ? 0 : line->second));
    if (jobs_ == before) return {};
    const bool is_workflow = path.ends_with(".manifest");
    converted_.notes.push_back(std::format(
        "{}: the text of {} {} holds the job: put the BSPJob there{}", source.where(path),
        text_at(source.root(), "kind"),
        text_at(part_at(source.root(), "metadata"), source.field("metadata.name") != nullptr ? "name" : "generateName"),
        is_workflow ? ", with successCondition: status.phase == Succeeded and failureCondition: status.phase == Failed"
                    : ""));
    return {};
  }

  // Each once: several BSPJobs of one job have most of them in common.
  static void append(std::vector<std::string>& all, const std::vector<std::string>& more) {
    for (const std::string& text : more)
      if (!std::ranges::contains(all, text)) all.push_back(text);
  }

  void print(const json& object) { converted_.yaml += (converted_.yaml.empty() ? "" : "---\n") + write_yaml(object); }

  std::string_view name_;
  Placeholders placeholders_;
  Converted converted_;
  int jobs_ = 0;
};

}  // namespace

Result<Converted> convert(std::string_view yaml, std::string_view file_name) { return File(file_name).convert(yaml); }

}  // namespace bsp::convert
