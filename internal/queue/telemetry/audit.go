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

// Audit records changes and who made them, in a file or in a log. The methods of a nil *Audit do nothing.
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

// OpenAudit returns an Audit that appends to the file at path. It opens the file for every line, so that the file can
// be moved away. If path is "", the Audit writes to the log, at level info. If log is nil, too, it returns nil. The
// error has the code bad_input if the file cannot be written.
func OpenAudit(path string, log *slog.Logger) (*Audit, error) {
	if path == "" && log == nil {
		return nil, nil
	}
	a := &Audit{path: path, log: log}
	if path == "" {
		return a, nil
	}
	if err := a.appendLine(nil); err != nil { // nothing is written, but the file is opened, and created if it is missing
		return nil, fault.New(fault.BadInput, "--audit: %w", err)
	}
	return a, nil
}

// Note records that somebody did something now. failure is the reason if it was refused or failed, and nil if it was
// done. If the file cannot be written, that is an error in the log.
func (a *Audit) Note(who, action, what string, failure error) {
	if a == nil {
		return
	}
	// Write to the log, or else to the file.
	act := Act{Time: time.Now().UTC(), Who: who, Action: action, What: what}
	if failure != nil {
		act.Error = redact.Text(failure.Error())
	}
	if a.path == "" {
		a.log.Info("audit", "audit", true, "who", act.Who, "action", act.Action, "what", act.What, "error", act.Error)
		return
	}
	line, err := json.Marshal(act)
	if err == nil {
		err = a.appendLine(append(line, '\n'))
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

// appendLine writes a line at the end of the file, in one call, because several processes may share the file.
func (a *Audit) appendLine(line []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	file, err := os.OpenFile(a.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(line)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	return err
}
