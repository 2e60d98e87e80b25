#include "operator/convert/script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <format>

namespace bsp::convert {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::uint64_t kHosts = 3;

Result<Launch> launched(std::string_view script) {
  return read_script(script, false, Variables({{"IN_POD", std::nullopt}, {"FOUR", "4"}}, kHosts));
}

std::string joined(const std::vector<Word>& words) {
  std::string all;
  for (const Word& word : words) all += (all.empty() ? "" : " ") + (word.expanded ? word.source : word.text);
  return all;
}

TEST(Script, KnownValuesAreFilledIn) {
  for (const auto& [script, words] : std::vector<std::pair<std::string, std::string>>{
           {"N=2; mpirun -np $N a", "-np 2 a"},
           {"N=2\nM=\"$N\"0\nmpirun -np ${M} a", "-np 20 a"},
           {"N=$((2 * 3 + 8/4 - 1))\nmpirun -np \"$N\" a", "-np 7 a"},
           {"HOSTS=$(wc -l < /etc/mpi/hostfile); mpirun -np $(($HOSTS*8)) a", "-np 24 a"},
           {"HOSTS=$(sed -n '$=' /etc/mpi/hostfile); mpirun -np $HOSTS a", "-np 3 a"},
           {"HOSTS=`cat /etc/mpi/hostfile | wc -l`; mpirun -np $HOSTS a", "-np 3 a"},
           {"F=/etc/mpi/hostfile; mpirun -np $(grep -c slots $F) a", "-np 3 a"},
           {"mpirun -np $(cut -d' ' -f1 $OMPI_MCA_orte_default_hostfile | sort -u | wc -l) a", "-np 3 a"},
           {"mpirun -np `expr 2 \\* 3` a", "-np 6 a"},
           {"mpirun -np $FOUR a ${FOUR}x", "-np 4 a 4x"},
           {"OPTIONS='-x A -np 2'; mpirun $OPTIONS a", "-x A -np 2 a"},
           {"OPTIONS='a b'; mpirun -np 2 \"$OPTIONS\"", "-np 2 a b"},
           {"NONE=; mpirun $NONE -np 2 a \"$NONE\"", "-np 2 a "},
           {"N=1; N+=2; mpirun -np $N a", "-np 12 a"},
           {"RUN=mpirun; $RUN -np 2 a", "-np 2 a"},
           {"A=1 B=$A; export B=$B$B C=$A; mpirun a $B$C", "a 111"},
           {"N=2 && export M=$N && mpirun -np $M a", "-np 2 a"},
           {"unset FOUR; N=1; unset N; mpirun $N a \"$FOUR\"", "a "}}) {
    const auto launch = launched(script);
    ASSERT_TRUE(launch) << script << ": " << launch.error().message;
    EXPECT_EQ(joined(launch->words), words) << script;
  }
}

TEST(Script, UnknownValuesStayAsTheyAre) {
  for (const auto& [script, words] : std::vector<std::pair<std::string, std::string>>{
           {"mpirun a $ELSEWHERE", "a $ELSEWHERE"},
           {"mpirun a \"$IN_POD\"", "a \"$IN_POD\""},
           {"mpirun a *.txt ~/b", "a *.txt ~/b"},
           {"N=$(awk '{s+=$2} END {print s}' /etc/mpi/hostfile); mpirun -np $N a", "-np $N a"},
           {"mpirun -np $(wc -l /etc/mpi/hostfile) a", "-np $(wc -l /etc/mpi/hostfile) a"},
           {"mpirun -np $(wc -l < /own/hosts) a", "-np $(wc -l < /own/hosts) a"},
           {"N=2; for N in 3 4; do echo; done; mpirun -np $N a", "-np $N a"},
           {"N=2; if true; then N=3; fi; mpirun -np $N a", "-np $N a"},
           {"N=2; read N; mpirun -np $N a", "-np $N a"},
           {"N=2; ((N++)); mpirun -np $N a", "-np $N a"},
           {"N=2; f() { N=3; }; f; mpirun -np $N a", "-np $N a"},
           {"A='*.txt'; mpirun a $A", "a $A"},
           {"mpirun -np $((9223372036854775807 + 1)) a", "-np $((9223372036854775807 + 1)) a"},
           {"mpirun -np $((1 / 0)) a $((010))", "-np $((1 / 0)) a $((010))"},
           {"IFS=,; A=b,c; mpirun a $A \"$A\"", "a $A b,c"}}) {
    const auto launch = launched(script);
    ASSERT_TRUE(launch) << script << ": " << launch.error().message;
    EXPECT_EQ(joined(launch->words), words) << script;
  }
}

TEST(Script, WhatOnlyConcernsTheLauncherIsNamedAndLeftOut) {
  for (const auto& [script, named] : std::vector<std::pair<std::string, std::string>>{
           {"sleep 5; mpirun a", "sleep (line 1)"},
           {"sleep 5 && mpirun a", "sleep (line 1)"},
           {"\nuntil ssh -o A=B -p 2222 w-0 true 2>/dev/null; do sleep 1; done\nmpirun a", "until (line 2)"},
           {"OPTS='-o A=B'; for h in $(cat /etc/mpi/hostfile); do ssh $OPTS $h exit; done; mpirun a", "for (line 1)"},
           {"ready() { getent hosts w-0 > /dev/null || return 1; }\nwhile ! ready; do sleep 1; done; mpirun a",
            "while (line 2)"},
           {"if [ -f /x ]; then cat /x; else exit 1; fi; mpirun a", "if (line 1)"},
           {"echo a | tr a b && mpirun a", "echo (line 1)"},
           {"ulimit -l unlimited; mpirun a; echo done; ls", "ulimit (line 1), echo (line 1), ls (line 1)"},
           {"service ssh start; mkdir -p /run/sshd; /usr/sbin/sshd; mpirun a", "service (line 1)"},
           {"cp /keys/* /root/.ssh/; chmod 600 /root/.ssh/id_rsa; mpirun a", "cp (line 1), chmod (line 1)"},
           {"mpirun --version; mpirun a", "mpirun (line 1)"},
           {"H=/tmp/hosts; sed s/=1/=8/ /etc/mpi/hostfile > $H; mpirun --hostfile /tmp/hosts a", "sed (line 1)"},
           {"cp /etc/mpi/hostfile \"$H\"; echo w-9 >> $H; mpirun -f \"$H\" a", "cp (line 1), echo (line 1)"},
           {"mpirun a; sleep infinity", "sleep (line 1)"}}) {
    const auto launch = launched(script);
    ASSERT_TRUE(launch) << script << ": " << launch.error().message;
    ASSERT_EQ(launch->notes.size(), 1U) << script;
    EXPECT_THAT(launch->notes[0], HasSubstr(named)) << script;
    EXPECT_THAT(launch->notes[0], HasSubstr("only the launcher needs it")) << script;
    EXPECT_EQ(launch->words.back().text, "a") << script;
    EXPECT_EQ(preparation(*launch, {}, {}).value_or("?"), "") << script;
  }
  for (const char* script : {"set -ex\nshopt -s nullglob\ntrap 'exit 1' INT\nmpirun a", ": ; true && mpirun a; exit $?",
                             "mpirun a 2>&1", "time -p exec nohup mpirun a < /dev/null", "mpirun a || exit 1"}) {
    const auto launch = launched(script);
    ASSERT_TRUE(launch) << script << ": " << launch.error().message;
    EXPECT_THAT(launch->notes, IsEmpty()) << script;
  }
}

TEST(Script, OutputGoesToThePodsLogs) {
  for (const auto& [script, note] : std::vector<std::pair<std::string, std::string>>{
           {"mpirun a > log", ">log is not carried over"},
           {"mpirun a &>> \"$HOME/log\"", "&>>\"$HOME/log\" is not carried over"},
           {"mpirun a 2>&1 | tee -a log", "| tee -a log is not carried over"},
           {"{ sleep 1; mpirun a; } | grep b", "| grep b is not carried over"},
           {"mpirun a || true", "a program that fails ends the job"}}) {
    const auto launch = launched(script);
    ASSERT_TRUE(launch) << script << ": " << launch.error().message;
    EXPECT_THAT(launch->notes[0], HasSubstr(note)) << script;
    EXPECT_EQ(joined(launch->words), "a") << script;
  }
}

TEST(Script, DirectoriesFollowEachOther) {
  for (const auto& [script, directory, text] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {"cd /a && mpirun b", "/a", ""},
           {"cd /a; cd b/c; mpirun d", "/a/b/c", ""},
           {"cd /a; cd /b; mpirun c", "/b", ""},
           {"D=/a; cd \"$D\"; mpirun b", "/a", ""},
           {"cd a && mpirun b", "", "cd a || exit; "},
           {"set -e; cd $ELSEWHERE; mpirun b", "", "cd $ELSEWHERE || exit; "},
           {"source a; cd /b; mpirun c", "", "source a; cd /b; "},
           {"mpirun b; cd /a", "", ""}}) {
    const auto launch = launched(script);
    ASSERT_TRUE(launch) << script << ": " << launch.error().message;
    EXPECT_EQ(launch->directory, directory) << script;
    EXPECT_EQ(preparation(*launch, {}, {}).value_or("?"), text) << script;
  }
}

TEST(Script, EachRankSetsItsEnvironmentUp) {
  for (const auto& [script, text] : std::vector<std::pair<std::string, std::string>>{
           {". /etc/profile && mpirun a", ". /etc/profile || exit; "},
           {". a || exit 1; . b || true; mpirun a", ". a || exit; . b; "},
           {"set -e; . a; A=$ELSEWHERE/x; mpirun a $A", ". a || exit; A=$ELSEWHERE/x; "},
           {"V=1\nW=2; source /opt/vars.sh $V > /dev/null\nmpirun a", "V=1; W=2; source /opt/vars.sh $V >/dev/null; "},
           {"module load openmpi; mkdir -p /out; mpirun a", "module load openmpi; mkdir -p /out; "},
           {"A=1; B=$ELSEWHERE/x; mpirun a \"$B\"", "B=$ELSEWHERE/x; "},
           {"A=1; B=$ELSEWHERE/$A; mpirun a \"$B\"", "A=1; B=$ELSEWHERE/$A; "}}) {
    const auto launch = launched(script);
    ASSERT_TRUE(launch) << script << ": " << launch.error().message;
    EXPECT_EQ(preparation(*launch, launch->words, {}).value_or("?"), text) << script;
  }
  const auto launch = launched("export A=$ELSEWHERE:b; mpirun -x A a");
  ASSERT_TRUE(launch) << launch.error().message;
  EXPECT_EQ(preparation(*launch, {}, {"A"}).value_or("?"), "A=$ELSEWHERE:b; export A; ");
}

TEST(Script, ValuesOfTheLauncherAloneAreRefused) {
  for (const auto& [script, named] : std::vector<std::pair<std::string, std::string>>{
           {"mpirun a $(date)", "$(date) holds $(date)"},
           {"mpirun a $HOSTNAME", "$HOSTNAME"},
           {"mpirun a \"$@\"", "$@"},
           {"mpirun a ${1:-b}", "${1:-b}"},
           {"mpirun a $RANDOM", "$RANDOM"},
           {"SEED=$(date +%s); mpirun a --seed=$SEED", "--seed=$SEED holds $SEED"},
           {"A=$(date); B=$A/x; mpirun a $B", "$B holds $B"},
           {"for i in 1 2; do echo; done; mpirun a $i", "$i holds $i"},
           {"L=(a b); mpirun \"${L[@]}\"", "${L[@]}"}}) {
    const auto launch = launched(script);
    ASSERT_TRUE(launch) << script << ": " << launch.error().message;
    const auto text = preparation(*launch, launch->words, {});
    ASSERT_FALSE(text) << script;
    EXPECT_THAT(text.error().message, HasSubstr(named)) << script;
    EXPECT_THAT(text.error().message, HasSubstr("only the launcher knows: write its value")) << script;
  }
  const auto launch = launched("export M=$(head -n1 /etc/mpi/hostfile); mpirun -x M a");
  ASSERT_TRUE(launch) << launch.error().message;
  EXPECT_THAT(preparation(*launch, {}, {"M"}).error().message, HasSubstr("-x M passes on what the script computes"));
}

// Neither time nor memory without end.
TEST(Script, HoweverLongAValueBecomes) {
  std::string doubling = "A=0123456789\n", many = doubling;
  for (int i = 0; i < 200; ++i) doubling += "A=$A$A\n";
  const auto doubled = launched(doubling + "mpirun a $A");
  ASSERT_TRUE(doubled) << doubled.error().message;
  EXPECT_EQ(joined(doubled->words), "a $A");
  for (int i = 0; i < 8'000; ++i) many += std::format("A{}=$A\n", i % 10);
  EXPECT_TRUE(launched(many + "mpirun a $A7"));
  std::string words = "A='" + std::string(50'000, 'a') + "'; mpirun ";
  for (int i = 0; i < 10'000; ++i) words += "$A";
  EXPECT_TRUE(launched(words));
  EXPECT_THAT(launched("mpirun a " + std::string(100'000, 'b')).error().message,
              HasSubstr("has more than 100000 bytes"));
}

TEST(Script, WhatCannotBeTheSameIsRefusedByName) {
  for (const auto& [script, message] : std::vector<std::pair<std::string, std::string>>{
           {"cp a b; mpirun c", "line 1 of its script runs \"cp\": do it in the image, in an init container"},
           {"\n\nwget u && mpirun c", "line 3 of its script runs \"wget\""},
           {"python -c 'x' && mpirun c", "runs \"python\""},
           {"mpirun c && aws s3 cp a b", "runs \"aws\": do it in a Job that starts when this one has ended"},
           {"cat <<EOF > in\na\nEOF\nmpirun c", "writes \"in\""},
           {"echo a >> in; mpirun c", "writes \"in\""},
           {"echo a | tee in; mpirun c", "runs \"tee\""},
           {"echo a > hosts; mpirun -np 2 --hostfile other c", "writes \"hosts\""},
           {"sed -i s/a/b/ in; mpirun c", "runs \"sed\""},
           {"A=$(rm b); mpirun c", "runs \"rm\""},
           {"echo $(rm b); mpirun c", "runs \"rm\""},
           {"cat <(rm b); mpirun c", "runs \"rm\""},
           {"env -i rm b; mpirun c", "runs \"env\""},
           {"timeout 5 rm b; mpirun c", "runs \"rm\""},
           {"find . -exec rm {} \\; ; mpirun c", "runs \"find\""},
           {"trap 'cp out /data' EXIT; mpirun c", "runs \"cp\""},
           {"eval \"$X\"; mpirun c", "runs \"eval\""},
           {"ssh w-0 rm -rf /data; mpirun c", "runs \"rm\" on other hosts"},
           {"for h in a; do ssh $h 'mkdir /data'; done; mpirun c", "runs \"mkdir\" on other hosts inside \"for\""},
           {"f() { rm b; }; f; mpirun c", "runs \"rm\""},
           {"export A=$B; export C=1 D=$C; mpirun c", "sets C and uses it in one \"export\": write two commands"},
           {"mkdir /out; mpirun c", "runs \"mkdir\" without -p"},
           {"cd; mpirun c", "name the directory"},
           {"cd -; mpirun c", "name the directory"},
           {"source $(which vars); mpirun c", "only the launcher knows"},
           {"[ -f /done ] && exit 0; mpirun c", "may end with \"exit\" before mpirun"},
           {"if [ -f /done ]; then exit; fi; mpirun c", "may end with \"if\" before mpirun"},
           {"[ -n \"$A\" ] && mpirun c", "makes mpirun depend on \"[\""},
           {"[[ -f a && -f b ]] && echo && mpirun c", "makes mpirun depend on \"[[\""},
           {"! ping w && mpirun c", "makes mpirun depend on \"ping\""},
           {"ping w || mpirun c", "makes mpirun depend on the failure of \"ping\""},
           {"[ -f a ] && { mpirun c; }", "makes mpirun depend on \"[\""},
           {"[ -f a ] && . a; mpirun c", "makes \".\" depend on \"[\""},
           {"[ -f a ] && N=2; mpirun -np $N c", "makes \"N=2\" depend on \"[\""},
           {"cd /a & mpirun c", "makes \"cd\" depend on \"&\""},
           {"mpirun c & wait", "runs mpirun with \"&\""},
           {"mpirun c < in", "gives mpirun an input, <in"},
           {"mpirun c <<EOF\na\nEOF\n", "gives mpirun an input"},
           {"cat in | mpirun c", "pipes into mpirun"},
           {"mpirun c | python d", "runs \"python\""},
           {"mpirun c | tee log | rm d", "runs \"rm\""},
           {"cp a b; mpirun c; mpirun d", "runs \"cp\""},
           {"for i in 1 2; do mpirun c; done", "runs \"mpirun\" inside \"for\": let mpirun run once, outside of it"},
           {"if mpirun c; then echo; fi", "inside \"if\""},
           {"main() { mpirun c; }; main", "runs \"mpirun\""},
           {"horovodrun -np 2 a", "runs \"horovodrun\" and not mpirun"},
           {"cd /a && torchrun b", "runs \"torchrun\" and not mpirun"},
           {"sleep infinity", "runs \"sleep\" and not mpirun"},
           {"cat a > b; $RUN c", "runs no mpirun: write mpirun and the program here"},
           {"mpirun 'a", "its script has a ' that nothing closes"},
           {"  # nothing", "is empty"}}) {
    const auto launch = launched(script);
    ASSERT_FALSE(launch) << script;
    EXPECT_EQ(launch.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(launch.error().message, HasSubstr(message)) << script;
  }
}

}  // namespace
}  // namespace bsp::convert
