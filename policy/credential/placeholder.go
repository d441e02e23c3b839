package credential

import (
	"crypto/rand"
	"math/big"
)

// PlaceholderPrefix is the prefix of long placeholders, so that people recognise them. It consists of
// letters and digits, because no encoding of a request changes these.
const PlaceholderPrefix = "agentci0"

// NewPlaceholder returns an unguessable placeholder as long as value, so replacing one by the other
// keeps the length of an answer.
func NewPlaceholder(value string) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	const minRandom = 16
	placeholder := make([]byte, 0, len(value))
	if len(value) >= len(PlaceholderPrefix)+minRandom {
		placeholder = append(placeholder, PlaceholderPrefix...)
	}
	for len(placeholder) < len(value) {
		i, err := rand.Int(rand.Reader, big.NewInt(int64(len(letters))))
		if err != nil {
			panic(err) // crypto/rand.Read never fails
		}
		placeholder = append(placeholder, letters[i.Int64()])
	}
	return string(placeholder)
}
