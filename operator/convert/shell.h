// A shell's script as a tree: POSIX's grammar, and of bash's what launchers' scripts use. It is read, never run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/core/error.h"

namespace bsp::convert {

// A part of a word that a shell treats in one way.
struct Piece {
  enum class Kind {
    kText,
    kVariable,    // $NAME, ${NAME}: the name
    kParameter,   // ${NAME:-x}, $'x', NAME=(x): what is enclosed
    kCommand,     // $(x), `x`, <(x): what is enclosed
    kArithmetic,  // $((x)): what is enclosed
    kPattern      // *, ?, [x], ~, {x,y}
  };
  Kind kind = Kind::kText;
  std::string text;
  bool quoted = false;  // no words are split off from its value
};

struct Word {
  std::string text;       // without quotes
  std::string source;     // as it was written
  bool expanded = false;  // contains something that only a shell expands
  std::vector<Piece> pieces;
};

struct Redirection {
  std::string sign;  // with the descriptor: 2>>
  Word target;
};

struct Command;
struct Pipeline {
  std::vector<Command> commands;
  bool negated = false;
  std::string next = ";";  // what follows it: ; && || &
};
using Script = std::vector<Pipeline>;

struct Command {
  std::string compound;  // if, for, while, until, case, {, (, ((, name(); empty for a simple command
  std::vector<Word> words;
  std::vector<Redirection> redirections;
  Script inner;  // all that it encloses, in order
  int line = 1;
};

// kInvalid says what is wrong and where: "has a \" that nothing closes".
Result<Script> read_shell(std::string_view text);

// The text as one word that a shell reads as itself.
[[nodiscard]] std::string quoted(const std::string& text);

}  // namespace bsp::convert
