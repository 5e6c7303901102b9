package hop

// DigestOf is the digest of the request of a message that does not carry it.
var DigestOf = (*Loop).digestOf
