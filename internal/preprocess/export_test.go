package preprocess

// Always returns o with stars and chains wherever there is one.
func Always(o Options) Options {
	o.always = true
	return o
}
