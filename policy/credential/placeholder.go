package credential

import (
	"crypto/rand"
	"math/big"
)

// Marked is how a placeholder begins, where it is long enough, so that people know
// it for one. Letters and digits alone stay as they are in every part of a request.
const Marked = "agentci0"

// NewPlaceholder gives a placeholder for value that nobody can guess. It is as long as
// value, so that an answer in which one stands for the other keeps its length.
func NewPlaceholder(value string) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	const leastRandom = 16
	made := make([]byte, 0, len(value))
	if len(value) >= len(Marked)+leastRandom {
		made = append(made, Marked...)
	}
	for len(made) < len(value) {
		i, err := rand.Int(rand.Reader, big.NewInt(int64(len(letters))))
		if err != nil {
			panic(err) // crypto/rand.Read never fails
		}
		made = append(made, letters[i.Int64()])
	}
	return string(made)
}
