package pace

import "context"

// giveWayKey is the key under which a yieldingContext has its function giveWay.
type giveWayKey struct{}

// yieldingContext is a context whose Err first calls giveWay.
type yieldingContext struct {
	context.Context
	giveWay func()
}

// WithGiveWay returns a context that calls giveWay whenever its Err is called, also by a Pace: there the computation may be made to wait
// for more urgent work. Contexts that are derived from it do so only after KeepGiveWay.
func WithGiveWay(ctx context.Context, giveWay func()) context.Context {
	return &yieldingContext{ctx, giveWay}
}

// KeepGiveWay returns a context with the cancellation of ctx that gives way as the context of WithGiveWay does from which ctx was
// derived. It returns ctx itself if there is none.
func KeepGiveWay(ctx context.Context) context.Context {
	if giveWay, ok := ctx.Value(giveWayKey{}).(func()); ok {
		return &yieldingContext{ctx, giveWay}
	}
	return ctx
}

// Err calls giveWay, and returns the error of the context after it.
func (y *yieldingContext) Err() error {
	y.giveWay()
	return y.Context.Err()
}

// Value returns giveWay for giveWayKey, so that KeepGiveWay finds it in derived contexts.
func (y *yieldingContext) Value(key any) any {
	if key == (giveWayKey{}) {
		return y.giveWay
	}
	return y.Context.Value(key)
}
