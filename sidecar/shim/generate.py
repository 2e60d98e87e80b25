#!/usr/bin/env python3
"""Writes the shim's wrappers: one per MPI procedure.

What each wrapper must translate comes from the MPI Forum's description of the standard (api/mpi_api.txt: every
procedure with the kind and direction of every parameter). The list of procedures and their exact C types come
from the installed mpi.h. Procedures that need more than translation are named in HAND and written by hand. The
generator fails on anything it doesn't understand, so no call passes unnoticed.

Each wrapper also exists under its PMPI name (a linker alias, pmpi.gen.opts), because a program that intercepts
MPI itself calls PMPI with virtual handles.

Usage: generate.py MPI_H API_TXT OUT_DIR
  ->  OUT_DIR/real_functions.gen.h, edge_calls.gen.h, wrappers_<n>.gen.cc, pmpi.gen.opts
"""
import re
import sys

PARTS = 3  # translation units, for a parallel build

# Written by hand: epoch/init.cc; requests, request_arrays, persistent, partitioned and matched_messages in messages/; error_codes and
# attributes in handles/; calls, memory, windows, files, callbacks, fortran_handles and dynamic_processes in objects/.
HAND = set("""
Init Init_thread Finalize Initialized Finalized Query_thread Is_thread_main Abort Wtime Wtick
Session_init Session_finalize Comm_get_parent Alloc_mem Free_mem
Add_error_class Add_error_code Add_error_string Error_class Error_string
Wait Test Waitall Testall Waitany Testany Waitsome Testsome Request_get_status Request_free Cancel Grequest_complete
Start Startall Mprobe Improbe Mrecv Imrecv
Psend_init Precv_init Pready Pready_range Pready_list Parrived
Comm_free Comm_disconnect Comm_dup Comm_dup_with_info Comm_idup Comm_idup_with_info Comm_create_group
Dist_graph_create Dist_graph_create_adjacent
Comm_spawn Comm_spawn_multiple Comm_accept Comm_connect Comm_join
Open_port Close_port Publish_name Unpublish_name Lookup_name Group_free Info_free Type_commit Type_free Type_dup Type_get_contents
Buffer_attach Buffer_detach
Comm_create_keyval Comm_free_keyval Comm_set_attr Comm_get_attr Comm_delete_attr
Keyval_create Keyval_free Attr_put Attr_get Attr_delete
Type_create_keyval Type_free_keyval Type_set_attr Type_get_attr Type_delete_attr
Win_create_keyval Win_free_keyval Win_set_attr Win_get_attr Win_delete_attr
Win_create Win_allocate Win_allocate_shared Win_create_dynamic Win_free Win_attach Win_detach Win_shared_query
Win_fence Win_lock Win_unlock Win_lock_all Win_unlock_all Win_start Win_complete Win_post Win_wait Win_test
File_open File_close File_get_amode File_sync
Pcontrol Op_create Op_free Comm_create_errhandler Win_create_errhandler File_create_errhandler
Session_create_errhandler Errhandler_free
Comm_c2f Comm_f2c Group_c2f Group_f2c Type_c2f Type_f2c Op_c2f Op_f2c Info_c2f Info_f2c
Errhandler_c2f Errhandler_f2c Request_c2f Request_f2c Win_c2f Win_f2c File_c2f File_f2c Message_c2f Message_f2c
""".split())

# Removed in MPI-3 and not in the description. mpi.h still declares them, hidden from C programs. old_names.cc has those that take
# handles.
REMOVED = set("Address Errhandler_create Errhandler_get Errhandler_set Type_extent Type_hindexed "
              "Type_hvector Type_lb Type_struct Type_ub".split())
# Open MPI's MPIX procedures (extensions.cc), which mpi.h doesn't declare.
EXTENSIONS = set("Comm_revoke Comm_is_revoked Comm_failure_ack Comm_ack_failed Comm_failure_get_acked Comm_get_failed "
                 "Comm_shrink Comm_agree Comm_iagree".split())
# Of the tool interface, what the shim must see (tool_interface.cc).
TOOLS = set("T_init_thread T_finalize T_pvar_handle_alloc".split())
# Extensions of Open MPI that take no virtual handle or were never implemented.
UNKNOWN_PASS = {"Session_set_info"}

VIRTUAL = {"COMMUNICATOR", "GROUP", "DATATYPE", "OPERATION", "ERRHANDLER", "INFO", "REQUEST", "WINDOW", "FILE"}
TIMED = {"SESSION"}  # pass through, but may block or be counted

SENDS = set("Send Bsend Ssend Rsend".split())
RECEIVES = set("Recv Sendrecv Sendrecv_replace".split())
# Of these, sidecar/shim/messages/interruptible.h has what threads call, under this condition.
INTERRUPTIBLE = {"Recv": "", "Sendrecv": "", "Probe": "", "Ssend": "", "Send": "bytes_of(count, to_real(datatype))"}
REQUEST_KINDS = [  # first match decides
    (r"I?[bsr]?send_init|Send_init|Bsend_init|Ssend_init|Rsend_init", "kSend"),
    (r"Recv_init", "kReceive"),
    (r"I[bsr]?send", "kSend"),
    (r"Irecv", "kReceive"),
    (r"Isendrecv(_replace)?", "kSendReceive"),
    (r"Grequest_start", "kGeneralised"),
    (r"R(put|get|accumulate|get_accumulate)|File_i.*", "kOther"),
    (r".*_init|I.*|Comm_i.*", "kCollective"),
]

SHARED_POINTER = r"File_\w+_(shared|ordered|ordered_begin)"

# Statements to run after success.
HOOKS = {
    "Comm_split_type": "note_split_type(*newcomm, split_type, info)",  # after wrap()
    "Type_set_name": "note_name(type, type_name)",
    "File_set_view": "note_view(fh, etype, filetype)",
    "File_get_view": "note_committed(*etype), note_committed(*filetype)",  # copies of committed datatypes
}
# The same for procedures whose name matches.
HOOK_PATTERNS = [
    (SHARED_POINTER, "note_shared_pointer(fh)"),
    (r"File_i\w+_all", "note_started(fh)"),
]

# MPI ignores some arguments, which may then hold anything, even a null handle. For each collective (blocking,
# nonblocking and persistent alike): the condition under which an argument is significant. Arguments not listed
# always are. tests/mpi/shim/programs/library/ignored.c covers this table.
LEAF, ROOT, PART = "is_leaf(comm, root)", "is_root(comm, root)", "takes_part(comm, root)"
NOT_IN_PLACE = "sendbuf != MPI_IN_PLACE"
SIGNIFICANT = {
    "Bcast": {"count datatype": PART},
    "Gather": {"sendcount sendtype": f"{LEAF} && {NOT_IN_PLACE}", "recvcount recvtype": ROOT},
    "Gatherv": {"sendcount sendtype": f"{LEAF} && {NOT_IN_PLACE}", "recvcounts displs recvtype": ROOT},
    "Scatter": {"sendcount sendtype": ROOT, "recvcount recvtype": f"{LEAF} && recvbuf != MPI_IN_PLACE"},
    "Scatterv": {"sendcounts displs sendtype": ROOT, "recvcount recvtype": f"{LEAF} && recvbuf != MPI_IN_PLACE"},
    "Allgather": {"sendcount sendtype": NOT_IN_PLACE},
    "Allgatherv": {"sendcount sendtype": NOT_IN_PLACE},
    "Alltoall": {"sendcount sendtype": NOT_IN_PLACE},
    "Alltoallv": {"sendcounts sdispls sendtype": NOT_IN_PLACE},
    "Alltoallw": {"sendcounts sdispls sendtypes": NOT_IN_PLACE},
    "Reduce": {"count datatype op": PART},
}

# How to count the data received by a completed collective: see received_collective in counters.h.
RECEIVED = {
    "Bcast": "received_collective(comm, root, bytes_of(count, to_real(datatype)))",
    "Scatter": "received_collective(comm, root, bytes_of(recvcount, to_real(recvtype)))",
    "Scatterv": "received_collective(comm, root, bytes_of(recvcount, to_real(recvtype)))",
    "Gather": "received_from_each(comm, recvcount, recvtype)",
    "Gatherv": "received_collective(comm, recvcounts, recvtype)",
    "Allgather": "received_from_each(comm, recvcount, recvtype)",
    "Allgatherv": "received_collective(comm, recvcounts, recvtype)",
    "Alltoall": "received_from_each(comm, recvcount, recvtype)",
    "Alltoallv": "received_collective(comm, recvcounts, recvtype)",
    "Reduce": "received_collective(comm, kAll, bytes_of(count, to_real(datatype)))",
    "Allreduce": "received_collective(comm, kAll, bytes_of(count, to_real(datatype)))",
    "Scan": "received_collective(comm, kAll, bytes_of(count, to_real(datatype)))",
    "Exscan": "received_collective(comm, kAll, bytes_of(count, to_real(datatype)))",
    "Reduce_scatter_block": "received_collective(comm, kAll, bytes_of(recvcount, to_real(datatype)))",
}
RECEIVED_AT = {"Bcast": LEAF, "Reduce": ROOT}  # where this differs from where its arguments are significant
# Blocking collectives that BSP_SUPERSTEP may name as the superstep edge.
EDGES = ["Barrier", "Bcast", "Gather", "Gatherv", "Scatter", "Scatterv", "Allgather", "Allgatherv",
         "Alltoall", "Alltoallv", "Alltoallw", "Reduce", "Allreduce", "Reduce_scatter",
         "Reduce_scatter_block", "Scan", "Exscan"]

COLLECTIVES = set(EDGES) | {"Neighbor_" + name for name in "allgather allgatherv alltoall alltoallv alltoallw".split()}
# Calls that make a communicator and aren't collective over another one, and what distinguishes them: C++.
TAGGED = {
    "Intercomm_create": "pre.comm_null, tag",
    "Comm_create_from_group": "pre.comm_null, 0",
    "Intercomm_create_from_groups": "pre.comm_null, 0",
}


class Param:
    def __init__(self, c_text, api_text):
        match = re.match(r"^(.*?)\b(\w+)\s*((?:\[[^\]]*\])*)$", c_text, re.S)
        self.type, self.name, self.brackets = match.group(1).strip(), match.group(2), match.group(3)
        _, description = api_text.split("=", 1)
        fields = description.split(":")
        self.kind, self.direction = fields[0], fields[1]
        self.length = fields[2] if len(fields) > 2 else None

    def declare(self):
        return f"{self.type} {self.name}{self.brackets}".replace("* ", "*")


class Procedure:
    def __init__(self, returns, name, params):
        self.returns, self.name, self.params = returns, name, params

    def kinds(self):
        return {p.kind for p in self.params}

    def find(self, *names):
        for name in names:
            for p in self.params:
                if p.name == name:
                    return p
        raise SystemExit(f"generate.py: MPI_{self.name} has no parameter named any of {names}")


def read(mpi_h, api_txt):
    api = {}
    for line in open(api_txt):
        words = line.split()
        api[words[0]] = words[1:]
    source = re.sub(r"/\*.*?\*/", "", open(mpi_h).read(), flags=re.S)
    pattern = r"OMPI_DECLSPEC\s+([\w ]+?)\s*\bMPI_(\w+)\s*\(([^;]*?)\)\s*(?:__mpi\w+\((?:\"[^\"]*\"|[^;\"])*?\))?\s*;"
    seen = set()  # mpi.h declares some for MPI 3 and again, as deprecated, for MPI 4
    for returns, name, arguments in re.findall(pattern, source, re.S):
        if name.startswith("T_") or name in REMOVED | UNKNOWN_PASS | seen:
            continue
        seen.add(name)
        full = "MPI_" + name
        if full not in api:
            raise SystemExit(f"generate.py: {full} of {mpi_h} is not in {api_txt}")
        texts = [] if arguments.strip() == "void" else [" ".join(a.split()) for a in arguments.split(",")]
        if len(texts) != len(api[full]):
            raise SystemExit(f"generate.py: {full} has {len(texts)} parameters in mpi.h, "
                             f"{len(api[full])} in the standard")
        yield Procedure(returns, name, [] if not texts else
                        ([] if full in SKIP_PARAMS else [Param(*pair) for pair in zip(texts, api[full])]))


SKIP_PARAMS = {"MPI_Pcontrol"}  # variadic


def base_name(name):
    """Allreduce for Allreduce, Iallreduce and Allreduce_init."""
    base = re.sub(r"_init$", "", name)
    return base[1:].capitalize() if re.match(r"I[a-z]", base) else base


def parent(procedure):
    """The parameter with the communicator over which the call is collective; None: it isn't."""
    makes_comm = any(p.kind == "COMMUNICATOR" and p.direction == "out" for p in procedure.params)
    if procedure.name == "Intercomm_create":
        return "local_comm"
    if procedure.name in TAGGED or not makes_comm and base_name(procedure.name) not in COLLECTIVES:
        return None
    return next(p.name for p in procedure.params if p.kind == "COMMUNICATOR")


def significant(procedure, name):
    """C++ condition under which MPI reads the argument; None: always."""
    base = base_name(procedure.name)
    for names, condition in SIGNIFICANT.get(base, {}).items():
        if name in names.split():
            return condition
    return None


# Counts are replaced by 1, not 0: with 0 a rank would skip a nonblocking collective and be out of step from then on.
SUBSTITUTES = {"POLYXFER_NUM_ELEM_NNI": "1", "POLYXFER_NUM_ELEM": "1", "DATATYPE": "pre.byte", "OPERATION": "pre.sum"}


def valid(procedure, param, text):
    """C++: the argument for MPI. Open MPI rejects some arguments that it should ignore, so they are replaced by valid ones."""
    condition = significant(procedure, param.name)
    if condition is None or "*" in param.type or param.brackets or param.kind not in SUBSTITUTES:
        return text
    return f"({condition}) ? {text} : {SUBSTITUTES[param.kind]}"


def received(procedure):
    """C++: counts what a collective has received, using the arguments that are significant on this rank."""
    text = RECEIVED[procedure.name].removesuffix(")") + f", ticks_of(call, EdgeCall::k{procedure.name}))"
    at = {significant(procedure, word) for word in re.findall(r"\w+", RECEIVED[procedure.name])} - {None}
    at = {RECEIVED_AT[procedure.name]} if procedure.name in RECEIVED_AT else at
    return f"if ({' && '.join(sorted(at))}) {text};" if at else text + ";"


def array_length(procedure, param):
    """C expression: the number of handles in the array that MPI reads."""
    condition = significant(procedure, param.name)
    length = whole_array_length(procedure, param)
    return f"{condition} ? {length} : 0" if condition else length


def whole_array_length(procedure, param):
    if param.length != "*":
        return param.length
    if procedure.name.lower().startswith(("neighbor", "ineighbor")):
        return "outdegree(comm)" if param.name == "sendtypes" else "indegree(comm)"
    return "remote_size(comm)"


def set_recipe(procedure):
    """C++: saves how to recreate a persistent request from the objects of a later epoch; None if that needs
    arrays of handles. Vector arguments are the program's own arrays, which MPI requires to stay unchanged."""
    call, types, op = [], [], ""
    for p in procedure.params:
        if p.kind in VIRTUAL and p.direction == "in":
            if p.length is not None:
                return None
            condition = significant(procedure, p.name)
            if p.kind == "DATATYPE":
                types.append(f"({condition}) ? {p.name} : nullptr" if condition else p.name)
            elif p.kind == "OPERATION":
                op = f", ({condition}) ? {p.name} : nullptr" if condition else f", {p.name}"
            call.append("pre.info_null" if p.kind == "INFO" else valid(procedure, p, f"to_real({p.name})"))
        else:
            call.append("request_out" if p.kind == "REQUEST" else valid(procedure, p, p.name))
    return ["if (made != nullptr) {",
            f"  set_recipe(*made, comm, [=](MPI_Request* request_out) {{",
            f"    return real.{procedure.name}({', '.join(call)});", f"  }}, {{{', '.join(types)}}}{op});", "}"]


def make_request(name, request, kind, comm):
    """C++: makes the virtual request."""
    of_kind = f"{request}, RequestKind::{kind}, \"MPI_{name}\", {comm}"
    if name.endswith("_init"):
        return f"make_persistent({of_kind}, {'dest, tag' if kind == 'kSend' else '-1, 0'})"
    if name == "Issend":
        return f"make_synchronous({request}, \"MPI_{name}\", {comm}, dest, tag, bytes)"
    if kind in ("kSend", "kSendReceive"):
        return f"make_send({of_kind}, dest, bytes)"
    return f"make_request({of_kind})"


def wrapper(procedure):
    name, before, call, after = procedure.name, [], [], []
    is_collective = name in EDGES
    keep = []  # arrays of datatypes that MPI reads until completion
    request = None
    for p in procedure.params:
        text = p.name
        if p.kind in VIRTUAL:
            pointer = "*" in p.type or p.brackets
            if p.direction == "in" and p.length is not None:
                handle = p.type.replace("const", "").replace("*", "").strip()
                before.append(f"RealArray<{handle}> real_{p.name}({p.name}, {array_length(procedure, p)});")
                text = f"real_{p.name}.data()"
                keep.append(f"real_{p.name}")
            elif p.direction == "in" and not pointer:
                text = f"to_real({p.name})"
            elif p.direction == "out" and pointer and p.length is None:
                if p.kind == "REQUEST":
                    request = p
                elif p.kind == "COMMUNICATOR":
                    how, what = ("wrap_tagged", TAGGED[name]) if name in TAGGED else ("wrap", parent(procedure))
                    after.append(f"{how}({p.name}, {what});")
                else:
                    after.append(f"wrap({p.name});")
            else:
                raise SystemExit(f"generate.py: MPI_{name}: can't translate {p.declare()} "
                                 f"({p.kind}, {p.direction}); write the wrapper by hand and add it to HAND")
        elif p.name == "reorder":
            text = "reordering(reorder)"
        call.append(valid(procedure, p, text))
    types = {p.name for p in procedure.params}
    status = sent = None
    if name in RECEIVES:
        status = procedure.find("status").name
        call[[p.name for p in procedure.params].index(status)] = "&own"
        before += ["ErrorsAfter errors;", "MPI_Status own{};"]
    if request is not None:
        kind = next(k for pattern, k in REQUEST_KINDS if re.fullmatch(pattern, name))
        comm = "comm" if "comm" in types else "pre.comm_null"
        persistent = name.endswith("_init")
        make = make_request(name, request.name, kind, comm)
        if keep:
            moves = "\n".join(
                f"    if (made != nullptr) keep_types(*made, {array}.take());" for array in keep)
            # Both arrays live in one request: their storage must not move.
            after.append(f"Request* made = {make};\n{moves}")
        elif name == "Irecv":
            after.append(f"Request* made = {make};")
            after.append("if (made != nullptr) note_receive(*made, buf, count, datatype, source, tag, comm);")
        elif persistent:
            after.append(f"Request* made = {make};")
            after += set_recipe(procedure)
            if kind == "kSend":
                after.append("if (made != nullptr) made->bytes = bytes_of(count, to_real(datatype));")
            if name == "Ssend_init":
                after.append("if (made != nullptr) made->synchronous = made->send_to >= 0;")
        else:
            after.append(make + ";")
    if name in SENDS or (request is not None and kind in ("kSend", "kSendReceive") and not persistent) \
            or name in ("Sendrecv", "Sendrecv_replace"):
        count = procedure.find("sendcount", "count").name
        datatype = procedure.find("sendtype", "datatype").name
        tag = procedure.find("sendtag", "tag").name
        sent = f"sent({procedure.find('comm').name}, dest, {tag}, {count}, {datatype});"
        if not status:
            after.insert(0, f"const std::uint64_t bytes = {sent}" if request is not None else sent)
    if name in HOOKS:
        after.append(HOOKS[name] + ";")
    after += [hook + ";" for pattern, hook in HOOK_PATTERNS if re.fullmatch(pattern, name)]
    if re.fullmatch(SHARED_POINTER, name):
        before.append("before_shared_pointer(fh);")
    if name.startswith("File_") and name.endswith("_begin"):
        after.append(f"note_split(fh, \"MPI_{name}\");")
    if name.startswith("File_") and name.endswith("_end"):
        before.append("note_split(fh, nullptr);")  # over, even if it fails
    if name in RECEIVED:
        after.append(received(procedure))
    of_all = parent(procedure)
    if of_all:
        before += ["ErrorsAfter errors(ErrorsAfter::Of::kCollective);", f"begin_collective({of_all});"]

    lines = [f"int MPI_{name}({', '.join(p.declare() for p in procedure.params) or 'void'}) {{"]
    if name in INTERRUPTIBLE:
        lines.append(f"  if (is_interruptible({INTERRUPTIBLE[name]}))\n"
                     f"    return interruptible::{name}({', '.join(p.name for p in procedure.params)});")
    lines.append("  Call call;")
    lines += ["  " + b for b in before]
    invoke = f"real.{name}({', '.join(call)})"
    if status:
        lines.append(f"  const int rc = {invoke};")
        lines.append("  if (consumed(rc)) received(comm, own, call.end());")
        if sent:  # also if the receive failed
            lines.append(f"  if (consumed(rc)) {sent}")
        lines.append(f"  put({status}, own);")
    elif after or of_all:
        lines.append(f"  const int rc = {invoke};")
    else:
        lines.append(f"  return {invoke};")
    if after:
        lines.append("  if (rc == MPI_SUCCESS) {")
        lines += ["    " + a for a in after]
        lines.append("  }")
    if is_collective:  # whatever MPI has returned here, the others may have come to the edge
        lines.append(f"  if (has_begun(comm, rc) && note_collective(EdgeCall::k{name}, comm)) superstep_edge();")
    elif of_all:
        lines.append(f"  has_begun({of_all}, rc);")
    if of_all:
        lines.append(f"  return errors.raised(rc, {of_all});")
    elif status or after:
        lines.append("  return errors.raised(rc);" if status else "  return rc;")
    lines.append("}")
    return "\n".join(lines)


def brief_wrapper(procedure):
    """For what takes no handle of the shim's: MPI answers it from its own memory."""
    arguments = ", ".join(p.name for p in procedure.params)
    return (f"{procedure.returns} MPI_{procedure.name}({', '.join(p.declare() for p in procedure.params) or 'void'}) {{\n"
            f"  const BriefCall call;\n  return real.{procedure.name}({arguments});\n}}")


def is_brief(procedure):
    return procedure.returns != "int" or not procedure.kinds() & (VIRTUAL | TIMED)


PREAMBLE = """// Generated by sidecar/shim/generate.py; don't edit.
#include "sidecar/shim/wrappers.h"

using namespace bsp::shim;

extern "C" {
"""


def main():
    mpi_h, api_txt, out = sys.argv[1:4]
    procedures = list(read(mpi_h, api_txt))
    names = {p.name for p in procedures}
    stale = HAND - names - {n for n in HAND if n.endswith(("c2f", "f2c"))}
    if stale - {"Wtime", "Wtick"}:
        print("generate.py: not in this mpi.h: " + " ".join(sorted(stale)), file=sys.stderr)
    with open(f"{out}/real_functions.gen.h", "w") as f:
        f.write("// Generated by sidecar/shim/generate.py; don't edit.\n#pragma once\n\n"
                "#define BSP_REAL_FUNCTIONS(X) \\\n")
        f.write(" \\\n".join(f"  X({p.name})" for p in procedures) + "\n")
    with open(f"{out}/edge_calls.gen.h", "w") as f:
        f.write("// Generated by sidecar/shim/generate.py; don't edit.\n#pragma once\n\n"
                "#define BSP_EDGE_CALLS(X) \\\n")
        f.write(" \\\n".join(f"  X({n})" for n in EDGES) + "\n")
    wrapped = [p for p in procedures if p.name not in HAND]
    with open(f"{out}/pmpi.gen.opts", "w") as f:
        f.write("\n".join(f"--defsym=PMPI_{n}=MPI_{n}" for n in sorted({p.name for p in wrapped} | (HAND & names) | REMOVED - {"Address"} | TOOLS | {"Wtime", "Wtick"})) + "\n")
        f.write("\n".join(f"--defsym=PMPIX_{n}=MPIX_{n}" for n in sorted(EXTENSIONS)) + "\n")
    for part in range(PARTS):
        with open(f"{out}/wrappers_{part}.gen.cc", "w") as f:
            f.write(PREAMBLE)
            for p in wrapped[part::PARTS]:
                f.write("\n" + (brief_wrapper if is_brief(p) else wrapper)(p) + "\n")
            f.write("\n}  // extern \"C\"\n")
    print(f"generate.py: {len(wrapped)} wrappers generated, {len(HAND & names)} by hand, "
          f"{len(procedures)} procedures in mpi.h")


if __name__ == "__main__":
    main()
