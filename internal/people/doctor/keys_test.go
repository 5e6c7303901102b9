package doctor

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/queue/seal"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/pipeline"
	"github.com/basetensor/basetensor/pkg/query"
)

// keyFile writes a file with a new key.
func keyFile(t *testing.T) string {
	t.Helper()
	key, err := seal.NewKey()
	name := filepath.Join(t.TempDir(), "message.keys")
	if err == nil {
		err = os.WriteFile(name, []byte(key+"\n"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// TestExamineNamesAWorkerWithOtherKeys: three workers share a file of keys, and learn-worker has another one.
func TestExamineNamesAWorkerWithOtherKeys(t *testing.T) {
	s, b := deployed(t, embedded.Options{NoRedis: true})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	run := func(file string, stages ...pipeline.Stage) {
		go func() { done <- s.Run(ctx, pipeline.Config{MessageKeys: file}, stages...) }()
	}
	run(keyFile(t), query.StageReparam, query.StageContract, query.StageAggregate)
	run(keyFile(t), query.StageLearn)
	var found []Finding
	for len(found) == 0 || found[0].Level != Bad {
		found = nil
		for _, f := range Examine(t.Context(), Deployment{Bus: b, Listen: message.HereEvery + time.Second}) {
			if f.Part == "keys" {
				found = append(found, f)
			}
		}
	}
	if len(found) != 1 || !strings.HasPrefix(found[0].Says, "learn-worker on ") || !strings.Contains(found[0].Do, "--message-keys") {
		t.Errorf("%+v", found)
	}
	cancel()
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// TestKeys: who does not believe the others, or is not believed, has a finding. While keys are exchanged, all may believe each other.
func TestKeys(t *testing.T) {
	worker := func(stage string, messages ...string) message.Here {
		return message.Here{Stage: stage, Host: "h", MessageKeys: messages}
	}
	aggregator := func(signer string, believed ...string) message.Here {
		return message.Here{Stage: query.StageAggregate, Host: "h", AnswersSigner: signer, AnswersKeys: believed}
	}
	reader := func(believed ...string) message.Here {
		return message.Here{Stage: "reparam-worker", Host: "h", AnswersKeys: believed}
	}
	for name, c := range map[string]struct {
		workers []message.Here
		want    string // stages with a finding that is bad, and flags
	}{
		"the same":            {[]message.Here{worker("a", "1"), worker("b", "1")}, ""},
		"none":                {[]message.Here{worker("a"), worker("b")}, ""},
		"another":             {[]message.Here{worker("a", "2"), worker("b", "1"), worker("c", "1")}, "a --message-keys"},
		"unsigned":            {[]message.Here{worker("a"), worker("b", "1"), worker("c", "1")}, "a --message-keys"},
		"exchange":            {[]message.Here{worker("a", "1", "2"), worker("b", "2", "1")}, ""},
		"exchange too early":  {[]message.Here{worker("a", "1"), worker("b", "2", "1"), worker("c", "2")}, "a --message-keys"},
		"answers":             {[]message.Here{aggregator("A", "A"), reader("A"), reader("B")}, "reparam-worker --answers-key"},
		"an unsigned answer":  {[]message.Here{aggregator(""), reader("A"), reader("A")}, "aggregator --answers-key"},
		"a new answers' key":  {[]message.Here{aggregator("B", "A", "B"), reader("A", "B")}, ""},
		"nobody checks these": {[]message.Here{aggregator("B", "B"), reader()}, ""},
	} {
		for i := range c.workers {
			c.workers[i].Process = strconv.Itoa(i)
		}
		var bad []string
		for _, f := range checkKeys(c.workers, nil) {
			if f.Level == Bad {
				stage, _, _ := strings.Cut(f.Says, " on ")
				_, flag, _ := strings.Cut(f.Says, "another ")
				flag, _, _ = strings.Cut(flag, " than")
				bad = append(bad, stage+" "+flag)
			}
		}
		if got := strings.Join(bad, ", "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	for _, f := range append(checkKeys(nil, nil), checkKeys(nil, errNotHeard)...) {
		if f.Level != Unknown {
			t.Errorf("%+v", f)
		}
	}
}
