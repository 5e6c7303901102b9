// Package bench measures the program on a folder of models: every model in a process of its own,
// compared with the reference solutions beside it. The results are a table, a CSV file, a Markdown
// page and a cactus plot.
package bench

import (
	"context"
	"math"
	"strconv"
	"time"
)

// Config holds the command, the limits and the columns of a run.
type Config struct {
	Command []string      // the program and its arguments; the model's path is appended
	Timeout time.Duration // a model that takes longer is killed; 0: never
	CPU     time.Duration // one that takes more CPU time is killed, in whole seconds; 0: never
	Mar     bool          // marginals are asked for and compared as well
	// Formulas says that the references are in counts.csv.
	Formulas bool
	Set      string // name of the rows' set, the legend of the plot
	Folder   string // of the models, cleaned; messages that name a file in it say FOLDER
}

// Run measures the models one after the other, in the given order, and hands every row to each as
// soon as it is there. Between models and within one it ends with the context's error; the rows
// until then belong to completed models. A model's failure is in its row and never an error.
func Run(ctx context.Context, c Config, models []Model, each func(Row)) ([]Row, error) {
	rows := make([]Row, 0, len(models))
	for _, m := range models {
		if err := ctx.Err(); err != nil {
			return rows, err
		}
		p := runProcess(ctx, c.limited(append(append([]string(nil), c.Command...), m.Path)), c.Timeout)
		p.spent(c.CPU)
		row := c.row(m, p, c.reference(m.Path))
		// An interrupt from the keyboard reaches the process too: it may have ended without an
		// answer before it was killed.
		if err := ctx.Err(); err != nil && (p.Ending != endedAlone || row.Status == Broken) {
			return rows, err
		}
		each(row)
		rows = append(rows, row)
	}
	return rows, nil
}

// reference returns the known answer of a model.
func (c Config) reference(model string) reference {
	if c.Formulas {
		return readCount(model)
	}
	return readReference(model, c.Mar)
}

// limited is a command that ends when it has taken its CPU time.
func (c Config) limited(args []string) []string {
	if c.CPU <= 0 {
		return args
	}
	seconds := strconv.FormatFloat(math.Ceil(c.CPU.Seconds()), 'f', 0, 64)
	return append([]string{"sh", "-c", "ulimit -t " + seconds + ` && exec "$@"`, "sh"}, args...)
}
