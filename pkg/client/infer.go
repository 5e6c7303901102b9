package client

// An answer in one request, for models that take less than a second.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
)

// PendingError says that a request's job is stored, and not answered yet: go on with Wait, or
// Cancel it. It has the code deadline.
type PendingError struct {
	Job    string
	Digest string // of the request
	Reason string
}

// Error returns the job and the reason.
func (e *PendingError) Error() string { return fmt.Sprintf("client: job %s: %s", e.Job, e.Reason) }

// Unwrap makes fault.CodeOf say deadline.
func (e *PendingError) Unwrap() error {
	return &fault.Error{Code: fault.Deadline, Err: errors.New(e.Reason)}
}

// replyAfter is the extra time beyond the job's own that its reply is waited for.
const replyAfter = 10 * time.Second

// Infer asks for the answer in one request: reparam-worker submits the job and waits for it, for a second or, if the
// request has a deadline, until that. A request without a job's id gets one. The error is a *PendingError if it takes
// longer, wraps ErrJobTaken if the id belongs to another request, and ErrFull if there is no room, or too many wait
// already. Asking again under the same id is always safe. The end of ctx does not end the job: Cancel does, which needs
// its id.
//
// A request or reply that was damaged or lost on its way is sent again; if that goes on, the error has the code damaged
// or infrastructure.
func (c *Client) Infer(ctx context.Context, request wire.Request) (answer *wire.Answer, err error) {
	if request.Job == "" {
		request.Job = c.newJob()
	} else if err := c.checkOwner(request.Job); err != nil {
		return nil, err
	}
	encoded, err := wire.Encode(&request)
	if err != nil {
		return nil, err
	}

	digest, err := request.Digest()
	if err != nil {
		return nil, err
	}
	for range mostSendings {
		answer, err = c.inferOnce(ctx, &request, digest, encoded)
		isLost := errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil // no reply came within inferOnce's own time
		isDamaged := fault.CodeOf(err) == fault.Damaged
		if !isLost && !isDamaged {
			break
		}
	}
	return answer, err
}

// mostSendings is how often a request is sent that was damaged or lost on its way.
const mostSendings = 3

// inferOnce is one attempt of Infer: it sends the encoded request, and returns the answer in the reply or the reason
// why there is none.
func (c *Client) inferOnce(ctx context.Context, request *wire.Request, digest string, encoded []byte) (*wire.Answer, error) {
	// the request
	headers := nats.Header(message.Headers(request, request.Job, digest, request.Tenant))
	addTrace(ctx, headers)
	owner := message.Owner(request.Job)
	msg, err := c.bus.Log.Prepare(ctx, owner, &nats.Msg{Subject: message.InferSubject(owner), Header: headers, Data: encoded})
	if err != nil {
		return nil, err
	}

	// its reply: inner ends a while after the worker must have replied, and does not count as the end of ctx
	inner, cancel := context.WithTimeout(ctx, message.Patience(request.DeadlineMS)+replyAfter)
	defer cancel()
	reply, err := c.nc.RequestMsgWithContext(inner, msg)
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("client: request for job %s: %w", request.Job, ctx.Err())
	case errors.Is(err, nats.ErrNoResponders):
		return nil, fault.New(
			fault.Infrastructure, "client: no reparam-worker offers %s: %w", message.InferSubject(owner), err,
		)
	case err != nil:
		return nil, fault.New(
			fault.Infrastructure,
			"client: request for job %s (asking again under this id is safe): %w", request.Job, err,
		)
	}

	// its data, which are in the reply, or in a blob that a header of the reply names
	if err := bus.CheckSum(reply.Subject, reply.Header, reply.Data); err != nil {
		return nil, err
	}
	delete(reply.Header, wire.HeaderSum) // of the reply, not of the answer in it
	data, err := c.bus.Blobs.Payload(ctx, owner, reply.Header, reply.Data)
	if err != nil {
		return nil, err
	}

	// an answer, or the reason why there is none
	var answer wire.Answer
	if err := wire.Decode(data, &answer); err != nil {
		return nil, unansweredError(request.Job, reply.Header, data, err)
	}
	if !c.bus.Signer.IsGenuine(wire.AnswerSubject(request.Job), reply.Header, reply.Data) {
		return c.Wait(inner, request.Job) // somebody else sent it: the worker's answer is stored, or will be
	}
	return &answer, nil
}

// unansweredError returns the error that a reply without an answer stands for. noAnswer is the error of decoding data as an answer; it is
// returned if data are no reason either.
func unansweredError(job string, header nats.Header, data []byte, noAnswer error) error {
	var unanswered wire.Unanswered
	if wire.Decode(data, &unanswered) != nil {
		return fault.Wrap(fault.Internal, noAnswer)
	}
	switch header.Get(micro.ErrorCodeHeader) {
	case wire.ReplyPending:
		return &PendingError{unanswered.Job, unanswered.Digest, unanswered.Error.Message}
	case wire.ReplyTaken:
		return fault.New(unanswered.Error.Code, "%w: %s", ErrJobTaken, job)
	case wire.ReplyNoRoom:
		return fault.New(unanswered.Error.Code, "%w: %s", ErrFull, unanswered.Error.Message)
	}
	return fault.New(unanswered.Error.Code, "client: %s", unanswered.Error.Message)
}
