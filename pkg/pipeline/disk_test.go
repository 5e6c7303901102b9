package pipeline_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/pkg/btn"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/internal/testserver"
	"github.com/basetensor/basetensor/pkg/pipeline"
	"github.com/basetensor/basetensor/pkg/wire"
)

// A full disk switches JetStream off until nats-server is restarted. That is found within 5 s, said with what to do, and nothing that was
// accepted is lost.
func TestFullDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real nats-server")
	}
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=160m", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("mounting a small disk is not permitted here: %v: %s", err, out)
	}
	t.Cleanup(func() { exec.Command("umount", "-l", dir).Run() })
	server := testserver.NATS(t, testserver.NATSOptions{StoreDir: dir})
	nc, err := pipeline.Connect(server.URL, "test", logger())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	ctx := t.Context()
	if err := pipeline.Setup(ctx, nc, quick); err != nil {
		t.Fatal(err)
	}
	remote, err := client.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	w, _ := request(t, "", grid(t, 2, 2, 1), btn.Settings{})
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
		if !errors.Is(err, client.ErrStorage) || !strings.Contains(err.Error(), "restart nats-server") || time.Since(began) > 5*time.Second {
			t.Fatalf("after %v: %v", time.Since(began), err)
		}
		break
	}
	began := time.Now()
	if _, err := remote.Submit(ctx, w); !errors.Is(err, client.ErrStorage) || time.Since(began) > time.Second {
		t.Errorf("the next one, after %v: %v", time.Since(began), err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if _, err := remote.Submit(ctx, w); !errors.Is(err, client.ErrStorage) {
		t.Errorf("with room again, and no restart: %v", err)
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	for err = errors.New("away"); err != nil; time.Sleep(20 * time.Millisecond) {
		_, err = remote.Submit(ctx, w)
	}
	running, stop := contextWithCancel(t)
	done := make(chan error, 1)
	go func() { done <- pipeline.Run(running, withConn(quick, nc), pipeline.Stages()...) }()
	for _, job := range append(accepted, w.Job) {
		if a, err := remote.Wait(ctx, job); err != nil || a.Status != wire.StatusOK {
			t.Errorf("%s: %+v %v", job, a, err)
		}
	}
	stop()
	<-done
}
