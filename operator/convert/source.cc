#include "operator/convert/source.h"

#include <algorithm>
#include <format>

namespace bsp::convert {

using nlohmann::json;

std::string text_of(const json& scalar) { return scalar.is_string() ? scalar.get<std::string>() : scalar.dump(); }

const json* Source::field(std::string_view path) const {
  const json* found = &root_;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    const auto member = found->is_object() ? found->find(path.substr(begin, end - begin)) : found->end();
    if (!found->is_object() || member == found->end() || member->is_null()) return nullptr;
    found = &*member;
    begin = end + 1;
  }
  return found;
}

void Source::reshape(json mpi_job, Origins origins) {
  root_ = std::move(mpi_job);
  origins_ = std::move(origins);
}

std::string Source::where(std::string_view path) const {
  std::string whole(path);
  for (const auto& [made, written] : origins_)
    if (whole.starts_with(made)) {
      whole.replace(0, made.size(), written);
      break;
    }
  whole.insert(0, place_.prefix);
  const std::string shown = place_.text.empty() ? whole : std::format("{}: {}", place_.text, whole);
  for (std::string at = whole;;) {  // of a field that isn't there: its parent's line
    if (const auto line = place_.lines.find(at); line != place_.lines.end())
      return std::format("{}:{}: {}", place_.file, line->second + place_.lines_before, shown);
    const std::size_t cut = at.find_last_of(".[");
    if (cut == std::string::npos) return std::format("{}: {}", place_.file, shown);
    at.resize(cut);
  }
}

std::unexpected<Error> Source::wrong(std::string_view path, std::string_view what) const {
  return fail(ErrorCode::kInvalid, std::format("{}: {}", where(path), what));
}

void Source::must_rebuild(std::string_view path, std::string_view what) {
  rebuild.push_back(std::format("{}: {}", where(path), what));
}

void Source::note(std::string_view path, std::string_view what) {
  notes.push_back(std::format("{}: {}", where(path), what));
}

}  // namespace bsp::convert
