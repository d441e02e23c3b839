package job

import (
	"os"
	"path/filepath"
	"testing"
)

// campaignExamples are the campaigns that people copy, by where they stand.
func campaignExamples(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../../examples/campaigns/*.yml")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, file := range append(files, campaignDocFile) {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Ext(file) == ".yml" {
			all[file] = string(raw)
			continue
		}
		for i, example := range jobsIn(file, string(raw)) {
			all[file+string(rune('0'+i))] = example
		}
	}
	return all
}

func besideExamples(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join("../../examples/campaigns", name))
}

func TestCampaignExamplesLoad(t *testing.T) {
	loaded := 0
	for file, example := range campaignExamples(t) {
		if !IsCampaign([]byte(example)) {
			continue
		}
		loaded++
		if _, err := LoadCampaign(file, []byte(example), besideExamples); err != nil {
			t.Errorf("%v\n%s", err, example)
		}
	}
	if loaded != 4 {
		t.Errorf("%d campaigns were loaded", loaded)
	}
}
