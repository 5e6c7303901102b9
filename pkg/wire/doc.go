// Package wire holds the messages that clients send and hear, version 1: their types, their bytes,
// their subjects, and the bounds they are held to. docs/reference/wire.md is the contract, for clients in any
// language; package client does all of it.
//
// A message is one msgpack map with string keys. Two keys are common to all: "t", the name of the
// message, and "v", its major version. Lists of floats are bin fields of little-endian float64,
// lists of integers are msgpack arrays. The same value always gives the same bytes. Bytes that are
// hostile are refused without harm: see Decode.
package wire
