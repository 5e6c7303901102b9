// Package commands hands the built commands to the test programs that run them.
package commands

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Variable is the environment variable that names the folder of the commands of both modules that `make commands` has built of this
// source tree. Without it every test program builds its own.
const Variable = "BTN_COMMANDS"

// names lists the commands of both modules. They are not read from the folder: go test would take a new time of a file there for a reason
// to repeat what has passed.
var names = []string{"aggregator", "btn", "btnlab", "contract-worker", "learn-worker", "reparam-worker"}

// Install puts the commands of both modules into a folder. If Variable names a folder of built commands, they are links to those;
// otherwise it builds them from the source tree at root.
func Install(folder, root string) error {
	built := os.Getenv(Variable)
	if built == "" {
		for _, module := range []string{"", "lab"} {
			const withoutSymbols = "-ldflags=-s -w" // a third less linking
			build := exec.Command("go", "build", "-C", filepath.Join(root, module), withoutSymbols,
				"-o", folder+string(filepath.Separator), "./cmd/...")
			if out, err := build.CombinedOutput(); err != nil {
				return fmt.Errorf("commands: %w: %s", err, out)
			}
		}
		return nil
	}
	for _, name := range names {
		if err := os.Symlink(filepath.Join(built, name), filepath.Join(folder, name)); err != nil {
			return fmt.Errorf("commands: %w", err)
		}
	}
	return nil
}
