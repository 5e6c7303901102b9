# shellcheck shell=sh
# One job on one and on two contract-workers, each of one thread on one core, measured: shared by components.sh, scale.sh and workers.sh, after stack.sh.
# The model is $out/model.uai.
contractors=
rm -f "$out/jobs"

# contract CORE: one more contract-worker, on that core
contract() {
  GOMAXPROCS=1 taskset -c "$1" "$bin/contract-worker" --nats "$nats" --threads 1 >"$out/contract-$1.log" 2>&1 &
  contractors="$contractors $!"
  workers="$workers $!"
}

# dismiss: no contract-worker
dismiss() {
  # shellcheck disable=SC2086 # processes are words
  retire $contractors
  contractors=
}

# timed NAME FLAGS…: a line of $out/jobs: seconds of the job, of the contract-workers' processors together and of the longest, the answer
# to the last digit, and how many parts it has
timed() {
  name=$1; shift
  # shellcheck disable=SC2086
  ticks $contractors >"$out/before"
  "$bin/btn" infer --nats "$nats" --deadline 20m "$@" --json "$out/model.uai" >"$out/$name.json"
  # shellcheck disable=SC2086
  cpu=$(ticks $contractors | paste -d' ' - "$out/before" |
    awk '{ d = ($1 - $2) / 100; sum += d; if (d > most) most = d } END { printf "%.1f %.1f", sum, most }')
  wall=$(grep -o '"total": *[0-9.]*' "$out/$name.json" | grep -o '[0-9.]*$')
  answer=$(grep -oE '"(log_z|ln_weight)": *[-0-9.e+]+' "$out/$name.json" | head -1 | grep -oE '[-0-9.e+]+$')
  parts=$(sed -n 's/.*"components": *\([0-9]*\).*/\1/p' "$out/$name.json")
  echo "$name $(awk -v w="$wall" 'BEGIN { printf "%.1f", w / 1000 }') $cpu $answer $parts" | tee -a "$out/jobs"
}

# killed: the job of a script once more on two contract-workers, one of which is killed after half the time of two-1
killed() {
  contract 0; contract 1; sleep 1
  last=${contractors##* }
  contractors=${contractors% *}
  half=$(awk '$1 == "two-1" { print $2 / 2 }' "$out/jobs")
  (sleep "$half"; kill -9 "$last") &
  job killed
  dismiss
}

# compare: the table of jobs one-1, two-1, one-2, …; fails unless all jobs have the same answer
compare() {
  awk '
    { wall[$1] = $2; cpu[$1] = $3; longest[$1] = $4; answers[$5]++; parts = $6 }
    function ratio(a, b) { return b > 0 ? sprintf("%.2f", a / b) : "–" }
    END {
      for (a in answers) different++
      printf "%d parts; %d answer(s)\n\n", parts, different
      print "| run | one worker: s | CPU s | two workers: s | CPU s | of the longer one | speed-up | by CPU time |"
      print "|---|--:|--:|--:|--:|--:|--:|--:|"
      for (r = 1; ("one-" r) in wall; r++) {
        one = "one-" r; two = "two-" r
        printf "| %d | %.1f | %.1f | %.1f | %.1f | %.1f | %s | %s |\n", r, wall[one], cpu[one], wall[two], cpu[two], longest[two],
          ratio(wall[one], wall[two]), ratio(cpu[one], longest[two])
      }
      exit different != 1
    }' "$out/jobs"
}
