// What a program may pass to the library's calls: every type of a value, invalid lengths and pointers, names without
// a terminator. Nothing is read out of bounds, and each call is answered.
#include "sidecar/agent/pmix/upcalls.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace bsp::pmix {
namespace {

// The receiver of the upcalls, whose loop the test runs.
class Upcalls : public testing::Test {
 protected:
  Upcalls() : table(upcall_table()) {
    set_receiver(loop, {.all_gather =
                            [this](Collective collective, Server::GatherDone done) {
                              gathered.push_back(std::move(collective));
                              done(fail(ErrorCode::kFailed, "a test"));
                            },
                        .fetch =
                            [this](std::string, std::uint32_t, Server::FetchDone done) {
                              ++fetched;
                              done(fail(ErrorCode::kFailed, "a test"));
                            },
                        .aborted = [this](const std::string& name, std::uint32_t, int,
                                          const std::string& message) { aborted = name + ": " + message; }});
  }
  ~Upcalls() override { drop_receiver(); }
  void turn() {
    loop.post([this] { loop.stop(); });
    loop.run();
  }

  net::Loop loop;
  pmix_server_module_t table;
  std::vector<Collective> gathered;
  int fetched = 0;
  std::string aborted;
};

pmix_proc_t proc(pmix_rank_t rank, const char* name = "uid-e1") {
  pmix_proc_t p;
  PMIX_LOAD_PROCID(&p, name, rank);
  return p;
}
int answered = 0;
void group_answered(pmix_status_t, pmix_info_t*, std::size_t, void*, pmix_release_cbfunc_t, void*) { ++answered; }
void fence_answered(pmix_status_t, const char*, std::size_t, void*, pmix_release_cbfunc_t, void*) { ++answered; }

// Fills every word of the union, so that reading it as a pointer or a length is noticed.
pmix_value_t value_of(pmix_data_type_t type, unsigned char fill) {
  pmix_value_t value;
  std::memset(&value, fill, sizeof value);
  value.type = type;
  return value;
}

TEST_F(Upcalls, GroupDataOfAnotherType) {
  pmix_proc_t procs[] = {proc(0), proc(1)};
  char group[] = "group";
  for (int type = 0; type <= 1000; ++type)
    for (const unsigned char fill : {0x00, 0x41, 0xff}) {
      if (type == PMIX_BYTE_OBJECT && fill == 0x00) continue;  // an empty one is a valid value
      for (const char* key : {PMIX_GROUP_ENDPT_DATA, PMIX_GROUP_LOCAL_ONLY, PMIX_GROUP_CONTEXT_ID, PMIX_TIMEOUT, ""}) {
        pmix_info_t info;
        PMIX_INFO_CONSTRUCT(&info);
        PMIX_LOAD_KEY(info.key, key);
        info.value = value_of(static_cast<pmix_data_type_t>(type), fill);
        const auto status = table.group(PMIX_GROUP_CONSTRUCT, group, procs, 2, &info, 1, group_answered, nullptr);
        EXPECT_TRUE(std::strcmp(key, PMIX_GROUP_ENDPT_DATA) != 0 || status == PMIX_ERR_BAD_PARAM) << type;
      }
    }
  turn();
  for (const Collective& c : gathered) EXPECT_EQ(c.data, "");
}

TEST_F(Upcalls, BytesOfAnImpossibleLength) {
  std::string bytes(100, 'b');
  pmix_value_t value{};
  value.type = PMIX_BYTE_OBJECT;
  value.data.bo = {bytes.data(), bytes.size()};
  EXPECT_EQ(bytes_of(value, 100), bytes);
  EXPECT_EQ(bytes_of(value, 99), std::nullopt);
  value.data.bo = {bytes.data(), ~std::size_t{0}};
  EXPECT_EQ(bytes_of(value, kMaxPart), std::nullopt);
  value.data.bo = {nullptr, 1};
  EXPECT_EQ(bytes_of(value, kMaxPart), std::nullopt);
  value.data.bo = {nullptr, 0};
  EXPECT_EQ(bytes_of(value, kMaxPart), "");
}

TEST_F(Upcalls, FlagIsTrueOnlyIfSet) {
  pmix_info_t info;
  PMIX_INFO_CONSTRUCT(&info);
  for (int type = 0; type <= 100; ++type) {
    info.value = value_of(static_cast<pmix_data_type_t>(type), 0x01);
    EXPECT_EQ(is_true(info), type == PMIX_BOOL || type == PMIX_UNDEF) << type;
  }
}

TEST_F(Upcalls, GroupWithoutMembersNameOrThisRank) {
  pmix_proc_t mine[] = {proc(0), proc(1)}, mixed[] = {proc(0), proc(1, "another-job")};
  char group[] = "group";
  EXPECT_EQ(table.group(PMIX_GROUP_CONSTRUCT, group, mine, 0, nullptr, 0, group_answered, nullptr), PMIX_ERR_BAD_PARAM);
  EXPECT_EQ(table.group(PMIX_GROUP_CONSTRUCT, group, nullptr, 3, nullptr, 0, group_answered, nullptr),
            PMIX_ERR_BAD_PARAM);
  EXPECT_EQ(table.group(PMIX_GROUP_CONSTRUCT, nullptr, mine, 2, nullptr, 0, group_answered, nullptr),
            PMIX_ERR_BAD_PARAM);
  EXPECT_EQ(table.group(PMIX_GROUP_CONSTRUCT, group, mine, 2, nullptr, 5, group_answered, nullptr), PMIX_ERR_BAD_PARAM);
  EXPECT_EQ(table.group(PMIX_GROUP_CONSTRUCT, group, mixed, 2, nullptr, 0, group_answered, nullptr),
            PMIX_ERR_BAD_PARAM);
  EXPECT_EQ(table.group(static_cast<pmix_group_operation_t>(77), group, mine, 2, nullptr, 0, group_answered, nullptr),
            PMIX_ERR_NOT_SUPPORTED);
  turn();
  EXPECT_TRUE(gathered.empty());
}

TEST_F(Upcalls, UnterminatedNames) {
  pmix_proc_t endless = proc(0);
  std::memset(endless.nspace, 'n', sizeof endless.nspace);
  std::string group(10'000, 'g');
  EXPECT_EQ(table.group(PMIX_GROUP_CONSTRUCT, group.data(), &endless, 1, nullptr, 0, group_answered, nullptr),
            PMIX_SUCCESS);
  const std::string message(1 << 20, 'm');
  table.abort(&endless, nullptr, 1, message.c_str(), nullptr, 0, nullptr, nullptr);
  EXPECT_EQ(table.abort(nullptr, nullptr, 1, nullptr, nullptr, 0, nullptr, nullptr), PMIX_ERR_BAD_PARAM);
  EXPECT_EQ(table.direct_modex(nullptr, nullptr, 0, fence_answered, nullptr), PMIX_ERR_BAD_PARAM);
  turn();
  ASSERT_EQ(gathered.size(), 1u);
  EXPECT_EQ(gathered[0].name_space, std::string(PMIX_MAX_NSLEN, 'n'));
  EXPECT_LE(gathered[0].key.size(), 600u);
  EXPECT_LE(aborted.size(), 1024u + PMIX_MAX_NSLEN + 2);
}

TEST_F(Upcalls, FenceOwnsItsData) {
  const auto bytes = [](std::size_t size) {
    auto* memory = static_cast<char*>(std::malloc(size));
    std::memset(memory, 'f', size);
    return memory;  // under the address sanitizer a leak, or a double free, is an error
  };
  pmix_proc_t all = proc(PMIX_RANK_WILDCARD),
              odd[] = {proc(PMIX_RANK_INVALID), proc(PMIX_RANK_UNDEF), proc(7), proc(7)};
  EXPECT_EQ(table.fence_nb(&all, 1, nullptr, 0, bytes(10), 10, fence_answered, nullptr), PMIX_SUCCESS);
  EXPECT_EQ(table.fence_nb(nullptr, 0, nullptr, 0, bytes(10), 10, fence_answered, nullptr), PMIX_ERR_BAD_PARAM);
  EXPECT_EQ(table.fence_nb(&all, 0, nullptr, 0, bytes(10), 10, fence_answered, nullptr), PMIX_ERR_BAD_PARAM);
  EXPECT_EQ(table.fence_nb(&all, 1, nullptr, 0, nullptr, 10, fence_answered, nullptr), PMIX_ERR_BAD_PARAM);
  EXPECT_EQ(table.fence_nb(odd, 4, nullptr, 0, nullptr, 0, fence_answered, nullptr), PMIX_SUCCESS);
  turn();
  ASSERT_EQ(gathered.size(), 2u);
  EXPECT_TRUE(gathered[0].members.empty());
  EXPECT_EQ(gathered[0].data, std::string(10, 'f'));
  EXPECT_EQ(gathered[1].members.size(), 3u) << "each once";
}

TEST_F(Upcalls, UnsupportedCallsAreRefused) {
  EXPECT_EQ(table.query(nullptr, nullptr, 1000, nullptr, nullptr), PMIX_ERR_NOT_SUPPORTED);
  EXPECT_EQ(table.register_events(nullptr, 1000, nullptr, 1000, nullptr, nullptr), PMIX_OPERATION_SUCCEEDED);
  EXPECT_EQ(table.deregister_events(nullptr, 1000, nullptr, nullptr), PMIX_OPERATION_SUCCEEDED);
  EXPECT_EQ(table.client_connected2(nullptr, nullptr, nullptr, 1000, nullptr, nullptr), PMIX_SUCCESS);
  EXPECT_EQ(table.client_finalized(nullptr, nullptr, nullptr, nullptr), PMIX_SUCCESS);
}

}  // namespace
}  // namespace bsp::pmix
