package acceptance

// Workers killed at random, Redis gone, NATS killed: every job still gets exactly one answer, with
// the right bits.

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/generate"
	"github.com/basetensor/basetensor/internal/testserver"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// chaosGuard is how long it may take before it is given up: jobs that are lost would be waited for.
const chaosGuard = 10 * time.Minute

// chaosJobs are submitted over chaosJobs · 30 ms, while something dies every second.
const chaosJobs = 300

func TestChaos(t *testing.T) {
	if os.Getenv("BTN_CHAOS") == "" {
		t.Skip("takes a minute: make chaos")
	}
	needBinaries(t)
	redis := testserver.Redis(t, testserver.RedisOptions{Config: "../../deploy/redis.conf"})
	server := testserver.NATS(t, testserver.NATSOptions{Config: "../../deploy/nats-server.conf"})
	if out, code := command(t, "btn", "setup", "--nats", server.URL, "--wait", "10s"); code != 0 {
		t.Fatalf("btn setup: exit code %d\n%s", code, out)
	}
	s := &supervisor{
		t:   t,
		env: append(os.Environ(), "BTN_NATS="+server.URL, "BTN_REDIS="+redis.URL, "BTN_LOG_LEVEL=error"),
	}
	for _, name := range []string{
		"reparam-worker", "learn-worker", "aggregator", "contract-worker", "contract-worker",
	} {
		s.start(name)
	}
	defer s.end()

	nc, err := nats.Connect(server.URL, nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	c, err := client.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	answers, err := nc.SubscribeSync(wire.Prefix + "done.*")
	if err != nil {
		t.Fatal(err)
	}
	if err := answers.SetPendingLimits(-1, -1); err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(context.Background(), chaosGuard)
	defer cancel()
	over, cancelChaos := context.WithCancel(ctx)
	var chaos, jobs sync.WaitGroup
	chaos.Go(func() {
		rng := rand.New(rand.NewPCG(1, 2))
		for second := 1; ; second++ {
			select {
			case <-over.Done():
				return
			case <-time.After(time.Second):
			}
			switch second {
			case 3:
				redis.Stop()
			case 5:
				server.Kill()
				if err := server.Restart(); err != nil {
					t.Error(err)
				}
			default:
				s.kill(rng.IntN(len(s.workers)))
			}
		}
	})
	for i := range chaosJobs {
		jobs.Go(func() {
			time.Sleep(time.Duration(i) * 30 * time.Millisecond)
			chaosJob(ctx, t, c, i)
		})
	}
	jobs.Wait()
	cancelChaos()
	chaos.Wait()

	time.Sleep(6 * time.Second) // longer than a redelivery takes
	seen := map[string]int{}
	for {
		m, err := answers.NextMsg(100 * time.Millisecond)
		if err != nil {
			break
		}
		if seen[m.Subject]++; seen[m.Subject] > 1 {
			t.Errorf("%s: a second answer", m.Subject)
		}
	}
}

// chaosJob submits job i, however often it takes, and compares its answer with the plain
// computation.
func chaosJob(ctx context.Context, t *testing.T, c *client.Client, i int) {
	m, err := generate.Grid(2+i%3, 2+i%4, generate.Ising{Delta: 0.5, Seed: uint64(i)})
	if err != nil {
		t.Error(err)
		return
	}
	body, err := wire.NewModel(m)
	if err != nil {
		t.Error(err)
		return
	}
	job, settings := fmt.Sprintf("chaos-%d", i), btn.Settings{}
	if i%3 == 1 {
		settings = btn.Settings{Method: btn.MethodSymmetryCP, Components: 4, Sweeps: 3}
	}
	message := wire.Request{Job: job, Tenant: fmt.Sprint("tenant", i%20), Model: body, Settings: settings}
	request := infer.Request{Job: job, Model: m, Settings: settings}
	for q := range 1 + i%3 {
		var e factorgraph.Evidence
		if q > 0 {
			e.Hard = []factorgraph.Observation{{Var: q - 1, Value: i % 2}}
		}
		message.Queries = append(message.Queries, query.Query{Evidence: e})
		request.Queries = append(request.Queries, query.Query{Evidence: e})
	}
	want, err := infer.Run(ctx, request, nil)
	if err != nil {
		t.Error(err)
		return
	}
	patiently := func(do func(context.Context) error) bool { // infrastructure errors are the caller's to wait out
		for ctx.Err() == nil {
			try, cancel := context.WithTimeout(ctx, 5*time.Second)
			err = do(try)
			cancel()
			if err == nil {
				return true
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Errorf("%s: %v", job, err)
		return false
	}
	var answer *wire.Answer
	submitted := patiently(func(try context.Context) error { _, err := c.Submit(try, message); return err })
	if submitted && patiently(func(try context.Context) (err error) {
		answer, err = c.Wait(try, job)
		return err
	}) {
		if answer.Status != wire.StatusOK || len(answer.Results) != len(want) {
			t.Errorf("%s: %s %+v", job, answer.Status, answer.Error)
			return
		}
		sameBits(t, job, answer.Results, want)
	}
}

// supervisor starts workers again when they end, as compose does.
type supervisor struct {
	t       *testing.T
	env     []string
	mu      sync.Mutex
	workers []*exec.Cmd
	ended   bool
	running sync.WaitGroup
}

func (s *supervisor) start(name string) {
	i := len(s.workers)
	s.workers = append(s.workers, nil)
	launch := func() *exec.Cmd {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.ended {
			return nil
		}
		cmd := exec.Command(filepath.Join(bin, name))
		cmd.Env = s.env
		if err := cmd.Start(); err != nil {
			s.t.Error(err)
			return nil
		}
		s.workers[i] = cmd
		return cmd
	}
	first := launch()
	s.running.Go(func() {
		for cmd := first; cmd != nil; cmd = launch() {
			cmd.Wait()                         // killed, or NATS was down when it started
			time.Sleep(100 * time.Millisecond) // as supervisors do
		}
	})
}

func (s *supervisor) kill(i int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.workers[i] != nil {
		s.workers[i].Process.Kill()
	}
}

func (s *supervisor) end() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	for i := range s.workers {
		s.kill(i)
	}
	s.running.Wait()
}
