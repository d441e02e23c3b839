package skills

import (
	"fmt"
	"strings"
	"testing"
)

func described(number, length int) (all []Skill) {
	for n := range number {
		all = append(all, Skill{Name: fmt.Sprintf("s%03d", n), Description: strings.Repeat("d", length)})
	}
	return all
}

func TestLimitsCatalogueToShareOfWindow(t *testing.T) {
	for _, c := range []struct {
		number, length  int
		window          int64
		told, shortened int // skills, and the length of each description; 0 for a whole one
	}{
		{number: 3, length: 100, window: 128_000, told: 3},
		{number: 7, length: 1000, window: 128_000, told: 7},
		{number: 20, length: 1000, window: 128_000, told: 20, shortened: (8_000-700)/20 - 9},
		{number: 20, length: 1000, window: 0, told: 20, shortened: (8_000-700)/20 - 9},
		{number: 200, length: 1000, window: 1_000_000, told: (8_000 - 700) / 71, shortened: 60},
		{number: 40, length: 30, window: 20_000, told: (1_600 - 700) / 39},
		{number: 20, length: 30, window: 8_000, told: 0},
		{number: 0, window: 128_000},
	} {
		list, told := catalogue(described(c.number, c.length), c.window)
		if len(told) != c.told || strings.Count(list, "\n") != c.told {
			t.Errorf("%+v: %d are told of:\n%.300s", c, len(told), list)
			continue
		}
		most := maxCatalogue
		if c.window > 0 {
			most = min(most, int(c.window)*bytesInToken/windowShare)
		}
		if c.told > 0 && len(list)+aroundList > most {
			t.Errorf("%+v: the list has %d bytes", c, len(list))
		}
		first, _, _ := strings.Cut(list, "\n")
		length := len([]rune(strings.TrimPrefix(first, "- s000: ")))
		if want := min(c.length, max(c.shortened, 0)); c.shortened > 0 && (length < want-3 || length > want) || c.shortened == 0 && c.told > 0 && length != c.length {
			t.Errorf("%+v: the first description has %d characters", c, length)
		}
	}
}
