package query

// Conflict is a part of impossible evidence that is impossible by itself, while none of its own parts is. Without observations the model
// is impossible without any evidence. If the query sets variables, all of that is about the network in which their tables are cut out.
type Conflict struct {
	Observations []Observed `json:"observations" msgpack:"o"`
	// Smallest says that no conflict has fewer observations; else only that this one has none to spare.
	Smallest bool `json:"smallest" msgpack:"s"`
	// Do is what the query sets.
	Do []Observed `json:"do,omitempty" msgpack:"-"`
}

// Observed is an observation of a conflict.
type Observed struct {
	Variable int    `json:"variable" msgpack:"v"`
	Name     string `json:"name,omitempty" msgpack:"-"`
	Value    *int   `json:"value" msgpack:"x,omitempty"` // null for a likelihood with weights of 0
	State    string `json:"state,omitempty" msgpack:"-"` // the name of the value
}

// conflict is which observations contradict each other.
var conflict = kind{
	field: "conflict",
	name: func(a *Answers, n Names) {
		if a.Conflict == nil {
			return
		}
		for _, list := range [][]Observed{a.Conflict.Observations, a.Conflict.Do} {
			for i := range list {
				o := &list[i]
				o.Name = n.Variable(o.Variable)
				if o.Value != nil {
					o.State = n.Value(o.Variable, *o.Value)
				}
			}
		}
	},
}
