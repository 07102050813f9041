package lake

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/big"
)

// Greatest are the greatest values of columns of an output, so that whoever asks for
// them need not open a file for each part. They hold for the files over which they
// were taken: whoever lists others, another tool or a hand that edits the manifest,
// leaves values that nobody believes.
type Greatest struct {
	Over   string            `json:"over"`   // a hash of these files
	Values map[string]string `json:"values"` // by column, the whole number that Parquet keeps for the value; "" where all are NULL
}

// NewGreatest gives the values of columns over files; nil where none is known.
func NewGreatest(files []File, values map[string]string) *Greatest {
	if len(files) == 0 || len(values) == 0 {
		return nil
	}
	return &Greatest{Over: hashOfFiles(files), Values: values}
}

// GreatestValues gives what is known of the greatest values of the output's columns
// as it stands; nil where nothing is. It is not to be changed.
func (o Output) GreatestValues() map[string]string {
	if o.Greatest == nil || o.Greatest.Over != hashOfFiles(o.Files) {
		return nil
	}
	return o.Greatest.Values
}

// hashOfFiles identifies files of an output: which, in which order, how large and by
// which commit.
func hashOfFiles(files []File) string {
	h := sha256.New()
	for _, f := range files {
		fmt.Fprintf(h, "%s\x00%d\x00%s\x00", f.Path, f.Bytes, f.Commit)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// GreaterOf gives the greatest values over two lots of files, of the columns that are
// known of both.
func GreaterOf(a, b map[string]string) map[string]string {
	out := map[string]string{}
	for column, value := range a {
		other, ok := b[column]
		if !ok {
			continue
		}
		if value == "" || other == "" {
			out[column] = value + other
			continue
		}
		x, okX := new(big.Int).SetString(value, 10)
		y, okY := new(big.Int).SetString(other, 10)
		switch {
		case !okX || !okY:
		case x.Cmp(y) < 0:
			out[column] = other
		default:
			out[column] = value
		}
	}
	return out
}
