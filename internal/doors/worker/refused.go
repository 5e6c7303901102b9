package worker

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/basetensor/basetensor/internal/doors/access"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/nats-io/nats.go"
)

// refusals watches the server's refusals to a worker's user. A refused subject without which the stage can do nothing
// ends the worker. One that some messages need leaves it working, but not ready until it connects again. Any other one
// was chosen by somebody else for a reply, and is passed over.
type refusals struct {
	role   access.Role // of the worker
	inbox  string      // where its replies come, with a dot at its end; set by watch
	api    string      // prefix of JetStream's subjects, with a dot at its end; set by watch
	user   string      // the worker's user, for errors
	end    func(error) // ends the worker
	mu     sync.Mutex
	reason error // why the worker is not ready; under mu
}

// refusedSubject matches the server's text about a subject that it refuses.
var refusedSubject = regexp.MustCompile(`Permissions Violation for (Publish|Subscription) to "(\S+)"`)

// usualAPI is the prefix of JetStream's subjects in roles.
const usualAPI = "$JS.API."

// watch makes r hear the errors of a connection, whose subjects of JetStream begin with api. When the connection was lost and is there
// again, the worker counts as ready until the next refusal. Handlers that are set already are called as well.
func (r *refusals) watch(nc *nats.Conn, api string) {
	r.inbox = cmp.Or(nc.Opts.InboxPrefix, strings.TrimSuffix(nats.InboxPrefix, ".")) + "."
	r.api = cmp.Or(strings.TrimSuffix(api, "."), strings.TrimSuffix(usualAPI, ".")) + "."
	onError := nc.ErrorHandler()
	nc.SetErrorHandler(func(nc *nats.Conn, s *nats.Subscription, err error) {
		onError(nc, s, err)
		r.handle(err)
	})
	onReconnect := nc.ReconnectHandler()
	nc.SetReconnectHandler(func(nc *nats.Conn) {
		r.mu.Lock()
		r.reason = nil
		r.mu.Unlock()
		onReconnect(nc)
	})
}

// handle notes an error of the connection that refuses the worker a subject which it needs: then the worker is not
// ready. It ends the worker if no message can be worked on without the subject. The error's text names the subject; an error without one
// is passed over.
func (r *refusals) handle(err error) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return
	}
	parts := refusedSubject.FindStringSubmatch(err.Error())
	if parts == nil {
		return
	}

	// does the worker need the subject for some messages (isNeeded), or for all (isIndispensable)?
	action, subject := parts[1], parts[2]
	verb, isNeeded, isIndispensable := "publish on", false, false
	if action == "Publish" {
		usualSubject := subject // with the usual prefix of JetStream, as roles name it
		if suffix, ok := strings.CutPrefix(subject, r.api); ok {
			usualSubject = usualAPI + suffix
		}
		isNeeded, isIndispensable = r.role.NeedsToPublish(usualSubject)
	} else { // a subscription is for all messages, or for none
		verb, isIndispensable = "subscribe to", strings.HasPrefix(subject, r.inbox) || r.role.NeedsToSubscribe(subject)
		isNeeded = isIndispensable
	}
	if !isNeeded {
		return
	}

	// The worker is not ready: the first refusal is its reason. It ends if the subject is indispensable.
	reason := r.deniedError("may not " + verb + " " + subject)
	r.mu.Lock()
	if r.reason == nil {
		r.reason = reason
	}
	r.mu.Unlock()
	if isIndispensable {
		r.end(&refusedError{reason})
	}
}

// deniedError returns the error that the worker's user lacks a permission.
func (r *refusals) deniedError(what string) error {
	return fault.New(fault.Infrastructure, "the server says that this user (%s) %s: it needs the permissions of %s, which btn keys writes",
		r.user, what, r.role.Name)
}

// noStreamsError returns the error that the user's account has no streams, as a tenant's has none.
func (r *refusals) noStreamsError() error {
	return r.deniedError("sees no streams (JetStream is not enabled for its account, as for a tenant's)")
}

// err returns the refusal for which the worker is not ready; nil if there is none.
func (r *refusals) err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reason
}

// refusedError ends a worker.
type refusedError struct{ reason error }

// Error returns the text of the reason.
func (e *refusedError) Error() string { return fmt.Sprint(e.reason) }

// Unwrap returns the reason.
func (e *refusedError) Unwrap() error { return e.reason }
