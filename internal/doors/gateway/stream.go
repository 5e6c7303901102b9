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
	takenIn    = 10 * time.Second // within which a client has to take an event
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
	return s.write(fmt.Sprintf("event: %s\ndata: %s\n\n", event, b))
}

// comment sends a line that is no event.
func (s *stream) comment(text string) error { return s.write(": " + text + "\n\n") }

func (s *stream) write(text string) error {
	_ = s.rc.SetWriteDeadline(time.Now().Add(takenIn)) // a recorder has none
	if _, err := s.c.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.flush()
}

func (s *stream) flush() error { return s.rc.Flush() }
