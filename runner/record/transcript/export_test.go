package transcript

// Envelope is the fast reading of a line, for tests that compare it with the other.
func Envelope(text string) (Event, bool) { return line{text: []byte(text)}.envelope() }
