package scale

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"reflect"
	"sync/atomic"
	"testing"
	"time"
)

func policyOfDeploy(t *testing.T) Policy {
	t.Helper()
	text, err := os.ReadFile("../../deploy/kubernetes/components/keda/scaled.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, err := ReadPolicy(text, "contract-worker")
	if err != nil {
		t.Fatal(err)
	}
	return *p
}

func TestPolicyIsRead(t *testing.T) {
	want := Policy{
		Name: "contract-worker", Most: 20, Poll: 5 * time.Second, Cooldown: 2 * time.Minute,
		Metric: `basetensor_backlog_seconds{stage="contract-worker"}`, Target: 10,
		Up:   Rules{0, []Limit{{true, 100, 15 * time.Second}, {false, 4, 15 * time.Second}}},
		Down: Rules{time.Minute, []Limit{{true, 100, 15 * time.Second}}},
	}
	if got := policyOfDeploy(t); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	for _, bad := range []string{
		"kind: ScaledObject\nmetadata: {name: x}\nspec: {triggers: [{type: cron}]}",
		"kind: ScaledObject\nmetadata: {name: x}\nspec:\n  triggers: [{type: metrics-api, metricType: AverageValue, metadata: {targetValue: 0}}]",
		"kind: Deployment\nmetadata: {name: x}", ":",
	} {
		if _, err := ReadPolicy([]byte(bad), "x"); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// The numbers follow the documented rules: one for the first work, then by the metric within four more or twice as many in 15 s, down when
// the largest word of the last minute is lower, to none after two minutes without work. A metric that is not there changes nothing.
func TestReplicasByTheMetric(t *testing.T) {
	a := Autoscaler{Policy: policyOfDeploy(t)}
	begin := time.Unix(1e9, 0)
	got := map[int]int{}
	for second := range 600 {
		metric, known := 0.0, true
		switch {
		case second < 10:
		case second < 60:
			metric = 150
		case second < 100: // within a tenth of what 15 have
			metric = 160
		case second < 130:
			metric, known = 0, false
		case second < 200:
			metric = 31
		}
		got[second] = a.Step(begin.Add(time.Duration(second)*time.Second), metric, known)
	}
	for _, want := range []struct{ second, replicas int }{
		{9, 0}, {10, 1}, {24, 1}, {25, 5}, {39, 5}, {40, 10}, {55, 15}, {99, 15}, {129, 15},
		{144, 15}, {145, 4}, // 15 were asked for last at 85 s, and a minute later this metric has been there for 15 s
		{249, 4}, {250, 1}, // and 4 at 190 s
		{314, 1}, {315, 0}, {599, 0}, // there was work last at 195 s
	} {
		if got[want.second] != want.replicas {
			t.Errorf("%d replicas after %d s, want %d", got[want.second], want.second, want.replicas)
		}
	}
}

func TestReplicasStayWithinBounds(t *testing.T) {
	p := policyOfDeploy(t)
	p.Least, p.Most = 2, 3
	a := Autoscaler{Policy: p}
	for second := range 300 {
		metric := 0.0
		if second > 30 && second < 100 {
			metric = 1e9
		}
		n := a.Step(time.Unix(int64(1e9)+int64(second), 0), metric, true)
		if n < 2 || n > 3 || second == 90 && n != 3 || second == 299 && n != 2 {
			t.Fatalf("%d replicas after %d s", n, second)
		}
	}
}

// Processes are started and ended as the metric says; one that dies is found.
func TestProcessesFollow(t *testing.T) {
	var backlog atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "# HELP x\nother 7\nwork{stage=\"a\"} %d\n", backlog.Load())
	}))
	defer server.Close()
	p := Policy{Name: "x", Most: 3, Metric: `work{stage="a"}`, Target: 1, Down: Rules{Limits: []Limit{{true, 100, time.Second}}}}
	run := Run{
		Policy: p, Metrics: server.URL, every: 5 * time.Millisecond,
		Start: func(ctx context.Context) *exec.Cmd {
			return exec.CommandContext(ctx, "sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.01; done")
		},
		Done: func(s Sample, least time.Duration) bool {
			if backlog.Store(1); s.Running > 0 {
				backlog.Store(0)
			}
			return s.Seconds > 0.5 && s.Running == 0 && s.Wanted == 0
		},
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	samples, err := run.Play(ctx)
	if err != nil {
		t.Fatal(err)
	}
	most := 0
	for _, s := range samples {
		most = max(most, s.Running)
	}
	if most == 0 {
		t.Error("no process was seen")
	}

	var csv, svg bytes.Buffer
	samples[0].Backlog = math.NaN()
	if err := WriteCSV(&csv, samples); err != nil {
		t.Fatal(err)
	}
	again, err := ReadCSV(&csv)
	last := len(samples) - 1
	if err != nil || len(again) != last+1 || !math.IsNaN(again[0].Backlog) || again[last].Running != samples[last].Running {
		t.Errorf("read again: %v, %d samples of %d", err, len(again), len(samples))
	}
	if err := WriteSVG(&svg, p, samples); err != nil || !bytes.Contains(svg.Bytes(), []byte("</svg>")) {
		t.Errorf("no picture: %v", err)
	}

	backlog.Store(1)
	run.Start = func(ctx context.Context) *exec.Cmd { return exec.CommandContext(ctx, "false") }
	run.Done = func(Sample, time.Duration) bool { return false }
	if _, err := run.Play(ctx); err == nil {
		t.Error("a process that dies is not found")
	}
}
