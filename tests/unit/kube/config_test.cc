// Realistic kubeconfigs, and service accounts.
#include "operator/kube/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "operator/kube/credentials.h"

namespace bsp::kube {
namespace {

using ::testing::HasSubstr;

class ConfigTest : public ::testing::Test {
 protected:
  ConfigTest() {
    char path[] = "/tmp/bsp-kubeconfig-XXXXXX";
    directory_ = ::mkdtemp(path);
    for (const char* name : {"KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"}) ::unsetenv(name);
    ::setenv("HOME", directory_.c_str(), 1);
  }
  ~ConfigTest() override { std::filesystem::remove_all(directory_); }
  std::string write(const std::string& name, const std::string& content) {
    const std::string path = directory_ + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << content;
    return path;
  }
  // One context with this cluster and user.
  Result<Config> read(const std::string& cluster, const std::string& user) {
    const std::string file = write("config",
                                   "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
                                   "clusters: [{name: k, cluster: {" +
                                       cluster +
                                       "}}]\n"
                                       "users: [{name: u, user: {" +
                                       user + "}}]\n");
    return kubeconfig({file});
  }
  std::string refusal(const std::string& cluster, const std::string& user) {
    const auto config = read(cluster, user);
    EXPECT_FALSE(config) << cluster << user;
    if (config) return "";
    EXPECT_EQ(config.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(config.error().message, HasSubstr(directory_ + "/config")) << "names the file";
    return config.error().message;
  }
  std::string directory_;
};

constexpr const char* kPem64 = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==";  // "-----BEGIN CERTIFICATE-----\n"

TEST_F(ConfigTest, ContextSelectsClusterUserAndNamespace) {
  const std::string file = write("config", R"(
apiVersion: v1
kind: Config
current-context: two
preferences: {}
contexts:
- name: one
  context: {cluster: a, user: x}
- name: two
  context: {cluster: b, user: y, namespace: jobs}
clusters:
- {name: a, cluster: {server: "https://a:6443"}}
- {name: b, cluster: {server: "https://b:6443/prefix/", certificate-authority-data: )" +
                                               std::string(kPem64) + R"(, tls-server-name: other}}
users:
- {name: x, user: {token: xx}}
- {name: y, user: {token: yy}}
)");
  const Config two = kubeconfig({file}).value();
  EXPECT_EQ(two.server, "https://b:6443/prefix");
  EXPECT_EQ(two.ca.text, "-----BEGIN CERTIFICATE-----\n");
  EXPECT_EQ(two.tls_server_name, "other");
  EXPECT_EQ(two.token.text, "yy");
  EXPECT_EQ(two.name_space, "jobs");
  const Config one = kubeconfig({file}, "one").value();
  EXPECT_EQ(one.server, "https://a:6443");
  EXPECT_EQ(one.token.text, "xx");
  EXPECT_EQ(one.name_space, "default");
  EXPECT_THAT(kubeconfig({file}, "three").error().message, HasSubstr("\"three\" not found in contexts"));
}

TEST_F(ConfigTest, MergesFilesAndResolvesPathsRelativeToEach) {
  const std::string first = write("one/config",
                                  "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
                                  "users: [{name: u, user: {tokenFile: token}}]\n");
  write("one/token", "from the first\n");
  const std::string second = write("two/config",
                                   "current-context: other\nclusters: [{name: k, cluster: {server: "
                                   "\"https://k\", certificate-authority: ca.pem}}]\n"
                                   "users: [{name: u, user: {token: never}}]\n");
  write("two/ca.pem", "-----BEGIN CERTIFICATE-----\n");
  ::setenv("KUBECONFIG", (first + ":" + directory_ + "/missing:" + second).c_str(), 1);
  const Config config = load_config().value();
  EXPECT_EQ(config.token.file, directory_ + "/one/token");
  EXPECT_EQ(config.ca.file, directory_ + "/two/ca.pem");
  EXPECT_EQ(Credentials(config).authorization(), "Bearer from the first");
}

TEST_F(ConfigTest, ErrorsNameTheRemedy) {
  const std::string server = "server: \"https://k\"";
  EXPECT_THAT(refusal(server, "exec: {command: aws}"),
              HasSubstr("users[\"u\"].user.exec: credential plugins are not supported; use"));
  EXPECT_THAT(refusal(server, "auth-provider: {name: gcp}"), HasSubstr("auth providers are not supported"));
  EXPECT_THAT(refusal("", "token: x"), HasSubstr("clusters[\"k\"].cluster.server: is required"));
  EXPECT_THAT(refusal("server: 17", "token: x"), HasSubstr("must be a string"));
  EXPECT_THAT(refusal(server + ", insecure-skip-tls-verify: maybe", ""), HasSubstr("must be true or false"));
  EXPECT_THAT(refusal(server + ", insecure-skip-tls-verify: true, certificate-authority-data: " + kPem64, ""),
              HasSubstr("combined with certificate-authority; remove one of them"));
  EXPECT_THAT(refusal(server + ", certificate-authority-data: \"%%%\"", ""), HasSubstr("is not base64"));
  EXPECT_THAT(refusal(server + ", certificate-authority-data: aGVsbG8=", ""), HasSubstr("is not PEM"));
  EXPECT_THAT(refusal(server + ", certificate-authority: nowhere.pem", ""), HasSubstr("nowhere.pem"));
  EXPECT_THAT(refusal(server, std::string("client-certificate-data: ") + kPem64), HasSubstr("client-key: required"));
  EXPECT_THAT(refusal(server, "tokenFile: nowhere"), HasSubstr("tokenFile"));
  EXPECT_THAT(refusal(server, "token: x, username: y, password: z"), HasSubstr("remove one of them"));
  EXPECT_THAT(refusal("server: \"https://[::1]:6443\"", ""), HasSubstr("IPv6"));
  EXPECT_THAT(refusal(server + ", proxy-url: \"socks5://p\"", ""), HasSubstr("only http:// proxies"));
  EXPECT_THAT(refusal(server, "as-groups: all"), HasSubstr("must be a list"));
  EXPECT_THAT(kubeconfig({write("config", "current-context: [")}).error().message, HasSubstr("/config:"));
  EXPECT_THAT(kubeconfig({write("config", "- a list")}).error().message, HasSubstr("is not a kubeconfig"));
  EXPECT_THAT(kubeconfig({write("config", "clusters: []")}).error().message, HasSubstr("current-context is not set"));
  EXPECT_EQ(kubeconfig({directory_ + "/nowhere"}).error().code, ErrorCode::kNotFound);
}

TEST_F(ConfigTest, InsecureSkipsVerification) {
  const Config config = read("server: \"https://k\", insecure-skip-tls-verify: true", "token: x").value();
  EXPECT_TRUE(config.insecure_skip_tls_verify);
}

TEST_F(ConfigTest, ServiceAccountOfAPod) {
  write("sa/token", "first");
  write("sa/ca.crt", "-----BEGIN CERTIFICATE-----\n");
  write("sa/namespace", "operators\n");
  EXPECT_EQ(in_cluster_config(directory_ + "/sa").error().code, ErrorCode::kNotFound) << "not in a pod";
  ::setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1", 1);
  ::setenv("KUBERNETES_SERVICE_PORT", "443", 1);
  const Config config = in_cluster_config(directory_ + "/sa").value();
  EXPECT_EQ(config.server, "https://10.96.0.1:443");
  EXPECT_EQ(config.name_space, "operators");
  // When the server rejects the old token, one that the kubelet has replaced is used at once.
  Credentials credentials(config);
  EXPECT_EQ(credentials.authorization(), "Bearer first");
  write("sa/token", "second");
  credentials.invalidate_token();
  EXPECT_EQ(credentials.authorization(), "Bearer second");
  // While the file is missing, the last content stays in use.
  std::filesystem::remove(directory_ + "/sa/token");
  credentials.invalidate_token();
  EXPECT_EQ(credentials.authorization(), "Bearer second");
  EXPECT_THAT(in_cluster_config(directory_ + "/sa").error().message, HasSubstr("automountServiceAccountToken"));
  ::setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
  write("sa/token", "x");
  EXPECT_EQ(in_cluster_config(directory_ + "/sa").value().server, "https://kubernetes.default.svc:443");
}

TEST_F(ConfigTest, SearchOrder) {
  EXPECT_THAT(load_config().error().message, HasSubstr("no cluster is configured"));
  const std::string content =
      "current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\nclusters: [{name: k, cluster: {server: ";
  write(".kube/config", content + "\"https://home\"}}]\n");
  EXPECT_EQ(load_config().value().server, "https://home");
  const std::string other = write("other", content + "\"https://other\"}}]\n");
  ::setenv("KUBECONFIG", other.c_str(), 1);
  EXPECT_EQ(load_config().value().server, "https://other");
  const std::string given = write("given", content + "\"https://given\"}}]\n");
  EXPECT_EQ(load_config({.kubeconfig = given}).value().server, "https://given");
}

}  // namespace
}  // namespace bsp::kube
