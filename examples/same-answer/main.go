// Command same-answer asks the workers about a model file with names over NATS. BTN_NATS is the URL of NATS.
//
//	go run ./examples/same-answer examples/heating.bif
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/formats"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/uai"
)

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	model, err := formats.Read(f, "", path, uai.Limits{})
	if err != nil {
		return err
	}
	c, err := client.Connect(cmp.Or(os.Getenv("BTN_NATS"), "nats://127.0.0.1:4222"), client.Options{})
	if err != nil {
		return err
	}
	defer c.Close()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	answer, err := c.Ask(ctx, model, query.Query{
		Evid:  `{"season": "winter", "complaint": "yes"}`,
		Named: &query.ByName{Targets: []string{"boiler", "pump", "valve"}},
	})
	switch {
	case err != nil:
		return err
	case answer.Error != nil:
		return fmt.Errorf("%s: %s", answer.Error.Code, answer.Error.Message)
	case answer.Results[0].Error != nil:
		return fmt.Errorf("%s: %s", answer.Results[0].Error.Code, answer.Results[0].Error.Message)
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"posteriors": answer.Results[0].Posteriors()})
}
