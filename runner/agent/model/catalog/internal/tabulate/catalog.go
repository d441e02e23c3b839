package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// catalogColumns are the columns of catalog.tsv: the facts used by a run.
var catalogColumns = []string{
	"provider", "model", "context", "input_limit", "output_limit", "price", "tiers", "service", "reasoning", "efforts", "images", "source", "date",
}

// catalogOf returns the content of catalog.tsv for a table in the form of models-dev.tsv.
func catalogOf(table []byte) ([]byte, error) {
	out := bytes.NewBufferString(strings.Join(catalogColumns, "\t") + "\n")
	for i, line := range strings.Split(strings.TrimSuffix(string(table), "\n"), "\n") {
		cells := strings.Split(line, "\t")
		if i == 0 {
			if !slices.Equal(cells, sourceColumns) {
				return nil, fmt.Errorf("its columns are not %s", strings.Join(sourceColumns, ", "))
			}
			continue
		}
		row, err := rowOf(cells)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		fmt.Fprintln(out, strings.Join(row, "\t"))
	}
	return out.Bytes(), nil
}

// rowOf returns the row of catalog.tsv for a row of models-dev.tsv. It leaves out a price that is not the full price.
func rowOf(cells []string) ([]string, error) {
	if len(cells) != len(sourceColumns) {
		return nil, fmt.Errorf("it has %d cells, not %d", len(cells), len(sourceColumns))
	}
	row := make(map[string]string, len(cells))
	for i, name := range sourceColumns {
		row[name] = cells[i]
	}
	for _, name := range []string{"provider", "model", "context", "source", "date"} {
		if row[name] == "" {
			return nil, errors.New("it has no " + name)
		}
	}
	isFull, err := isFullPrice(row["price"], row["usd_reasoning"])
	if err != nil {
		return nil, err
	}
	if !isFull {
		row["price"], row["tiers"], row["service"] = "", "", ""
	}
	kept := make([]string, len(catalogColumns))
	for i, name := range catalogColumns {
		kept[i] = row[name]
	}
	return kept, nil
}

// isFullPrice reports whether a model's price covers all of its tokens. rates has the form
// INPUT/CACHED/CACHE_WRITE/OUTPUT, reasoning is the price of reasoning or "". The price is not full if only one of input
// and output costs something, as with a router, which adds its fee to the price of another model. It is not full
// either if reasoning costs something else than output.
func isFullPrice(rates, reasoning string) (isFull bool, err error) {
	if rates == "" {
		return false, nil
	}
	parts := strings.Split(rates, "/")
	if len(parts) != 4 {
		return false, fmt.Errorf("%q is no price", rates)
	}
	input, inputErr := strconv.ParseFloat(parts[0], 64)
	output, outputErr := strconv.ParseFloat(parts[3], 64)
	if inputErr != nil || outputErr != nil || input < 0 || output < 0 {
		return false, nil // one of them is unknown
	}
	chargesBoth := (input > 0) == (output > 0) // or neither
	hasReasoningPrice := reasoning != "" && reasoning != parts[3]
	return chargesBoth && !hasReasoningPrice, nil
}
