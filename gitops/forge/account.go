package forge

// User is an account.
type User struct {
	Login string
	ID    int64
	Bot   bool
}

// Permission is what an account may do in a repository.
type Permission struct {
	// Level is admin, write, read or none. On a public repository everybody has
	// read.
	Level string
	// Role is finer: admin, maintain, write, triage, read, or the name of a role
	// that the organisation made.
	Role string
}
