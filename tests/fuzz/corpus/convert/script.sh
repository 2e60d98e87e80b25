#!/bin/bash
set -euo pipefail
hosts=$(sed -n '$=' /etc/mpi/hostfile); per=4
np=$((hosts * (per + 0x2) % 7))
options=(-x A -np "$np"); export A=${SET:-none} B='it'\''s' C=$'tab\t' D=`hostname`
ready() { while read -r host _; do ssh "$host" true 2>/dev/null || return 1; done < /etc/mpi/hostfile; }
until ready; do sleep 2; done
if [ -d /data ] && [[ $A == *x* ]]; then cd /data/"$A" || exit 1; elif ! test -e b; then :; else echo c; fi
case $A in (a|b) echo x;; *) echo "y $B";; esac
for f in *.[ch] ~/{d,e}; do cat <<-'END' >> log 2>&1
	here $f
	END
done
source /opt/set.sh; mkdir -p "results/$A"
time timeout 3h mpirun -np $np -npernode 2 --mca btl ^openib "${options[@]}" program --a="$B c" <(cat d) 2>&1 | tee log &
wait $!
