/* A program that bsp-init must refuse: nothing can be preloaded into a static program. */
#include <stdio.h>

int main(void) { return puts("never shown") < 0; }
