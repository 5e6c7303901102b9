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
	heartbeat       = 15 * time.Second // so that proxies keep the connection
	refreshInterval = time.Second      // how often a stream looks for new results of its job
	eventTime       = 10 * time.Second // within which a client has to take an event, unless it is large
)

// eventStream is a response of server-sent events.
type eventStream struct {
	call       *call
	controller *http.ResponseController
}

// startStream begins a response of server-sent events.
func (c *call) startStream() (*eventStream, error) {
	s := &eventStream{c, http.NewResponseController(c.response)}
	c.response.Header().Set("Content-Type", "text/event-stream")
	c.response.Header().Set("X-Accel-Buffering", "no")
	c.status, c.hasBegun = http.StatusOK, true
	c.response.WriteHeader(http.StatusOK)
	return s, s.flush()
}

// send sends an event with a value as JSON, which is one line.
func (s *eventStream) send(event string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fault.Wrap(fault.Internal, err)
	}
	within := eventTime
	if len(b) > largeResponse { // as responses
		if err := s.call.reserveBytes(int64(len(b))); err != nil {
			return err
		}
		defer s.call.releaseBytes()
		within = max(within, s.call.gateway.limits.Transfer)
	}
	return s.write(fmt.Sprintf("event: %s\ndata: %s\n\n", event, b), within)
}

// comment sends a line that is no event, which keeps the connection open.
func (s *eventStream) comment(text string) error { return s.write(": "+text+"\n\n", eventTime) }

// write sends a text, which the client has to take in time.
func (s *eventStream) write(text string, within time.Duration) error {
	_ = s.controller.SetWriteDeadline(time.Now().Add(within)) // a recorder has none
	if _, err := s.call.response.Write([]byte(text)); err != nil {
		return err
	}
	return s.flush()
}

// flush sends what is buffered.
func (s *eventStream) flush() error { return s.controller.Flush() }
