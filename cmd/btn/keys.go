package main

import (
	"fmt"
	"path/filepath"

	"github.com/basetensor/basetensor/internal/access"
	"github.com/basetensor/basetensor/internal/console"
)

// keysCmd writes who may do what on a NATS server, with the keys for it.
type keysCmd struct {
	Dir    string   `arg:"" help:"Folder for seeds, settings and the server's accounts. What is there stays."`
	Tenant []string `help:"A tenant who gets a user; may be repeated." placeholder:"NAME"`
	At     string   `help:"Where the folder lies on the machines that use it; without it, where it is." placeholder:"PATH"`
}

// Run writes what is missing and says what to do with it.
func (c *keysCmd) Run(t *console.Terminal) error {
	fresh, err := access.Write(c.Dir, c.At, c.Tenant)
	if err != nil {
		return err
	}
	for _, name := range fresh {
		fmt.Fprintf(t.Out, "new user %s\n", name)
	}
	fmt.Fprintf(t.Out, "accounts: %s, for an include in nats-server's configuration (reload it: nats-server --signal reload)\n"+
		"settings: %s and so on, for --config of the commands\n",
		filepath.Join(c.Dir, access.ConfigFile), filepath.Join(c.Dir, access.Operator+".json"))
	return nil
}
