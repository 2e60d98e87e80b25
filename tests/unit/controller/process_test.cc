// The program itself, as a Deployment starts and ends it.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/core/base64.h"
#include "http_get.h"
#include "tests/unit/kube/world.h"

namespace bsp::controller {
namespace {

using kube::Object;
using kube_test::eventually;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ProcessTest : public kube_test::World {
 protected:
  void SetUp() override {
    if (is_real()) GTEST_SKIP() << "one server is enough";
    char name[] = "/tmp/bsp-controller-test-XXXXXX";
    ASSERT_TRUE(::mkdtemp(name));
    directory_ = name;
    const kube::Config c = config();
    std::ofstream(kubeconfig()) << "apiVersion: v1\nkind: Config\ncurrent-context: test\n"
                                << "clusters: [{name: test, cluster: {server: \"" << c.server
                                << "\", certificate-authority-data: " << base64_encode(c.ca.text) << "}}]\n"
                                << "users: [{name: test, user: {token: " << c.token.text << "}}]\n"
                                << "contexts: [{name: test, context: {cluster: test, user: test, namespace: ops}}]\n";
  }
  void TearDown() override {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    std::filesystem::remove_all(directory_);
  }
  [[nodiscard]] std::string kubeconfig() const { return directory_ + "/kubeconfig"; }

  void start(const std::vector<std::string>& more) {
    std::vector<std::string> words{BSP_BINARY_DIR "/bin/bsp-operator", "controller", "--kubeconfig", kubeconfig()};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t files;
    ::posix_spawn_file_actions_init(&files);
    for (const int fd : {1, 2})
      ::posix_spawn_file_actions_addopen(&files, fd, (directory_ + "/output").c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                         0600);
    ASSERT_EQ(::posix_spawn(&pid_, words[0].c_str(), &files, nullptr, argv.data(), environ), 0);
    ::posix_spawn_file_actions_destroy(&files);
  }
  // Its status as wait() gives it; it must have been asked to end, or be wrong from the start.
  int end_status() {
    int status = -1;
    if (::waitpid(pid_, &status, 0) == pid_) pid_ = -1;
    return status;
  }
  [[nodiscard]] std::string output() const {
    std::ifstream file(directory_ + "/output");
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string directory_;
  pid_t pid_ = -1;
};

TEST_F(ProcessTest, SigtermEndsItCleanlyAndTheLeaseIsFree) {
  const int port = free_port();
  start({"--leader-elect", "--health-address", "127.0.0.1:" + std::to_string(port), "--metrics-address=0"});
  auto client = open();
  const kube::Key lease{{"coordination.k8s.io/v1", "Lease"}, "ops", "bsp-operator"};
  const auto holder = [&] {
    const auto object = client->get(lease);
    return object ? object->at("spec").value("holderIdentity", "") : std::string("-");
  };
  ASSERT_TRUE(eventually([&] { return holder().size() > 1; })) << output();
  ASSERT_TRUE(eventually([&] { return http_get(port, "/healthz").starts_with("HTTP/1.1 200"); })) << output();
  // The server knows no BSPJob: the process lives, but it is not ready.
  EXPECT_THAT(http_get(port, "/readyz"), StartsWith("HTTP/1.1 503"));
  ASSERT_EQ(::kill(pid_, SIGTERM), 0);
  const int status = end_status();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status << "\n" << output();
  EXPECT_EQ(holder(), "");
}

TEST_F(ProcessTest, WhatCannotWorkIsSaidAtOnce) {
  start({"--context", "other"});
  int status = end_status();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 2) << status;
  EXPECT_THAT(output(), HasSubstr("\"other\""));
  start({"--workers", "none"});
  status = end_status();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 2) << status;
  EXPECT_THAT(output(), HasSubstr("--workers"));
}

}  // namespace
}  // namespace bsp::controller
