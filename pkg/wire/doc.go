// Package wire holds the messages of the pipeline, version 1: their types, their bytes, and the bounds they are held to.
//
// A message is one msgpack map with string keys. Two keys are common to all: "t", the name of the message, and "v",
// its major version. Lists of floats are bin fields of little-endian float64, lists of integers are msgpack arrays.
// The same value always gives the same bytes: fields in the order of their struct, free maps sorted by key.
//
// The reflection decoder of the msgpack library is not used for reading. On hostile bytes it allocates what a header
// claims, wraps integers that do not fit and takes missing fields for zero. Decode instead runs Scan, which is linear and
// allocates nothing, and then reads field by field against the Go type, with an allowance of memory. Writing uses the
// library's encoder.
package wire
