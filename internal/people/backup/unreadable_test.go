package backup

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// light starts a nats-server in this process with streams, and connects to it.
func light(t *testing.T) *service {
	t.Helper()
	s, err := embedded.Start(t.Context(), embedded.Options{NoRedis: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	nc, err := s.Connect("test")
	if err != nil {
		t.Fatal(err)
	}
	b, err := bus.New(nc, bus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(nc, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &service{bus: b, client: c}
}

// Messages that cannot be read stop no copy: each is named, and the others are in it.
func TestOneBadMessageStopsNoCopy(t *testing.T) {
	ctx, first := t.Context(), light(t)
	const model = "MARKOV\n1\n2\n1\n1 0\n2\n1 3\n"
	digest, err := first.client.PutModel(ctx, &wire.Graph{Text: model})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.client.NameModel(ctx, "coin", digest, "me"); err != nil {
		t.Fatal(err)
	}
	if _, err := first.client.Submit(ctx, wire.Request{Job: "open", Text: model, Queries: []query.Query{{}}}); err != nil {
		t.Fatal(err)
	}
	elsewhere := nats.Header{"Btn-Blob": {"x"}}
	bad := []*nats.Msg{
		{Subject: message.GraphSubject("acme", "n"), Data: []byte("x")},
		{Subject: message.GraphSubject("", wire.Digest([]byte("y"))), Data: []byte("x")},
		{Subject: message.GraphSubject("", "blob"), Header: elsewhere},
		{Subject: wire.ModelSubject(3, "apart"), Header: elsewhere},
		{Subject: wire.ModelSubject(3, "no-id!"), Data: []byte("x")},
		{Subject: wire.AnswerSubject("apart"), Header: elsewhere},
	}
	for _, m := range bad {
		if err := first.bus.Log.Put(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	// one that is copied and cannot be submitted
	if err := first.bus.Log.Put(ctx, &nats.Msg{Subject: wire.ModelSubject(3, "nonsense"), Data: []byte("x")}); err != nil {
		t.Fatal(err)
	}

	var copied bytes.Buffer
	c, err := Write(ctx, first.bus, &copied)
	if err != nil || c.Registered != 1 || c.Names != 1 || c.Jobs != 2 || len(c.Skipped) != len(bad) {
		t.Fatalf("copied %+v, %v", c, err)
	}
	for _, m := range bad {
		if !strings.Contains(fmt.Sprint(c.Skipped), m.Subject) {
			t.Errorf("%s is not named in %v", m.Subject, c.Skipped)
		}
	}

	second := light(t)
	r, err := Read(ctx, second.bus, second.client, &copied)
	if err != nil || r.Registered != 1 || r.Names != 1 || r.Jobs != 1 || len(r.Skipped) != 1 ||
		!strings.HasSuffix(r.Skipped[0].Subject, ".nonsense") {
		t.Errorf("restored %+v, %v", r, err)
	}
	if v, err := second.client.FindModel(ctx, "coin"); err != nil || v.Digest != digest {
		t.Errorf("%+v, %v", v, err)
	}
}

// A copy with an entry whose content is wrong is read to its end.
func TestWrongEntriesAreSkipped(t *testing.T) {
	ctx, s := t.Context(), light(t)
	var copied bytes.Buffer
	out := tar.NewWriter(&copied)
	for _, e := range [][2]string{
		{message.GraphSubject("", wire.Digest([]byte("y"))), "x"},
		{message.GraphSubject("", "n"), "x"},
		{wire.ModelSubject(3, "a"), "x"},
		{message.GraphSubject("", wire.Digest([]byte("x"))), "x"},
	} {
		if err := writeEntry(out, e[0], nil, []byte(e[1]), time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := Read(ctx, s.bus, s.client, &copied)
	if err != nil || c.Registered != 1 || len(c.Skipped) != 3 {
		t.Errorf("%+v, %v", c, err)
	}
	if r, err := s.bus.Models.List(ctx); err != nil || len(r.Models) != 1 || len(r.Skipped) != 0 {
		t.Errorf("bytes of another digest are stored: %+v, %v", r, err)
	}
}

// Archives that claim more than they have are refused by the entry's name, and cost no memory.
func TestArchivesThatClaimMoreAreRefused(t *testing.T) {
	name := message.GraphSubject("", wire.Digest(nil))
	gnu := make([]byte, 512)
	copy(gnu, name)
	copy(gnu[100:], "0000600\x000000000\x000000000\x00")
	copy(gnu[124:], "00000000000\x00") // bytes in the archive
	copy(gnu[136:], "00000000000\x00") // time
	gnu[156] = tar.TypeGNUSparse
	copy(gnu[257:], "ustar  \x00")
	gnu[483] = 0x80 // of the file with its holes, in base 256: 2 TiB
	binary.BigEndian.PutUint64(gnu[487:], 2<<40)
	// one empty piece at its end
	gnu[386], gnu[398] = 0x80, 0x80
	binary.BigEndian.PutUint64(gnu[390:], 2<<40)
	copy(gnu[148:], "        ")
	sum := 0
	for _, b := range gnu {
		sum += int(b)
	}
	copy(gnu[148:], fmt.Sprintf("%06o\x00 ", sum))
	h, err := tar.NewReader(bytes.NewReader(gnu)).Next()
	if err != nil || h.Size != 2<<40 {
		t.Fatalf("the archive of this test: %+v, %v", h, err)
	}

	written := func(h *tar.Header) []byte {
		var b bytes.Buffer
		if err := tar.NewWriter(&b).WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	huge := &tar.Header{Name: name, Typeflag: tar.TypeReg, Size: math.MaxInt64 / 2, Format: tar.FormatPAX}
	dead := message.DLQSubject("a", "b")
	for text, want := range map[string]string{
		string(gnu):           "plain file",
		string(written(huge)): "at most",
		string(written(&tar.Header{Name: wire.AnswerSubject("a"), Typeflag: tar.TypeReg, Size: 1 << 30})): "at most",
		string(written(&tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: "x"})):                "plain file",
		string(written(&tar.Header{Name: "etc", Typeflag: tar.TypeReg})):                                  "etc",
		string(written(&tar.Header{Name: dead, Typeflag: tar.TypeReg})):                                   "nothing that a copy holds",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Read(t.Context(), nil, nil, io.MultiReader(strings.NewReader(text), bytes.NewReader(make([]byte, endBytes))))
		runtime.ReadMemStats(&after)
		if fault.CodeOf(err) != fault.BadInput || !strings.Contains(err.Error(), want) {
			t.Errorf("want %s: %v", want, err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 8<<20 {
			t.Errorf("%s: %d bytes were allocated", want, took)
		}
	}
}
