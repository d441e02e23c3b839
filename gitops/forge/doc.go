// Package forge says what a forge is: the server that has repositories with
// their issues, pull requests and accounts. It owns the values that calls give
// and take, the bounds of what is read and stored, and why a call failed. It
// knows no server's API: a package beside it speaks to one.
//
// Everything that comes from a forge (titles, bodies, comments, names, error
// messages) was written by strangers and is handed on as text without any
// meaning.
package forge
