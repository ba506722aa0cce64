#!/usr/bin/env bash
# What a cluster of two executors carries beside one machine: bench/cluster.sh path/to/quietly-cluster
set -euo pipefail
cluster=$(realpath "$1")
place=$(mktemp -d)
parts=()
finish() {
    kill "${parts[@]}" 2>/dev/null || true
    wait 2>/dev/null || true
    rm -rf "$place"
}
trap finish EXIT
cd "$place"
"$cluster" example people --rows 5000000
for file in people/part-*.parquet; do
    for k in 1 2 3 4 5 6 7 8 9; do cp --reflink=auto "$file" "${file%.parquet}-$k.parquet"; done
done
"$cluster" scheduler --port 0 > scheduler &
parts+=($!)
until address=$(grep -o 'df://.*' scheduler); do sleep 0.1; done
for k in 1 2; do
    "$cluster" executor "$address" --cores 1 --scratch "$place/scratch" > "executor-$k" 2>&1 &
    parts+=($!)
done
"$cluster" bench people "$address"
