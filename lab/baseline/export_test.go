package baseline

// Below is for the test of the logistic steps.
var Below = below
