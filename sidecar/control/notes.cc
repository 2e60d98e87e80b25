#include "sidecar/control/notes.h"

#include "sidecar/control/control.h"
#include "sidecar/control/messages.h"

namespace bsp::control {

std::string encode(const Notes& notes) {
  std::string text = encode(packet_of(notes)) + "\n";
  for (const NotedFile& file : notes.files) text += encode(packet_of(file)) + "\n";
  return text;
}

Result<Notes> decode_notes(std::string_view text) {
  Notes notes;
  bool begun = false;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return fail(ErrorCode::kInvalid, "the notes of shared files end too early");
    BSP_TRY(const Message packet, decode(text.substr(0, end)));
    text.remove_prefix(end + 1);
    if (packet.verb == Notes::kVerb) {
      notes = from_packet<Notes>(packet);
      begun = true;
    } else if (packet.verb == NotedFile::kVerb) {
      notes.files.push_back(from_packet<NotedFile>(packet));
    }
  }
  if (!begun) return fail(ErrorCode::kInvalid, "the notes of shared files have no beginning");
  return notes;
}

}  // namespace bsp::control
