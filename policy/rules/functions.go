package rules

import (
	"errors"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"

	"go.starlark.net/starlark"
)

// functions returns the functions of the rules language. Each passes the place of its call in the file to a
// method of l.
func (l *loader) functions() starlark.StringDict {
	bind := func(name string, f func(Place, starlark.Tuple, []starlark.Tuple) error) *starlark.Builtin {
		return starlark.NewBuiltin(name, func(thread *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			if len(l.set.rules)+len(l.set.executables)+len(l.set.network) >= maxRules {
				return nil, fmt.Errorf("there are more than %d rules", maxRules)
			}
			caller := thread.CallFrame(1).Pos // frame 0 is the function itself
			err := f(Place{caller.Filename(), int(caller.Line)}, args, kwargs)
			return starlark.None, err
		})
	}
	return starlark.StringDict{
		"prefix_rule": bind("prefix_rule", l.addPrefixRule), "host_executable": bind("host_executable", l.addHostExecutable), "network_rule": bind("network_rule", l.addNetworkRule),
	}
}

// addPrefixRule adds a prefix_rule.
func (l *loader) addPrefixRule(at Place, args starlark.Tuple, kwargs []starlark.Tuple) error {
	var pattern, match, notMatch *starlark.List
	var decision, justification starlark.Value
	if err := starlark.UnpackArgs("prefix_rule", args, kwargs, "pattern", &pattern, "decision??", &decision,
		"match??", &match, "not_match??", &notMatch, "justification??", &justification); err != nil {
		return err
	}
	rule := Rule{At: at}
	var err error
	if rule.Decision, err = parseDecision(decision); err != nil {
		return err
	}
	if rule.Justification, err = parseJustification(justification); err != nil {
		return err
	}
	if rule.pattern, err = l.parsePattern(pattern); err != nil {
		return err
	}
	l.set.rules = append(l.set.rules, rule)
	index := len(l.set.rules) - 1
	if err := l.addExamples(index, "match", match); err != nil {
		return err
	}
	return l.addExamples(index, "not_match", notMatch)
}

// parseDecision parses the decision of a rule. A missing one means Allow.
func parseDecision(value starlark.Value) (Decision, error) {
	if value == nil {
		return Allow, nil
	}
	text, _ := starlark.AsString(value)
	index := slices.Index(decisionNames[:], text)
	if index < 0 {
		return 0, fmt.Errorf("decision must be one of %s, not %s", strings.Join(decisionNames[:], ", "), shortText(value))
	}
	return Decision(index), nil
}

// parseJustification parses the justification of a rule. A missing one is "".
func parseJustification(value starlark.Value) (string, error) {
	if value == nil {
		return "", nil
	}
	text, _ := starlark.AsString(value)
	text = strings.TrimSpace(text)
	if text == "" {
		return "", errors.New("justification must be text that says why the rule is there")
	}
	return text, nil
}

// parsePattern parses a pattern: a list of strings and lists of alternatives.
func (l *loader) parsePattern(list *starlark.List) ([][]string, error) {
	if list.Len() == 0 {
		return nil, errors.New("pattern must not be empty")
	}
	pattern := make([][]string, 0, min(list.Len(), maxTokens))
	for i := range list.Len() {
		token, err := l.parseToken(list.Index(i))
		if err != nil {
			return nil, fmt.Errorf("pattern[%d] %w", i, err)
		}
		pattern = append(pattern, token)
	}
	if slices.Contains(pattern[0], "") {
		return nil, errors.New("pattern[0] must name a program")
	}
	return pattern, nil
}

// parseToken parses a word of a pattern: a string or a list of alternatives.
func (l *loader) parseToken(value starlark.Value) ([]string, error) {
	if text, ok := starlark.AsString(value); ok {
		return []string{text}, l.countWords(1)
	}
	list, ok := value.(*starlark.List)
	if !ok || list.Len() == 0 {
		return nil, fmt.Errorf("must be text or a list of alternatives, not %s", shortText(value))
	}
	return l.parseTexts(list)
}

// parseTexts returns the strings of a list.
func (l *loader) parseTexts(list *starlark.List) ([]string, error) {
	if err := l.countWords(list.Len()); err != nil {
		return nil, err
	}
	texts := make([]string, 0, list.Len())
	for i := range list.Len() {
		text, ok := starlark.AsString(list.Index(i))
		if !ok {
			return nil, fmt.Errorf("must hold nothing but text, not %s", shortText(list.Index(i)))
		}
		texts = append(texts, text)
	}
	return texts, nil
}

// countWords bounds the words of all files together.
func (l *loader) countWords(words int) error {
	l.tokens += words
	if l.tokens > maxTokens {
		return fmt.Errorf("of words in patterns and examples there are more than %d", maxTokens)
	}
	return nil
}

// addHostExecutable adds a host_executable.
func (l *loader) addHostExecutable(_ Place, args starlark.Tuple, kwargs []starlark.Tuple) error {
	var name string
	var list *starlark.List
	if err := starlark.UnpackArgs("host_executable", args, kwargs, "name", &name, "paths", &list); err != nil {
		return err
	}
	if name == "" || name == "." || name == ".." || strings.Contains(name, "/") {
		return fmt.Errorf("name must be the bare name of a program, not %q", name)
	}
	paths, err := l.parseTexts(list)
	if err != nil {
		return fmt.Errorf("paths %w", err)
	}
	for _, p := range paths {
		switch {
		case !path.IsAbs(p):
			return fmt.Errorf("paths must be absolute, not %q", p)
		case path.Base(p) != name:
			return fmt.Errorf("paths must end in %q, not be %q", name, p)
		}
	}
	slices.Sort(paths)
	l.set.executables = append(l.set.executables, executable{name, slices.Compact(paths)})
	return nil
}

// protocols maps the names of protocols, and their aliases, to the names in Network.
var protocols = map[string]string{
	"http": "http", "https": "https", "https_connect": "https", "http-connect": "https", "socks5_tcp": "socks5_tcp", "socks5_udp": "socks5_udp",
}

// addNetworkRule adds a network_rule.
func (l *loader) addNetworkRule(at Place, args starlark.Tuple, kwargs []starlark.Tuple) error {
	var host, protocol string
	var decision, justification starlark.Value
	if err := starlark.UnpackArgs("network_rule", args, kwargs, "host", &host, "protocol", &protocol, "decision", &decision, "justification??", &justification); err != nil {
		return err
	}
	rule := Network{At: at, protocol: protocols[protocol]}
	if rule.protocol == "" {
		return fmt.Errorf("protocol must be one of http, https, socks5_tcp, socks5_udp, not %q", protocol)
	}
	var err error
	if rule.host, err = normalizeHost(host); err != nil {
		return err
	}
	if decision == starlark.String("deny") {
		decision = starlark.String("forbidden")
	}
	if rule.Decision, err = parseDecision(decision); err != nil {
		return err
	}
	if rule.Justification, err = parseJustification(justification); err != nil {
		return err
	}
	l.set.network = append(l.set.network, rule)
	return nil
}

// normalizeHost returns the name of a host in lower case, or its address in the shortest form. It removes
// the port and a final dot. It only accepts names in ASCII, because requests contain no others.
func normalizeHost(host string) (string, error) {
	name := strings.ToLower(strings.TrimRight(withoutPort(strings.TrimSpace(host)), "."))
	if name == "" || strings.ContainsAny(name, "/?#*[]@ \t\r\n") {
		return "", fmt.Errorf("host must be the name or the address of one host, without scheme, path or wildcard, not %q", host)
	}
	if strings.ContainsFunc(name, func(c rune) bool { return c >= 0x80 }) {
		return "", fmt.Errorf("host must be in its ASCII form (xn--…), not %q", host)
	}
	if addr, err := netip.ParseAddr(name); err == nil {
		return addr.Unmap().String(), nil
	}
	return name, nil
}

// withoutPort removes a port, and the brackets of an address, from a host.
func withoutPort(host string) string {
	if inside, isBracket := strings.CutPrefix(host, "["); isBracket {
		if address, rest, ok := strings.Cut(inside, "]"); ok && isPort(rest) {
			return address
		}
	}
	if name, port, ok := strings.Cut(host, ":"); ok && isPort(":"+port) {
		return name
	}
	return host
}

// isPort reports whether s is "" or a colon and digits.
func isPort(s string) bool {
	digits, ok := strings.CutPrefix(s, ":")
	return s == "" || ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// shortText returns a value for a message: a string of up to 40 bytes, or else its type.
func shortText(value starlark.Value) string {
	if text, ok := starlark.AsString(value); ok && len(text) <= 40 {
		return fmt.Sprintf("%q", text)
	}
	return value.Type()
}
