#!/bin/sh
# without_shim.sh PROGRAM…: runs it as the shim would, but under Open MPI alone: with the same PMIx server, which tells each rank that its
# pod is a node (BSP_SEATS ranks, one by default), and the same settings (sidecar/shim/epoch/epoch.cc).
until [ -s "$BSP_RUN_DIR/epoch" ]; do sleep 0.02; done
export $(grep "^PMIX_" "$BSP_RUN_DIR/epoch") OMPI_MCA_btl=tcp,self OMPI_MCA_pml=ob1 OMPI_MCA_osc=^ucx PMIX_MCA_gds=hash
[ "${BSP_SEATS:-1}" = 1 ] || export OMPI_MCA_btl=sm,tcp,self OMPI_MCA_smsc=^cma,knem,xpmem
unset LD_PRELOAD
exec "$@"
