package pipeline

// NetworkVersion is part of the keys of remembered networks.
const NetworkVersion = networkVersion
