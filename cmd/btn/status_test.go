package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/wire"
)

// TestStatusSumsTheConsumersOfAStage: jobs of tenants of several lanes wait where nobody works, and are counted together.
func TestStatusSumsTheConsumersOfAStage(t *testing.T) {
	s, err := embedded.Start(t.Context(), embedded.Options{Listen: true, Host: "127.0.0.1", NoRedis: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	model, lanes := write(t, t.TempDir(), "pair.uai", pair), map[int]bool{}
	for k := range 5 {
		tenant := fmt.Sprint("tenant-", k)
		lanes[wire.Lane(tenant)] = true
		if code, _, stderr := command(t, "submit", model, "--tenant", tenant, "--nats", s.NATSURL()); code != 0 {
			t.Fatal(stderr)
		}
	}
	if len(lanes) < 2 {
		t.Fatalf("%d lanes", len(lanes))
	}
	all := regexp.MustCompile(`(?m)^reparam-worker +5 +0 +\S+ +\S+ s +none$`)
	for try := 1; ; try++ { // a consumer of a busy server may not have counted the last message yet
		code, stdout, stderr := command(t, "status", "--now", "--nats", s.NATSURL())
		if code == 0 && all.MatchString(stdout) {
			return
		}
		if try == 100 {
			t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// TestStatusAndJobs of a service that has answered.
func TestStatusAndJobs(t *testing.T) {
	up := staying(t, "ready;", "up", "--port", "0", "--redis", "off", "--gateway", "off")
	nats := []string{"--nats", up["nats"]}
	model := write(t, t.TempDir(), "pair.uai", pair)
	ok := func(args ...string) string {
		t.Helper()
		code, stdout, stderr := command(t, append(args, nats...)...)
		if code != 0 {
			t.Fatalf("%v: exit code %d: %s", args, code, stderr)
		}
		return stdout
	}
	for k := range 3 {
		ok("submit", model, "--job", fmt.Sprint("job-", k), "--tenant", fmt.Sprint("tenant-", k))
		ok("watch", fmt.Sprint("job-", k))
	}
	status := ok("status", "--now")
	idle := regexp.MustCompile(`(?m)^\S+ +0 +\d+ +\S+ +\S+ s +ready$`) // messages are acknowledged a moment after the answer
	for end := time.Now().Add(5 * time.Minute); len(idle.FindAllString(status, -1)) < 4 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
		status = ok("status", "--now")
	}
	for _, stage := range []string{"reparam-worker", "learn-worker", "contract-worker", "aggregator"} {
		if !regexp.MustCompile(`(?m)^` + stage + ` +0 +\d+ +\S+ +\S+ s +ready$`).MatchString(status) {
			t.Errorf("%s is not ready in\n%s", stage, status)
		}
	}
	if !regexp.MustCompile(`(?m)^BTN_MODEL +[0-9.]+ \S+ +[0-9.]+ \S+$`).MatchString(status) {
		t.Errorf("no stream of models in\n%s", status)
	}
	jobs := ok("jobs")
	if strings.Index(jobs, "job-2") > strings.Index(jobs, "job-0") || !regexp.MustCompile(`(?m)^job-1 +ok +tenant-1 +2`).MatchString(jobs) ||
		!strings.HasPrefix(jobs, "stage ") {
		t.Errorf("got\n%s", jobs)
	}
	if jobs := ok("jobs", "--most", "1"); strings.Count(jobs, "job-") != 1 {
		t.Errorf("got\n%s", jobs)
	}
	if jobs := ok("jobs", "--status", "pending", "--json"); jobs != "" {
		t.Errorf("got\n%s", jobs)
	}
	if text := ok("status", "--now", "--json"); !strings.Contains(text, `"stage":"contract-worker"`) {
		t.Errorf("got %s", text)
	}
}

// btn status gives the number of workers, their version, and the rate of answers; a tenant learns that it is the operator's command.
func TestStatusOfWorkers(t *testing.T) {
	up := staying(t, "ready;", "up", "--port", "0", "--redis", "off", "--gateway", "off")
	model := write(t, t.TempDir(), "pair.uai", pair)
	for range 6 {
		if code, _, stderr := command(t, "infer", model, "--nats", up["nats"]); code != 0 {
			t.Fatal(stderr)
		}
	}
	wants := []string{
		`(?m)^learn-worker +0 +\d+ +\S+ +\S+ s +1 (ready|busy), \S+, \S+ messages/s$`, `(?m)^0\.1 jobs/s were answered`, `nats-server 2\.`,
	}
	for try := 1; ; try++ { // on a busy machine a worker may say later than every five seconds that it is there
		code, stdout, stderr := command(t, "status", "--nats", up["nats"])
		missing := slices.DeleteFunc(slices.Clone(wants), func(want string) bool { return regexp.MustCompile(want).MatchString(stdout) })
		if code == 0 && len(missing) == 0 {
			break
		}
		if try == 8 {
			t.Fatalf("exit code %d, no %q in\n%s%s", code, missing, stdout, stderr)
		}
	}
	for _, name := range []string{"status", "jobs"} {
		code, _, stderr := command(t, name, "--nats", up["nats"], "--nats-tenant", "acme")
		if code != 3 || !strings.Contains(stderr, "takes the operator's user") {
			t.Errorf("%s as a tenant: exit code %d: %s", name, code, stderr)
		}
	}
}

// btn jobs shows model and question, also of answers that were restored, whose models are gone; btn model ls shows the owner.
func TestJobsAreDescribed(t *testing.T) {
	url, _ := up(t)
	other, _ := up(t)
	folder := t.TempDir()
	model, file := write(t, folder, "pair.uai", pair), filepath.Join(folder, "copy.tar")
	ok := func(args ...string) string {
		t.Helper()
		code, stdout, stderr := command(t, args...)
		if code != 0 {
			t.Fatalf("%v: exit code %d: %s", args, code, stderr)
		}
		return stdout
	}
	digest := strings.TrimSpace(ok("model", "put", model, "--nats", url))
	ok("submit", "digest:"+digest, "--mar", "--job", "named", "--nats", url)
	ok("watch", "named", "--nats", url)
	ok("backup", file, "--nats", url)
	ok("restore", file, "--nats", other)
	for _, nats := range []string{url, other} {
		line := regexp.MustCompile(`(?m)^named +ok .* ` + digest[:16] + ` +marginals$`)
		if jobs := ok("jobs", "--nats", nats); !line.MatchString(jobs) {
			t.Errorf("no model and question in\n%s", jobs)
		}
	}
	ok("model", "put", model, "--nats", url, "--nats-tenant", "acme")
	if list := ok("model", "ls", "--nats", url); !regexp.MustCompile(digest+` .* everybody`).MatchString(list) ||
		!regexp.MustCompile(digest+` .* acme`).MatchString(list) {
		t.Errorf("no owners in\n%s", list)
	}
}
