package faults

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// Frames are separated, and pass as they came.
func TestFrames(t *testing.T) {
	const ack = "$JS.ACK.BTN_TASK.contract-3.1.7.7.1700000000000000000.0"
	for _, c := range []struct {
		raw                                 string
		delivery, publication, acknowledges bool
		settles                             string
		last                                bool
		job                                 string
	}{
		{raw: "PING\r\n"},
		{raw: "INFO {\"max_payload\":65536}\r\n"},
		{raw: "MSG btn.v1.task.3.job-1.2.0 9 " + ack + " 5\r\nhel\r\n\r\n", delivery: true, job: "job-1"},
		{raw: "HMSG btn.v1.network.3.job-1 9 " + ack + " 12 14\r\nNATS/1.0\r\n\r\nab\r\n", delivery: true, job: "job-1"},
		{raw: "MSG btn.v1.model.3.job-1 9 $JS.ACK.BTN_MODEL.sweep.1.7.7.17.0 2\r\nab\r\n", job: "job-1"},
		{raw: "MSG _INBOX.a.b 9 2\r\n{}\r\n"},
		{raw: "HPUB btn.v1.partial.3.job-1.2.0 _INBOX.a.b 12 12\r\nNATS/1.0\r\n\r\n\r\n", publication: true, job: "job-1"},
		{raw: "PUB btn.v1.progress.job-1 2\r\nab\r\n", job: "job-1"},
		{raw: "PUB " + ack + " 4\r\n+ACK\r\n", acknowledges: true, settles: ack, last: true},
		{raw: "PUB " + ack + " 4\r\n-NAK\r\n", settles: ack, last: true},
		{raw: "PUB " + ack + " 4\r\n+WPI\r\n", settles: ack},
	} {
		f, err := readFrame(bufio.NewReader(strings.NewReader(c.raw)))
		if err != nil {
			t.Errorf("%q: %v", c.raw, err)
			continue
		}
		settles, last := f.settles()
		if string(f.raw) != c.raw || f.delivery() != c.delivery || f.publication() != c.publication ||
			f.acknowledges() != c.acknowledges || settles != c.settles || last != c.last || f.job() != c.job {
			t.Errorf("%q: delivery %v, publication %v, acknowledges %v, settles %q (last %v), job %q, raw %q", c.raw, f.delivery(),
				f.publication(), f.acknowledges(), settles, last, f.job(), f.raw)
		}
	}
	for _, raw := range []string{"MSG a 1 x\r\n", "PUB\r\n", "HPUB a 1\r\n", "PUB a -1\r\n", "PUB a 5\r\nab", "MSG a 1 999999999999\r\n"} {
		if f, err := readFrame(bufio.NewReader(strings.NewReader(raw))); err == nil {
			t.Errorf("%q: %+v", raw, f)
		}
	}
}

// link connects through a gate and returns both ends.
func through(t *testing.T, g *gate, server net.Listener) (near, far net.Conn) {
	t.Helper()
	near, err := net.Dial("tcp", g.addresses()[0])
	if err != nil {
		t.Fatal(err)
	}
	far, err = server.Accept()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []net.Conn{near, far} {
		c.SetDeadline(time.Now().Add(20 * time.Second))
		t.Cleanup(func() { c.Close() })
	}
	return near, far
}

// A gate acts when a message is at the point that it is armed for; its cuts, losses, doubles and swaps are seen by both sides.
func TestGate(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	g, err := newGate(true, 1, []string{server.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	defer g.close()
	near, far := through(t, g, server)
	worker, nats := bufio.NewReader(near), bufio.NewReader(far)
	send := func(c net.Conn, text string, args ...any) {
		t.Helper()
		if _, err := fmt.Fprintf(c, text, args...); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(r *bufio.Reader, want ...string) {
		t.Helper()
		for _, w := range want {
			f, err := readFrame(r)
			if err != nil {
				t.Fatalf("%v in place of %q", err, w)
			}
			if !strings.Contains(string(f.raw), w) {
				t.Errorf("%q in place of %q", f.raw, w)
			}
		}
	}
	acted := ""
	arm := func(at point) <-chan struct{} { return g.arm(at, func() { acted = string(at) }) }
	must := func(fired <-chan struct{}, at point) {
		t.Helper()
		if <-fired; acted != string(at) {
			t.Errorf("%q in place of %q", acted, at)
		}
	}

	// The life of a message.
	fired := arm(fetched)
	send(far, "MSG btn.v1.task.3.job-1.1.0 1 $JS.ACK.s.c.1 1\r\na\r\n")
	must(fired, fetched)
	expect(worker, "job-1")
	if held := g.holds(false); len(held) != 1 || held["job-1"].IsZero() {
		t.Errorf("holds %v", held)
	}
	fired = arm(published)
	send(near, "PUB btn.v1.partial.3.job-1.1.0 _INBOX.x 1\r\nb\r\n")
	expect(nats, "partial")
	send(far, "MSG _INBOX.x 1 2\r\n{}\r\n")
	must(fired, published)
	fired = arm(acking)
	send(near, "PUB $JS.ACK.s.c.1 4\r\n+ACK\r\n")
	must(fired, acking)
	if held := g.holds(false); len(held) != 1 {
		t.Errorf("after an acknowledgement that the server did not hear: %v", held)
	}
	send(near, "PUB $JS.ACK.s.c.1 4\r\n+ACK\r\n")
	expect(nats, "+ACK") // and not the stream's word, nor the acknowledgement before
	if held := g.holds(false); len(held) != 0 {
		t.Errorf("after the acknowledgement: %v", held)
	}

	// Disorder, of messages only.
	g.set(func(g *gate) { g.twice = 1 })
	send(near, "PING\r\nPUB $JS.ACK.s.c.2 4\r\n+ACK\r\nPONG\r\n")
	expect(nats, "PING", "c.2", "c.2", "PONG")
	g.set(func(g *gate) { g.swap = 1 })
	send(near, "PING\r\nPUB $JS.ACK.s.c.3 4\r\n+ACK\r\nPUB $JS.ACK.s.c.4 4\r\n+ACK\r\nPONG\r\n")
	expect(nats, "PING", "c.4", "c.3", "PONG")

	// A black hole says nothing to either side, not even its end; a new connection passes.
	g.swallow()
	send(near, "PING\r\n")
	g.admit()
	other, end := through(t, g, server)
	send(other, "PING\r\n")
	expect(bufio.NewReader(end), "PING")
	near.Close()
	far.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := nats.ReadByte(); err == nil || !isTimeout(err) {
		t.Errorf("out of a black hole came %v, %v", n, err)
	}
	g.bury()
	far.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := nats.ReadByte(); err == nil || isTimeout(err) {
		t.Errorf("the server's side was left open: %v", err)
	}

	// A cut ends both sides.
	g.cut()
	if _, err := bufio.NewReader(end).ReadByte(); err == nil || isTimeout(err) {
		t.Errorf("after a cut: %v", err)
	}
}

func isTimeout(err error) bool {
	timeout, ok := err.(net.Error)
	return ok && timeout.Timeout()
}
