package bus_test

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"testing"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// TestEveryBitCounts: a message with a sum in which any one bit of its subject, its payload or the headers that readers act on was
// changed is damaged. The sum is the one that docs/reference/wire.md defines.
func TestEveryBitCounts(t *testing.T) {
	ctx, b := open(t, embedded.Options{})
	subject, digest := wire.AnswerSubject("j"), wire.Digest([]byte("request"))
	sent := nats.Header{"Btn-Digest": {digest}, "Btn-Status": {"ok"}}
	must(t, b.Log.Put(ctx, &nats.Msg{Subject: subject, Header: maps.Clone(sent), Data: []byte("the answer")}))
	m, err := b.Log.Get(ctx, bus.StreamAnswer, subject)
	must(t, err)
	want := sha256.Sum256([]byte(subject + "\n\n" + digest + "\nok\nthe answer"))
	if got := m.Header.Get("Btn-Sum"); got != hex.EncodeToString(want[:]) {
		t.Fatalf("%s, want %x", got, want)
	}
	if err := bus.CheckSum(subject, m.Header, m.Data); err != nil {
		t.Fatal(err)
	}

	sent["Btn-Sum"] = m.Header["Btn-Sum"]
	damaged := func(what string, subject string, h nats.Header, data []byte) {
		t.Helper()
		if err := bus.CheckSum(subject, h, data); fault.CodeOf(err) != fault.Damaged {
			t.Errorf("%s: %v", what, err)
		}
	}
	flip := func(text string, bit int) string {
		changed := []byte(text)
		changed[bit/8] ^= 1 << (bit % 8)
		return string(changed)
	}
	for bit := range 8 * len(subject) {
		if bit < 8*len(wire.Prefix) {
			continue // no stream of this program takes it
		}
		damaged("subject", flip(subject, bit), sent, m.Data)
	}
	for bit := range 8 * len(m.Data) {
		damaged("payload", subject, sent, []byte(flip(string(m.Data), bit)))
	}
	for name, values := range sent {
		for bit := range 8 * len(values[0]) {
			h := maps.Clone(sent)
			h[name] = []string{flip(values[0], bit)}
			damaged(name, subject, h, m.Data)
		}
	}
	h := maps.Clone(sent)
	h["Btn-Blob"] = []string{digest}
	damaged("a blob", subject, h, m.Data)
}
