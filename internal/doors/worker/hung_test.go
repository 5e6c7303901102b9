package worker

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/internal/jobs/service"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/testing/testserver"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/pipeline"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// workerEnv makes the test binary a worker of that stage that ignores the end of its context on the job hang.
const workerEnv = "BTN_TEST_WORKER"

func TestMain(m *testing.M) {
	if stage := os.Getenv(workerEnv); stage != "" {
		configure = func(c service.Config) service.Config {
			c.Hook = func(_ string, s message.Subject) {
				if s.Job == "hang" {
					select {}
				}
			}
			return c
		}
		os.Exit(Main(stage, "A worker that hangs."))
	}
	os.Exit(m.Run())
}

// A worker whose handler does not return says which message it was, sets that aside and ends, so that its supervisor starts it again: the
// next one is not taken by the same message.
func TestWorkerEndsWhenAHandlerHangs(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real nats-server and worker processes")
	}
	server := testserver.NATS(t, testserver.NATSOptions{Config: "../../../deploy/nats-server.conf"})
	nc, _, err := bus.Connect(server.URL, "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := pipeline.Setup(ctx, nc, pipeline.Streams{MaxBytes: 1 << 30}); err != nil {
		t.Fatal(err)
	}
	remote, err := client.New(nc, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, stage := range []pipeline.Stage{pipeline.StageReparam, pipeline.StageContract, pipeline.StageAggregate} {
		go pipeline.Run(ctx, pipeline.Config{URL: server.URL}, stage)
	}
	start := func() (*exec.Cmd, *bytes.Buffer) {
		cmd := exec.CommandContext(
			ctx, os.Args[0], "--nats", server.URL, "--redis", "off", "--ceiling", "1ms", "--overdue", "200ms", "--drain",
			"1s",
		)
		cmd.Env = append(os.Environ(), workerEnv+"="+query.StageLearn)
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd, &said
	}
	ask := func(job string) *wire.Answer {
		m := wire.Request{Job: job, Tenant: "ann", Text: "MARKOV\n1\n2\n1\n1 0\n2\n1 3\n", Queries: []query.Query{{}}}
		if _, err := remote.Submit(ctx, m); err != nil {
			t.Fatal(err)
		}
		a, err := remote.Wait(ctx, job)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	first, said := start()
	a := ask("hang")
	if a.Status != wire.StatusError || a.Error.Code != fault.Internal || !strings.Contains(a.Error.Message, "did not return") {
		t.Errorf("the job: %s %+v", a.Status, a.Error)
	}
	err = first.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != config.ExitInfrastructure {
		t.Errorf("the worker ended with %v\n%s", err, said)
	}
	for _, part := range []string{"does not return", "btn.v1.network.", "job=hang", "tenant=ann", "took="} {
		if !strings.Contains(said.String(), part) {
			t.Errorf("it does not say %q:\n%s", part, said)
		}
	}
	second, said := start() // as the supervisor does
	if a := ask("fine"); a.Status != wire.StatusOK {
		t.Errorf("the next job: %s %+v", a.Status, a.Error)
	}
	second.Process.Signal(os.Interrupt)
	if err := second.Wait(); err != nil {
		t.Errorf("the next worker ended with %v\n%s", err, said)
	}
}
