package console

// Clients of a server, as whom the flags say.

import (
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/connect"
	"github.com/basetensor/basetensor/internal/queue/seal"
	"github.com/basetensor/basetensor/pkg/client"
)

// Dial connects to the server with the credentials of the flags. With keys the client believes signed
// answers only.
func Dial(url string, as connect.NATS, signing seal.Flags) (*client.Client, error) {
	options, err := as.Options()
	if err != nil {
		return nil, err
	}
	return client.Connect(bus.Server(url, as.Context), client.Options{
		Tenant: as.Tenant, MessageKeys: signing.MessageKeys, AnswersKey: signing.AnswersKey,
	}, options...)
}
