package faults

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/testing/commands"
	"github.com/basetensor/basetensor/internal/testing/testserver"
)

const root = "../.."

// folder is where commands are built; empty until they are.
var folder string

// built builds the workers, btn and the helper once, into a folder that TestMain removes.
var built = sync.OnceValues(func() (o Options, err error) {
	if folder, err = os.MkdirTemp("", "basetensor-faults-"); err != nil {
		return o, err
	}
	o.Bin = folder
	if err := commands.Install(folder, root); err != nil {
		return o, err
	}
	o.Root, o.Helper = root, []string{filepath.Join(folder, "btnlab"), "skewed-worker"}
	return o, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if folder != "" {
		os.RemoveAll(folder)
	}
	os.Exit(code)
}

// short runs a batch of each of some classes and fails where anything is wrong.
func short(t *testing.T, o Options) {
	t.Helper()
	if testing.Short() {
		t.Skip("builds and runs the commands: not with -short")
	}
	programs, err := built()
	if err != nil {
		t.Fatal(err)
	}
	o.Root, o.Bin, o.Helper = programs.Root, programs.Bin, programs.Helper
	o.Batches, o.LogLevel, o.Keep, o.Log = 1, "warn", t.TempDir(), t.Logf
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	versions, err := Run(ctx, o, func(r Row) error {
		t.Log(r)
		if r.Faults == 0 {
			t.Errorf("%s: no fault was made", r.Class)
		}
		for _, text := range r.Problems {
			t.Error(text)
		}
		if r.Bad() {
			t.Error(o.Replay(r))
		}
		return nil
	})
	if errors.Is(err, testserver.ErrUnavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Log(versions)
}

// Every class that needs no cluster strikes once, and every job is answered once, rightly.
func TestEveryClassOnce(t *testing.T) {
	short(t, Options{
		Classes: []string{"each"}, Seed: 1, Faults: len(common(Options{Helper: []string{"some"}})), Jobs: 100, Rate: 12,
	})
}

// Models and answers that are deleted: jobs are submitted, and answered, again.
func TestModelsAndAnswersAreDeleted(t *testing.T) {
	short(t, Options{Classes: []string{"no-answers", "no-models"}, Seed: 1, Faults: 1, Jobs: 30, Rate: 12})
}

// The leader of a cluster dies once.
func TestALeaderDies(t *testing.T) {
	short(t, Options{Classes: []string{"leader-kill"}, Seed: 1, Faults: 1, Jobs: 20, Rate: 3, Cluster: true})
}

// A server that is killed does not answer what it was asked: it is asked again.
func TestALookThatIsNotAnsweredIsRepeated(t *testing.T) {
	t.Parallel()
	looks := 0
	err := until(t.Context(), 10*attemptFor, func(ctx context.Context) error {
		if looks++; looks == 1 {
			<-ctx.Done()
		}
		return ctx.Err()
	})
	if err != nil || looks != 2 {
		t.Errorf("%d looks: %v", looks, err)
	}
}
