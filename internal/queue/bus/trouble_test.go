package bus_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
)

// A failure that occurs a thousand times is logged once, once a minute while it lasts, and once
// when it is over.
func TestTroubleIsSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(slog.NewTextHandler(&out, nil))
		var trouble bus.Trouble
		for range 1000 {
			trouble.Warn(log, "cannot fetch", "consumer", "lane")
			time.Sleep(100 * time.Millisecond)
		}
		trouble.Warn(log, "something else")
		count := func(part string) int { return strings.Count(out.String(), part) }
		if n := count("cannot fetch"); n != 2 {
			t.Errorf("1000 failures in 100 s are said %d times, want 2", n)
		}
		if count("something else") != 1 {
			t.Error("another kind is not said")
		}
		if count("over") != 0 {
			t.Errorf("over too early: %s", out.String())
		}
		time.Sleep(6 * time.Second)
		synctest.Wait()
		if n := count("failures=1000"); n != 1 || count("over") != 1 {
			t.Errorf("its end is said %d times: %s", n, out.String())
		}
		time.Sleep(time.Minute)
		trouble.Warn(log, "cannot fetch")
		if n := count("cannot fetch"); n != 4 { // twice, its end, and this
			t.Errorf("what begins again is not said: %s", out.String())
		}
		time.Sleep(6 * time.Second)
		synctest.Wait()
	})
}

// A failure that comes and goes, each time long after the last was over, is said once a minute, too, with the number of the others.
func TestTroubleThatComesAndGoesIsSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(slog.NewTextHandler(&out, nil))
		var trouble bus.Trouble
		for range 15 { // until second 112
			trouble.Warn(log, "refused")
			time.Sleep(8 * time.Second)
		}
		if n := strings.Count(out.String(), "level=WARN"); n != 2 || !strings.Contains(out.String(), "failures=7") {
			t.Errorf("15 failures in two minutes are said %d times:\n%s", n, out.String())
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
	})
}
