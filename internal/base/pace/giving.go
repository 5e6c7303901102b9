package pace

import "context"

// key is the key of the function that Giving keeps.
type key struct{}

// giving is a context that gives way before it is looked at.
type giving struct {
	context.Context
	give func()
}

// Giving returns a context that calls give whenever it is looked at, and under which every Pace
// does: the computation may be made to wait there for more urgent work. Contexts that are derived
// from it have to be passed to Still.
func Giving(ctx context.Context, give func()) context.Context { return &giving{ctx, give} }

// Still returns ctx, which was derived from another, such that it gives way as that does.
func Still(ctx context.Context) context.Context {
	if give, ok := ctx.Value(key{}).(func()); ok {
		return &giving{ctx, give}
	}
	return ctx
}

// Err gives way, and looks.
func (g *giving) Err() error {
	g.give()
	return g.Context.Err()
}

// Value has the function for those that derive contexts.
func (g *giving) Value(k any) any {
	if k == (key{}) {
		return g.give
	}
	return g.Context.Value(k)
}
