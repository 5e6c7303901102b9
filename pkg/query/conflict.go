package query

// Conflict is a part of impossible evidence that is impossible by itself, while none of its own parts is. Without observations the model
// is impossible without any evidence.
type Conflict struct {
	Observations []Observed `json:"observations" msgpack:"o"`
	// Smallest says that no conflict has fewer observations; else only that this one has none to spare.
	Smallest bool `json:"smallest" msgpack:"s"`
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
		for i := range a.Conflict.Observations {
			o := &a.Conflict.Observations[i]
			o.Name = n.Variable(o.Variable)
			if o.Value != nil {
				o.State = n.Value(o.Variable, *o.Value)
			}
		}
	},
}
