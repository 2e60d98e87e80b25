// Error messages for bad input: Podman's (as 4.3 and runc print them), and invalid --pools.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <format>
#include <nlohmann/json.hpp>

#include "operator/local/pod_plan.h"
#include "operator/local/podman.h"
#include "operator/local/pools.h"

namespace bsp::local {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Saying {
  const char* what;
  const char* podman;
  ErrorCode code;
  const char* message;
};
class Podman : public ::testing::TestWithParam<Saying> {};

TEST_P(Podman, IsTranslated) {
  const Error error = podman::translate(GetParam().podman, "localhost/x:1", "my_program");
  EXPECT_EQ(error.code, GetParam().code);
  EXPECT_EQ(error.message, GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    BadInput, Podman,
    ::testing::Values(Saying{"NoSuchImage", "Error: localhost/x:1: image not known\n", ErrorCode::kNotFound,
                             "image localhost/x:1 does not exist in Podman's store; build it, or fetch it with: podman "
                             "pull localhost/x:1"},
                      Saying{"NoSuchImageToInspect", "Error: inspecting object: localhost/x:1: image not known\n",
                             ErrorCode::kNotFound,
                             "image localhost/x:1 does not exist in Podman's store; build it, or fetch it with: podman "
                             "pull localhost/x:1"},
                      Saying{"NoSuchCommandInPath",
                             "Error: runc: runc create failed: unable to start container process: exec: "
                             "\"my_program\": executable file not "
                             "found in $PATH: OCI runtime attempted to invoke a command that was not found\n",
                             ErrorCode::kNotFound, "command my_program not found in image localhost/x:1"},
                      Saying{"NoSuchFile",
                             "Error: runc: runc create failed: unable to start container process: exec: \"/no/such\": "
                             "stat /no/such: no such "
                             "file or directory: OCI runtime attempted to invoke a command that was not found\n",
                             ErrorCode::kNotFound, "command my_program not found in image localhost/x:1"},
                      Saying{"NotExecutable",
                             "Error: runc: runc create failed: unable to start container process: exec: "
                             "\"/etc/passwd\": permission denied: "
                             "OCI permission denied\n",
                             ErrorCode::kRefused, "command my_program in image localhost/x:1 may not be executed"},
                      Saying{"WarningsAreNoise",
                             "time=\"2026-11-21T04:00:00Z\" level=warning msg=\"noise\"\nError: something new\n",
                             ErrorCode::kFailed, "podman: something new"}),
    [](const auto& saying) { return std::string(saying.param.what); });

// In a child process, because a process can't become root again; its exit status is the test's.
int error_as(uid_t uid, const char* path, const char* expected) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::setenv("PATH", path, 1);
    if (uid != 0 && ::setuid(uid) != 0) ::_exit(3);
    const auto usable = podman::check_usable();
    ::_exit(!usable && usable.error().message.find(expected) != std::string::npos ? 0 : 1);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(BadInput, NotRoot) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  EXPECT_EQ(error_as(65534, "/usr/bin", "must run as root; use sudo"), 0);
}

TEST(BadInput, NoPodman) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gets this error";
  EXPECT_EQ(error_as(0, "/nonexistent", "podman is not installed; on Debian: apt-get install podman"), 0);
}

// The pod is rejected, and still torn down.
TEST(BadInput, GracePeriodIsNotANumber) {
  for (const char* grace : {"\"30\"", "1e300", "[]", "-1"}) {
    const auto pod = nlohmann::json::parse(std::format(
        R"({{"metadata": {{"name": "p", "uid": "u"}}, "spec": {{"terminationGracePeriodSeconds": {}, "containers": []}}}})",
        grace));
    EXPECT_EQ(plan_pod(pod, {}).error().message,
              "spec.terminationGracePeriodSeconds: must be a whole number of seconds")
        << grace;
    EXPECT_EQ(grace_seconds(pod), std::string(grace) == "-1" ? 0 : 30) << grace;
  }
  EXPECT_EQ(grace_seconds({{"spec", {{"terminationGracePeriodSeconds", nullptr}}}}), 30);
  EXPECT_EQ(grace_seconds({{"spec", {{"terminationGracePeriodSeconds", 5}}}}), 5);
}

TEST(BadInput, Pools) {
  for (const char* text : {"", "slow", "slow=2", "slow=x0.5", "slow=2xfast", "Slow=2x1", "slow=0x1", "slow=2x0",
                           "a=1x1,a=1x1", "a=1x1,", "a=2x0x1", "a=2x300x1", "a=2x4x", "a=2xx1", "a=1x2x3x4"}) {
    const auto pools = parse_pools(text);
    ASSERT_FALSE(pools) << text;
    EXPECT_EQ(pools.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(pools.error().message, AllOf(HasSubstr("--pools: "), HasSubstr("for example slow=3x0.25,fast=2x0.6")));
  }
  EXPECT_EQ(parse_pools("slow=3x0.25,fast=2x0.6").value().size(), 2u);
  const auto slots = parse_pools("fast=2x4x0.6").value();
  EXPECT_EQ(slots[0].nodes, 2u);
  EXPECT_EQ(slots[0].slots, 4u);
  EXPECT_EQ(slots[0].cpu, 0.6);
  const auto nodes = nodes_of(slots);
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[1].at("status").at("allocatable"), (nlohmann::json{{"cpu", "2400m"}, {"pods", "4"}}));
}

}  // namespace
}  // namespace bsp::local
