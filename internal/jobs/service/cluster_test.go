package service_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/testing/nightly"
	"github.com/basetensor/basetensor/internal/testing/testserver"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
)

// Each server of a cluster dies in turn while jobs pass, the last one losing recent writes to its disk: every accepted job is answered,
// and answered right.
func TestServersOfAClusterAreKilledUnderLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("starts three real nats-servers")
	}
	t.Parallel()
	servers := testserver.NATSCluster(t, 3, testserver.NATSOptions{Config: "../../../deploy/nats-server.conf"})
	nc, _, err := bus.Connect(servers.URL, "test", logger())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	ctx := t.Context()
	var c config
	c.Replicas, c.MaxBytes, c.SweepAfter = 3, 1<<30, time.Second
	c.OneConsumer = !nightly.On() // with all lanes there are seven times as many to be replicated
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

	jobs := 0
	submit := func(n int) {
		t.Helper()
		for range n {
			w.Job = fmt.Sprint("job-", jobs)
			for end := time.Now().Add(guard); ; {
				if _, err = remote.Submit(ctx, w); err == nil {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("%s: %v", w.Job, err)
				}
				time.Sleep(20 * time.Millisecond)
			}
			jobs++
		}
	}
	answered := 0
	answers := func() {
		t.Helper()
		for ; answered < jobs; answered++ {
			job := fmt.Sprint("job-", answered)
			for end := time.Now().Add(guard); ; {
				a, err := remote.Wait(ctx, job)
				if err != nil {
					if time.Now().After(end) {
						t.Fatalf("%s: %v", job, err)
					}
					select {
					case err := <-done:
						t.Fatal("the workers ended: ", err)
					default:
						continue
					}
				}
				want[0].Job = job
				if got, want := plain(t, a.Results), plain(t, want); got != want {
					t.Errorf("%s: %s %v\ngot\n%s\nwant\n%s", job, a.Status, a.Error, got, want)
				}
				break
			}
		}
	}

	last := len(servers.Servers) - 1
	for i, s := range servers.Servers {
		if i > 0 && i < last && !nightly.On() {
			continue
		}
		old := filepath.Join(t.TempDir(), "store")
		submit(10)
		if i == last {
			copyLive(t, s.StoreDir, old)
		}
		submit(10)
		s.Kill()
		submit(20) // by the two others
		if i == last {
			if err := os.RemoveAll(s.StoreDir); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(old, s.StoreDir); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Restart(); err != nil {
			t.Fatal(err)
		}
		submit(10)
		answers()
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// copyLive copies a folder whose files are being written and removed.
func copyLive(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		b, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), b, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}
