package worker

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/basetensor/basetensor/internal/doors/access"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/nats-io/nats.go"
)

// refusals watch the server's refusals to a worker's user. Where it refuses a subject without which the stage can do nothing the worker
// ends; a subject that some messages need leaves it working, and not ready until it connects again. Any other one was
// chosen by somebody else, for a reply.
type refusals struct {
	role   access.Role
	inbox  string // where its replies come, with a dot at its end
	api    string // prefix of JetStream's subjects, with a dot at its end
	user   string
	end    func(error) // ends the worker
	mu     sync.Mutex
	reason error // under mu
}

// refused is the server's word on a subject.
var refused = regexp.MustCompile(`Permissions Violation for (Publish|Subscription) to "(\S+)"`)

// usualAPI is the prefix of JetStream's subjects in roles.
const usualAPI = "$JS.API."

// watch has r hear the errors of a connection, after the handler that hears them already.
func (r *refusals) watch(nc *nats.Conn) {
	onError := nc.ErrorHandler()
	nc.SetErrorHandler(func(nc *nats.Conn, s *nats.Subscription, err error) {
		onError(nc, s, err)
		r.hear(err)
	})
	onReconnect := nc.ReconnectHandler()
	nc.SetReconnectHandler(func(nc *nats.Conn) {
		r.mu.Lock()
		r.reason = nil
		r.mu.Unlock()
		onReconnect(nc)
	})
}

// hear takes an error of the connection.
func (r *refusals) hear(err error) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return
	}
	parts := refused.FindStringSubmatch(err.Error())
	if parts == nil {
		return
	}
	subject := parts[2]
	verb, needed, always := "publish on", false, false
	if parts[1] == "Publish" {
		usualSubject := subject
		if suffix, ok := strings.CutPrefix(subject, r.api); ok {
			usualSubject = usualAPI + suffix
		}
		needed, always = r.role.NeedsToPublish(usualSubject)
	} else {
		verb, always = "subscribe to", strings.HasPrefix(subject, r.inbox) || r.role.NeedsToHear(subject)
		needed = always
	}
	if !needed {
		return
	}
	reason := r.denied("may not " + verb + " " + subject)
	r.mu.Lock()
	if r.reason == nil {
		r.reason = reason
	}
	r.mu.Unlock()
	if always {
		r.end(&refusedError{reason})
	}
}

// denied is the server's word on what the worker's user lacks.
func (r *refusals) denied(what string) error {
	return fault.New(fault.Infrastructure, "the server says that this user (%s) %s: it needs the permissions of %s, which btn keys writes",
		r.user, what, r.role.Name)
}

// noStreams is the error of a user in whose account there are no streams, as a tenant's.
func (r *refusals) noStreams() error {
	return r.denied("sees no streams (JetStream is not enabled for its account, as for a tenant's)")
}

// err returns the refusal of a right that some messages need, or nil.
func (r *refusals) err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reason
}

// refusedError ends a worker.
type refusedError struct{ reason error }

func (e *refusedError) Error() string { return fmt.Sprint(e.reason) }
func (e *refusedError) Unwrap() error { return e.reason }
