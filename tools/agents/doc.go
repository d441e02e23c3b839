// Package agents owns the tools by which a model starts other agents, talks with them, waits for
// them and takes their changes over, in the two forms that models know, and the texts by which it
// hears of them. It knows nothing of what an agent is and how one runs: that is the Team's.
package agents
