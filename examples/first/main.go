// Command first asks the workers over NATS: how probable is lung cancer in a smoker whose X-ray is abnormal? BTN_NATS is the URL of NATS.
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"os"

	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	text, err := os.ReadFile("examples/asia.json")
	if err != nil {
		return err
	}
	c, err := client.Connect(cmp.Or(os.Getenv("BTN_NATS"), "nats://127.0.0.1:4222"), client.Options{})
	if err != nil {
		return err
	}
	defer c.Close()

	question := query.Query{Evid: "smoke=yes,xray=abnormal", Named: &query.ByName{Targets: []string{"lung"}}}
	answer, err := c.Infer(ctx, wire.Request{
		Text:       string(text),
		Queries:    []query.Query{question},
		DeadlineMS: 30_000, // the service ends the job after that
	})
	switch {
	case err != nil:
		return err
	case answer.Error != nil: // of the job
		return fmt.Errorf("%s: %s", answer.Error.Code, answer.Error.Message)
	case answer.Results[0].Error != nil: // of this one query
		return fmt.Errorf("%s: %s", answer.Results[0].Error.Code, answer.Results[0].Error.Message)
	}
	fmt.Println("P(lung = yes) =", answer.Results[0].Posteriors()["lung"]["yes"])
	return nil
}
