// Package identity authenticates a run to the model's API without a stored key: it finds the job's
// identity token and exchanges it for a key valid for an hour. It does not know the key's use.
package identity
