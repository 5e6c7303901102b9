package service_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/testing/testserver"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// A real nats-server, configured as in a deployment, is killed and started again while jobs pass:
// every one of them is answered, and answered right.
func TestServerIsKilledUnderLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real nats-server")
	}
	t.Parallel()
	server := testserver.NATS(t, testserver.NATSOptions{Config: "../../../deploy/nats-server.conf"})
	nc, _, err := bus.Connect(server.URL, "test", logger())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	ctx := t.Context()
	c := quick
	c.SweepAfter = 500 * time.Millisecond
	if err := setUp(ctx, nc, c); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	running, stop := contextWithCancel(t)
	go func() { done <- runWorkers(running, withConn(c, nc), allStages()...) }()
	remote, err := client.New(nc, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w, p := request(t, "", grid(t, 2, 2, 1), query.Settings{})
	want, err := infer.Run(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	const jobs = 60
	for i := range jobs {
		w.Job = fmt.Sprintf("job-%d", i)
		for {
			if _, err = remote.Submit(ctx, w); err == nil {
				break
			}
			time.Sleep(20 * time.Millisecond) // submitting again is no new job
		}
		if i == jobs/2 {
			server.Kill()
			if err := server.Restart(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range jobs {
		job := fmt.Sprintf("job-%d", i)
		var a *wire.Answer
		for end := time.Now().Add(guard); ; {
			if a, err = remote.Wait(ctx, job); err == nil || time.Now().After(end) {
				break
			}
			select {
			case err := <-done:
				t.Fatal("the workers ended: ", err)
			default:
			}
		}
		if err != nil {
			t.Fatalf("%s: %v", job, err)
		}
		want[0].Job = job
		if got, want := plain(t, a.Results), plain(t, want); got != want {
			t.Errorf("%s: %s %v\ngot\n%s\nwant\n%s", job, a.Status, a.Error, got, want)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
