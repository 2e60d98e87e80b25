// The parts of bsp-init that need no container.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/core/fd.h"
#include "base/core/rank_line.h"
#include "base/core/read_file.h"
#include "crds/names.h"
#include "sidecar/init/carry.h"
#include "sidecar/init/criu.h"
#include "sidecar/init/files.h"
#include "sidecar/init/inspect.h"
#include "sidecar/init/program.h"
#include "sidecar/init/supervisor/fence.h"
#include "sidecar/init/user.h"
#include "tests/unit/init/few_descriptors.h"

namespace bsp::init {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
namespace fs = std::filesystem;

constexpr const char* kPasswd =
    "root:x:0:0:root:/root:/bin/sh\n# comment\nbsp:x:1000:1001:,,,:/home/bsp:/bin/sh\n"
    "broken\nother:x:70:80::/nowhere:\n";
constexpr const char* kGroup = "root:x:0:\nbsp:x:1001:\nusers:x:100:bsp,other\n";

struct UserCase {
  const char* spec;
  uid_t uid;
  gid_t gid;
  const char* home;
};
class Users : public ::testing::TestWithParam<UserCase> {};
TEST_P(Users, AsContainerEnginesDo) {
  const auto user = parse_user(GetParam().spec, kPasswd, kGroup);
  ASSERT_TRUE(user) << user.error().message;
  EXPECT_EQ(user->uid, GetParam().uid);
  EXPECT_EQ(user->gid, GetParam().gid);
  EXPECT_EQ(user->home, GetParam().home);
}
INSTANTIATE_TEST_SUITE_P(Specs, Users,
                         ::testing::Values(UserCase{"", 0, 0, "/root"}, UserCase{"0", 0, 0, "/root"},
                                           UserCase{"1000", 1000, 1001, "/home/bsp"},
                                           UserCase{"1000:5", 1000, 5, "/home/bsp"},
                                           UserCase{"bsp", 1000, 1001, "/home/bsp"},
                                           UserCase{"bsp:users", 1000, 100, "/home/bsp"}, UserCase{"4711", 4711, 0, ""},
                                           UserCase{"4711:users", 4711, 100, ""}),
                         [](const auto& tested) {
                           std::string name = *tested.param.spec ? tested.param.spec : "None";
                           std::ranges::replace(name, ':', '_');
                           return name;
                         });

struct GroupCase {
  const char* name;
  uid_t uid;
  gid_t gid;
  std::vector<gid_t> held;  // by the container, which runs as root
  const char* asked;
  std::vector<gid_t> groups;
};
void PrintTo(const GroupCase& tested, std::ostream* out) { *out << tested.name; }
class Groups : public ::testing::TestWithParam<GroupCase> {};
TEST_P(Groups, EqualThoseOfAContainerOfTheProgramsUser) {
  constexpr const char* kWithMembers =
      "root:x:0:\nwheel:x:10:root\ndisk:x:6:root,adm\nvideo:x:44:adm,bsp\nusers:x:100:bsp\n";
  User user;
  user.uid = GetParam().uid;
  user.gid = GetParam().gid;
  EXPECT_EQ(program_groups(user, GetParam().held, GetParam().asked, kPasswd, kWithMembers), GetParam().groups);
}
INSTANTIATE_TEST_SUITE_P(
    Cases, Groups,
    ::testing::Values(
        GroupCase{"NothingAsked", 4711, 5, {0}, "", {5}},
        GroupCase{
            "AskedAndAddedByTheKubelet", 4711, 1234, {0, 2222, 3333, 4444}, "2222 3333", {1234, 2222, 3333, 4444}},
        GroupCase{"RootsOwnOfTheImageStayWithRoot", 4711, 5, {0, 6, 10, 2222}, "2222", {5, 2222}},
        GroupCase{"UnlessAskedFor", 4711, 5, {0, 6, 10, 2222}, "10 2222", {5, 10, 2222}},
        GroupCase{"AskedForButNotHeld", 4711, 5, {0}, "10", {5}},
        GroupCase{"TheUsersOwnOfTheImage", 1000, 1001, {0, 10, 2222}, "2222", {44, 100, 1001, 2222}},
        GroupCase{"ButNotIfStrict", 1000, 1001, {0, 2222}, "2222 Strict", {1001, 2222}},
        GroupCase{"RootHasAll", 0, 0, {0, 6, 10, 2222}, "2222", {0, 6, 10, 2222}},
        GroupCase{"GroupRootOnlyIfItIsItsOwn", 1000, 0, {0}, "Strict", {0}}),
    [](const auto& tested) { return tested.param.name; });

TEST(Users, UnknownOnesAreReported) {
  EXPECT_THAT(parse_user("nobody", kPasswd, kGroup).error().message, HasSubstr("user 'nobody'"));
  EXPECT_THAT(parse_user("bsp:staff", kPasswd, kGroup).error().message, HasSubstr("group 'staff'"));
  EXPECT_FALSE(parse_user("4294967295", kPasswd, kGroup));  // -1: "no change" to setresuid
  EXPECT_TRUE(parse_user("7:8", "", ""));                   // an image without /etc/passwd
}

// A program whose user can't be read must not run as root.
TEST(Users, ThatCantBeReadAreNobody) {
  char directory[] = "/tmp/bsp-user-XXXXXX";
  ASSERT_NE(::mkdtemp(directory), nullptr);
  const std::string file = std::string(directory) + "/user";
  EXPECT_EQ(user_spec("", file).value(), "");
  std::ofstream(file) << "7:8";
  EXPECT_EQ(user_spec("", file).value(), "7:8");
  EXPECT_EQ(user_spec("9", file).value(), "9");
  {
    const FewDescriptors none(0);
    EXPECT_THAT(user_spec("", file).error().message, HasSubstr("reading " + file));
    EXPECT_THAT(resolve_user("7:8", "").error().message, HasSubstr("reading /etc/passwd"));
  }
  fs::remove_all(directory);
}

TEST(Fence, CountsAnEpochThatCantBeRead) {
  char directory[] = "/tmp/bsp-epoch-XXXXXX";
  ASSERT_NE(::mkdtemp(directory), nullptr);
  const std::string file = std::string(directory) + "/epoch";
  EXPECT_FALSE(in_epoch_with_peers(file));
  std::ofstream(file) << names::kEpochRanks << "=1\n";
  EXPECT_FALSE(in_epoch_with_peers(file));
  {
    const FewDescriptors none(0);
    EXPECT_TRUE(in_epoch_with_peers(file));
  }
  std::ofstream(file) << names::kEpochNumber << "=3\n" << names::kEpochRanks << "=2\n";
  EXPECT_TRUE(in_epoch_with_peers(file));
  fs::remove_all(directory);
}

TEST(Sessions, AreNoFilesOfTheProgram) {
  const auto changes = [](std::vector<std::string> paths, std::vector<std::string> directories) {
    Changes made;
    made.paths = std::move(paths);
    for (std::string& path : directories) made.directories.push_back({std::move(path), {}});
    return made;
  };
  EXPECT_TRUE(holds_only_sessions({}, {}));
  EXPECT_TRUE(holds_only_sessions(
      {}, changes({"/tmp/ompi.rank0.1000", "/tmp/ompi.rank0.1000/jf.0"}, {"/tmp", "/tmp/ompi.rank0.1000"})));
  EXPECT_FALSE(holds_only_sessions({}, changes({"/tmp/ompi.rank0.1000", "/tmp/mine"}, {"/tmp"})));
  EXPECT_FALSE(holds_only_sessions({}, changes({"/tmp/ompi.rank0.1000"}, {"/tmp", "/home"})));
  EXPECT_FALSE(holds_only_sessions({"/dev/shm/x"}, {}));
}

TEST(Sessions, AreRemovedAndNothingElse) {
  char directory[] = "/tmp/bsp-sessions-XXXXXX";
  ASSERT_NE(::mkdtemp(directory), nullptr);
  const fs::path path = directory;
  fs::create_directories(path / "ompi.rank0.1000/jf.0/1");
  std::ofstream(path / "ompi.rank0.1000/jf.0/file") << "x";
  std::ofstream(path / "kept") << "x";
  ASSERT_TRUE(remove_sessions(directory));
  EXPECT_FALSE(fs::exists(path / "ompi.rank0.1000"));
  EXPECT_TRUE(fs::exists(path / "kept"));
  EXPECT_TRUE(remove_sessions(path / "none"));
  fs::remove_all(path);
}

TEST(Descriptor, NumbersAreFoundByTheirWholeNames) {
  const std::string text = "BSP_EPOCH=7\nBSP_RANKS=12\nBSP_RANK=3\nX=text\n";
  EXPECT_EQ(number_in(text, names::kEpochRank), 3u);
  EXPECT_EQ(number_in(text, names::kEpochRanks), 12u);
  EXPECT_EQ(number_in(text, "X"), std::nullopt);
  EXPECT_EQ(number_in(text, "RANK"), std::nullopt);
  EXPECT_EQ(number_in("", names::kEpochRank), std::nullopt);
}

TEST(RankLine, IsReadAsItIsWritten) {
  EXPECT_EQ(rank_of_line(line_of_rank(0)), 0u);
  EXPECT_EQ(rank_of_line(line_of_rank(4'000'000'000)), 4'000'000'000u);
  for (const char* other : {"", "bsp-init: rank ", "bsp-init: rank  goes on in this container",
                            "bsp-init: rank 1x goes on in this container",
                            "bsp-init: rank -1 goes on in this container", "bsp-init: rank goes on in this container",
                            "rank 1 goes on in this container", "bsp-init: rank 1 goes on in this container."})
    EXPECT_EQ(rank_of_line(other), std::nullopt) << other;
}

TEST(CriuLog, OnlyErrorLinesAndEachOnce) {
  EXPECT_EQ(criu_errors("(00.001) Warn  (criu/a.c:1): never mind\n"
                        "(00.002)   1000: Error (criu/files.c:12): Can't dump file 3\n"
                        "(00.003)   1000: Error (criu/files.c:12): Can't dump file 3\n"
                        "(00.004) Error (criu/cr-dump.c:9): Dumping FAILED.\n"),
            "Can't dump file 3; Dumping FAILED.");
  EXPECT_EQ(criu_errors("(00.001) all is well\n"), "");
  EXPECT_EQ(criu_errors(""), "");
}

TEST(Movable, SeesASeccompFilter) {
  EXPECT_TRUE(has_seccomp_filter("Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t1\n"));
  EXPECT_TRUE(has_seccomp_filter("Name:\tx\nSeccomp:\t1\n"));
  EXPECT_FALSE(has_seccomp_filter("Name:\tSeccomp:\t2\nSeccomp:\t0\nSeccomp_filters:\t0\n"));
  EXPECT_FALSE(has_seccomp_filter(""));
}

TEST(Movable, ReportsWhatIsNot) {
  EXPECT_EQ(unmovable("socket:[123]"), "an open socket");
  EXPECT_EQ(unmovable("anon_inode:[perf_event]"), "a perf event");
  EXPECT_EQ(unmovable("anon_inode:[io_uring]"), "an io_uring");
  EXPECT_EQ(unmovable("anon_inode:[landlock-ruleset]"), "a Landlock ruleset");
  for (const char* fine : {"pipe:[1]", "/tmp/file", "/dev/null", "anon_inode:[eventfd]", "anon_inode:[eventpoll]",
                           "/dev/shm/x (deleted)"}) {
    EXPECT_FALSE(unmovable(fine)) << fine;
  }
}

TEST(Movable, FindsSystemVObjectsOfTheUser) {
  constexpr std::string_view kSets =
      "       key      semid perms      nsems   uid   gid  cuid  cgid      otime      ctime\n"
      "         0          3   600          2     0     0  1000     0          0 1795409609\n"
      "        17       1000   600          2     5  2000     5  2000          0 1795409609\n";
  EXPECT_EQ(system_v_object(kSets, 1000), "3");
  EXPECT_EQ(system_v_object(kSets, 5), "1000");
  EXPECT_FALSE(system_v_object(kSets, 2000));
  EXPECT_FALSE(system_v_object("", 0));
}

TEST(CarryPaths, OnlyTheProgramsOwn) {
  EXPECT_THAT(*parse_carry_paths("/data/out/:/tmp/x::/dev/shm/y"), ElementsAre("/data/out", "/tmp/x", "/dev/shm/y"));
  EXPECT_TRUE(parse_carry_paths("")->empty());
  for (const char* bad : {"/", "relative", "/proc/1", "/sys", "/dev/null", "/run/bsp/x", "/a/../proc"}) {
    EXPECT_FALSE(parse_carry_paths(bad)) << bad;
  }
}

class CarryFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/bsp-carry-XXXXXX";
    dir_ = ::mkdtemp(name);
  }
  void TearDown() override { fs::remove_all(dir_); }
  std::string dir_;
};

TEST_F(CarryFiles, RoundTrip) {
  const std::string tree = dir_ + "/tree";
  fs::create_directories(tree + "/a/empty");
  const std::string big(300'000, 'x');
  std::ofstream(tree + "/a/big") << big;
  std::ofstream(tree + "/a/\xc3\xa4 name with = and blank") << "umlaut";
  fs::create_hard_link(tree + "/a/big", tree + "/a/big.link");
  fs::create_symlink("big", tree + "/a/soft");
  fs::permissions(tree + "/a/big", fs::perms::owner_read | fs::perms::owner_write);
  const std::string archive = dir_ + "/carry.tar";
  {
    const Fd fd(::open(archive.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    const auto written = write_carry({tree, dir_ + "/absent"}, {}, fd.get());
    ASSERT_TRUE(written) << written.error().message;
  }
  fs::rename(tree, dir_ + "/was");
  const auto back = read_carry(archive, {});
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(read_file(tree + "/a/big").value_or(""), big);
  EXPECT_EQ(read_file(tree + "/a/\xc3\xa4 name with = and blank").value_or(""), "umlaut");
  EXPECT_TRUE(fs::equivalent(tree + "/a/big", tree + "/a/big.link"));
  EXPECT_EQ(read_link(tree + "/a/soft").value_or(""), "big");
  EXPECT_TRUE(fs::is_directory(tree + "/a/empty"));
  struct stat info{};
  ASSERT_EQ(::stat((tree + "/a/big").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  EXPECT_EQ(fs::last_write_time(tree + "/a/big"), fs::last_write_time(dir_ + "/was/a/big"));
}

TEST_F(CarryFiles, FullDiskIsReported) {
  std::ofstream(dir_ + "/file") << std::string(300'000, 'x');
  const Fd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  const auto written = write_carry({dir_ + "/file"}, {}, full.get());
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::kNoSpace);
}

TEST_F(CarryFiles, BrokenArchiveIsRefused) {
  std::ofstream(dir_ + "/carry.tar") << "this is not an archive, but long enough to be read as one";
  EXPECT_FALSE(read_carry(dir_ + "/carry.tar", {}));
  EXPECT_FALSE(read_carry(dir_ + "/absent.tar", {}));
}

TEST_F(CarryFiles, SharedMemoryOfOneUser) {
  std::ofstream(dir_ + "/mine") << "x";
  fs::create_symlink("mine", dir_ + "/link");
  EXPECT_THAT(shared_memory_files(::getuid(), dir_).value(), ElementsAre(dir_ + "/mine"));
  EXPECT_THAT(shared_memory_files(::getuid() + 1, dir_).value(), IsEmpty());
  EXPECT_THAT(shared_memory_files(::getuid(), dir_ + "/absent").value(), IsEmpty());
  const FewDescriptors none(0);
  EXPECT_THAT(shared_memory_files(::getuid(), dir_).error().message, HasSubstr("listing " + dir_));
}

// Ranks of a pod share /dev/shm.
TEST_F(CarryFiles, SharedMemoryThatAProcessUses) {
  for (const char* name : {"open", "mapped", "of-another-rank", "sm_segment.rank0.0.1.0"})
    std::ofstream(dir_ + "/" + name) << std::string(4096, 'x');
  const Fd open(::open((dir_ + "/open").c_str(), O_RDONLY | O_CLOEXEC));
  Fd file(::open((dir_ + "/mapped").c_str(), O_RDONLY | O_CLOEXEC));
  void* const mapped = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file.get(), 0);
  file.reset();
  EXPECT_THAT(shared_memory_files(::getuid(), dir_).value(),
              UnorderedElementsAre(dir_ + "/open", dir_ + "/mapped", dir_ + "/of-another-rank"));
  EXPECT_THAT(shared_memory_files_of(::getpid(), ::getuid(), dir_).value(),
              UnorderedElementsAre(dir_ + "/open", dir_ + "/mapped"));
  ::munmap(mapped, 4096);
  EXPECT_THAT(shared_memory_files_of(::getpid(), ::getuid(), dir_).value(), ElementsAre(dir_ + "/open"));
}

TEST_F(CarryFiles, FileOfAnotherRankIsNotReplaced) {
  const std::string shared = dir_ + "/shm", archive = dir_ + "/carry.tar";
  fs::create_directories(shared);
  std::ofstream(shared + "/x") << "mine";
  const Fd fd(::open(archive.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_TRUE(write_carry({shared + "/x"}, {}, fd.get()));
  std::ofstream(shared + "/x") << "another rank's";
  const auto refused = read_carry(archive, {}, shared);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("another rank of this pod has a file of that name"));
  std::string text;
  EXPECT_TRUE(std::getline(std::ifstream(shared + "/x"), text));
  EXPECT_EQ(text, "another rank's");
  fs::remove(shared + "/x");
  EXPECT_TRUE(read_carry(archive, {}, shared));
}

TEST_F(CarryFiles, DirectoryThatCantBeListedIsNotEmpty) {
  fs::create_directories(dir_ + "/tree");
  std::ofstream(dir_ + "/tree/file") << "x";
  const Fd fd(::open((dir_ + "/carry.tar").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  const FewDescriptors none(0);
  const auto written = write_carry({dir_ + "/tree"}, {}, fd.get());
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, HasSubstr("listing " + dir_ + "/tree"));
}

TEST_F(CarryFiles, MappedFileWithAnotherLinkIsFound) {
  std::ofstream(dir_ + "/left") << "x";
  struct stat info{};
  ASSERT_EQ(::stat((dir_ + "/left").c_str(), &info), 0);
  const auto line = [&](ino_t inode, const std::string& end) {
    return "7f00-7f01 rw-s 00000000 00:21 " + std::to_string(inode) + "     " + dir_ + "/sem.x y" + end + "\n";
  };
  const auto found = [&](const std::string& maps) {
    return mapped_unlinked_name("7e00-7e01 r--p 0 0:0 0\n" + maps, dir_).value();
  };
  EXPECT_EQ(found(line(info.st_ino, " (deleted)")), dir_ + "/sem.x y");
  EXPECT_FALSE(found(line(info.st_ino + 1, " (deleted)")));  // it can't be opened by name: its content is dumped
  EXPECT_FALSE(found(line(info.st_ino, "")));
  const FewDescriptors none(0);
  EXPECT_FALSE(mapped_unlinked_name(line(info.st_ino, " (deleted)"), dir_));
}

// Otherwise criu would be asked to carry what it can't.
TEST(Movable, IsUnknownIfProcCantBeRead) {
  const User user{.uid = ::geteuid(), .gid = ::getegid(), .home = ""};
  const FewDescriptors none(0);
  const auto movable = check_movable(::getpid(), user);
  ASSERT_FALSE(movable);
  EXPECT_THAT(movable.error().message, HasSubstr("listing /proc"));
}

TEST(Processes, ThatAreGoneAreToldFromThoseThatCantBeRead) {
  EXPECT_EQ(process_stat(0x7fffffff).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(process_stat(::getpid())->pid, ::getpid());
  const FewDescriptors none(0);
  const auto unknown = process_stat(::getpid());
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().code, ErrorCode::kNotFound) << unknown.error().message;
  EXPECT_FALSE(descendants_of_init());
}

TEST_F(CarryFiles, CommandsAsAShellFindsThem) {
  const User user{.uid = ::getuid(), .gid = ::getgid(), .home = ""};
  fs::create_directories(dir_ + "/bin");
  std::ofstream(dir_ + "/bin/tool") << "#!/bin/sh\n";
  EXPECT_EQ(find_command("tool", dir_ + "/bin", user).error().code, ErrorCode::kInvalid);
  fs::permissions(dir_ + "/bin/tool", fs::perms::owner_all);
  EXPECT_EQ(find_command("tool", "/nowhere:" + dir_ + "/bin", user).value_or(""), dir_ + "/bin/tool");
  EXPECT_EQ(find_command(dir_ + "/bin/tool", "", user).value_or(""), dir_ + "/bin/tool");
  EXPECT_EQ(find_command("tool", "/nowhere", user).error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(find_command("", "/bin", user));
  EXPECT_TRUE(check_preloadable(dir_ + "/bin/tool"));
}

TEST(WithoutInit, LeavesOutAnInitWithoutAMeaningOfItsOwn) {
  using Words = std::vector<std::string>;
  for (const auto& [command, rest] : std::vector<std::pair<Words, Words>>{
           {{"/usr/bin/tini", "--", "solver", "-x"}, {"solver", "-x"}},
           {{"tini-static", "-g", "-vv", "solver"}, {"solver"}},
           {{"dumb-init", "sh", "-c", "exec solver"}, {"sh", "-c", "exec solver"}},
           {{"/catatonit", "--", "tini"}, {"tini"}},
           {{"tini", "-e", "143", "--", "solver"}, {"tini", "-e", "143", "--", "solver"}},
           {{"dumb-init", "--rewrite", "15:2", "solver"}, {"dumb-init", "--rewrite", "15:2", "solver"}},
           {{"dumb-init", "-"}, {"dumb-init", "-"}},
           {{"tini", "--"}, {"tini", "--"}},
           {{"tiny", "--", "solver"}, {"tiny", "--", "solver"}},
           {{"tini"}, {"tini"}},
           {{}, {}}})
    EXPECT_EQ(without_init(command), rest) << testing::PrintToString(command);
}

TEST(ProgramEnvironment, UsersLibrariesComeBeforeTheShim) {
  const User user{.uid = 1000, .gid = 100, .home = "/home/user"};
  const std::string shim = "/bsp/libbspmpi.so";
  const char* const plain[] = {"A=b", "HOME=/root", nullptr};
  EXPECT_THAT(program_environment(plain, shim, user),
              ElementsAre("A=b", "LD_PRELOAD=/bsp/libbspmpi.so", "HOME=/home/user"));
  EXPECT_THAT(program_environment(plain, "", user), ElementsAre("A=b", "HOME=/home/user"));
  const char* const with_tool[] = {"HOME=/data", "LD_PRELOAD=libtool.so libasan.so", nullptr};
  EXPECT_THAT(program_environment(with_tool, shim, user),
              ElementsAre("HOME=/data", "LD_PRELOAD=libtool.so libasan.so:/bsp/libbspmpi.so"));
  EXPECT_THAT(program_environment(with_tool, "", user), ElementsAre("HOME=/data", "LD_PRELOAD=libtool.so libasan.so"));
  const char* const empty[] = {"LD_PRELOAD=", nullptr};
  EXPECT_THAT(program_environment(empty, shim, user), ElementsAre("LD_PRELOAD=/bsp/libbspmpi.so", "HOME=/home/user"));
}

TEST_F(CarryFiles, ProgramThatCantBePreloadedIsReported) {
  EXPECT_TRUE(check_preloadable("/bin/sh"));
  std::ofstream(dir_ + "/text") << "hello";
  EXPECT_THAT(check_preloadable(dir_ + "/text").error().message, HasSubstr("neither an ELF program"));
  std::ofstream(dir_ + "/lost") << "#!/no/such/interpreter -x\n";
  EXPECT_THAT(check_preloadable(dir_ + "/lost").error().message, HasSubstr("/no/such/interpreter"));
  // An ELF for another architecture: the first bytes of this binary with e_machine changed.
  std::string elf = read_file("/bin/sh").value_or("").substr(0, 4096);
  ASSERT_GT(elf.size(), 64U);
  elf[18] = 40;  // EM_ARM
  std::ofstream(dir_ + "/arm", std::ios::binary) << elf;
  EXPECT_THAT(check_preloadable(dir_ + "/arm").error().message, HasSubstr("a different architecture"));
}

}  // namespace
}  // namespace bsp::init
