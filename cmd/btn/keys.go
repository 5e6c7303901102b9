package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/basetensor/basetensor/internal/doors/access"
	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/pkg/fault"
)

// keysCmd writes the rights of users on a NATS server, with the keys for them.
type keysCmd struct {
	Dir    string   `arg:"" help:"Folder for seeds, settings and the server's accounts. Existing files stay."`
	Tenant []string `help:"A tenant who gets a user; may be repeated." placeholder:"NAME"`
	Rotate []string `help:"A user, 'messages' or 'answers', whose keys get a second one, which is accepted." placeholder:"NAME"`
	Use    []string `help:"One whose second key is used from now on; the first is accepted." placeholder:"NAME"`
	Retire []string `help:"One whose other key is not accepted any more." placeholder:"NAME"`
	access.Limits
	At string `help:"Where the folder lies on the machines that use it; without it, where it is." placeholder:"PATH"`
}

// Run writes the missing files and prints the steps for their use.
func (c *keysCmd) Run(t *console.Terminal) error {
	// change keys
	var changes []string // sentences about them
	for _, change := range []struct {
		step  access.Step
		names []string
	}{{access.Rotate, c.Rotate}, {access.Use, c.Use}, {access.Retire, c.Retire}} {
		for _, name := range change.names {
			if err := access.ChangeKeys(c.Dir, name, change.step); err != nil {
				return err
			}
			changes = append(changes, c.describeChange(name, change.step))
		}
	}

	// write what is missing
	fresh, err := access.WriteKeys(c.Dir, c.At, c.Tenant, c.Limits)
	if err != nil {
		return err
	}

	// say what was done, and how to go on
	for _, text := range changes {
		fmt.Fprintln(t.Out, text)
	}
	for _, name := range fresh {
		fmt.Fprintf(t.Out, "new user %s\n", name)
	}
	answers, err := os.ReadFile(filepath.Join(c.Dir, access.AnswersKey))
	if err != nil {
		return fault.Wrap(fault.BadInput, err)
	}
	fmt.Fprintf(t.Out, "answers are signed; this key verifies them: --answers-key %s\n", strings.Join(strings.Fields(string(answers)), ","))
	fmt.Fprintf(t.Out, "accounts: %s, for an include in nats-server's configuration (reload it: nats-server --signal reload)\n"+
		"settings: %s and so on, for --config of the commands\n",
		filepath.Join(c.Dir, access.ConfigFile), filepath.Join(c.Dir, access.Operator+".json"))
	return nil
}

// describeChange says what a step did with the keys of a user, of messages or of answers, and what is to be done next.
func (c *keysCmd) describeChange(name string, step access.Step) string {
	handOver := map[string]map[access.Step]string{ // by step, what is to be given to whom, so that the step takes effect
		access.Messages: {
			access.Rotate: access.MessageKeys + " to all its users",
			access.Use:    access.MessageKeys + " to all its users",
			access.Retire: access.MessageKeys + " to all its users",
		},
		access.Answers: {
			access.Rotate: access.AnswersKey + " to every verifier, and tenants the new --answers-key",
			access.Use:    access.AnswersSeed + " to aggregators",
			access.Retire: access.AnswersKey + " to every verifier, tenants the new --answers-key, and " + access.AnswersSeed + " to aggregators",
		},
	}[name]
	expiry := "when all that the old one signed has expired (24 h, btn setup --keep)"
	if isUsers := handOver == nil; isUsers {
		handOver = map[access.Step]string{
			access.Rotate: access.ConfigFile + " to the server, and reload it",
			access.Use:    "the file of seeds to " + name + ", and restart its processes, one after the other",
			access.Retire: access.ConfigFile + " to the server, and reload it",
		}
		expiry = "after all restarts"
	}
	command := "btn keys " + c.Dir
	if c.At != "" {
		command += " --at " + c.At
	}
	switch step {
	case access.Rotate:
		return fmt.Sprintf("%s: a second key is accepted. Next: give %s; then %s --use %s", name, handOver[step], command, name)
	case access.Use:
		return fmt.Sprintf("%s: the second key is used, the first is accepted. Next: give %s; then, %s, %s --retire %s",
			name, handOver[step], expiry, command, name)
	default:
		return fmt.Sprintf("%s: the old key is dropped. Next: give %s, so that nobody accepts it any more", name, handOver[step])
	}
}
