// A program may call MPI in destructors of its own libraries, which run before those of the shim's objects or after them. So none of the
// shim's is destroyed: for each, the compiler calls this instead of the C library's function, in which it would be registered.
extern "C" int __cxa_atexit(void (*)(void*), void*, void*) { return 0; }
