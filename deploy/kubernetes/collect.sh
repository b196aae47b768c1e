#!/bin/sh
# In a pod (collect.yaml, nightly.yaml): unpacks what nodes left in /results/NAME into /fleet, and
# writes the rows of all runs.
set -eu

cd "/results/${NAME:?}"
count=0
for archive in *.tar.gz; do
    [ -e "$archive" ] || { echo "no node has results in /results/$NAME" >&2 && exit 1; }
    node=/fleet/nodes/${archive%.tar.gz}
    mkdir -p "$node"
    tar -C "$node" --no-same-owner --no-same-permissions -xzf "$archive"
    count=$((count + 1))
done
# Complete or not there: moved into place at the end.
tardy export /fleet/nodes/ --to histogram-parquet -o /fleet/fleet.parquet
mv /fleet/fleet.parquet .fleet.parquet
mv .fleet.parquet fleet.parquet
echo "nodes in /results/$NAME/fleet.parquet: $count"
# nightly.yaml leaves this where nodes are missing.
[ ! -e /fleet/missing ]
