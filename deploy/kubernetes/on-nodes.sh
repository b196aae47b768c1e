#!/bin/sh
# on-nodes.sh NAME: measures the plan under this name on every node, by a Job each (job.yaml), and
# ends when all have ended. It fails if a node is missing, and names it.
#
# PARALLEL  how many nodes measure at once (10)
# NODES     these nodes only, separated by spaces
# SELECTOR  nodes with these labels (kubernetes.io/os=linux)
set -eu

# Creates the Job of one node, and waits for its end, which activeDeadlineSeconds bounds.
on_node() { # NAME NODE
    job=$(sed "s|@NAME@|$1|g; s|@NODE@|$2|g" "$(dirname "$0")/job.yaml" |
        kubectl create -f - -o name) || { echo "missing $2: its Job could not be created"; return; }
    unanswered=0
    while :; do
        if ended=$(kubectl -n tardy get "$job" \
            -o 'jsonpath={range .status.conditions[?(@.status=="True")]}{.type} {.reason} {end}'); then
            unanswered=0
        else
            unanswered=$((unanswered + 1))
            ended=
        fi
        case $ended in
        *Complete*) echo "complete $2" && return ;;
        *Failed*) echo "missing $2: $job: $ended" && return ;;
        esac
        if [ "$unanswered" -ge 20 ]; then echo "missing $2: $job cannot be asked" && return; fi
        sleep "${POLL:-5}"
    done
}

name=${1:?"on-nodes.sh: which name? e.g. night-1"}
if [ -n "${2:-}" ]; then
    on_node "$name" "$2"
    exit
fi
case $name in *[!a-z0-9-]*)
    echo "on-nodes.sh: $name: use lower-case letters, digits and dashes" >&2
    exit 2
    ;;
esac
nodes=${NODES:-$(kubectl get nodes --selector "${SELECTOR:-kubernetes.io/os=linux}" -o name)}
nodes=$(printf '%s\n' $nodes | sed 's|^node/||')
ended=$(printf '%s\n' $nodes | xargs -n 1 -P "${PARALLEL:-10}" sh "$0" "$name") || true
printf '%s\n' "$ended"
all=$(printf '%s\n' $nodes | wc -l)
complete=$(printf '%s\n' "$ended" | grep -c '^complete ' || true)
echo "$complete of $all nodes complete"
[ "$complete" -eq "$all" ]
