package logic

// Searched are options that search whatever an elimination takes, or not.
func Searched(yes bool) Options { return Options{search: yes} }
