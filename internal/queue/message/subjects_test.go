package message

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

func TestSubjects(t *testing.T) {
	for subject, want := range map[string]Subject{
		wire.ModelSubject(3, "a-B_9"): {Kind: KindModel, Lane: 3, Job: "a-B_9"},
		NetworkSubject(15, "a"):       {Kind: KindNetwork, Lane: 15, Job: "a"},
		TaskSubject(0, "a", 64, 63):   {Kind: KindTask, Job: "a", N: 64, K: 63},
		PartialSubject(1, "a", 2, 0):  {Kind: KindPartial, Lane: 1, Job: "a", N: 2},
		wire.AnswerSubject("a"):       {Kind: KindAnswer, Job: "a"},
		wire.DoneSubject("a"):         {Kind: KindDone, Job: "a"},
		wire.ProgressSubject("a"):     {Kind: KindProgress, Job: "a"},
		wire.CancelSubject("a"):       {Kind: KindCancel, Job: "a"},
		TimerSubject(2, "a"):          {Kind: KindTimer, Lane: 2, Job: "a"},
		DeadlineSubject(2, "a"):       {Kind: KindDeadline, Lane: 2, Job: "a"},
		EndSubject(2, "a"):            {Kind: KindEnd, Lane: 2, Job: "a"},
		RedriveSubject(2, "a"):        {Kind: KindRedrive, Lane: 2, Job: "a"},
		DLQSubject("learn", "a"):      {Kind: KindDLQ, Stage: "learn", Job: "a"},
		BlobSubject("", digestA):      {Kind: KindBlob, Digest: digestA},
		GraphSubject("", digestA):     {Kind: KindGraph, Digest: digestA},
		RoomSubject(15):               {Kind: KindRoom, Lane: 15},
		wire.InferSubject:             {Kind: KindInfer},
		ServesSubject:                 {Kind: KindServes},
		HereSubject:                   {Kind: KindHere},

		wire.ModelSubject(3, "acme.a"):          {Kind: KindModel, Lane: 3, Owner: "acme", Job: "acme.a"},
		TaskSubject(3, "acme.a", 64, 63):        {Kind: KindTask, Lane: 3, Owner: "acme", Job: "acme.a", N: 64, K: 63},
		wire.AnswerSubject("acme.a"):            {Kind: KindAnswer, Owner: "acme", Job: "acme.a"},
		DLQSubject("learn", "acme.a"):           {Kind: KindDLQ, Stage: "learn", Owner: "acme", Job: "acme.a"},
		BlobSubject("acme", digestA):            {Kind: KindBlob, Owner: "acme", Digest: digestA},
		GraphSubject("acme", digestA):           {Kind: KindGraph, Owner: "acme", Digest: digestA},
		InferSubject("acme"):                    {Kind: KindInfer, Owner: "acme"},
		DeadlineSubject(2, "acme.a-1"):          {Kind: KindDeadline, Lane: 2, Owner: "acme", Job: "acme.a-1"},
		PartialSubject(1, "acme.partial", 2, 0): {Kind: KindPartial, Lane: 1, Owner: "acme", Job: "acme.partial", N: 2},
		"btn.v1.task.4.job.1048576.0":           {Kind: KindTask, Lane: 4, Job: "job", N: 1 << 20},
	} {
		got, err := ParseSubject(subject)
		if err != nil || got != want || got.String() != subject {
			t.Errorf("%s: %+v, %v; want %+v", subject, got, err, want)
		}
	}
	if s := TaskSubject(7, "j", 64, 3); s != "btn.v1.task.7.j.64.3" {
		t.Error(s)
	}
	if Filter(KindDone) != "btn.v1.done.>" || LaneFilter(KindTask, 3) != "btn.v1.task.3.>" ||
		ChunksFilter(KindPartial, 3, "j") != "btn.v1.partial.3.j.*.*" {
		t.Error(Filter(KindDone), LaneFilter(KindTask, 3), ChunksFilter(KindPartial, 3, "j"))
	}
}

func TestParseSubjectRefuses(t *testing.T) {
	for subject, says := range map[string]string{
		"btn.v2.model.1.a":                       "does not begin with btn.v1.",
		"btn.v1.nothing.a":                       "unknown kind",
		"btn.v1.model.1.a.b.c":                   "4 tokens after the kind, 2 expected",
		"btn.v1.model.1.a$.b":                    `token "a$"`,
		"btn.v1.model.1.a.b$":                    `token "b$"`,
		"btn.v1.blob.*." + digestA:               `token "*"`,
		"btn.v1.model.16.a":                      `token "16"`,
		"btn.v1.model.-1.a":                      `token "-1"`,
		"btn.v1.model.01.a":                      `token "01"`,
		"btn.v1.model.1.*":                       `token "*"`,
		"btn.v1.model.1.":                        `token ""`,
		"btn.v1.task.1.a.2.2":                    `token "2"`,
		"btn.v1.task.1.a.x.0":                    `token "x"`,
		"btn.v1.blob.ab":                         "1 tokens after the kind, 2 expected",
		"btn.v1.graph." + digestA:                "1 tokens after the kind, 2 expected",
		"btn.v1.graph._.ab":                      `token "ab"`,
		"btn.v1.graph._.>":                       `token ">"`,
		"btn.v1.model.1._.a":                     `token "_"`,
		"btn.v1.infer._":                         `token "_"`,
		"btn.v1.infer.a.b":                       "2 tokens after the kind, 0 expected",
		"btn.v1.task.1.a.99999999999999999999.0": "token",
	} {
		_, err := ParseSubject(subject)
		if !errors.Is(err, ErrSubject) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", subject, err, says)
		}
	}
}

func TestLane(t *testing.T) {
	if wire.Lane("") != 0xe3%16 { // SHA-256 of nothing begins e3b0c442
		t.Error(wire.Lane(""))
	}
	seen := map[int]int{}
	for i := range 1600 {
		lane := wire.Lane(strings.Repeat("x", i))
		if lane < 0 || lane >= wire.Lanes {
			t.Fatal(lane)
		}
		seen[lane]++
	}
	for lane := range wire.Lanes {
		if seen[lane] < 50 {
			t.Errorf("lane %d has %d of 1600 tenants", lane, seen[lane])
		}
	}
}

func TestHeaders(t *testing.T) {
	got := Headers(&wire.Cancel{}, "j", digestA, "")
	want := map[string][]string{
		"content-type": {
			"application/msgpack",
		}, "Btn-Schema": {"cancel"}, "Btn-Schema-Version": {"1"}, "Btn-Job": {"j"},
		"Btn-Digest": {digestA},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestNumericKind(t *testing.T) {
	if !isToken(NumericKind()) || len(NumericKind()) != 16 {
		t.Error(NumericKind())
	}
	// The set can tell: fused, x·y − round(x·y) would not be 0 for most of the inputs.
	told := 0
	for i, x := range numericInputs {
		y := numericInputs[(i+3)%len(numericInputs)]
		if math.FMA(x, y, -float64(x*y)) != 0 {
			told++
		}
	}
	if told < len(numericInputs)/2 {
		t.Errorf("%d of %d inputs tell fused arithmetic", told, len(numericInputs))
	}
	changed := append([]float64(nil), numericInputs...)
	changed[0] = math.Nextafter(changed[0], 1)
	if reflect.DeepEqual(numericResults(changed), numericResults(numericInputs)) {
		t.Error("a different last bit gives the same results")
	}
}

// A job that only names a tenant spends nothing of what the tenant's own jobs have.
func TestNamedTenantsPayNothing(t *testing.T) {
	named := nats.Header{wire.HeaderTenant: {"acme"}}
	own := WorksFor(wire.ModelSubject(2, "acme.job"), nil)
	if claimed := WorksFor(wire.ModelSubject(2, "job"), named); claimed == own || claimed == "" {
		t.Errorf("a job that names acme is worked on for %q, acme's own for %q", claimed, own)
	}
	if own != "acme" || AccountOf("acme.job", "globex") != "acme" || WorksFor(wire.ModelSubject(2, "acme.job"), named) != own {
		t.Errorf("acme's own: %q", own)
	}
	if AccountOf("job", "acme") != WorksFor(wire.ModelSubject(2, "job"), named) || AccountOf("job", "") != "" {
		t.Errorf("%q, %q", AccountOf("job", "acme"), AccountOf("job", ""))
	}
}
