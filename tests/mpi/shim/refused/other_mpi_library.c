/* libmpi.so.12, the name that MPICH and its derivatives use: what a program of another MPI needs to start. Reports the
 * version in TEST_MPI_VERSION, if that is set, and the PMIx version in TEST_PMIX_VERSION. */
#include <stdlib.h>
#include <string.h>

int PMPI_Init(int* argc, char*** argv) {
  (void)argc;
  (void)argv;
  return 0;
}
int PMPI_Finalize(void) { return 0; }
int PMPI_Get_library_version(char* version, int* length) {
  const char* said = getenv("TEST_MPI_VERSION");
  strcpy(version, said ? said : "MPICH Version:      4.2.1\nMPICH Release date: Wed Apr 17 15:30:02 CDT 2024\n");
  *length = (int)strlen(version);
  return 0;
}
const char* PMIx_Get_version(void) {
  const char* said = getenv("TEST_PMIX_VERSION");
  return said ? said : "OpenPMIx 5.0.7, repo rev: gitv5.0.7";
}
int MPI_Init(int* argc, char*** argv) __attribute__((weak, alias("PMPI_Init")));
int MPI_Finalize(void) __attribute__((weak, alias("PMPI_Finalize")));
int MPI_Get_library_version(char* version, int* length) __attribute__((weak, alias("PMPI_Get_library_version")));
