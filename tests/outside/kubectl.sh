#!/bin/sh
# In place of kubectl: knows the nodes of $CLUSTER/nodes, keeps what is created and applied there,
# and says how Jobs end. Those of the measurement try-1 end at once, others when $AT_ONCE of them
# have run at the same time.
set -eu
BEFORE=$PWD
cd "$CLUSTER"
case "$*" in
"get nodes --selector "*) sed 's|^|node/|' nodes ;;
"create -f - -o name")
    text=$(cat)
    node=$(printf '%s\n' "$text" | sed -n 's/.*name: NODE, value: "\(.*\)"}.*/\1/p')
    printf '%s\n' "$text" >"created/$node.yaml"
    touch "running/$node"
    ls running | wc -l >>at-once
    echo "job.batch/tardy-$node"
    ;;
"-n tardy get job.batch/tardy-"*" -o jsonpath="*)
    node=${4#job.batch/tardy-}
    most=$(sort -n at-once | tail -n 1)
    if [ "$most" -ge "$AT_ONCE" ] || grep -q '"try-1"' "created/$node.yaml"; then
        rm -f "running/$node"
        if grep -qx "$node" broken; then echo "Failed DeadlineExceeded"; else
            echo "SuccessCriteriaMet CompletionsReached Complete CompletionsReached"
        fi
    fi
    ;;
"create -f -") cat >collect.yaml && echo "job.batch/tardy-collect-x created" ;;
"apply -f "*) cp "$BEFORE/$3" "applied-$3" ;;
"-n tardy create configmap tardy-job "*)
    shift 5
    for file in "$@"; do test -e "$BEFORE/${file#--from-file=}"; done
    ;;
*)
    echo "kubectl.sh: $*" >&2
    exit 9
    ;;
esac
