package workers

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/basetensor/basetensor/internal/queue/message"
)

// Workers that died without a word are forgotten, also where no job asks for a kind.
func TestSilentWorkersAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKinds(nil, slog.New(slog.DiscardHandler), 500*time.Millisecond, &Arithmetic{Kind: "own"})
		for n := range 1000 {
			k.learn(&message.Serves{Process: fmt.Sprint(n), Numeric: "own", Cores: 1})
		}
		time.Sleep(5 * time.Second)
		k.learn(&message.Serves{Process: "new", Numeric: "own", Cores: 1})
		if n := len(k.heard); n != 1 {
			t.Errorf("%d are known, and one is there", n)
		}
	})
}
