// Manifests as users write them: what is understood, and what each mistake is answered with.
#include "crds/manifest.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <format>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "crds/fields.h"
#include "crds/rankmigration.h"
#include "crds/reflect.h"

namespace bsp::crds {
namespace {

// A good manifest whose parts each case below breaks.
std::string manifest(const std::string& spec, const std::string& args = "args: [\"--steps\", \"10\"]") {
  return "apiVersion: migbsp.io/v1alpha1\n"  // line 1
         "kind: BSPJob\n"
         "metadata: {name: job}\n"
         "spec:\n"
         "  template:\n"  // 5
         "    spec:\n"
         "      containers:\n"
         "      - name: app\n"
         "        image: localhost/x\n"
         "        " +
         args + "\n" +  // 10
         spec;          // 11 …
}

std::string error_of(const std::string& yaml) {
  const auto job = read_bsp_job(yaml, "job.yaml");
  return job ? "no error" : job.error().message;
}

TEST(Manifest, FillsInDefaults) {
  const auto job = read_bsp_job(manifest("  ranks: 4\n"), "job.yaml");
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->metadata.name, "job");
  EXPECT_EQ(job->spec.ranks, 4u);
  EXPECT_EQ(job->spec.rescheduling.heuristic, Heuristic::kAuto);
  EXPECT_EQ(job->spec.scheduling.gang, Gang::kReserve);
  EXPECT_EQ(job->spec.sets.label, "migbsp.io/set");
  EXPECT_EQ((*app_container(job->spec))["args"][1], "10");
}

TEST(Manifest, APathThatCantMoveIsNamed) {
  for (const char* path : {"/", "/proc/1", "/sys/", "/dev", "/run/bsp/x", "/a/../proc"})
    EXPECT_EQ(error_of(manifest(std::format("  ranks: 2\n  carryPaths: [/data, {}]\n", path))),
              std::format("job.yaml:12: spec.carryPaths[1]: {} can't move with a rank; name paths of the program's own "
                          "files",
                          path));
  EXPECT_EQ(error_of(manifest("  ranks: 2\n  carryPaths: [/dev/shm/x, /devices, /process/]\n")), "no error");
}

TEST(Manifest, ExamplesAreGood) {
  int read = 0;
  for (const auto& entry : std::filesystem::directory_iterator(BSP_SOURCE_DIR "/examples")) {
    if (entry.path().extension() != ".yaml") continue;
    std::ifstream file(entry.path());
    std::ostringstream text;
    text << file.rdbuf();
    if (text.str().find("\nkind: BSPJob") == std::string::npos) continue;
    const auto job = read_bsp_job(text.str(), entry.path().filename().string());
    EXPECT_TRUE(job) << job.error().message;
    ++read;
  }
  EXPECT_GE(read, 1);
}

TEST(Manifest, QuotedScalarsStayTexts) {
  EXPECT_EQ(error_of(manifest("  ranks: \"4\"\n")), "job.yaml:11: spec.ranks: must be a whole number, not a string");
  const auto job = read_bsp_job(manifest("  ranks: 4\n  sets: {names: [on, 'true', \"1\"]}\n"), "job.yaml");
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->spec.sets.names, (std::vector<std::string>{"on", "true", "1"}));
}

TEST(Manifest, AnchorsAndComments) {
  const auto job =
      read_bsp_job("# a comment\n---\n" + manifest("  ranks: &n 4\n  rescheduling: {alpha: *n}\n"), "job.yaml");
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->spec.rescheduling.alpha, 4u);
}

// As an API server takes it.
TEST(Manifest, AWholeNumberMayHaveAPoint) {
  for (const char* four : {"4.0", "4e0", "0x4"}) {
    const auto job = read_bsp_job(manifest(std::format("  ranks: {}\n", four)), "job.yaml");
    ASSERT_TRUE(job) << job.error().message;
    EXPECT_EQ(job->spec.ranks, 4u);
  }
}

struct Mistake {
  const char* what;
  std::string yaml;
  std::string answer;
};
class Mistakes : public ::testing::TestWithParam<Mistake> {};

TEST_P(Mistakes, AreNamedWithTheRemedy) { EXPECT_EQ(error_of(GetParam().yaml), GetParam().answer); }

INSTANTIATE_TEST_SUITE_P(
    Manifest, Mistakes,
    ::testing::Values(
        Mistake{"Empty", "",
                "job.yaml: holds no object; a BSPJob begins with the lines \"apiVersion: "
                "migbsp.io/v1alpha1\" and \"kind: BSPJob\""},
        Mistake{"OnlyAComment", "# nothing\n",
                "job.yaml: holds no object; a BSPJob begins with the lines \"apiVersion: "
                "migbsp.io/v1alpha1\" and \"kind: BSPJob\""},
        Mistake{"NotYaml", "kind: [BSPJob\n", "job.yaml:2: not valid YAML: end of sequence flow not found"},
        Mistake{"ATab", "kind: BSPJob\nspec:\n\tranks: 4\n", "job.yaml:3: not valid YAML: illegal map value"},
        Mistake{"NotUtf8", "apiVersion: migbsp.io/v1alpha1\nkind: J\xff\n",
                "job.yaml:2: not UTF-8; save the file in that encoding"},
        Mistake{"AControlCharacter", "kind: \x01\n",
                "job.yaml:1: control character 0x01; remove it, or write it in quotes: \"\\x01\""},
        Mistake{"AnEscapeThatIsNoCharacter", "kind: \"\\_\"\n",
                "job.yaml:1: kind: \\_ and \\N are not supported; write \\u00a0 or \\u0085"},
        Mistake{"HalfACharacter", "kind: \xc3", "job.yaml:1: not UTF-8; save the file in that encoding"},
        // yaml-cpp quotes a byte of it.
        Mistake{"EscapedCharacterOfThreeBytes", "kind: \"\\\xe2\x80\xa8\"",
                "job.yaml:1: not valid YAML: unknown escape character: \\xe2"},
        Mistake{"AText", "hello\n", "job.yaml: the manifest must be an object, not a string"},
        Mistake{"TwoDocuments", manifest("  ranks: 4\n") + "---\n" + manifest("  ranks: 4\n"),
                "job.yaml: holds 2 documents; put each into a file of its own and keep one BSPJob in this one"},
        Mistake{"KeyTwice", manifest("  ranks: 4\n  ranks: 5\n"),
                "job.yaml:12: spec.ranks: given twice; remove one of them"},
        Mistake{"KeyIsNotAString", "kind: BSPJob\n? [spec]\n: {}\n",
                "job.yaml:2: the document: a key must be a string"},
        Mistake{"AnAliasToItself", "kind: BSPJob\nspec: &all [1, *all]\n",
                "job.yaml:2: spec[1]: alias to a value that contains it"},
        Mistake{"MergedFromWhatIsNoMap", manifest("  ranks: 4\n  rescheduling: {<<: [1]}\n"),
                "job.yaml:12: spec.rescheduling.<<: must be a map or a list of maps"},
        Mistake{"AMergedField",
                manifest("  ranks: 4\n  rescheduling:\n    <<:\n    - {x: 1}\n    - d: 2\n      x: 7\n"),
                "job.yaml:15: spec.rescheduling.d: must be greater than 0 and less than 1"},
        Mistake{"AnAliasedField", manifest("  ranks: 4\n  sets: &s {names: [a, a]}\n") + "status: *s\n",
                "job.yaml:12: spec.sets.names[1]: a is listed twice"},
        Mistake{"WrongKind", "apiVersion: migbsp.io/v1alpha1\nkind: Job\nspec: {}\n",
                "job.yaml:2: kind: must be BSPJob, not \"Job\""},
        Mistake{"WrongVersion", "apiVersion: batch/v1\nkind: BSPJob\n",
                "job.yaml:1: apiVersion: must be migbsp.io/v1alpha1, not \"batch/v1\""},
        Mistake{"NoKind", "apiVersion: migbsp.io/v1alpha1\n", "job.yaml: kind: is required; write kind: BSPJob"},
        Mistake{"MisspeltKind", "apiVersion: migbsp.io/v1alpha1\nKind: BSPJob\n",
                "job.yaml:2: Kind: unknown field; did you mean kind?"},
        Mistake{"NoSpec", "apiVersion: migbsp.io/v1alpha1\nkind: BSPJob\nmetadata: {name: a}\n",
                "job.yaml: spec: is required"},
        Mistake{"NoName", "apiVersion: migbsp.io/v1alpha1\nkind: BSPJob\nspec: {ranks: 1, template: {}}\n",
                "job.yaml: metadata.name: is required"},
        Mistake{
            "BadName",
            "apiVersion: migbsp.io/v1alpha1\nkind: BSPJob\nmetadata: {name: My_Job}\n"
            "spec: {ranks: 1, template: {}}\n",
            "job.yaml:3: metadata.name: \"My_Job\" must be 1 to 63 of a-z, 0-9 and '-', beginning and ending with a "
            "letter or digit"},
        Mistake{"NoRanks", manifest(""), "job.yaml: spec.ranks: is required"},
        Mistake{"ZeroRanks", manifest("  ranks: 0\n"), "job.yaml:11: spec.ranks: must be at least 1"},
        Mistake{"NegativeRanks", manifest("  ranks: -2\n"), "job.yaml:11: spec.ranks: must not be negative, but is -2"},
        Mistake{"HalfARank", manifest("  ranks: 1.5\n"),
                "job.yaml:11: spec.ranks: must be a whole number, not a number with a fraction"},
        Mistake{"LessThanAFractionOfARank", manifest("  ranks: -0.5\n"),
                "job.yaml:11: spec.ranks: must be a whole number, not a number with a fraction"},
        Mistake{"MoreRanksThanAnyNumberHolds", manifest("  ranks: 1e300\n"),
                "job.yaml:11: spec.ranks: 1e+300 is too large; the most is 150000"},
        Mistake{"RanksOf64Bits", manifest("  ranks: 9223372036854775808\n"),
                "job.yaml:11: spec.ranks: 9223372036854775808 is too large; the most is 150000"},
        Mistake{"MoreRanksThanPods", manifest("  ranks: 150001\n"),
                "job.yaml:11: spec.ranks: 150001 is too large; the most is 150000"},
        Mistake{"RanksOf65Bits", manifest("  ranks: 18446744073709551616\n"),
                "job.yaml:11: spec.ranks: 1.8446744073709552e+19 is too large; the most is 150000"},
        Mistake{"FarFewerRanksThanNone", manifest("  ranks: -1e300\n"),
                "job.yaml:11: spec.ranks: must not be negative, but is -1e+300"},
        Mistake{"NoNumberOfRanks", manifest("  ranks: .nan\n"),
                "job.yaml:11: spec.ranks: must be a finite number, not .nan"},
        Mistake{"InfinitelyManyRanks", manifest("  ranks: -.inf\n"),
                "job.yaml:11: spec.ranks: must be a finite number, not -.inf"},
        Mistake{"MoreSecondsThanAnAPIServerKeeps",
                manifest("  ranks: 4\n  runPolicy: {ttlSecondsAfterFinished: 9223372036854775808}\n"),
                "job.yaml:12: spec.runPolicy.ttlSecondsAfterFinished: 9223372036854775808 is too large; the most is "
                "9223372036854775807"},
        Mistake{"MisspeltField", manifest("  ranks: 4\n  rescheduling:\n    heuristc: Top\n"),
                "job.yaml:13: spec.rescheduling.heuristc: unknown field; did you mean spec.rescheduling.heuristic?"},
        Mistake{"MisspeltRequiredField", manifest("  rank: 4\n"),
                "job.yaml:11: spec.rank: unknown field; did you mean spec.ranks?"},
        Mistake{"UnknownValue", manifest("  ranks: 4\n  rescheduling: {heuristic: automig}\n"),
                "job.yaml:12: spec.rescheduling.heuristic: \"automig\" is not one of the allowed values; did you mean "
                "AutoMig?"},
        Mistake{
            "UnknownGang", manifest("  ranks: 4\n  scheduling: {gang: podgroup}\n"),
            "job.yaml:12: spec.scheduling.gang: \"podgroup\" is not one of the allowed values; did you mean PodGroup?"},
        Mistake{"AGangThatIsNoText", manifest("  ranks: 4\n  scheduling: {gang: true}\n"),
                "job.yaml:12: spec.scheduling.gang: must be a string, not true or false"},
        Mistake{"MisspeltGang", manifest("  ranks: 4\n  scheduling:\n    gan: Volcano\n"),
                "job.yaml:13: spec.scheduling.gan: unknown field; did you mean spec.scheduling.gang?"},
        Mistake{"DOutOfRange", manifest("  ranks: 4\n  rescheduling: {d: 1.5}\n"),
                "job.yaml:12: spec.rescheduling.d: must be greater than 0 and less than 1"},
        Mistake{"NotANumber", manifest("  ranks: 4\n  rescheduling: {d: .nan}\n"),
                "job.yaml:12: spec.rescheduling.d: must be a finite number, not .nan"},
        Mistake{
            "BadSize", manifest("  ranks: 4\n  checkpoint: {sizeLimit: 2 GB}\n"),
            "job.yaml:12: spec.checkpoint.sizeLimit: \"2 GB\" is not a quantity; write for example 512Mi, 2Gi, 250m or "
            "1.5"},
        Mistake{"MisspeltRequestsOfTheSidecar", manifest("  ranks: 4\n  sidecar: {resources: {request: {cpu: 5m}}}\n"),
                "job.yaml:12: spec.sidecar.resources.request: unknown field; did you mean requests?"},
        Mistake{"RequestsOfTheSidecarAsText", manifest("  ranks: 4\n  sidecar: {resources: {requests: 5m}}\n"),
                "job.yaml:12: spec.sidecar.resources.requests: must be a map of quantities, not a string; write for "
                "example {cpu: 500m}"},
        Mistake{"ARequestThatIsNoQuantity", manifest("  ranks: 4\n", "resources: {requests: {memory: 64 Mi}}"),
                "job.yaml:10: spec.template.spec.containers[0].resources.requests.memory: \"64 Mi\" is not a quantity; "
                "write for example 512Mi, 2Gi, 250m or 1.5"},
        Mistake{"ALimitOfADeviceThatIsNoQuantity",
                manifest("  ranks: 4\n", "resources: {limits: {nvidia.com/gpu: one}}"),
                "job.yaml:10: spec.template.spec.containers[0].resources.limits.nvidia.com/gpu: \"one\" is not a "
                "quantity; write for example 512Mi, 2Gi, 250m or 1.5"},
        Mistake{
            "NumberAmongArgs", manifest("  ranks: 4\n", "args: [--steps, 10]"),
            "job.yaml:10: spec.template.spec.containers[0].args[1]: must be a string, not a number; put it in quotes: "
            "\"10\""},
        Mistake{
            "CommandAsText", manifest("  ranks: 4\n", "command: my_program"),
            "job.yaml:10: spec.template.spec.containers[0].command: must be a list of strings, not a string; write for "
            "example [my_program, \"--steps\", \"100\"]"},
        Mistake{"MisspeltContainerField", manifest("  ranks: 4\n", "comand: [my_program]"),
                "job.yaml:10: spec.template.spec.containers[0].comand: unknown field; did you mean command?"},
        Mistake{"EnvWithANumber", manifest("  ranks: 4\n", "env: [{name: OMP_NUM_THREADS, value: 1}]"),
                "job.yaml:10: spec.template.spec.containers[0].env[0].value: must be a string, not a number; put it in "
                "quotes: \"1\""}),
    [](const auto& mistake) { return std::string(mistake.param.what); });

TEST(Manifest, AContainerMustBeCalledApp) {
  std::string yaml = manifest("  ranks: 4\n");
  yaml.replace(yaml.find("name: app"), 9, "name: foo");
  EXPECT_EQ(error_of(yaml),
            "job.yaml:7: spec.template.spec.containers: no containers are named app; exactly one must be "
            "(the one that runs the MPI program)");
}

// Every number of an object, those of its status too, with values that it can't hold.
void replace_each_number(nlohmann::json& object, nlohmann::json& node, const std::string& path, int& replaced) {
  if (node.is_structured()) {
    for (auto& [key, value] : node.items())
      replace_each_number(object, value,
                          node.is_array() ? std::format("{}[{}]", path, key)
                          : path.empty()  ? key
                                          : std::format("{}.{}", path, key),
                          replaced);
    return;
  }
  if (!node.is_number()) return;
  ++replaced;
  const nlohmann::json before = node;
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<nlohmann::json> wrong{std::nan(""), infinity, -infinity, "4", true};
  if (before.is_number_integer()) {
    wrong.insert(wrong.end(), {1e300, -1e300, -0.5, 0x1p63});
    if (!path.starts_with("status.epoch.")) wrong.emplace_back(std::uint64_t{1} << 63);  // sidecars count to 2^64
    const bool may_be_negative =
        path == "metadata.generation" || path.ends_with("observedGeneration") || path == "spec.runPolicy.priority";
    if (!may_be_negative) wrong.insert(wrong.end(), {-1, std::numeric_limits<std::int64_t>::min()});
  }
  for (const nlohmann::json& value : wrong) {
    node = value;
    const auto job = bsp_job_from_json(object);
    EXPECT_FALSE(job) << path << ": " << value;
    if (!job) {
      EXPECT_TRUE(job.error().message.starts_with(path.substr(0, path.find(".epoch")))) << job.error().message;
    }
  }
  node = before;
}

TEST(Manifest, NoNumberIsTakenForAnother) {
  BspJob job;
  job.metadata.name = "job";
  job.metadata.generation = 1;
  job.spec.pod_template = {{"spec", {{"containers", {{{"name", "app"}, {"image", "x"}}}}}}};
  job.spec.ranks = 1;
  job.spec.run_policy.ttl_seconds_after_finished = 1;
  job.spec.run_policy.active_deadline_seconds = 1;
  BspJobStatus& status = job.status;
  status.conditions.resize(1);
  status.restarts.resize(1);
  status.restarts[0].rank = RankId{0};
  status.epoch.emplace().members.resize(1);
  status.ranks_per_set.resize(1);
  status.ranks.resize(1);
  Decision& decision = status.last_decision.emplace();
  decision.chosen_level = 1;
  decision.potentials.resize(1);
  decision.levels.resize(1);
  decision.moves.resize(1);
  decision.stays.resize(1);
  status.calibration.resize(1);
  status.predicted_gain_seconds = status.realised_gain_seconds = 1;
  nlohmann::json object;
  to_json(object, job);
  object["status"] = reflect::write(status);  // each field for itself, as older operators stored them
  ASSERT_TRUE(bsp_job_from_json(object));
  int replaced = 0;
  replace_each_number(object, object, "", replaced);
  EXPECT_GT(replaced, 60);
}

// yaml-cpp alone would never come to an end of it.
TEST(Manifest, StrayBracesEnd) {
  std::ifstream file(BSP_SOURCE_DIR "/tests/fuzz/corpus/manifest/stray-braces.yaml");
  std::ostringstream text;
  text << file.rdbuf();
  ASSERT_FALSE(text.str().empty());
  EXPECT_NE(error_of(text.str()).find("not valid YAML"), std::string::npos) << error_of(text.str());
}

TEST(Manifest, AliasesCannotExplode) {
  std::string yaml = "a: &a [x, x, x, x, x, x, x, x, x, x]\n";
  for (char c = 'b'; c < 'j'; ++c)
    yaml += std::format("{0}: &{0} [*{1}, *{1}, *{1}, *{1}, *{1}, *{1}, *{1}, *{1}, *{1}, *{1}]\n", c, char(c - 1));
  EXPECT_NE(error_of(yaml).find("more than 20000 values"), std::string::npos);
}

// Every form of k8s.io/apimachinery/pkg/api/resource, whose numbers are capped, too.
TEST(Quantity, IsReadAsKubernetesReadsIt) {
  const auto value = [](const char* text) { return quantity_value(text).value_or(0); };
  EXPECT_EQ(value("1e3"), 1000u);
  EXPECT_EQ(value("2E3"), 2000u);
  EXPECT_EQ(value("+1.5Gi"), 3ull << 29);
  EXPECT_EQ(value("2E"), 2'000'000'000'000'000'000u);
  EXPECT_EQ(value("1Ei"), 1ull << 60);
  EXPECT_EQ(value("100n"), 1u) << "rounded up";
  EXPECT_EQ(quantity_milli("2500u"), 3u);
  for (const char* most : {"9Ei", "8000Pi", "1e300"}) EXPECT_EQ(value(most), 9'000'000'000'000'000'000u) << most;
  for (const char* wrong : {"", "+", "++1", "+-1", "-1", "1 Gi", "1kB", "1ei", "inf", "nan", "0x10", "1e400"})
    EXPECT_FALSE(quantity_value(wrong)) << wrong;
}

TEST(BspJob, OfMoreRanksThanWereMeasuredIsRefused) {
  BspJobSpec spec;
  spec.pod_template = {{"spec", {{"containers", {{{"name", "app"}, {"image", "i"}}}}}}};
  spec.ranks = 10'000;
  EXPECT_TRUE(validate(spec));
  spec.ranks = 10'001;
  const auto more = validate(spec);
  ASSERT_FALSE(more);
  EXPECT_THAT(more.error().message, testing::HasSubstr("spec.ranks: must be at most 10000: "));
}

TEST(RankMigration, HasOneTarget) {
  RankMigrationSpec spec;
  spec.job = "a";
  spec.target_set = "fast";
  EXPECT_TRUE(validate(spec));
  spec.target_node = "n";
  const auto both = validate(spec);
  ASSERT_FALSE(both);
  EXPECT_EQ(both.error().message, "spec.targetSet: set either spec.targetSet or spec.targetNode, not both");
}

}  // namespace
}  // namespace bsp::crds
