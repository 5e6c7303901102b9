package logic

// Searched returns options that search at any cost of elimination, or not.
func Searched(yes bool) Options { return Options{search: yes} }
