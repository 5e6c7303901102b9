package service_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/jobs/metrics"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/testing/testserver"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// A full disk switches JetStream off until nats-server is restarted. That is found within 5 s and
// reported with its remedy, and no accepted job is lost.
func TestFullDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real nats-server")
	}
	dir := t.TempDir()
	if out, err := exec.Command(
		"mount", "-t", "tmpfs", "-o", "size=160m", "tmpfs", dir,
	).CombinedOutput(); err != nil {
		t.Skipf("mounting a small disk is not permitted here: %v: %s", err, out)
	}
	t.Cleanup(func() { exec.Command("umount", "-l", dir).Run() })
	server := testserver.NATS(t, testserver.NATSOptions{StoreDir: dir})
	nc, _, err := bus.Connect(server.URL, "test", logger())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	ctx := t.Context()
	if err := setUp(ctx, nc, quick); err != nil {
		t.Fatal(err)
	}
	remote, err := client.New(nc, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w, _ := request(t, "", grid(t, 2, 2, 1), query.Settings{})
	var accepted []string
	for i := range 5 { // before
		w.Job = fmt.Sprintf("before-%d", i)
		if _, err := remote.Submit(ctx, w); err != nil {
			t.Fatal(err)
		}
		accepted = append(accepted, w.Job)
	}
	filler := filepath.Join(dir, "filler")
	fill, err := os.Create(filler)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = fill.Write(make([]byte, 64<<10))
	}
	fill.Close()
	for i := 0; ; i++ {
		w.Job = fmt.Sprintf("job-%d", i)
		began := time.Now()
		_, err = remote.Submit(ctx, w)
		if err == nil {
			accepted = append(accepted, w.Job)
			continue
		}
		t.Logf("%d jobs accepted, then after %v: %v", len(accepted), time.Since(began), err)
		if !errors.Is(err, client.ErrStorage) || !strings.Contains(
			err.Error(), "restart nats-server",
		) {
			t.Fatalf("after %v: %v", time.Since(began), err)
		}
		break
	}
	// Workers that have nothing to do find it too.
	metrics := metrics.New()
	if n := gathered(t, metrics, "basetensor_storage_stalled"); n != 0 {
		t.Errorf("stalled %v from the start", n)
	}
	theirs, _, err := bus.Connect(server.URL, "idle", logger())
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	idle, end := contextWithCancel(t)
	ended := make(chan error, 1)
	watching := withConn(quick, theirs)
	watching.Metrics = metrics
	go func() { ended <- runWorkers(idle, watching, query.StageLearn) }()
	await(
		t, "idle workers are not ready",
		func() bool { return errors.Is(metrics.Ready(), client.ErrStorage) },
	)
	await(
		t, "the metric",
		func() bool { return gathered(t, metrics, "basetensor_storage_stalled") == 1 },
	)
	if n := gathered(t, metrics, "basetensor_storage_stalled_total"); n != 1 {
		t.Errorf("found %v times", n)
	}
	if _, err := remote.Submit(ctx, w); !errors.Is(err, client.ErrStorage) {
		t.Errorf("the next one: %v", err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	await(t, "a try", func() bool { _, err = remote.Submit(ctx, w); return err != nil })
	if !errors.Is(err, client.ErrStorage) {
		t.Errorf("with room again, and no restart: %v", err)
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	for err = errors.New("away"); err != nil; time.Sleep(20 * time.Millisecond) {
		_, err = remote.Submit(ctx, w)
	}
	await(t, "idle workers are ready again", func() bool {
		return metrics.Ready() == nil && gathered(t, metrics, "basetensor_storage_stalled") == 0
	})
	end()
	<-ended
	running, stop := contextWithCancel(t)
	done := make(chan error, 1)
	go func() { done <- runWorkers(running, withConn(quick, nc), allStages()...) }()
	for _, job := range append(accepted, w.Job) {
		if a, err := remote.Wait(ctx, job); err != nil || a.Status != wire.StatusOK {
			t.Errorf("%s: %+v %v", job, a, err)
		}
	}
	stop()
	<-done
}

// await waits for a condition for as long as a test may take.
func await(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(guard); !f(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", guard, what)
		}
	}
}
