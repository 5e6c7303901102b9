package doctor

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/testing/testserver"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// writerURL has a child process of these tests store a large model at that server, and say when its first chunk is stored.
const writerURL = "BTN_TEST_WRITER"

func TestMain(m *testing.M) {
	if url := os.Getenv(writerURL); url != "" {
		write(url)
		return
	}
	os.Exit(m.Run())
}

// write is the writer that is killed.
func write(url string) {
	nc, err := nats.Connect(url)
	if err != nil {
		panic(err)
	}
	first, err := nc.SubscribeSync("$O.BTN_GRAPH.C.>")
	if err != nil {
		panic(err)
	}
	b, err := bus.New(nc, "")
	if err != nil {
		panic(err)
	}
	go func() {
		if _, err := first.NextMsg(time.Minute); err == nil {
			fmt.Println("begun")
		}
	}()
	if _, err := b.PutGraph(context.Background(), make([]byte, 256<<20)); err != nil { // killed at the first of 9,000 chunks
		panic(err)
	}
}

// TestAKilledWriterLeavesNothing: what a process leaves in the object store that is killed while it stores a large model is reported, and
// removed, once it is old; and the same model can be stored.
func TestAKilledWriterLeavesNothing(t *testing.T) {
	s, b := deployed(t, embedded.Options{NoRedis: true, Listen: true, MaxPayload: 32 << 10})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	writer := exec.Command(self)
	writer.Env = append(os.Environ(), writerURL+"="+s.NATSURL())
	writer.Stderr = os.Stderr
	testserver.DieWithParent(writer)
	out, err := writer.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := writer.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "begun\n" {
		t.Fatal(line, err)
	}
	if err := writer.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = writer.Wait()
	// an object that was stored as a whole, before the message that names it
	store, err := b.JS.ObjectStore(t.Context(), bus.BucketGraph)
	if err != nil {
		t.Fatal(err)
	}
	unnamed := jetstream.ObjectMeta{Name: strings.Repeat("0", 64) + "-unnamed", Opts: &jetstream.ObjectMetaOptions{ChunkSize: 16 << 10}}
	if _, err := store.Put(t.Context(), unnamed, bytes.NewReader(make([]byte, 100_000))); err != nil {
		t.Fatal(err)
	}

	found := func() string {
		text := ""
		for _, f := range orphans(t.Context(), b) {
			text += f.Level + " " + f.Says + "; " + f.Do + "\n"
		}
		return text
	}
	if text := found(); !strings.HasPrefix(text, Good) {
		t.Errorf("a writer that may be alive: %s", text)
	}
	defer func() { bus.Clock = time.Now }()
	bus.Clock = func() time.Time { return time.Now().Add(2 * time.Hour) }
	text := found()
	if !strings.HasPrefix(text, Warning) || !strings.Contains(text, "parts of 1 objects") ||
		!strings.Contains(text, "1 whole objects (100000 bytes)") || !strings.Contains(text, "btn setup") {
		t.Errorf("old ones: %s", text)
	}
	before, err := b.Registered(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.DropOrphans(t.Context()); err != nil {
		t.Fatal(err)
	}
	if text := found(); !strings.HasPrefix(text, Good) {
		t.Errorf("after their removal: %s", text)
	}
	after, err := b.Registered(t.Context())
	if err != nil || len(after.Models) != len(before.Models) || len(after.Skipped) > 0 {
		t.Errorf("%d models before, then %+v, %v", len(before.Models), after, err)
	}
}
