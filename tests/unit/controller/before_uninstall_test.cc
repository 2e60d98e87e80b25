// before-uninstall: jobs that need the operator are named, or deleted by it, before it goes.
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/core/base64.h"
#include "crds/names.h"
#include "install_crds.h"
#include "operator/cli/exit_code.h"
#include "operator/controller/options.h"
#include "operator/controller/run.h"
#include "operator/kinds.h"
#include "operator/kube/modify.h"
#include "tests/unit/kube/world.h"

namespace bsp::controller {
namespace {

using kube::Object;
using kube_test::eventually;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class BeforeUninstall : public kube_test::World {
 protected:
  void SetUp() override {
    if (is_real()) GTEST_SKIP() << "one server is enough";
    char name[] = "/tmp/bsp-before-uninstall-XXXXXX";
    ASSERT_TRUE(::mkdtemp(name));
    directory_ = name;
    const kube::Config c = config();
    std::ofstream(directory_ + "/kubeconfig")
        << "apiVersion: v1\nkind: Config\ncurrent-context: test\n"
        << "clusters: [{name: test, cluster: {server: \"" << c.server
        << "\", certificate-authority-data: " << base64_encode(c.ca.text) << "}}]\n"
        << "users: [{name: test, user: {token: " << c.token.text << "}}]\n"
        << "contexts: [{name: test, context: {cluster: test, user: test, namespace: ops}}]\n";
    client_ = open();
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void make_job(const std::string& name_space, const std::string& name, bool held = true) {
    Object job = {{"apiVersion", names::kApiVersion},
                  {"kind", names::kBspJobKind},
                  {"metadata", {{"name", name}, {"namespace", name_space}}},
                  {"spec", {{"ranks", 2}}}};
    if (held) job["metadata"]["finalizers"] = {names::kFinalizer};
    ASSERT_TRUE(client_->create(job));
  }
  // Its exit code, and what it says on stderr.
  std::pair<int, std::string> ask(std::vector<std::string> words) {
    words.insert(words.begin(), {"--kubeconfig", directory_ + "/kubeconfig"});
    ::testing::internal::CaptureStderr();
    const auto status = before_uninstall(words);
    const int code = status ? *status : cli::report_error(status.error());
    return {code, ::testing::internal::GetCapturedStderr()};
  }
  [[nodiscard]] std::size_t jobs() { return client_->list(kBspJob, "").value().size(); }

  std::string directory_;
  std::unique_ptr<kube::ApiClient> client_;
};

TEST_F(BeforeUninstall, NothingHoldsItWithoutJobs) {
  EXPECT_EQ(ask({}), std::pair(0, std::string())) << "not even the kind of object is there";
  install_crds(*client_);
  EXPECT_EQ(ask({}), std::pair(0, std::string()));
  make_job("science", "never-seen", false);
  EXPECT_EQ(ask({}), std::pair(0, std::string())) << "no operator has seen it, so nothing of it would stay";
}

TEST_F(BeforeUninstall, NamesTheJobsThatWouldStay) {
  install_crds(*client_);
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g"}) make_job("science", name);
  make_job("maths", "a");
  const auto [code, said] = ask({});
  EXPECT_EQ(code, 1);
  EXPECT_THAT(said,
              AllOf(HasSubstr("8 BSPJobs"), HasSubstr("maths/a, science/a, science/b, science/c, science/d and 3 more"),
                    HasSubstr("kubectl delete bspjobs NAME -n NAMESPACE"), HasSubstr("helm rollback")));
  EXPECT_THAT(ask({"--namespaces", "maths"}).second, AllOf(HasSubstr("1 BSPJob would"), HasSubstr("maths/a")));
  EXPECT_THAT(ask({"--namespaces=maths,physics"}).second,
              AllOf(HasSubstr("1 BSPJob would"), Not(HasSubstr("science"))));
  EXPECT_THAT(ask({"--namespaces=physics,chemistry"}).second, IsEmpty()) << "those of others are none of its business";
  EXPECT_EQ(jobs(), 8);
}

TEST_F(BeforeUninstall, DeletesThemAndWaitsForTheOperator) {
  install_crds(*client_);
  for (const char* name : {"a", "b"}) make_job("science", name);
  make_job("maths", "stays");
  std::jthread the_operator([this](const std::stop_token& stop) {
    const auto own = open();
    std::string cursor;
    while (!stop.stop_requested()) {
      const auto events = own->wait({kBspJob}, "science", cursor, std::chrono::milliseconds(50));
      ASSERT_TRUE(events);
      for (const kube::WatchEvent& event : *events)
        if (event.type != kube::EventType::kDeleted && event.object["metadata"].contains("deletionTimestamp"))
          (void)kube::remove_finalizer(*own, {kBspJob, "science", event.object["metadata"]["name"]},
                                       event.object["metadata"]["uid"], std::string(names::kFinalizer));
    }
  });
  EXPECT_EQ(ask({"--namespaces=science", "--delete"}), std::pair(0, std::string()));
  EXPECT_EQ(jobs(), 1);
}

// Of two releases that would manage one namespace the second has to go, and not with the jobs of the first.
TEST_F(BeforeUninstall, LeavesTheJobsOfAnotherReleaseAlone) {
  install_crds(*client_);
  make_job("science", "a");
  const auto hold = [&](const std::string& name_space, const std::string& holder, Time renewed) {
    ASSERT_TRUE(client_->create({{"apiVersion", "coordination.k8s.io/v1"},
                                 {"kind", "Lease"},
                                 {"metadata", {{"name", "jobs.migbsp.io"}, {"namespace", name_space}}},
                                 {"spec", {{"holderIdentity", holder}, {"renewTime", to_rfc3339(renewed)}}}}));
  };
  hold("science", "ops/first", SystemClock{}.now() - std::chrono::minutes(5));
  EXPECT_THAT(ask({"--holder", "ops/first"}).second, HasSubstr("1 BSPJob would"));
  EXPECT_THAT(ask({}).second, HasSubstr("1 BSPJob would"));
  EXPECT_EQ(ask({"--holder", "ops/second", "--delete", "--timeout=1"}).first, 0);
  EXPECT_EQ(jobs(), 1u);
  // Nobody manages these, or nobody does any more.
  make_job("maths", "b");
  make_job("physics", "c");
  hold("physics", "ops/first", SystemClock{}.now() - std::chrono::hours(1));
  EXPECT_THAT(ask({"--holder", "ops/second"}).second,
              AllOf(HasSubstr("2 BSPJobs would"), HasSubstr("maths/b, physics/c")));
}

TEST_F(BeforeUninstall, SaysWhatADeadOperatorLeaves) {
  install_crds(*client_);
  make_job("science", "a");
  const auto [code, said] = ask({"--delete", "--timeout=1"});
  EXPECT_EQ(code, 1);
  EXPECT_THAT(said, AllOf(HasSubstr("1 BSPJob did not go within 1 s: science/a"), HasSubstr("\"finalizers\":null")));
}

TEST_F(BeforeUninstall, WordsAreChecked) {
  EXPECT_EQ(ask({"--namespaces="}).first, 2);
  EXPECT_EQ(ask({"--namespaces=,"}).first, 2);
  EXPECT_EQ(ask({"--timeout=0"}).first, 2);
  EXPECT_EQ(ask({"jobs"}).first, 2);
}

}  // namespace
}  // namespace bsp::controller
