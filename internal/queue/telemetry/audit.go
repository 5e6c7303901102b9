package telemetry

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/basetensor/basetensor/internal/queue/redact"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Audit records changes and their authors: in a file, or else in a log. The methods of a nil *Audit do nothing.
type Audit struct {
	path string
	log  *slog.Logger
	mu   sync.Mutex // one line after the other
}

// Act is something that somebody did.
type Act struct {
	Time   time.Time `json:"time"`
	Who    string    `json:"who"`
	Action string    `json:"action"` // see Actions
	What   string    `json:"what"`
	Error  string    `json:"error,omitempty"` // it was refused, or failed
}

// Actions that are recorded.
const (
	ActPut    = "put"    // a model was registered
	ActName   = "name"   // a name was given to a model, or its next version
	ActRemove = "remove" // of a model or a name
	ActCancel = "cancel" // of a job
	ActReplay = "replay" // of a dead letter
	ActForget = "forget" // of a tenant
)

// OpenAudit returns an Audit that appends to a file, which it opens for every line, so that it can be moved away; "": to a log, at level
// info. Without either it is nil. A file that cannot be written is bad input.
func OpenAudit(path string, log *slog.Logger) (*Audit, error) {
	if path == "" && log == nil {
		return nil, nil
	}
	a := &Audit{path: path, log: log}
	if path == "" {
		return a, nil
	}
	if err := a.append(nil); err != nil {
		return nil, fault.New(fault.BadInput, "--audit: %w", err)
	}
	return a, nil
}

// Note records an act, now. failed is why it came to nothing; nil: it was done. An act that cannot be written to the file is an error in
// the log.
func (a *Audit) Note(who, action, what string, failed error) {
	if a == nil {
		return
	}
	act := Act{Time: time.Now().UTC(), Who: who, Action: action, What: what}
	if failed != nil {
		act.Error = redact.Text(failed.Error())
	}
	if a.path == "" {
		a.log.Info("audit", "audit", true, "who", act.Who, "action", act.Action, "what", act.What, "error", act.Error)
		return
	}
	line, err := json.Marshal(act)
	if err == nil {
		err = a.append(append(line, '\n'))
	}
	if err == nil {
		return
	}
	if a.log != nil {
		a.log.Error("cannot write the audit log", "error", err, "who", act.Who, "action", act.Action, "what", act.What)
	} else {
		fmt.Fprintf(os.Stderr, "cannot write the audit log: %v\n", err)
	}
}

// append writes a line at the end of the file, at once: several processes may share it.
func (a *Audit) append(line []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	file, err := os.OpenFile(a.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(line)
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}
