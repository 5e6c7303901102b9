package pipeline

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/queue/memlog"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/trace/noop"
)

// noRedis is a cache that has nothing.
type noRedis struct{}

func (noRedis) Do(context.Context, ...any) (any, error) { return nil, nil }
func (noRedis) Close() error                            { return nil }

// fill sets the fields of a struct that have a kind with a natural value, each to another one.
func fill(of reflect.Value) {
	for i := range of.NumField() {
		switch f := of.Field(i); f.Kind() {
		case reflect.String:
			f.SetString(of.Type().Field(i).Name)
		case reflect.Int, reflect.Int64:
			f.SetInt(int64(1 + i))
		case reflect.Bool:
			f.SetBool(true)
		}
	}
}

// arrives fails where a field of a struct is zero, or is not the field of that name, or of another one, in a second struct. "" is none.
func arrives(t *testing.T, from, to any, names map[string]string) {
	t.Helper()
	source, target := reflect.ValueOf(from), reflect.ValueOf(to)
	for i := range source.NumField() {
		name := source.Type().Field(i).Name
		want := source.Field(i)
		if want.IsZero() {
			t.Errorf("the test does not set %s", name)
		}
		if other, renamed := names[name]; renamed {
			name = other
		}
		if name == "" {
			continue
		}
		got := target.FieldByName(name)
		if !got.IsValid() || !reflect.DeepEqual(got.Interface(), want.Interface()) {
			t.Errorf("%s does not arrive: %v", name, got)
		}
	}
}

// TestEverySettingArrives: each field of Config and of Streams has its effect below this package.
func TestEverySettingArrives(t *testing.T) {
	var s Streams
	fill(reflect.ValueOf(&s).Elem())
	s.Logger = slog.Default()
	arrives(t, s, s.config(), map[string]string{"Logger": "Log"})

	var c Config
	fill(reflect.ValueOf(&c).Elem())
	c.NC, c.RedisClient, c.Lanes, c.Logger, c.Tracing = &nats.Conn{}, noRedis{}, []int{3}, slog.Default(), noop.NewTracerProvider()
	c.Tenants = filepath.Join(t.TempDir(), "tenants.json")
	const tenants = `{"classes": {"small": {"request_bytes": 3e6}}, "tenants": {"ann": "small"}}`
	if err := os.WriteFile(c.Tenants, []byte(tenants), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := c.service()
	if err != nil {
		t.Fatal(err)
	}
	if class := got.Tenants.Tenants().Class("ann"); class != "small" {
		t.Errorf("ann has the class %q", class)
	}
	arrives(t, c, got, map[string]string{"Tenants": ""})

	c.Tenants = ""
	if without, err := c.service(); err != nil || without.Tenants != nil {
		t.Errorf("without a file of tenants: %v, %v", without.Tenants, err)
	}
}

// TestStages: the public names are those of the stages, in their order.
func TestStages(t *testing.T) {
	for i, name := range stage.Names() {
		if all := Stages(); len(all) != len(stage.Names()) || string(all[i]) != name {
			t.Errorf("stages %q, want %q", all, stage.Names())
		}
	}
}

// TestSettingsAreRefused: an error names the setting that cannot be meant.
func TestSettingsAreRefused(t *testing.T) {
	server := memlog.New(memlog.Options{})
	defer server.Close()
	nc, err := nats.Connect("", nats.InProcessServer(server))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	for want, s := range map[string]Streams{
		"replicas is negative":             {Replicas: -1},
		"room is negative":                 {MaxBytes: -1},
		"backlog is negative":              {Backlog: -1},
		"time to keep is negative":         {Keep: -1},
		"acknowledgement wait is negative": {AckWait: -1},
		"500ms is too short":               {AckWait: 500 * time.Millisecond},
	} {
		if err := Setup(t.Context(), nc, s); fault.CodeOf(err) != fault.BadInput || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", s, err, want)
		}
	}
	for want, c := range map[string]Config{
		"threads is negative":    {NC: nc, Threads: -1},
		"deliveries is negative": {NC: nc, MaxDeliveries: -1},
		"lane 16":                {NC: nc, Lanes: []int{16}},
		"no-such-file":           {NC: nc, Tenants: "no-such-file"},
	} {
		if err := Run(t.Context(), c, StageLearn); fault.CodeOf(err) != fault.BadInput || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", c, err, want)
		}
	}
}
