package assembly

import "bytes"

// sentMessages holds the heads of the messages that are sent only once per run and were sent already.
type sentMessages map[string]bool

// Heads of messages that are sent only once per run. They must need no JSON escapes, so that markSent finds them.
const (
	// refusedHead begins the message about a change that may not be published.
	refusedHead = "The runner looked at your change, and it may not be published as it is. "
	// claimedHead begins the message about a summary that claims more than the change shows.
	claimedHead = "The runner compared your last message with your change. "
	// unprovenHead begins the message about new tests that also pass without the change.
	unprovenHead = "The runner ran the tests of your change on the base, without the rest of it, "
)

// markSent marks the messages in a recorded request, which is JSON, as sent.
func (s sentMessages) markSent(request []byte) {
	for _, head := range []string{nudgeHead, refusedHead, claimedHead, unprovenHead} {
		if !s[head] && bytes.Contains(request, []byte(`"text":"`+head)) { // no quote of it in a text matches, since quotes are escaped there
			s[head] = true
		}
	}
}

// sendOncePerRun sends the message head + words to an agent that has ended. It sends nothing if words is "", if head
// was sent before, or if the agent has no turn left.
func (a *Agent) sendOncePerRun(head, words string) (sent bool, err error) {
	canContinue := a.work.BudgetStop == nil && a.hasTurnLeft()
	if words == "" || a.sentOnce[head] || !canContinue {
		return false, nil
	}
	if a.sentOnce == nil {
		a.sentOnce = sentMessages{}
	}
	a.sentOnce[head] = true
	return true, a.Tell(head + words)
}

// ReportRefused tells an agent that has ended, once per run, why its change may not be published. If sent is true, the
// agent must continue.
func (a *Agent) ReportRefused(reason string) (sent bool, err error) {
	return a.sendOncePerRun(refusedHead, a.Record.Redact(reason)+
		" Take that out of the change or do it in another way, then end again with your summary. If it can't be done in another way, end again and say why in your last message. "+StoppedWords)
}

// ReportClaims tells an agent that has ended, once per run, which claims of its summary the change does not show. If
// sent is true, the agent must continue.
func (a *Agent) ReportClaims(claims string) (sent bool, err error) {
	return a.sendOncePerRun(claimedHead, a.Record.Redact(claims)+
		" Do what is missing, or end again with a summary that says only what you did. "+StoppedWords)
}

// ReportUnproven tells an agent that has ended, once per run, about tests that prove nothing. words continue the
// sentence that unprovenHead begins. If sent is true, the agent must continue.
func (a *Agent) ReportUnproven(words string) (sent bool, err error) {
	return a.sendOncePerRun(unprovenHead, a.Record.Redact(words)+" "+StoppedWords)
}
