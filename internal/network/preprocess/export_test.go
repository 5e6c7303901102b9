package preprocess

// Always returns o with stars, chains and, with Classes, classes wherever there is one.
func Always(o Options) Options {
	o.always = true
	return o
}
