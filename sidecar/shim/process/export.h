// Deliberate interpositions: what the program and its libraries see of the shim besides the functions of mpi.h.
#pragma once

#include <dlfcn.h>

#define BSP_EXPORT __attribute__((visibility("default")))

// Called before a sanitizer is ready, or after it has let go of the thread. What it calls isn't instrumented either.
#define BSP_UNSANITIZED __attribute__((no_sanitize("thread", "address", "undefined")))

// What the program would have called without the shim.
#define BSP_NEXT(name) reinterpret_cast<decltype(&name)>(dlsym(RTLD_NEXT, #name))

// Defines function `name`, of at most two arguments: it calls `before` with them, and jumps to the function that `before` returns, with
// the arguments and the return address that it was called with. glibc tells the caller of dlsym and dlopen by the return address: the
// library after which RTLD_NEXT begins, and whose RUNPATH applies.
#if defined(__x86_64__)
#define BSP_JUMP_AFTER(name, before) \
  asm(".text\n"                      \
      ".globl " #name                \
      "\n"                           \
      ".type " #name                 \
      ", %function\n"                \
      ".p2align 4\n" #name           \
      ":\n"                          \
      ".cfi_startproc\n"             \
      "endbr64\n"                    \
      "pushq %rdi\n"                 \
      ".cfi_adjust_cfa_offset 8\n"   \
      "pushq %rsi\n"                 \
      ".cfi_adjust_cfa_offset 8\n"   \
      "subq $8, %rsp\n"              \
      ".cfi_adjust_cfa_offset 8\n"   \
      "call " #before                \
      "\n"                           \
      "addq $8, %rsp\n"              \
      ".cfi_adjust_cfa_offset -8\n"  \
      "popq %rsi\n"                  \
      ".cfi_adjust_cfa_offset -8\n"  \
      "popq %rdi\n"                  \
      ".cfi_adjust_cfa_offset -8\n"  \
      "jmp *%rax\n"                  \
      ".cfi_endproc\n"               \
      ".size " #name ", .-" #name "\n")
#elif defined(__aarch64__)
#define BSP_JUMP_AFTER(name, before) \
  asm(".text\n"                      \
      ".globl " #name                \
      "\n"                           \
      ".type " #name                 \
      ", %function\n"                \
      ".p2align 4\n" #name           \
      ":\n"                          \
      ".cfi_startproc\n"             \
      "hint #34\n"                   \
      "stp x29, x30, [sp, #-32]!\n"  \
      ".cfi_adjust_cfa_offset 32\n"  \
      ".cfi_offset 29, -32\n"        \
      ".cfi_offset 30, -24\n"        \
      "stp x0, x1, [sp, #16]\n"      \
      "mov x29, sp\n"                \
      "bl " #before                  \
      "\n"                           \
      "mov x16, x0\n"                \
      "ldp x0, x1, [sp, #16]\n"      \
      "ldp x29, x30, [sp], #32\n"    \
      ".cfi_restore 29\n"            \
      ".cfi_restore 30\n"            \
      ".cfi_adjust_cfa_offset -32\n" \
      "br x16\n"                     \
      ".cfi_endproc\n"               \
      ".size " #name ", .-" #name "\n")
#endif
