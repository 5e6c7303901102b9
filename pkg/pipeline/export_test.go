package pipeline

import "github.com/basetensor/basetensor/pkg/wire"

// WithHook returns c with a function that is called before a stage works on a message.
func (c Config) WithHook(hook func(Stage, wire.Subject)) Config {
	c.hook = hook
	return c
}

// NetworkVersion is part of the keys of remembered networks.
const NetworkVersion = networkVersion
