#!/bin/sh
# without_shim.sh PROGRAM…: runs it as the shim would, but under Open MPI alone: with the same PMIx server, which tells each rank that it
# has a node of its own, and the same settings (sidecar/shim/epoch/epoch.cc).
until [ -s "$BSP_RUN_DIR/epoch" ]; do sleep 0.02; done
export $(grep "^PMIX_" "$BSP_RUN_DIR/epoch") OMPI_MCA_btl=tcp,self OMPI_MCA_pml=ob1 OMPI_MCA_osc=^ucx PMIX_MCA_gds=hash
unset LD_PRELOAD
exec "$@"
