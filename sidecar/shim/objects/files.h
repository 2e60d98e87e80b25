// MPI's files at a gate (files.cc has the calls).
//
// A file is closed when its epoch closes and opened again in the next one, by the same name, with the same view,
// pointers, atomicity, hints and error handler.
//
// Why the program can't notice:
//  * Every rank is behind the same edge, no thread is inside MPI and no request of a file is pending. Files are closed
//    only if all ranks agree to close the epoch, every one of a file's ranks has it open and all have started as many
//    nonblocking collectives: so none is half done.
//  * MPI never creates, truncates or removes a file then: a reopened file has lost MPI_MODE_CREATE and MPI_MODE_EXCL,
//    and the shim itself removes a file that is to be deleted on close.
//  * What a rank has written is with its storage before it stops (MPI_File_sync), as it may go on elsewhere. If that
//    fails, no rank closes anything. Storage reports such an error only once to each who has the file open, so the
//    program's next MPI_File_sync returns it; until then, or until the program closes the file, the file postpones the
//    gate. No rank of the job writes between the close and the next epoch.
//  * A descriptor of the file stays open meanwhile; where none can be had, the gate is postponed. So the rules for the
//    program's own files hold when the rank moves (docs/what-moves.md): the file is carried with the rank, or found on a
//    volume that the target mounts too, or the move is given up and the rank continues where it was.
//  * The program's own descriptors of the file stay open. Its fcntl locks would end with any close, so they postpone the
//    gate.
//  * Pointers are MPI's to tell. The shared one is read only if the program has used it: some of Open MPI's
//    implementations can't tell it, and then the file postpones the gate. Until then it is where MPI has put it: where
//    the view begins, as after opening again, or at the end at which MPI_MODE_APPEND opened the file, which is noted.
//    It is read back after opening again. If it isn't where it was, the rank ends: at once if the program has used it, else
//    before it does.
//    In MPI_MODE_SEQUENTIAL nothing notes that end, and a view begins where the pointer was: such a file counts as used.
#pragma once

#include <cstdint>
#include <string>

#include "sidecar/shim/handles/handles.h"

namespace bsp::shim {

// --- Notes that the generated wrappers take after success ----------------------------------------------

void note_view(MPI_File handle, MPI_Datatype etype, MPI_Datatype filetype);
void note_committed(MPI_Datatype copy);
void note_shared_pointer(MPI_File handle);
void note_started(MPI_File handle);                  // a nonblocking collective
void note_split(MPI_File handle, const char* call);  // a split collective; nullptr: it has ended

// Before a call that uses the shared pointer.
void before_shared_pointer(MPI_File handle);

// --- At a gate -------------------------------------------------------------------------------------------

// Notes which file `file.path` leads to now.
void note_identity(File& file);

// Where its shared pointer is; < 0 if MPI can't tell, as with sharedfp/individual, which reports success and stores nothing. Never
// calls the program's error handler.
MPI_Offset told_shared_position(const File& file);

// Exits with a message if the shared pointer couldn't be put back when the file was opened again.
void require_shared_pointer(const File& file);

// What prevents a file from being closed now; "" if nothing does.
std::string file_blocker();

// 0, summed over all ranks, if every file is open on all its ranks and they have started as many collectives.
std::int64_t share_of_files();

// Collective over all ranks that have agreed to close their files: the last attempt to find what prevents it, which costs
// more than those above. Files opened for writing are brought to their storage. "" if nothing prevents it.
std::string save_files();

// Collective over all ranks.
void close_files();
void reopen_files();

// --- In MPI_Finalize -------------------------------------------------------------------------------------

// Closes the files that the program has left open, if all their ranks have: Open MPI would do so when the session has
// lost what ROMIO needs for it. Collective over all ranks.
void close_files_left_open();

}  // namespace bsp::shim
