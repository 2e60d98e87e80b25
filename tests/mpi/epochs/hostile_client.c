/* hostile_client RUN_DIR: a PMIx client that misuses the library. In groups and fences of both ranks it passes values
 * of every type that the library can pack, under the keys that a server reads. It prints "survived" and how many of
 * its calls were refused. */
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void load_descriptor(const char* directory) {
  char line[8192], path[4096];
  snprintf(path, sizeof path, "%s/epoch", directory);
  FILE* f = fopen(path, "r");
  while (f && fgets(line, sizeof line, f)) {
    line[strcspn(line, "\n")] = 0;
    char* equals = strchr(line, '=');
    if (!equals || strncmp(line, "PMIX_", 5)) continue;
    *equals = 0;
    setenv(line, equals + 1, 1);
  }
  if (f) fclose(f);
}

int main(int argc, char** argv) {
  /* Types without a pointer: the library copies the words of the union. */
  static const pmix_data_type_t plain[] = {PMIX_BOOL,    PMIX_BYTE,    PMIX_SIZE,       PMIX_PID,       PMIX_INT,
                                           PMIX_INT8,    PMIX_INT16,   PMIX_INT32,      PMIX_INT64,     PMIX_UINT,
                                           PMIX_UINT8,   PMIX_UINT16,  PMIX_UINT32,     PMIX_UINT64,    PMIX_FLOAT,
                                           PMIX_DOUBLE,  PMIX_TIMEVAL, PMIX_TIME,       PMIX_STATUS,    PMIX_PROC_RANK,
                                           PMIX_PERSIST, PMIX_SCOPE,   PMIX_DATA_RANGE, PMIX_PROC_STATE};
  static const char* keys[] = {PMIX_GROUP_ENDPT_DATA, PMIX_GROUP_LOCAL_ONLY, PMIX_GROUP_ASSIGN_CONTEXT_ID, PMIX_TIMEOUT,
                               PMIX_COLLECT_DATA};
  enum { kPlain = sizeof plain / sizeof *plain, kKeys = sizeof keys / sizeof *keys };
  if (argc < 2) return 2;
  load_descriptor(argv[1]);
  pmix_proc_t me;
  pmix_status_t status = PMIx_Init(&me, NULL, 0);
  if (status != PMIX_SUCCESS) {
    printf("no server: %s\n", PMIx_Error_string(status));
    return 1;
  }
  pmix_proc_t both[2];
  for (unsigned r = 0; r < 2; ++r) PMIX_LOAD_PROCID(&both[r], me.nspace, r);
  int refused = 0, calls = 0;
  char* large = calloc(1, 3 << 20);
  for (int k = 0; k < kKeys; ++k)
    for (int t = 0; t < kPlain + 3; ++t) {
      pmix_info_t info;
      PMIX_INFO_CONSTRUCT(&info);
      PMIX_LOAD_KEY(info.key, keys[k]);
      if (t < kPlain) {
        info.value.type = plain[t];
        /* A timeout must be short, as both wait for it; the others are addresses and lengths, if taken as such. */
        memset(&info.value.data, !strcmp(keys[k], PMIX_TIMEOUT) ? 0x01 : 0x41, 8);
        if (plain[t] == PMIX_BOOL) info.value.data.flag = 1;
      } else if (t == kPlain) {
        info.value.type = PMIX_STRING;
        info.value.data.string = (char*)"a text";
      } else {
        info.value.type = PMIX_BYTE_OBJECT;
        info.value.data.bo.bytes = t == kPlain + 1 ? NULL : large;
        info.value.data.bo.size = t == kPlain + 1 ? 0 : 3 << 20;
      }
      char name[64];
      snprintf(name, sizeof name, "group-%d-%d", k, t);
      pmix_info_t* results = NULL;
      size_t n = 0;
      ++calls;
      if (strcmp(keys[k], PMIX_TIMEOUT) && PMIx_Group_construct(name, both, 2, &info, 1, &results, &n) != PMIX_SUCCESS)
        ++refused;
      ++calls;
      if (PMIx_Fence(both, 2, &info, 1) != PMIX_SUCCESS) ++refused;
    }
  /* A part that doesn't fit into a message to all. */
  for (int i = 0; i < 3; ++i) {
    pmix_value_t value;
    char key[32];
    snprintf(key, sizeof key, "large-%d", i);
    value.type = PMIX_BYTE_OBJECT;
    value.data.bo.bytes = large;
    value.data.bo.size = 3 << 20;
    PMIx_Put(PMIX_GLOBAL, key, &value);
  }
  PMIx_Commit();
  int collect = 1;
  pmix_info_t info;
  PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
  status = PMIx_Fence(NULL, 0, &info, 1);
  printf("survived: %d of %d refused, a fence of 9 MiB: %s\n", refused, calls, PMIx_Error_string(status));
  fflush(stdout);
  PMIx_Abort(1, argv[0], NULL, 0);
  return 0;
}
