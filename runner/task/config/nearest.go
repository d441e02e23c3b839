package config

// Nearest returns the candidate most similar to name, or "". Up to a third of its letters may
// differ, and a swap of neighbours counts as one difference. Among equally similar candidates the
// first wins.
func Nearest(name string, candidates []string) string {
	const longest = 60
	if len(name) > longest {
		return ""
	}
	maxDistance := max(len(name)/3, 1)
	best, bestDistance := "", maxDistance+1
	for _, candidate := range candidates {
		if longer := len(candidate) - len(name); max(longer, -longer) >= bestDistance {
			continue // its length alone makes as many differences
		}
		if d := editDistance(name, candidate); d < bestDistance {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// editDistance returns the number of single-byte edits that turn a into b. A swap of neighbours counts as
// one (optimal string alignment). It keeps three rows of the distance matrix.
func editDistance(a, b string) int {
	twoRowsUp, rowAbove, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range rowAbove {
		rowAbove[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(rowAbove[j+1]+1, row[j]+1, rowAbove[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], twoRowsUp[j-1]+1)
			}
		}
		twoRowsUp, rowAbove, row = rowAbove, row, twoRowsUp
	}
	return rowAbove[len(b)]
}

// nearestKey returns the full path of the key most similar to name in group, or "". If none is
// similar, it asks the group's Suggest function. For a name at the top level it then accepts a key of
// the same name anywhere below.
func (d *Decoder) nearestKey(group *Key, path, name string) string {
	names := make([]string, len(group.Keys))
	for i, k := range group.Keys {
		names[i] = k.Name
	}
	if sibling := Nearest(name, names); sibling != "" {
		return JoinPath(path, sibling)
	}
	if group.Suggest != nil && group.Suggest(name) != "" {
		return JoinPath(path, group.Suggest(name))
	}
	if path != "" { // its group is right, and a key of another group means something else
		return ""
	}
	return findKeyPath(d.format.Root, name)
}

// findKeyPath returns the path of the first key called name anywhere below group, or "".
func findKeyPath(group *Key, name string) string {
	for _, k := range group.Keys {
		if k.Name == name {
			return k.Path
		}
		if path := findKeyPath(k, name); path != "" {
			return path
		}
	}
	return ""
}
