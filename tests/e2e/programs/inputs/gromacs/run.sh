# Each rank makes the input in its own container, so that the files that mdrun holds open move with it.
mkdir /tmp/run
cd /tmp/run
gmx genconf -f /usr/share/gromacs/top/spc216.gro -nbox 2 -o big.gro >log 2>&1
gmx grompp -f /data/water.mdp -p /data/topol.top -c big.gro -o topol.tpr -maxwarn 5 >>log 2>&1 || cat log
exec gmx_mpi mdrun -s topol.tpr -reprod -ntomp 1 -pin off -notunepme -g /data/md.log
