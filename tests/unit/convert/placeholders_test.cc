#include "operator/convert/placeholders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <format>
#include <nlohmann/json.hpp>

namespace bsp::convert {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Read {
  std::string yaml;
  std::vector<std::string> notes;
};

// What is read and written again.
Read reread(const std::string& text) {
  Placeholders placeholders;
  std::vector<Placeholders::Note> notes;
  const auto documents = placeholders.read(text, nullptr, notes);
  Read result;
  if (!documents) return {.yaml = documents.error().message, .notes = {}};
  for (const nlohmann::json& document : *documents) result.yaml += placeholders.show(write_yaml(document));
  for (const Placeholders::Note& note : notes) result.notes.push_back(std::format("{}: {}", note.line, note.text));
  return result;
}

TEST(Placeholders, AreTheSameBehindAsBefore) {
  for (const std::string text :
       {"a: {{ .Values.a }}\n", "a: \"{{ .Values.a }}\"\n", "a: x-{{ .b }}:{{ .c }}\n", "a: ${A}\n", "a: $A\n",
        "a: '%A%'\n", "a:\n- \"{{inputs.b}}\"\n", "a: {{ .b }}{{ .b }}\n"}) {
    const Read same = reread(text);
    EXPECT_EQ(same.yaml, text[3] == '\'' ? "a: \"%A%\"\n" : text);
    EXPECT_THAT(same.notes, IsEmpty()) << text;
  }
}

TEST(Placeholders, StandWhereYamlHasNone) {
  EXPECT_EQ(reread("a: [b, ${C}, {d: %E%}]\n").yaml, "a:\n- b\n- ${C}\n- d: \"%E%\"\n");
  EXPECT_EQ(reread("a: %B%\n").yaml, "a: \"%B%\"\n");
}

TEST(Placeholders, ConditionsCountAsMetAndLinesKeepTheirNumbers) {
  const Read kept = reread(
      "{{- if .a }}\na: 1\n{{- else if .b }}\na: 2\n{{- if .c }}\na: 3\n{{- end }}\n{{- end }}\nb: 4\n  {{ include "
      "\"c\" . }}\n");
  EXPECT_EQ(kept.yaml, "a: 1\nb: 4\n");
  EXPECT_THAT(kept.notes,
              ElementsAre("1: {{- if .a }} is not carried over: what it encloses is kept in any case",
                          "3: {{- else if .b }} is not carried over, nor what follows it",
                          testing::StartsWith("10: {{ include \"c\" . }} is not carried over: it inserts lines")));
  EXPECT_EQ(reread("{% for a in b %}\nc: {{ a }}\n{% endfor %}\n").yaml, "c: {{ a }}\n");
}

TEST(Placeholders, WhatIsNoneStays) {
  for (const std::string text : {"a: bspfill0z\n", "a: bspfill\n", "a: '{{'\n", "a: 5%\n", "a: me@b\n", "a: $(B)\n"})
    EXPECT_EQ(reread(text).yaml, text == "a: '{{'\n" ? "a: \"{{\"\n" : text);
  EXPECT_TRUE(is_placeholder("${A}") && is_placeholder("$A") && is_placeholder("%A%") &&
              is_placeholder("NAME_PLACEHOLDER"));
  for (const char* text : {"", "a", "$(A)", "${A", "${A:-b}", "$1", "a$A", "100%", "%A"})
    EXPECT_FALSE(is_placeholder(text)) << text;
  EXPECT_THAT(placeholders_in("$A %B% ${C}", true), ElementsAre("%B%"));
  EXPECT_THAT(placeholders_in("$A %B% ${C}", false), ElementsAre("$A", "%B%", "${C}"));
}

}  // namespace
}  // namespace bsp::convert
