package main

import (
	"os/user"

	"github.com/basetensor/basetensor/internal/queue/telemetry"
)

// auditFlag is where a command that changes something records that.
type auditFlag struct {
	Audit string `help:"File to which a line of JSON is appended: who changed what, and when." placeholder:"FILE" group:"output"`
}

// runAudited calls do as a user of the server, and records the action, what it changes and its error.
func (f auditFlag) runAudited(server serverFlags, action, what string, do func() error) error {
	audit, err := telemetry.OpenAudit(f.Audit, nil)
	if err != nil {
		return err
	}
	who := "NATS user " + server.AsNATS.Identity(server.NATS)
	if me, err := user.Current(); err == nil {
		who = me.Username + ", " + who
	}
	err = do()
	audit.Note(who, action, what, err)
	return err
}
