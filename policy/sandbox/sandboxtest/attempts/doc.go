// Package attempts owns the ways out of a sandbox that the batteries try, the
// world that is attacked, and how an attempt ends. It knows neither how commands
// are confined nor what runs them.
package attempts
