// What a set notes of files on shared volumes, and what a restore does with files that have changed since.
#include "sidecar/init/shared_files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <format>
#include <fstream>
#include <functional>

#include "base/core/fd.h"
#include "base/core/read_file.h"

namespace bsp::init {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
namespace fs = std::filesystem;

std::string line(const std::string& at, const std::string& type, const std::string& options = "rw,relatime") {
  return std::format("36 35 98:0 / {} {} master:1 - {} /dev/x rw\n", at, options, type);
}

TEST(SharedMounts, AreNoneOfThePodsOwn) {
  const Mounts mounts(line("/", "overlay") + line("/proc", "proc") + line("/dev/shm", "tmpfs") +
                          line("/run/bsp", "tmpfs") + line("/etc/hosts", "ext4") + line("/data", "nfs4") +
                          line("/data/inner", "tmpfs") + line("/scratch", "ext4") +
                          line("/with\\040space", "ext4", "ro,relatime"),
                      {"/scratch", "/data/mine"});
  EXPECT_EQ(mounts.of("/data/log")->path, "/data");
  EXPECT_EQ(mounts.of("/data/inner/log")->path, "/data/inner");
  EXPECT_EQ(mounts.of("/data")->path, "/data");
  EXPECT_EQ(mounts.of("/with space/a"), mounts.of("/with space"));
  ASSERT_NE(mounts.of("/with space/a"), nullptr);
  EXPECT_FALSE(mounts.of("/with space/a")->writable);
  for (const char* path : {"/", "/database/log", "/dev/shm/x", "/etc/hosts", "/scratch/x", "/data/mine", "/data/mine/x",
                           "/run/bsp/ring", "pipe:[7]", "socket:[8]", "", "anon_inode:[eventpoll]"})
    EXPECT_EQ(mounts.of(path), nullptr) << path;
  ASSERT_THAT(mounts.writable(), SizeIs(2));
  EXPECT_EQ(mounts.writable()[0].path, "/data");
  EXPECT_THAT(Mounts("", {}).writable(), SizeIs(0));
  EXPECT_EQ(Mounts("1 2 3\n\n- -", {}).of("/data"), nullptr);
}

class SharedFiles : public ::testing::Test {
 protected:
  SharedFiles() {
    char name[] = "/tmp/bsp-shared-XXXXXX";
    root_ = ::mkdtemp(name);
  }
  ~SharedFiles() override { fs::remove_all(root_); }

  [[nodiscard]] Mounts mounts(const std::string& options = "rw,relatime") const {
    return {line("/", "overlay") + line(root_, "ext4", options), {}};
  }
  [[nodiscard]] std::string path(const std::string& name) const { return root_ + "/" + name; }
  void write(const std::string& name, const std::string& text, std::ios::openmode how = std::ios::app) const {
    std::ofstream(path(name), how) << text;
  }
  [[nodiscard]] std::string content(const std::string& name) const { return read_file(path(name)).value(); }
  // As a set would that is made now, of a process with these descriptors.
  [[nodiscard]] Notes noted() const {
    Notes notes;
    const auto opened = note_open_files(::getpid(), mounts(), notes);
    EXPECT_TRUE(opened) << opened.error().message;
    EXPECT_TRUE(note_written_files(mounts(), 0, notes));
    const auto kept = control::decode_notes(encode(notes));
    EXPECT_TRUE(kept);
    EXPECT_EQ(kept->files, notes.files);
    EXPECT_EQ(kept->at_ns, notes.at_ns);
    return *kept;
  }
  [[nodiscard]] std::string check(const Notes& notes) const {
    const auto compared = check_shared_files(notes, mounts(), Grown::kCut);
    EXPECT_TRUE(compared) << compared.error().message;
    return compared.value_or(Compared{}).said;
  }
  void refuses(const Notes& notes, const std::string& why) const {
    for (const Grown grown : {Grown::kTold, Grown::kCut}) {
      const auto said = check_shared_files(notes, mounts(), grown);
      ASSERT_FALSE(said) << why;
      EXPECT_EQ(said.error().code, ErrorCode::kRefused);
      EXPECT_THAT(said.error().message, HasSubstr(why));
      EXPECT_THAT(said.error().message, HasSubstr("spec.checkpoint.sharedFiles: Ignore"));
    }
  }

  std::string root_;
};

TEST_F(SharedFiles, ThatHaveGrownAreCutOff) {
  const std::string large(10'000, 'x');
  write("closed", large);
  write("log", "one\n");
  const Fd log(::open(path("log").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  const Fd plain(::open(path("plain").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  ASSERT_EQ(::write(plain.get(), "one\n", 4), 4);
  const Notes notes = noted();
  ASSERT_THAT(notes.files, SizeIs(3));
  EXPECT_EQ(check(notes), "");
  for (const char* name : {"closed", "log", "plain"}) write(name, "two\n");
  write("after", "new\n");
  const std::string said = check(notes);
  EXPECT_THAT(said, HasSubstr(path("closed") + " to 10000 bytes"));
  EXPECT_THAT(said, HasSubstr(path("log") + " to 4 bytes"));
  EXPECT_THAT(said, HasSubstr(path("plain") + " to 4 bytes"));
  EXPECT_THAT(said, HasSubstr("written after the set stay as they are: " + path("after")));
  EXPECT_EQ(content("closed"), large);
  EXPECT_EQ(content("log"), "one\n");
  EXPECT_EQ(content("plain"), "one\n");
  EXPECT_EQ(content("after"), "new\n");
  // Another rank that had it open, or the next attempt.
  EXPECT_EQ(check(notes), "files that were written after the set stay as they are: " + path("after"));
}

// Another rank may refuse the set.
TEST_F(SharedFiles, ThatHaveGrownAreLeftUntilEveryRankHasAccepted) {
  write("log", "one\n");
  const Notes notes = noted();
  write("log", "two\n");
  for (int i = 0; i < 2; ++i) {
    const auto told = check_shared_files(notes, mounts(), Grown::kTold);
    ASSERT_TRUE(told);
    EXPECT_TRUE(told->ahead);
    EXPECT_EQ(content("log"), "one\ntwo\n");
  }
  const auto cut = check_shared_files(notes, mounts(), Grown::kCut);
  ASSERT_TRUE(cut);
  EXPECT_FALSE(cut->ahead);
  EXPECT_THAT(cut->said, HasSubstr(path("log") + " to 4 bytes"));
  EXPECT_EQ(content("log"), "one\n");
  EXPECT_FALSE(check_shared_files(notes, mounts(), Grown::kTold)->ahead);
}

TEST_F(SharedFiles, ThatAreNotAsTheyWereAreRefusedByName) {
  const std::string large(10'000, 'x');
  struct Case {
    const char* what;
    std::string why;
    std::function<void()> change;
  };
  const Case cases[] = {
      {"removed", "was removed", [&] { fs::remove(path("file")); }},
      {"replaced by a directory", "was replaced",
       [&] { fs::remove(path("file")), fs::create_directory(path("file")); }},
      {"replaced", "was replaced",
       [&] {
         write("new", large + "more");
         fs::rename(path("new"), path("file"));
       }},
      {"shorter", "has become shorter", [&] { fs::resize_file(path("file"), 9'999); }},
      {"its beginning", "was rewritten in place and has grown",
       [&] {
         std::fstream(path("file"), std::ios::in | std::ios::out) << "y";
         write("file", "more");
       }},
      {"its end", "was rewritten in place",
       [&] { std::fstream(path("file"), std::ios::in | std::ios::out).seekp(9'999) << "y"; }},
  };
  for (const Case& one : cases) {
    fs::remove_all(path("file"));
    write("file", large);
    const Notes notes = noted();
    EXPECT_EQ(check(notes), "");
    one.change();
    SCOPED_TRACE(one.what);
    refuses(notes, path("file") + ", on a shared volume, " + one.why + " since the set was made");
  }
}

// Its directory is there on each node, and the volume isn't.
TEST_F(SharedFiles, ThatLieOnAVolumeThatIsNotMountedAreNotTakenForRemoved) {
  fs::create_directories(path("deep/er"));
  write("deep/er/file", "text");
  Notes notes = noted();
  for (NotedFile& file : notes.files) file.kind = 0x6969;  // NFS
  fs::remove_all(path("deep"));
  const auto checked = check_shared_files(notes, mounts(), Grown::kTold);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(checked.error().message,
              HasSubstr(path("deep/er/file") + ", on a shared volume, isn't there; is its volume"));
}

// A header that counts the records behind it would have been overwritten.
TEST_F(SharedFiles, ThatAreWrittenAtAnyPlaceAreNotCutOff) {
  const std::string large(100'000, 'x');
  write("file", large);
  const Fd file(::open(path("file").c_str(), O_RDWR | O_CLOEXEC));
  const Notes notes = noted();
  write("file", "more");
  EXPECT_THAT(check(notes), HasSubstr("cut off: " + path("file") + " to 100000 bytes")) << "nothing is overwritten";
  std::fstream(path("file"), std::ios::in | std::ios::out).seekp(50'000) << "y";
  write("file", "more");
  refuses(notes, path("file"));
  EXPECT_EQ(fs::file_size(path("file")), 100'004);
}

TEST_F(SharedFiles, TooLargeToBeComparedWholeMustNotGrow) {
  write("file", "x");
  fs::resize_file(path("file"), 33 << 20);
  const Fd file(::open(path("file").c_str(), O_RDWR | O_CLOEXEC));
  const Notes notes = noted();
  EXPECT_EQ(check(notes), "");
  write("file", "more");
  refuses(notes, path("file"));
}

TEST_F(SharedFiles, ThatAnotherRankCutsOffMeanwhileAreWaitedFor) {
  write("log", "one\n");
  const Notes notes = noted();
  write("log", "two\n");
  const pid_t other = ::fork();
  if (other == 0) {
    // What a rank does, with a pause between its two steps.
    ::truncate(path("log").c_str(), 4);
    ::usleep(200'000);
    const timespec times[2] = {{0, UTIME_OMIT},
                               {notes.files[0].written_ns / 1'000'000'000, notes.files[0].written_ns % 1'000'000'000}};
    ::utimensat(AT_FDCWD, path("log").c_str(), times, 0);
    ::_exit(0);
  }
  while (fs::file_size(path("log")) != 4) ::usleep(100);
  EXPECT_EQ(check(notes), "");
  ::waitpid(other, nullptr, 0);
}

TEST_F(SharedFiles, ThatAreTooManyAreSaidNotToBeCompared) {
  for (int i = 0; i < 20; ++i) write(std::format("file-{}", i), "x");
  const Fd held(::open(path("file-7").c_str(), O_RDONLY | O_CLOEXEC));
  Notes notes;
  ASSERT_TRUE(note_open_files(::getpid(), mounts(), notes));
  ASSERT_TRUE(note_written_files(mounts(), 0, notes, {.entries = 10}));
  EXPECT_EQ(notes.incomplete, 1);
  EXPECT_LE(notes.files.size(), 11u);
  EXPECT_THAT(check(notes), HasSubstr("too many files on shared volumes to compare"));
}

TEST_F(SharedFiles, OnAVolumeThatIsOnlyReadAreNotCompared) {
  write("config", "x");
  const Fd config(::open(path("config").c_str(), O_RDONLY | O_CLOEXEC));
  Notes notes;
  ASSERT_TRUE(note_open_files(::getpid(), mounts("ro,relatime"), notes));
  ASSERT_TRUE(note_written_files(mounts("ro,relatime"), 0, notes));
  ASSERT_THAT(notes.files, SizeIs(1));
  EXPECT_EQ(notes.files[0].read_only, 1);
  write("config", "y");
  for (const Grown grown : {Grown::kTold, Grown::kCut}) {
    const auto compared = check_shared_files(notes, mounts("ro,relatime"), grown);
    ASSERT_TRUE(compared);
    EXPECT_FALSE(compared->ahead);
    EXPECT_EQ(compared->said, "");
  }
  EXPECT_EQ(content("config"), "xy");
}

TEST_F(SharedFiles, AreThoseTheProgramWrote) {
  write("old", "x");
  struct stat info{};
  ASSERT_EQ(::stat(path("old").c_str(), &info), 0);
  const timespec times[2] = {{0, UTIME_OMIT}, {info.st_mtim.tv_sec - 3600, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path("old").c_str(), times, 0), 0);
  write("new", "x");
  fs::create_directory(path("below"));
  write("below/new", "x");
  fs::create_symlink("/etc/passwd", path("link"));
  Notes notes;
  ASSERT_TRUE(note_written_files(mounts(), info.st_mtim.tv_sec * 1'000'000'000LL, notes));
  ASSERT_THAT(notes.files, SizeIs(2));
  EXPECT_EQ(notes.incomplete, 0);
}

TEST(SharedFileNotes, ThatAreDamagedAreRefused) {
  Notes notes;
  notes.files.push_back({.path = "/a b\n%c", .size = 3});
  const std::string text = encode(notes);
  EXPECT_EQ(control::decode_notes(text)->files, notes.files);
  for (const std::string& damaged : {std::string(""), text.substr(0, text.size() - 1), std::string("file path=/a\n"),
                                     std::string("\n"), std::string("notes at\n")})
    EXPECT_FALSE(control::decode_notes(damaged)) << damaged;
}

}  // namespace
}  // namespace bsp::init
