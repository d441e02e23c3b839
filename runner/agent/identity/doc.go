// Package identity lets a run into the model's API without a key of its own: it
// finds the token by which the machine says which job runs, and what becomes of
// it where it is exchanged for a key that lives for an hour. It refuses to know
// what the key is used for.
package identity
