package acceptance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/pipeline"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// badInputs are mistakes of users, each refused with its place and its reason, on the command line
// and by message.
var badInputs = []struct{ name, model, evid, want string }{
	{"negative domain", "MARKOV\n2\n2 -2\n1\n1 0\n2 1 1\n", "", "line 3"},
	{"zero domain", "MARKOV\n2\n2 0\n1\n1 0\n2 1 1\n", "", "line 3"},
	{"scope out of range", "MARKOV\n2\n2 2\n1\n2 0 2\n4 1 1 1 1\n", "", "variable 2"},
	{"repeated scope", "MARKOV\n2\n2 2\n1\n2 0 0\n4 1 1 1 1\n", "", "twice"},
	{"table too short", "MARKOV\n2\n2 2\n1\n2 0 1\n3 1 1 1\n", "", "factor 0"},
	{
		"table product overflows",
		"MARKOV\n64\n" + strings.Repeat("1000 ", 64) + "\n1\n64 " + numbers(64) + "\n4 1 1 1 1\n", "",
		"factor 0",
	},
	{"NaN", "MARKOV\n1\n2\n1\n1 0\n2 1 NaN\n", "", "factor 0"},
	{"infinite", "MARKOV\n1\n2\n1\n1 0\n2 1 Inf\n", "", "factor 0"},
	{"overflowing", "MARKOV\n1\n2\n1\n1 0\n2 1 1e999\n", "", "factor 0"},
	{"no number", "MARKOV\n1\n2\n1\n1 0\n2 1 x\n", "", "factor 0"},
	{"negative entry", "MARKOV\n1\n2\n1\n1 0\n2 1 -0.5\n", "", "factor 0"},
	{"all-zero factor", "MARKOV\n1\n2\n1\n1 0\n2 0 0\n", "", "all entries are 0"},
	{"truncated", "MARKOV\n2\n2 2\n1\n2 0 1\n4 1 1 1", "", "factor 0"},
	{"trailing garbage", "MARKOV\n1\n2\n1\n1 0\n2 1 1\nmore", "", "line 7"},
	{"promises too much", "MARKOV\n1000000000\n2 2", "", "variables"},
	{"no header", "HELLO\n", "", "line 1"},
	{"evidence variable out of range", "MARKOV\n2\n2 2\n1\n2 0 1\n4 1 1 1 1\n", "1 5 0", "variable 5"},
	{"evidence value out of range", "MARKOV\n2\n2 2\n1\n2 0 1\n4 1 1 1 1\n", "1 0 2", "value 2"},
	{"contradictory evidence", "MARKOV\n2\n2 2\n1\n2 0 1\n4 1 1 1 1\n", "2 0 0 0 1", "contradict"},
	{"evidence in no dialect", "MARKOV\n2\n2 2\n1\n2 0 1\n4 1 1 1 1\n", "3 0 0", "dialect"},
}

func numbers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d ", i)
	}
	return b.String()
}

func TestBadInputOnTheCommandLine(t *testing.T) {
	t.Parallel()
	needBinaries(t)
	dir := t.TempDir()
	for _, c := range badInputs {
		t.Run(c.name, func(t *testing.T) {
			model := filepath.Join(dir, "model.uai")
			write(t, model, c.model)
			args := []string{"infer", model, "--json"}
			if c.evid != "" {
				evid := filepath.Join(dir, "some.evid")
				write(t, evid, c.evid)
				args = append(args, "--evid", evid)
			}
			out, code := command(t, "btn", args...)
			if code != 3 {
				t.Errorf("exit code %d, want 3", code)
			}
			r := results(t, out)[0]
			if r.Error == nil || r.Error.Code != fault.BadInput || !strings.Contains(r.Error.Message, c.want) {
				t.Errorf("got %+v, want a bad input that mentions %q", r.Error, c.want)
			}
		})
	}
}

func TestBadInputByRawMessage(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	stack, err := embedded.Start(ctx, embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer stack.Close()
	go stack.Run(ctx, pipeline.Config{})
	nc, err := stack.Connect("test")
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(nc, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	checkBadInputByRawMessage(ctx, t, nc, c)
}

// checkBadInputByRawMessage publishes every bad input, and bytes that are no message at all, as an
// upstream service without a client library would, and then a good one to see that the workers live.
func checkBadInputByRawMessage(ctx context.Context, t *testing.T, nc *nats.Conn, c *client.Client) {
	t.Helper()
	publish := func(job string, data []byte) *wire.Answer {
		t.Helper()
		for {
			_, err := nc.RequestWithContext(ctx, wire.ModelSubject(wire.Lane(""), job), data)
			if err == nil {
				break
			}
			if !errors.Is(err, nats.ErrNoResponders) { // reparam-worker begins to store for clients a moment after it is there
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		answer, err := c.Wait(ctx, job)
		if err != nil {
			t.Fatalf("%s: %v", job, err)
		}
		return answer
	}
	refused := func(name string, answer *wire.Answer, want string) {
		t.Helper()
		info := answer.Error
		if info == nil && len(answer.Results) > 0 {
			info = answer.Results[0].Error
		}
		if info == nil || info.Code != fault.BadInput || !strings.Contains(info.Message, want) {
			t.Errorf("%s: answer %+v, error %+v, want a bad input that mentions %q", name, answer, info, want)
		}
	}
	id := time.Now().UnixNano()
	for i, b := range badInputs {
		job := fmt.Sprintf("bad-%d-%d", id, i)
		// The client would refuse nothing here: the text is parsed by reparam-worker.
		data, err := wire.Encode(&wire.Request{Job: job, Text: b.model, Queries: []query.Query{{Evid: b.evid}}})
		if err != nil {
			t.Fatal(err)
		}
		refused(b.name, publish(job, data), b.want)
	}
	for i, raw := range [][]byte{
		[]byte("hello"), {}, {0xdd, 0xee, 0xee, 0xee, 0xee}, bytes.Repeat([]byte{0x91}, 72<<10), {0xc1},
		[]byte(`{"job":"x"}`),
	} {
		refused(fmt.Sprintf("raw bytes %d", i), publish(fmt.Sprintf("raw-%d-%d", id, i), raw), "")
	}
	data, err := wire.Encode(&wire.Request{
		Job:     fmt.Sprintf("good-%d", id),
		Text:    "MARKOV\n1\n2\n1\n1 0\n2 1 2\n",
		Queries: []query.Query{{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if answer := publish(fmt.Sprintf("good-%d", id), data); answer.Status != wire.StatusOK ||
		answer.Results[0].LogZ == nil {
		t.Errorf("after the bad inputs: %+v", answer)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
