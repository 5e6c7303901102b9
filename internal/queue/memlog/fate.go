package memlog

// Event is something that a Server is about to do.
type Event struct {
	Kind     Kind
	Stream   string
	Consumer string // of a delivery or an acknowledgement
	Subject  string // of the message
	Attempt  int    // of a delivery, from 1
}

// Kind is a kind of event.
type Kind int

// The kinds of events.
const (
	Stored       Kind = iota // a message comes to its stream
	Delivered                // a message goes to a worker
	Acknowledged             // a worker settles a message, or says that it works on it
	Read                     // a direct get finds a message
)

// Fate is the fate of an event. The zero value lets it happen.
type Fate struct {
	Lose   bool // it does not happen, and nobody hears of it
	Refuse bool // Stored: the stream is full
	Silent bool // Stored: the message is stored, and its publisher is not told
	Twice  bool // Delivered: the message is delivered again at once
}

// fateOf returns the fate that the server's options give an event. The caller holds the mutex.
func (s *Server) fateOf(e Event) Fate {
	if s.options.Fate == nil {
		return Fate{}
	}
	return s.options.Fate(e)
}
