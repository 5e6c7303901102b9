package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/basetensor/basetensor/pkg/fault"
)

// Intervals of streams of events.
const (
	heartbeat  = 15 * time.Second // so that proxies keep the connection
	soFarEvery = time.Second      // for results so far
	takenIn    = 10 * time.Second // within which a client has to take an event, unless it is large
)

// stream is a response of server-sent events.
type stream struct {
	c  *call
	rc *http.ResponseController
}

// stream begins one.
func (c *call) stream() (*stream, error) {
	s := &stream{c, http.NewResponseController(c.w)}
	c.w.Header().Set("Content-Type", "text/event-stream")
	c.w.Header().Set("X-Accel-Buffering", "no")
	c.status, c.wrote = http.StatusOK, true
	c.w.WriteHeader(http.StatusOK)
	return s, s.flush()
}

// send sends an event with a value. JSON has no line ends.
func (s *stream) send(event string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fault.Wrap(fault.Internal, err)
	}
	within := takenIn
	if len(b) > largeResponse { // as responses
		if err := s.c.hold(int64(len(b))); err != nil {
			return err
		}
		defer s.c.release()
		within = max(within, s.c.g.limits.Transfer)
	}
	return s.write(fmt.Sprintf("event: %s\ndata: %s\n\n", event, b), within)
}

// comment sends a line that is no event.
func (s *stream) comment(text string) error { return s.write(": "+text+"\n\n", takenIn) }

func (s *stream) write(text string, within time.Duration) error {
	_ = s.rc.SetWriteDeadline(time.Now().Add(within)) // a recorder has none
	if _, err := s.c.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.flush()
}

func (s *stream) flush() error { return s.rc.Flush() }
